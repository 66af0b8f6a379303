"""Graphs that have their batch as a number, as people write them: shares of it on two replicas train as TensorFlow does on the graph with twice the
number. What only looks like them, a number or a cut that is not the batch's, is refused, or right. Parts of the graph's own number of rows train as it
does in any case.

  fixed_batch_tensorflow.py [--share ROWS] [--replicas N] [NAME...]
"""
import argparse

import numpy as np

from support import DISTC, Checks, Folder, need_tensorflow, need_tools, read_by, run, trained

STEPS = 3
# In several programs a layer, and a number beside rows, that is as large as a share of the batch.
WIDTH = 28
tf, _ = need_tensorflow()
ACCEPTED, ODD, IN_PARTS = {}, {}, {}
# Of two rows a 2 that is the batch's size is any number.
OF_FOUR = ("copies_for_rows", "half_of_few")


def accepted(function):
    ACCEPTED[function.__name__] = function


def odd(function):
    ODD[function.__name__] = function


def in_parts(function):
    IN_PARTS[function.__name__] = function


class Make:
    """Feeds and variables of a program whose batch is `rows`."""

    def __init__(self, rows):
        self.rows, self.numbers = rows, np.random.default_rng(5)
        self.x, self.z = tf.placeholder(tf.float32, [rows, 6], "x"), tf.placeholder(tf.float32, [rows, 4], "z")
        self.y = tf.placeholder(tf.float32, [rows], "y")
        self.count = tf.cast(tf.shape(self.x)[0], tf.float32)  # of a known shape: an element of a constant

    def weights(self, *shape):
        return tf.Variable((self.numbers.normal(size=shape) * 0.4).astype(np.float32), use_resource=True)

    def losses(self):
        hidden = tf.tanh(tf.matmul(self.x, self.weights(6, WIDTH)))
        return tf.square(tf.squeeze(tf.matmul(hidden, self.weights(WIDTH, 1)), 1) - self.y)

    def logits(self, outputs=1):
        """Of real examples, and of made ones behind them."""
        made = tf.tanh(tf.matmul(self.z, self.weights(4, 6)))
        hidden = tf.tanh(tf.matmul(tf.concat([self.x, made], 0), self.weights(6, WIDTH)))
        return tf.matmul(hidden, self.weights(WIDTH, outputs))


def against(logits, labels):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels))


def tell_apart(real, made):
    return against(real, tf.ones_like(real)) + against(made, tf.zeros_like(made))


@accepted
def number_of_a_shape(make):
    return tf.reduce_sum(make.losses()) / make.count


@accepted
def twice_the_number(make):
    return tf.reduce_sum(make.losses()) / (2.0 * make.count)


@accepted
def one_by_the_number(make):
    return tf.sqrt(tf.reduce_sum(make.losses()) * (1.0 / make.count))


@accepted
def product_of_sizes(make):
    errors = tf.square(tf.matmul(make.x, make.weights(6, 5)) - tf.expand_dims(make.y, 1))
    sizes = tf.shape(errors)
    return tf.reduce_sum(errors) / tf.cast(sizes[0] * sizes[1], tf.float32)


@accepted
def split_of_logits(make):
    return tell_apart(*tf.split(make.logits(), 2, axis=0))


@accepted
def slices_of_logits(make):
    logits = make.logits()
    return tell_apart(logits[:make.rows], logits[make.rows:])


@accepted
def means_of_slices(make):
    logits = make.logits()
    return tf.reduce_mean(logits[make.rows:]) - tf.reduce_mean(logits[:make.rows])


@accepted
def joined_labels(make):
    return against(make.logits(), tf.concat([tf.ones([make.rows, 1]), tf.zeros([make.rows, 1])], 0))


@accepted
def classes_of_a_constant(make):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        logits=make.logits(2), labels=tf.constant([1] * make.rows + [0] * make.rows)))


