"""Operations by index: what data say which element it is."""
from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from distc._aten.reductions import _prod
from distc._aten.table import define


@define("embedding")
def _embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if padding_idx >= 0:
        # The row of padding is read, but has no gradient.
        row = jnp.arange(weight.shape[0])[:, None] == padding_idx
        weight = jnp.where(row, lax.stop_gradient(weight), weight)
    rows = jnp.take(weight, indices, axis=0, mode="clip")
    if not scale_grad_by_freq:
        return rows
    # Gradients are divided by how often the row is read in the batch.
    counts = jax.ops.segment_sum(jnp.ones(indices.shape, weight.dtype).reshape(-1), indices.reshape(-1), weight.shape[0])
    part = rows / jnp.take(counts, indices, mode="clip")[..., None]
    return part + lax.stop_gradient(rows - part)


@define("index")
def _index(x, indices):
    if any(index is not None and index.dtype == bool for index in indices):
        raise NotImplementedError("there is no code for elements that a mask chooses (x[mask]), whose number is not known: weigh them by the mask "
                                  "(torch.where), or let the loss pass over them (ignore_index)")
    if not all(index is None or isinstance(index, np.ndarray) for index in indices):
        x = jnp.asarray(x)  # A tensor that the loss knows, by indices that the batch has.
    return x[tuple(slice(None) if index is None else index for index in indices)]


@define("index_select")
def _index_select(x, axis, index):
    return jnp.take(x, index, axis=axis, mode="clip")


@define("gather")
def _gather(x, axis, index, sparse_grad=False):
    # Of other axes, the first elements, as many as the index has.
    for other, size in enumerate(index.shape):
        if other != axis % x.ndim and size != x.shape[other]:
            x = lax.slice_in_dim(x, 0, size, axis=other)
    return jnp.take_along_axis(x, index, axis, mode="clip")


def _put(method, x, axis, index, source):
    """`source` where an index along `axis` says; along other axes, each element to its own place."""
    axis %= x.ndim
    is_scalar = getattr(source, "ndim", 0) == 0
    if axis > 0 and not isinstance(x.shape[0], int):
        # Example by example.
        return jax.vmap(functools.partial(_put, method), in_axes=(0, None, 0, None if is_scalar else 0))(x, axis - 1, index, source)
    places = [jnp.broadcast_to(jnp.arange(size).reshape((-1,) + (1,) * (index.ndim - 1 - i)), index.shape)
              for i, size in enumerate(index.shape)]
    places[axis] = index
    return getattr(jnp.asarray(x).at[tuple(places)], method)(source if is_scalar else _as_many(source, index))


def _as_many(x, index):
    """Of a source, the first elements, as many as the index has."""
    for axis, size in enumerate(index.shape):
        if isinstance(size, int) and size != x.shape[axis]:
            x = lax.slice_in_dim(x, 0, size, axis=axis)
    return x


@define("scatter.src", "scatter.value")
def _scatter(x, axis, index, source):
    return _put("set", x, axis, index, source)


@define("scatter_add")
def _scatter_add(x, axis, index, source):
    return _put("add", x, axis, index, source)


@define("index_reduce")
def _index_reduce(x, axis, index, source, reduce, *, include_self=True):
    axis %= x.ndim
    index = jnp.broadcast_to(index.reshape((-1,) + (1,) * (x.ndim - 1 - axis)), source.shape)
    return _scatter_reduce(x, axis, index, source, reduce, include_self=include_self)


@define("scatter_reduce")
def _scatter_reduce(x, axis, index, source, reduce, *, include_self=True):
    """By an axis of comparisons, which gives each of those that are alike its share of the gradient."""
    axis, source = axis % x.ndim, _as_many(source, index)
    if any(isinstance(a, int) and a != b for i, (a, b) in enumerate(zip(index.shape, x.shape)) if i != axis):
        raise NotImplementedError("there is no code for scatter_reduce with an index shorter than the tensor along other axes: pad it")
    # [.., sources, .., rows], sources in the place of the axis.
    is_row = index[..., None] == jnp.arange(x.shape[axis])
    neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": -jnp.inf, "amin": jnp.inf}[reduce]
    given = jnp.where(is_row, source[..., None], jnp.asarray(neutral, x.dtype))
    mine = jnp.moveaxis(x, axis, -1)[(slice(None),) * axis + (None,)] if axis < x.ndim - 1 else x[..., None, :]
    has = is_row.any(axis, keepdims=True)
    mine = mine if include_self else jnp.where(has, jnp.asarray(neutral, x.dtype), mine)
    # The tensor's own stand behind the sources.
    mine = jnp.broadcast_to(mine, tuple(1 if i == axis else size for i, size in enumerate(given.shape)))
    both = jnp.concatenate([given, mine], axis)
    if reduce in ("amax", "amin"):
        result = (jnp.max if reduce == "amax" else jnp.min)(both, axis)
    elif reduce == "prod":
        result = _prod(both, axis)
    else:
        result = both.sum(axis)
        if reduce == "mean":
            result = result / jnp.maximum(is_row.sum(axis) + (1 if include_self else ~has.any(axis)), 1).astype(x.dtype)
    return jnp.moveaxis(result, -1, axis)


@define("index_put")
def _index_put(x, indices, values, accumulate=False):
    at = jnp.asarray(x).at[tuple(slice(None) if index is None else index for index in indices)]
    return at.add(values) if accumulate else at.set(values)


@define("copy")
def _copy(x, source, non_blocking=False):
    return jnp.broadcast_to(source, x.shape).astype(x.dtype)


@define("slice_scatter")
def _slice_scatter(x, source, axis=0, start=None, end=None, step=1):
    if isinstance(end, int) and end >= 2**62:
        end = None
    return x.at[(slice(None),) * (axis % x.ndim) + (slice(start, end, step),)].set(source)


@define("select_scatter")
def _select_scatter(x, source, axis, index):
    return x.at[(slice(None),) * (axis % x.ndim) + (index,)].set(source)
