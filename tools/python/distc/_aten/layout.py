"""Operations that only move elements."""
from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from distc._aten.table import define


@define("view", "reshape", "_unsafe_view")
def _view(x, shape):
    return jnp.reshape(x, tuple(shape))


@define("permute")
def _permute(x, order):
    return jnp.transpose(x, tuple(order))


@define("transpose")
def _transpose(x, a, b):
    return jnp.swapaxes(x, a, b)


@define("t")
def _t(x):
    return jnp.transpose(x)


@define("expand")
def _expand(x, shape, implicit=False):
    missing = len(shape) - x.ndim
    sizes = [x.shape[i - missing] if isinstance(size, int) and size == -1 else size for i, size in enumerate(shape)]
    return jnp.broadcast_to(x, tuple(sizes))


@define("squeeze")
def _squeeze(x, axes=None):
    axes = range(x.ndim) if axes is None else axes if isinstance(axes, (list, tuple)) else (axes,)
    return jnp.squeeze(x, tuple(axis for axis in axes if x.ndim and x.shape[axis] == 1))


@define("unsqueeze")
def _unsqueeze(x, axis):
    return jnp.expand_dims(x, axis)


@define("slice")
def _slice(x, axis=0, start=None, end=None, step=1):
    size = x.shape[axis]
    whole = (start is None or start == 0) and (end is None or (isinstance(end, int) and end >= 2**62)) and step == 1
    if whole or (not isinstance(size, int) and start in (None, 0) and end is size):
        return x
    if isinstance(end, int) and end >= 2**62:
        end = None
    return x[(slice(None),) * (axis % x.ndim) + (slice(start, end, step),)]


@define("select")
def _select(x, axis, index):
    size = x.shape[axis]
    if isinstance(index, jax.Array):
        return lax.dynamic_index_in_dim(x, jnp.where(index < 0, index + jnp.asarray(size, index.dtype), index), axis, keepdims=False)
    if isinstance(size, int):
        return lax.index_in_dim(x, index, axis, keepdims=False)
    # One of the examples of the batch.
    return lax.dynamic_index_in_dim(x, index if index >= 0 else jnp.asarray(size) + index, axis, keepdims=False)


@define("cat", "concatenate")
def _cat(parts, axis=0):
    # PyTorch joins an empty vector with anything.
    return jnp.concatenate([part for part in parts if part.shape != (0,)], axis)


@define("stack")
def _stack(parts, axis=0):
    return jnp.stack(parts, axis)


@define("split_with_sizes")
def _split_with_sizes(x, sizes, axis=0):
    parts, begin = [], 0
    for size in sizes:
        parts.append(lax.slice_in_dim(x, begin, begin + size, axis=axis))
        begin += size
    return parts


@define("split")
def _split(x, size, axis=0):
    count = x.shape[axis]
    return _split_with_sizes(x, [min(size, count - begin) for begin in range(0, count, size)], axis)


@define("unbind")
def _unbind(x, axis=0):
    return [lax.index_in_dim(x, i, axis, keepdims=False) for i in range(x.shape[axis])]


@define("flip")
def _flip(x, axes):
    return jnp.flip(x, tuple(axes))


@define("roll")
def _roll(x, shifts, axes=()):
    for shift, axis in zip(shifts, axes):
        if not isinstance(x.shape[axis], int):  # along the batch: by number
            x = jnp.take(x, (jnp.arange(x.shape[axis]) - shift) % x.shape[axis], axis=axis, mode="clip")
    shifts = [shift if not axes or isinstance(x.shape[axes[i]], int) else 0 for i, shift in enumerate(shifts)]
    return jnp.roll(x, tuple(shifts), tuple(axes) or None)


@define("repeat")
def _repeat(x, counts):
    return jnp.tile(x, tuple(counts))


@define("constant_pad_nd")
def _pad(x, padding, value=0):
    widths = [(0, 0, 0)] * x.ndim
    for number in range(len(padding) // 2):
        widths[x.ndim - 1 - number] = (padding[2 * number], padding[2 * number + 1], 0)
    return lax.pad(x, jnp.asarray(value, x.dtype), widths)


@define("unfold")
def _unfold(x, axis, size, step):
    axis %= x.ndim
    starts = range(0, x.shape[axis] - size + 1, step)
    return jnp.stack([jnp.moveaxis(lax.slice_in_dim(x, start, start + size, axis=axis), axis, -1) for start in starts], axis)


@define("tril")
def _tril(x, diagonal=0):
    return jnp.tril(x, diagonal)


@define("triu")
def _triu(x, diagonal=0):
    return jnp.triu(x, diagonal)


@define("diagonal_scatter")
def _diagonal_scatter(x, source, offset=0, dim1=0, dim2=1):
    rows, columns = (jnp.arange(x.shape[dim]) for dim in (dim1, dim2))
    last = jnp.moveaxis(x, (dim1, dim2), (-2, -1))
    # The element of the diagonal that is in each row; others are masked.
    at = jnp.clip(rows + min(offset, 0), 0, source.shape[-1] - 1)
    put = jnp.where(columns == rows[:, None] + offset, jnp.take(source, at, -1)[..., None], last)
    return jnp.moveaxis(put, (-2, -1), (dim1, dim2))


@define("diagonal")
def _diagonal(x, offset=0, dim1=0, dim2=1):
    return jnp.diagonal(x, offset, dim1, dim2)
