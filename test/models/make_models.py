#!/usr/bin/env python3
"""Writes the models of this folder with TensorFlow, and what TensorFlow computes on them.

  make_models.py [NAME…]        needs tensorflow-cpu; without names, all of them

A model is a folder:
  graph.meta     a MetaGraphDef: forward, gradients, updates, initializers, saver; collections train_op, init_op, losses
  init.ckpt.*    a checkpoint of every variable as the graph's own initializers leave it
  feeds.npz      an array a placeholder. Batched: first axis = example; step k takes rows [k*batch, (k+1)*batch), and past
                 the end it starts over. Not batched: the value of every step
  expect.npz     loss: of each step. var/NAME: every variable after the last step
  case.json      what a test needs to know of it:
                   loss, train_op, init_op, steps, batch
                   loss_is_sum: the loss sums over the examples, so a replica's loss is a part of it
                   own_init: the initializers give the same values in every run
                   rows: {variable: [operation of each row]}, where each row is reached by one operation
                   loss_rtol, vars_rtol: allowed differences, relative; a variable's is that of norms
Models are as small as shows what they are for; sizes are odd on purpose, and batches are divided by 1, 2, 3 and 4.
"""
import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import tensorflow as tf

import operations

tf1 = tf.compat.v1
HERE = pathlib.Path(__file__).resolve().parent
BATCH, STEPS = 12, 5
ROWS = 3 * BATCH  # fewer than the steps take: the data starts over


class Net:
    """What a model's function returns."""

    def __init__(self, loss, feeds, train=None, is_sum=False, rows=None):
        self.loss, self.feeds, self.train, self.is_sum, self.rows = loss, feeds, train, is_sum, rows or {}


# ---- parts ---------------------------------------------------------------------------------


def dense(x, units, name, activation=None, seed=1):
    with tf1.variable_scope(name):
        kernel = tf1.get_variable("kernel", [x.shape[-1], units], x.dtype, tf1.glorot_uniform_initializer(seed=seed, dtype=x.dtype))
        bias = tf1.get_variable("bias", [units], x.dtype, tf1.constant_initializer(0.01))
        y = tf1.nn.bias_add(tf1.matmul(x, kernel), bias)
        return activation(y) if activation else y


def cross_entropies(logits, labels):
    return tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def classes(features=6, n_classes=3, dtype=tf.float32, seed=1):
    """Placeholders and data that a small classifier can learn from."""
    x = tf1.placeholder(dtype, [None, features], "x")
    y = tf1.placeholder(tf.int32, [None], "y")
    rs = np.random.RandomState(seed)
    xs = rs.randn(ROWS, features)
    ys = np.argmax(xs @ rs.randn(features, n_classes), axis=1)
    return x, y, {"x": xs.astype(dtype.as_numpy_dtype), "y": ys.astype(np.int32)}


def mlp_logits(x, activation=tf.nn.relu):
    return dense(dense(x, 7, "hidden", activation, 1), 3, "logits", None, 3)


def minimize(optimizer, loss):
    return optimizer.minimize(loss, global_step=tf1.train.get_or_create_global_step(), name="train")


# ---- models ----------------------------------------------------------------------------------


def linreg():
    x = tf1.placeholder(tf.float32, [None], "x")
    y = tf1.placeholder(tf.float32, [None], "y")
    w = tf1.get_variable("w", initializer=5.0)
    b = tf1.get_variable("b", initializer=0.0)
    loss = tf1.reduce_mean(tf1.square(w * x + b - y))
    rs = np.random.RandomState(1)
    xs = rs.randn(ROWS)
    feeds = {"x": xs.astype(np.float32), "y": (3 * xs + 2 + 0.1 * rs.randn(len(xs))).astype(np.float32)}
    return Net(loss, feeds, minimize(tf1.train.GradientDescentOptimizer(0.1), loss))


OPTIMIZERS = {
    "sgd": lambda: tf1.train.GradientDescentOptimizer(0.2),
    "momentum": lambda: tf1.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf1.train.AdamOptimizer(0.02),
    "adagrad": lambda: tf1.train.AdagradOptimizer(0.2),
    "rmsprop": lambda: tf1.train.RMSPropOptimizer(0.02, momentum=0.5),
    "rmsprop-centered": lambda: tf1.train.RMSPropOptimizer(0.02, momentum=0.5, centered=True),
}


