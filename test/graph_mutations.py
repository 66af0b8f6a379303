"""Mutants of training graphs: edges between operations go through something else that has the same shape and type, or come from elsewhere. What a
mutant computes makes little sense; what one device makes of it on the whole batch is defined as well as for any graph, and often nothing that a
user's model has: rows meet rows in the middle of a gradient, sizes of a batch in its updates.

Needs TensorFlow. A mutation is one entry of ROWS, ELEMENTS, INTEGERS, REDUCTIONS or BINARY.
"""
import tensorflow as tf

tf1 = tf.compat.v1


def rows(x):
    """The number of rows, as a tensor."""
    return tf.shape(x)[0]


def flat(x):
    return tf.reshape(x, tf.stack([rows(x), -1]))


def like(y, x):
    return tf.reshape(y, tf.shape(x))


def positions(x):
    return tf.reshape(tf.range(rows(x)), tf.concat([[rows(x)], tf.ones([x.shape.rank - 1], tf.int32)], 0))


def batch_norm(x):
    mean, variance = tf.nn.moments(x, [0], keepdims=True)
    return (x - mean) * tf1.rsqrt(variance + 0.1)


def loop(x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, 0.9 * y + 0.05 * tf.reduce_mean(y, 0, keepdims=True)), [0, x])[1]


def loop_until(x):
    """As many turns as the batch decides."""
    return tf.while_loop(lambda i, y: tf.logical_and(i < 5, tf.reduce_max(tf.abs(y)) > 0.5), lambda i, y: (i + 1, 0.7 * y), [0, x])[1]


def mask_rows(x):
    kept = tf.boolean_mask(flat(x), tf.reduce_sum(flat(x), 1) > 0)
    return x * tf.reduce_sum(kept) / (1 + tf.reduce_sum(tf.abs(kept)))


def attend(x):
    y = flat(x)
    return like(tf.matmul(tf.nn.softmax(0.1 * tf.matmul(y, y, transpose_b=True)), y), x)


def segments(x):
    """Sums of neighbors, given back to each."""
    pairs = tf.range(rows(x)) // 2
    return tf.gather(tf.math.unsorted_segment_sum(x, pairs, rows(x)), pairs)


def groups(x):
    """Sums of rows that fall into the same of four groups."""
    keys = tf.cast(tf.reduce_sum(flat(x), 1) > 0, tf.int32) + 2 * (tf.range(rows(x)) % 2)
    return 0.5 * tf.gather(tf.math.unsorted_segment_mean(x, keys, 4), keys)


