"""Layers of sizes that kernels of their own serve: matmuls and filters large enough to be updated from blocks, rows that collide in a cache, sums that cores
share. Losses and variables are TensorFlow's, by one replica, by its cores, and by several replicas.

  wide_layers_tensorflow.py [--only NAME,...]
"""
import argparse

import numpy as np

from support import DISTC, Checks, Folder, differences, must, need_tensorflow, need_tools, read_by, trained

BATCH, STEPS = 64, 3
SITES = {"a replica": ["--replicas", 1], "its two cores": ["--replicas", 1, "--cores-per-replica", 2], "three cores": ["--replicas", 1, "--cores-per-replica", 3],
         "two replicas": ["--replicas", 2], "two replicas of two cores": ["--replicas", 2, "--cores-per-replica", 2],
         "four shares": ["--replicas", 4, "--strategy", "ShardedUpdate"]}
CASES = {}


def case(optimizer):
    def add(function):
        CASES[function.__name__] = (function, optimizer)
        return function
    return add


class Graph:
    """Feeds x [b, 64], image [b, 12, 12, 16] and label [b] of 0 to 9."""

    def __init__(self, tf):
        self.tf, self.numbers = tf, np.random.default_rng(5)
        self.x = tf.placeholder(tf.float32, [None, 64], "x")
        self.image = tf.placeholder(tf.float32, [None, 12, 12, 16], "image")
        self.label = tf.placeholder(tf.int32, [None], "label")

    def weights(self, name, *shape):
        deviation = np.prod(shape[:-1]) ** -0.5
        return self.tf.get_variable(name, initializer=(self.numbers.normal(size=shape) * deviation).astype(np.float32), use_resource=True)

    def dense(self, x, name, inputs, outputs):
        return self.tf.nn.bias_add(self.tf.matmul(x, self.weights(name, inputs, outputs)), self.weights(f"{name}_bias", outputs))

    def loss(self, logits):
        return self.tf.reduce_mean(self.tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.label, logits=logits))


@case(lambda tf: tf.train.MomentumOptimizer(0.1, 0.9))
def perceptron(g):
    tf = g.tf
    hidden = tf.nn.relu(g.dense(g.x, "first", 64, 512))
    hidden = tf.nn.relu(g.dense(hidden, "second", 512, 768))
    return g.loss(g.dense(hidden, "last", 768, 10))


@case(lambda tf: tf.train.AdamOptimizer(1e-3))
def decayed(g):
    """The gradient of a matrix is a matmul and a multiple of the matrix; that of the next one a matmul alone."""
    tf = g.tf
    first = g.weights("first", 64, 1024)
    hidden = tf.tanh(tf.matmul(g.x, first))
    return g.loss(g.dense(tf.nn.relu(g.dense(hidden, "second", 1024, 256)), "last", 256, 10)) + 0.01 * tf.nn.l2_loss(first)


@case(lambda tf: tf.train.AdagradOptimizer(0.05))
def tied(g):
    """A matrix is read twice, transposed as well; its gradient is the sum of two matmuls."""
    tf, shared = g.tf, g.weights("shared", 256, 512)
    hidden = tf.nn.relu(tf.matmul(g.dense(g.x, "first", 64, 256), shared))
    return g.loss(g.dense(tf.tanh(tf.matmul(hidden, shared, transpose_b=True)), "last", 256, 10))


@case(lambda tf: tf.train.AdamOptimizer(1e-3))
def recurrent(g):
    tf, state = g.tf, g.dense(g.x, "first", 64, 256)
    kernel = g.weights("kernel", 256, 512)
    for _ in range(5):
        gates = tf.matmul(state, kernel)
        state = tf.sigmoid(gates[:, :256]) * tf.tanh(gates[:, 256:]) + 0.5 * state
    return g.loss(g.dense(state, "last", 256, 10))


@case(lambda tf: tf.train.AdamOptimizer(1e-3))
def gated(g):
    """A matrix that replicas share, packed once for all iterations and once for all of their gradients."""
    tf, output = g.tf, g.dense(g.x, "first", 64, 256)
    kernel, memory = g.weights("kernel", 256, 1024), tf.zeros_like(output)
    for _ in range(4):
        entered, kept, new, shown = tf.split(tf.matmul(output, kernel), 4, 1)
        memory = tf.sigmoid(kept + 1.0) * memory + tf.sigmoid(entered) * tf.tanh(new)
        output = tf.sigmoid(shown) * tf.tanh(memory)
    return g.loss(g.dense(output, "last", 256, 10))


