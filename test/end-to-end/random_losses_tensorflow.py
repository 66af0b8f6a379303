"""Random losses, with TensorFlow's gradients of them: two and three replicas train as one does and as TensorFlow does, whatever of a
loss depends on other examples of the batch, and so does a program of --pad-batch on a last batch of fewer examples.

  random_losses_tensorflow.py [--seed S] [--count N]
"""
import argparse
import random

import numpy as np

from support import DISTC, Checks, Folder, must, need_tensorflow, need_tools, read_by, run, trained

BATCH, STEPS = 36, 2
RATE = 0.1
PADDED_REFUSALS = ("for a batch with fewer rows (--pad-batch)", "only known when the program runs", "no placeholder has a batch of open size")
FIXED_REFUSALS = ("with coupling=replica", "is a sum over the batch, which the graph fixes", "still carries the batch's axis", "depends on the batch's size")


class Losses:
    """Random expressions of x [b, 3], y [b], k [b], i [b] and variables v [3], m [3, 3], t [5, 3]."""

    def __init__(self, tf, rng, batch=None):
        self.tf, self.rng = tf, rng
        self.x = tf.placeholder(tf.float32, [batch, 3], "x")
        self.y = tf.placeholder(tf.float32, [batch], "y")
        self.k = tf.placeholder(tf.float32, [batch], "k")
        self.i = tf.placeholder(tf.int32, [batch], "i")
        numbers = np.random.default_rng(rng.randrange(10 ** 6))
        make = lambda name, *shape: tf.get_variable(name, initializer=numbers.normal(size=shape).astype(np.float32) * 0.5, use_resource=True)
        self.v, self.m, self.t = make("v", 3), make("m", 3, 3), make("t", 5, 3)

    def rows(self):
        """Of each example a vector of 3."""
        tf = self.tf
        return self.rng.choice([
            lambda: tf.matmul(self.x, self.m),
            lambda: tf.tanh(tf.matmul(self.x, self.m) + self.v),
            lambda: tf.nn.embedding_lookup(self.t, self.i),
            lambda: tf.nn.embedding_lookup(self.t, self.i) * self.x,
            lambda: self.x * self.v,
            lambda: tf.nn.softmax(tf.matmul(self.x, self.m)),
            lambda: tf.transpose(tf.matmul(self.m, self.x, transpose_b=True)),
            lambda: tf.reshape(tf.tile(tf.matmul(self.x, self.m), [1, 2]), [-1, 2, 3])[:, 1],
            lambda: tf.concat([self.x * self.v, tf.matmul(self.x, self.m)], 1)[:, 2:5],
            lambda: tf.split(tf.concat([self.x * self.v, tf.matmul(self.x, self.m)], 0), 2)[1],
            lambda: tf.nn.relu(self.x * self.v) - tf.one_hot(self.i % 3, 3),
            lambda: self.x - tf.reduce_mean(self.x * self.v, 0),
            lambda: tf.cumsum(self.x * self.v, self.rng.choice([0, 1])),
            lambda: tf.reverse(self.x * self.v, [self.rng.choice([0, 1])]),
            lambda: tf.gather(self.x * self.v, self.i % 3),
            lambda: self.x * self.v * tf.expand_dims(tf.cast(tf.range(tf.shape(self.x)[0]), tf.float32), 1),
        ])()

    def losses(self):
        """Of each example a number."""
        tf, rows = self.tf, self.rows()
        return self.rng.choice([
            lambda: tf.square(tf.reduce_sum(rows, 1) - self.y),
            lambda: tf.reduce_sum(tf.square(rows), 1),
            lambda: tf.reduce_max(rows, 1),
            lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.i % 3, logits=rows),
            lambda: tf.nn.softmax_cross_entropy_with_logits(labels=tf.nn.softmax(self.x), logits=rows),
            lambda: tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid(self.y), logits=rows[:, 0]),
            lambda: tf.abs(rows[:, 1] - self.y) * self.k,
            lambda: tf.where(self.k > 0, rows[:, 0], tf.zeros_like(self.k)),
        ])()

    def usual(self):
        """What sums and means of gradients mend."""
        tf, losses = self.tf, self.losses()
        size = tf.cast(tf.size(losses), tf.float32)
        return self.rng.choice([
            lambda: tf.reduce_mean(losses),
            lambda: tf.reduce_sum(losses),
            lambda: tf.reduce_sum(losses) / size,
            lambda: tf.math.divide_no_nan(tf.reduce_sum(losses), size),
            lambda: tf.losses.compute_weighted_loss(losses),
            lambda: tf.reduce_mean(losses * self.k),
            lambda: tf.reduce_mean(losses) + 0.01 * tf.nn.l2_loss(self.m),
            lambda: tf.reduce_mean(losses) * 3.0 + tf.reduce_mean(self.x * self.v),
        ])()

    def fixed(self):
        """Of a graph that fixes its batch: means, which say what a sum over it is divided by, or anything."""
        tf = self.tf
        if self.rng.random() < 0.6:
            return self.unusual()
        return tf.reduce_mean(self.losses()) + self.rng.choice([0.0, 0.01]) * tf.nn.l2_loss(self.m)

    def unusual(self):
        tf, losses = self.tf, self.losses()
        mean, total = tf.reduce_mean(losses), tf.reduce_sum(losses)
        return self.rng.choice([
            lambda: tf.reduce_sum(losses * self.k) / tf.reduce_sum(self.k),
            lambda: tf.sqrt(tf.abs(mean) + 1), lambda: tf.square(mean), lambda: mean * mean, lambda: tf.log1p(tf.abs(total)),
            lambda: tf.maximum(total, 1.0), lambda: mean + total, lambda: tf.reduce_max(losses), lambda: tf.reduce_logsumexp(losses),
            lambda: tf.norm(losses), lambda: tf.losses.compute_weighted_loss(losses, self.k),
            lambda: tf.reduce_sum(losses * tf.nn.softmax(self.k)), lambda: losses[0], lambda: tf.reduce_mean(losses[1:] - losses[:-1]),
            lambda: tf.reduce_mean(tf.square(tf.reduce_mean(losses * self.k) - self.v)),
            lambda: tf.reduce_sum(tf.math.unsorted_segment_sum(losses, self.i % 3, 3) * self.v),
            lambda: tf.reduce_sum(tf.tensor_scatter_nd_add(self.v, tf.expand_dims(self.i % 3, 1), losses)),
            lambda: tf.reduce_sum(tf.square(tf.scatter_nd(tf.expand_dims(self.i % 3, 1), losses, [3]))),
            lambda: tf.reduce_mean(tf.reduce_logsumexp(tf.matmul(self.rows(), self.rows(), transpose_b=True), 1)) + mean,
            lambda: tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=tf.range(tf.shape(self.x)[0]), logits=tf.matmul(self.rows(), self.rows(), transpose_b=True))),
            lambda: tf.reduce_mean(tf.square(self.normalized(self.rows()) - self.x)),
            lambda: tf.reduce_mean(tf.where_v2(mean > 0.2, losses, tf.square(losses))),
            lambda: tf.reduce_mean(tf.abs(tf.expand_dims(losses, 0) - tf.expand_dims(losses * self.k, 1))),
            lambda: total / tf.cast(tf.shape(self.x)[0] // 4 + 1, tf.float32),
        ])()

    def normalized(self, rows):
        """A batch normalization."""
        tf = self.tf
        mean, variance = tf.nn.moments(rows, [0])
        return tf.nn.batch_normalization(rows, mean, variance, self.v, None, 0.01)


