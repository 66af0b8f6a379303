"""Training graphs of any size: GraphDefs written without a framework.

  synthetic.py chain|tree|activations|residuals|branches NODES FILE

A chain multiplies the feed by one variable after another, a tree adds up the products of the feed with each variable; the others have one
variable and many element-wise nodes. All have gradients and plain gradient descent on every variable, and the operation `train`, the loss `loss` and the initializer `init`.
"""
import struct
import sys

FLOAT, INT32 = 1, 3


def varint(value):
    out = bytearray()
    while True:
        out.append((value & 127) | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def field(number, payload):
    """A length-delimited field; integers are written as varints."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload & (2**64 - 1))
    if isinstance(payload, str):
        payload = payload.encode()
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def shape(sizes):
    return b"".join(field(2, field(1, size)) for size in sizes)


def of_type(value):
    return field(6, value)


def of_shape(sizes):
    return field(7, shape(sizes))


def of_tensor(dtype, sizes, content):
    return field(8, field(1, dtype) + field(2, shape(sizes)) + field(4, content))


class Writer:
    """A GraphDef that is written node by node; FLOATS(WIDTH) is the type of every variable."""
    WIDTH = 4

    def __init__(self, path):
        self.file = open(path, "wb")
        self.count = 0

    def node(self, name, op, inputs=(), **attributes):
        body = field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs)
        for key, value in attributes.items():
            body += field(5, field(1, key) + field(2, value))
        self.file.write(field(1, body))
        self.count += 1
        return name

    def binary(self, name, op, a, b):
        return self.node(name, op, (a, b), T=of_type(FLOAT))

    def variable(self, name):
        floats = of_shape([self.WIDTH])
        self.node(name, "VarHandleOp", dtype=of_type(FLOAT), shape=floats, shared_name=field(2, name), container=field(2, ""))
        self.node(f"{name}/Assign", "AssignVariableOp", (name, "one"), dtype=of_type(FLOAT))
        return self.node(f"{name}/Read", "ReadVariableOp", (name,), dtype=of_type(FLOAT))

    def begin(self):
        self.node("x", "Placeholder", dtype=of_type(FLOAT), shape=of_shape([-1, self.WIDTH]))
        self.node("one", "Const", dtype=of_type(FLOAT), value=of_tensor(FLOAT, [self.WIDTH], struct.pack(f"<{self.WIDTH}f", *[1.0] * self.WIDTH)))
        self.node("rate", "Const", dtype=of_type(FLOAT), value=of_tensor(FLOAT, [], struct.pack("<f", 0.001)))
        self.node("rows", "Const", dtype=of_type(INT32), value=of_tensor(INT32, [1], struct.pack("<i", 0)))
        self.node("all", "Const", dtype=of_type(INT32), value=of_tensor(INT32, [2], struct.pack("<2i", 0, 1)))

    def loss(self, value):
        self.node("loss", "Sum", (value, "all"), T=of_type(FLOAT), Tidx=of_type(INT32), keep_dims=field(5, 0))

    def update(self, name, gradient):
        self.node(f"{name}/gradient", "Sum", (gradient, "rows"), T=of_type(FLOAT), Tidx=of_type(INT32), keep_dims=field(5, 0))
        self.node(f"{name}/update", "ResourceApplyGradientDescent", (name, "rate", f"{name}/gradient"), T=of_type(FLOAT),
                  use_locking=field(5, 0))

    def end(self, variables):
        self.node("init", "NoOp", [f"^{v}/Assign" for v in variables])
        self.node("train", "NoOp", [f"^{v}/update" for v in variables])
        self.file.close()


def chain(path, nodes):
    """Forward, backward and update of a variable are 7 nodes."""
    w, links = Writer(path), max(1, nodes // 7)
    names = [f"link{i}" for i in range(links)]
    w.begin()
    value, inputs = "x", []
    for name in names:
        read = w.variable(name)
        inputs.append(value)
        value = w.binary(f"{name}/out", "Mul", value, read)
    w.loss(value)
    gradient = w.node("gradients/ones", "OnesLike", (value,), T=of_type(FLOAT))
    for name, given in zip(reversed(names), reversed(inputs)):
        w.update(name, w.binary(f"{name}/product", "Mul", given, gradient))
        gradient = w.binary(f"{name}/back", "Mul", gradient, f"{name}/Read")
    w.end(names)
    return w.count


def tree(path, nodes):
    """A leaf, half of the inner nodes, and its update are 8 nodes."""
    w, leaves = Writer(path), max(1, nodes // 8)
    names = [f"leaf{i}" for i in range(leaves)]
    w.begin()
    level = [w.binary(f"{name}/out", "Mul", "x", w.variable(name)) for name in names]
    depth = 0
    while len(level) > 1:
        joined = [w.binary(f"level{depth}/sum{i}", "AddV2", *level[2 * i:2 * i + 2]) for i in range(len(level) // 2)]
        level, depth = joined + level[2 * len(joined):], depth + 1
    w.loss(level[0])
    gradient = w.node("gradients/ones", "OnesLike", (level[0],), T=of_type(FLOAT))
    for name in names:
        w.update(name, w.binary(f"{name}/product", "Mul", "x", gradient))
    w.end(names)
    return w.count


def activations(path, nodes):
    """One variable behind a chain of tanh: a link and its gradient are 2 nodes."""
    w, links = Writer(path), max(1, nodes // 2)
    w.begin()
    values = [w.binary("w/out", "Mul", "x", w.variable("w"))]
    for i in range(links):
        values.append(w.node(f"link{i}", "Tanh", (values[-1],), T=of_type(FLOAT)))
    w.loss(values[-1])
    gradient = w.node("gradients/ones", "OnesLike", (values[-1],), T=of_type(FLOAT))
    for i in reversed(range(links)):
        gradient = w.binary(f"link{i}/back", "TanhGrad", values[i + 1], gradient)
    w.update("w", w.binary("w/product", "Mul", "x", gradient))
    w.end(["w"])
    return w.count


def residuals(path, nodes):
    """y = tanh(y) + h, with one h in all links: a link and its gradient are 4 nodes."""
    w, links = Writer(path), max(1, nodes // 4)
    w.begin()
    skipped = value = w.binary("w/out", "Mul", "x", w.variable("w"))
    activated = []
    for i in range(links):
        activated.append(w.node(f"link{i}/tanh", "Tanh", (value,), T=of_type(FLOAT)))
        value = w.binary(f"link{i}/sum", "AddV2", activated[-1], skipped)
    w.loss(value)
    gradient = total = w.node("gradients/ones", "OnesLike", (value,), T=of_type(FLOAT))
    for i in reversed(range(links)):
        gradient = w.binary(f"link{i}/back", "TanhGrad", activated[i], gradient)
        total = w.binary(f"link{i}/total", "AddV2", total, gradient)
    w.update("w", w.binary("w/product", "Mul", "x", total))
    w.end(["w"])
    return w.count


def branches(path, nodes):
    """The sum of branches tanh(c h), each of another c: a branch and its gradient are 5 nodes."""
    w, count = Writer(path), max(2, nodes // 5)
    w.begin()
    start = w.binary("w/out", "Mul", "x", w.variable("w"))
    outs = []
    for i in range(count):
        factor = w.node(f"branch{i}/factor", "Const", dtype=of_type(FLOAT), value=of_tensor(FLOAT, [], struct.pack("<f", 1 + i / count)))
        outs.append(w.node(f"branch{i}/tanh", "Tanh", (w.binary(f"branch{i}/scaled", "Mul", start, factor),), T=of_type(FLOAT)))
    total = w.node("sum", "AddN", outs, T=of_type(FLOAT), N=field(3, count))
    w.loss(total)
    ones = w.node("gradients/ones", "OnesLike", (total,), T=of_type(FLOAT))
    backs = [w.binary(f"branch{i}/back", "Mul", w.binary(f"branch{i}/gradient", "TanhGrad", outs[i], ones), f"branch{i}/factor") for i in range(count)]
    w.update("w", w.binary("w/product", "Mul", "x", w.node("gradients/sum", "AddN", backs, T=of_type(FLOAT), N=field(3, count))))
    w.end(["w"])
    return w.count


KINDS = {kind.__name__: kind for kind in (chain, tree, activations, residuals, branches)}

if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    print(KINDS[sys.argv[1]](sys.argv[3], int(sys.argv[2])), "nodes")
