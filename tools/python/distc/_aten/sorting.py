"""Operations that order elements, or look for a place among them."""
from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from distc._aten.table import define


def _beside_others(x, axis):
    """Along the batch, whose size is open: each example (the axis before the last) beside all others (the last), their numbers, and
    which are not behind it."""
    number = jnp.arange(x.shape[axis])
    return jnp.moveaxis(x, axis, -1)[..., None, :], number, number <= number[:, None]


def _cumulative_extreme(is_max, x, axis):
    """With places: of those that are alike the last, which alone has the gradient."""
    if x.ndim == 0:
        return x, jnp.zeros((), int)
    axis %= x.ndim
    if not isinstance(x.shape[axis], int):
        others, number, so_far = _beside_others(x, axis)
        seen = lax.stop_gradient(others)
        # One that is there takes the place of those that are not.
        known = jnp.where(so_far, seen, seen[..., :1])
        extreme = (jnp.max if is_max else jnp.min)(known, -1, keepdims=True)
        places = jnp.max(jnp.where(so_far & (seen == extreme), number, -1), -1)
        values = jnp.sum(jnp.where(number == places[..., None], others, 0), -1, dtype=x.dtype)
        return jnp.moveaxis(values, -1, axis), jnp.moveaxis(places, -1, axis)
    number = jnp.broadcast_to(jnp.arange(x.shape[axis]).reshape((-1,) + (1,) * (x.ndim - 1 - axis)), x.shape)

    def later(a, b):
        is_later = b[0] >= a[0] if is_max else b[0] <= a[0]
        return jnp.where(is_later, b[0], a[0]), jnp.where(is_later, b[1], a[1])

    places = lax.associative_scan(later, (lax.stop_gradient(x), number), axis=axis)[1]
    return jnp.take_along_axis(x, places, axis), places


@define("kthvalue")
def _kthvalue(x, k, axis=-1, keepdim=False):
    places = lax.slice_in_dim(jnp.argsort(lax.stop_gradient(x), axis), k - 1, k, axis=axis)
    values = jnp.take_along_axis(x, places, axis)
    return (values, places) if keepdim else (jnp.squeeze(values, axis), jnp.squeeze(places, axis))


@define("median.dim")
def _median(x, axis, keepdim=False):
    # The lower of two; of a row with NaN that.
    values, places = _kthvalue(x, (x.shape[axis] + 1) // 2, axis, True)
    is_nan = jnp.isnan(x)
    of_nan = jnp.argmax(is_nan, axis, keepdims=True)
    places = jnp.where(is_nan.any(axis, keepdims=True), of_nan, places)
    values = jnp.take_along_axis(x, places, axis)
    return (values, places) if keepdim else (jnp.squeeze(values, axis), jnp.squeeze(places, axis))


@define("nanmedian.dim")
def _nanmedian(x, axis, keepdim=False):
    order = jnp.argsort(lax.stop_gradient(x), axis)  # NaN last
    count = jnp.sum(~jnp.isnan(x), axis, keepdims=True)
    places = jnp.take_along_axis(order, jnp.maximum(count - 1, 0) // 2, axis)
    values = jnp.take_along_axis(x, places, axis)
    return (values, places) if keepdim else (jnp.squeeze(values, axis), jnp.squeeze(places, axis))


def _middle_of_all(x, count):
    """The lower of two in the middle of the first `count` in order. Those that are alike share the gradient."""
    flat = lax.stop_gradient(x).reshape(-1)
    middle = jnp.take(jnp.sort(flat), (count - 1) // 2, mode="clip")
    is_middle = flat == middle
    return jnp.sum(jnp.where(is_middle, x.reshape(-1), 0), dtype=x.dtype) / jnp.sum(is_middle).astype(x.dtype), middle


@define("median.default")
def _median_of_all(x):
    # Integers have no NaN, and are what they are.
    value, middle = _middle_of_all(x, jnp.asarray(math.prod(x.shape)))
    return jnp.where(jnp.isnan(x).any(), jnp.nan, value) if jnp.issubdtype(x.dtype, jnp.inexact) else middle


@define("nanmedian.default")
def _nanmedian_of_all(x):
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return _median_of_all(x)
    count = jnp.sum(~jnp.isnan(x))  # NaN last
    value, _ = _middle_of_all(x, jnp.maximum(count, 1))
    return jnp.where(count == 0, jnp.nan, value)


@define("sort")
def _sort(x, dim=-1, descending=False, *, stable=None):
    axis = dim
    order = jnp.argsort(x, axis, descending=descending)
    return jnp.take_along_axis(x, order, axis), order


@define("bucketize")
def _bucketize(x, bounds, *, out_int32=False, right=False):
    return jnp.searchsorted(bounds, x, side="right" if right else "left")


@define("histc")
def _histogram(x, bins=100, min=0, max=0):
    if min == max:
        raise NotImplementedError("there is code for histc between bounds that are given alone: say min and max")
    edges = np.linspace(min, max, bins + 1)
    x = x.reshape(-1)
    place = jnp.where(x == max, bins - 1, jnp.searchsorted(jnp.asarray(edges, jnp.result_type(x.dtype, float)), x, side="right") - 1)
    is_inside = (x >= min) & (x <= max)
    return jnp.sum((place[:, None] == jnp.arange(bins)) & is_inside[:, None], 0)


@define("repeat_interleave.Tensor")
def _numbers_repeated(counts, *, output_size=None):
    if output_size is None:
        raise NotImplementedError("there is code for repeat_interleave by a tensor where it says how many there are in all: output_size=..")
    ends = jnp.cumsum(counts)
    return jnp.sum(ends <= jnp.arange(output_size)[:, None], 1, dtype=counts.dtype)


@define("searchsorted")
def _searchsorted(bounds, x, *, out_int32=False, right=False, side=None, sorter=None):
    if sorter is not None:
        raise NotImplementedError("there is no code for searchsorted with a sorter: take_along_dim sorts")
    search = functools.partial(jnp.searchsorted, side=side or ("right" if right else "left"))
    if bounds.ndim > 1:  # Row by row.
        for _ in bounds.shape[:-1]:
            search = jax.vmap(search)
    return search(bounds, x)


@define("topk")
def _topk(x, k, axis=-1, largest=True, sorted=True):
    if x.ndim == 0:
        return x, jnp.zeros((), int)
    moved = jnp.moveaxis(x, axis, -1)
    # ~x turns the order of integers around; -x is another number of the least one, and of those without a sign.
    turned = (lambda y: y) if largest else jnp.invert if jnp.issubdtype(x.dtype, jnp.integer) else jnp.negative
    values, places = lax.top_k(turned(moved), k)
    return jnp.moveaxis(turned(values), -1, axis), jnp.moveaxis(places, -1, axis)
