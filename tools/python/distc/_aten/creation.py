"""Tensors that are made of no others."""
from __future__ import annotations

import jax.numpy as jnp

from distc._aten.table import define, to_dtype


def _of(dtype, default=None):
    return default if dtype is None else to_dtype(dtype)


@define("full")
def _full(shape, value, *, dtype=None, **_):
    return jnp.full(tuple(shape), value, _of(dtype))


@define("zeros", "empty")
def _zeros(shape, *, dtype=None, **_):
    return jnp.zeros(tuple(shape), _of(dtype, jnp.float32))


@define("empty_permuted")
def _empty_permuted(shape, order, *, dtype=None, **_):
    return jnp.zeros(tuple(shape), _of(dtype, jnp.float32))


@define("ones")
def _ones(shape, *, dtype=None, **_):
    return jnp.ones(tuple(shape), _of(dtype, jnp.float32))


@define("full_like")
def _full_like(x, value, *, dtype=None, **_):
    return jnp.full(x.shape, value, _of(dtype, x.dtype))


@define("zeros_like", "empty_like")
def _zeros_like(x, *, dtype=None, **_):
    return jnp.zeros(x.shape, _of(dtype, x.dtype))


@define("ones_like")
def _ones_like(x, *, dtype=None, **_):
    return jnp.ones(x.shape, _of(dtype, x.dtype))


@define("arange")
def _arange(*bounds, dtype=None, **_):
    return jnp.arange(*bounds, dtype=_of(dtype))


@define("scalar_tensor")
def _scalar_tensor(value, *, dtype=None, **_):
    return jnp.asarray(value, _of(dtype))


@define("tril_indices")
def _tril_indices(rows, columns, offset=0, *, dtype=None, **_):
    return jnp.stack(jnp.tril_indices(rows, offset, columns)).astype(_of(dtype, jnp.int64))


@define("triu_indices")
def _triu_indices(rows, columns, offset=0, *, dtype=None, **_):
    return jnp.stack(jnp.triu_indices(rows, offset, columns)).astype(_of(dtype, jnp.int64))


@define("eye")
def _eye(rows, columns=None, *, dtype=None, **_):
    return jnp.eye(rows, columns, dtype=_of(dtype, jnp.float32))
