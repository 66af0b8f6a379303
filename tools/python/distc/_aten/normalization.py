"""Normalization over the batch, layers and groups."""
from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from distc._aten.reductions import _count
from distc._aten.table import define


def _along_channels(x, value):
    return value.reshape((1, -1) + (1,) * (x.ndim - 2))


def _normalize(x, mean, rsqrt, weight, bias):
    out = (x - _along_channels(x, mean)) * _along_channels(x, rsqrt)
    if weight is not None:
        out = out * _along_channels(x, weight)
    return out if bias is None else out + _along_channels(x, bias)


@define("_native_batch_norm_legit_functional")
def _batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    if not training:
        rsqrt = lax.rsqrt(running_var + eps)
        return _normalize(x, running_mean, rsqrt, weight, bias), running_mean, rsqrt, running_mean, running_var
    axes = (0, *range(2, x.ndim))
    mean = jnp.mean(x, axes)
    var = jnp.mean(jnp.square(x - _along_channels(x, mean)), axes)
    rsqrt = lax.rsqrt(var + eps)
    count = _count(x, axes)
    return (_normalize(x, mean, rsqrt, weight, bias), mean, rsqrt, (1 - momentum) * running_mean + momentum * mean,
            (1 - momentum) * running_var + momentum * var * (count / (count - 1)))


@define("_native_batch_norm_legit.no_stats")
def _batch_norm_without_stats(x, weight, bias, training, momentum, eps):
    axes = (0, *range(2, x.ndim))
    mean, var = jnp.mean(x, axes), jnp.var(x, axes)
    rsqrt = lax.rsqrt(var + eps)
    return _normalize(x, mean, rsqrt, weight, bias), mean, rsqrt


@define("_native_batch_norm_legit_no_training")
def _batch_norm_of_inference(x, weight, bias, running_mean, running_var, momentum, eps):
    rsqrt = lax.rsqrt(running_var + eps)
    return _normalize(x, running_mean, rsqrt, weight, bias), None, None


@define("native_layer_norm")
def _layer_norm(x, shape, weight, bias, eps):
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean = jnp.mean(x, axes, keepdims=True)
    rsqrt = lax.rsqrt(jnp.mean(jnp.square(x - mean), axes, keepdims=True) + eps)
    out = (x - mean) * rsqrt
    if weight is not None:
        out = out * weight
    # PyTorch's gradient goes through the first result alone.
    return out if bias is None else out + bias, lax.stop_gradient(mean), lax.stop_gradient(rsqrt)


@define("native_group_norm")
def _group_norm(x, weight, bias, n, channels, size, groups, eps):
    grouped = x.reshape(x.shape[0], groups, channels // groups, *x.shape[2:])
    axes = tuple(range(2, grouped.ndim))
    mean = jnp.mean(grouped, axes, keepdims=True)
    rsqrt = lax.rsqrt(jnp.mean(jnp.square(grouped - mean), axes, keepdims=True) + eps)
    out = ((grouped - mean) * rsqrt).reshape(x.shape)
    if weight is not None:
        out = out * _along_channels(x, weight)
    statistics = (x.shape[0], groups)
    return out if bias is None else out + _along_channels(x, bias), mean.reshape(statistics), rsqrt.reshape(statistics)
