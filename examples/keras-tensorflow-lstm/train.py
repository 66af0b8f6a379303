#!/usr/bin/env python3
"""A recurrent network in Keras 3 on TensorFlow's backend that learns the characters of the repository's license, by two replicas."""
import os
import pathlib
import sys

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers

import distc
import distc.keras

TEXT = pathlib.Path(__file__).resolve().parents[2] / "LICENSE"
LENGTH, WIDTH, BATCH = 24, 48, 24


def make_model():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((LENGTH,), dtype="int32"), layers.Embedding(128, WIDTH), layers.LSTM(WIDTH, return_sequences=True),
                              layers.LSTM(WIDTH, return_sequences=True), layers.Dense(128)])
    model.compile(keras.optimizers.AdamW(1e-2, weight_decay=1e-3, global_clipnorm=1.0),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def make_data():
    characters = np.frombuffer(TEXT.read_bytes(), np.uint8).astype(np.int32) % 128
    count = (len(characters) - 1) // LENGTH // BATCH * BATCH
    windows = np.stack([characters[i * LENGTH:(i + 1) * LENGTH + 1] for i in range(count)])
    return {"x": windows[:, :-1].copy(), "y": windows[:, 1:].copy()}


def main():
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "lstm.mlir")
    model, data = make_model(), make_data()
    executable = distc.compile(distc.keras.export(model, (data["x"], data["y"]), path), replicas=2, batch=BATCH)
    result = executable.train(data, steps=400)
    distc.keras.load_state(model, result.state)
    accuracy = float((model.predict(data["x"], verbose=0).argmax(-1) == data["y"]).mean())
    print(f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}, characters foretold {accuracy:.4f}")


if __name__ == "__main__":
    main()
