#!/usr/bin/env python3
"""A small GPT in JAX that learns the characters of the repository's license, with AdamW, clipping and a schedule, by two replicas that divide
the updates. Its layers are one loop (lax.scan), each computed again in the gradient (jax.checkpoint)."""
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

import distc

TEXT = pathlib.Path(__file__).resolve().parents[2] / "LICENSE"
LENGTH, WIDTH, HEADS, LAYERS, BATCH = 32, 32, 4, 2, 16
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-2, 20, 200)))


def normalize(x, scale):
    return scale * (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def block(x, p):
    heads = lambda y: y.reshape(*y.shape[:2], HEADS, WIDTH // HEADS)
    q, k, v = map(heads, jnp.split(normalize(x, p["scale1"]) @ p["qkv"], 3, -1))
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + mixed.reshape(x.shape) @ p["out"]
    return x + jax.nn.gelu(normalize(x, p["scale2"]) @ p["up"]) @ p["down"], None


def get_logits(params, tokens):
    x = params["words"][tokens] + params["places"]
    x, _ = lax.scan(jax.checkpoint(block), x, params["layers"])
    return normalize(x, params["scale"]) @ params["words"].T


def step(state, batch):
    def loss(params):
        logits = get_logits(params, batch["tokens"][:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["tokens"][:, 1:]).mean()

    value, gradients = jax.value_and_grad(loss)(state["params"])
    updates, opt = optimizer.update(gradients, state["opt"], state["params"])
    return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, value


def make_data():
    characters = np.frombuffer(TEXT.read_bytes(), np.uint8).astype(np.int32) % 128
    count = (len(characters) - 1) // LENGTH // BATCH * BATCH
    return {"tokens": np.stack([characters[i * LENGTH:(i + 1) * LENGTH + 1] for i in range(count)])}


def make_state():
    keys = iter(jax.random.split(jax.random.key(0), 6))
    draw = lambda *shape: 0.1 * jax.random.normal(next(keys), shape)
    params = {"words": draw(128, WIDTH), "places": draw(LENGTH, WIDTH), "scale": jnp.ones(WIDTH),
              "layers": {"qkv": draw(LAYERS, WIDTH, 3 * WIDTH), "out": draw(LAYERS, WIDTH, WIDTH), "up": draw(LAYERS, WIDTH, 4 * WIDTH),
                         "down": draw(LAYERS, 4 * WIDTH, WIDTH), "scale1": jnp.ones((LAYERS, WIDTH)), "scale2": jnp.ones((LAYERS, WIDTH))}}
    return {"params": params, "opt": optimizer.init(params)}


def main():
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "gpt.mlir")
    data = make_data()
    executable = distc.compile(distc.jax.export(step, make_state(), data, path), strategy="ShardedUpdate", replicas=2, batch=BATCH,
                               processes=True)
    result = executable.train(data, steps=200)
    print(f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}")


if __name__ == "__main__":
    main()
