"""Random expressions over the operations that distc has code for, with their gradients, as TensorFlow graphs.

An expression's leaves are variables of any shape (extents of 0 and 1 too) and type, with ties and special values, so that nothing of it is known when it is
compiled; what is computed exactly may be rounded and compared, anything else only goes where it is continuous. All expressions of a pack stand in
one graph, each in a name scope of its own, so that an error that names a node names its expression. All follows from a seed.

Needs TensorFlow, which the caller imports: Pack(tf, seed, number, count).
"""
import random

import numpy as np

FLOATS = ("float32", "float32", "float32", "float32", "float64", "float16", "bfloat16")
NARROW = ("float16", "bfloat16")
INTEGERS = ("int32", "int32", "int64", "int16", "int8")
EXTENTS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 9, 17, 33)
LONG_EXTENTS = (64, 100, 255, 257, 260, 512, 516, 1030, 2052, 9001)  # of rows: several registers a thread, or threads of several warps
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e30, -1e30, 0.5, 2.5, -1.5)
MOST_ELEMENTS = 3000


class Unsuitable(Exception):
    """An operation that does not fit what it was given; another is drawn."""


class Value:
    """A tensor of an expression; exact: every implementation computes the same bits, so that it may be compared and rounded."""

    def __init__(self, tensor, exact):
        self.tensor, self.exact = tensor, exact

    @property
    def shape(self):
        return self.tensor.shape.as_list()

    @property
    def rank(self):
        return len(self.shape)

    @property
    def dtype(self):
        return self.tensor.dtype.base_dtype.name

    @property
    def is_float(self):
        return self.tensor.dtype.is_floating

    @property
    def is_bool(self):
        return self.dtype == "bool"


def need(condition):
    if not condition:
        raise Unsuitable


class Expression:
    """Draws one expression into the default graph. `gpu`: of operations that devices have code for."""

    def __init__(self, tf, rng, scope, gpu):
        self.tf, self.tf1, self.rng, self.scope, self.gpu = tf, tf.compat.v1, rng, scope, gpu
        self.leaves = []  # of floats, for gradients
        self.steps = []   # operations, for messages
        self.fetches = []  # tensors
        self.count = 0
        self.narrow = None  # the least exact type so far

    def draw(self):
        value = self.grow(self.rng.choice((1, 1, 2, 2, 3, 4)))
        self.fetch(value)
        if value.is_float and self.rng.random() < 0.75:
            self.differentiate(value)

    def fetch(self, value):
        # numpy has no bfloat16.
        tensor = self.tf.cast(value.tensor, self.tf.float32) if value.dtype in NARROW else value.tensor
        # What was computed on the way in a narrow type is no more exact than that.
        dtype = self.narrow if self.narrow and value.is_float else value.dtype
        self.fetches.append((self.tf.identity(tensor, name="out"), dtype))

    def differentiate(self, value):
        weights = np.float64(self.rng.choice((1.0, 0.5, -2.0)))
        sources = [leaf for leaf in self.leaves if leaf.is_float][:3]
        if not sources:
            return
        seed = self.tf.cast(self.tf.ones_like(value.tensor) * self.tf.cast(weights, value.dtype), value.dtype)
        if value.tensor.shape.is_fully_defined():
            # Not alike: what is normalized, as softmax, has a gradient of rounding alone then.
            shape = value.tensor.shape.as_list()
            seed *= self.tf.constant(np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape), value.dtype)
        try:
            gradients = self.tf.gradients(value.tensor, [leaf.tensor for leaf in sources], seed)
        except (LookupError, ValueError, TypeError, NotImplementedError):
            return  # an operation has none
        for gradient in gradients:
            if gradient is not None and not isinstance(gradient, self.tf.IndexedSlices) and gradient.shape.is_fully_defined():
                self.fetch(Value(gradient, False))

    # ---- Leaves ------------------------------------------------------------------------

    def draw_shape(self, least_rank=0, most_rank=4):
        while True:
            shape = [self.rng.choice(EXTENTS) for _ in range(self.rng.randint(least_rank, most_rank))]
            if shape and self.rng.random() < 0.08:
                shape[-1] = self.rng.choice(LONG_EXTENTS)
            if shape and self.rng.random() < 0.08:
                shape[self.rng.randrange(len(shape))] = 0
            if np.prod(shape, dtype=np.int64) <= MOST_ELEMENTS:
                return shape

    def draw_dtype(self):
        return self.rng.choice(FLOATS) if self.rng.random() < 0.8 else self.rng.choice(INTEGERS)

    def draw_numbers(self, shape, dtype, kind=None):
        numbers = np.random.RandomState(self.rng.randrange(2**31))
        if dtype == "bool":
            return np.asarray(numbers.rand(*shape) < 0.5)
        if dtype.startswith("int"):
            most = {"small": 4, "any": 100, "wide": int(np.iinfo(dtype).max)}[kind or self.rng.choice(("small", "any", "any", "wide"))]
            most = min(most, int(np.iinfo(dtype).max))
            return numbers.randint(-most, most, size=shape, dtype=np.int64).astype(dtype)
        kind = kind or self.rng.choice(("normal", "normal", "positive", "unit", "ties", "special"))
        if kind == "special" and dtype in NARROW and self.rng.random() < 0.5:
            kind = "normal"
        if kind == "ties":
            values = numbers.randint(-2, 3, size=shape).astype(np.float64)
        elif kind == "positive":
            values = numbers.rand(*shape) * 2 + 0.1
        elif kind == "unit":
            values = numbers.rand(*shape) * 1.8 - 0.9
        else:
            values = np.asarray(numbers.randn(*shape))
            if kind == "special":
                where = numbers.rand(*shape) < 0.3
                values = np.where(where, np.asarray(SPECIAL)[numbers.randint(len(SPECIAL), size=shape)], values)
        return np.asarray(values).astype(self.tf.as_dtype(dtype).as_numpy_dtype)

    def leaf(self, shape=None, dtype=None, kind=None):
        shape = self.draw_shape() if shape is None else shape
        dtype = dtype or self.draw_dtype()
        return self.variable(self.draw_numbers(shape, dtype, kind))

    def variable(self, numbers):
        numbers = np.asarray(numbers)
        variable = self.tf1.get_variable(f"{self.scope}_v{self.count}", initializer=self.tf.constant(numbers), use_resource=True, trainable=False)
        self.count += 1
        value = Value(variable.read_value(), True)
        if value.is_float:
            self.leaves.append(value)
        return value

    def constant(self, numbers, dtype=None):
        return self.tf.constant(numbers, dtype)

    # ---- Growth -------------------------------------------------------------------------

    def grow(self, depth):
        if depth == 0:
            return self.leaf()
        value = self.grow(depth - 1)
        for _ in range(60):
            name, family = self.rng.choice(CATALOG)
            if self.gpu and name in NOT_ON_GPUS:
                continue
            try:
                result = family(self, value)
            except (Unsuitable, ValueError, TypeError):
                continue
            if not result.tensor.shape.is_fully_defined() or np.prod(result.shape, dtype=np.int64) > 4 * MOST_ELEMENTS:
                continue
            self.steps.append(f"{name} -> {result.dtype}{result.shape}")
            if result.dtype in NARROW and self.narrow != "bfloat16":
                self.narrow = result.dtype
            return result
        return value

    def partner(self, x, dtype=None, kind=None):
        """A value that broadcasts with x."""
        shape = list(x.shape)
        choice = self.rng.random()
        if choice < 0.5:
            for axis in range(len(shape)):
                if self.rng.random() < 0.4:
                    shape[axis] = 1 if shape[axis] != 1 or self.rng.random() < 0.5 else self.rng.choice((2, 3))
            shape = shape[self.rng.randint(0, len(shape)):] if self.rng.random() < 0.4 else shape
        if self.rng.random() < 0.1:
            shape = [self.rng.choice((1, 2))] + shape
        need(np.prod(shape, dtype=np.int64) <= MOST_ELEMENTS)
        value = self.leaf(shape, dtype or x.dtype, kind)
        if value.is_float and self.rng.random() < 0.3:
            return Value(self.rng.choice((self.tf.sin, self.tf.tanh, self.tf.abs, self.tf.negative))(value.tensor), False)
        return value

    def axis(self, x):
        need(x.rank > 0)
        return self.rng.randint(-x.rank, x.rank - 1)

    def axes(self, x):
        """Distinct axes, some of them counted from the end."""
        axes = self.rng.sample(range(x.rank), self.rng.randint(0, x.rank))
        return [axis - x.rank if self.rng.random() < 0.3 else axis for axis in axes]

    def indices(self, size, shape, dtype=None):
        need(size > 0)
        numbers = np.random.RandomState(self.rng.randrange(2**31))
        return self.variable(numbers.randint(0, size, size=shape).astype(dtype or self.rng.choice(("int32", "int64")))).tensor


# ---- Families -----------------------------------------------------------------------------

def unary(name, exact=False, floats=True, integers=False):
    def family(e, x):
        need((floats and x.is_float) or (integers and x.tensor.dtype.is_integer))
        return Value(find(e.tf, name)(x.tensor), x.exact and exact)
    return name, family


def exponential_unit(name):
    """Not of narrow types, of which TensorFlow rounds exp(x) before it subtracts 1: near 0 the slope is that of another side."""
    def family(e, x):
        need(x.is_float and x.dtype not in NARROW)
        return Value(find(e.tf, name)(x.tensor), False)
    return name, family


def steep(name):
    """Without end at 1: there the last bit of a value of a narrow type doubles the slope."""
    def family(e, x):
        need(x.is_float and (x.exact or x.dtype not in NARROW))
        return Value(find(e.tf, name)(x.tensor), False)
    return name, family


def rounding(name):
    def family(e, x):
        need(x.is_float and x.exact)
        return Value(find(e.tf, name)(x.tensor), True)
    return name, family


def special(name):
    def family(e, x):
        need(x.dtype in ("float32", "float64"))
        # Far from poles and overflow, where libraries differ.
        return Value(find(e.tf, name)(e.tf.clip_by_value(x.tensor, 0.3, 4.0)), False)
    return name, family


def special_beta(e, x):
    need(x.dtype in ("float32", "float64"))
    a, b = (e.leaf([], x.dtype, "positive").tensor for _ in range(2))
    shape = e.tf.zeros_like(x.tensor)
    return Value(e.tf.math.betainc(a + shape, b + shape, e.tf.clip_by_value(without_nan(e, x.tensor), 0.05, 0.95)), False)


def special_gamma_gradient(e, x):
    """By how much a drawn number grows with the distribution's shape."""
    need(x.dtype in ("float32", "float64"))
    alpha = e.tf.clip_by_value(without_nan(e, x.tensor), 0.3, 4.0)
    return Value(e.tf.raw_ops.RandomGammaGrad(alpha=alpha, sample=e.leaf(x.shape, x.dtype, "positive").tensor), False)


