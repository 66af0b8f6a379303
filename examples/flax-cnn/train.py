#!/usr/bin/env python3
"""A convolutional network in Flax with batch normalization and dropout, trained by two replicas that normalize by the whole batch."""
import pathlib
import sys

import flax.linen as nn
import jax
import numpy as np
import optax

import distc

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "digits"
BATCH = 60


class Network(nn.Module):
    @nn.compact
    def __call__(self, images, train):
        x = images.reshape(images.shape[0], 8, 8, 1)
        for features in (16, 32):
            x = nn.Conv(features, (3, 3), use_bias=False)(x)
            x = nn.relu(nn.BatchNorm(use_running_average=not train, momentum=0.9)(x))
            x = nn.max_pool(x, (2, 2), (2, 2))
        x = nn.Dropout(0.2, deterministic=not train)(x.reshape(x.shape[0], -1))
        return nn.Dense(10)(x)


network = Network()
optimizer = optax.sgd(optax.cosine_decay_schedule(0.03, 300), momentum=0.9, nesterov=True)


def step(state, batch):
    key, dropout = jax.random.split(state["key"])

    def loss(params):
        logits, changed = network.apply({"params": params, "batch_stats": state["batch_stats"]}, batch["images"], True,
                                        mutable=["batch_stats"], rngs={"dropout": dropout})
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean(), changed["batch_stats"]

    (value, batch_stats), gradients = jax.value_and_grad(loss, has_aux=True)(state["params"])
    updates, opt = optimizer.update(gradients, state["opt"])
    return {"params": optax.apply_updates(state["params"], updates), "batch_stats": batch_stats, "opt": opt, "key": key}, value


def make_data():
    data = np.load(DIGITS / "train.npz")
    return {"images": data["image"], "labels": data["label"]}


def make_state():
    variables = network.init(jax.random.key(2), np.zeros((1, 64), "f"), False)
    return {**variables, "opt": optimizer.init(variables["params"]), "key": jax.random.key(1)}


def main():
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "cnn.mlir")
    data = make_data()
    executable = distc.compile(distc.jax.export(step, make_state(), data, path), replicas=2, batch=BATCH)
    result = executable.train(data, steps=300)
    test = np.load(DIGITS / "test.npz")
    variables = {name: result.state[name] for name in ("params", "batch_stats")}
    accuracy = float((network.apply(variables, test["image"], False).argmax(-1) == test["label"]).mean())
    print(f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}, accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
