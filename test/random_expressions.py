"""Random graphs of many small expressions, each with a variable of its own and its gradient: broadcasts, reductions over all kinds of
axes, masks, softmax, normalizations, biases, matmuls, rows by index and sums of segments. What tests of code generation share: a wrong variable names the expression whose
code is wrong. All follows from the random.Random that is given. Needs nothing but Python."""
from random_training import BATCH, Graph, full

SIZES = (1, 2, 3, 3, 4, 5, 8, 33)
# Rows that one warp has, and such that a block has.
LONG_SIZES = (32, 40, 64, 100, 1030)


class Expressions(Graph):
    """`count` expressions `f_k(x, v_k)`; the variable `v_k` is trained by the gradient of its loss, which `loss_k` keeps. Where not
    `coupled`, an expression takes each example alone, but for the loss at its end: any number of replicas gives the same."""

    def __init__(self, rng, count, coupled=True):
        self.count, self.coupled = count, coupled
        self.texts = {}  # by expression: what it is made of
        super().__init__(rng)
        self.loss_is_sum = True

    def build(self):
        self.rate = self.constant(0.05, name="rate")
        self.zero, self.one, self.two = (self.constant(float(value)) for value in range(3))
        self.batched = {}
        losses = []
        for number in range(self.count):
            handle = self.variable(f"v{number}", full(self.variable_shape(), lambda: self.numbers.gauss(0.3, 0.5)), trained=True)
            expression = Expression(self, number, self.read(handle))
            loss, gradient = expression.make()
            self.texts[number] = expression.text
            losses.append(loss)
            kept = self.variable(f"loss{number}", 0.0)
            self.run_update(f"loss{number}", "assign", (kept, loss))
            self.run_update(f"v{number}", "apply_gradient_descent", (handle, self.rate, gradient))
        self.node("add_n", losses, ("f32",), name="loss")

    def size(self):
        return self.rng.choice(SIZES if self.rng.random() < 0.9 else LONG_SIZES)

    def variable_shape(self):
        return tuple(self.size() for _ in range(self.rng.choice((0, 1, 1, 1, 2, 2))))

    def feed(self, *shape):
        """A placeholder of a batch of such rows; equal ones once."""
        if shape not in self.batched:
            name = "x" + "_".join(map(str, shape))
            self.batched[shape] = self.placeholder(name, lambda rows: full((rows, *shape), lambda: self.numbers.gauss(0, 1)), "f32",
                                                   BATCH, *shape)
        return self.batched[shape]

    def labels(self, classes):
        name = f"labels{classes}"
        if name not in self.batched:
            self.batched[name] = self.placeholder(name, lambda rows: full((rows,), lambda: self.numbers.randrange(classes)), "i32", BATCH)
        return self.batched[name]


