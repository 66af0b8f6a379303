"""Tables under Keras 3's optimizers, which square and scale a table's rows by operations of their own: a SavedModel of a training step. Losses are TensorFlow's of one device
on the whole batch, also of several batches an update, and of servers that serve on their own.

  table_optimizers_keras.py [NAME…]
"""
import os
import sys

import numpy as np

from support import DISTC, Checks, Folder, must, need_tensorflow, need_tools, read_losses, skip

ROWS, WIDTH, BATCH, STEPS = 40, 3, 8, 4
# Strategy, replicas, batches an update.
CONFIGURATIONS = (("AllReduce", 2, 1), ("ShardedUpdate", 2, 1), ("PartitionedPS --ps 2", 2, 1), ("PS:sync=false --ps 1", 1, 1), ("PartitionedPS:replicas_to_aggregate=2 --ps 2", 2, 1),
                  ("AllReduce:coupling=replica", 2, 1), ("AllReduce:accumulate_steps=2", 1, 2), ("AllReduce:accumulate_steps=2", 2, 2))


def optimizers(keras):
    of = keras.optimizers
    return {
        "SGD": lambda: of.SGD(0.1, momentum=0.9, nesterov=True),
        "Adagrad": lambda: of.Adagrad(0.1),
        "Adadelta": lambda: of.Adadelta(0.5),
        "RMSprop": lambda: of.RMSprop(0.05, epsilon=1e-3),
        "RMSprop, momentum": lambda: of.RMSprop(0.05, momentum=0.5, centered=True, epsilon=1e-3),
        "Adam": lambda: of.Adam(0.05, epsilon=1e-3),
        "Adam, amsgrad": lambda: of.Adam(0.05, amsgrad=True, epsilon=1e-3),
        "AdamW": lambda: of.AdamW(0.05, weight_decay=0.01, epsilon=1e-3),
        "Adamax": lambda: of.Adamax(0.05, epsilon=1e-3),
        "Nadam": lambda: of.Nadam(0.05, epsilon=1e-3),
        "Ftrl": lambda: of.Ftrl(0.1),
        "Adafactor": lambda: of.Adafactor(0.05),
        "Lamb": lambda: of.Lamb(0.01, epsilon=1e-3),
        "Lion": lambda: of.Lion(0.01),
    }


def build(tf, keras, make):
    """Two tables, whose rows are added, one of them read twice, and a dense layer."""
    keras.utils.set_random_seed(1)
    layers = keras.layers
    ids = keras.Input((2,), dtype="int32")
    first, second = layers.Embedding(ROWS, WIDTH), layers.Embedding(ROWS, WIDTH)
    rows = layers.Add()([first(ids), second((ids * 3 + 1) % ROWS), second(ids)])
    model = keras.Model(ids, layers.Dense(1)(layers.Flatten()(rows)))
    optimizer = make()
    optimizer.build(model.trainable_variables)

    class Step(tf.Module):
        def __init__(self):
            super().__init__()
            self.model, self.optimizer = model, optimizer
            self.held = [variable.value for variable in model.variables + optimizer.variables]

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.int32, "ids"), tf.TensorSpec([None], tf.float32, "y")])
        def train(self, ids, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self.model(ids, training=True)[:, 0] - y))
            optimizer.apply(tape.gradient(loss, [variable.value for variable in model.trainable_variables]), model.trainable_variables)
            return {"loss": loss}

    return Step()


def trains(tf, keras, make):
    rng = np.random.default_rng(3)
    feeds = {"train_ids": rng.integers(0, ROWS, (STEPS * BATCH, 2)).astype(np.int32), "train_y": rng.standard_normal(STEPS * BATCH).astype(np.float32)}
    found = []
    with Folder() as folder:
        step = build(tf, keras, make)
        tf.saved_model.save(step, str(folder / "saved"), signatures={"train": step.train})
        np.savez(folder / "feeds.npz", **feeds)
        losses = {}
        for batches in (1, 2):
            # From the beginning again, for as many examples an update.
            step = build(tf, keras, make)
            size = batches * BATCH
            losses[batches] = [float(step.train(*(tf.constant(array[at:at + size]) for array in feeds.values()))["loss"]) for at in range(0, STEPS * BATCH, size)]
        for strategy, replicas, batches in CONFIGURATIONS:
            name = f"{strategy}, {replicas} replicas"
            must([DISTC, "compile", folder / "saved", "--no-init", "--strategy", *strategy.split(), "--replicas", replicas, "--batch", BATCH, "-o", folder / "train"])
            must([folder / "train", "--data", folder / "feeds.npz", "--steps", STEPS, "--restore", folder / "saved/variables/variables", "--log-json", folder / "log.jsonl"])
            got = np.mean(np.reshape(read_losses(folder / "log.jsonl"), [-1, batches]), axis=1)
            if not np.allclose(got, losses[batches], rtol=2e-4, atol=1e-5):
                found.append(f"{name}: losses {got}, not {losses[batches]}")
    return found


def main():
    need_tools()
    need_tensorflow()
    os.environ["KERAS_BACKEND"] = "tensorflow"
    try:
        import keras
    except ImportError:
        skip("needs Keras 3: pip install keras")
    if not keras.__version__.startswith("3."):
        skip(f"needs Keras 3, not {keras.__version__}")
    import tensorflow as tf
    checks = Checks(share=0.3)
    for name, make in optimizers(keras).items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            checks.check(name, trains, tf, keras, make)
    checks.exit()


if __name__ == "__main__":
    main()