def mlp(optimizer):
    x, y, feeds = classes()
    loss = tf1.reduce_mean(cross_entropies(mlp_logits(x), y))
    return Net(loss, feeds, minimize(OPTIMIZERS[optimizer](), loss))


def mlp_float64():
    x, y, feeds = classes(dtype=tf.float64)
    loss = tf1.reduce_mean(cross_entropies(mlp_logits(x, tf.nn.tanh), y))
    return Net(loss, feeds, minimize(tf1.train.AdamOptimizer(0.02), loss))


def mlp_float16():
    x, y, feeds = classes(dtype=tf.float16)
    loss = tf1.reduce_mean(cross_entropies(mlp_logits(x, tf.nn.tanh), y))
    return Net(loss, feeds, minimize(OPTIMIZERS["momentum"](), loss))


def mlp_l2():
    """A term of the loss that does not depend on the batch: every replica has all of it."""
    x, y, feeds = classes()
    loss = tf1.reduce_mean(cross_entropies(mlp_logits(x), y))
    loss += 0.02 * tf1.add_n([tf1.nn.l2_loss(v) for v in tf1.trainable_variables() if "kernel" in v.name])
    return Net(loss, feeds, minimize(OPTIMIZERS["momentum"](), loss))


def mlp_dropout():
    """Each example is dropped out alike whatever the number of replicas: by stateful and by stateless random numbers."""
    x, y, feeds = classes()
    hidden = tf1.nn.dropout(dense(x, 7, "hidden", tf.nn.relu, 1), rate=0.3, seed=5)
    again = tf.random.stateless_normal(tf1.shape(hidden), [3, 4], stddev=0.1)
    loss = tf1.reduce_mean(cross_entropies(dense(hidden + again, 3, "logits", None, 3), y))
    return Net(loss, feeds, minimize(OPTIMIZERS["momentum"](), loss))


def mlp_clip():
    """The norm is that of the whole batch's gradient: clipping comes after the synchronization."""
    x, y, feeds = classes()
    loss = tf1.reduce_mean(cross_entropies(mlp_logits(x), y))
    optimizer = OPTIMIZERS["momentum"]()
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    clipped, _ = tf1.clip_by_global_norm(gradients, 0.3)
    train = optimizer.apply_gradients(list(zip(clipped, variables)), tf1.train.get_or_create_global_step(), "train")
    return Net(loss, feeds, train)


def mlp_sum():
    """Gradients of a sum are added up; what decays the weights is not, as it is added to the whole gradient."""
    x, y, feeds = classes()
    loss = tf1.reduce_sum(cross_entropies(mlp_logits(x), y))
    optimizer = tf1.train.GradientDescentOptimizer(0.01)
    decayed = [(g + 0.1 * v, v) for g, v in optimizer.compute_gradients(loss)]
    train = optimizer.apply_gradients(decayed, tf1.train.get_or_create_global_step(), "train")
    return Net(loss, feeds, train, is_sum=True)


def mlp_decay():
    """A learning rate that is fed whole, and decays with the global step."""
    x, y, feeds = classes()
    base = tf1.placeholder(tf.float32, [], "learning_rate")
    loss = tf1.reduce_mean(cross_entropies(mlp_logits(x), y))
    step = tf1.train.get_or_create_global_step()
    rate = tf1.train.exponential_decay(base, step, decay_steps=2, decay_rate=0.7)
    feeds["learning_rate"] = np.float32(0.3)
    return Net(loss, feeds, minimize(tf1.train.MomentumOptimizer(rate, 0.8), loss))


def mlp_frozen():
    """A variable that is not trained, and one gradient that two layers share."""
    x, y, feeds = classes()
    scale = tf1.get_variable("scale", [6], initializer=tf1.constant_initializer(0.5), trainable=False)
    kernel = tf1.get_variable("shared", [6, 6], initializer=tf1.glorot_uniform_initializer(seed=4))
    h = tf1.nn.elu(tf1.matmul(x * scale, kernel))
    h = tf1.nn.elu(tf1.matmul(h, kernel, transpose_b=True))
    loss = tf1.reduce_mean(cross_entropies(dense(h, 3, "logits", None, 5), y))
    return Net(loss, feeds, minimize(OPTIMIZERS["sgd"](), loss))


