"""Random expressions of a batch: whatever the batch's flow says of a value is so. Each value is computed on the whole batch, and on the
shares of two replicas by itself; put together as the flow says, the shares give the whole batch's. What it says nothing of is not
compared, but some of it must be known.

  random_flow.py [--seed S] [--count N]
"""
import argparse
import json
import random
import re
import sys

import numpy as np

from support import BIN, DISTC, TRANSLATE, Checks, Folder, must, need_tools

OPT = BIN / "distc-opt"
REPLICAS, SHARE = 2, 3
NODES = 60


class B:
    """A size: so many times the batch."""

    def __init__(self, scale):
        self.scale = scale

    def __eq__(self, other):
        return isinstance(other, B) and self.scale == other.scale

    def __hash__(self):
        return hash(("b", self.scale))


class Value:
    def __init__(self, name, element, shape):
        self.name, self.element, self.shape = name, element, tuple(shape)

    @property
    def type(self):
        return "tensor<" + "".join("?x" if isinstance(s, B) else f"{s}x" for s in self.shape) + self.element + ">"


class Expressions:
    """A graph of random nodes, all of which are fetched."""

    def __init__(self, rng):
        self.rng, self.lines, self.counter, self.fetched = rng, [], 0, []
        b = B(1)
        self.pool = [self.feed("x", "f32", b, 3), self.feed("y", "f32", b, 3), self.feed("z", "f32", b, 2, 3), self.feed("k", "f32", b)]
        self.indices = self.feed("i", "i32", b)
        draw = lambda *shape: np.array([rng.gauss(0, 1) for _ in range(int(np.prod(shape)))]).reshape(shape).tolist()
        self.pool += [self.constant(draw(3), "f32"), self.constant(draw(3, 3), "f32"), self.constant(draw(), "f32"), self.constant(draw(2, 3), "f32")]
        self.x = self.pool[0]
        self.makers = [getattr(self, name) for name in dir(self) if name.startswith("make_")]
        failures = 0
        while len(self.fetched) < NODES and failures < 2000:
            value = rng.choice(self.makers)()
            if value is None or len(value.shape) > 4 or sum(isinstance(s, B) for s in value.shape) > 1 or self.size(value) > 400:
                failures += 1
                continue
            self.fetched.append(value)
            if value.element == "f32":
                self.pool.append(value)

    @staticmethod
    def size(value):
        return int(np.prod([s.scale * SHARE * REPLICAS if isinstance(s, B) else s for s in value.shape]))

    # ---- Nodes ---------------------------------------------------------------------------------------------

    def feed(self, name, element, *shape):
        sizes = ", ".join("?" if isinstance(s, B) else str(s) for s in shape)
        value = Value(name, element, shape)
        self.lines.append(f"%{name} = dfg.placeholder {{shape = #dfg.shape<[{sizes}]>}} : () -> {value.type} loc(\"{name}\")")
        return value

    def constant(self, array, element):
        self.counter += 1
        value = Value(f"c{self.counter}", element, np.shape(array))
        text = json.dumps(array) if np.size(array) else ""
        self.lines.append(f"%{value.name} = dfg.const dense<{text}> : {value.type} : {value.type} loc(\"{value.name}\")")
        return value

    def ints(self, *numbers):
        return self.constant(list(numbers), "i32")

    def node(self, op, operands, element, shape, attributes=""):
        self.counter += 1
        value = Value(f"n{self.counter}", element, shape)
        names = ", ".join("%" + operand.name for operand in operands)
        types = ", ".join(operand.type for operand in operands)
        self.lines.append(f"%{value.name} = dfg.{op} {names} {attributes} : ({types}) -> {value.type} loc(\"{value.name}\")")
        return value

    def pick(self, rank=None, at_least=0):
        found = [v for v in self.pool if len(v.shape) >= at_least and (rank is None or len(v.shape) == rank)]
        # New ones twice as often, so that expressions grow.
        found += found[len(found) // 2:]
        return self.rng.choice(found) if found else None

    def batch_axis(self, value):
        return next((a for a, s in enumerate(value.shape) if isinstance(s, B)), None)

    def shape_operand(self, sizes):
        """A shape, with the batch's size taken from x."""
        if not any(isinstance(s, B) for s in sizes):
            return self.ints(*sizes)
        n = self.batch_size()
        parts = [self.node("mul", (n, self.constant(s.scale, "i32")), "i32", ()) if isinstance(s, B) else self.constant(s, "i32") for s in sizes]
        return self.node("pack", parts, "i32", (len(parts),), "{axis = 0 : i64}")

    def batch_size(self):
        shape = self.node("shape", (self.x,), "i32", (2,))
        return self.node("strided_slice", (shape, self.ints(0), self.ints(1), self.ints(1)), "i32", (), "{shrink_axis_mask = 1 : i64}")

    # ---- Kinds of expressions --------------------------------------------------------------------------------

    def make_unary(self):
        v = self.pick()
        return self.node(self.rng.choice(["tanh", "neg", "square", "abs", "relu", "sigmoid", "identity", "sign", "softplus"]), (v,), "f32", v.shape)

    def make_root(self):
        v = self.pick()
        return self.node("sqrt", (self.node("abs", (v,), "f32", v.shape),), "f32", v.shape)

    def make_like(self):
        v = self.pick()
        return self.node(self.rng.choice(["ones_like", "zeros_like"]), (v,), "f32", v.shape)

    def broadcast(self, *values):
        shape = []
        for axis in range(-max(len(v.shape) for v in values), 0):
            sizes = {v.shape[axis] for v in values if len(v.shape) >= -axis} - {1}
            if len(sizes) > 1:
                return None
            shape.append(sizes.pop() if sizes else 1)
        return tuple(shape)

    def make_binary(self):
        v, w = self.pick(), self.pick()
        shape = self.broadcast(v, w)
        if shape is None:
            return None
        return self.node(self.rng.choice(["add_v2", "sub", "mul", "maximum", "minimum", "squared_difference"]), (v, w), "f32", shape)

    make_binary_again = make_binary_more = make_binary

    def make_quotient(self):
        v, w = self.pick(), self.pick()
        shape = self.broadcast(v, w)
        if shape is None:
            return None
        return self.node("div_no_nan", (v, w), "f32", shape)

    def make_per_batch(self):
        v = self.pick()
        n = self.node("cast", (self.batch_size(),), "f32", ())
        return self.node(self.rng.choice(["real_div", "mul", "div_no_nan"]), (v, n), "f32", v.shape)

    def make_select(self):
        c, v, w = self.pick(), self.pick(), self.pick()
        shape = self.broadcast(c, v, w)
        if shape is None:
            return None
        zero = self.constant(0.0, "f32")
        return self.node("select_v2", (self.node("greater", (c, zero), "i1", c.shape), v, w), "f32", shape)

    def make_reduction(self):
        v = self.pick(at_least=1)
        axes = sorted(self.rng.sample(range(len(v.shape)), self.rng.randint(1, len(v.shape))))
        keep = self.rng.random() < 0.4
        shape = [1 if a in axes else s for a, s in enumerate(v.shape) if keep or a not in axes]
        op = self.rng.choice(["sum", "sum", "mean", "mean", "max", "min", "prod"])
        given = [a - len(v.shape) if self.rng.random() < 0.3 else a for a in axes]
        return self.node(op, (v, self.ints(*given)), "f32", shape, "{keep_dims = %s}" % ("true" if keep else "false"))

    make_reduction_again = make_reduction

    def make_l2(self):
        return self.node("l2_loss", (self.pick(at_least=1),), "f32", ())

    def make_arg(self):
        v = self.pick(at_least=1)
        axis = self.rng.randrange(len(v.shape))
        return self.node("arg_max", (v, self.constant(axis, "i32")), "i64", v.shape[:axis] + v.shape[axis + 1:])

    def make_product(self):
        v, w = self.pick(rank=2), self.pick(rank=2)
        ta, tb = self.rng.random() < 0.5, self.rng.random() < 0.5
        a, b = v.shape[::-1] if ta else v.shape, w.shape[::-1] if tb else w.shape
        if a[1] != b[0]:
            return None
        flags = "{transpose_a = %s, transpose_b = %s}" % (str(ta).lower(), str(tb).lower())
        return self.node("mat_mul", (v, w), "f32", (a[0], b[1]), flags)

    make_product_again = make_product_more = make_product

    def make_batch_product(self):
        v, w = self.pick(rank=3), self.pick(rank=3)
        ta, tb = self.rng.random() < 0.5, self.rng.random() < 0.5
        if v is None or w is None or v.shape[0] != w.shape[0]:
            return None
        a, b = v.shape[:0:-1] if ta else v.shape[1:], w.shape[:0:-1] if tb else w.shape[1:]
        if a[1] != b[0]:
            return None
        flags = "{adj_x = %s, adj_y = %s}" % (str(ta).lower(), str(tb).lower())
        return self.node("batch_mat_mul_v2", (v, w), "f32", (v.shape[0], a[0], b[1]), flags)

    def make_transpose(self):
        v = self.pick(at_least=2)
        permutation = self.rng.sample(range(len(v.shape)), len(v.shape))
        return self.node("transpose", (v, self.ints(*permutation)), "f32", [v.shape[a] for a in permutation])

    def make_reshape(self):
        v = self.pick(at_least=1)
        total = int(np.prod([s.scale if isinstance(s, B) else s for s in v.shape]))
        batched = self.batch_axis(v) is not None
        factors = [f for f in (1, 2, 3, 6) if total % f == 0]
        sizes = [self.rng.choice(factors)]
        rest = total // sizes[0]
        if self.rng.random() < 0.4:
            more = self.rng.choice([f for f in (1, 2, 3) if rest % f == 0])
            sizes.append(more)
            rest //= more
        at = self.rng.randint(0, len(sizes))
        sizes.insert(at, B(rest) if batched else rest)
        given = self.shape_operand(sizes)
        if self.rng.random() < 0.5:
            given = self.ints(*[-1 if a == at else s for a, s in enumerate(sizes)])
        return self.node("reshape", (v, given), "f32", sizes)

    make_reshape_again = make_reshape

    def make_expand(self):
        v = self.pick()
        axis = self.rng.randint(0, len(v.shape))
        return self.node("expand_dims", (v, self.constant(axis, "i32")), "f32", v.shape[:axis] + (1,) + v.shape[axis:])

    def make_concat(self):
        v = self.pick(at_least=1)
        axis = self.rng.randrange(len(v.shape))
        others = [w for w in self.pool if len(w.shape) == len(v.shape)
                  and all(a == axis or s == t for a, (s, t) in enumerate(zip(v.shape, w.shape)))
                  and isinstance(w.shape[axis], B) == isinstance(v.shape[axis], B)]
        w = self.rng.choice(others)
        s, t = v.shape[axis], w.shape[axis]
        size = B(s.scale + t.scale) if isinstance(s, B) else s + t
        return self.node("concat_v2", (v, w, self.constant(axis, "i32")), "f32", v.shape[:axis] + (size,) + v.shape[axis + 1:])

    make_concat_again = make_concat

    def make_pack(self):
        v = self.pick()
        w = self.rng.choice([w for w in self.pool if w.shape == v.shape])
        axis = self.rng.randint(0, len(v.shape))
        return self.node("pack", (v, w), "f32", v.shape[:axis] + (2,) + v.shape[axis:], "{axis = %d : i64}" % axis)

    def make_tile(self):
        v = self.pick(at_least=1)
        axis = self.rng.randrange(len(v.shape))
        size = v.shape[axis]
        multiples = [2 if a == axis else 1 for a in range(len(v.shape))]
        return self.node("tile", (v, self.ints(*multiples)), "f32",
                         v.shape[:axis] + (B(2 * size.scale) if isinstance(size, B) else 2 * size,) + v.shape[axis + 1:])

    def make_slice(self):
        v = self.pick(at_least=1)
        axis = self.rng.randrange(len(v.shape))
        size = v.shape[axis]
        begin, sizes = [0] * len(v.shape), [-1] * len(v.shape)
        if isinstance(size, B):
            if size.scale % 2:
                return None
            half = self.node("mul", (self.batch_size(), self.constant(size.scale // 2, "i32")), "i32", ())
            first = self.constant(0, "i32")
            start = self.node("pack", [half if a == axis and self.rng.random() < 0.5 else first for a in range(len(v.shape))], "i32", (len(v.shape),),
                              "{axis = 0 : i64}")
            length = self.node("pack", [half if a == axis else self.constant(-1, "i32") for a in range(len(v.shape))], "i32", (len(v.shape),),
                               "{axis = 0 : i64}")
            return self.node("slice", (v, start, length), "f32", v.shape[:axis] + (B(size.scale // 2),) + v.shape[axis + 1:])
        if size < 2:
            return None
        begin[axis] = self.rng.randrange(size)
        return self.node("slice", (v, self.ints(*begin), self.ints(*sizes)), "f32", v.shape[:axis] + (size - begin[axis],) + v.shape[axis + 1:])

    def make_strided(self):
        v = self.pick(at_least=2)
        if not isinstance(v.shape[0], B):
            return None
        at = self.rng.choice([s for s in range(v.shape[1].scale if isinstance(v.shape[1], B) else v.shape[1])])
        return self.node("strided_slice", (v, self.ints(0, at), self.ints(0, at + 1), self.ints(1, 1)), "f32", v.shape[:1] + v.shape[2:],
                         "{begin_mask = 1 : i64, end_mask = 1 : i64, shrink_axis_mask = 2 : i64}")

    def make_row(self):
        """A row of the first axis, perhaps of the batch."""
        v = self.pick(at_least=1)
        return self.node("strided_slice", (v, self.ints(0), self.ints(1), self.ints(1)), "f32", v.shape[1:], "{shrink_axis_mask = 1 : i64}")

    def make_gather(self):
        v = self.pick(at_least=1)
        axis = self.rng.randrange(len(v.shape))
        indices = self.indices if v.shape[axis] == 3 and self.rng.random() < 0.6 else self.ints(0, 0)
        return self.node("gather_v2", (v, indices, self.constant(axis, "i32")), "f32", v.shape[:axis] + indices.shape + v.shape[axis + 1:],
                         "{batch_dims = 0 : i64}")

    def make_gather_per_example(self):
        v = self.pick(rank=2)
        if v.shape != (B(1), 3):
            return None
        indices = self.node("expand_dims", (self.indices, self.constant(1, "i32")), "i32", (B(1), 1))
        return self.node("gather_v2", (v, indices, self.constant(1, "i32")), "f32", (B(1), 1), "{batch_dims = 1 : i64}")

    def make_along(self):
        v = self.pick(at_least=1)
        axis = self.rng.randrange(len(v.shape))
        op = self.rng.choice(["reverse_v2", "cumsum"])
        return self.node(op, (v, self.ints(axis) if op == "reverse_v2" else self.constant(axis, "i32")), "f32", v.shape)

    def make_softmax(self):
        v = self.pick(rank=2)
        return self.node(self.rng.choice(["softmax", "log_softmax"]), (v,), "f32", v.shape)

    def make_pad(self):
        v = self.pick(at_least=1)
        axis = self.rng.randrange(len(v.shape))
        if isinstance(v.shape[axis], B):
            return None
        paddings = self.constant([[1, 0] if a == axis else [0, 0] for a in range(len(v.shape))], "i32")
        return self.node("pad", (v, paddings), "f32", v.shape[:axis] + (v.shape[axis] + 1,) + v.shape[axis + 1:])

    def make_fill(self):
        v = self.pick(rank=0)
        sizes = self.rng.choice([(B(1),), (B(1), 3), (2, B(1)), (B(2),)])
        return self.node("fill", (self.shape_operand(sizes), v), "f32", sizes)

    def make_broadcast_to(self):
        v = self.pick(at_least=1)
        if self.batch_axis(v) is not None:
            return None
        return self.node("broadcast_to", (v, self.shape_operand((B(1),) + v.shape)), "f32", (B(1),) + v.shape)

    def make_range(self):
        r = self.node("range", (self.constant(0, "i32"), self.batch_size(), self.constant(1, "i32")), "i32", (B(1),))
        return self.node("cast", (r,), "f32", (B(1),))

    def make_one_hot(self):
        return self.node("one_hot", (self.indices, self.constant(3, "i32"), self.constant(1.0, "f32"), self.constant(0.0, "f32")), "f32", (B(1), 3),
                         "{axis = -1 : i64}")

    def make_segments(self):
        v = self.pick(at_least=1)
        if v.shape[0] != B(1):
            return None
        return self.node("unsorted_segment_sum", (v, self.indices, self.constant(3, "i32")), "f32", (3,) + v.shape[1:])

    def rows(self):
        v = self.pick(at_least=1)
        if v.shape[0] != B(1) or self.batch_axis(v) != 0:
            return None, None
        return v, self.node("expand_dims", (self.indices, self.constant(1, "i32")), "i32", (B(1), 1))

    def make_scatter(self):
        v, indices = self.rows()
        return v and self.node("scatter_nd", (indices, v, self.ints(3, *v.shape[1:])), "f32", (3,) + v.shape[1:])

    def make_tensor_scatter(self):
        v, indices = self.rows()
        bases = [w for w in self.pool if v and w.shape == (3,) + v.shape[1:]]
        if not bases:
            return None
        return self.node(self.rng.choice(["tensor_scatter_add", "tensor_scatter_sub"]), (self.rng.choice(bases), indices, v), "f32", (3,) + v.shape[1:])

    def print(self):
        body = "\n".join("  " + line for line in self.lines)
        return "module {\ndfg.graph {\n" + body + "\n}\n}\n"


def feeds(seed, rows):
    rng = np.random.default_rng(seed)
    normal = lambda *shape: rng.normal(size=(rows, *shape)).astype(np.float32)
    return {"x": normal(3), "y": normal(3), "z": normal(2, 3), "k": normal(), "i": rng.integers(0, 3, rows).astype(np.int32)}


def evaluate(folder, name, rows, data, fetched):
    executable, out = folder / name, folder / f"{name}.npz"
    if not executable.exists():
        flags = [flag for value in fetched for flag in ("--fetch", value.name + ":0")]
        must([DISTC, "compile", folder / "graph.pb", "--strategy", "AllReduce", "--replicas", 1, "--batch", rows, "-o", executable, *flags], timeout=600)
    np.savez(folder / "data.npz", **data)
    must([executable, "--eval", "--quiet", "--data", folder / "data.npz", "--export-npz", out])
    with np.load(out) as arrays:
        return {value.name: arrays[value.name + ":0"].reshape([s.scale * rows if isinstance(s, B) else s for s in value.shape]) for value in fetched}


def put_together(flow, shares):
    """The whole batch's value; None where the flow does not say."""
    match = re.fullmatch(r"(replicated|sharded\((\d+)(?: in segments ([\d+]+))?\)|partial sum|partial mean|local)(?:, uniform)?(, zero)?(?: \* N\^(-?\d+))?(?: \* \?)?", flow)
    assert match, flow
    kind, axis, segments, zero, scale = match.groups()
    if kind == "local" or flow.endswith("?"):
        return None
    factor = float(REPLICAS) ** int(scale or 0)
    if kind == "replicated":
        return shares[0] * factor if np.allclose(shares[0], shares[1], rtol=1e-4, atol=1e-5, equal_nan=True) else shares[0] + np.nan
    if kind == "partial sum":
        # The explanation's power counts from the mean.
        return sum(shares) if not scale else sum(shares) / REPLICAS * factor
    if kind == "partial mean":
        return sum(shares) / REPLICAS * factor
    axis, parts = int(axis), []
    sizes = [int(s) * SHARE for s in segments.split("+")] if segments else [shares[0].shape[axis]]
    for begin, size in zip(np.cumsum([0] + sizes), sizes):
        parts += [np.take(share, range(begin, begin + size), axis) for share in shares]
    return np.concatenate(parts, axis) * factor


def check_graph(seed, number, counts):
    found = []
    with Folder() as folder:
        rng = random.Random(f"{seed} {number}")
        expressions = Expressions(rng)
        (folder / "graph.mlir").write_text(expressions.print())
        must([TRANSLATE, "--export-graphdef", folder / "graph.mlir", "-o", folder / "graph.pb"])
        shown = must([OPT, folder / "graph.mlir", "--dfg-infer-shapes", "--test-batch-flow", "--mlir-print-debuginfo", "--mlir-print-local-scope"]).stdout
        flows = {match[2]: match[1] for match in re.finditer(r'flow = "([^"]*)".* loc\("(\w+)"\)$', shown, re.M)}
        data = feeds(rng.randrange(10 ** 6), SHARE * REPLICAS)
        whole = evaluate(folder, "whole", SHARE * REPLICAS, data, expressions.fetched)
        shares = [evaluate(folder, "share", SHARE, {name: array[r * SHARE:(r + 1) * SHARE] for name, array in data.items()}, expressions.fetched)
                  for r in range(REPLICAS)]
        for value in expressions.fetched:
            got = put_together(flows[value.name], [share[value.name] for share in shares])
            counts[flows[value.name].split(" *")[0].split("(")[0]] = counts.get(flows[value.name].split(" *")[0].split("(")[0], 0) + 1
            want = whole[value.name]
            if got is None or not np.all(np.isfinite(want)):
                continue
            if got.shape != want.shape or not np.allclose(got, want, rtol=1e-3, atol=1e-4 * max(1, np.max(np.abs(want)))):
                found.append(f"{value.name} is {flows[value.name]}, but the shares give\n{got}, not\n{want}")
        if found:
            found.append(shown)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="number of the first graph")
    arguments = parser.parse_args()
    need_tools(DISTC, OPT, TRANSLATE)
    checks, counts = Checks(), {}
    for number in range(arguments.first, arguments.first + arguments.count):
        checks.check(f"graph {number} of seed {arguments.seed}", check_graph, arguments.seed, number, counts)
    print(counts)
    checks.exit()


if __name__ == "__main__":
    main()
