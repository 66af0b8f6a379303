"""Random numbers: JAX's, drawn from a key that the step hands on."""
from __future__ import annotations

from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from distc._aten.creation import _of

RANDOM: dict[str, Callable[..., Any]] = {
    "rand": lambda key, shape, dtype=None, **_: jax.random.uniform(key, tuple(shape), _of(dtype, jnp.float32)),
    "randn": lambda key, shape, dtype=None, **_: jax.random.normal(key, tuple(shape), _of(dtype, jnp.float32)),
    "rand_like": lambda key, x, **_: jax.random.uniform(key, x.shape, x.dtype),
    "randn_like": lambda key, x, **_: jax.random.normal(key, x.shape, x.dtype),
}


def _random(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            RANDOM[name] = function
        return function
    return add


@_random("native_dropout")
def _dropout(key, x, p, train=True):
    if train is False or p == 0:
        return x, jnp.ones(x.shape, bool)
    if p == 1:
        return jnp.zeros_like(x), jnp.zeros(x.shape, bool)
    mask = jax.random.bernoulli(key, np.float32(1 - p), x.shape)
    return jnp.where(mask, x / (1 - p), 0), mask


@_random("rrelu_with_noise_functional")
def _rrelu(key, x, noise, lower=0.125, upper=1 / 3, training=False, **_):
    slope = jax.random.uniform(key, x.shape, x.dtype, lower, upper) if training else (lower + upper) / 2
    return jnp.where(x > 0, x, slope * x), noise


@_random("randperm")
def _permutation(key, count, **_):
    # Of a size that is open jax.random.permutation knows no number of rounds.
    return jnp.argsort(jax.random.uniform(key, (count,), jnp.float32))


def _integers(key, low, high, shape, dtype):
    # Drawn in 32 bits, where they fit.
    fits = isinstance(low, int) and isinstance(high, int) and -2**31 <= low and high <= 2**31 - 1
    return jax.random.randint(key, tuple(shape), low, high, jnp.int32 if fits else jnp.int64).astype(dtype)


@_random("randint")
def _randint(key, *bounds_and_shape, dtype=None, **_):
    *bounds, shape = bounds_and_shape
    return _integers(key, *(bounds if len(bounds) == 2 else (0, *bounds)), shape, _of(dtype, jnp.int64))


@_random("randint_like")
def _randint_like(key, x, *bounds, dtype=None, **_):
    return _integers(key, *(bounds if len(bounds) == 2 else (0, *bounds)), x.shape, _of(dtype, x.dtype))


@_random("normal")
def _normal(key, mean, std=1.0, shape=None, *, dtype=None, **_):
    if shape is None:  # Of tensors.
        shape = jnp.broadcast_shapes(jnp.shape(mean), jnp.shape(std))
    kind = _of(dtype) or next((x.dtype for x in (mean, std) if hasattr(x, "dtype")), jnp.float32)
    return mean + std * jax.random.normal(key, tuple(shape), kind)


@_random("normal_functional")
def _normal_like(key, x, mean=0.0, std=1.0, **_):
    return mean + std * jax.random.normal(key, x.shape, x.dtype)


@_random("uniform")
def _uniform_like(key, x, low=0.0, high=1.0, **_):
    return low + (high - low) * jax.random.uniform(key, x.shape, x.dtype)


@_random("exponential")
def _exponential_like(key, x, rate=1.0, **_):
    return jax.random.exponential(key, x.shape, x.dtype) / rate


@_random("multinomial")
def _multinomial(key, weights, count, replacement=False, **_):
    logits = jnp.log(weights)
    if replacement:
        noise = jax.random.gumbel(key, (*weights.shape[:-1], count, weights.shape[-1]), weights.dtype)
        return jnp.argmax(logits[..., None, :] + noise, -1)
    # The largest of logits with noise are drawn without replacement.
    return lax.top_k(logits + jax.random.gumbel(key, weights.shape, weights.dtype), count)[1].astype(jnp.int64)


@_random("bernoulli")
def _bernoulli(key, x, p=None, **_):
    return jax.random.bernoulli(key, x if p is None else np.float32(p), x.shape).astype(x.dtype)