def bounded(name):
    """TensorFlow's float64 vectors give NaN for infinities."""
    def family(e, x):
        need(x.is_float)
        return Value(find(e.tf, name)(e.tf.clip_by_value(x.tensor, e.tf.cast(-6, x.dtype), e.tf.cast(6, x.dtype))), False)
    return name, family


def without_nan(e, tensor):
    return e.tf.where(e.tf.math.is_nan(tensor), e.tf.zeros_like(tensor), tensor)


def find(tf, name):
    found = tf
    for part in name.split("."):
        found = getattr(found, part)
    return found


def binary(name, exact=False, floats=True, integers=False, nonzero=False):
    def family(e, x):
        need((floats and x.is_float) or (integers and x.tensor.dtype.is_integer))
        if nonzero and not x.is_float:
            y = e.leaf([], x.dtype, "small")
            y = Value(e.tf.abs(y.tensor) + e.tf.cast(1, x.dtype), True)
        else:
            y = e.partner(x)
        # Of computed narrow floats ties are frequent, and the gradient goes to one side.
        need(not name.endswith(("maximum", "minimum")) or x.dtype not in NARROW or (x.exact and y.exact))
        first, second = (x.tensor, y.tensor) if nonzero or e.rng.random() < 0.7 else (y.tensor, x.tensor)
        return Value(find(e.tf, name)(first, second), x.exact and y.exact and (exact or not x.is_float))
    return name, family


def discontinuous(name):
    """Of floats that are exact."""
    def family(e, x):
        need(x.exact and x.is_float)
        y = e.leaf(x.shape if e.rng.random() < 0.5 else [], x.dtype)
        return Value(find(e.tf, name)(x.tensor, y.tensor), False)
    return name, family


def comparison(name):
    def family(e, x):
        need(x.exact and not x.is_bool)
        y = e.leaf(x.shape if e.rng.random() < 0.5 else [1] * x.rank, x.dtype)
        return Value(find(e.tf, name)(x.tensor, y.tensor), True)
    return name, family


def predicate(name):
    def family(e, x):
        need(x.is_float and x.exact)
        return Value(find(e.tf, name)(x.tensor), True)
    return name, family


def logical(name):
    def family(e, x):
        need(x.is_bool)
        return Value(find(e.tf, name)(x.tensor, e.partner(x).tensor), True)
    return name, family


def logical_not(e, x):
    need(x.is_bool)
    return Value(e.tf.logical_not(x.tensor), True)


def bitwise(name):
    def family(e, x):
        need(x.tensor.dtype.is_integer)
        return Value(find(e.tf, name)(x.tensor, e.partner(x).tensor), True)
    return name, family


def shift(name):
    def family(e, x):
        need(x.tensor.dtype.is_integer)
        y = e.leaf(x.shape, "int32", "small").tensor
        if e.rng.random() < 0.5:  # by less than nothing, or more than all, otherwise
            y = e.tf.abs(y)
        elif e.rng.random() < 0.5:
            y *= 20
        y = e.tf.cast(y, x.dtype)
        return Value(find(e.tf, name)(x.tensor, y), True)
    return name, family


def select(e, x):
    other = e.partner(x)
    condition = e.leaf([extent if e.rng.random() < 0.7 else 1 for extent in x.shape], "bool")
    return Value(e.tf.where(condition.tensor, x.tensor, other.tensor), x.exact and other.exact)


def select_rows(e, x):
    need(x.rank > 0)
    condition = e.leaf(x.shape if e.rng.random() < 0.5 else x.shape[:1], "bool")
    return Value(e.tf1.where(condition.tensor, x.tensor, e.leaf(x.shape, x.dtype).tensor), x.exact)


def cast(e, x):
    target = e.rng.choice(FLOATS + INTEGERS + ("bool",))
    whole = target.startswith("int") or target == "bool"
    need(x.exact or not whole)
    tensor = x.tensor
    if x.is_float and target in ("int8", "int16"):
        # What these cannot hold depends on TensorFlow's vectors.
        tensor = e.tf.where(e.tf.math.is_finite(tensor), e.tf.clip_by_value(tensor, e.tf.cast(-100, x.dtype), e.tf.cast(100, x.dtype)), e.tf.zeros_like(tensor))
    return Value(e.tf.cast(tensor, target), x.exact)


def clip(e, x):
    need(not x.is_bool)
    if e.rng.random() < 0.4:
        # Its own operation, whose bounds may be the wrong way round.
        low, high = (e.tf.constant(e.rng.choice((-1, 0, 2)), x.dtype) for _ in range(2))
        return Value(e.tf.raw_ops.ClipByValue(t=x.tensor, clip_value_min=low, clip_value_max=high), x.exact)
    return Value(e.tf.clip_by_value(x.tensor, e.tf.cast(-1, x.dtype), e.tf.cast(2, x.dtype)), x.exact)


def add_n(e, x):
    need(not x.is_bool)
    return Value(e.tf.add_n([x.tensor, e.leaf(x.shape, x.dtype).tensor, x.tensor]), not x.is_float)


def approximate_equal(e, x):
    need(x.exact and x.dtype in ("float32", "float64"))
    return Value(e.tf.raw_ops.ApproximateEqual(x=x.tensor, y=e.leaf(x.shape, x.dtype, "ties").tensor, tolerance=0.7), False)


def reduction(name, floats=True, integers=True, exact=False):
    def family(e, x):
        need((floats and x.is_float) or (integers and x.tensor.dtype.is_integer))
        axes = None if e.rng.random() < 0.3 else e.axes(x)
        if not x.is_float and name == "math.reduce_mean":
            need(0 not in x.shape)
        # A product of many leaves the range.
        if name == "math.reduce_prod":
            need(np.prod(x.shape, dtype=np.int64) < 40)
        return Value(find(e.tf, name)(x.tensor, axis=axes, keepdims=e.rng.random() < 0.4), x.exact and (exact or not x.is_float))
    return name, family


def reduction_of_bools(name):
    def family(e, x):
        need(x.is_bool)
        return Value(find(e.tf, name)(x.tensor, axis=e.axes(x), keepdims=e.rng.random() < 0.4), True)
    return name, family


def l2_loss(e, x):
    need(x.is_float)
    return Value(e.tf.nn.l2_loss(x.tensor), False)


def scan(name):
    def family(e, x):
        need(not x.is_bool)
        need(x.is_float or name == "math.cumsum")
        if name == "math.cumulative_logsumexp":
            # What TensorFlow makes of NaN, as two infinities give it, follows from where in the row it stands.
            x = Value(e.tf.where(e.tf.math.is_finite(x.tensor), x.tensor, e.tf.zeros_like(x.tensor)), False)
        exclusive, reverse = e.rng.random() < 0.5, e.rng.random() < 0.5
        return Value(find(e.tf, name)(x.tensor, axis=e.axis(x), exclusive=exclusive, reverse=reverse), x.exact and not x.is_float)
    return name, family


def arg_reduction(name):
    def family(e, x):
        need(x.exact and not x.is_bool)
        axis = e.axis(x)
        need(x.shape[axis] > 0)
        return Value(find(e.tf, name)(x.tensor, axis=axis, output_type=e.rng.choice(("int32", "int64"))), True)
    return name, family


# ---- Layout ---------------------------------------------------------------------------------

def reshape(e, x):
    count = int(np.prod(x.shape, dtype=np.int64))
    shape, rest = [], count
    while rest > 1 and len(shape) < 4:
        factor = e.rng.choice([f for f in range(1, rest + 1) if rest % f == 0][:6])
        shape.append(factor)
        rest //= factor
    shape.append(rest)
    e.rng.shuffle(shape)
    if count and e.rng.random() < 0.3:
        shape[e.rng.randrange(len(shape))] = -1
    return Value(e.tf.reshape(x.tensor, shape), x.exact)


def transpose(e, x):
    return Value(e.tf.transpose(x.tensor, e.rng.sample(range(x.rank), x.rank)), x.exact)


def expand_dims(e, x):
    need(x.rank < 5)
    return Value(e.tf.expand_dims(x.tensor, e.rng.randint(-x.rank - 1, x.rank)), x.exact)


def squeeze(e, x):
    return Value(e.tf.squeeze(x.tensor), x.exact)


def tile(e, x):
    return Value(e.tf.tile(x.tensor, [e.rng.choice((0, 1, 1, 1, 2, 3)) if e.rng.random() < 0.5 else 1 for _ in x.shape]), x.exact)


def broadcast_to(e, x):
    shape = [e.rng.choice((0, 2, 3)) if extent == 1 and e.rng.random() < 0.6 else extent for extent in x.shape]
    return Value(e.tf.broadcast_to(x.tensor, [e.rng.choice((1, 2))] * e.rng.randint(0, 1) + shape), x.exact)


def concat(e, x):
    axis = e.axis(x)
    parts = [x]
    for _ in range(e.rng.randint(0, 2)):
        shape = list(x.shape)
        shape[axis] = e.rng.choice((0, 1, 2, 3))
        parts.append(e.leaf(shape, x.dtype))
    e.rng.shuffle(parts)
    return Value(e.tf.concat([part.tensor for part in parts], axis), all(part.exact for part in parts))


def split(e, x):
    axis = e.axis(x)
    extent = x.shape[axis]
    if e.rng.random() < 0.5:
        number = e.rng.choice([n for n in range(1, 6) if extent % n == 0])
        return Value(e.rng.choice(e.tf.split(x.tensor, number, axis)), x.exact)
    first = e.rng.randint(0, extent)
    parts = e.tf.split(x.tensor, [first, extent - first], axis)
    return Value(e.rng.choice(parts), x.exact)


def stack(e, x):
    need(x.rank < 5)
    parts = [x.tensor] + [e.leaf(x.shape, x.dtype).tensor for _ in range(e.rng.randint(0, 2))]
    return Value(e.tf.stack(parts, e.rng.randint(-x.rank - 1, x.rank)), x.exact)


def unstack(e, x):
    axis = e.axis(x)
    need(0 < x.shape[axis] < 8)
    return Value(e.rng.choice(e.tf.unstack(x.tensor, axis=axis)), x.exact)


def slice_part(e, x):
    begin = [e.rng.randint(0, extent) for extent in x.shape]
    size = [e.rng.choice((-1, e.rng.randint(0, extent - first))) for first, extent in zip(begin, x.shape)]
    return Value(e.tf.slice(x.tensor, begin, size), x.exact)


def strided_slice(e, x):
    need(x.rank > 0)
    keys, ellipsis = [], False
    for extent in x.shape[:e.rng.randint(1, x.rank)]:
        kind = e.rng.random()
        if kind < 0.15 and extent > 0:
            keys.append(e.rng.randint(-extent, extent - 1))
        elif kind < 0.3:
            keys.append(e.tf.newaxis)
        elif kind < 0.4 and not ellipsis:
            keys.append(Ellipsis)
            ellipsis = True
        else:
            ends = [None, None] + list(range(-extent - 1, extent + 2))
            keys.append(slice(e.rng.choice(ends), e.rng.choice(ends), e.rng.choice((1, 1, 2, 3, -1, -2))))
    return Value(x.tensor[tuple(keys)], x.exact)


