#!/usr/bin/env python3
"""A convolutional classifier of handwritten digits: writes its training graph and its data, which lie beside it.

  model.py            writes graph.meta, train.npz, test.npz      (needs tensorflow-cpu and scikit-learn)
  model.py --train    trains the graph with TensorFlow, for comparison

The data are the 1797 images, 8 by 8, of the "Optical Recognition of Handwritten Digits" test set (E. Alpaydin and
C. Kaynak, UCI Machine Learning Repository, CC BY 4.0), as scikit-learn carries them: 1497 to train with, 300 held back.
"""
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
HERE = pathlib.Path(__file__).resolve().parent
HELD_BACK, BATCH, EPOCHS = 300, 60, 20


def conv(x, channels, name, seed):
    with tf1.variable_scope(name):
        kernel = tf1.get_variable("kernel", [3, 3, x.shape[-1], channels], initializer=tf1.glorot_uniform_initializer(seed=seed))
        bias = tf1.get_variable("bias", [channels], initializer=tf1.zeros_initializer())
        return tf1.nn.relu(tf1.nn.bias_add(tf1.nn.conv2d(x, kernel, [1, 1, 1, 1], "SAME"), bias))


def dense(x, units, name, seed):
    with tf1.variable_scope(name):
        kernel = tf1.get_variable("kernel", [x.shape[-1], units], initializer=tf1.glorot_uniform_initializer(seed=seed))
        bias = tf1.get_variable("bias", [units], initializer=tf1.zeros_initializer())
        return tf1.nn.bias_add(tf1.matmul(x, kernel), bias)


def build():
    """The training graph of one device. Nothing in it knows of replicas."""
    image = tf1.placeholder(tf.float32, [None, 8, 8, 1], "image")
    label = tf1.placeholder(tf.int32, [None], "label")
    h = tf1.nn.max_pool(conv(image, 16, "conv1", 1), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    h = tf1.nn.max_pool(conv(h, 32, "conv2", 2), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    h = tf1.nn.relu(dense(tf1.reshape(h, [-1, 2 * 2 * 32]), 64, "hidden", 3))
    logits = dense(h, 10, "logits", 4)
    loss = tf1.reduce_mean(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits), name="loss")
    prediction = tf1.argmax(logits, axis=1, output_type=tf.int32, name="prediction")
    accuracy = tf1.reduce_mean(tf1.cast(tf1.equal(prediction, label), tf.float32), name="accuracy")
    train = tf1.train.AdamOptimizer(2e-3).minimize(loss, tf1.train.get_or_create_global_step(), name="train")
    init = tf1.global_variables_initializer()
    return loss, accuracy, train, init


def write_graph(path):
    with tf.Graph().as_default() as graph:
        tf1.enable_resource_variables()
        loss, _, train, init = build()
        meta = tf1.train.export_meta_graph(graph=graph, saver_def=tf1.train.Saver().saver_def)
        meta.collection_def["train_op"].node_list.value[:] = [train.name]
        meta.collection_def["init_op"].node_list.value[:] = [init.name]
        meta.collection_def["losses"].node_list.value[:] = [loss.name]
        path.write_bytes(meta.SerializeToString(deterministic=True))


def write_data():
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    images = (digits.images[order] / 16).astype(np.float32)[..., None]
    labels = digits.target[order].astype(np.int32)
    np.savez_compressed(HERE / "train.npz", image=images[:-HELD_BACK], label=labels[:-HELD_BACK])
    np.savez_compressed(HERE / "test.npz", image=images[-HELD_BACK:], label=labels[-HELD_BACK:])


def train_with_tensorflow():
    train_data, test_data = np.load(HERE / "train.npz"), np.load(HERE / "test.npz")
    images, labels = train_data["image"], train_data["label"]
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.enable_resource_variables()
        loss, accuracy, train, init = build()
        session.run(init)
        for step in range(EPOCHS * len(labels) // BATCH):
            rows = np.arange(step * BATCH, (step + 1) * BATCH) % len(labels)
            value, _ = session.run([loss, train], {"image:0": images[rows], "label:0": labels[rows]})
            if step % 50 == 0:
                print(f"step {step} loss {value:.4f}")
        held_back = session.run(accuracy, {"image:0": test_data["image"], "label:0": test_data["label"]})
        print(f"loss {value:.4f}, accuracy on {len(test_data['label'])} held-back examples {held_back:.4f}")


if __name__ == "__main__":
    if "--train" in sys.argv:
        train_with_tensorflow()
    else:
        write_graph(HERE / "graph.meta")
        write_data()
