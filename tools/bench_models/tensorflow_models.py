#!/usr/bin/env python3
"""The benchmark's larger models as TensorFlow graphs: what distc compiles, and what a session of TensorFlow runs beside it.

  tensorflow_models.py MODEL FOLDER [gpu]     writes graph.meta and data.npz; needs tensorflow-cpu and tf-keras

Each is a function of MODELS, or with gpu of GPU_MODELS, that builds the graph and gives what is trained: a loss, an optimizer, arrays for the feeds.
"""
import dataclasses
import functools
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
BATCHES = 2  # of which the data are


@dataclasses.dataclass
class Training:
    loss: object
    optimizer: object
    data: dict  # arrays of BATCHES global batches, by the names of their placeholders
    updates: tuple = ()  # the moving averages of normalizations
    clip: float = 0.0  # the norm that all gradients together have at most; 0: any


def draw(shape, classes=None):
    random = np.random.RandomState(len(shape))
    return random.rand(*shape).astype(np.float32) if classes is None else random.randint(0, classes, shape).astype(np.int32)


def variable(name, shape, initializer=None):
    return tf1.get_variable(name, shape, initializer=initializer or tf1.truncated_normal_initializer(stddev=0.02))


def dense(x, name, inputs, outputs):
    return tf.matmul(x, variable(f"{name}/kernel", [inputs, outputs])) + variable(f"{name}/bias", [outputs], tf1.zeros_initializer())


def cross_entropy(label, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits), name="loss")


def logistic(label, logits):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=tf.reshape(logits, [-1])), name="loss")


def normalized(x, name):
    """Layer normalization."""
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    scale, shift = (variable(f"{name}/{part}", [x.shape[-1]], initial()) for part, initial in (("scale", tf1.ones_initializer), ("shift", tf1.zeros_initializer)))
    return (x - mean) * tf.math.rsqrt(variance + 1e-6) * scale + shift