@accepted
def added_steps(make):
    errors = tf.square(tf.matmul(make.x, make.weights(6, 4)) - tf.expand_dims(make.y, 1))
    return tf.add_n([tf.reduce_sum(step) for step in tf.unstack(errors, axis=1)]) / (make.rows * 4)


@accepted
def flat_rows(make):
    flat = tf.square(tf.tanh(tf.reshape(tf.matmul(make.x, make.weights(6, 4)), [make.rows * 4])) - 0.3)
    return tf.reduce_mean(tf.reduce_sum(tf.reshape(flat, [make.rows, 4]), 1))


@accepted
def scaled_branch(make):
    rows = tf.reshape(tf.matmul(make.x, make.weights(6, 6)), [make.rows, 1, 2, 3])
    rows += 0.1 * tf.nn.conv2d(rows, make.weights(1, 1, 3, 3), 1, "SAME")
    rows, _, _ = tf.nn.fused_batch_norm(rows, make.weights(3), make.weights(3), epsilon=1e-2)
    return tf.reduce_mean(tf.square(tf.matmul(tf.reshape(tf.nn.relu(rows), [make.rows, 6]), make.weights(6, 1)) - tf.expand_dims(make.y, 1)))


@accepted
def condition_of_any_number(make):
    losses = make.losses()
    return tf.cond(tf.shape(make.x)[0] > 0, lambda: tf.reduce_mean(losses), lambda: 0.5 * tf.reduce_mean(tf.abs(losses)))


@accepted
def time_steps(make):
    """Of two rows: twice as many steps."""
    steps = tf.transpose(tf.reshape(tf.tanh(tf.matmul(make.x, make.weights(6, 4 * 3))), [make.rows, 4, 3]), [1, 0, 2])
    count, weights = tf.shape(steps)[0], make.weights(3, 3)
    array = tf.TensorArray(tf.float32, count).unstack(steps)
    _, state = tf.while_loop(lambda i, state: i < count, lambda i, state: (i + 1, tf.tanh(tf.matmul(state, weights) + array.read(i))),
                             [0, tf.zeros([make.rows, 3])])
    return tf.reduce_mean(tf.square(state))