# Of float tensors of at least one axis, whose first often is the batch.
ROWS = {
    "less its mean over rows": lambda x: x - tf.reduce_mean(x, 0, keepdims=True),
    "plus its sum over rows": lambda x: x + 0.1 * tf.reduce_sum(x, 0, keepdims=True),
    "by the largest of all": lambda x: x / (1 + tf.reduce_max(tf.abs(x))),
    "less the least of a column": lambda x: x - tf.reduce_min(x, 0, keepdims=True),
    "by its norm": lambda x: x * tf1.rsqrt(tf.reduce_mean(x * x) + 1),
    "by its norm, not differentiated": lambda x: x / (1 + tf.stop_gradient(tf.norm(x))),
    "softmax over rows": lambda x: tf.nn.softmax(x, 0) if x.shape.rank > 1 else tf.nn.softmax(x),
    "log-sum-exp over rows": lambda x: x - 0.1 * tf.reduce_logsumexp(x, 0, keepdims=True),
    "reversed": lambda x: tf.reverse(x, [0]),
    "reversed by strides": lambda x: x[::-1],
    "rolled": lambda x: tf.roll(x, 1, 0),
    "halves exchanged": lambda x: tf.concat([x[rows(x) // 2:], x[:rows(x) // 2]], 0),
    "cumulated": lambda x: 0.3 * tf.cumsum(x, 0),
    "cumulated from behind": lambda x: 0.3 * tf.cumsum(x, 0, exclusive=True, reverse=True) + x,
    "sorted": lambda x: tf.sort(x, 0),
    "times its position": lambda x: x * (1 + 0.1 * tf.cast(positions(x), x.dtype)),
    "odd rows only": lambda x: x * tf.cast(positions(x) % 2, x.dtype),
    "by the number of rows": lambda x: 4 * x / tf.cast(rows(x), x.dtype),
    "by the number of elements": lambda x: x * 4 / tf.cast(tf.size(x), x.dtype),
    "taken in reverse": lambda x: tf.gather(x, rows(x) - 1 - tf.range(rows(x))),
    "taken by the order of sums": lambda x: tf.gather(x, tf.argsort(tf.reduce_sum(flat(x), 1), stable=True)),
    "less the first row": lambda x: x - x[:1],
    "less the last row": lambda x: x - x[-1:],
    "less the row before": lambda x: x - tf.concat([tf.zeros_like(x[:1]), x[:-1]], 0),
    "largest of a column": lambda x: x * tf.cast(tf.equal(x, tf.reduce_max(x, 0, keepdims=True)), x.dtype) + 0.1 * x,
    "largest of a column by place": lambda x: x * like(tf.transpose(tf.one_hot(tf.argmax(flat(x), 0), rows(x), dtype=x.dtype)), x) + 0.1 * x,
    "batch normalization": batch_norm,
    "where above the mean": lambda x: tf.where(x > tf.reduce_mean(x), x, 0.1 * x),
    "on condition of the mean": lambda x: tf.cond(tf.reduce_mean(x) > 0, lambda: x, lambda: 0.5 * x),
    "on condition of the size": lambda x: tf.cond(rows(x) > 3, lambda: x, lambda: 0.5 * x),
    "clipped by norm": lambda x: tf.clip_by_norm(x, 1.5),
    "attended to": attend,
    "through products of rows": lambda x: like(tf.matmul(flat(x), tf.matmul(flat(x), flat(x), transpose_a=True)), x) / (10 + tf.reduce_sum(x * x)),
    "in a loop": loop,
    "in a loop until": loop_until,
    "each row mapped": lambda x: tf.map_fn(lambda row: row / (1 + tf.reduce_sum(tf.abs(row))), x),
    "scanned": lambda x: tf.scan(lambda sum, row: 0.5 * sum + row, x),
    "rows masked": mask_rows,
    "sums of neighbors": segments,
    "means of groups": groups,
    "pairs of rows apart": lambda x: x + 0.1 * like(tf.reduce_sum(tf.tanh(flat(x)[:, None] - flat(x)[None]), 1), x),
    "elements in the order of columns": lambda x: like(tf.transpose(flat(x)), x),
    "share of the sum": lambda x: x / (1 + tf.abs(tf.reduce_sum(x, 0, keepdims=True))),
    "variance in front": lambda x: x * tf.math.reduce_variance(x),
    "tiled and summed": lambda x: 0.5 * like(tf.reduce_sum(tf.reshape(tf.tile(flat(x), [2, 1]), tf.stack([2, rows(x), -1])), 0), x),
    "padded and cut": lambda x: tf.pad(x, [[1, 1]] + [[0, 0]] * (x.shape.rank - 1))[2:],
    "scattered in reverse": lambda x: tf.scatter_nd(tf.reverse(tf.range(rows(x)), [0])[:, None], x, tf.shape(x)),
    "top two of each column": lambda x: x * (1 + tf.reduce_mean(tf.math.top_k(tf.transpose(flat(tf.concat([x, x], 0))), 2)[0])),
    "unstacked halves": lambda x: tf.concat([x[0::2], x[1::2]], 0),
    "quadrant": lambda x: x + 0.1 * tf.reduce_mean(x[: rows(x) // 2]),
    "median": lambda x: x - tf.sort(tf.reshape(x, [-1]))[tf.size(x) // 2],
    "number of positives": lambda x: x / (1 + tf.math.count_nonzero(tf.nn.relu(x), dtype=x.dtype)),
    "any positive": lambda x: tf.where(tf.reduce_any(x > 0, 0, keepdims=True), x, 0.3 * x),
    "einsum over rows": lambda x: like(tf.einsum("bi,bj,cj->ci", flat(x), flat(x), flat(x)), x) / (10 + tf.reduce_sum(x * x)),
}

# Of float tensors of any shape.
ELEMENTS = {
    "tanh": tf.tanh, "sigmoid": tf.sigmoid, "relu": tf.nn.relu, "negative": tf.negative, "doubled": lambda x: 2 * x,
    "square": lambda x: tf.square(tf.clip_by_value(x, -3, 3)), "absolute": tf.abs, "softplus": tf.nn.softplus,
    "exponential": lambda x: tf.exp(tf.minimum(x, 1.0)) - 1, "sine": tf.sin, "square root": lambda x: tf.sqrt(tf.abs(x) + 0.1),
    "logarithm": lambda x: tf1.log1p(tf.abs(x)), "not differentiated": tf.stop_gradient, "sign": tf.sign,
    "plus a number": lambda x: x + 0.3, "by itself": lambda x: x / (1 + tf.abs(x)), "half precision": lambda x: tf.cast(tf.cast(x, tf.bfloat16), x.dtype),
}

# Of integers: what stays in its range.
INTEGERS = {
    "reversed": lambda x: tf.reverse(x, [0]),
    "rolled": lambda x: tf.roll(x, 1, 0),
    "sorted": lambda x: tf.sort(x, 0),
    "largest so far": lambda x: tf.maximum(x, tf.roll(x, 1, 0)),
    "at most the mean": lambda x: tf.minimum(x, tf.reduce_max(x) // 2 + 1),
    "rank": lambda x: tf.where(x > tf.reduce_min(x, 0, keepdims=True), x - 1, x),
}

# Reductions: another, over the same axes.
REDUCTIONS = {"Sum": tf.reduce_sum, "Mean": tf.reduce_mean, "Max": tf.reduce_max, "Min": tf.reduce_min}
BINARY = {"AddV2": tf.add, "Sub": tf.subtract, "Mul": tf.multiply, "Maximum": tf.maximum, "Minimum": tf.minimum}
SHAPES = ("Shape", "ShapeN", "Size", "ZerosLike", "OnesLike")  # Of any tensor of the same shape they give the same.
SIZES = ("Const", "Shape", "BroadcastGradientArgs")  # What they give must stay what it is.
LOOPS = {"Enter", "Exit", "Switch", "Merge", "NextIteration", "LoopCond", "RefSwitch"}  # Their frames and branches are no place to write nodes.


class Mutator:
    """Edges of a graph that can be changed; changes are made in the graph."""

    def __init__(self, graph, keep):
        """`keep`: names of operations that are not changed, and what they need alone (initializers, savers)."""
        self.graph = graph
        self.fixed = self.ancestors([graph.get_operation_by_name(name) for name in keep])

    def ancestors(self, roots):
        found, waiting = set(), list(roots)
        while waiting:
            op = waiting.pop()
            if op not in found:
                found.add(op)
                waiting += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
        return found

    def edges(self, needed):
        """(operation, number of an input) of those that compute `needed`, and no initializer."""
        inside = self.ancestors(needed) - self.fixed
        if any(op.type in LOOPS for op in inside):
            return []
        found = []
        for op in self.graph.get_operations():
            if op not in inside or op.type in SHAPES:
                continue
            found += [(op, number) for number, tensor in enumerate(op.inputs)
                      if tensor.dtype in (tf.float32, tf.int32, tf.int64) and tensor.shape.rank is not None and tensor.op.type not in SIZES]
        return found

    def mutate(self, rng, edges):
        """What was changed; None where this edge does not take it."""
        of_rows = [(op, number) for op, number in edges if op.inputs[number].shape.rank and op.inputs[number].shape[0] is None]
        op, number = rng.choice(of_rows if of_rows and rng.random() < 0.75 else edges)
        x = op.inputs[number]
        shape = x.shape
        batched = shape.rank and shape[0] is None
        if not x.dtype.is_floating:
            if not batched:
                return None
            name = rng.choice(sorted(INTEGERS))
            return self.put(op, number, INTEGERS[name], name)
        kind = rng.choice(["rows"] * 6 + ["elements"] * 2 + ["edge"] * 4 + ["reduction", "binary"])
        if kind == "edge":
            return self.rewire(rng, op, number)
        if kind == "reduction" and op.type in REDUCTIONS:
            other = rng.choice(sorted(set(REDUCTIONS) - {op.type}))
            return self.instead(op, lambda: REDUCTIONS[other](op.inputs[0], op.inputs[1], keepdims=op.get_attr("keep_dims")), other)
        if kind == "binary" and op.type in BINARY:
            other = rng.choice(sorted(set(BINARY) - {op.type}))
            return self.instead(op, lambda: BINARY[other](op.inputs[0], op.inputs[1]), other)
        if kind == "elements" or not shape.rank:
            name = rng.choice(sorted(ELEMENTS))
            return self.put(op, number, ELEMENTS[name], name)
        if not batched and rng.random() < 0.5:
            return None
        name = rng.choice(sorted(ROWS))
        return self.put(op, number, ROWS[name], name)

    def put(self, op, number, function, name):
        x = op.inputs[number]
        with self.graph.as_default(), self.graph.control_dependencies(None):
            y = function(x)
        if y.shape.rank is not None and not y.shape.is_compatible_with(x.shape) or y.dtype != x.dtype:
            return None
        y.set_shape(x.shape)
        op._update_input(number, y)
        return f"{x.name} to {op.name}: {name}"

    def instead(self, op, make, name):
        x = op.outputs[0]
        consumers = [(user, number) for user in x.consumers() for number, tensor in enumerate(user.inputs) if tensor is x]
        with self.graph.as_default(), self.graph.control_dependencies(None):
            y = make()
        if not y.shape.is_compatible_with(x.shape) or y.dtype != x.dtype:
            return None
        for user, number in consumers:
            user._update_input(number, y)
        return f"{op.name}: {name}"

    def rewire(self, rng, op, number):
        """Another tensor of the same shape and type that does not need `op`."""
        x = op.inputs[number]
        others = [tensor for other in self.graph.get_operations() for tensor in other.outputs
                  if tensor.dtype == x.dtype and tensor.shape.rank == x.shape.rank and tensor.shape.as_list() == x.shape.as_list() and tensor is not x
                  and other not in self.fixed and other.type not in ("Const", "Assign", "AssignAdd", "AssignSub") and "_ref" not in tensor.dtype.name]
        rng.shuffle(others)
        for other in others[:4]:
            if op not in self.ancestors([other.op]):
                op._update_input(number, other)
                return f"{x.name} to {op.name}: {other.name}"
        return None


def mutate(meta, rng, count):
    """Changes the MetaGraphDef's graph in place; what was changed."""
    node_of = lambda key: [name.removesuffix(":0") for name in meta.collection_def[key].node_list.value]
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(meta.graph_def, name="")
    keep = node_of("init_op")
    if meta.saver_def.restore_op_name:
        keep += [meta.saver_def.restore_op_name, meta.saver_def.save_tensor_name.split(":")[0]]
    variables = [op.name for op in graph.get_operations() if op.type in ("VarHandleOp", "VariableV2")]
    mutator = Mutator(graph, keep + variables)
    needed = [graph.get_operation_by_name(name) for key in ("train_op", "losses") for name in node_of(key)]
    changed = []
    for _ in range(20 * count):
        edges = mutator.edges(needed)
        if not edges or len(changed) == count:
            break
        try:
            text = mutator.mutate(rng, edges)
        except (ValueError, TypeError, tf.errors.OpError, IndexError):  # TensorFlow has no such operation on these shapes
            continue
        if text:
            changed.append(text)
    meta.graph_def.CopyFrom(graph.as_graph_def())
    return changed
