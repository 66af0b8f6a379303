#!/usr/bin/env python3
"""A small transformer of images in Keras 3 on PyTorch's backend, trained by two replicas."""
import os
import pathlib
import sys

os.environ.setdefault("KERAS_BACKEND", "torch")
import keras
import numpy as np
from keras import layers

import distc
import distc.keras

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "digits"
WIDTH, HEADS, LAYERS, BATCH = 32, 4, 2, 60


def make_model():
    """Each row of eight pixels is a token."""
    keras.utils.set_random_seed(0)
    image = keras.Input((8, 8))
    x = layers.Dense(WIDTH)(image)
    x = x + layers.Reshape((8, WIDTH))(layers.Dense(8 * WIDTH, use_bias=False)(layers.Flatten()(image)))
    for _ in range(LAYERS):
        # The keys of attention have no bias: a softmax takes it away again, and its gradient would be rounding alone.
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(HEADS, WIDTH // HEADS, use_bias=False)(y, y)
        y = layers.Dense(4 * WIDTH, activation="gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dense(WIDTH)(y)
    outputs = layers.Dense(10)(layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x)))
    model = keras.Model(image, outputs)
    model.compile(keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.05, 400), momentum=0.9, nesterov=True),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def make_data():
    data = np.load(DIGITS / "train.npz")
    return {"x": data["image"].reshape(-1, 8, 8), "y": data["label"]}


def main():
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "transformer.mlir")
    model, data = make_model(), make_data()
    executable = distc.compile(distc.keras.export(model, (data["x"], data["y"]), path), replicas=2, batch=BATCH)
    result = executable.train(data, steps=400)
    distc.keras.load_state(model, result.state)
    test = np.load(DIGITS / "test.npz")
    accuracy = float((model.predict(test["image"].reshape(-1, 8, 8), verbose=0).argmax(-1) == test["label"]).mean())
    print(f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}, accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