def pad(e, x):
    paddings = [[e.rng.choice((0, 0, 1, 2)), e.rng.choice((0, 0, 1, 3))] for _ in x.shape]
    if e.rng.random() < 0.5 and not x.is_bool:
        return Value(e.tf.pad(x.tensor, paddings, constant_values=e.tf.cast(e.rng.choice((1, -2)), x.dtype)), x.exact)
    return Value(e.tf.pad(x.tensor, paddings), x.exact)


def reverse(e, x):
    return Value(e.tf.reverse(x.tensor, e.axes(x)), x.exact)


def one_hot(e, x):
    need(x.rank < 4)
    indices = e.tf.cast(e.leaf(x.shape, "int32", "small").tensor, e.rng.choice(("int32", "int64")))
    return Value(e.tf.one_hot(indices, e.rng.choice((0, 1, 3, 5)), axis=e.rng.randint(-1, x.rank), dtype=e.rng.choice(("float32", "int32"))), True)


def fill(e, x):
    need(x.rank == 0)
    return Value(e.tf.fill(e.draw_shape(1, 3), x.tensor), x.exact)


def value_range(e, x):
    need(x.rank == 0 and x.dtype in ("float32", "int32", "int64"))
    steps = e.rng.choice((0, 1, 4, 9))
    start, delta = e.rng.choice((0, 3, -2)), e.rng.choice((1, 2, -1))
    values = e.tf.range(e.constant(start, x.dtype), e.constant(start + steps * delta, x.dtype), e.constant(delta, x.dtype))
    return Value(values + x.tensor, x.exact and not x.is_float)


# ---- Products, images, losses --------------------------------------------------------------------

def library_floats(e, x):
    need(x.is_float and (not e.gpu or x.dtype in ("float32", "float16", "bfloat16")))


def matmul(e, x):
    need(x.rank >= 2 and (x.is_float or x.dtype in ("int32", "int64")))
    if e.gpu:
        library_floats(e, x)
    transpose_a, transpose_b = e.rng.random() < 0.4, e.rng.random() < 0.4
    inner = x.shape[-2 if transpose_a else -1]
    columns = e.rng.choice((0, 1, 2, 3, 5, 8) if e.rng.random() < 0.2 else (1, 2, 3, 5, 8))
    # Batches that broadcast along some axes.
    batch = [extent if e.rng.random() < 0.6 else 1 for extent in x.shape[:-2]]
    batch = [e.rng.choice((2, 3)) if own == 1 and extent == 1 and e.rng.random() < 0.4 else extent for own, extent in zip(x.shape, batch)]
    if e.rng.random() < 0.2:
        batch = batch[e.rng.randint(0, len(batch)):]
    need(np.prod(batch, dtype=np.int64) * inner * columns <= MOST_ELEMENTS)
    y = e.leaf(batch + ([columns, inner] if transpose_b else [inner, columns]), x.dtype, None if x.is_float else "any")
    return Value(e.tf.matmul(x.tensor, y.tensor, transpose_a=transpose_a, transpose_b=transpose_b), not x.is_float)


def image(e, x):
    library_floats(e, x)
    need(x.rank == 4 and (0 not in x.shape or e.rng.random() < 0.5))
    return x.shape


def padding(e, x, window):
    """VALID where the window fits."""
    fits = all(extent >= size for extent, size in zip(x.shape[1:3], window))
    return e.rng.choice(("SAME", "VALID") if fits else ("SAME",))


def convolution(e, x):
    channels = image(e, x)[3]
    # The filter's gradient from no elements: of float16 TensorFlow leaves the memory as it finds it.
    need(0 not in x.shape or x.dtype != "float16")
    window = [e.rng.choice((1, 2, 3)), e.rng.choice((1, 2, 3))]
    stride = e.rng.choice((1, 1, 2))
    dilation = 1 if stride > 1 or e.gpu else e.rng.choice((1, 1, 2))
    grown = [(size - 1) * dilation + 1 for size in window]
    filters = e.leaf(window + [channels, e.rng.choice((1, 2, 4))], x.dtype, "normal")
    return Value(e.tf.nn.conv2d(x.tensor, filters.tensor, stride, padding(e, x, grown), dilations=dilation), False)


def depthwise(e, x):
    channels = image(e, x)[3]
    # The filter's gradient from no elements: TensorFlow leaves the memory as it finds it.
    need(0 not in x.shape)
    window = [e.rng.choice((1, 2, 3)), e.rng.choice((1, 2, 3))]
    stride = e.rng.choice((1, 1, 2))
    filters = e.leaf(window + [channels, e.rng.choice((1, 2))], x.dtype, "normal")
    return Value(e.tf.nn.depthwise_conv2d(x.tensor, filters.tensor, [1, stride, stride, 1], padding(e, x, window)), False)


def pool(name):
    def family(e, x):
        image(e, x)
        window = [e.rng.choice((1, 2, 3)), e.rng.choice((1, 2, 3))]
        # NaN and ties of computed values go where a kernel's order says.
        need(name == "nn.avg_pool2d" or x.exact)
        images = x.tensor if name == "nn.avg_pool2d" else without_nan(e, x.tensor)
        return Value(find(e.tf, name)(images, window, e.rng.choice((1, 2)), padding(e, x, window)), x.exact and name == "nn.max_pool2d")
    return name, family


def pool_of_operands(e, x):
    """The window's sizes and strides are operands."""
    image(e, x)
    need(x.exact and x.dtype == "float32" and 0 not in x.shape)
    window, stride = [e.rng.choice((1, 2, 3)), e.rng.choice((1, 2, 3))], e.rng.choice((1, 2))
    pooled = e.tf.raw_ops.MaxPoolV2(input=without_nan(e, x.tensor), ksize=[1, *window, 1], strides=[1, stride, stride, 1], padding=padding(e, x, window))
    return Value(pooled, True)


def pool_second_gradient(e, x):
    """A gradient at the places of the windows' largest elements, the first of equal ones."""
    need(x.exact and x.dtype == "float32" and 0 not in x.shape)
    x = volume(e, x) if e.rng.random() < 0.4 else x
    need(x.rank in (4, 5))
    window, stride = [e.rng.choice((1, 2, 3)) for _ in x.shape[2:]], e.rng.choice((1, 2))
    fits = all(extent >= size for extent, size in zip(x.shape[1:], window))
    settings = {"ksize": [1, *window, 1], "strides": [1, *[stride for _ in window], 1], "padding": e.rng.choice(("SAME", "VALID") if fits else ("SAME",))}
    images = e.tf.clip_by_value(without_nan(e, x.tensor), -100.0, 100.0)
    name = "MaxPool" if x.rank == 4 else "MaxPool3D"
    pooled = getattr(e.tf.raw_ops, name)(input=images, **settings)
    second = getattr(e.tf.raw_ops, name + "GradGrad")
    return Value(second(orig_input=images, orig_output=pooled, grad=e.leaf(x.shape, x.dtype, "normal").tensor, **settings), False)


def bias_add(e, x):
    need(x.rank >= 2 and x.is_float)
    return Value(e.tf.nn.bias_add(x.tensor, e.leaf(x.shape[-1:], x.dtype).tensor), False)


def softmax(name):
    """TensorFlow's two libraries differ where a row has no largest finite number; and where one element has all of a row, by a rounding of it, which is all that its
    gradient is then."""
    def family(e, x):
        need(x.is_float and x.rank >= 1)
        clean = without_nan(e, x.tensor)
        far, near = e.tf.cast(1e4, x.dtype), e.tf.cast(6, x.dtype)
        e.fetch(Value(find(e.tf, name)(e.tf.stop_gradient(e.tf.clip_by_value(clean, -far, far))), False))
        return Value(find(e.tf, name)(e.tf.clip_by_value(clean, -near, near)), False)
    return name, family


def cross_entropy(e, x):
    need(x.is_float and x.rank == 2 and x.shape[1] > 0)
    labels = e.tf.nn.softmax(e.leaf(x.shape, x.dtype, "normal").tensor)
    return Value(e.tf.nn.softmax_cross_entropy_with_logits(e.tf.stop_gradient(labels), x.tensor), False)


def sparse_cross_entropy(e, x):
    need(x.is_float and x.rank == 2 and x.shape[1] > 0)
    return Value(e.tf.nn.sparse_softmax_cross_entropy_with_logits(e.indices(x.shape[1], x.shape[:1]), x.tensor), False)


def batch_norm(e, x):
    need(x.dtype == "float32" and x.rank == 4 and 0 not in x.shape)
    channels = x.shape[3:]
    scale, offset = e.leaf(channels, "float32", "normal").tensor, e.leaf(channels, "float32", "normal").tensor
    if e.rng.random() < 0.5:
        mean, variance = e.leaf(channels, "float32", "normal").tensor, e.leaf(channels, "float32", "positive").tensor
        return Value(e.tf1.nn.fused_batch_norm(x.tensor, scale, offset, mean, variance, epsilon=0.01, is_training=False)[0], False)
    need(np.prod(x.shape[:3]) > 4)
    return Value(e.tf1.nn.fused_batch_norm(x.tensor, scale, offset, epsilon=0.01)[0], False)


def batch_norm_training(e, x):
    """All outputs; the gradient takes what the forward pass kept."""
    need(x.dtype in ("float32", "float16", "bfloat16") and x.rank == 4 and 0 not in x.shape and np.prod(x.shape[:3]) > 4)
    if x.dtype in NARROW:
        x = e.leaf(x.shape, x.dtype, "normal")
    stats = [e.leaf(x.shape[3:], "float32", kind).tensor for kind in ("normal", "normal", "normal", "positive")]
    share = e.rng.choice((1.0, 0.25))
    outputs = e.tf.raw_ops.FusedBatchNormV3(x=x.tensor, scale=stats[0], offset=stats[1], mean=stats[2], variance=stats[3], epsilon=0.01,
                                            exponential_avg_factor=share, is_training=True)
    return Value(outputs[e.rng.choice((0, 0, 0, 1, 2))], False)


def batch_norm_inference(e, x):
    need(x.dtype in ("float32", "float16", "bfloat16") and x.rank == 4 and 0 not in x.shape)
    stats = [e.leaf(x.shape[3:], "float32", kind).tensor for kind in ("normal", "normal", "normal", "positive")]
    return Value(e.tf.raw_ops.FusedBatchNormV3(x=x.tensor, scale=stats[0], offset=stats[1], mean=stats[2], variance=stats[3], is_training=False)[0], False)


def einsum(e, x):
    library_floats(e, x)
    need(1 <= x.rank <= 4)
    mine = "abcd"[:x.rank]
    labels = [label for label in mine if e.rng.random() < 0.6] + [label for label in "ef" if e.rng.random() < 0.4]
    e.rng.shuffle(labels)
    sizes = dict(zip(mine, x.shape), e=e.rng.choice((1, 2, 3)), f=e.rng.choice((1, 4)))
    result = [label for label in sizes if label in set(mine) | set(labels) and e.rng.random() < 0.6]
    e.rng.shuffle(result)
    if e.rng.random() < 0.2:
        return Value(e.tf.einsum(f"{mine}->{''.join(label for label in result if label in mine)}", x.tensor), False)
    shape = [sizes[label] for label in labels]
    need(np.prod(list(sizes.values()), dtype=np.int64) <= 10 * MOST_ELEMENTS)
    return Value(e.tf.einsum(f"{mine},{''.join(labels)}->{''.join(result)}", x.tensor, e.leaf(shape, x.dtype, "normal").tensor), False)