def functions():
    """tf.function in a graph becomes PartitionedCall; so does its gradient."""
    x, y, feeds = classes()
    k1 = tf1.get_variable("k1", [6, 7], initializer=tf1.glorot_uniform_initializer(seed=1))
    k2 = tf1.get_variable("k2", [7, 3], initializer=tf1.glorot_uniform_initializer(seed=2))

    @tf.function
    def gelu(h):
        return 0.5 * h * (1.0 + tf.tanh(0.8 * (h + 0.04 * h * h * h)))

    @tf.function
    def layer(h, kernel):
        return gelu(tf.matmul(h, kernel))

    loss = tf1.reduce_mean(cross_entropies(tf1.matmul(layer(x, k1), k2), y))
    return Net(loss, feeds, minimize(OPTIMIZERS["momentum"](), loss))


def convnet(dtype=tf.float32):
    x = tf1.placeholder(dtype, [None, 6, 6, 2], "image")
    y = tf1.placeholder(tf.int32, [None], "label")

    def conv(h, channels, name, padding, stride, seed):
        with tf1.variable_scope(name):
            kernel = tf1.get_variable("kernel", [3, 3, h.shape[-1], channels], dtype, initializer=tf1.glorot_uniform_initializer(seed=seed))
            bias = tf1.get_variable("bias", [channels], dtype, initializer=tf1.constant_initializer(0.02))
            return tf1.nn.bias_add(tf1.nn.conv2d(h, kernel, [1, stride, stride, 1], padding), bias)

    h = tf.nn.relu(conv(x, 4, "conv1", "SAME", 1, 1))
    h = tf1.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h = tf.nn.relu(conv(h, 5, "conv2", "SAME", 1, 2))
    h = tf1.nn.avg_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h = tf.sigmoid(conv(h, 3, "conv3", "SAME", 2, 3))
    logits = dense(tf1.reshape(h, [-1, 3]), 3, "logits", None, 4)
    loss = tf1.reduce_mean(cross_entropies(logits, y))
    rs = np.random.RandomState(3)
    xs = rs.randn(ROWS, 6, 6, 2).astype(dtype.as_numpy_dtype)
    feeds = {"image": xs, "label": np.argmax(xs.mean(axis=(1, 2)) @ rs.randn(2, 3), axis=1).astype(np.int32)}
    return Net(loss, feeds, minimize(OPTIMIZERS["momentum"](), loss))


# Rows of an embedding, several examples naming one row, and rows that none names.
SPARSE_OPTIMIZERS = {
    "sgd": OPTIMIZERS["sgd"], "momentum": OPTIMIZERS["momentum"], "nesterov": OPTIMIZERS["nesterov"], "adam": OPTIMIZERS["adam"],
    "adagrad": OPTIMIZERS["adagrad"], "rmsprop": OPTIMIZERS["rmsprop"], "rmsprop-centered": OPTIMIZERS["rmsprop-centered"],
    "adadelta": lambda: tf1.train.AdadeltaOptimizer(0.5, epsilon=1e-3),
    "adagrad-da": lambda: tf1.train.AdagradDAOptimizer(0.3, tf1.train.get_or_create_global_step(), l1_regularization_strength=0.001,
                                                       l2_regularization_strength=0.01),
    "ftrl": lambda: tf1.train.FtrlOptimizer(0.3, l1_regularization_strength=0.001, l2_regularization_strength=0.01),
    "ftrl-shrinkage": lambda: tf1.train.FtrlOptimizer(0.3, l2_shrinkage_regularization_strength=0.01),
    "proximal-adagrad": lambda: tf1.train.ProximalAdagradOptimizer(0.3, l1_regularization_strength=0.001, l2_regularization_strength=0.01),
    "proximal-sgd": lambda: tf1.train.ProximalGradientDescentOptimizer(0.3, l1_regularization_strength=0.001),
}