class Expression:
    """Values from a variable and feeds, and their gradients by the chain rule. Backward is written as TensorFlow writes it: what was
    broadcast is summed over its axes, also where there are none, and reshaped."""

    def __init__(self, graph, number, variable):
        self.graph, self.rng, self.number, self.variable = graph, graph.rng, number, variable
        self.tape = []  # (result, operands, function of the result's gradient: the operands')
        self.depends = {variable.name}
        self.text = []

    # ---- Nodes: those that take part in the gradient ----------------------------------------------------------

    def f32(self, op, operands, shape, **keywords):
        return self.graph.f32(op, operands, *shape, **keywords)

    def record(self, op, operands, result, backward):
        if any(operand.name in self.depends for operand in operands):
            self.depends.add(result.name)
            self.tape.append((result, operands, backward))
        self.text.append(f"{result.name} = {op}({', '.join(o.name for o in operands)}) {list(result.shape)}")
        return result

    def unary(self, op, x, gradient):
        y = self.f32(op, (x,), x.shape)
        return self.record(op, (x,), y, lambda g: [gradient(x, y, g)])

    def binary(self, op, x, y, gradients):
        """Broadcasts; `gradients` are the operands' in the result's shape."""
        z = self.f32(op, (x, y), broadcast(x.shape, y.shape))

        def backward(g):
            return [self.unbroadcast(part, operand) if operand.name in self.depends else None
                    for part, operand in zip(gradients(x, y, z, g), (x, y))]
        return self.record(op, (x, y), z, backward)

    def unbroadcast(self, g, operand):
        lead = len(g.shape) - len(operand.shape)
        axes = list(range(lead)) + [lead + i for i, size in enumerate(operand.shape) if size == 1 and g.shape[lead + i] != 1]
        keep = self.rng.random() < 0.5
        shape = tuple(1 if i in axes else size for i, size in enumerate(g.shape) if keep or i not in axes)
        summed = self.f32("sum", (g, self.indices(axes)), shape, attributes=f"{{keep_dims = {str(keep).lower()}}}")
        return self.reshape(summed, operand)

    def reshape(self, x, like):
        return self.f32("reshape", (x, self.shape_of(like)), like.shape)

    def shape_of(self, x):
        return self.graph.node("shape", (x,), ("i32", len(x.shape)))

    def indices(self, values):
        if values:
            return self.graph.constant(list(values), "i32")
        return self.graph.constant([], "i32")

    def mul(self, x, y):
        return self.f32("mul", (x, y), broadcast(x.shape, y.shape))

    # ---- Operations -------------------------------------------------------------------------------------------

    def smooth(self, x):
        g, one, two = self.graph, self.graph.one, self.graph.two
        like = g.like
        kind = self.rng.choice(("neg", "square", "tanh", "tanh", "sigmoid", "relu", "sin", "cos", "abs", "exp", "root", "softplus"))
        if kind == "exp":
            return self.unary("exp", self.smooth_of("tanh", x), lambda x, y, d: like("mul", d, y))
        if kind == "root":
            square = self.unary("square", x, lambda x, y, d: like("mul", d, like("mul", x, two)))
            shifted = self.binary("add_v2", square, one, lambda x, y, z, d: (d, d))
            return self.unary("sqrt", shifted, lambda x, y, d: like("sqrt_grad", y, d))
        return self.smooth_of(kind, x)

    def smooth_of(self, kind, x):
        g, two = self.graph, self.graph.two
        like = g.like
        return self.unary(kind, x, {
            "neg": lambda x, y, d: like("neg", d),
            "square": lambda x, y, d: like("mul", d, like("mul", x, two)),
            "tanh": lambda x, y, d: like("tanh_grad", y, d),
            "sigmoid": lambda x, y, d: like("sigmoid_grad", y, d),
            "relu": lambda x, y, d: like("relu_grad", d, y),
            "sin": lambda x, y, d: like("mul", d, like("cos", x)),
            "cos": lambda x, y, d: like("mul", d, like("neg", like("sin", x))),
            "abs": lambda x, y, d: like("mul", d, like("sign", x)),
            "softplus": lambda x, y, d: like("softplus_grad", d, x),
        }[kind])

    def combine(self, x, y):
        kind = self.rng.choice(("add_v2", "sub", "mul", "mul", "maximum", "minimum", "squared_difference", "real_div", "select"))
        g, like = self.graph, self.graph.like
        if kind == "real_div":
            y = self.binary("add_v2", self.smooth_of("square", y), g.one, lambda x, y, z, d: (d, d))
        if kind == "select":
            return self.select(x, y)
        if kind in ("maximum", "minimum"):
            compare = "greater_equal" if kind == "maximum" else "less_equal"

            def chosen(x, y, z, d):
                mask = g.node(compare, (x, y), ("i1", *z.shape))
                nothing = like("zeros_like", d)
                return self.f32("select_v2", (mask, d, nothing), z.shape), self.f32("select_v2", (mask, g.zero, d), z.shape)
            return self.binary(kind, x, y, chosen)
        return self.binary(kind, x, y, {
            "add_v2": lambda x, y, z, d: (d, d),
            "sub": lambda x, y, z, d: (d, like("neg", d)),
            "mul": lambda x, y, z, d: (self.mul(d, y), self.mul(x, d)),
            "squared_difference": self.squared_difference_gradients,
            "real_div": lambda x, y, z, d: (self.f32("real_div", (d, y), z.shape),
                                            self.mul(d, self.f32("real_div", (like("neg", z), y), z.shape))),
        }[kind])

    def squared_difference_gradients(self, x, y, z, d):
        part = self.mul(self.mul(d, self.graph.two), self.f32("sub", (x, y), z.shape))
        return part, self.graph.like("neg", part)

    def select(self, x, y):
        """By a mask that a third value, or one of the two, makes."""
        g = self.graph
        shape = broadcast(x.shape, y.shape)
        by = self.rng.choice([x, y, *[value for value in self.values if fits(value.shape, shape)]])
        mask = g.node("greater", (by, g.constant(round(self.rng.uniform(-0.5, 0.5), 2))), ("i1", *by.shape))
        z = self.f32("select_v2", (mask, x, y), broadcast(mask.shape, shape))

        def backward(d):
            nothing = g.zero if self.rng.random() < 0.5 else g.like("zeros_like", d)
            parts = self.f32("select_v2", (mask, d, nothing), z.shape), self.f32("select_v2", (mask, nothing, d), z.shape)
            return [self.unbroadcast(part, operand) for part, operand in zip(parts, (x, y))]
        return self.record(f"select by {by.name}", (x, y), z, backward)

    def reduce(self, x, kind=None, axes=None, keep=None):
        kind = kind or self.rng.choice(("sum", "mean", "mean", "max", "min"))
        if axes is None:
            free = [axis for axis, size in enumerate(x.shape) if self.graph.coupled or size is not BATCH]
            axes = sorted(self.rng.sample(free, self.rng.randint(0, len(free))))
        keep = self.rng.random() < 0.6 if keep is None else keep
        kept = tuple(1 if i in axes else size for i, size in enumerate(x.shape))
        shape = kept if keep else tuple(size for i, size in enumerate(x.shape) if i not in axes)
        given = self.indices([axis - len(x.shape) if self.rng.random() < 0.3 else axis for axis in axes])
        y = self.f32(kind, (x, given), shape, attributes=f"{{keep_dims = {str(keep).lower()}}}")
        return self.record(f"{kind} over {axes}", (x,), y, lambda d: [self.reduced_gradient(kind, x, y, d, axes, kept)])

    def reduced_gradient(self, kind, x, y, d, axes, kept):
        g = self.graph
        sizes = self.indices([-1 if size is BATCH else size for size in kept])
        d, y = (value if value.shape == kept else self.f32("reshape", (value, sizes), kept) for value in (d, y))
        if kind in ("max", "min"):
            found = self.f32("cast", (g.node("equal", (x, y), ("i1", *x.shape)),), x.shape)
            count = self.f32("sum", (found, self.indices(axes)), kept, attributes="{keep_dims = true}")
            return self.mul(self.f32("real_div", (found, count), x.shape), d)
        if self.rng.random() < 0.5:
            spread = self.f32("broadcast_to", (d, self.shape_of(x)), x.shape)
        else:
            spread = self.mul(g.like("ones_like", x), d)
        if kind == "sum":
            return spread
        sizes = [g.node("size", (value,), ("i32",)) for value in (x, y)]
        return self.f32("real_div", (spread, self.f32("cast", (g.node("floor_div", sizes, ("i32",)),), ())), x.shape)

    def softmax(self, x):
        kind = self.rng.choice(("softmax", "log_softmax"))
        like, last = self.graph.like, len(x.shape) - 1
        row = x.shape[:-1] + (1,)

        def backward(x, y, d):
            summed = lambda value: self.f32("sum", (value, self.indices([last])), row, attributes="{keep_dims = true}")
            if kind == "softmax":
                return like("mul", like("sub", d, summed(like("mul", d, y))), y)
            return like("sub", d, like("mul", like("exp", y), summed(d)))
        return self.unary(kind, x, backward)

    def normalize(self, x):
        """Over the last axes, or, as batch normalization, over the first ones."""
        count = self.rng.randint(1, len(x.shape))
        axes = list(range(count)) if self.rng.random() < 0.4 else list(range(len(x.shape) - count, len(x.shape)))
        if not self.graph.coupled:
            axes = [axis for axis in axes if x.shape[axis] is not BATCH] or [len(x.shape) - 1]
        g = self.graph
        centred = self.binary("sub", x, self.reduce(x, "mean", axes, True), lambda x, y, z, d: (d, g.like("neg", d)))
        variance = self.reduce(self.smooth_of("square", centred), "mean", axes, True)
        shifted = self.binary("add_v2", variance, g.constant(0.1), lambda x, y, z, d: (d, d))
        inverse = self.unary("rsqrt", shifted, lambda x, y, d: g.like("rsqrt_grad", y, d))
        return self.binary("mul", centred, inverse, lambda x, y, z, d: (self.mul(d, y), self.mul(x, d)))

    def matmul(self, x):
        inner, out = x.shape[1], self.rng.choice((1, 2, 3, 8))
        same = [value for value in self.values if value.shape[:1] == (inner,) and len(value.shape) == 2 and value is not x and
                (self.graph.coupled or BATCH not in value.shape)]
        w = self.rng.choice(same) if same else self.graph.constant(full((inner, out), lambda: round(self.graph.numbers.gauss(0, inner ** -0.5), 3)))
        y = self.f32("mat_mul", (x, w), (x.shape[0], w.shape[1]))
        return self.record("mat_mul", (x, w), y, lambda d: [
            self.f32("mat_mul", (d, w), x.shape, attributes="{transpose_b = true}") if x.name in self.depends else None,
            self.f32("mat_mul", (x, d), w.shape, attributes="{transpose_a = true}") if w.name in self.depends else None])

    def bias(self, x):
        same = [value for value in self.values if value.shape == x.shape[-1:]]
        b = self.rng.choice(same) if same else self.graph.constant(full(x.shape[-1:], lambda: round(self.graph.numbers.gauss(0, 1), 3)))
        y = self.f32("bias_add", (x, b), x.shape)
        return self.record("bias_add", (x, b), y, lambda d: [d, self.f32("bias_add_grad", (d,), b.shape)])

    def transpose(self, x):
        order = list(range(len(x.shape)))
        self.rng.shuffle(order)
        back = [order.index(axis) for axis in range(len(order))]
        y = self.f32("transpose", (x, self.indices(order)), tuple(x.shape[axis] for axis in order))
        return self.record(f"transpose by {order}", (x,), y, lambda d: [self.f32("transpose", (d, self.indices(back)), x.shape)])

    def expand(self, x):
        axis = self.rng.randint(0, len(x.shape))
        y = self.f32("expand_dims", (x, self.graph.constant(axis, "i32")), x.shape[:axis] + (1,) + x.shape[axis:])
        return self.record("expand_dims", (x,), y, lambda d: [self.reshape(d, x)])

    def lookup(self, x):
        """Rows by the batch's numbers; their gradients are summed where rows are equal."""
        g = self.graph
        ids, count = g.labels(x.shape[0]), g.constant(x.shape[0], "i32")
        y = self.f32("gather", (x, ids), (BATCH, *x.shape[1:]))
        return self.record("gather", (x, ids), y, lambda d: [self.f32("unsorted_segment_sum", (d, ids, count), x.shape)])

    def segments(self, x):
        g, count = self.graph, self.rng.choice((1, 3, 5, 40))
        ids, number = g.labels(count), g.constant(count, "i32")
        y = self.f32("unsorted_segment_sum", (x, ids, number), (count, *x.shape[1:]))
        return self.record("unsorted_segment_sum", (x, ids), y, lambda d: [self.f32("gather", (d, ids), x.shape)])

    def cross_entropy(self, x):
        g = self.graph
        labels = g.labels(x.shape[1])
        name, one_each = f"n{g.counter}", x.type.replace(f"x{x.shape[1]}x", "x")
        g.counter += 1
        g.body.append(f"  %{name}:2 = dfg.sparse_softmax_cross_entropy_with_logits {x.name}, {labels.name} : ({x.type}, {labels.type}) -> "
                      f"({one_each}, {x.type}) loc(\"{name}\")")
        losses, backprop = type(x)(f"%{name}#0", one_each, x.shape[:1]), type(x)(f"%{name}#1", x.type, x.shape)

        def backward(d):
            column = self.f32("expand_dims", (d, g.constant(-1, "i32")), (x.shape[0], 1))
            return [self.mul(column, backprop)]
        return self.record("cross_entropy", (x,), losses, backward)

    # ---- The expression ------------------------------------------------------------------------------------------

    def make(self):
        """The loss and the variable's gradient."""
        v = self.variable
        shape = list(v.shape)
        if shape and self.rng.random() < 0.4:  # the feed's rows are broadcast along it
            shape[self.rng.randrange(len(shape))] = 1
        if self.rng.random() < 0.3:
            shape = [self.graph.size(), *shape]
        if len(shape) < 2 and self.rng.random() < 0.3:
            shape = [2, 3, *shape]
        self.values = [self.graph.feed(*shape), v]
        latest = self.combine(*self.rng.sample(self.values, 2))
        for _ in range(self.rng.randint(1, 7)):
            self.values.append(latest)
            latest = self.step(latest if self.rng.random() < 0.7 else self.rng.choice(self.values))
            if latest.name not in self.depends:
                latest = self.values[-1]
        loss = self.reduce(latest, self.rng.choice(("mean", "mean", "sum")), range(len(latest.shape)), False)
        return loss, self.gradient(loss)

    def step(self, x):
        rank = len(x.shape)
        choices = [self.smooth, self.smooth, self.reduce, self.reduce, self.reduce]
        partners = [value for value in self.values if fits(value.shape, x.shape) or fits(x.shape, value.shape)]
        partners = [value for value in partners if elements(broadcast(x.shape, value.shape)) <= 40000]
        if partners:
            choices += [lambda x: self.combine(*self.rng.sample((x, self.rng.choice(partners)), 2))] * 5
        if rank >= 1 and x.shape[-1] is not BATCH:
            choices += [self.softmax, self.softmax, self.normalize]
        if self.graph.coupled:  # the batch may come to lie along another one's axis
            choices += [self.expand, self.transpose] if rank >= 2 else [self.expand]
        if rank >= 2 and x.shape[-1] is not BATCH:
            choices += [self.bias]
        if rank == 2 and x.shape[1] is not BATCH:
            choices += [self.matmul]
            if x.shape[0] is BATCH and x.shape[1] >= 2:
                choices += [self.cross_entropy] * 2
        if rank >= 1 and BATCH not in x.shape:
            choices += [self.lookup]
        if rank >= 1 and x.shape[0] is BATCH and BATCH not in x.shape[1:] and self.graph.coupled:
            choices += [self.segments]
        if rank > 4:
            choices = [lambda x: self.reduce(x, keep=False, axes=[1, 2])]
        return self.rng.choice(choices)(x)

    def gradient(self, loss):
        gradients = {loss.name: [self.graph.one]}
        for result, operands, backward in reversed(self.tape):
            if result.name not in gradients:
                continue
            for operand, part in zip(operands, backward(self.total(gradients[result.name]))):
                if part is not None and operand.name in self.depends:
                    gradients.setdefault(operand.name, []).append(part)
        return self.total(gradients[self.variable.name])

    def total(self, parts):
        return parts[0] if len(parts) == 1 else self.graph.like("add_n", *parts)


def elements(shape):
    count = 1
    for size in shape:
        count *= 8 if size is BATCH else size
    return count


def broadcast(x, y):
    rank = max(len(x), len(y))
    x, y = (1,) * (rank - len(x)) + tuple(x), (1,) * (rank - len(y)) + tuple(y)
    return tuple(b if a == 1 else a for a, b in zip(x, y))


def fits(x, y):
    """Whether x can be broadcast with y without making it larger."""
    return len(x) <= len(y) and all(a in (1, b) for a, b in zip(reversed(x), reversed(y)))