@case(lambda tf: tf.train.MomentumOptimizer(0.05, 0.9))
def convolutions(g):
    """Windows with padding, strides and one pixel; sums over images and pixels, whose results meet every pixel again."""
    tf, images = g.tf, g.image
    for number, (size, inputs, outputs, stride) in enumerate([(3, 16, 64, 1), (3, 64, 64, 2), (1, 64, 512, 1)]):
        images = tf.nn.conv2d(images, g.weights(f"filter{number}", size, size, inputs, outputs), strides=stride, padding="SAME")
        mean, variance = tf.nn.moments(images, [0, 1, 2])
        images = tf.nn.relu((images - mean) * tf.math.rsqrt(variance + 1e-3))
    return g.loss(g.dense(tf.reduce_mean(images, [1, 2]), "last", 512, 10))


@case(lambda tf: tf.train.MomentumOptimizer(0.02, 0.9))
def channels(g):
    """Many channels, as matrix units take them: padding, strides, a sum with what came before."""
    tf, images = g.tf, g.image
    for number, (inputs, outputs, stride) in enumerate([(16, 128, 2), (128, 160, 1), (160, 128, 1), (128, 192, 2)]):
        before, images = images, tf.nn.conv2d(images, g.weights(f"filter{number}", 3, 3, inputs, outputs), strides=stride, padding="SAME")
        images = tf.nn.relu(tf.nn.bias_add(images, g.weights(f"bias{number}", outputs)))
        images = images + before[..., :128] if number == 2 else images
    return g.loss(g.dense(tf.reduce_mean(images, [1, 2]), "last", 192, 10))


@case(lambda tf: tf.train.GradientDescentOptimizer(0.1))
def windows(g):
    """Few pixels and many outputs: each window is a row. No padding: the first layer's channels and columns lie side by side."""
    tf = g.tf
    images = tf.nn.relu(tf.nn.conv2d(g.image, g.weights("filter0", 5, 5, 16, 32), strides=4, padding="VALID"))
    images = tf.nn.relu(tf.nn.conv2d(images, g.weights("filter1", 2, 2, 32, 384), strides=1, padding="VALID"))
    return g.loss(g.dense(tf.reshape(images, [-1, 384]), "last", 384, 10))


def make(tf, name, folder):
    """The graph and its data, and what TensorFlow computes: losses, and the variables at the end."""
    function, optimizer = CASES[name]
    numbers = np.random.default_rng(3)
    rows = BATCH * STEPS
    data = {"x": numbers.normal(size=(rows, 64)).astype(np.float32), "image": numbers.normal(size=(rows, 12, 12, 16)).astype(np.float32),
            "label": numbers.integers(0, 10, rows).astype(np.int32)}
    with tf.Graph().as_default():
        g = Graph(tf)
        loss = tf.identity(function(g), "loss")
        optimizer(tf).minimize(loss, name="train")
        tf.global_variables_initializer()
        data = {name: array for name, array in data.items() if name in read_by(loss.op)}
        np.savez(folder / "data.npz", **data)
        tf.train.export_meta_graph(str(folder / "graph.meta"))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            losses = []
            for step in range(STEPS):
                feed = {f"{k}:0": v[step * BATCH:(step + 1) * BATCH] for k, v in data.items()}
                losses.append(session.run(["loss:0", "train"], feed)[0])
            return losses, {v.op.name: session.run(v) for v in tf.trainable_variables()}


def check(folder, want, flags):
    program = folder / "train"
    must([DISTC, "compile", folder / "graph.meta", "--batch", BATCH, "--train-op", "train", "--loss", "loss:0", "--init-op", "init", *flags, "-o", program])
    return differences(trained(program, folder / "data.npz", STEPS), want)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names, with commas between")
    arguments = parser.parse_args()
    need_tools(DISTC)
    tf, _ = need_tensorflow()
    tf.disable_eager_execution()
    checks = Checks(share=0.6)
    for name in arguments.only.split(",") if arguments.only else CASES:
        with Folder() as folder:
            want = make(tf, name, folder)
            for site, flags in SITES.items():
                checks.check(f"{name}, {site}", check, folder, want, flags)
    checks.exit()


if __name__ == "__main__":
    main()