def embedding(optimizer, partitioner=None):
    ids = tf1.placeholder(tf.int32, [None, 2], "ids")
    y = tf1.placeholder(tf.int32, [None], "y")
    table = tf1.get_variable("table", [9, 4], initializer=tf1.glorot_uniform_initializer(seed=6), partitioner=partitioner)
    words = tf1.nn.embedding_lookup(table, ids, partition_strategy="div")
    loss = tf1.reduce_mean(cross_entropies(dense(tf1.reshape(words, [-1, 8]), 3, "logits", None, 5), y))
    rs = np.random.RandomState(5)
    rows = rs.randint(0, 8, (ROWS, 2)).astype(np.int32)
    feeds = {"ids": rows, "y": ((rows[:, 0] + rows[:, 1]) % 3).astype(np.int32)}
    return Net(loss, feeds, minimize(SPARSE_OPTIMIZERS[optimizer](), loss))


def initializers(make):
    """Variables that only their initializers write."""
    x = tf1.placeholder(tf.float32, [None], "x")
    for name, value in make():
        # A function, so that the variable's initializer is the operation itself and not a copy of its value.
        tf1.get_variable(name, initializer=lambda v=value: v(), trainable=False)
    loss = tf1.reduce_mean(x)
    train = tf1.group(tf1.assign_add(tf1.train.get_or_create_global_step(), 1), name="train")
    return Net(loss, {"x": np.arange(1, BATCH + 1, dtype=np.float32)}, train)


def per_operation(family):
    """Each operation reaches its own row of the variable `w`, and so does its gradient."""
    cases = operations.FAMILIES[family]()
    names = [name for name, _ in cases]
    width = 3
    x = tf1.placeholder(tf.float32, [None, 1, width], "x")
    rs = np.random.RandomState(7)
    # No two rows start alike.
    w = tf1.get_variable("w", initializer=rs.uniform(0.3, 0.7, (len(names), width)).astype(np.float32))
    results, weights, losses = [], [], []
    for (name, function), h in zip(cases, tf1.unstack(x * w, axis=1)):  # values in (0.15, 0.95)
        with tf1.name_scope(name):
            y = function(h)
        if isinstance(y, operations.Weight):
            weights.append(y)
        elif y.shape.as_list() == [None, width]:
            results.append(y)
        else:
            losses.append(tf1.reduce_mean(y))
    if results:
        losses.append(tf1.reduce_mean(tf1.add_n(results)))
    if weights:
        rows, values = (tf1.stack(t) for t in zip(*((y.h, y.value) for y in weights)))
        losses.append(tf1.reduce_mean(rows * values))
    loss = tf1.add_n(losses)
    xs = rs.uniform(0.5, 1.3, (ROWS, 1, width)).astype(np.float32)
    return Net(loss, {"x": xs}, minimize(tf1.train.GradientDescentOptimizer(0.05), loss), rows={"w": names})


# name: (function, resource variables, tolerances of losses and of variables)
F32, TIGHT, F64, F16 = (2e-5, 2e-4), (2e-6, 2e-6), (1e-11, 1e-10), (4e-3, 1e-2)
MODELS = {
    "linreg-sgd": (linreg, True, F32),
    "linreg-sgd-ref": (linreg, False, F32),
    **{f"mlp-{o}": (lambda o=o: mlp(o), True, F32) for o in OPTIMIZERS},
    **{f"mlp-{o}-ref": (lambda o=o: mlp(o), False, F32) for o in OPTIMIZERS if o != "nesterov"},
    **{f"embedding-{o}": (lambda o=o: embedding(o), True, F32) for o in SPARSE_OPTIMIZERS},
    "embedding-adagrad-ref": (lambda: embedding("adagrad"), False, F32),
    # The graph itself has the table in parts, which checkpoints have as slices of one tensor.
    "embedding-in-parts": (lambda: embedding("adagrad", tf1.fixed_size_partitioner(2)), True, F32),
    "mlp-float64": (mlp_float64, True, F64),
    "mlp-float16": (mlp_float16, True, F16),
    "mlp-l2": (mlp_l2, True, F32),
    "mlp-clip": (mlp_clip, True, F32),
    "mlp-dropout": (mlp_dropout, True, F32),
    "mlp-sum": (mlp_sum, True, F32),
    "mlp-decay": (mlp_decay, True, F32),
    "mlp-frozen": (mlp_frozen, True, F32),
    "functions": (functions, True, F32),
    "convnet-momentum": (convnet, True, F32),
    "convnet-float64": (lambda: convnet(tf.float64), True, F64),
    "init-stateful": (lambda: initializers(operations.stateful_random), True, TIGHT),
    "init-stateless": (lambda: initializers(operations.stateless_random), True, TIGHT),
    "init-keras": (lambda: initializers(operations.keras_random), True, TIGHT),
    **{f"ops-{f}": (lambda f=f: per_operation(f), True, F32) for f in operations.FAMILIES},
}
# Models whose nodes keep all that TensorFlow notes on them; the others are a third smaller.
WITH_NOTES = {"linreg-sgd", "mlp-momentum", "mlp-sgd-ref"}