def write_step(tf, rng, make_loss, path):
    """The graph of a training step; gives loss, training step, initializers, or None where the loss has no gradients."""
    loss = tf.identity(make_loss(), "loss")
    optimizer = rng.choice([tf.train.GradientDescentOptimizer(RATE), tf.train.AdamOptimizer(RATE)])
    gradients = [(g, v) for g, v in optimizer.compute_gradients(loss) if g is not None]
    if not gradients:
        return None
    if rng.random() < 0.3:
        clipped, _ = tf.clip_by_global_norm([g for g, _ in gradients], 0.5)
        gradients = list(zip(clipped, [v for _, v in gradients]))
    train = optimizer.apply_gradients(gradients, name="train")
    init = tf.global_variables_initializer()
    tf.train.export_meta_graph(str(path))
    return loss, train, init


def make_data(rng, rows=BATCH * STEPS):
    numbers = np.random.default_rng(rng.randrange(10 ** 6))
    return {"x": numbers.normal(size=(rows, 3)).astype(np.float32), "y": numbers.normal(size=rows).astype(np.float32),
            "k": numbers.normal(size=rows).astype(np.float32), "i": numbers.integers(0, 5, rows).astype(np.int32)}


def save_data(data, path, loss, train):
    read = read_by(train.op if hasattr(train, "op") else train, loss.op)
    np.savez(path, **{name: array for name, array in data.items() if name in read})


def train_in_tensorflow(tf, data, loss, train, init, batches=tuple(slice(step * BATCH, (step + 1) * BATCH) for step in range(STEPS))):
    nodes = {node.name for node in tf.get_default_graph().as_graph_def().node}
    want = []
    with tf.Session() as session:
        session.run(init)
        for batch in batches:
            feed = {f"{name}:0": array[batch] for name, array in data.items() if name in nodes}
            want.append(session.run(loss, feed))  # by itself: a read that no gradient needs may come behind the update
            session.run(train, feed)
        return want, {v.op.name: session.run(v) for v in tf.global_variables()}


def compile_step(folder, replicas, init, *flags):
    return run([DISTC, "compile", folder / "graph.meta", "--strategy", "AllReduce", "--replicas", replicas, "--batch", BATCH, "--train-op",
                "train", "--loss", "loss:0", "--init-op", init.name, "-o", folder / "train", *flags])