def attention(x, name, length, heads):
    """Of rows that are the tokens of all examples."""
    width = x.shape[-1]
    query, key, value = (tf.transpose(tf.reshape(dense(x, f"{name}/{part}", width, width), [-1, length, heads, width // heads]), [0, 2, 1, 3])
                         for part in ("query", "key", "value"))
    weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) * (width // heads) ** -0.5)
    mixed = tf.reshape(tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3]), [-1, width])
    return dense(mixed, f"{name}/output", width, width)


def resnet50(batch):
    """ResNet-50 at 224 x 224, with momentum; batch normalization of the whole batch."""
    import tf_keras

    image, label = tf1.placeholder(tf.float32, [None, 224, 224, 3], "image"), tf1.placeholder(tf.int32, [None], "label")
    tf_keras.backend.set_learning_phase(1)
    model = tf_keras.applications.ResNet50(weights=None, input_tensor=image, classifier_activation=None)
    return Training(cross_entropy(label, model.output), tf1.train.MomentumOptimizer(0.01, 0.9),
                    {"image": draw([BATCHES * batch, 224, 224, 3]), "label": draw([BATCHES * batch], 1000)}, tuple(model.updates))


def transformer(batch, length=128, width=512, heads=8, layers=4, words=30522, classes=1000):
    """BERT's encoder, 4 layers of 512 with 8 heads over 128 tokens, with Adam."""
    words_in, label = tf1.placeholder(tf.int32, [None, length], "words"), tf1.placeholder(tf.int32, [None, length], "label")

    x = tf.nn.embedding_lookup(variable("words_table", [words, width]), words_in) + variable("positions", [length, width])
    x = tf.reshape(x, [-1, width])
    for layer in range(layers):
        x += attention(normalized(x, f"layer{layer}/before_attention"), f"layer{layer}/attention", length, heads)
        inner = tf.nn.gelu(dense(normalized(x, f"layer{layer}/before_dense"), f"layer{layer}/inner", width, 4 * width))
        x += dense(inner, f"layer{layer}/outer", 4 * width, width)
    logits = dense(normalized(x, "last"), "classes", width, classes)
    return Training(cross_entropy(tf.reshape(label, [-1]), logits), tf1.train.AdamOptimizer(1e-4),
                    {"words": draw([BATCHES * batch, length], words), "label": draw([BATCHES * batch, length], classes)})


def bert_large(batch, length=512, width=1024, heads=16, layers=24, words=30522):
    """BERT-large: 24 layers of 1024 with 16 heads, every token predicted by the table of words, gradients clipped, with Adam."""
    words_in, label = tf1.placeholder(tf.int32, [None, length], "words"), tf1.placeholder(tf.int32, [None, length], "label")

    table = variable("words_table", [words, width])
    x = normalized(tf.nn.embedding_lookup(table, words_in) + variable("positions", [length, width]), "embedded")
    x = tf.reshape(x, [-1, width])
    for layer in range(layers):
        x = normalized(x + attention(x, f"layer{layer}/attention", length, heads), f"layer{layer}/behind_attention")
        inner = tf.nn.gelu(dense(x, f"layer{layer}/inner", width, 4 * width))
        x = normalized(x + dense(inner, f"layer{layer}/outer", 4 * width, width), f"layer{layer}/behind_dense")
    logits = tf.matmul(x, table, transpose_b=True) + variable("output_bias", [words], tf1.zeros_initializer())
    return Training(cross_entropy(tf.reshape(label, [-1]), logits), tf1.train.AdamOptimizer(1e-4),
                    {"words": draw([BATCHES * batch, length], words), "label": draw([BATCHES * batch, length], words)}, clip=1.0)


def lstm(batch, steps=64, width=256):
    """Two LSTM layers of 256 over 64 steps, with Adam."""
    import tf_keras

    x, label = tf1.placeholder(tf.float32, [None, steps, width], "x"), tf1.placeholder(tf.int32, [None], "label")
    hidden = tf_keras.layers.LSTM(width, return_sequences=True)(x)
    hidden = tf_keras.layers.LSTM(width)(hidden)
    return Training(cross_entropy(label, dense(hidden, "classes", width, 10)), tf1.train.AdamOptimizer(1e-3),
                    {"x": draw([BATCHES * batch, steps, width]), "label": draw([BATCHES * batch], 10)})


def perceptron(x, sizes):
    for layer, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
        x = tf.nn.relu(dense(x, f"layer{layer}", inputs, outputs))
    return dense(x, "output", sizes[-1], 1)


def ncf(batch, users=2_000_000, items=2_000_000, width=64):
    """Neural collaborative filtering with two tables of 2 million x 64 (on GPUs of 10 and 1 million), with Adagrad."""
    user, item = (tf1.placeholder(tf.int32, [None], name) for name in ("user", "item"))
    label = tf1.placeholder(tf.float32, [None], "label")
    tables = [variable(f"{name}_table", [rows, width], tf1.random_uniform_initializer(-0.05, 0.05))
              for name, rows in (("user", users), ("item", items))]
    x = tf.concat([tf.nn.embedding_lookup(table, ids) for table, ids in zip(tables, (user, item))], 1)
    count = BATCHES * batch
    return Training(logistic(label, perceptron(x, [2 * width, 256, 128, 64])), tf1.train.AdagradOptimizer(0.05),
                    {"user": draw([count], users), "item": draw([count], items)[::-1].copy(), "label": draw([count]).round()})


def wide_and_deep(batch, features=26, rows=100_000, width=16, numbers=13):
    """26 features of 100,000 values, each with a vector and a weight, and 13 numbers, with Adagrad."""
    category, number = tf1.placeholder(tf.int32, [None, features], "category"), tf1.placeholder(tf.float32, [None, numbers], "number")
    label = tf1.placeholder(tf.float32, [None], "label")
    vectors, weights = [], []
    for feature in range(features):
        for found, name, size in ((vectors, "vectors", width), (weights, "weights", 1)):
            table = variable(f"{name}{feature}", [rows, size], tf1.random_uniform_initializer(-0.05, 0.05))
            found.append(tf.nn.embedding_lookup(table, category[:, feature]))
    deep = perceptron(tf.concat([*vectors, number], 1), [features * width + numbers, 256, 128, 64])
    count = BATCHES * batch
    return Training(logistic(label, deep + tf.add_n(weights)), tf1.train.AdagradOptimizer(0.05),
                    {"category": draw([count, features], rows), "number": draw([count, numbers]), "label": draw([count]).round()})


def table(batch, rows=50_000_000, width=16):
    """One table of 50 million x 16 and a layer of one output, with Adagrad. Ids are Zipf's, as words and users are: few are most of a batch."""
    ids, label = tf1.placeholder(tf.int32, [None], "ids"), tf1.placeholder(tf.float32, [None], "label")
    vectors = tf.nn.embedding_lookup(variable("table", [rows, width], tf1.random_uniform_initializer(-0.05, 0.05)), ids)
    count = BATCHES * batch
    drawn = np.random.RandomState(0).zipf(1.1, 4 * count)
    drawn = drawn[drawn <= rows][:count] - 1
    # Frequent rows are all over the table.
    return Training(logistic(label, dense(vectors, "output", width, 1)), tf1.train.AdagradOptimizer(0.05),
                    {"ids": (drawn * 2_654_435_761 % rows).astype(np.int32), "label": draw([count]).round()})


# Name: what builds it, and the global batch.
MODELS = {"resnet50": (resnet50, 8), "transformer": (transformer, 8), "lstm": (lstm, 64), "ncf": (ncf, 4096),
          "wide-and-deep": (wide_and_deep, 1024), "table": (table, 65_536)}
# The same at the size of a GPU.
GPU_MODELS = {"resnet50": (resnet50, 256), "bert-large": (bert_large, 16),
              "ncf": (functools.partial(ncf, users=10_000_000, items=1_000_000), 16384)}


def build(name, models=MODELS):
    """In the default graph: the loss, what trains, what initializes, and the data."""
    tf1.enable_resource_variables()
    make, batch = models[name]
    training = make(batch)
    with tf1.control_dependencies(training.updates):
        gradients = [(gradient, of) for gradient, of in training.optimizer.compute_gradients(training.loss) if gradient is not None]
        if training.clip:
            clipped, _ = tf1.clip_by_global_norm([gradient for gradient, _ in gradients], training.clip)
            gradients = list(zip(clipped, [of for _, of in gradients]))
        train = training.optimizer.apply_gradients(gradients, name="train")
    return training.loss, train, tf1.global_variables_initializer(), training.data


def write(name, folder, models):
    tf1.disable_eager_execution()
    with tf.Graph().as_default() as graph:
        loss, train, init, data = build(name, models)
        meta = tf1.train.export_meta_graph(graph=graph, saver_def=tf1.train.Saver().saver_def)
    for key, node in (("train_op", train), ("init_op", init), ("losses", loss)):
        meta.collection_def[key].node_list.value[:] = [node.name]
    (folder / "graph.meta").write_bytes(meta.SerializeToString(deterministic=True))
    np.savez(folder / "data.npz", **data)


if __name__ == "__main__":
    write(sys.argv[1], pathlib.Path(sys.argv[2]), GPU_MODELS if sys.argv[3:] == ["gpu"] else MODELS)
