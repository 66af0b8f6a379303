"""Random arithmetic of whole numbers that are known when a graph is compiled: constants, sizes of tensors, and the batch's size, which is a symbol
until it is bound. What the compiler makes of them (their elements are followed through the graph) is what TensorFlow computes, by one replica and by
two; or it refuses an expression by name.

  random_sizes_tensorflow.py [--seed S] [--packs N] [--count N: expressions a pack] [--verbose]
"""
import argparse
import random
import re

import numpy as np

from support import DISTC, Checks, Folder, need_tensorflow, need_tools, run, trained

BATCH, COLUMNS = 12, 3
LARGEST = 1 << 20  # what float32 has exactly, with room
PLACES = (1, 2)


class Expression:
    """A few operations on whole numbers; the last value has a shape that no batch is in."""

    def __init__(self, tf, rng, x):
        self.tf, self.rng, self.x = tf, rng, x
        self.steps = []
        self.type = rng.choice([tf.int32, tf.int32, tf.int64])
        self.values = [self.source() for _ in range(rng.randint(1, 3))]
        for _ in range(rng.randint(1, 7)):
            self.step()
        self.result = self.values[-1]

    def source(self):
        tf, rng = self.tf, self.rng
        cast = lambda value: tf.cast(value, self.type)  # noqa: E731
        return rng.choice([
            lambda: tf.constant([rng.randint(-3, 6) for _ in range(rng.randint(1, 5))], self.type),
            lambda: tf.constant(np.array([[rng.randint(-3, 6) for _ in range(3)] for _ in range(rng.randint(1, 3))]), self.type),
            lambda: tf.constant(rng.randint(-2, 7), self.type),
            lambda: cast(tf.shape(self.x)), lambda: tf.shape(self.x, out_type=self.type)[0], lambda: cast(tf.size(self.x)),
            lambda: cast(tf.rank(self.x)), lambda: tf.range(rng.randint(1, 5), dtype=self.type),
            lambda: tf.ones([rng.randint(1, 3), 3], self.type), lambda: tf.zeros([rng.randint(1, 4)], self.type),
            lambda: tf.fill([rng.randint(1, 4)], tf.shape(self.x, out_type=self.type)[0]),
        ])()

    def axis(self, value):
        return self.rng.randrange(-value.shape.rank, value.shape.rank)

    def step(self):
        tf, rng = self.tf, self.rng
        a, b = rng.choice(self.values), rng.choice(self.values)
        flag = lambda: rng.random() < 0.5  # noqa: E731
        through = rng.choice([tf.float32, tf.float64, tf.int64, tf.int32, tf.bool, tf.int8, tf.int16, tf.float16, tf.bfloat16])
        name, make = rng.choice([
            ("add", lambda: a + b), ("sub", lambda: a - b), ("mul", lambda: a * b), ("floordiv", lambda: a // tf.maximum(tf.abs(b), 1)),
            ("mod", lambda: a % tf.maximum(tf.abs(b), 1)), ("maximum", lambda: tf.maximum(a, b)), ("minimum", lambda: tf.minimum(a, b)),
            ("neg", lambda: -a), ("abs", lambda: tf.abs(a)), ("square", lambda: a * a), ("sign", lambda: tf.sign(a)),
            ("cumsum", lambda: tf.cumsum(a, self.axis(a), exclusive=flag(), reverse=flag())),
            ("cumprod", lambda: tf.math.cumprod(a, self.axis(a), exclusive=flag(), reverse=flag())),
            ("reverse", lambda: tf.reverse(a, [self.axis(a)])), ("roll", lambda: tf.roll(a, rng.randint(-3, 3), self.axis(a))),
            ("concat", lambda: tf.concat([a, b], self.axis(a))), ("stack", lambda: tf.stack([a, b], rng.choice([0, -1]))),
            ("unstack", lambda: rng.choice(tf.unstack(a, axis=self.axis(a)))), ("slice", lambda: a[rng.randint(0, 1):]),
            ("strided", lambda: a[::rng.choice([-1, 2, -2])]), ("element", lambda: a[rng.choice([0, -1])]),
            ("last column", lambda: a[..., -1]), ("new axis", lambda: a[..., tf.newaxis]), ("squeeze", lambda: tf.squeeze(a)),
            ("reshape", lambda: tf.reshape(a, rng.choice([[-1], [1, -1], [-1, 1], [3, -1]]))), ("transpose", lambda: tf.transpose(a)),
            ("tile", lambda: tf.tile(a, [rng.randint(1, 2)] * a.shape.rank)), ("pad", lambda: tf.pad(a, [[1, rng.randint(0, 1)]] * a.shape.rank)),
            ("gather", lambda: tf.gather(a, [rng.randint(0, 1), 0], axis=self.axis(a))), ("split", lambda: tf.split(a, rng.choice([1, 2, 3]), self.axis(a))[-1]),
            ("sum", lambda: tf.reduce_sum(a, self.axis(a), keepdims=flag())), ("prod", lambda: tf.reduce_prod(a)), ("max", lambda: tf.reduce_max(a, self.axis(a))),
            ("min", lambda: tf.reduce_min(a)), ("mean", lambda: tf.reduce_mean(a)), ("argmax", lambda: tf.argmax(a, self.axis(a), output_type=self.type)),
            ("equal", lambda: tf.cast(tf.equal(a, b), self.type)), ("less", lambda: tf.cast(a < b, self.type)),
            ("where", lambda: tf.where_v2(a > b, a, b)), ("select", lambda: tf.where_v2(a > 1, a, tf.zeros_like(a))),
            ("all", lambda: tf.cast(tf.reduce_all(a > 0), self.type)), ("any", lambda: tf.cast(tf.reduce_any(a > b), self.type)),
            ("through", lambda: tf.cast(tf.cast(a, through), self.type)), ("half", lambda: tf.cast(tf.cast(a, tf.float32) * 0.5, self.type)),
            ("divide", lambda: tf.cast(tf.math.ceil(tf.cast(a, tf.float64) / 4.0), self.type)), ("zeros_like", lambda: tf.zeros_like(a)),
            ("ones_like", lambda: tf.ones_like(a)), ("shape", lambda: tf.shape(a, out_type=self.type)), ("size", lambda: tf.size(a, out_type=self.type)),
            ("broadcast", lambda: tf.broadcast_to(a, [2] + a.shape.as_list())), ("one_hot", lambda: tf.one_hot(a, 4, dtype=self.type)),
            ("sort", lambda: tf.sort(a, axis=-1)), ("top", lambda: tf.nn.top_k(a, 1)[0]), ("unique", lambda: tf.unique(tf.reshape(a, [-1]))[1]),
            ("bias", lambda: tf.nn.bias_add(a, tf.range(a.shape[-1], dtype=self.type))), ("softmax", lambda: tf.cast(tf.nn.softmax(tf.cast(a, tf.float32)) * 8, self.type)),
            ("clip", lambda: tf.clip_by_value(a, 0, 3)), ("band", lambda: tf.linalg.band_part(a, 0, -1)), ("matmul", lambda: tf.matmul(a, a, transpose_b=True)),
            ("tensor scatter", lambda: tf.tensor_scatter_nd_update(a, [[0]], b[:1])), ("segments", lambda: tf.math.unsorted_segment_sum(a, tf.zeros([a.shape[0]], tf.int32), 2)),
            ("truncatediv", lambda: tf.truncatediv(a, tf.where_v2(tf.equal(b, 0), tf.ones_like(b), b))), ("large", lambda: a * 1000), ("addn", lambda: tf.add_n([a, a, a])),
            ("logsumexp", lambda: tf.cast(tf.math.cumulative_logsumexp(tf.cast(a, tf.float32)) * 4, self.type)), ("difference", lambda: tf.math.squared_difference(a, b)),
            ("gather nd", lambda: tf.gather_nd(a, [[0], [a.shape[0] - 1]])), ("diagonal", lambda: tf.linalg.diag(a)), ("trace", lambda: tf.linalg.diag_part(a)),
            ("invert", lambda: tf.math.invert_permutation(tf.argsort(a))), ("nonzero", lambda: tf.math.count_nonzero(a, self.axis(a), dtype=self.type)),
            ("dynamic size", lambda: tf.shape(tf.zeros(tf.concat([tf.abs(a[:1]) % 5 + 1, [2]], 0)), out_type=self.type)),
            ("identity", lambda: tf.stop_gradient(tf.identity(a))), ("batch", lambda: a + tf.shape(self.x, out_type=self.type)[0]),
            ("meshgrid", lambda: tf.meshgrid(a, b)[rng.randint(0, 1)]), ("causal", lambda: a[:0, 0, 0] if a.shape.rank < 2 else tf.cast(tf.cumsum(tf.ones_like(a), -2) >= tf.cumsum(tf.ones_like(a), -1), self.type)),
        ])
        try:
            value = make()
        except (ValueError, TypeError, IndexError):
            return
        if value.dtype != self.type or not value.shape.is_fully_defined() or not 0 < value.shape.num_elements() <= 64 or value.shape.rank > 4:
            return
        self.steps.append(f"{name}: {value.op.name} {value.shape.as_list()}")
        self.values.append(value)


def write_pack(tf, seed, scopes, path):
    """Writes a graph each variable v of which is an expression's value after a step; gives, by scope, what the expressions are and their values."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, COLUMNS], "x")
        made = {}
        for scope in scopes:
            with tf.name_scope(scope):
                expression = Expression(tf, random.Random(f"sizes {seed} {scope}"), x)
                made[scope] = expression, tf.cast(expression.result, tf.float32, name="last")
        wanted = {}
        with tf.Session() as session:
            for scope, (expression, last) in made.items():
                try:
                    wanted[scope] = session.run(last, {x: np.zeros((BATCH, COLUMNS), np.float32)})
                except tf.errors.OpError:
                    pass
        wanted = {scope: value for scope, value in wanted.items() if np.all(np.abs(value) < LARGEST)}
        losses = [tf.reduce_mean(x * tf.get_variable("w", [COLUMNS], initializer=tf.zeros_initializer()))]
        for scope, value in wanted.items():
            variable = tf.get_variable(f"v/{scope}", value.shape, initializer=tf.zeros_initializer())
            with tf.name_scope(f"{scope}/loss/"):
                losses.append(tf.reduce_sum(variable * made[scope][1]))
        tf.add_n(losses, "loss")
        tf.train.GradientDescentOptimizer(-1.0).minimize(graph.get_tensor_by_name("loss:0"), name="train")
        tf.group(tf.global_variables_initializer(), name="init")
        tf.train.export_meta_graph(str(path))
    return {scope: (made[scope][0].steps, value) for scope, value in wanted.items()}


def check_pack(tf, flags, number, replicas):
    scopes = [f"e{number * flags.count + i}" for i in range(flags.count)]
    refused = 0
    with Folder() as folder:
        while True:
            expressions = write_pack(tf, flags.seed, scopes, folder / "graph.meta")
            compiled = run([DISTC, "compile", folder / "graph.meta", "--replicas", replicas, "--batch", BATCH, "--train-op", "train", "--loss", "loss:0", "--init-op", "init",
                            "-o", folder / "train"])
            if compiled.returncode == 0:
                break
            named = [scope for scope in re.findall(r"\b(e\d+)/", compiled.out) if scope in scopes]
            if compiled.returncode != 1 or not named:
                return [f"exit status {compiled.returncode}: {compiled.out[-800:]}"]
            if flags.verbose:
                print("        refused:", compiled.out.splitlines()[0][-300:], "|", expressions.get(named[0], [named[0]])[0])
            scopes.remove(named[0])
            refused += 1
        np.savez(folder / "data.npz", x=np.zeros((BATCH, COLUMNS), np.float32))
        _, final = trained(folder / "train", folder / "data.npz", 1)
        print(f"        {len(expressions)} expressions compared, {refused} refused by name")
        return [f"{scope} ({'; '.join(steps)}) is\n{final['v/' + scope]}, not\n{value}" for scope, (steps, value) in expressions.items()
                if not np.array_equal(final["v/" + scope], value)]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--first", type=int, default=0, help="number of the first pack")
    arguments.add_argument("--packs", type=int, default=6)
    arguments.add_argument("--count", type=int, default=25, help="expressions a pack")
    arguments.add_argument("--verbose", action="store_true", help="says what was refused")
    flags = arguments.parse_args()
    tf, _ = need_tensorflow()
    tf.disable_eager_execution()
    need_tools(DISTC)
    checks = Checks(share=0.5)
    for number in range(flags.first, flags.first + flags.packs):
        for replicas in PLACES:
            checks.check(f"pack {number} of seed {flags.seed} x{replicas}", check_pack, tf, flags, number, replicas)
    checks.exit()


if __name__ == "__main__":
    main()
