#!/usr/bin/env python3
"""The benchmark's model: a 784-2048-2048-10 ReLU classifier trained with momentum. Writes mlp.meta beside it.

  mlp.py      needs tensorflow-cpu
"""
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import tensorflow as tf

tf1 = tf.compat.v1
LAYERS = (784, 2048, 2048, 10)
RATE, MOMENTUM = 0.01, 0.9


def build(wrap=lambda optimizer: optimizer):
    image = tf1.placeholder(tf.float32, [None, LAYERS[0]], "image")
    label = tf1.placeholder(tf.int32, [None], "label")
    h = image
    for i, (n, m) in enumerate(zip(LAYERS, LAYERS[1:])):
        with tf1.variable_scope(f"layer{i + 1}"):
            kernel = tf1.get_variable("kernel", [n, m], initializer=tf1.glorot_uniform_initializer(seed=i + 1))
            bias = tf1.get_variable("bias", [m], initializer=tf1.zeros_initializer())
            h = tf1.nn.bias_add(tf1.matmul(h, kernel), bias)
            h = tf1.nn.relu(h) if m != LAYERS[-1] else h
    loss = tf1.reduce_mean(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=h), name="loss")
    step = tf1.train.get_or_create_global_step()
    train = wrap(tf1.train.MomentumOptimizer(RATE, MOMENTUM)).minimize(loss, step, name="train")
    return loss, train, tf1.global_variables_initializer()


if __name__ == "__main__":
    with tf.Graph().as_default() as graph:
        tf1.enable_resource_variables()
        loss, train, init = build()
        meta = tf1.train.export_meta_graph(graph=graph, saver_def=tf1.train.Saver().saver_def)
        meta.collection_def["train_op"].node_list.value[:] = [train.name]
        meta.collection_def["init_op"].node_list.value[:] = [init.name]
        meta.collection_def["losses"].node_list.value[:] = [loss.name]
        pathlib.Path(__file__).with_suffix(".meta").write_bytes(meta.SerializeToString(deterministic=True))
