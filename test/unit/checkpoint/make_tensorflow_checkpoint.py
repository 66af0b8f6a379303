"""Writes data/tensorflow.*, a checkpoint as TensorFlow saves it, for checkpoint_tensorflow_test.cpp.

Needs TensorFlow. Every number follows from its position, so that the test needs no other file.
"""
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "data" / "tensorflow")

with tf.Graph().as_default():
    def variable(name, value, dtype, **keywords):
        return v1.get_variable(name, initializer=tf.cast(tf.constant(value), dtype), **keywords)

    def sliced(name, shape, parts, axis):
        value = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        make = lambda shape, dtype, partition_info: tf.slice(value, partition_info.var_offset, shape)
        v1.get_variable(name, shape, tf.float32, initializer=make,
                        partitioner=v1.fixed_size_partitioner(parts, axis=axis))

    variable("scalar", 41.5, tf.float32)
    variable("global_step", 123456789012, tf.int64)
    variable("dense/kernel", np.arange(12).reshape(3, 4) / 4, tf.float32)
    variable("dense/double", np.arange(5) / 8, tf.float64)
    variable("flags", [1, 0, 1, 1, 0], tf.bool)
    variable("half", [1.5, -2], tf.float16)
    variable("brain", [1.5, -2], tf.bfloat16)
    variable("small", [-1, 2, -3], tf.int8)
    variable("empty", np.zeros((0, 3)), tf.float32)
    v1.get_variable("text", initializer=tf.constant(["", "one", "x" * 200]))
    sliced("rows", (7, 3), 3, 0)
    sliced("columns", (3, 7), 2, 1)
    sliced("inner", (2, 70, 2), 2, 1)  # starts beyond 63, which the key stores in two bytes
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, str(out), write_meta_graph=False, write_state=False)