def compare(folder, replicas, want, variables, what=""):
    found = []
    losses, final = trained(folder / "train", folder / "data.npz", len(want))
    if not np.allclose(losses, want, rtol=1e-3, atol=1e-4):
        found.append(f"{replicas} replicas{what}: losses {losses}, not {want}")
    for name, value in variables.items():
        if name in final and not np.allclose(final[name], value, rtol=2e-3, atol=2e-4):
            found.append(f"{replicas} replicas{what}: variable {name} is\n{final[name]}, not\n{value}")
    return found


def check_loss(tf, seed, number, counts):
    rng = random.Random(f"{seed} {number}")
    with Folder() as folder, tf.Graph().as_default():
        made = Losses(tf, rng)
        step = write_step(tf, rng, made.unusual if rng.random() < 0.6 else made.usual, folder / "graph.meta")
        if not step:
            return []
        loss, train, init = step
        data = make_data(rng)
        save_data(data, folder / "data.npz", loss, train)
        want, variables = train_in_tensorflow(tf, data, loss, train, init)
        found = []
        for replicas in (1, 2, 3):
            compiled = compile_step(folder, replicas, init)
            counts["coupled"] = counts.get("coupled", 0) + ("depend on other replicas' examples" in compiled.out)
            if compiled.returncode != 0:
                return [f"{replicas} replicas: {compiled.out}"]
            found += compare(folder, replicas, want, variables)
        counts["equal"] = counts.get("equal", 0) + 1
        return found


def check_fixed(tf, seed, number, counts):
    """Replicas of a graph that fixes its batch train as one does whose batch is theirs together, or are refused."""
    found = []
    for replicas in (1, 2, 3):
        with Folder() as folder:
            graphs = []
            for batch in (BATCH, BATCH // replicas):
                rng = random.Random(f"fixed {seed} {number}")
                with tf.Graph().as_default() as graph:
                    graphs.append((graph, write_step(tf, rng, Losses(tf, rng, batch).fixed, folder / "graph.meta")))
                    data = make_data(rng)
            (graph, step), (_, share) = graphs
            if not step:
                return []
            loss, train, init = step
            with graph.as_default():
                save_data(data, folder / "data.npz", loss, train)
                want, variables = train_in_tensorflow(tf, data, loss, train, init)
            compiled = compile_step(folder, replicas, init)
            if compiled.returncode != 0:
                if replicas == 1 or not any(reason in compiled.out for reason in FIXED_REFUSALS):
                    found.append(f"{replicas} replicas: {compiled.out}")
                counts["refused"] = counts.get("refused", 0) + 1
                continue
            if "it is left as it is at" in compiled.out:
                counts["warned"] = counts.get("warned", 0) + 1
                continue
            coupled = "depend on other replicas' examples" in compiled.out
            found += compare(folder, replicas, want, variables)
            kind = "coupled, fixed" if coupled else "equal, fixed"
            counts[kind] = counts.get(kind, 0) + 1
    return found


def check_padded(tf, seed, number, counts):
    """Epochs of a batch and of some examples more: the last batch is a step of these alone, or refused when compiling."""
    rng = random.Random(f"padded {seed} {number}")
    with Folder() as folder, tf.Graph().as_default():
        made = Losses(tf, rng)
        step = write_step(tf, rng, made.unusual if rng.random() < 0.4 else made.usual, folder / "graph.meta")
        if not step:
            return []
        loss, train, init = step
        data = make_data(rng, BATCH + rng.randint(1, BATCH - 1))
        save_data(data, folder / "data.npz", loss, train)
        first, last = slice(0, BATCH), slice(BATCH, None)
        want, variables = train_in_tensorflow(tf, data, loss, train, init, (first, last, first))
        if not np.all(np.isfinite(want)):
            return []
        found = []
        for replicas in (1, 2, 3):
            compiled = compile_step(folder, replicas, init, "--pad-batch")
            if compiled.returncode != 0:
                counts["padded, refused"] = counts.get("padded, refused", 0) + 1
                return [] if any(reason in compiled.out for reason in PADDED_REFUSALS) else [f"{replicas} replicas, padded: {compiled.out}"]
            found += compare(folder, replicas, want, variables, ", padded")
        counts["padded, equal"] = counts.get("padded, equal", 0) + 1
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first graph")
    arguments = parser.parse_args()
    need_tools(DISTC)
    tf, _ = need_tensorflow()
    tf.disable_eager_execution()
    checks, counts = Checks(share=0.5), {}
    for number in range(arguments.first, arguments.first + arguments.count):
        checks.check(f"loss {number} of seed {arguments.seed}", check_loss, tf, arguments.seed, number, counts)
        if number % 2 == 1:
            checks.check(f"padded batch {number} of seed {arguments.seed}", check_padded, tf, arguments.seed, number, counts)
        else:
            checks.check(f"fixed batch {number} of seed {arguments.seed}", check_fixed, tf, arguments.seed, number, counts)
    print(counts)
    checks.exit()


if __name__ == "__main__":
    main()