def build(name):
    function, resource, _ = MODELS[name]
    graph = tf.Graph()
    with graph.as_default():
        (tf1.enable_resource_variables if resource else tf1.disable_resource_variables)()
        tf1.set_random_seed(42)
        net = function()
        net.loss = tf1.identity(net.loss, "loss")
        net.init = tf1.global_variables_initializer()
        net.saver = tf1.train.Saver(tf1.global_variables() or None)
    return graph, net


def meta_graph(name, graph, net):
    meta = tf1.train.export_meta_graph(graph=graph, saver_def=net.saver.saver_def, strip_default_attrs=True)
    # The definitions of stock operations: most of a small file, and known to every reader.
    meta.meta_info_def.ClearField("stripped_op_list")
    if name not in WITH_NOTES:
        for node in meta.graph_def.node:
            for attribute in ("_output_shapes", "_has_manual_control_dependencies", "debug_name"):
                node.attr.pop(attribute, None)
    meta.collection_def["train_op"].node_list.value[:] = [net.train.name]
    meta.collection_def["init_op"].node_list.value[:] = [net.init.name]
    meta.collection_def["losses"].node_list.value[:] = [net.loss.name]
    return meta


def rows_of_step(array, step):
    """Past the end the data starts over; what is not batched is whole in every step."""
    if np.ndim(array) == 0:
        return array
    first = step * BATCH % len(array)
    return array[first:first + BATCH]


def write(name):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    graph, net = build(name)
    loss_rtol, vars_rtol = MODELS[name][2]
    steps = 1 if name.startswith("init-") else STEPS
    with graph.as_default(), tf1.Session(graph=graph) as session:
        meta = meta_graph(name, graph, net)
        (folder / "graph.meta").write_bytes(meta.SerializeToString(deterministic=True))
        variables = tf1.global_variables()
        session.run(net.init)
        net.saver.save(session, str(folder / "init.ckpt"), write_meta_graph=False, write_state=False)
        losses = []
        for k in range(steps):
            feeds = {n + ":0": rows_of_step(a, k) for n, a in net.feeds.items()}
            losses.append(session.run([net.loss, net.train], feeds)[0])
        last = {"var/" + v.op.name: a for v, a in zip(variables, session.run(variables))}
    assert np.all(np.isfinite(losses)) and all(np.all(np.isfinite(a)) for a in last.values()), name
    np.savez_compressed(folder / "expect.npz", loss=np.array(losses), **last)
    np.savez_compressed(folder / "feeds.npz", **net.feeds)
    case = dict(loss=net.loss.name, train_op=net.train.name, init_op=net.init.name, steps=steps, batch=BATCH,
                loss_is_sum=net.is_sum, own_init=True, rows=net.rows, loss_rtol=loss_rtol, vars_rtol=vars_rtol,
                tensorflow=tf.__version__)
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name}: {len(meta.graph_def.node)} nodes, loss {losses[0]:.6g} -> {losses[-1]:.6g}, {size // 1024} KiB", flush=True)


if __name__ == "__main__":
    for model in sys.argv[1:] or MODELS:
        write(model)