def einsum_forms(e, x):
    library_floats(e, x)
    need(x.rank >= 2 and x.rank <= 4)
    square = e.leaf([3, 3, x.shape[-1]], x.dtype, "normal").tensor
    equation, operands = e.rng.choice((
        ("...i,ij->...j", (x.tensor, e.leaf([x.shape[-1], 2], x.dtype, "normal").tensor)),
        ("iij->j", (square,)), ("iij->ij", (square,)), ("...ij->...ji", (x.tensor,)), ("...i->...", (x.tensor,)),
        ("iik,...k->...i", (square, x.tensor)),
        ("...ij,...kj->...ik", (x.tensor, e.leaf([2, x.shape[-1]], x.dtype, "normal").tensor))))
    return Value(e.tf.einsum(equation, *operands), False)


def local_response(e, x):
    need(x.dtype in ("float32",) and x.rank == 4)
    x = e.tf.clip_by_value(without_nan(e, x.tensor), -10.0, 10.0)
    return Value(e.tf.nn.local_response_normalization(x, e.rng.choice((1, 2, 5)), bias=1.0, alpha=0.3, beta=0.75), False)


def mirror_pad(e, x):
    need(x.rank > 0)
    mode = e.rng.choice(("REFLECT", "SYMMETRIC"))
    most = [max(extent - (mode == "REFLECT"), 0) for extent in x.shape]
    return Value(e.tf.pad(x.tensor, [[e.rng.randint(0, min(n, 3)), e.rng.randint(0, min(n, 2))] for n in most], mode), x.exact)


def space_depth(e, x):
    need(x.rank == 4)
    if e.rng.random() < 0.5:
        need(x.shape[1] % 2 == 0 and x.shape[2] % 2 == 0)
        return Value(e.tf.nn.space_to_depth(x.tensor, 2), x.exact)
    need(x.shape[3] % 4 == 0)
    return Value(e.tf.nn.depth_to_space(x.tensor, 2), x.exact)


def space_batch(e, x):
    need(x.rank >= 2)
    count = e.rng.randint(1, min(2, x.rank - 1))
    blocks = [e.rng.choice((1, 2, 3)) for _ in range(count)]
    if e.rng.random() < 0.5:
        paddings = [[e.rng.choice((0, 1)), 0] for _ in range(count)]
        for pads, block, extent in zip(paddings, blocks, x.shape[1:]):
            pads[1] = -(extent + pads[0]) % block
        return Value(e.tf.space_to_batch(x.tensor, blocks, paddings), x.exact)
    need(x.shape[0] % int(np.prod(blocks)) == 0)
    return Value(e.tf.batch_to_space(x.tensor, blocks, [[e.rng.randint(0, min(1, extent)), 0] for extent in x.shape[1:1 + count]]), x.exact)


def roll(e, x):
    axes = e.axes(x)
    return Value(e.tf.roll(x.tensor, [e.rng.randint(-5, 5) for _ in axes], axes), x.exact)


def reverse_sequence(e, x):
    need(x.rank >= 2)
    sequence, batch = e.rng.sample(range(x.rank), 2)
    return Value(e.tf.reverse_sequence(x.tensor, e.indices(x.shape[sequence] + 1, [x.shape[batch]]), sequence, batch), x.exact)


def image_patches(e, x):
    need(x.rank == 4 and not x.is_bool)
    window, rate = [e.rng.choice((1, 2, 3)) for _ in range(2)], e.rng.choice((1, 1, 2))
    grown = [(size - 1) * rate + 1 for size in window]
    return Value(e.tf.image.extract_patches(x.tensor, [1, *window, 1], [1, e.rng.choice((1, 2)), 1, 1], [1, rate, rate, 1], padding(e, x, grown)), x.exact)


def volume_patches(e, x):
    x = volume(e, x)
    window = [e.rng.choice((1, 2, 3)) for _ in range(3)]
    fits = all(extent >= size for extent, size in zip(x.shape[1:4], window))
    patches = e.tf.raw_ops.ExtractVolumePatches(input=e.tf.stop_gradient(x.tensor), ksizes=[1, *window, 1],
                                                strides=[1, e.rng.choice((1, 2)), 1, 1, 1], padding=e.rng.choice(("SAME", "VALID") if fits else ("SAME",)))
    return Value(patches, x.exact)


def band_part(e, x):
    need(x.rank >= 2)
    return Value(e.tf.linalg.band_part(x.tensor, e.rng.randint(-1, 3), e.rng.randint(-1, 3)), x.exact)


def diagonal(e, x):
    kind = e.rng.randrange(3)
    align = e.rng.choice(("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"))
    if kind == 0:
        need(1 <= x.rank <= 3 and x.shape[-1] <= 9 and 0 not in x.shape)
        return Value(e.tf.linalg.diag(x.tensor, k=e.rng.randint(-2, 2)), x.exact)
    need(x.rank >= 2 and 0 not in x.shape)
    low, high = sorted(e.rng.randint(1 - x.shape[-2], x.shape[-1] - 1) for _ in range(2))
    if e.rng.random() < 0.5:
        low = high
    k = high if low == high else (low, high)
    taken = e.tf.linalg.diag_part(x.tensor, k=k, align=align)
    if kind == 1:
        return Value(taken, x.exact)
    return Value(e.tf.linalg.set_diag(x.tensor, e.leaf(taken.shape.as_list(), x.dtype).tensor, k=k, align=align), x.exact)


def tensor_diagonal(e, x):
    need(1 <= x.rank <= 2 and np.prod(x.shape) <= 20)
    return Value(e.tf.linalg.tensor_diag_part(e.tf.linalg.tensor_diag(x.tensor)) if e.rng.random() < 0.3 else e.tf.linalg.tensor_diag(x.tensor), x.exact)


def bincount(e, x):
    need(1 <= x.rank <= 2)
    return Value(e.tf.math.bincount(e.indices(5, x.shape, "int32"), minlength=4, maxlength=4, axis=e.rng.choice((0, -1)),
                                    weights=None if not (x.dtype in ("float32", "int32")) or e.rng.random() < 0.3 else x.tensor,
                                    dtype=e.tf.int32), not x.is_float)


def bucketize(e, x):
    need(x.exact and x.dtype in ("float32", "float64", "int32", "int64"))
    return Value(e.tf.raw_ops.Bucketize(input=without_nan(e, x.tensor) if x.is_float else x.tensor, boundaries=[-1.0, 0.0, 0.5, 2.0]), True)


def search_sorted(e, x):
    need(x.exact and x.dtype in ("float32", "float64", "int32", "int64") and x.rank >= 1 and 0 not in x.shape)
    values = without_nan(e, x.tensor) if x.is_float else x.tensor
    found = e.tf.searchsorted(e.tf.sort(values), values, side=e.rng.choice(("left", "right")), out_type=e.rng.choice((e.tf.int32, e.tf.int64)))
    return Value(found, True)


def histogram(e, x):
    need(x.exact and x.dtype in ("float32", "float64", "int32") and 0 not in x.shape)
    values = without_nan(e, x.tensor) if x.is_float else x.tensor
    ends = e.tf.constant(e.rng.choice(([-1, 2], [0, 3])), x.dtype)
    return Value(e.tf.histogram_fixed_width(values, ends, nbins=e.rng.choice((1, 3, 7))), True)


def invert_permutation(e, x):
    need(x.exact and x.dtype in ("float32", "int32") and x.rank == 1 and x.shape[0] > 0)
    order = e.tf.argsort(without_nan(e, x.tensor) if x.is_float else x.tensor, stable=True)
    return Value(e.tf.math.invert_permutation(order), True)


def nth_element(e, x):
    need(x.exact and x.rank >= 1 and 0 not in x.shape and not x.is_bool and x.dtype not in NARROW)
    value = without_nan(e, x.tensor) if x.is_float else x.tensor
    return Value(e.tf.raw_ops.NthElement(input=value, n=e.rng.randrange(x.shape[-1]), reverse=e.rng.random() < 0.5), True)


def unravel_index(e, x):
    need(x.rank >= 1 and 0 not in x.shape)
    places = e.indices(int(np.prod(x.shape, dtype=np.int64)), e.draw_shape(0, 1))
    return Value(e.tf.unravel_index(places, e.constant(x.shape, places.dtype)), True)


def parallel_stack(e, x):
    need(not x.is_bool)
    return Value(e.tf.parallel_stack([e.tf.stop_gradient(x.tensor), e.leaf(x.shape, x.dtype).tensor]), x.exact)


def in_top_k(e, x):
    need(x.exact and x.dtype == "float32" and x.rank == 2 and x.shape[1] > 0)
    return Value(e.tf.math.in_top_k(e.indices(x.shape[1], x.shape[:1]), x.tensor, e.rng.randint(1, 4)), True)


def resize(e, x):
    need(x.dtype in ("float32", "float16") and x.rank == 4 and 0 not in x.shape)
    kind = e.rng.choice(("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor", "ResizeArea"))
    align, half = e.rng.choice(((False, False), (True, False), (False, True)))
    x = e.tf.clip_by_value(without_nan(e, x.tensor), e.tf.cast(-10, x.dtype), e.tf.cast(10, x.dtype))
    size = [e.rng.choice((1, 2, 3, 5, 8)), e.rng.choice((1, 2, 4, 7))]
    if kind == "ResizeArea":
        return Value(e.tf.raw_ops.ResizeArea(images=x, size=size, align_corners=align), False)
    return Value(getattr(e.tf.raw_ops, kind)(images=x, size=size, align_corners=align, half_pixel_centers=half), False)


def crop_and_resize(e, x):
    """Boxes that are constants, some of them in part outside; places that are not whole pixels, where both methods are continuous or constant."""
    need(x.dtype in ("float32", "float64") and x.rank == 4 and 0 not in x.shape)
    e.narrow = e.narrow or "float32"  # that the result has, whatever the images are of
    numbers = np.random.RandomState(e.rng.randrange(2**31))
    count = e.rng.choice((1, 2, 5))
    boxes = numbers.uniform(-0.3, 1.3, (count, 4)).astype(np.float32)
    image = numbers.randint(0, x.shape[0], count).astype(np.int32)
    x = e.tf.clip_by_value(without_nan(e, x.tensor), e.tf.cast(-10, x.dtype), e.tf.cast(10, x.dtype))
    return Value(e.tf.image.crop_and_resize(x, boxes, image, [e.rng.choice((1, 2, 3, 7)), e.rng.choice((1, 2, 4))], e.rng.choice(("bilinear", "nearest")),
                                            e.rng.choice((0, 0.5))), False)


