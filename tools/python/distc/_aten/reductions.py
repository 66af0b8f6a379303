"""Reductions, and what runs along an axis."""
from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import torch
from jax import lax

from distc._aten.elements import _abs, _safe_root
from distc._aten.sorting import _beside_others, _cumulative_extreme
from distc._aten.table import define, TABLE, to_dtype


@define("_foreach_norm")
def _norms(xs, order=2, dtype=None):
    return [_vector_norm(x, order, dtype=dtype) for x in xs]


def _axes(axes):
    if axes is None or (isinstance(axes, (list, tuple)) and not axes):
        return None
    return tuple(axes) if isinstance(axes, (list, tuple)) else axes


def _reduction(function, x, axes=None, keepdim=False, dtype=None):
    return function(x if dtype is None else x.astype(to_dtype(dtype)), axis=_axes(axes), keepdims=keepdim)


for _name, _function in {"sum": jnp.sum, "mean": jnp.mean, "amax": jnp.max, "amin": jnp.min, "any": jnp.any, "all": jnp.all,
                         "argmax": jnp.argmax, "argmin": jnp.argmin, "logsumexp": jax.nn.logsumexp}.items():
    TABLE[_name] = functools.partial(_reduction, _function)


def _extreme(find, x, axis, keepdim=False):
    """With its place, which alone has the gradient: that of jnp.max is shared among all that are the largest."""
    if x.ndim == 0:
        return x, jnp.zeros((), jnp.int32)
    places = find(x, axis, keepdims=True)
    values = jnp.take_along_axis(x, places, axis)
    return (values, places) if keepdim else (jnp.squeeze(values, axis), jnp.squeeze(places, axis))


TABLE["max.dim"] = functools.partial(_extreme, jnp.argmax)
TABLE["min.dim"] = functools.partial(_extreme, jnp.argmin)


@define("max.default")
def _max(x):
    return jnp.max(x)


@define("min.default")
def _min(x):
    return jnp.min(x)


@define("var", "var.correction")
def _var(x, axes=None, *, correction=1, keepdim=False):
    axes = _axes(axes)
    mean = jnp.mean(x, axis=axes, keepdims=True)
    total = jnp.sum(jnp.square(x - mean), axis=axes, keepdims=keepdim)
    return total / (_count(x, axes) - correction)


@define("var_mean")
def _var_mean(x, axes=None, *, correction=1, keepdim=False):
    return _var(x, axes, correction=correction, keepdim=keepdim), jnp.mean(x, axis=_axes(axes), keepdims=keepdim)


@define("std")
def _std(x, axes=None, *, correction=1, keepdim=False):
    return _safe_root(_var(x, axes, correction=correction, keepdim=keepdim))


@define("linalg_vector_norm")
def _vector_norm(x, order=2, axes=None, keepdim=False, *, dtype=None):
    x, axes = x if dtype is None else x.astype(to_dtype(dtype)), _axes(axes)
    if jnp.iscomplexobj(x):
        if order == 2:
            return _safe_root(jnp.sum(x.real * x.real + x.imag * x.imag, axis=axes, keepdims=keepdim))
        x = _abs(x)
    if order == 2:
        return _safe_root(jnp.sum(x * x, axis=axes, keepdims=keepdim))
    size = _abs(x)
    if order == 0:
        return jnp.sum(x != 0, axis=axes, keepdims=keepdim).astype(x.dtype)
    if order == 1:
        return jnp.sum(size, axis=axes, keepdims=keepdim)
    if math.isinf(order):
        return (jnp.max if order > 0 else jnp.min)(size, axis=axes, keepdims=keepdim)
    is_zero = size == 0
    total = jnp.sum(jnp.where(is_zero, 0.0 if order > 0 else math.inf, jnp.where(is_zero, 1, size) ** order), axis=axes, keepdims=keepdim)
    is_zero = total == 0
    return jnp.where(is_zero, 0, jnp.where(is_zero, 1, total) ** (1 / order))


@define("dist")
def _distance(x, y, order=2):
    return _vector_norm(x - y, order)


def _widen(x, dtype=None):
    """As PyTorch's sums and products, those of integers in 64 bits."""
    if dtype is not None:
        return x.astype(to_dtype(dtype))
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(to_dtype(torch.int64))


@define("prod")
def _prod(x, axes=None, keepdim=False, dtype=None):
    """By halves: of jnp.prod there is no gradient beside axes whose size is open."""
    x = _widen(x, dtype)
    axes = range(x.ndim) if axes is None else (axes,)
    if not all(isinstance(x.shape[axis], int) for axis in axes):
        raise NotImplementedError("there is no code for products over the examples of the batch: sum their logarithms")
    for axis in axes:
        while x.shape[axis] > 1:
            count = x.shape[axis] // 2
            pairs = lax.slice_in_dim(x, 0, count, axis=axis) * lax.slice_in_dim(x, count, 2 * count, axis=axis)
            x = jnp.concatenate([pairs, lax.slice_in_dim(x, 2 * count, None, axis=axis)], axis)
        if x.shape[axis] == 0:
            x = jnp.ones((*x.shape[:axis], 1, *x.shape[axis + 1:]), x.dtype)
    return x if keepdim else jnp.squeeze(x, tuple(axes))


@define("logcumsumexp")
def _logcumsumexp(x, axis):
    axis %= x.ndim
    if isinstance(x.shape[axis], int):
        return lax.cumlogsumexp(x, axis)
    others, _, so_far = _beside_others(x, axis)
    return jnp.moveaxis(jax.nn.logsumexp(jnp.where(so_far, others, -jnp.inf), -1), -1, axis)


TABLE["cummax"] = functools.partial(_cumulative_extreme, True)
TABLE["cummin"] = functools.partial(_cumulative_extreme, False)


@define("cumprod")
def _cumprod(x, axis, dtype=None):
    x = _widen(x, dtype)
    axis %= max(x.ndim, 1)
    if x.ndim > 0 and not isinstance(x.shape[axis], int):
        others, _, so_far = _beside_others(x, axis)
        return jnp.moveaxis(jnp.prod(jnp.where(so_far, others, 1), -1, dtype=x.dtype), -1, axis)
    return lax.associative_scan(jnp.multiply, x, axis=axis)


@define("cumsum")
def _cumsum(x, axis, dtype=None):
    x = _widen(x, dtype)
    return jnp.cumsum(x, axis) if x.ndim else x


def _count(x, axes):
    """How many elements are reduced, as a number or, with the batch's size in it, as a value."""
    axes = range(x.ndim) if axes is None else (axes if isinstance(axes, tuple) else (axes,))
    count = math.prod(x.shape[axis] for axis in axes)
    return count if isinstance(count, int) else jnp.asarray(count, x.dtype)
