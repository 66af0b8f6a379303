#!/usr/bin/env python3
"""A perceptron of two layers in JAX, with optax's AdamW, clipping and a schedule, trained by two replicas."""
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

import distc

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "digits"
BATCH = 60
optimizer = optax.chain(optax.clip_by_global_norm(1.0),
                        optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 3e-3, 50, 500)))


def get_logits(params, images):
    hidden = jax.nn.relu(images.reshape(-1, 64) @ params["hidden"]["kernel"] + params["hidden"]["bias"])
    return hidden @ params["output"]["kernel"] + params["output"]["bias"]


def step(state, batch):
    def loss(params):
        logits = get_logits(params, batch["images"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

    value, gradients = jax.value_and_grad(loss)(state["params"])
    updates, opt = optimizer.update(gradients, state["opt"], state["params"])
    return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, value


def make_state():
    first, second = jax.random.split(jax.random.key(0))
    params = {"hidden": {"kernel": jax.random.normal(first, (64, 64)) / 8, "bias": jnp.zeros(64)},
              "output": {"kernel": jax.random.normal(second, (64, 10)) / 8, "bias": jnp.zeros(10)}}
    return {"params": params, "opt": optimizer.init(params)}


def make_data():
    train = np.load(DIGITS / "train.npz")
    return {"images": train["image"], "labels": train["label"]}


def main():
    test, data = np.load(DIGITS / "test.npz"), make_data()
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "mlp.mlir")
    exported = distc.jax.export(step, make_state(), data, path)
    executable = distc.compile(exported, strategy="AllReduce", replicas=2, batch=BATCH)
    result = executable.train(data, steps=500)
    logits = get_logits(result.state["params"], test["image"])
    accuracy = float((logits.argmax(-1) == test["label"]).mean())
    print(f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}, accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