def scale_and_translate(e, x):
    """Images resized with filters, as UpSampling2D's and resizing with antialias do, and moved."""
    need(x.dtype == "float32" and x.rank == 4 and 0 not in x.shape)
    x = e.tf.clip_by_value(without_nan(e, x.tensor), -10.0, 10.0)
    scale, move = [e.rng.uniform(0.3, 2.5) for _ in range(2)], [e.rng.choice((0, e.rng.uniform(-1.5, 1.5))) for _ in range(2)]
    kernel = e.rng.choice(("lanczos1", "lanczos3", "lanczos5", "gaussian", "triangle", "keyscubic", "mitchellcubic"))
    return Value(e.tf.raw_ops.ScaleAndTranslate(images=x, size=[e.rng.choice((1, 2, 3, 5, 8)), e.rng.choice((1, 2, 4, 7))], scale=scale, translation=move,
                                                kernel_type=kernel, antialias=e.rng.choice((True, False))), False)


def project_images(e, x):
    """Each image as its own projection shows it, or all as one does. TensorFlow's gradient is the inverse projection, whose rounding moves pixels."""
    need(x.dtype in ("float32", "float64", "int32") and x.rank == 4 and 0 not in x.shape)
    if x.is_float:
        e.narrow = e.narrow or "float32"  # in which places and weights are computed
    numbers = np.random.RandomState(e.rng.randrange(2**31))
    identity = np.array([1, 0, 0, 0, 1, 0, 0, 0], np.float32)
    reach = np.array([0.7, 0.7, 3, 0.7, 0.7, 3, e.rng.choice((0, 0.05)), e.rng.choice((0, 0.05))], np.float32)
    transforms = (identity + reach * numbers.uniform(-1, 1, (e.rng.choice((1, x.shape[0])), 8))).astype(np.float32)
    images = e.tf.clip_by_value(without_nan(e, x.tensor), e.tf.cast(-10, x.dtype), e.tf.cast(10, x.dtype)) if x.is_float else x.tensor
    size = [e.rng.choice((1, 2, 3, 7)), e.rng.choice((1, 2, 4))]
    return Value(e.tf.raw_ops.ImageProjectiveTransformV3(
        images=e.tf.stop_gradient(images), transforms=transforms, output_shape=size, fill_value=float(e.rng.choice((0, 1))),
        interpolation=e.rng.choice(("NEAREST", "BILINEAR")), fill_mode=e.rng.choice(("CONSTANT", "NEAREST", "REFLECT", "WRAP"))), False)


def volume(e, x):
    library_floats(e, x)
    need(x.rank >= 3 and 0 not in x.shape and x.dtype == "float32")
    shape = ([1, 1] + x.shape)[-5:]
    return Value(e.tf.reshape(x.tensor, shape), x.exact)


def volume_padding(e, x, window):
    fits = all(extent >= size for extent, size in zip(x.shape[1:4], window))
    return e.rng.choice(("SAME", "VALID") if fits else ("SAME",))


def convolution_3d(e, x):
    x = volume(e, x)
    window = [e.rng.choice((1, 2, 3)) for _ in range(3)]
    strides = [1] + [e.rng.choice((1, 1, 2)) for _ in range(3)] + [1]
    filters = e.leaf(window + [x.shape[4], 2], x.dtype, "normal")
    return Value(e.tf.nn.conv3d(x.tensor, filters.tensor, strides, volume_padding(e, x, window)), False)


def pool_3d(name):
    def family(e, x):
        need(name == "nn.avg_pool3d" or x.exact)
        x = volume(e, x)
        window = [e.rng.choice((1, 2, 3)) for _ in range(3)]
        if name == "nn.max_pool3d":
            # The gradient takes what is less than 1e-5 from the largest for as large: here one unit is, two are not.
            x = Value(x.tensor * e.rng.choice((1, 2.0 ** -17)), x.exact)
        # Without oneDNN TensorFlow's average, too, passes NaN over where it takes whole vectors.
        return Value(find(e.tf, name)(without_nan(e, x.tensor), window, e.rng.choice((1, 2)), volume_padding(e, x, window)), x.exact and name == "nn.max_pool3d")
    return name, family


def pool_argmax(e, x):
    image(e, x)
    need(x.exact and x.dtype == "float32")
    window = [e.rng.choice((1, 2, 3)), e.rng.choice((1, 2, 3))]
    outputs = e.tf.nn.max_pool_with_argmax(without_nan(e, x.tensor), window, e.rng.choice((1, 2)), padding(e, x, window),
                                           include_batch_in_index=e.rng.random() < 0.5)
    return Value(outputs[e.rng.choice((0, 0, 1))], True)


def dilation(e, x):
    channels = image(e, x)[3]
    need(x.exact and x.dtype == "float32")
    window, rate = [e.rng.choice((1, 2, 3)), e.rng.choice((1, 2))], e.rng.choice((1, 2))
    grown = [(size - 1) * rate + 1 for size in window]
    filters = e.leaf(window + [channels], x.dtype, "normal")
    stride = e.rng.choice((1, 2))
    value = e.tf.clip_by_value(without_nan(e, x.tensor), -100.0, 100.0)
    return Value(e.tf.nn.dilation2d(value, filters.tensor, [1, stride, stride, 1], padding(e, x, grown), "NHWC", [1, rate, rate, 1]), False)


def lstm_weights(e, inputs, units):
    """w, wci, wcf, wco, b, and whether the states are seen by the gates."""
    return {"w": e.leaf([inputs + units, 4 * units], "float32", "unit").tensor, "b": e.leaf([4 * units], "float32", "unit").tensor,
            **{name: e.leaf([units], "float32", "unit").tensor for name in ("wci", "wcf", "wco")}, "use_peephole": e.rng.random() < 0.5}


def recurrent_layer(e, x):
    """An LSTM of [step, example, input], of which there may be fewer steps than rows."""
    need(x.dtype == "float32" and x.rank == 3 and 0 not in x.shape and x.shape[0] <= 9 and np.prod(x.shape) <= 600)
    steps, batch, inputs = x.shape
    units = e.rng.choice((1, 3))
    count = e.rng.choice((e.constant(steps, "int64"), e.constant(e.rng.randint(1, steps), "int64"), e.indices(steps + 1, [], "int64")))
    states = {name: e.leaf([batch, units], "float32", "unit").tensor for name in ("cs_prev", "h_prev")}
    settings = {**states, **lstm_weights(e, inputs, units), "cell_clip": e.rng.choice((0.0, 0.5, 3.0))}
    images = e.tf.clip_by_value(without_nan(e, x.tensor), -3.0, 3.0)
    if e.rng.random() < 0.5:
        results = e.tf.raw_ops.BlockLSTMV2(seq_len_max=count, x=images, **settings)
    else:
        results = e.tf.raw_ops.BlockLSTM(seq_len_max=count, x=images, forget_bias=e.rng.choice((0.0, 1.0)), **settings)
    # Of the others TensorFlow leaves what is behind the last step as it finds it.
    return Value(results[e.rng.choice((1, 6, 6, 6))], False)


def recurrent_cell(e, x):
    """A step of an LSTM or a GRU, or its gradient, of whose results one."""
    need(x.dtype == "float32" and x.rank == 2 and 0 not in x.shape and np.prod(x.shape) <= 600)
    (batch, inputs), units = x.shape, e.rng.choice((1, 3))
    seen = e.tf.clip_by_value(without_nan(e, x.tensor), -3.0, 3.0)

    def part(kind="unit"):
        return e.leaf([batch, units], "float32", kind).tensor
    if e.rng.random() < 0.5:
        settings = {"x": seen, "cs_prev": part(), "h_prev": part(), **lstm_weights(e, inputs, units)}
        if e.rng.random() < 0.5:
            return Value(e.rng.choice(e.tf.raw_ops.LSTMBlockCell(cell_clip=e.rng.choice((0.0, 0.5)), **settings)), False)
        parts = {name: part() for name in ("i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad")}
        return Value(e.rng.choice(e.tf.raw_ops.LSTMBlockCellGrad(**settings, **parts)), False)
    settings = {"x": seen, "h_prev": part(), "w_ru": e.leaf([inputs + units, 2 * units], "float32", "unit").tensor,
                "w_c": e.leaf([inputs + units, units], "float32", "unit").tensor, "b_ru": e.leaf([2 * units], "float32", "unit").tensor,
                "b_c": e.leaf([units], "float32", "unit").tensor}
    if e.rng.random() < 0.5:
        return Value(e.rng.choice(e.tf.raw_ops.GRUBlockCell(**settings)), False)
    return Value(e.rng.choice(e.tf.raw_ops.GRUBlockCellGrad(**settings, **{name: part() for name in ("r", "u", "c", "d_h")})), False)


# ---- Sorting and linear algebra -----------------------------------------------------------------------

def top_k(e, x):
    need(x.rank >= 1 and not x.is_bool and x.shape[-1] > 0 and x.exact)
    value = without_nan(e, x.tensor) if x.is_float else x.tensor
    return Value(e.tf.nn.top_k(value, e.rng.randint(1, x.shape[-1]))[e.rng.choice((0, 0, 1))], True)


def sort(name):
    def family(e, x):
        need(x.rank >= 1 and not x.is_bool and 0 not in x.shape and x.exact)
        value = without_nan(e, x.tensor) if x.is_float else x.tensor
        return Value(find(e.tf, name)(value, direction=e.rng.choice(("ASCENDING", "DESCENDING")), axis=e.axis(x)), True)
    return name, family


def matrices(e, x):
    """Well conditioned ones, of any batch."""
    need(x.dtype in ("float32", "float64"))
    size, batch = e.rng.choice((1, 2, 3, 5)), e.draw_shape(0, 2)
    need(0 not in batch)
    return e.leaf(batch + [size, size], x.dtype, "unit").tensor, size, batch


def definite(e, a, size):
    return e.tf.matmul(a, a, transpose_b=True) + e.tf.cast(e.tf.eye(size), a.dtype) * 2


def linear_algebra(name):
    def family(e, x):
        a, size, batch = matrices(e, x)
        a = definite(e, a, size)
        if name == "linalg.solve":
            return Value(e.tf.linalg.solve(a, e.leaf(batch + [size, 2], x.dtype, "normal").tensor, adjoint=e.rng.random() < 0.5), False)
        if name == "linalg.triangular_solve":
            return Value(e.tf.linalg.triangular_solve(a, e.leaf(batch + [size, 2], x.dtype, "normal").tensor, lower=e.rng.random() < 0.5,
                                                      adjoint=e.rng.random() < 0.5), False)
        if name == "linalg.slogdet":
            return Value(e.tf.linalg.slogdet(a)[e.rng.choice((0, 1, 1))], False)
        if name == "linalg.qr":
            return Value(e.tf.linalg.qr(a)[e.rng.choice((0, 1))], False)
        if name == "linalg.sqrtm":
            return Value(e.tf.linalg.sqrtm(a), False)
        if name == "linalg.lu":
            return Value(e.tf.linalg.lu(a)[0], False)
        if name == "linalg.lstsq":
            return Value(e.tf.linalg.lstsq(a, e.leaf(batch + [size, 2], x.dtype, "normal").tensor, l2_regularizer=e.rng.choice((0.0, 0.5))), False)
        return Value(find(e.tf, name)(a), False)
    return name, family


