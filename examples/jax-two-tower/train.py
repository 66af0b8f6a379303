#!/usr/bin/env python3
"""A recommender of two towers in JAX: each user's item against all items of the batch. Two replicas see each other's items."""
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

import distc

USERS, ITEMS, WIDTH, BATCH = 400, 200, 16, 40
optimizer = optax.adam(1e-2)


def encode(tower, ids):
    x = jnp.tanh(tower["rows"][ids] @ tower["kernel"])
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


def step(state, batch):
    def loss(params):
        users, items = encode(params["users"], batch["user"]), encode(params["items"], batch["item"])
        scores = 10 * users @ items.T
        return optax.softmax_cross_entropy_with_integer_labels(scores, jnp.arange(scores.shape[0])).mean()

    value, gradients = jax.value_and_grad(loss)(state["params"])
    updates, opt = optimizer.update(gradients, state["opt"])
    return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, value


def make_data():
    """Users take items of their own kind, of which there are eight."""
    random = np.random.RandomState(0)
    users = random.randint(0, USERS, 4000)
    return {"user": users.astype("i"), "item": (random.randint(0, ITEMS // 8, 4000) * 8 + users % 8).astype("i")}


def make_state():
    keys = jax.random.split(jax.random.key(0), 4)
    params = {"users": {"rows": jax.random.normal(keys[0], (USERS, WIDTH)), "kernel": jax.random.normal(keys[1], (WIDTH, WIDTH)) / 4},
              "items": {"rows": jax.random.normal(keys[2], (ITEMS, WIDTH)), "kernel": jax.random.normal(keys[3], (WIDTH, WIDTH)) / 4}}
    return {"params": params, "opt": optimizer.init(params)}


def main():
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "towers.mlir")
    data = make_data()
    executable = distc.compile(distc.jax.export(step, make_state(), data, path), strategy="Parallax", replicas=2, batch=BATCH)
    result = executable.train(data, steps=500)
    users = np.arange(200)
    scores = encode(result.state["params"]["users"], users) @ encode(result.state["params"]["items"], np.arange(ITEMS)).T
    print(f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}, best item of the user's kind {float((scores.argmax(-1) % 8 == users % 8).mean()):.4f}")


if __name__ == "__main__":
    main()
