"""Kernels over many tensors on the emulated GPU change variables of all sizes as TensorFlow does: norms of all gradients in two launches (drt-group-sums), whether
they are clipped or not, and variables that are rounded for products by one (drt-group-roundings).

  grouped_tensorflow.py
"""
import re

import numpy as np

from support import DISTC, Checks, Folder, must, need_emulated_tensorflow, trained, write_graph

# A block adds up 16,384 elements, a thread four at a time.
SIZES = [[1], [3], [7, 5], [4096, 4], [16385], [16383], [129, 300], [2, 3, 11], [50000], [64], [5, 1, 1]]
BATCH = 4


def slopes(number):
    """What a variable's elements are multiplied with: the first, the last and those at the edge of a block's count for most of the norm."""
    size = SIZES[number]
    flat = np.ones(int(np.prod(size)), np.float32)
    flat[[0, -1, -2 % len(flat), -5 % len(flat), min(16383, len(flat) - 1), min(16384, len(flat) - 1)]] = 100 + 10 * number
    return flat.reshape(size)


def check(tf, clip, replicas):
    rng = np.random.RandomState(1)
    data = {"x": rng.randn(BATCH, 3).astype(np.float32)}
    with Folder() as folder, tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3], "x")
        variables = [tf.get_variable(f"v{i}", initializer=np.zeros(size, np.float32)) for i, size in enumerate(SIZES)]
        loss = tf.reduce_mean(tf.reduce_sum(x, 1) ** 2) * tf.add_n([tf.reduce_sum(variable * slopes(i)) for i, variable in enumerate(variables)])
        gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), clip)
        train = tf.train.GradientDescentOptimizer(1.0).apply_gradients(zip(gradients, variables))
        init = tf.global_variables_initializer()
        write_graph(tf, folder / "graph.meta", train, init, loss)
        with tf.Session() as session:
            session.run(init)
            want_norm, _ = session.run([norm, train], {"x:0": data["x"]})
            after = session.run(variables)
        np.savez(folder / "data.npz", **data)
        command = [DISTC, "compile", folder / "graph.meta", "--batch", BATCH, "--replicas", replicas, "--target", "cuda:emulated"]
        plan = must([*command, "--emit=drt", "-o", "-"]).stdout
        found = [] if len(re.findall(r"drt\.launch @sums_(?:parts|whole)", plan)) == 2 else ["the norms are not two launches"]
        if (want_norm > clip) != (clip == 0.25):
            found.append(f"the norm is {want_norm}")
        must([*command, "-o", folder / "train"])
        _, got = trained(folder / "train", folder / "data.npz", 1)
        for i, new in enumerate(after):
            apart = np.linalg.norm(got[f"v{i}"] - new) / np.linalg.norm(new)
            if not apart < 1e-5:
                found.append(f"the update of v{i} is {apart:.1e} apart")
        return found


WIDTHS = [7, 13, 5, 160, 257, 3, 11, 1, 17, 2, 6]


def check_roundings(tf, replicas):
    """A block rounds 8,192 elements, a thread eight at a time; elements are rounded already, so that each counts in full."""
    rng = np.random.RandomState(2)
    data = {"x": rng.randint(-8, 9, [BATCH, WIDTHS[0]]).astype(np.float32) / 8}
    with Folder() as folder, tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, WIDTHS[0]], "x")
        hidden, layers = x, []
        for i, (inputs, outputs) in enumerate(zip(WIDTHS, WIDTHS[1:])):
            kernel = (rng.randint(-8, 9, [inputs, outputs]) / 8 / 2 ** np.ceil(np.log2(inputs) / 2)).astype(np.float32)
            layers.append(tf.get_variable(f"w{i}", initializer=kernel))
            hidden = tf.sin(tf.matmul(hidden, layers[-1]))
        loss = tf.reduce_mean(tf.reduce_sum((hidden - 1) ** 2, 1))
        train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
        init = tf.global_variables_initializer()
        write_graph(tf, folder / "graph.meta", train, init, loss)
        with tf.Session() as session:
            session.run(init)
            want, before = session.run([loss, layers], {"x:0": data["x"]})
            session.run(train, {"x:0": data["x"]})
            after = session.run(layers)
        np.savez(folder / "data.npz", **data)
        command = [DISTC, "compile", folder / "graph.meta", "--batch", BATCH, "--replicas", replicas, "--target", "cuda:emulated", "--precision", "bf16"]
        plan = must([*command, "--emit=drt", "-o", "-"]).stdout
        found = [] if len(re.findall(r"drt\.launch @round_variables", plan)) == 2 else ["the variables are not rounded by a launch an entry"]
        must([*command, "-o", folder / "train"])
        (got,), variables = trained(folder / "train", folder / "data.npz", 1)
        if not np.isclose(got, want, rtol=2e-2):
            found.append(f"the loss is {got}, not {want}")
        for i, (old, new) in enumerate(zip(before, after)):
            apart = np.linalg.norm(variables[f"w{i}"] - new) / np.linalg.norm(new - old)
            if not apart < 5e-2:
                found.append(f"the update of w{i} is {apart:.1e} apart")
        return found


def main():
    tf = need_emulated_tensorflow()
    checks = Checks()
    checks.check("clipped", check, tf, 0.25, 2)
    checks.check("not clipped", check, tf, 1e6, 4)
    checks.check("rounded variables", check_roundings, tf, 2)
    checks.exit()


if __name__ == "__main__":
    main()