def linalg_diagonals(e, x):
    """Matrices of three diagonals, or of some below (or above) their own."""
    a, size, batch = matrices(e, x)
    sides = e.leaf(batch + [size, e.rng.choice((1, 3))], x.dtype, "normal").tensor
    diagonals = e.leaf(batch + [3, size], x.dtype, "unit").tensor
    strong = diagonals + e.tf.constant([[0.0], [3.0], [0.0]], x.dtype)
    kind = e.rng.randrange(3)
    if kind == 0:
        return Value(e.tf.linalg.tridiagonal_matmul(diagonals, sides, diagonals_format="compact"), False)
    if kind == 1:
        return Value(e.tf.linalg.tridiagonal_solve(strong, sides, diagonals_format="compact", partial_pivoting=e.rng.random() < 0.5), False)
    lower, count = e.rng.random() < 0.5, e.rng.randint(1, min(size, 3))
    bands = e.tf.concat([strong[..., 1:2, :], diagonals[..., 1:count, :]], -2)
    bands = bands if lower else e.tf.reverse(bands, [-2])
    return Value(e.tf.linalg.banded_triangular_solve(bands, sides, lower=lower, adjoint=e.rng.random() < 0.5), False)


def spectrum(name):
    """What does not depend on the signs of vectors, of matrices whose values are apart."""
    def family(e, x):
        a, size, batch = matrices(e, x)
        apart = e.tf.cast(e.tf.linalg.diag(e.tf.range(1.0, 3.0 * size, 3.0)), a.dtype)
        if name == "linalg.eigh":
            a = a * 0.3 + apart
            if e.rng.random() < 0.3:
                return Value(e.tf.linalg.eigvalsh(a), False)
            values, vectors = e.tf.linalg.eigh(a)
            return Value(e.tf.matmul(vectors * e.tf.sin(values)[..., None, :], vectors, transpose_b=True), False)
        a = e.tf.concat([a * 0.2 + apart, e.leaf(batch + [e.rng.choice((0, 1, 2)), size], x.dtype, "unit").tensor * 0.2], -2)
        a = e.tf.linalg.matrix_transpose(a) if e.rng.random() < 0.4 else a
        if name == "linalg.pinv":
            return Value(e.tf.linalg.pinv(a), False)
        if e.rng.random() < 0.4:
            return Value(e.tf.linalg.svd(a, compute_uv=False), False)
        s, u, v = e.tf.linalg.svd(a)
        return Value(e.tf.matmul(u * e.tf.sin(s)[..., None, :], v, transpose_b=True), False)
    return name, family


def non_max_suppression(e, x):
    """Places of boxes that are selected, padded or looked up: an element each of x' first axis."""
    need(x.rank >= 1 and x.shape[0] > 0 and x.dtype in ("float32", "float64"))
    count = x.shape[0]
    need(count <= 40)
    boxes = e.leaf([count, 4], "float32", "unit").tensor
    scores = e.leaf([count], "float32", e.rng.choice(("positive", "ties", "normal"))).tensor
    most, overlap, least = e.rng.choice((1, 3, 10)), e.rng.choice((0.0, 0.1, 0.5)), e.rng.choice((-10.0, 0.3))
    if e.rng.random() < 0.5:
        sigma = e.rng.choice((0.0, 0.5))
        chosen, kept, number = e.tf.raw_ops.NonMaxSuppressionV5(boxes=boxes, scores=scores, max_output_size=most, iou_threshold=overlap, score_threshold=least,
                                                                soft_nms_sigma=sigma, pad_to_max_output_size=True)
        return e.rng.choice((Value(chosen, True), Value(kept, False), Value(number, True)))
    version = e.rng.choice(("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionWithOverlaps"))
    settings = {"boxes": boxes, "scores": scores, "max_output_size": most, "iou_threshold": overlap}
    if version in ("NonMaxSuppressionV3", "NonMaxSuppressionV4"):
        settings["score_threshold"] = least
    if version == "NonMaxSuppressionWithOverlaps":
        settings = {"overlaps": e.leaf([count, count], "float32", "unit").tensor, "scores": scores, "max_output_size": most, "overlap_threshold": overlap,
                    "score_threshold": least}
    chosen = getattr(e.tf.raw_ops, version)(**settings)
    chosen = chosen[0] if version == "NonMaxSuppressionV4" else chosen
    # As many as the data say.
    return Value(e.tf.math.unsorted_segment_sum(e.tf.gather(x.tensor, chosen), chosen, count), x.exact)


def combined_non_max_suppression(e, x):
    """Boxes of a few examples, all of other scores, which are probabilities: of negative ones some versions of TensorFlow select none."""
    examples, count, classes = e.rng.choice((1, 2, 3)), e.rng.choice((1, 4, 9)), e.rng.choice((1, 2, 4))
    boxes = e.leaf([examples, count, e.rng.choice((1, classes)), 4], "float32", "unit").tensor
    scores = e.leaf([examples, count, classes], "float32", "positive").tensor
    outputs = e.tf.raw_ops.CombinedNonMaxSuppression(boxes=boxes, scores=scores, max_output_size_per_class=e.rng.choice((1, 3, 20)),
                                                     max_total_size=e.rng.choice((1, 5, 12)), iou_threshold=e.rng.choice((0.0, 0.1, 0.5)),
                                                     score_threshold=e.rng.choice((-10.0, 0.3)), pad_per_class=e.rng.random() < 0.5,
                                                     clip_boxes=e.rng.random() < 0.5)
    return Value(e.rng.choice(outputs), True)


# ---- Sequences and ragged rows ----------------------------------------------------------------------

def best_path(e, x):
    """Labels of the best path, as a dense tensor's or by their distance from others, or what the path scores."""
    need(x.exact and x.rank == 3 and 0 not in x.shape and x.dtype in ("float32", "float64"))
    steps, examples, classes = x.shape
    need(classes >= 2 and steps * examples <= 200)
    lengths = e.variable(np.asarray([e.rng.randint(0, steps) for _ in range(examples)], np.int32)).tensor
    (decoded,), scores = e.tf.nn.ctc_greedy_decoder(without_nan(e, x.tensor), lengths, merge_repeated=e.rng.random() < 0.5,
                                                    blank_index=e.rng.choice((None, 0, classes - 1)))
    kind = e.rng.choice(("scores", "labels", "distance", "distance"))
    if kind == "scores":
        return Value(scores, False)
    if kind == "labels":
        return Value(e.tf.scatter_nd(decoded.indices, decoded.values, e.constant([examples, steps], "int64")), True)
    places = np.argwhere(np.random.RandomState(e.rng.randrange(2**31)).rand(examples, steps) < 0.7)
    if len(places) == 0:
        places = np.asarray([[0, 0]])
    truth = e.tf.SparseTensor(e.variable(places.astype(np.int64)).tensor, e.indices(classes, [len(places)], "int64"), [examples, steps])
    return Value(e.tf.edit_distance(decoded, truth, normalize=e.rng.random() < 0.5), True)


def isotonic(e, x):
    need(x.exact and x.rank >= 1 and 0 not in x.shape and not x.is_bool and x.dtype not in NARROW)
    value = without_nan(e, x.tensor) if x.is_float else x.tensor
    if x.is_float:
        value = e.tf.clip_by_value(value, e.tf.cast(-10, x.dtype), e.tf.cast(10, x.dtype))
    return Value(e.tf.nn.isotonic_regression(value, decreasing=e.rng.random() < 0.5, axis=-1)[0], False)


def ragged_rows(e, x):
    """Rows of several lengths, of one ragged axis or two, whose splits are constants or not."""
    need(x.rank >= 1 and 0 not in x.shape and not x.is_bool and x.shape[0] <= 40)
    count = x.shape[0]
    cuts = sorted(e.rng.randint(0, count) for _ in range(e.rng.choice((1, 2, 4))))
    splits = np.asarray([0, *cuts, count], np.int64)
    known, rows = e.rng.random() < 0.5, len(splits) - 1
    if e.rng.random() < 0.3:
        ragged = e.tf.RaggedTensor.from_value_rowids(x.tensor, np.repeat(np.arange(rows), np.diff(splits)), rows, validate=False)
    else:
        ragged = e.tf.RaggedTensor.from_row_splits(x.tensor, e.constant(splits) if known else e.variable(splits).tensor, validate=False)
        if e.rng.random() < 0.3:
            ragged = e.tf.RaggedTensor.from_row_splits(ragged, e.constant(np.asarray([0, e.rng.randint(0, rows), rows], np.int64)), validate=False)
            rows = 2
    kind = e.rng.choice(("dense", "dense", "sparse", "gather"))
    if kind == "dense":
        asked = [e.rng.choice((None, 1, 5)), *(e.rng.choice((None, 2, 6) if known else (1, 4)) for _ in range(ragged.ragged_rank))]
        return Value(ragged.to_tensor(e.tf.cast(-1, x.dtype), shape=asked + [None] * (x.rank - 1)), x.exact)
    need(known)
    if kind == "sparse":
        return Value(ragged.to_sparse().values, x.exact)
    return Value(e.tf.gather(ragged, e.constant([e.rng.randrange(rows) for _ in range(3)], "int32")).flat_values, x.exact)


