"""Losses that couple the examples of a batch: replicas train as one device does in TensorFlow, losses and variables alike, in threads and
in processes.

  coupling_tensorflow.py [--only NAME] [--target T] [--replicas 1,2,4]
"""
import argparse
import os
import sys

import numpy as np

from support import DISTC, ROOT, Checks, Folder, differences, expect, must, need_tensorflow, need_tools, read_losses, run, trained
from tensorflow_runs import train_apart

BATCH, STEPS, RATE = 8, 3, 0.1


class Graph:
    """Placeholders x [b, 6], y [b, 6], w [b] and the labels i [b]; variables as a loss asks for them."""

    def __init__(self, tf):
        self.tf, self.updates, self.numbers = tf, [], np.random.default_rng(7)
        self.x = tf.placeholder(tf.float32, [None, 6], "x")
        self.y = tf.placeholder(tf.float32, [None, 6], "y")
        self.w = tf.placeholder(tf.float32, [None], "w")
        self.i = tf.placeholder(tf.int32, [None], "i")

    def variable(self, name, *shape):
        value = self.numbers.normal(size=shape).astype(np.float32) * 0.5
        return self.tf.get_variable(name, initializer=value, use_resource=True)

    def statistic(self, name, value, size):
        """A moving average of `value`."""
        average = self.tf.get_variable(name, initializer=np.zeros(size, np.float32), trainable=False, use_resource=True)
        self.updates.append(self.tf.assign_sub(average, (average - value) * 0.1))

    def batch_norm(self, name, h, axes, size):
        tf = self.tf
        mean, variance = tf.nn.moments(h, axes)
        offset, scale = self.variable(f"{name}/beta", size), self.variable(f"{name}/gamma", size)
        count = tf.cast(tf.size(h) // tf.shape(h)[-1], tf.float32)
        self.statistic(f"{name}/moving_mean", mean, size)
        self.statistic(f"{name}/moving_variance", variance * count / (count - 1), size)
        return tf.nn.batch_normalization(h, mean, variance, offset, scale, 1e-3)

    def encoded(self, of="x", size=4):
        return self.tf.matmul(getattr(self, of), self.variable(f"{of}/kernel", 6, size))

    def examples(self):
        """Of each example its cross entropy."""
        return self.tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.i, logits=self.encoded())

    # ---- Losses -------------------------------------------------------------------------------------------

    def loss_batch_normalization(self):
        tf = self.tf
        h = tf.nn.relu(self.batch_norm("first", self.encoded(size=5), [0], 5))
        logits = self.batch_norm("second", tf.matmul(h, self.variable("kernel", 5, 4)), [0], 4)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.i, logits=logits))

    def loss_image_batch_normalization(self):
        tf = self.tf
        image = tf.reshape(self.encoded(size=32), [-1, 4, 4, 2])
        h = tf.nn.relu(self.batch_norm("norm", tf.nn.conv2d(image, self.variable("filter", 3, 3, 2, 3), 1, "SAME"), [0, 1, 2], 3))
        return tf.reduce_mean(tf.square(tf.reduce_mean(h, [1, 2]) - self.y[:, :3]))

    def fused_batch_norm(self, name, h, size):
        h, mean, variance = self.tf.nn.fused_batch_norm(h, self.variable(f"{name}/gamma", size), self.variable(f"{name}/beta", size), epsilon=1e-3)
        self.statistic(f"{name}/moving_mean", mean, size)
        self.statistic(f"{name}/moving_variance", variance, size)
        return h

    def loss_fused_batch_normalization(self):
        tf = self.tf
        image = tf.reshape(self.encoded(size=32), [-1, 4, 4, 2])
        h = tf.nn.relu(self.fused_batch_norm("first", tf.nn.conv2d(image, self.variable("filter", 3, 3, 2, 3), 1, "SAME"), 3))
        h = self.fused_batch_norm("second", tf.nn.conv2d(h, self.variable("filters", 3, 3, 3, 3), 1, "SAME"), 3)
        return tf.reduce_mean(tf.square(tf.reduce_mean(h, [1, 2]) - self.y[:, :3]))

    def loss_images_in_bfloat16(self):
        """Mixed precision: what TensorFlow's remapper would join on a server."""
        tf = self.tf
        image = tf.round(4 * tf.reshape(tf.concat([self.x, self.y, self.x[:, :4]], 1), [-1, 4, 4, 1])) / 4  # numbers that need no rounding
        corners = tf.constant([0.5, 0, -0.5, 0, 1, 0, 0, -1, 0], tf.bfloat16, [3, 3, 1, 1])
        h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(tf.cast(image, tf.bfloat16), corners, 1, "SAME"), tf.constant([0.25], tf.bfloat16)))
        logits = tf.matmul(tf.reshape(tf.cast(h, tf.float32), [-1, 16]), self.variable("kernel", 16, 4))
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.i, logits=logits))

    def loss_statistics(self):
        """Averages of a loss and of its root, a maximum, a queue of examples, and how many there were."""
        tf, h = self.tf, self.encoded()
        loss = tf.reduce_mean(tf.square(h - self.y[:, :4]))
        self.statistic("of_loss", loss, [])
        self.statistic("of_root", tf.sqrt(loss), [])
        kept = {name: tf.get_variable(name, initializer=np.zeros(shape, np.float32), trainable=False, use_resource=True)
                for name, shape in [("maximum", 4), ("queue", (2 * BATCH, 4)), ("examples", ())]}
        self.updates += [tf.assign(kept["maximum"], tf.maximum(kept["maximum"], tf.reduce_max(h, 0))),
                         tf.assign(kept["queue"], tf.concat([h, kept["queue"]], 0)[:2 * BATCH]),
                         tf.assign_add(kept["examples"], tf.cast(tf.shape(h)[0], tf.float32))]
        return loss

    def loss_squeezed(self):
        """Of a share of one example the batch's axis would be squeezed, too."""
        tf = self.tf
        h = tf.squeeze(tf.reshape(self.encoded(), [-1, 1, 4]))
        return tf.reduce_mean(tf.square(tf.squeeze(h) - tf.reduce_mean(h, 0)) + h)

    def loss_rolled_rows(self):
        """Rows of other examples beside the replica's own."""
        tf = self.tf
        h = self.encoded()
        return tf.reduce_mean(tf.roll(tf.stop_gradient(tf.tanh(h)), 1, 0) * h)

    def loss_half_with_a_scale(self):
        """Gradients in float16 that have room for a division by the batch's size, and none for one by a share's."""
        tf = self.tf
        scaled = lambda by: tf.custom_gradient(lambda x: (tf.identity(x), lambda gradient: gradient * by))
        kernel = tf.cast(scaled(2.0**-16)(self.variable("kernel", 6, 4)), tf.float16)
        logits = scaled(2.0**16)(tf.cast(tf.matmul(tf.cast(self.x, tf.float16), kernel), tf.float32))
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.i, logits=logits))

    def loss_embedding_and_batch_normalization(self):
        """A sparse gradient, and numbers that follow from the batch's size without being multiples of it."""
        tf = self.tf
        h = self.batch_norm("norm", tf.gather(self.variable("table", 4, 5), self.i) + self.encoded(size=5), [0], 5)
        count = tf.cast(tf.shape(h)[0], tf.float32)
        return tf.reduce_sum(tf.square(h - self.y[:, :5])) / (count - 1)

    def loss_mean_of_chosen(self):
        tf = self.tf
        return tf.reduce_mean(tf.boolean_mask(self.examples(), self.w > 0.5))

    def loss_hardest(self):
        """The examples with the largest losses, whose number is fixed."""
        return self.tf.reduce_mean(self.tf.math.top_k(self.examples(), 2)[0])

    def loss_others_alone(self):
        """A softmax over the other examples (SimCLR)."""
        tf = self.tf
        z = tf.nn.l2_normalize(self.encoded(), 1)
        scores = tf.matmul(z, z, transpose_b=True) - 1e3 * tf.eye(tf.shape(z)[0])
        return tf.reduce_mean(tf.reduce_logsumexp(scores, 1) - tf.reduce_sum(z * self.encoded("y"), 1))

    def loss_of_candidates(self):
        """Classes and candidates are looked up together, and taken apart by the batch's size."""
        tf, count = self.tf, self.tf.shape(self.i)[0]
        rows = tf.gather(self.variable("table", 5, 4), tf.concat([self.i, [4, 0, 3]], 0))
        own, others = rows[:count], rows[count:]
        h = self.encoded()
        return tf.reduce_mean(tf.reduce_logsumexp(tf.matmul(h, others, transpose_b=True), 1) - tf.reduce_sum(h * own, 1))

    def loss_head_of_mean(self):
        """A layer behind the batch's mean: its gradient is a product of two values of the whole batch."""
        tf = self.tf
        pooled = tf.reduce_mean(self.encoded(), 0, keepdims=True)
        return tf.reduce_sum(tf.square(tf.tanh(tf.matmul(pooled, self.variable("head", 4, 3))) - 0.5)) + tf.sqrt(tf.reduce_mean(tf.square(self.encoded("y"))))

    def loss_head_of_mean_clipped(self):
        return self.loss_head_of_mean()

    def loss_some_rows(self):
        """As many as the graph says, of a batch of any size."""
        examples = self.examples()
        return examples[0] + 0.5 * examples[-1] + self.tf.reduce_sum(examples[1:3])

    def loss_wrapped_sum(self):
        """An integer sum that wraps around is one of the whole batch before it is a float."""
        tf = self.tf
        return tf.reduce_mean(self.examples()) + 1e-9 * tf.cast(tf.reduce_sum(self.i * 2**29), tf.float32)

    def loss_contrastive(self):
        tf = self.tf
        u, v = tf.nn.l2_normalize(self.encoded("x"), 1), tf.nn.l2_normalize(self.encoded("y"), 1)
        logits, labels = tf.matmul(u, v, transpose_b=True) / 0.2, tf.range(tf.shape(u)[0])
        both = [tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=side) for side in (logits, tf.transpose(logits))]
        return tf.reduce_mean(both[0]) + tf.reduce_mean(both[1])

    def loss_masked(self):
        return self.tf.reduce_sum(self.w * self.examples()) / self.tf.reduce_sum(self.w)

    def loss_semihard(self):
        """Triplets whose negative is the nearest that is farther than the positive, as TensorFlow Addons has them: all pairs of rows for each row."""
        tf, e = self.tf, self.tf.nn.l2_normalize(self.encoded(), 1)
        distances = 2 - 2 * tf.matmul(e, e, transpose_b=True)
        labels = tf.reshape(self.i, [-1, 1])
        alike = tf.equal(labels, tf.transpose(labels))
        size = tf.size(labels)
        tiled = tf.tile(distances, [size, 1])
        farther = tf.logical_and(tf.tile(tf.logical_not(alike), [size, 1]), tf.greater(tiled, tf.reshape(tf.transpose(distances), [-1, 1])))
        mask = tf.cast(farther, tf.float32)
        some = tf.transpose(tf.reshape(tf.greater(tf.reduce_sum(mask, 1, keepdims=True), 0), [size, size]))
        largest = tf.reduce_max(tiled, 1, keepdims=True)
        nearest = tf.transpose(tf.reshape(tf.reduce_min((tiled - largest) * mask, 1, keepdims=True) + largest, [size, size]))
        farthest = tf.tile(tf.reduce_max(distances * tf.cast(tf.logical_not(alike), tf.float32), 1, keepdims=True), [1, size])
        positives = tf.cast(alike, tf.float32) - tf.linalg.diag(tf.ones([size]))
        losses = tf.maximum((0.5 + distances - tf.where(some, nearest, farthest)) * positives, 0)
        return tf.reduce_sum(losses) / tf.reduce_sum(positives)

    def loss_masked_clipped(self):
        return self.loss_masked()

    def loss_overlap(self):
        """A quotient of sums over the batch, which is neither a sum nor a mean over it."""
        tf = self.tf
        found, wanted = tf.sigmoid(self.encoded()), tf.one_hot(self.i, 4)
        return 1 - (2 * tf.reduce_sum(found * wanted) + 1) / (tf.reduce_sum(found) + tf.reduce_sum(wanted) + 1)

    def loss_overlap_clipped(self):
        return self.loss_overlap()

    def loss_plain_mean(self):
        return self.tf.reduce_mean(self.examples())

    def loss_learned_mask(self):
        tf = self.tf
        weights = tf.sigmoid(tf.reduce_sum(self.y * self.variable("mask", 6), 1))
        return tf.reduce_sum(weights * self.examples()) / tf.reduce_sum(weights)

    def loss_log_mean_exp(self):
        return self.tf.log(self.tf.reduce_mean(self.tf.exp(self.examples())))

    def loss_root_of_mean(self):
        return self.tf.sqrt(self.tf.reduce_mean(self.tf.square(self.examples())))

    def loss_product_of_means(self):
        return self.tf.reduce_mean(self.examples()) * self.tf.reduce_mean(self.tf.square(self.encoded("y")))

    def loss_maximum(self):
        h = self.encoded()
        return self.tf.reduce_mean(self.tf.square(h / self.tf.reduce_max(self.tf.abs(h)) - self.y[:, :4]))

    def loss_column_maxima(self):
        h = self.encoded()
        return self.tf.reduce_mean(self.tf.square(h - self.tf.reduce_max(h, 0, keepdims=True)))

    def loss_softmax_over_batch(self):
        return self.tf.reduce_sum(self.examples() * self.tf.nn.softmax(self.tf.reduce_sum(self.encoded("y"), 1)))

    def loss_cumulative_sum(self):
        return self.tf.reduce_mean(self.tf.square(self.tf.cumsum(self.encoded()) - self.y[:, :4]))

    def loss_reverse(self):
        return self.tf.reduce_mean(self.tf.square(self.tf.reverse(self.encoded(), [0]) - self.y[:, :4]))

    def loss_root_and_nothing(self):
        """A weight of zero, as a flag may be."""
        tf, h = self.tf, self.encoded()
        return tf.sqrt(tf.reduce_mean(tf.square(h - self.y[:, :4]))) + 0.0 * tf.reduce_mean(tf.abs(h)) + 0.0 * tf.reduce_sum(h)

    def loss_range(self):
        tf = self.tf
        return tf.reduce_mean(self.examples() * tf.cast(tf.range(tf.shape(self.x)[0]), tf.float32))

    def loss_shift(self):
        h = self.encoded()
        return self.tf.reduce_mean(self.tf.square(h[1:] - h[:-1])) + self.tf.reduce_mean(self.examples_again(h))

    def examples_again(self, logits):
        return self.tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.i, logits=logits)

    def loss_condition_on_mean(self):
        tf, h = self.tf, self.encoded()
        return tf.reduce_mean(tf.where_v2(tf.reduce_mean(h, 0) > 0.05, tf.square(h), tf.abs(h)))

    def loss_distances(self):
        tf, h = self.tf, self.encoded()
        return tf.reduce_mean(tf.sqrt(tf.reduce_sum(tf.square(tf.expand_dims(h, 0) - tf.expand_dims(h, 1)), 2) + 1.0))

    def loss_correlation(self):
        """A matrix over the batch, off its diagonal."""
        tf = self.tf
        u, v = (h - tf.reduce_mean(h, 0) for h in (self.encoded("x"), self.encoded("y")))
        c = tf.matmul(u, v, transpose_a=True) / tf.cast(tf.shape(u)[0], tf.float32)
        return tf.reduce_sum(tf.square(c - np.eye(4, dtype=np.float32)))

    def loss_half_a_batch(self):
        """A function of the batch's size that is no multiple of it."""
        tf = self.tf
        return tf.reduce_sum(self.examples()) / tf.cast(tf.shape(self.x)[0] // 3, tf.float32)

    def loss_of_joined_parts(self):
        """Labelled and unlabelled examples in one batch, which are taken apart again by its size (FixMatch, MixMatch)."""
        tf, b = self.tf, self.tf.shape(self.x)[0]
        h = tf.matmul(tf.concat([self.x, tf.reshape(tf.concat([self.y, -self.y], 1), [-1, 6])], 0), self.variable("kernel", 6, 4))
        first, second = tf.split(h[b:], 2)
        labels = tf.stop_gradient(tf.argmax(first, 1))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits
        return tf.reduce_mean(losses(labels=self.i, logits=h[:b])) + tf.reduce_mean(losses(labels=labels, logits=second))

    def loss_joined_twice(self):
        tf, h = self.tf, self.encoded()
        both = tf.concat([h, -h], 0)
        return tf.reduce_mean(tf.square(tf.cumsum(both) - tf.reduce_mean(both, 0)))


def make(tf, name, folder):
    """The graph, its data, and what TensorFlow makes of them: losses and variables."""
    with tf.Graph().as_default():
        graph = Graph(tf)
        loss = tf.identity(getattr(graph, f"loss_{name}")(), "loss")
        optimizer = tf.train.MomentumOptimizer(RATE, 0.9)
        gradients = optimizer.compute_gradients(loss)
        clip = (lambda values: tf.clip_by_global_norm(values, 0.3)[0]) if name.endswith("clipped") else (lambda values: values)
        raw = [tf.convert_to_tensor(gradient) for gradient, _ in gradients]
        variables = [variable for _, variable in gradients]
        fed = [tf.placeholder(tf.float32, gradient.shape) for gradient in raw]
        gradients = list(zip(clip(raw), variables)) if name.endswith("clipped") else gradients
        tf.group(optimizer.apply_gradients(gradients), *graph.updates, name="train")
        init = tf.global_variables_initializer()
        tf.train.export_meta_graph(str(folder / "graph.meta"))
        rows, numbers = BATCH * STEPS, np.random.default_rng(11)
        data = {"x": numbers.normal(size=(rows, 6)).astype(np.float32), "y": numbers.normal(size=(rows, 6)).astype(np.float32),
                "w": numbers.uniform(0.1, 2, rows).astype(np.float32), "i": numbers.integers(0, 4, rows).astype(np.int32)}
        np.savez(folder / "data.npz", **data)
        feeds = [{f"{key}:0": array[k * BATCH:(k + 1) * BATCH] for key, array in data.items()} for k in range(STEPS)]
        with tf.Session() as session:
            session.run("init")
            losses = [session.run(["loss:0", "train"], feed)[0] for feed in feeds]
            want = losses, {v.op.name: session.run(v) for v in tf.global_variables()}
            apply = optimizer.apply_gradients(zip(clip(fed), variables))

            def train_on_means(groups):
                """Updates of the mean of each group's gradients, and of the statistics of each of its members."""
                session.run(init)
                losses = []
                for group in groups:
                    each = [session.run([loss, *raw, *graph.updates], feed)[:1 + len(raw)] for feed in group]
                    session.run(apply, dict(zip(fed, (np.mean(values, 0) for values in list(zip(*each))[1:]))))
                    losses.append([values[0] for values in each])
                return losses, {v.op.name: session.run(v) for v in tf.global_variables()}

            halves = [[{key: array[at:at + BATCH // 2] for key, array in feed.items()} for at in (0, BATCH // 2)] for feed in feeds]
            # Losses behind an update show what it was.
            losses, state = train_on_means([feeds, feeds])
            of_halves = train_on_means(halves)
            return want, (losses[0] + losses[1], state), ([np.mean(of_step) for of_step in of_halves[0]], of_halves[1])


def check(folder, want, replicas, flags, strategy="AllReduce"):
    name = f"train-{replicas}-{len(flags)}-{strategy.replace(':', '-')}"
    must([DISTC, "compile", folder / "graph.meta", "--strategy", strategy, "--replicas", replicas, "--batch", BATCH, "--train-op", "train", "--loss",
          "loss:0", "--init-op", "init", "-o", folder / name, *flags])
    return differences(trained(folder / name, folder / "data.npz", len(want[0])), want)


def check_export(folder, want, flags, replicas=2, strategy="AllReduce"):
    """The same in stock TensorFlow: losses are means over the batch, which each replica has its share's part of."""
    name = f"exported-{replicas}-{len(flags)}-{strategy.replace(':', '-')}"
    must([DISTC, "compile", folder / "graph.meta", "--strategy", strategy, "--replicas", replicas, "--batch", BATCH, "--train-op", "train", "--loss",
          "loss:0", "--init-op", "init", "--emit=graphdef", "-o", folder / name, *flags])
    got = train_apart(folder / name, folder / "data.npz", len(want[0]))
    return [] if np.allclose(got, want[0], rtol=2e-4, atol=1e-5) else [f"losses {got}, not {want[0]}"]


def check_export_with_onednn(folder, want):
    """The command that users have, with TensorFlow's default: of bfloat16 the session would make operations that servers have not."""
    must([DISTC, "compile", folder / "graph.meta", "--replicas", 2, "--one-process-per-replica", "--batch", BATCH, "--train-op", "train", "--loss",
          "loss:0", "--init-op", "init", "--emit=graphdef", "-o", folder / "onednn"])
    must([sys.executable, ROOT / "tools" / "run_in_tensorflow.py", folder / "onednn", "--data", folder / "data.npz", "--steps", STEPS,
          "--log-json", folder / "log.jsonl"], env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": "1"})
    got = read_losses(folder / "log.jsonl")
    return [] if np.allclose(got, want[0], rtol=2e-4, atol=1e-5) else [f"losses {got}, not {want[0]}"]


def refused(folder, replicas, flags, strategy=f"AllReduce:accumulate_steps={STEPS}"):
    command = [DISTC, "compile", folder / "graph.meta", "--strategy", strategy, "--replicas", replicas, *flags,
               "--batch", BATCH, "--train-op", "train", "--loss", "loss:0", "--init-op", "init", "-o", folder / "none"]
    return expect(run(command), 1, "variable '")


# Sums that the whole batch's numbers divide are parts of means.
# Of several batches the gradients are added up: `make` has their mean.
SUMS = ["softmax_over_batch"]
# With coupling=replica, the mean of the gradients that replicas compute of their shares.
APART = ["contrastive", "head_of_mean", "head_of_mean_clipped", "masked", "maximum", "others_alone", "overlap", "overlap_clipped", "plain_mean"]
# Several batches an update: rows of a table of which all replicas have those of all examples.
NOT_ACCUMULATED = {"of_candidates": [2, 4]}
# Collectives of each batch beside those of an update.
EXPORTED_ACCUMULATED = ["batch_normalization", "contrastive"]
EXPORTED = ["batch_normalization", "contrastive", "cumulative_sum", "half_with_a_scale", "images_in_bfloat16", "maximum", "of_joined_parts", "wrapped_sum"]


# Sums over the batch, or of a size of it that is no multiple; and what is neither sum nor mean.
NEITHER = ["embedding_and_batch_normalization", "overlap", "overlap_clipped"]
NO_MEANS = [*NEITHER, "half_a_batch", "range", "softmax_over_batch"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names, with commas between")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--replicas", default="1,2,4")
    arguments = parser.parse_args()
    need_tools(DISTC)
    tf, _ = need_tensorflow()
    tf.disable_eager_execution()
    checks = Checks()
    names = [name[len("loss_"):] for name in dir(Graph) if name.startswith("loss_")]
    flags = [f"--target={arguments.target}"]
    for name in checks.draw(names, 0.4):
        if arguments.only and name not in arguments.only.split(","):
            continue
        with Folder() as folder:
            want, accumulated, apart = make(tf, name, folder)
            for replicas in map(int, arguments.replicas.split(",")):
                checks.check(f"{name}, {replicas} replicas", check, folder, want, replicas, flags)
            checks.check(f"{name}, 2 processes", check, folder, want, 2, [*flags, "--one-process-per-replica"])
            if name not in NO_MEANS:
                checks.check(f"{name}, said to be a mean", check, folder, want, 2, flags, "AllReduce:aggregator=mean")
            if name in NEITHER:
                checks.check(f"{name}, said to be a mean", refused, folder, 2, flags, "AllReduce:aggregator=mean")
            if name == "batch_normalization":
                for strategy in ("PartitionedAR", "ShardedUpdate"):
                    checks.check(f"{name}, {strategy}", check, folder, want, 2, flags, strategy)
            if name in ("squeezed", "rolled_rows"):
                checks.check(f"{name}, {BATCH} replicas", check, folder, want, BATCH, flags)
                if arguments.target == "cpu":
                    checks.check(f"{name}, exported, {BATCH} replicas of a worker", check_export, folder, want, [], BATCH)
            for replicas in NOT_ACCUMULATED.get(name, []):
                checks.check(f"{name}, an update for {STEPS} batches, {replicas} replicas", refused, folder, replicas, flags)
            if name not in SUMS:
                for replicas in map(int, arguments.replicas.split(",")):
                    if replicas not in NOT_ACCUMULATED.get(name, []):
                        checks.check(f"{name}, an update for {STEPS} batches, {replicas} replicas", check, folder, accumulated, replicas, flags,
                                     f"AllReduce:accumulate_steps={STEPS}")
            if name in APART:
                checks.check(f"{name}, each replica for itself", check, folder, apart, 2, flags, "AllReduce:coupling=replica")
            if name == "images_in_bfloat16" and arguments.target == "cpu":
                checks.check(f"{name}, exported, oneDNN", check_export_with_onednn, folder, want)
            if name in EXPORTED and arguments.target == "cpu":
                checks.check(f"{name}, exported, 2 workers", check_export, folder, want, ["--one-process-per-replica"])
                checks.check(f"{name}, exported, 2 replicas of a worker", check_export, folder, want, [])
            if name in EXPORTED_ACCUMULATED and arguments.target == "cpu":
                checks.check(f"{name}, exported, 2 workers, an update for {STEPS} batches", check_export, folder, accumulated, ["--one-process-per-replica"],
                             2, f"AllReduce:accumulate_steps={STEPS}")
    checks.exit()


if __name__ == "__main__":
    main()