@odd
def condition_of_the_number(make):
    losses = make.losses()
    return tf.cond(tf.shape(make.x)[0] > 3 * WIDTH // 2, lambda: tf.reduce_mean(losses), lambda: 2 * tf.reduce_mean(losses))


@odd
def choice_by_the_number(make):
    losses = make.losses()
    return tf.where(make.count > 1.5 * WIDTH, tf.reduce_mean(losses), 2 * tf.reduce_mean(losses))


@odd
def as_often_as_the_number(make):
    return tf.while_loop(lambda i, value: i < tf.shape(make.x)[0], lambda i, value: (i + 1, 1.01 * value), [0, tf.reduce_mean(make.losses())])[1]


@odd
def as_many_times(make):
    return 0.1 * make.rows * tf.reduce_mean(make.losses()) + tf.reduce_mean(make.losses()) * make.rows


@odd
def copies_for_rows(make):
    return tf.reduce_mean(make.losses()) + 0.01 * tf.reduce_sum(tf.ones([make.rows, 1]) * tf.square(make.weights(3)))


@odd
def half_of_few(make):
    """Of four rows: a 2 that is none of a gradient's."""
    return tf.sqrt(tf.reduce_sum(make.losses()) / (make.rows / 2) / tf.reduce_sum(tf.exp(0.1 * make.losses())))


@odd
def half_the_number(make):
    return tf.log(tf.reduce_sum(make.losses()) / tf.cast(tf.shape(make.x)[0] // 2, tf.float32))


@odd
def another_axis(make):
    """As many outputs as rows of a share."""
    outputs = tf.matmul(make.x, make.weights(6, WIDTH))
    return tf.log(1 + tf.reduce_sum(tf.square(outputs[:, 0])) / tf.cast(tf.shape(outputs)[1], tf.float32))


@odd
def weights_times_the_number(make):
    weights = make.losses() / tf.reduce_sum(make.losses()) * (0.1 * make.rows)
    return tf.reduce_mean(tf.square(weights - 0.3))


@odd
def halves_of_examples(make):
    first, second = tf.split(make.losses(), 2, 0)
    return tf.reduce_mean(first) + 2 * tf.reduce_mean(second)


@odd
def rows_across(make):
    logits = make.logits()
    return tf.reduce_mean(tf.square(logits[make.rows // 2:make.rows // 2 + make.rows]))


@odd
def labels_across(make):
    half = make.rows // 2
    return against(make.logits(), tf.concat([tf.ones([half, 1]), tf.zeros([3 * half, 1])], 0))


@odd
def labels_of_flat_rows(make):
    """Two outputs of each example in turn, not two batches."""
    logits = tf.reshape(tf.matmul(make.x, make.weights(6, 2)), [2 * make.rows, 1])
    return against(logits, tf.concat([tf.ones([make.rows, 1]), tf.zeros([make.rows, 1])], 0))


@odd
def one_other_label(make):
    labels = np.concatenate([np.ones((make.rows, 1)), np.zeros((make.rows, 1))]).astype(np.float32)
    labels[1] = 0.5
    return against(make.logits(), tf.constant(labels))


@odd
def columns(make):
    """Cut where the batch's size is, along another axis."""
    outputs = tf.matmul(make.x, make.weights(6, 2 * WIDTH))
    return tf.reduce_mean(tf.square(outputs[:, :WIDTH])) - 0.3 * tf.reduce_mean(tf.tanh(outputs[:, WIDTH:]))


@in_parts
def one_by_one(make):
    w = make.weights(6)
    return tf.add_n([tf.square(tf.reduce_sum(row * w) - y) for row, y in zip(tf.unstack(make.x), tf.unstack(make.y))]) / make.rows


@in_parts
def halves(make):
    first, second = tf.split(tf.tanh(tf.matmul(make.x, make.weights(6, 4))), 2)
    return tf.reduce_mean(tf.square(first) * second)


@in_parts
def pairs(make):
    rows = tf.reshape(tf.tanh(tf.matmul(make.x, make.weights(6, 4))), [make.rows // 2, 2, 4])
    return tf.reduce_mean(tf.square(rows[:, 0] - rows[:, 1]))


@in_parts
def each_sees_the_one_before(make):
    w = make.weights(6)
    states = tf.scan(lambda h, row: 0.5 * h + tf.reduce_sum(row * w), make.x, initializer=tf.constant(0.0))
    return tf.reduce_mean(tf.square(states - make.y))


@in_parts
def each_by_itself(make):
    w = make.weights(6)
    return tf.reduce_mean(tf.square(tf.map_fn(lambda row: tf.reduce_sum(tf.tanh(row * w)), make.x) - make.y))


@in_parts
def place_in_the_batch(make):
    weights = tf.constant(np.linspace(0.5, 1.5, make.rows), tf.float32)
    return tf.reduce_mean(weights * make.losses()) + tf.reduce_max(make.losses())


@in_parts
def dropout_with_a_seed(make):
    hidden = tf.nn.dropout(tf.tanh(tf.matmul(make.x, make.weights(6, WIDTH))), rate=0.4, seed=5)
    return tf.reduce_mean(tf.square(tf.squeeze(tf.matmul(hidden, make.weights(WIDTH, 1)), 1) - make.y))


@in_parts
def normalized_images(make):
    images = tf.reshape(tf.matmul(make.x, make.weights(6, 32)), [make.rows, 4, 4, 2])
    found = tf.nn.conv2d(images, make.weights(3, 3, 2, 3), 1, "SAME")
    found = tf.nn.relu(tf.raw_ops.FusedBatchNormV3(x=found, scale=tf.ones([3]), offset=tf.zeros([3]), mean=[], variance=[]).y)
    flat = tf.reshape(tf.nn.max_pool2d(found, 2, 2, "VALID"), [make.rows, 12])
    return tf.reduce_mean(tf.square(tf.squeeze(tf.matmul(flat, make.weights(12, 1)), 1) - make.y))


@in_parts
def contrast(make):
    """Of examples with each other."""
    first, second = tf.nn.l2_normalize(tf.matmul(make.x, make.weights(6, 4)), 1), tf.nn.l2_normalize(tf.matmul(make.z, make.weights(4, 4)), 1)
    logits = 5.0 * tf.matmul(first, second, transpose_b=True)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.range(make.rows), logits=logits))


@in_parts
def state_of_zeros(make):
    kernel, h = make.weights(6 + 4, 4), tf.zeros([make.rows, 4])
    for _ in range(3):
        h = tf.tanh(tf.matmul(tf.concat([make.x, h], 1), kernel))
    return tf.reduce_mean(tf.square(tf.reduce_sum(h, 1) - make.y))


def write(program, rows, path):
    with tf.Graph().as_default() as graph:
        make = Make(rows)
        loss = tf.identity(program(make), "loss")
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
        init = tf.variables_initializer(tf.global_variables(), name="init")
        tf.train.export_meta_graph(str(path))
        return graph, loss, train, init


def check(program, share, replicas, must_compile, in_parts=False):
    """`in_parts`: the graph's number of rows is that of the whole batch."""
    rows = share * replicas
    numbers = np.random.default_rng(3)
    data = {"x": numbers.normal(size=(rows * STEPS, 6)), "z": numbers.normal(size=(rows * STEPS, 4)), "y": numbers.normal(size=rows * STEPS)}
    with Folder() as folder:
        graph, loss, train, init = write(program, rows, folder / "whole.meta")
        with graph.as_default(), tf.Session() as session:
            session.run(init)
            want = []
            for step in range(STEPS):
                feed = {f"{name}:0": array[step * rows:(step + 1) * rows] for name, array in data.items()}
                want.append(session.run([loss, train], feed)[0])
            variables = {variable.op.name: session.run(variable) for variable in tf.global_variables()}
            read = read_by(train, loss.op)
        np.savez(folder / "data.npz", **{name: array.astype(np.float32) for name, array in data.items() if name in read})
        write(program, rows if in_parts else share, folder / "graph.meta")
        compiled = run([DISTC, "compile", folder / "graph.meta", "--replicas", replicas, "--batch", rows, "--train-op", "train", "--loss", "loss:0",
                        "--init-op", "init", "-o", folder / "train"])
        if compiled.returncode != 0:
            return [compiled.out] if must_compile or compiled.returncode != 1 else []
        losses, final = trained(folder / "train", folder / "data.npz", STEPS)
        found = [] if np.allclose(losses, want, rtol=1e-3, atol=1e-4) else [f"losses {losses}, not {want}"]
        return found + [f"variable {name}" for name, value in variables.items() if not np.allclose(final[name], value, rtol=2e-3, atol=2e-4)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--share", type=int, default=WIDTH)
    parser.add_argument("--replicas", type=int, default=2)
    arguments = parser.parse_args()
    need_tools(DISTC)
    tf.disable_eager_execution()
    checks = Checks(share=0.4)
    for name, program in (ACCEPTED | ODD).items():
        if not arguments.names or name in arguments.names:
            checks.check(name, check, program, arguments.share, arguments.replicas, name in ACCEPTED)
            # Of few rows many numbers are multiples.
            rows, few = (4, "four") if name in OF_FOUR else (2, "two")
            checks.check(f"{name}, of {few} rows", check, program, rows, arguments.replicas, False)
    for name, program in (ACCEPTED | ODD | IN_PARTS).items():
        if not arguments.names or name in arguments.names:
            checks.check(f"{name}, in parts", check, program, 4, arguments.replicas, True, True)
    checks.exit()


if __name__ == "__main__":
    main()