def fractional_pool(e, x):
    images = image(e, x)
    need(x.exact and x.dtype in ("float32", "float64") and 0 not in images and min(images[1:3]) >= 2)
    ratio = [1.0, e.rng.choice((1.0, 1.3, 1.73)), e.rng.choice((1.25, 1.5, 2.0)), 1.0]
    operation = getattr(e.tf.raw_ops, e.rng.choice(("FractionalMaxPool", "FractionalAvgPool")))
    value = e.tf.clip_by_value(without_nan(e, x.tensor), e.tf.cast(-100, x.dtype), e.tf.cast(100, x.dtype))
    outputs = operation(value=value, pooling_ratio=ratio, pseudo_random=e.rng.random() < 0.5, overlapping=e.rng.random() < 0.5,
                        deterministic=True, seed=e.rng.randint(1, 1000), seed2=e.rng.randint(1, 1000))
    pooled = outputs[0] if all(np.asarray(images[1:3]) // np.asarray(ratio[1:3]) >= 1) else None
    need(pooled is not None)
    # TensorFlow does not say how long the sequences are.
    pooled.set_shape([images[0], *(int(np.float32(size) / np.float32(part)) for size, part in zip(images[1:3], ratio[1:3])), images[3]])
    return Value(pooled, False)


def changed_rows(e, x):
    """Rows in place, a slice of a tensor."""
    need(x.rank >= 1 and 0 not in x.shape and not x.is_bool)
    if e.rng.random() < 0.5:
        need(x.dtype not in NARROW)
        operation = getattr(e.tf.raw_ops, e.rng.choice(("InplaceUpdate", "InplaceAdd", "InplaceSub")))
        rows = e.rng.sample(range(x.shape[0]), e.rng.randint(1, x.shape[0]))
        at = e.variable(np.asarray(rows, np.int32) - e.rng.choice((0, 0, x.shape[0]))).tensor
        # It may change what it is given.
        return Value(operation(x=e.tf.stop_gradient(x.tensor) + e.tf.cast(0, x.dtype), i=at, v=e.leaf([len(rows), *x.shape[1:]], x.dtype).tensor), x.exact)
    begin = [e.rng.randrange(extent) for extent in x.shape]
    end = [e.rng.randint(start + 1, extent) for start, extent in zip(begin, x.shape)]
    strides, mask = [1, *(e.rng.choice((1, 2)) for _ in x.shape[1:])], e.rng.choice((0, 1, 1))
    part = e.tf.strided_slice(x.tensor, begin, end, strides, begin_mask=mask, end_mask=mask)
    return Value(e.tf.raw_ops.TensorStridedSliceUpdate(input=x.tensor, begin=begin, end=end, strides=strides, begin_mask=mask, end_mask=mask,
                                                       value=e.leaf(part.shape.as_list(), x.dtype).tensor), x.exact)


def data_format(e, x):
    formats = {"src_format": e.rng.choice(("NHWC", "NCHW")), "dst_format": e.rng.choice(("NHWC", "NCHW", "HWNC"))}
    if e.rng.random() < 0.5:
        axes = e.variable(np.asarray([e.rng.randrange(-4, 4) for _ in range(3)], np.int32)).tensor
        return Value(e.tf.raw_ops.DataFormatDimMap(x=axes, **formats), True)
    return Value(e.tf.raw_ops.DataFormatVecPermute(x=e.indices(9, e.rng.choice(([4], [4, 2], [2]))), **formats), True)


def drawn_order(e, x):
    """Rows in an order that a seed gives."""
    need(x.rank >= 1)
    seed = e.variable(np.asarray([e.rng.randrange(1000), e.rng.randrange(1000)], e.rng.choice(("int32", "int64")))).tensor
    if e.rng.random() < 0.5:
        return Value(e.tf.random.experimental.stateless_shuffle(x.tensor, seed), x.exact)
    key, counter, algorithm = e.tf.raw_ops.StatelessRandomGetKeyCounterAlg(seed=seed)
    return Value(e.tf.raw_ops.StatelessRandomUniformV2(shape=x.shape, key=key, counter=counter, alg=algorithm), True)


# ---- Rows by index ---------------------------------------------------------------------------------

def gather(e, x):
    axis = e.axis(x)
    indices = e.indices(x.shape[axis], e.draw_shape(0, 2))
    return Value(e.tf.gather(x.tensor, indices, axis=axis), x.exact)


def gather_batch(e, x):
    need(x.rank >= 2)
    indices = e.indices(x.shape[1], x.shape[:1] + [e.rng.choice((1, 3))])
    return Value(e.tf.gather(x.tensor, indices, batch_dims=1), x.exact)


def gather_nd(e, x):
    need(x.rank >= 1 and 0 not in x.shape)
    depth = e.rng.randint(1, x.rank)
    number = e.rng.choice((0, 1, 3, 5))
    rows = e.tf.stack([e.tf.cast(e.indices(extent, [number]), "int32") for extent in x.shape[:depth]], axis=-1)
    return Value(e.tf.gather_nd(x.tensor, rows), x.exact)


def scatter(name):
    def family(e, x):
        need(x.rank >= 1 and x.shape[0] > 0 and not x.is_bool)
        number = e.rng.choice((0, 1, 2, 4))
        if name.endswith("update"):
            number = min(number, 1)  # which of several wins is not said
        rows = e.leaf([number] + x.shape[1:], x.dtype)
        indices = e.indices(x.shape[0], [number, 1])
        if name == "scatter_nd":
            return Value(e.tf.scatter_nd(indices, rows.tensor, e.constant(x.shape, indices.dtype)) + x.tensor, not x.is_float)
        return Value(find(e.tf, name)(x.tensor, indices, rows.tensor), x.exact and not x.is_float)
    return name, family


def segments(name):
    def family(e, x):
        need(x.rank >= 1 and not x.is_bool)
        number = e.rng.choice((1, 3, 6))
        if x.is_float and name.endswith(("max", "min")):
            x = Value(without_nan(e, x.tensor), x.exact)  # TensorFlow's vectors and the elements behind them differ
        return Value(find(e.tf, name)(x.tensor, e.indices(number, x.shape[:1]), number), x.exact and not x.is_float)
    return name, family


def segment_means(e, x):
    need(x.rank >= 1 and x.is_float)
    return Value(find(e.tf, e.rng.choice(("math.unsorted_segment_mean", "math.unsorted_segment_sqrt_n")))(x.tensor, e.indices(4, x.shape[:1]), 4), False)


def sparse_segments(e, x):
    need(x.rank >= 1 and x.is_float and x.shape[0] > 0)
    count = e.rng.choice((1, 3, 6))
    name = e.rng.choice(("sparse_segment_sum", "sparse_segment_mean", "sparse_segment_sqrt_n"))
    ids = e.tf.constant(sorted(e.rng.randint(0, 3) for _ in range(count)), e.tf.int32)
    return Value(find(e.tf, "sparse." + name.replace("sparse_", ""))(x.tensor, e.indices(x.shape[0], [count]), ids, num_segments=4), False)


def sorted_segments(name):
    def family(e, x):
        need(x.rank >= 1 and not x.is_bool and x.shape[0] > 0)
        value = without_nan(e, x.tensor) if x.is_float else x.tensor
        ids = e.tf.constant(sorted(e.rng.randint(0, 3) for _ in range(x.shape[0])), e.tf.int32)
        return Value(find(e.tf, name)(value, ids), x.exact and not x.is_float)
    return name, family


def sparse_to_dense(e, x):
    need(x.rank == 1 and x.shape[0] > 0 and not x.is_bool)
    order = np.sort(np.random.RandomState(e.rng.randrange(2**31)).permutation(x.shape[0] + 3)[:x.shape[0]]).astype(np.int64)
    return Value(e.tf1.sparse_to_dense(e.variable(order).tensor, [x.shape[0] + 3], x.tensor, e.tf.cast(-1, x.dtype)), x.exact)


def sparse_product(e, x):
    need(x.rank == 2 and x.dtype in ("float32", "float64") and 0 not in x.shape)
    count = e.rng.choice((1, 4))
    indices = e.tf.stack([e.tf.cast(e.indices(5, [count]), e.tf.int64), e.tf.cast(e.indices(x.shape[0], [count]), e.tf.int64)], axis=1)
    sparse = e.tf.SparseTensor(indices, e.leaf([count], x.dtype, "normal").tensor, [5, x.shape[0]])
    return Value(e.tf.sparse.sparse_dense_matmul(sparse, x.tensor), False)


def sparse_of(e, x, count, shape, known=False):
    """Of values that are x' first, at places in order, which the graph knows."""
    places = np.sort(np.random.RandomState(e.rng.randrange(2**31)).permutation(int(np.prod(shape)))[:count])
    indices = np.stack(np.unravel_index(places, shape), axis=-1).astype(np.int64).reshape(count, len(shape))
    indices = e.constant(indices) if known else e.variable(indices).tensor
    return e.tf.SparseTensor(indices, x.tensor[:count], shape)


def sparse_operation(e, x):
    """What gives a dense tensor, or the values of a sparse one."""
    need(x.rank == 1 and x.shape[0] > 0 and x.dtype in ("float32", "float64"))
    shape = [e.rng.choice((1, 2, 3)) for _ in range(e.rng.randint(1, 3))]
    shape[0] += 2
    count = e.rng.randint(1, min(x.shape[0], int(np.prod(shape))))
    clean = Value(e.tf.clip_by_value(without_nan(e, x.tensor), e.tf.cast(-10, x.dtype), e.tf.cast(10, x.dtype)), False)
    sparse = sparse_of(e, clean, count, shape)
    kind = e.rng.choice(("sum", "max", "add", "multiply", "divide", "with_dense", "softmax", "reorder", "concat", "transpose", "sum_of_two", "slice", "slice",
                         "split"))
    axes = e.rng.choice((None, [e.rng.randrange(-len(shape), len(shape))], list(range(len(shape)))))
    dense_shape = [extent if e.rng.random() < 0.6 else 1 for extent in shape]
    dense = e.leaf(dense_shape[e.rng.randint(0, len(shape)):] if e.rng.random() < 0.4 else dense_shape, x.dtype, "positive").tensor
    if kind in ("sum", "max"):
        reduced = find(e.tf, f"sparse.reduce_{kind}")(sparse, axes, keepdims=e.rng.random() < 0.5)
        return Value(reduced, False)
    if kind == "softmax":
        need(len(shape) >= 2)
        return Value(e.tf.sparse.softmax(sparse).values, False)
    if kind == "with_dense":
        return Value(e.tf.sparse.add(sparse, e.leaf(shape, x.dtype, "normal").tensor), False)
    if kind in ("add", "multiply", "divide"):
        operation = {"add": "SparseDenseCwiseAdd", "multiply": "SparseDenseCwiseMul", "divide": "SparseDenseCwiseDiv"}[kind]
        return Value(getattr(e.tf.raw_ops, operation)(sp_indices=sparse.indices, sp_values=sparse.values, sp_shape=sparse.dense_shape, dense=dense), False)
    if kind == "sum_of_two":
        both = e.tf.sparse.add(*(sparse_of(e, clean, number, shape, known=True) for number in (count, e.rng.randint(1, count))))
        return Value(both.indices, True) if e.rng.random() < 0.3 else Value(both.values, False)
    if kind == "transpose":
        return Value(e.tf.sparse.to_dense(e.tf.sparse.transpose(sparse)), False)
    if kind in ("slice", "split"):
        # As many values as the data say, where the places are no constants.
        sparse = sparse_of(e, clean, count, shape, known=True) if e.rng.random() < 0.3 else sparse
        if kind == "split":
            return Value(e.tf.sparse.to_dense(e.rng.choice(e.tf.sparse.split(sparse, num_split=2, axis=0))), False)
        return Value(e.tf.sparse.to_dense(e.tf.sparse.slice(sparse, [e.rng.randrange(extent) for extent in shape], [e.rng.randint(1, 3) for _ in shape])), False)
    if kind == "reorder":
        order = e.rng.sample(range(count), count)
        mixed = e.tf.SparseTensor(e.tf.gather(sparse.indices, order), e.tf.gather(sparse.values, order), shape)
        ordered = e.tf.sparse.reorder(mixed)
        return Value(ordered.indices, True) if e.rng.random() < 0.3 else Value(ordered.values, False)
    other = sparse_of(e, clean, e.rng.randint(1, count), shape)
    joined = e.tf.sparse.concat(e.rng.randrange(len(shape)), [sparse, other, sparse])
    return Value(joined.indices, True) if e.rng.random() < 0.3 else Value(joined.values, False)


def sparse_segments_rows(e, x):
    """The gradient of rows that were taken, each once."""
    need(x.rank >= 1 and x.dtype in ("float32", "float64") and x.shape[0] > 0)
    count = e.rng.choice((1, 3, 6))
    ids = e.tf.constant(sorted(e.rng.randrange(x.shape[0]) for _ in range(count)), e.tf.int32)
    operation = getattr(e.tf.raw_ops, e.rng.choice(("SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2")))
    rows, which = operation(grad=x.tensor, indices=e.indices(7, [count]), segment_ids=ids, dense_output_dim0=7)
    return Value(e.tf.math.unsorted_segment_sum(rows, which, 7), False)


CATALOG = [
    *(unary(name) for name in (
        "math.exp", "math.expm1", "math.log", "math.log1p", "math.sqrt", "math.rsqrt", "math.reciprocal", "math.sin", "math.cos", "math.tanh",
        "math.asinh", "math.atan", "math.sinh", "math.cosh", "math.sigmoid")),
    *(steep(name) for name in ("math.asin", "math.acos", "math.acosh", "math.atanh")),
    *(unary(name) for name in ("nn.softplus", "nn.softsign")),
    *(exponential_unit(name) for name in ("nn.elu", "nn.selu")),
    *(unary(name, exact=True) for name in ("nn.relu", "nn.relu6", "nn.leaky_relu")),
    *(unary(name, exact=True, integers=True) for name in (
        "math.negative", "math.abs", "math.square", "identity", "stop_gradient", "zeros_like", "ones_like")),
    unary("bitwise.invert", exact=True, floats=False, integers=True),
    *(rounding(name) for name in ("math.floor", "math.ceil", "math.round", "math.rint", "math.sign")),
    *(bounded(name) for name in ("math.erf", "math.erfc")),
    *(special(name) for name in (
        "math.lgamma", "math.digamma", "math.bessel_i0", "math.bessel_i1e", "math.special.bessel_j0", "math.special.bessel_y1",
        "math.special.bessel_k0", "math.special.dawsn", "math.special.expint", "math.special.spence", "math.special.fresnel_cos")),
    *(binary(name, exact=True, integers=True) for name in ("math.add", "math.subtract", "math.maximum", "math.minimum") * 2),
    *(binary(name, integers=True) for name in ("math.multiply", "math.multiply", "math.squared_difference")),
    *(binary(name) for name in ("math.divide", "math.divide_no_nan", "math.multiply_no_nan", "math.xlogy", "math.xdivy", "math.xlog1py", "math.atan2",
                                "math.pow")),
    *(binary(name, floats=False, integers=True, nonzero=True) for name in ("math.floordiv", "math.floormod", "truncatediv", "truncatemod")),
    *(discontinuous(name) for name in ("math.floordiv", "math.floormod", "truncatediv", "truncatemod")),
    *(comparison(name) for name in ("math.less", "math.less_equal", "math.greater", "math.greater_equal", "math.equal", "math.not_equal")),
    *(predicate(name) for name in ("math.is_nan", "math.is_inf", "math.is_finite")),
    *(logical(name) for name in ("logical_and", "logical_or", "math.logical_xor")), ("logical_not", logical_not),
    *(bitwise(name) for name in ("bitwise.bitwise_and", "bitwise.bitwise_or", "bitwise.bitwise_xor")),
    *(shift(name) for name in ("bitwise.left_shift", "bitwise.right_shift")),
    ("select", select), ("select", select), ("select_rows", select_rows), ("cast", cast), ("cast", cast), ("clip", clip), ("add_n", add_n),
    ("approximate_equal", approximate_equal),
    *(reduction(name) for name in ("math.reduce_sum", "math.reduce_sum", "math.reduce_mean", "math.reduce_prod")),
    *(reduction(name, exact=True) for name in ("math.reduce_max", "math.reduce_min")),
    *(reduction(name, integers=False) for name in ("math.reduce_euclidean_norm", "math.reduce_logsumexp", "math.reduce_variance")),
    *(reduction_of_bools(name) for name in ("math.reduce_all", "math.reduce_any")),
    ("l2_loss", l2_loss),
    *(scan(name) for name in ("math.cumsum", "math.cumprod", "math.cumulative_logsumexp")),
    *(arg_reduction(name) for name in ("argmax", "argmin")),
    *((family.__name__, family) for family in (
        reshape, transpose, expand_dims, squeeze, tile, broadcast_to, concat, split, stack, unstack, slice_part, strided_slice, strided_slice, pad, reverse,
        one_hot, fill, value_range)),
    *((family.__name__, family) for family in (
        matmul, matmul, matmul, convolution, convolution, convolution, depthwise, depthwise, bias_add, cross_entropy, sparse_cross_entropy, batch_norm,
        batch_norm)),
    *((family.__name__, family) for family in (
        batch_norm_training, batch_norm_training, batch_norm_inference, einsum, einsum, einsum_forms, local_response, mirror_pad, space_depth, space_batch,
        roll, reverse_sequence, image_patches, volume_patches, band_part, diagonal, diagonal, tensor_diagonal, bincount, bucketize, search_sorted, histogram,
        nth_element, unravel_index, parallel_stack, pool_of_operands, pool_second_gradient, special_beta, special_gamma_gradient, linalg_diagonals,
        sparse_operation, sparse_operation, sparse_segments_rows, recurrent_layer, recurrent_cell, non_max_suppression,
        combined_non_max_suppression, best_path, isotonic, ragged_rows, ragged_rows, fractional_pool, changed_rows, data_format, drawn_order,
        invert_permutation, in_top_k, resize, resize, crop_and_resize, crop_and_resize,
        scale_and_translate, project_images, convolution_3d, pool_argmax, dilation, top_k, segment_means, sparse_segments, sparse_to_dense, sparse_product)),
    *(pool_3d(name) for name in ("nn.max_pool3d", "nn.avg_pool3d")),
    *(sort(name) for name in ("sort", "argsort")),
    *(linear_algebra(name) for name in ("linalg.inv", "linalg.cholesky", "linalg.det", "linalg.slogdet", "linalg.solve", "linalg.triangular_solve", "linalg.qr", "linalg.sqrtm", "linalg.lu",
                                           "linalg.lstsq")),
    *(spectrum(name) for name in ("linalg.eigh", "linalg.svd", "linalg.pinv")),
    *(sorted_segments("math." + name) for name in ("segment_sum", "segment_mean", "segment_prod", "segment_max", "segment_min")),
    *(pool(name) for name in ("nn.max_pool2d", "nn.avg_pool2d") * 2),
    *(softmax(name) for name in ("nn.softmax", "nn.log_softmax")),
    *((family.__name__, family) for family in (gather, gather_batch, gather_nd)),
    *(scatter(name) for name in ("scatter_nd", "tensor_scatter_nd_add", "tensor_scatter_nd_sub", "tensor_scatter_nd_update", "tensor_scatter_nd_max",
                                 "tensor_scatter_nd_min")),
    *(segments(name) for name in ("math.unsorted_segment_sum", "math.unsorted_segment_max", "math.unsorted_segment_min", "math.unsorted_segment_prod")),
]
# Refused there, by name; what a gradient becomes is not drawn either.
NOT_ON_GPUS = {name for name, _ in CATALOG if any(part in name for part in (
    "special", "bessel", "linalg"))} | {"math.lgamma", "math.digamma"}


class Pack:
    """`count` expressions in one graph, and what TensorFlow computes of them; those that TensorFlow itself refuses are left out."""

    def __init__(self, tf, seed, number, count, gpu=False):
        self.tf, self.tf1 = tf, tf.compat.v1
        self.expressions = {}
        self.graph = tf.Graph()
        initializers = []
        for index in range(count):
            scope = f"e{index}"
            # In a graph of its own first: an operation that TensorFlow has no kernel for would take all others with it.
            own = tf.Graph()
            with own.as_default(), self.tf1.name_scope(scope + "/"):
                expression = Expression(tf, random.Random(f"{seed}/{number}/{index}"), scope, gpu)
                expression.draw()
            if not self.compute(own, expression):
                continue
            self.expressions[scope] = expression
            with self.graph.as_default():
                tf.import_graph_def(own.as_graph_def(), name="")
            initializers += [operation.name for operation in own.get_operations() if operation.type == "AssignVariableOp"]
        with self.graph.as_default():
            steps = self.tf1.get_variable("steps", initializer=0.0, use_resource=True)
            self.tf1.group(self.tf1.assign_add(steps, 1.0), name="train")
            self.tf1.group(steps.initializer, *[self.graph.get_operation_by_name(name) for name in initializers], name="init")

    def compute(self, graph, expression):
        config = self.tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        # The kernels are the definition: the optimizer looks for the smallest of x where it should be that of relu6(x), whose ties are others.
        config.graph_options.rewrite_options.arithmetic_optimization = 2  # OFF
        try:
            with self.tf1.Session(graph=graph, config=config) as session:
                session.run([operation for operation in graph.get_operations() if operation.type == "AssignVariableOp"])
                expression.values = session.run([tensor for tensor, _ in expression.fetches])
        except self.tf.errors.OpError:
            return False
        # The libraries of GPUs multiply NaN with the zeros of padding, which the processor's kernels leave out.
        convolves = any(step.startswith(("convolution", "depthwise")) for step in expression.steps)
        return not (expression.gpu and convolves) or all(np.all(np.isfinite(value.astype(np.float64))) for value in expression.values)

    def write(self, path):
        self.tf1.train.export_meta_graph(str(path), graph=self.graph)


def differences(expression, got):
    """What differs from TensorFlow's values: sentences. `got`: arrays by the tensors' names."""
    found = []
    for (tensor, dtype), want in zip(expression.fetches, expression.values):
        value = got.get(tensor.name)
        if value is None:
            found.append(f"{tensor.name} was not fetched")
        elif list(value.shape) != list(want.shape):
            found.append(f"{tensor.name} has shape {list(value.shape)}, not {list(want.shape)}")
        elif (message := compare(value, want, dtype)):
            found.append(f"{tensor.name} ({dtype}{list(want.shape)}): {message}")
    return found


TOLERANCES = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-3, "float64": 1e-6}


def compare(got, want, dtype):
    if want.size == 0:
        return None
    if dtype not in TOLERANCES:
        same = got.astype(want.dtype) == want
    else:
        got, want = got.astype(np.float64), want.astype(np.float64)
        finite = np.abs(want[np.isfinite(want)])
        tolerance = TOLERANCES[dtype]
        size = max(1.0, float(np.max(finite, initial=0.0))) if dtype != "float64" else 1.0
        with np.errstate(all="ignore"):
            # TensorFlow rounds in between what is computed in narrow types.
            near = np.abs(got - want) <= tolerance * np.abs(want) + (2 if dtype in NARROW else 0.1) * tolerance * size
        same = (got == want) | (np.isnan(got) & np.isnan(want)) | (near & np.isfinite(got) & np.isfinite(want))
    if np.all(same):
        return None
    at = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{np.count_nonzero(~same)} of {want.size} differ, the first at {list(at)}: {got[at]}, not {want[at]}"
