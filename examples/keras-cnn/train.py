#!/usr/bin/env python3
"""A convolutional network in Keras 3 with batch normalization and dropout, trained by two replicas."""
import os
import pathlib
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import numpy as np
from keras import layers

import distc
import distc.keras

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "digits"
BATCH = 60


def make_model():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((64,)), layers.Reshape((8, 8, 1)), layers.Conv2D(16, 3, padding="same", use_bias=False),
                              layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(), layers.Flatten(), layers.Dropout(0.2, seed=1),
                              layers.Dense(10)])
    model.compile(keras.optimizers.Adam(3e-3, clipnorm=1.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def make_data():
    data = np.load(DIGITS / "train.npz")
    return {"x": data["image"].reshape(-1, 64), "y": data["label"]}


def main():
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "cnn.mlir")
    model, data = make_model(), make_data()
    executable = distc.compile(distc.keras.export(model, (data["x"], data["y"]), path), replicas=2, batch=BATCH)
    result = executable.train(data, steps=300)
    distc.keras.load_state(model, result.state)
    test = np.load(DIGITS / "test.npz")
    accuracy = float((model.predict(test["image"].reshape(-1, 64), verbose=0).argmax(-1) == test["label"]).mean())
    print(f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}, accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
