"""Graphs that torch.export wrote, as functions of JAX: PyTorch's core operations (core ATen), one entry of a table each.

Only the forward pass is translated; gradients are JAX's. Every result has the element type and the shape that PyTorch says.
"""
from __future__ import annotations

import collections
import functools
import math
import operator
import re
from typing import Any, Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import core, lax
from jax.export import is_symbolic_dim
from torch.fx.experimental.symbolic_shapes import statically_known_true

from distc import _indices
from distc._functions import COTANGENT, WITH_GRADIENT, Gradients
from distc._masks import Chosen
from distc._parts import JOIN

_TABLE: dict[str, Callable[..., Any]] = {}


class UnknownOperations(NotImplementedError):
    """Names every operation of a module that there is no code for."""


def _define(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _TABLE[name] = function
        return function
    return add


def to_dtype(dtype: torch.dtype) -> Any:
    """JAX's type for PyTorch's."""
    return jax.dtypes.canonicalize_dtype(jnp.dtype(str(dtype).removeprefix("torch.")))


# ---- Elements ----------------------------------------------------------------------------------------------------------

for _name in ("exp log log1p log2 log10 expm1 sqrt sin cos tan tanh sinh cosh sign floor ceil trunc isnan isinf logical_not logical_and "
              "logical_or logical_xor maximum minimum bitwise_and bitwise_or bitwise_xor bitwise_not square fmod").split():
    _TABLE[_name] = getattr(jnp, _name)
for _name, _function in {"neg": jnp.negative, "asin": jnp.arcsin, "acos": jnp.arccos, "atan": jnp.arctan,
                         "asinh": jnp.arcsinh, "acosh": jnp.arccosh, "atanh": jnp.arctanh, "atan2": jnp.arctan2,
                         "rsqrt": lax.rsqrt, "erf": lax.erf, "erfc": lax.erfc, "sigmoid": jax.nn.sigmoid, "relu": jax.nn.relu,
                         "silu": jax.nn.silu, "mish": jax.nn.mish, "round": jnp.round, "mul": operator.mul, "eq": operator.eq, "ne": operator.ne,
                         "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "pow": jnp.power,
                         "remainder": jnp.mod, "where": jnp.where, "floor_divide": jnp.floor_divide,
                         "reciprocal": lambda x: 1 / x, "lgamma": lax.lgamma, "digamma": lax.digamma,
                         "erfinv": lax.erf_inv, "sinc": jnp.sinc, "hypot": lambda x, y: _safe_root(x * x + y * y), "copysign": jnp.copysign,
                         "exp2": jnp.exp2, "ldexp": lambda x, y: x * jnp.exp2(y.astype(x.dtype)), "frexp": jnp.frexp, "signbit": jnp.signbit, "gcd": jnp.gcd,
                         "__lshift__": jnp.left_shift, "__rshift__": jnp.right_shift, "bitwise_left_shift": jnp.left_shift, "bitwise_right_shift": jnp.right_shift,
                         "i0": jax.scipy.special.i0, "special_i0e": jax.scipy.special.i0e, "special_i1": jax.scipy.special.i1,
                         "special_i1e": jax.scipy.special.i1e, "special_zeta": jax.scipy.special.zeta,
                         "polygamma": jax.scipy.special.polygamma, "_is_all_true": jnp.all, "_is_any_true": jnp.any,
                         "log_sigmoid_forward": lambda x: (jax.nn.log_sigmoid(x), x)}.items():
    _TABLE[_name] = _function
for _name in "clone alias lift_fresh_copy contiguous _to_copy lift view_as".split():
    _TABLE[_name] = lambda x, *_, **__: x
_TABLE["detach"] = lax.stop_gradient
_TABLE["distc.index"] = _indices.check


@_define("add")
def _add(x, y, alpha=1):
    return x + (y if alpha == 1 else alpha * y)


@_define("sub")
def _sub(x, y, alpha=1):
    return x - (y if alpha == 1 else alpha * y)


@_define("rsub")
def _rsub(x, y, alpha=1):
    return y - (x if alpha == 1 else alpha * x)


@_define("div", "true_divide")
def _div(x, y, rounding_mode=None):
    if rounding_mode is None:
        return x / y
    if rounding_mode == "floor":
        return jnp.floor_divide(x, y)
    dtype = jnp.result_type(x, y)
    if not jnp.issubdtype(dtype, jnp.integer):
        return jnp.trunc(x / y)
    # Exactly: a float has no room for all integers.
    return lax.div(*jnp.broadcast_arrays(jnp.asarray(x, dtype), jnp.asarray(y, dtype)))


def _of_numbers_alone(function):
    """fmax and fmin: of a number and NaN the number."""
    return lambda x, y: function(jnp.where(jnp.isnan(x), y, x), jnp.where(jnp.isnan(y), x, y))


_TABLE["fmax"] = _of_numbers_alone(jnp.maximum)
_TABLE["fmin"] = _of_numbers_alone(jnp.minimum)


@_define("abs")
def _abs(x):
    # Without a gradient at zero, where jnp.abs of real numbers has that of x.
    return x * lax.stop_gradient(jnp.sign(x)) if jnp.issubdtype(x.dtype, jnp.floating) else jnp.abs(x)


@_define("clamp", "hardtanh")
def _clamp(x, low=None, high=None):
    # The gradient at a bound is shared with a bound that is a tensor; one that is a number leaves none to x.
    if low is not None:
        x = jnp.where(x <= low, low, x) if isinstance(low, (int, float)) else jnp.maximum(x, low)
    if high is not None:
        x = jnp.where(x >= high, high, x) if isinstance(high, (int, float)) else jnp.minimum(x, high)
    return x


@_define("clamp_min")
def _clamp_min(x, low):
    return _clamp(x, low)


@_define("clamp_max")
def _clamp_max(x, high):
    return _clamp(x, None, high)


@_define("xlogy")
def _xlogy(x, y):
    # Zero times the logarithm of what has none is zero, without a gradient.
    is_zero = (x == 0) & ((y <= 0) | jnp.isinf(y))
    return jnp.where(is_zero, 0, x * jnp.log(jnp.where(is_zero, 1, y)))


@_define("addcmul")
def _addcmul(x, a, b, value=1):
    return x + value * a * b


@_define("addcdiv")
def _addcdiv(x, a, b, value=1):
    return x + value * a / b


@_define("_foreach_norm")
def _norms(xs, order=2, dtype=None):
    return [_vector_norm(x, order, dtype=dtype) for x in xs]


@_define("lerp")
def _lerp(x, end, weight):
    return x + weight * (end - x)


@_define("masked_fill")
def _masked_fill(x, mask, value):
    return jnp.where(mask, value, x)


@_define("gelu")
def _gelu(x, approximate="none"):
    return jax.nn.gelu(x, approximate=approximate == "tanh")


@_define("leaky_relu")
def _leaky_relu(x, slope=0.01):
    return jnp.where(x > 0, x, slope * x)


@_define("prelu", "_prelu_kernel")
def _prelu(x, slope):
    return jnp.where(x > 0, x, slope * x)


@_define("elu")
def _elu(x, alpha=1, scale=1, input_scale=1):
    return scale * jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0, x) * input_scale))


@_define("hardswish")
def _hardswish(x):
    return x * _clamp(x + 3, 0, 6) / 6


@_define("hardsigmoid")
def _hardsigmoid(x):
    return _clamp(x + 3, 0, 6) / 6


@_define("softplus")
def _softplus(x, beta=1, threshold=20):
    scaled = x * beta
    return jnp.where(scaled > threshold, x, jax.nn.softplus(jnp.minimum(scaled, threshold)) / beta)


@_define("_softmax")
def _softmax(x, axis, half_to_float=False):
    return jax.nn.softmax(x, axis)


@_define("_log_softmax")
def _log_softmax(x, axis, half_to_float=False):
    return jax.nn.log_softmax(x, axis)


# ---- Reductions --------------------------------------------------------------------------------------------------------

def _axes(axes):
    if axes is None or (isinstance(axes, (list, tuple)) and not axes):
        return None
    return tuple(axes) if isinstance(axes, (list, tuple)) else axes


def _reduction(function, x, axes=None, keepdim=False, dtype=None):
    return function(x if dtype is None else x.astype(to_dtype(dtype)), axis=_axes(axes), keepdims=keepdim)


for _name, _function in {"sum": jnp.sum, "mean": jnp.mean, "amax": jnp.max, "amin": jnp.min, "any": jnp.any, "all": jnp.all,
                         "argmax": jnp.argmax, "argmin": jnp.argmin, "logsumexp": jax.nn.logsumexp}.items():
    _TABLE[_name] = functools.partial(_reduction, _function)


def _extreme(find, x, axis, keepdim=False):
    """With its place, which alone has the gradient: that of jnp.max is shared among all that are the largest."""
    if x.ndim == 0:
        return x, jnp.zeros((), jnp.int32)
    places = find(x, axis, keepdims=True)
    values = jnp.take_along_axis(x, places, axis)
    return (values, places) if keepdim else (jnp.squeeze(values, axis), jnp.squeeze(places, axis))


_TABLE["max.dim"] = functools.partial(_extreme, jnp.argmax)
_TABLE["min.dim"] = functools.partial(_extreme, jnp.argmin)


@_define("max.default")
def _max(x):
    return jnp.max(x)


@_define("min.default")
def _min(x):
    return jnp.min(x)


@_define("var", "var.correction")
def _var(x, axes=None, *, correction=1, keepdim=False):
    axes = _axes(axes)
    mean = jnp.mean(x, axis=axes, keepdims=True)
    total = jnp.sum(jnp.square(x - mean), axis=axes, keepdims=keepdim)
    return total / (_count(x, axes) - correction)


@_define("var_mean")
def _var_mean(x, axes=None, *, correction=1, keepdim=False):
    return _var(x, axes, correction=correction, keepdim=keepdim), jnp.mean(x, axis=_axes(axes), keepdims=keepdim)


def _safe_root(x):
    """The square root, whose gradient at zero is zero, as PyTorch says of norms and deviations, in place of infinity."""
    is_zero = x == 0
    return jnp.where(is_zero, 0, jnp.sqrt(jnp.where(is_zero, 1, x)))


@_define("std")
def _std(x, axes=None, *, correction=1, keepdim=False):
    return _safe_root(_var(x, axes, correction=correction, keepdim=keepdim))


@_define("linalg_vector_norm")
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


@_define("dist")
def _distance(x, y, order=2):
    return _vector_norm(x - y, order)


def _widen(x, dtype=None):
    """As PyTorch's sums and products, those of integers in 64 bits."""
    if dtype is not None:
        return x.astype(to_dtype(dtype))
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(to_dtype(torch.int64))


@_define("prod")
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


@_define("logcumsumexp")
def _logcumsumexp(x, axis):
    axis %= x.ndim
    if isinstance(x.shape[axis], int):
        return lax.cumlogsumexp(x, axis)
    others, _, so_far = _beside_others(x, axis)
    return jnp.moveaxis(jax.nn.logsumexp(jnp.where(so_far, others, -jnp.inf), -1), -1, axis)


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


_TABLE["cummax"] = functools.partial(_cumulative_extreme, True)
_TABLE["cummin"] = functools.partial(_cumulative_extreme, False)


@_define("kthvalue")
def _kthvalue(x, k, axis=-1, keepdim=False):
    places = lax.slice_in_dim(jnp.argsort(lax.stop_gradient(x), axis), k - 1, k, axis=axis)
    values = jnp.take_along_axis(x, places, axis)
    return (values, places) if keepdim else (jnp.squeeze(values, axis), jnp.squeeze(places, axis))


@_define("median.dim")
def _median(x, axis, keepdim=False):
    # The lower of two; of a row with NaN that.
    values, places = _kthvalue(x, (x.shape[axis] + 1) // 2, axis, True)
    is_nan = jnp.isnan(x)
    of_nan = jnp.argmax(is_nan, axis, keepdims=True)
    places = jnp.where(is_nan.any(axis, keepdims=True), of_nan, places)
    values = jnp.take_along_axis(x, places, axis)
    return (values, places) if keepdim else (jnp.squeeze(values, axis), jnp.squeeze(places, axis))


@_define("nanmedian.dim")
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


@_define("median.default")
def _median_of_all(x):
    # Integers have no NaN, and are what they are.
    value, middle = _middle_of_all(x, jnp.asarray(math.prod(x.shape)))
    return jnp.where(jnp.isnan(x).any(), jnp.nan, value) if jnp.issubdtype(x.dtype, jnp.inexact) else middle


@_define("nanmedian.default")
def _nanmedian_of_all(x):
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return _median_of_all(x)
    count = jnp.sum(~jnp.isnan(x))  # NaN last
    value, _ = _middle_of_all(x, jnp.maximum(count, 1))
    return jnp.where(count == 0, jnp.nan, value)


@_define("cumprod")
def _cumprod(x, axis, dtype=None):
    x = _widen(x, dtype)
    axis %= max(x.ndim, 1)
    if x.ndim > 0 and not isinstance(x.shape[axis], int):
        others, _, so_far = _beside_others(x, axis)
        return jnp.moveaxis(jnp.prod(jnp.where(so_far, others, 1), -1, dtype=x.dtype), -1, axis)
    return lax.associative_scan(jnp.multiply, x, axis=axis)


@_define("cumsum")
def _cumsum(x, axis, dtype=None):
    x = _widen(x, dtype)
    return jnp.cumsum(x, axis) if x.ndim else x


@_define("sort")
def _sort(x, dim=-1, descending=False, *, stable=None):
    axis = dim
    order = jnp.argsort(x, axis, descending=descending)
    return jnp.take_along_axis(x, order, axis), order


@_define("bucketize")
def _bucketize(x, bounds, *, out_int32=False, right=False):
    return jnp.searchsorted(bounds, x, side="right" if right else "left")


@_define("histc")
def _histogram(x, bins=100, min=0, max=0):
    if min == max:
        raise NotImplementedError("there is code for histc between bounds that are given alone: say min and max")
    edges = np.linspace(min, max, bins + 1)
    x = x.reshape(-1)
    place = jnp.where(x == max, bins - 1, jnp.searchsorted(jnp.asarray(edges, jnp.result_type(x.dtype, float)), x, side="right") - 1)
    is_inside = (x >= min) & (x <= max)
    return jnp.sum((place[:, None] == jnp.arange(bins)) & is_inside[:, None], 0)


@_define("repeat_interleave.Tensor")
def _numbers_repeated(counts, *, output_size=None):
    if output_size is None:
        raise NotImplementedError("there is code for repeat_interleave by a tensor where it says how many there are in all: output_size=..")
    ends = jnp.cumsum(counts)
    return jnp.sum(ends <= jnp.arange(output_size)[:, None], 1, dtype=counts.dtype)


@_define("searchsorted")
def _searchsorted(bounds, x, *, out_int32=False, right=False, side=None, sorter=None):
    if sorter is not None:
        raise NotImplementedError("there is no code for searchsorted with a sorter: take_along_dim sorts")
    search = functools.partial(jnp.searchsorted, side=side or ("right" if right else "left"))
    if bounds.ndim > 1:  # Row by row.
        for _ in bounds.shape[:-1]:
            search = jax.vmap(search)
    return search(bounds, x)


@_define("topk")
def _topk(x, k, axis=-1, largest=True, sorted=True):
    if x.ndim == 0:
        return x, jnp.zeros((), int)
    moved = jnp.moveaxis(x, axis, -1)
    # ~x turns the order of integers around; -x is another number of the least one, and of those without a sign.
    turned = (lambda y: y) if largest else jnp.invert if jnp.issubdtype(x.dtype, jnp.integer) else jnp.negative
    values, places = lax.top_k(turned(moved), k)
    return jnp.moveaxis(turned(values), -1, axis), jnp.moveaxis(places, -1, axis)


def _count(x, axes):
    """How many elements are reduced, as a number or, with the batch's size in it, as a value."""
    axes = range(x.ndim) if axes is None else (axes if isinstance(axes, tuple) else (axes,))
    count = math.prod(x.shape[axis] for axis in axes)
    return count if isinstance(count, int) else jnp.asarray(count, x.dtype)


# ---- Layout ------------------------------------------------------------------------------------------------------------

@_define("view", "reshape", "_unsafe_view")
def _view(x, shape):
    return jnp.reshape(x, tuple(shape))


@_define("permute")
def _permute(x, order):
    return jnp.transpose(x, tuple(order))


@_define("transpose")
def _transpose(x, a, b):
    return jnp.swapaxes(x, a, b)


@_define("t")
def _t(x):
    return jnp.transpose(x)


@_define("expand")
def _expand(x, shape, implicit=False):
    missing = len(shape) - x.ndim
    sizes = [x.shape[i - missing] if isinstance(size, int) and size == -1 else size for i, size in enumerate(shape)]
    return jnp.broadcast_to(x, tuple(sizes))


@_define("squeeze")
def _squeeze(x, axes=None):
    axes = range(x.ndim) if axes is None else axes if isinstance(axes, (list, tuple)) else (axes,)
    return jnp.squeeze(x, tuple(axis for axis in axes if x.ndim and x.shape[axis] == 1))


@_define("unsqueeze")
def _unsqueeze(x, axis):
    return jnp.expand_dims(x, axis)


@_define("slice")
def _slice(x, axis=0, start=None, end=None, step=1):
    size = x.shape[axis]
    whole = (start is None or start == 0) and (end is None or (isinstance(end, int) and end >= 2**62)) and step == 1
    if whole or (not isinstance(size, int) and start in (None, 0) and end is size):
        return x
    if isinstance(end, int) and end >= 2**62:
        end = None
    return x[(slice(None),) * (axis % x.ndim) + (slice(start, end, step),)]


@_define("select")
def _select(x, axis, index):
    size = x.shape[axis]
    if isinstance(size, int):
        return lax.index_in_dim(x, index, axis, keepdims=False)
    # One of the examples of the batch.
    return lax.dynamic_index_in_dim(x, index if index >= 0 else jnp.asarray(size) + index, axis, keepdims=False)


@_define("cat", "concatenate")
def _cat(parts, axis=0):
    # PyTorch joins an empty vector with anything.
    return jnp.concatenate([part for part in parts if part.shape != (0,)], axis)


@_define("stack")
def _stack(parts, axis=0):
    return jnp.stack(parts, axis)


@_define("split_with_sizes")
def _split_with_sizes(x, sizes, axis=0):
    parts, begin = [], 0
    for size in sizes:
        parts.append(lax.slice_in_dim(x, begin, begin + size, axis=axis))
        begin += size
    return parts


@_define("split")
def _split(x, size, axis=0):
    count = x.shape[axis]
    return _split_with_sizes(x, [min(size, count - begin) for begin in range(0, count, size)], axis)


@_define("unbind")
def _unbind(x, axis=0):
    return [lax.index_in_dim(x, i, axis, keepdims=False) for i in range(x.shape[axis])]


@_define("flip")
def _flip(x, axes):
    return jnp.flip(x, tuple(axes))


@_define("roll")
def _roll(x, shifts, axes=()):
    for shift, axis in zip(shifts, axes):
        if not isinstance(x.shape[axis], int):  # along the batch: by number
            x = jnp.take(x, (jnp.arange(x.shape[axis]) - shift) % x.shape[axis], axis=axis, mode="clip")
    shifts = [shift if not axes or isinstance(x.shape[axes[i]], int) else 0 for i, shift in enumerate(shifts)]
    return jnp.roll(x, tuple(shifts), tuple(axes) or None)


@_define("repeat")
def _repeat(x, counts):
    return jnp.tile(x, tuple(counts))


@_define("constant_pad_nd")
def _pad(x, padding, value=0):
    widths = [(0, 0, 0)] * x.ndim
    for number in range(len(padding) // 2):
        widths[x.ndim - 1 - number] = (padding[2 * number], padding[2 * number + 1], 0)
    return lax.pad(x, jnp.asarray(value, x.dtype), widths)


@_define("unfold")
def _unfold(x, axis, size, step):
    axis %= x.ndim
    starts = range(0, x.shape[axis] - size + 1, step)
    return jnp.stack([jnp.moveaxis(lax.slice_in_dim(x, start, start + size, axis=axis), axis, -1) for start in starts], axis)


@_define("tril")
def _tril(x, diagonal=0):
    return jnp.tril(x, diagonal)


@_define("triu")
def _triu(x, diagonal=0):
    return jnp.triu(x, diagonal)


@_define("diagonal_scatter")
def _diagonal_scatter(x, source, offset=0, dim1=0, dim2=1):
    rows, columns = (jnp.arange(x.shape[dim]) for dim in (dim1, dim2))
    last = jnp.moveaxis(x, (dim1, dim2), (-2, -1))
    # The element of the diagonal that is in each row; others are masked.
    at = jnp.clip(rows + min(offset, 0), 0, source.shape[-1] - 1)
    put = jnp.where(columns == rows[:, None] + offset, jnp.take(source, at, -1)[..., None], last)
    return jnp.moveaxis(put, (-2, -1), (dim1, dim2))


@_define("diagonal")
def _diagonal(x, offset=0, dim1=0, dim2=1):
    return jnp.diagonal(x, offset, dim1, dim2)


# ---- By index ----------------------------------------------------------------------------------------------------------

@_define("embedding")
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


@_define("index")
def _index(x, indices):
    if any(index is not None and index.dtype == bool for index in indices):
        raise NotImplementedError("there is no code for elements that a mask chooses (x[mask]), whose number is not known: weigh them by the mask "
                                  "(torch.where), or let the loss pass over them (ignore_index)")
    if not all(index is None or isinstance(index, np.ndarray) for index in indices):
        x = jnp.asarray(x)  # A tensor that the loss knows, by indices that the batch has.
    return x[tuple(slice(None) if index is None else index for index in indices)]


@_define("index_select")
def _index_select(x, axis, index):
    return jnp.take(x, index, axis=axis, mode="clip")


@_define("gather")
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


@_define("scatter.src", "scatter.value")
def _scatter(x, axis, index, source):
    return _put("set", x, axis, index, source)


@_define("scatter_add")
def _scatter_add(x, axis, index, source):
    return _put("add", x, axis, index, source)


@_define("index_reduce")
def _index_reduce(x, axis, index, source, reduce, *, include_self=True):
    axis %= x.ndim
    index = jnp.broadcast_to(index.reshape((-1,) + (1,) * (x.ndim - 1 - axis)), source.shape)
    return _scatter_reduce(x, axis, index, source, reduce, include_self=include_self)


@_define("scatter_reduce")
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


@_define("index_put")
def _index_put(x, indices, values, accumulate=False):
    at = jnp.asarray(x).at[tuple(slice(None) if index is None else index for index in indices)]
    return at.add(values) if accumulate else at.set(values)


@_define("copy")
def _copy(x, source, non_blocking=False):
    return jnp.broadcast_to(source, x.shape).astype(x.dtype)


@_define("slice_scatter")
def _slice_scatter(x, source, axis=0, start=None, end=None, step=1):
    if isinstance(end, int) and end >= 2**62:
        end = None
    return x.at[(slice(None),) * (axis % x.ndim) + (slice(start, end, step),)].set(source)


@_define("select_scatter")
def _select_scatter(x, source, axis, index):
    return x.at[(slice(None),) * (axis % x.ndim) + (index,)].set(source)


# ---- New values --------------------------------------------------------------------------------------------------------

def _of(dtype, default=None):
    return default if dtype is None else to_dtype(dtype)


@_define("full")
def _full(shape, value, *, dtype=None, **_):
    return jnp.full(tuple(shape), value, _of(dtype))


@_define("zeros", "empty")
def _zeros(shape, *, dtype=None, **_):
    return jnp.zeros(tuple(shape), _of(dtype, jnp.float32))


@_define("empty_permuted")
def _empty_permuted(shape, order, *, dtype=None, **_):
    return jnp.zeros(tuple(shape), _of(dtype, jnp.float32))


@_define("ones")
def _ones(shape, *, dtype=None, **_):
    return jnp.ones(tuple(shape), _of(dtype, jnp.float32))


@_define("full_like")
def _full_like(x, value, *, dtype=None, **_):
    return jnp.full(x.shape, value, _of(dtype, x.dtype))


@_define("zeros_like", "empty_like")
def _zeros_like(x, *, dtype=None, **_):
    return jnp.zeros(x.shape, _of(dtype, x.dtype))


@_define("ones_like")
def _ones_like(x, *, dtype=None, **_):
    return jnp.ones(x.shape, _of(dtype, x.dtype))


@_define("arange")
def _arange(*bounds, dtype=None, **_):
    return jnp.arange(*bounds, dtype=_of(dtype))


@_define("scalar_tensor")
def _scalar_tensor(value, *, dtype=None, **_):
    return jnp.asarray(value, _of(dtype))


@_define("tril_indices")
def _tril_indices(rows, columns, offset=0, *, dtype=None, **_):
    return jnp.stack(jnp.tril_indices(rows, offset, columns)).astype(_of(dtype, jnp.int64))


@_define("triu_indices")
def _triu_indices(rows, columns, offset=0, *, dtype=None, **_):
    return jnp.stack(jnp.triu_indices(rows, offset, columns)).astype(_of(dtype, jnp.int64))


@_define("eye")
def _eye(rows, columns=None, *, dtype=None, **_):
    return jnp.eye(rows, columns, dtype=_of(dtype, jnp.float32))


# ---- Products ----------------------------------------------------------------------------------------------------------

for _name in ("mm", "bmm", "matmul", "mv", "dot"):
    _TABLE[_name] = jnp.matmul


@_define("addmm", "baddbmm", "addmv")
def _addmm(bias, x, y, *, beta=1, alpha=1):
    product = jnp.matmul(x, y)
    return (bias if beta == 1 else beta * bias) + (product if alpha == 1 else alpha * product)


def _attend(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False, random_key=None):
    if enable_gqa:
        key, value = (jnp.repeat(each, query.shape[-3] // each.shape[-3], -3) for each in (key, value))
    scores = jnp.matmul(query * (query.shape[-1] ** -0.5 if scale is None else scale), jnp.swapaxes(key, -1, -2))
    if is_causal:
        attn_mask = jnp.tril(jnp.ones((query.shape[-2], key.shape[-2]), bool))
    if attn_mask is None:
        weights = jax.nn.softmax(scores, -1)
    else:
        if attn_mask.dtype != bool:
            scores = scores + attn_mask
        # Who may look at nothing sees zeros, and leaves no NaN in gradients.
        seen = attn_mask if attn_mask.dtype == bool else scores != -jnp.inf
        some = jnp.any(seen, -1, keepdims=True)
        weights = jnp.where(some, jax.nn.softmax(jnp.where(seen, scores, jnp.where(some, -jnp.inf, 0)), -1), 0)
    if dropout_p > 0:
        weights = _dropout(random_key, weights, dropout_p)[0]
    return jnp.matmul(weights, value)


@_define("_grouped_mm", "transformers.grouped_mm_fallback")
def _grouped_product(x, weight, offs, bias=None, out_dtype=None):
    """Rows in groups, which end where `offs` says, each group times its matrix; rows behind the last give zeros."""
    if x.ndim != 2 or weight.ndim != 3:
        raise NotImplementedError("there is code for grouped products of rows [rows, in] with matrices [groups, in, out] alone")
    row = jnp.arange(x.shape[0])[:, None]
    begin = jnp.concatenate([jnp.zeros_like(offs[:1]), offs[:-1]])
    is_in = ((row >= begin) & (row < offs)).astype(x.dtype)
    product = jnp.einsum("rg,rgo->ro", is_in, jnp.einsum("ri,gio->rgo", x, weight))
    return product if bias is None else product + bias


@_define("_trilinear")
def _trilinear(x, y, z, expand_x, expand_y, expand_z, summed, unroll_dim=1):
    """The sum of products; `expand_*` are the axes of the product that an operand does not have."""
    return (jnp.expand_dims(x, tuple(expand_x)) * jnp.expand_dims(y, tuple(expand_y)) * jnp.expand_dims(z, tuple(expand_z))).sum(tuple(summed))


@_define("_cdist_forward")
def _cdist(x, y, order, mode=None):
    return _vector_norm(x[..., :, None, :] - y[..., None, :, :], order, -1)


@_define("linalg_inv_ex")
def _inverse(x, *, check_errors=False):
    return jnp.linalg.inv(x), jnp.zeros(x.shape[:-2], jnp.int32)


@_define("_linalg_solve_ex")
def _solve(x, y, *, left=True, check_errors=False):
    is_vector = y.ndim == x.ndim - 1
    y = y[..., None] if is_vector else y
    result = jnp.linalg.solve(x, y) if left else jnp.swapaxes(jnp.linalg.solve(jnp.swapaxes(x, -1, -2), jnp.swapaxes(y, -1, -2)), -1, -2)
    return (result[..., 0] if is_vector else result), None, None, jnp.zeros(x.shape[:-2], jnp.int32)


@_define("_linalg_det")
def _determinant(x):
    return jnp.linalg.det(x), None, None


@_define("_linalg_slogdet")
def _logarithm_of_determinant(x):
    sign, logarithm = jnp.linalg.slogdet(x)
    return sign, logarithm, None, None


@_define("linalg_cholesky_ex")
def _cholesky(x, *, upper=False, check_errors=False):
    return jnp.linalg.cholesky(x, upper=upper), jnp.zeros(x.shape[:-2], jnp.int32)


@_define("linalg_solve_triangular")
def _solve_triangular(x, y, *, upper, left=True, unitriangular=False):
    front = y.shape[:-2] if y.ndim >= x.ndim else x.shape[:-2]
    x, y = (jnp.broadcast_to(each, (*front, *each.shape[-2:])) for each in (x, y))
    return lax.linalg.triangular_solve(x, y, left_side=left, lower=not upper, unit_diagonal=unitriangular)


@_define("linalg_lu_factor_ex")
def _lu_factors(x, *, pivot=True, check_errors=False):
    if not pivot:
        raise NotImplementedError("there is no code for LU factors without an exchange of rows: leave pivot=False out")
    factors, pivots, _ = lax.linalg.lu(x)
    return factors, pivots + 1, jnp.zeros(x.shape[:-2], jnp.int32)


@_define("linalg_lu")
def _lu(x, *, pivot=True):
    if not pivot:
        raise NotImplementedError("there is no code for LU factors without an exchange of rows: leave pivot=False out")
    factors, _, order = lax.linalg.lu(x)
    rows, columns = x.shape[-2:]
    shared = min(rows, columns)
    lower = jnp.tril(factors[..., :shared], -1) + jnp.eye(rows, shared, dtype=x.dtype)
    return jnp.swapaxes(jax.nn.one_hot(order, rows, dtype=x.dtype), -1, -2), lower, jnp.triu(factors[..., :shared, :])


def _solve_with_triangle(x, y, **form):
    """With axes in front that are broadcast."""
    front = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return lax.linalg.triangular_solve(*(jnp.broadcast_to(each, (*front, *each.shape[-2:])) for each in (x, y)), **form)


@_define("linalg_lu_solve")
def _solve_with_lu(factors, pivots, y, *, left=True, adjoint=False):
    # Of an adjoint, or from the right, the steps of the other, turned.
    if not left:
        return jnp.swapaxes(_solve_with_lu(factors, pivots, jnp.swapaxes(y, -1, -2), adjoint=not adjoint), -1, -2)
    order = lax.linalg.lu_pivots_to_permutation(pivots - 1, factors.shape[-1])
    exchange = jax.nn.one_hot(order, factors.shape[-1], dtype=factors.dtype)
    if not adjoint:
        y = _solve_with_triangle(factors, jnp.matmul(exchange, y), left_side=True, lower=True, unit_diagonal=True)
        return _solve_with_triangle(factors, y, left_side=True, lower=False)
    y = _solve_with_triangle(factors, y, left_side=True, lower=False, transpose_a=True)
    y = _solve_with_triangle(factors, y, left_side=True, lower=True, unit_diagonal=True, transpose_a=True)
    return jnp.matmul(jnp.swapaxes(exchange, -1, -2), y)


@_define("cholesky_solve")
def _solve_with_cholesky(y, factor, upper=False):
    y = _solve_with_triangle(factor, y, left_side=True, lower=not upper, transpose_a=upper)
    return _solve_with_triangle(factor, y, left_side=True, lower=not upper, transpose_a=not upper)


@_define("cholesky_inverse")
def _invert_with_cholesky(factor, upper=False):
    return _solve_with_cholesky(jnp.eye(factor.shape[-1], dtype=factor.dtype), factor, upper)


@_define("linalg_qr")
def _qr(x, mode="reduced"):
    rows, columns = x.shape[-2:]
    if mode != "complete" and isinstance(rows, int) and isinstance(columns, int) and rows < columns:
        # Of the first columns, which say what q is.
        q, r = jnp.linalg.qr(x[..., :rows])
        r = jnp.concatenate([r, jnp.matmul(jnp.swapaxes(q, -1, -2), x[..., rows:])], -1)
    else:
        q, r = jnp.linalg.qr(x, "complete" if mode == "complete" else "reduced")
    return (jnp.zeros((0,), x.dtype) if mode == "r" else q), r


@_define("linalg_householder_product")
def _reflections(x, scales):
    """The first columns of (1 - s0 v0 v0')(1 - s1 v1 v1').. = 1 - V T V', of which T is D - D S T: scales, and a triangle of V'V."""
    rows, columns = x.shape[-2:]
    count = scales.shape[-1]
    vectors = jnp.tril(x[..., :count], -1) + jnp.eye(rows, count, dtype=x.dtype)
    products = jnp.triu(jnp.matmul(jnp.swapaxes(vectors, -1, -2), vectors), 1)
    scaled = scales[..., None] * jnp.eye(count, dtype=x.dtype)
    triangle = _solve_with_triangle(scales[..., None] * products + jnp.eye(count, dtype=x.dtype), scaled, left_side=True, lower=False, unit_diagonal=True)
    return jnp.eye(rows, columns, dtype=x.dtype) - vectors @ triangle @ jnp.swapaxes(vectors[..., :columns, :], -1, -2)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _symmetric(x, is_lower):
    """What a triangle says. PyTorch's gradient is half of it for each."""
    half = jnp.tril(x) if is_lower else jnp.triu(x)
    return half + jnp.swapaxes(jnp.tril(x, -1) if is_lower else jnp.triu(x, 1), -1, -2)


_symmetric.defjvp(lambda is_lower, primals, tangents: (_symmetric(primals[0], is_lower), (tangents[0] + jnp.swapaxes(tangents[0], -1, -2)) / 2))


@_define("_linalg_eigh")
def _eigh(x, triangle="L", compute_v=True):
    vectors, values = lax.linalg.eigh(_symmetric(x, triangle.upper() == "L"), symmetrize_input=False)
    return values, vectors if compute_v else jnp.zeros((0,), x.dtype)


def _svd(node, x, full_matrices=False, compute_uv=True, *, driver=None):
    if compute_uv and {user.args[1] if user.target is operator.getitem else None for user in node.users} <= {1}:
        # Values alone are read: their gradient asks for no quotients of differences.
        return None, jnp.linalg.svd(x, compute_uv=False), None
    if not compute_uv:
        return jnp.zeros((0,), x.dtype), jnp.linalg.svd(x, compute_uv=False), jnp.zeros((0,), x.dtype)
    u, values, v = jnp.linalg.svd(x, full_matrices=False)
    if full_matrices and x.shape[-2] != x.shape[-1]:
        # The others have no gradient.
        all_u, _, all_v = jnp.linalg.svd(lax.stop_gradient(x), full_matrices=True)
        u = jnp.concatenate([u, all_u[..., u.shape[-1]:]], -1)
        v = jnp.concatenate([v, all_v[..., v.shape[-2]:, :]], -2)
    return u, values, v


def _get_bound(x, values, atol, rtol):
    """Below which values count for nothing."""
    otherwise = max(x.shape[-2:]) * jnp.finfo(x.dtype).eps
    absolute, relative = (each if each is None else jnp.asarray(each, x.dtype)[..., None] for each in (atol, rtol))
    if relative is None:
        relative = otherwise if absolute is None else jnp.where(absolute > 0, 0, otherwise)
    return jnp.maximum(0 if absolute is None else absolute, relative * jnp.max(values, -1, keepdims=True))


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _pseudo_inverse(x, invert):
    return invert(x)


@_pseudo_inverse.defjvp
def _pseudo_inverse_jvp(invert, primals, tangents):
    # Where the rank stays as it is (Golub and Pereyra, 1973).
    (x,), (dx,) = primals, tangents
    inverse = _pseudo_inverse(x, invert)
    turn = lambda each: jnp.swapaxes(each, -1, -2)
    part = turn(dx) - turn(dx) @ x @ inverse
    other = turn(dx) @ turn(inverse) @ inverse
    return inverse, inverse @ turn(inverse) @ part + other - inverse @ x @ other - inverse @ dx @ inverse


@_define("linalg_pinv.atol_rtol_tensor")
def _pinv(x, *, atol=None, rtol=None, hermitian=False):
    def invert(x):
        if hermitian:
            vectors, values = lax.linalg.eigh(_symmetric(x, True), symmetrize_input=False)
            left, sizes = vectors, jnp.abs(values)
        else:
            left, values, v = jnp.linalg.svd(x, full_matrices=False)
            vectors, sizes = jnp.swapaxes(v, -1, -2), values
        counts = sizes > _get_bound(x, sizes, atol, rtol)
        return (vectors * jnp.where(counts, 1 / jnp.where(counts, values, 1), 0)[..., None, :]) @ jnp.swapaxes(left, -1, -2)

    return _pseudo_inverse(x, invert)


@_define("linalg_matrix_exp")
def _matrix_exponential(x):
    return jax.scipy.linalg.expm(x)


# ---- Complex numbers and Fourier transforms ------------------------------------------------------------------------------

for _name, _function in {"complex": lambda real, imaginary: lax.complex(*jnp.broadcast_arrays(real, imaginary)), "polar": lambda size, angle: lax.complex(size * jnp.cos(angle), size * jnp.sin(angle)),
                         "view_as_complex": lambda x: lax.complex(x[..., 0], x[..., 1]),
                         "view_as_real": lambda x: jnp.stack([jnp.real(x), jnp.imag(x)], -1),
                         "real": jnp.real, "imag": jnp.imag, "angle": jnp.angle}.items():
    _TABLE[_name] = _function
for _name in "_conj conj conj_physical _conj_physical".split():
    _TABLE[_name] = jnp.conj
for _name in "resolve_conj resolve_neg".split():
    _TABLE[_name] = lambda x: x


def _normalize_transform(x, sizes, normalization):
    """Of a transform that sums, as PyTorch divides it: not at all, by the root of how many elements there are, or by as many."""
    count = math.prod(sizes)
    return x / (1, math.sqrt(count), count)[normalization] if normalization else x


@_define("_fft_c2c")
def _transform(x, axes, normalization, forward):
    sizes = [x.shape[axis] for axis in axes]
    for axis, size in zip(axes, sizes):
        x = jnp.fft.fft(x, axis=axis) if forward else jnp.fft.ifft(x, axis=axis) * size
    return _normalize_transform(x, sizes, normalization)


@_define("_fft_r2c")
def _transform_real(x, axes, normalization, onesided):
    sizes = [x.shape[axis] for axis in axes]
    x = jnp.fft.rfft(x, axis=axes[-1]) if onesided else jnp.fft.fft(x, axis=axes[-1])
    return _normalize_transform(_transform(x, axes[:-1], 0, True), sizes, normalization)


@_define("_fft_c2r")
def _transform_to_real(x, axes, normalization, last):
    sizes = [*(x.shape[axis] for axis in axes[:-1]), last]
    x = jnp.fft.irfft(_transform(x, axes[:-1], 0, False), n=last, axis=axes[-1]) * last
    return _normalize_transform(x, sizes, normalization)


@_define("linear")
def _linear(x, weight, bias=None):
    product = jnp.matmul(x, weight.T)
    return product if bias is None else product + bias


@_define("convolution")
def _convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    spatial = x.ndim - 2
    stride, padding, dilation, output_padding = (
        list(each) * (spatial if len(each) == 1 else 1) for each in (stride, padding, dilation, output_padding))
    letters = "DHW"[3 - spatial:]
    numbers = (f"NC{letters}", f"OI{letters}", f"NC{letters}")
    if transposed:
        # The gradient of a convolution: kernels turned round, of a dilated input.
        inputs, outputs = weight.shape[0] // groups, weight.shape[1]
        kernel = weight.shape[2:]
        weight = jnp.flip(weight, tuple(range(2, weight.ndim))).reshape(groups, inputs, outputs, *kernel)
        weight = jnp.swapaxes(weight, 1, 2).reshape(groups * outputs, inputs, *kernel)
        widths = [(d * (k - 1) - p, d * (k - 1) - p + o) for d, k, p, o in zip(dilation, kernel, padding, output_padding)]
        result = lax.conv_general_dilated(x, weight, [1] * spatial, widths, stride, dilation, numbers, groups)
    else:
        result = lax.conv_general_dilated(x, weight, stride, [(p, p) for p in padding], None, dilation, numbers, groups)
    return result if bias is None else result + bias.reshape((-1,) + (1,) * spatial)


# ---- Windows -----------------------------------------------------------------------------------------------------------

def _windows(x, kernel, stride, padding, dilation, ceil_mode):
    """Sizes, strides, paddings and dilations of windows over the last axes of x, an entry an axis."""
    spatial = len(kernel)
    full = lambda each, default: list(each) * (spatial if len(each) == 1 else 1) if each else list(default)
    stride, padding, dilation = full(stride, kernel), full(padding, [0] * spatial), full(dilation, [1] * spatial)
    widths = []
    for size, k, s, p, d in zip(x.shape[-spatial:], kernel, stride, padding, dilation):
        span, high = d * (k - 1) + 1, p
        if ceil_mode:
            count = -(-(size + 2 * p - span) // s)
            # The last window begins inside of the input or its padding in front.
            if count * s >= size + p:
                count -= 1
            high = max(p, count * s + span - size - p)
        widths.append((p, high))
    front = x.ndim - spatial
    return ((1,) * front + tuple(kernel), (1,) * front + tuple(stride), ((0, 0),) * front + tuple(widths),
            (1,) * front + tuple(dilation))


def _max_of_windows(x, windows):
    """The largest of each window of the last axes, and its row-major place in them: the first of those that are alike, which alone has
    the gradient. `windows`: of each axis, the places [windows, elements]; those outside are not looked at."""
    front, spatial = x.ndim - len(windows), x.shape[x.ndim - len(windows):]
    is_inside, place = np.ones((), bool), np.zeros((), np.int64)
    for number, (places, size) in enumerate(zip(windows, spatial)):
        # [.., windows, elements, ..], an axis after the other.
        x = jnp.take(x, np.clip(places, 0, size - 1).reshape(-1), axis=front + 2 * number, mode="clip")
        x = x.reshape(*x.shape[:front + 2 * number], *places.shape, *x.shape[front + 2 * number + 1:])
        is_inside = is_inside[..., None, None] & (places >= 0) & (places < size)
        place = place[..., None, None] * size + places
    order = [2 * i for i in range(len(windows))] + [2 * i + 1 for i in range(len(windows))]
    shape = tuple(len(places) for places in windows)
    flat = lambda each: np.transpose(each, order).reshape(*shape, -1)
    x = jnp.transpose(x, [*range(front), *(front + each for each in order)])
    x = jnp.where(flat(is_inside), x.reshape(*x.shape[:front + len(windows)], -1), -jnp.inf)
    chosen = jnp.argmax(x, -1, keepdims=True)
    places = jnp.take_along_axis(jnp.broadcast_to(flat(place).astype(np.int32), x.shape), chosen, -1)
    return jnp.take_along_axis(x, chosen, -1)[..., 0], places[..., 0]


def _max_pool(node, x, kernel, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
    kernel = list(kernel)
    sizes, strides, widths, dilations = _windows(x, kernel, stride, padding, dilation, ceil_mode)
    if set(dilations) == {1} and not any(user.target is operator.getitem and user.args[1] == 1 for user in node.users):
        return lax.reduce_window(x, -jnp.inf, lax.max, sizes, strides, widths), None
    windows, spatial = [], len(kernel)
    for size, k, s, (low, high), d in zip(x.shape[-spatial:], kernel, strides[-spatial:], widths[-spatial:], dilations[-spatial:]):
        count = (size + low + high - (d * (k - 1) + 1)) // s + 1
        windows.append(np.arange(count)[:, None] * s - low + np.arange(k) * d)
    return _max_of_windows(x, windows)


@_define("adaptive_max_pool2d", "adaptive_max_pool3d")
def _adaptive_max_pool(x, sizes):
    windows = []
    for size, count in zip(x.shape[x.ndim - len(sizes):], sizes):
        begin, end = np.arange(count) * size // count, -(-(np.arange(count) + 1) * size // count)
        # Windows of fewer elements have their last again.
        windows.append(np.minimum(begin[:, None] + np.arange((end - begin).max()), end[:, None] - 1))
    return _max_of_windows(x, windows)


def _find_pool(places):
    """The pool whose second result it is, in another shape or not."""
    while isinstance(places, torch.fx.Node) and places.op == "call_function":
        if places.target is operator.getitem:
            of = places.args[0]
            return of if places.args[1] == 1 and _get_names(of.target)[1] in ("max_pool2d_with_indices", "max_pool3d_with_indices") else None
        if _get_names(places.target)[1] not in _KEEPS | {"unsqueeze", "squeeze", "view"}:
            return None
        places = places.args[0]
    return None


def _max_unpool(node, x, places, sizes, stride=(), padding=()):
    """Each element where its window had it. Windows that overlap may have one in common, which then has one of several values."""
    pool = _find_pool(node.args[1])
    if pool is None:
        raise NotImplementedError("there is code for max_unpool2d by places that max_pool2d(.., return_indices=True) gives in the step alone")
    given = pool.args[0].meta["val"]
    count = 2 if "2d" in str(pool.target) else 3
    whole, pooled = given.shape[-count:], pool.meta["val"][0].shape[-count:]
    kernel, *others = (*pool.args[1:], *((), (0,), (1,), False)[len(pool.args) - 2:])
    kernel, strides, widths, dilations = (each[-count:] for each in _windows(given, list(kernel) * (1 if len(kernel) == count else count), *others))
    if any(step < size for step, size in zip(strides, kernel)) or set(dilations) != {1}:
        raise NotImplementedError("there is code for max_unpool2d of windows that do not overlap (stride as large as kernel_size) alone")
    if [each for each in whole if each != 1] != [each for each in sizes if each != 1]:
        raise NotImplementedError(f"max_unpool2d makes an image {list(sizes)} of one that was {list(whole)} before its pool: give it output_size=x.shape")
    front = x.shape[:x.ndim - len(sizes)]
    x, places = (each.reshape(*front, *pooled) for each in (x, places))
    is_there = np.ones((), bool)
    for number, (size, step, wide, (low, _), windows) in enumerate(zip(whole, strides, kernel, widths, pooled)):
        # The window that each place is in.
        at = np.arange(size) + low
        x, places = (jnp.take(each, np.minimum(at // step, windows - 1), axis=len(front) + number, mode="clip") for each in (x, places))
        is_there = is_there[..., None] & (at % step < wide) & (at // step < windows)
    is_there = (places == np.arange(math.prod(whole)).reshape(whole)) & is_there
    return jnp.where(is_there, x, 0).reshape(*front, *sizes)


@_define("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(x, kernel, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor_override=None):
    sizes, strides, widths, _ = _windows(x, kernel, stride, padding, (), ceil_mode)
    total = lax.reduce_window(x, 0.0, lax.add, sizes, strides, widths)
    if divisor_override is not None or (count_include_pad and not ceil_mode):
        return total / (divisor_override or math.prod(kernel))
    spatial = len(kernel)
    ones = jnp.ones((1,) * (x.ndim - spatial) + x.shape[-spatial:], x.dtype)
    if count_include_pad:
        given = [(p, p) for p in (list(padding) * (spatial if len(padding) == 1 else 1))]
        ones = jnp.pad(ones, [(0, 0)] * (x.ndim - spatial) + given, constant_values=1)
        widths = ((0, 0),) * (x.ndim - spatial) + tuple((0, high - p) for (_, high), (p, _) in zip(widths[-spatial:], given))
    return total / lax.reduce_window(ones, 0.0, lax.add, sizes, strides, widths)


@_define("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d")
def _adaptive_avg_pool(x, sizes):
    for axis, size in zip(range(x.ndim - len(sizes), x.ndim), sizes):
        count = x.shape[axis]
        parts = [jnp.mean(lax.slice_in_dim(x, i * count // size, -(-(i + 1) * count // size), axis=axis), axis, keepdims=True)
                 for i in range(size)]
        x = jnp.concatenate(parts, axis)
    return x


def _get_targets(x, size, scales):
    """Of each image axis: its number, its new size, and the factor that was asked for, which says where elements lie, or None."""
    axes = range(2, x.ndim)
    scales = [None] * len(axes) if not scales or scales[0] is None else scales[0] if isinstance(scales[0], (list, tuple)) else scales
    size = [int(x.shape[axis] * scale) for axis, scale in zip(axes, scales)] if size is None else size
    return list(zip(axes, size, scales))


@_define("upsample_nearest2d")
def _upsample_nearest(x, size=None, *scales):
    for axis, to, scale in _get_targets(x, size, scales):
        # As PyTorch computes it, in float32.
        ratio = np.float32(1 / scale if scale else x.shape[axis] / to)
        places = np.minimum(np.floor(np.arange(to, dtype=np.float32) * ratio).astype(np.int64), x.shape[axis] - 1)
        x = jnp.take(x, places, axis=axis, mode="clip")
    return x


def _interpolate(x, targets, get_weights):
    """A product with weights [new size, size] along each axis."""
    for axis, to, scale in targets:
        weights = jnp.asarray(get_weights(x.shape[axis], to, scale), x.dtype)
        x = jnp.moveaxis(jnp.moveaxis(x, axis, -1) @ weights.T, -1, axis)
    return x


@_define("upsample_bilinear2d")
def _upsample_bilinear(x, size, align_corners, *scales):
    def get_weights(size, to, scale):
        if align_corners:
            at = np.arange(to) * ((size - 1) / (to - 1) if to > 1 else 0)
        else:
            at = np.maximum((np.arange(to) + 0.5) * (1 / scale if scale else size / to) - 0.5, 0)
        return np.maximum(0, 1 - np.abs(np.minimum(at, size - 1)[:, None] - np.arange(size)))

    return _interpolate(x, _get_targets(x, size, scales), get_weights)


@_define("_upsample_bilinear2d_aa")
def _upsample_bilinear_antialiased(x, size, align_corners, *scales):
    def get_weights(size, to, scale):
        ratio = ((size - 1) / (to - 1) if to > 1 else 0) if align_corners else 1 / scale if scale else size / to
        wide = max(ratio, 1.0)
        at = ratio * (np.arange(to) + 0.5)
        begin = np.maximum((at - wide + 0.5).astype(np.int64), 0)
        end = np.minimum((at + wide + 0.5).astype(np.int64), size)
        number = np.arange(size)
        is_inside = (number >= begin[:, None]) & (number < end[:, None])
        weights = np.where(is_inside, np.maximum(0, 1 - np.abs(number - at[:, None] + 0.5) / wide), 0)
        return weights / weights.sum(1, keepdims=True)

    return _interpolate(x, _get_targets(x, size, scales), get_weights)


# ---- Normalization -----------------------------------------------------------------------------------------------------

def _along_channels(x, value):
    return value.reshape((1, -1) + (1,) * (x.ndim - 2))


def _normalize(x, mean, rsqrt, weight, bias):
    out = (x - _along_channels(x, mean)) * _along_channels(x, rsqrt)
    if weight is not None:
        out = out * _along_channels(x, weight)
    return out if bias is None else out + _along_channels(x, bias)


@_define("_native_batch_norm_legit_functional")
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


@_define("_native_batch_norm_legit.no_stats")
def _batch_norm_without_stats(x, weight, bias, training, momentum, eps):
    axes = (0, *range(2, x.ndim))
    mean, var = jnp.mean(x, axes), jnp.var(x, axes)
    rsqrt = lax.rsqrt(var + eps)
    return _normalize(x, mean, rsqrt, weight, bias), mean, rsqrt


@_define("_native_batch_norm_legit_no_training")
def _batch_norm_of_inference(x, weight, bias, running_mean, running_var, momentum, eps):
    rsqrt = lax.rsqrt(running_var + eps)
    return _normalize(x, running_mean, rsqrt, weight, bias), None, None


@_define("native_layer_norm")
def _layer_norm(x, shape, weight, bias, eps):
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean = jnp.mean(x, axes, keepdims=True)
    rsqrt = lax.rsqrt(jnp.mean(jnp.square(x - mean), axes, keepdims=True) + eps)
    out = (x - mean) * rsqrt
    if weight is not None:
        out = out * weight
    # PyTorch's gradient goes through the first result alone.
    return out if bias is None else out + bias, lax.stop_gradient(mean), lax.stop_gradient(rsqrt)


@_define("native_group_norm")
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


# ---- Random numbers: JAX's, drawn from a key that the step hands on ------------------------------------------------------

_RANDOM: dict[str, Callable[..., Any]] = {
    "rand": lambda key, shape, dtype=None, **_: jax.random.uniform(key, tuple(shape), _of(dtype, jnp.float32)),
    "randn": lambda key, shape, dtype=None, **_: jax.random.normal(key, tuple(shape), _of(dtype, jnp.float32)),
    "rand_like": lambda key, x, **_: jax.random.uniform(key, x.shape, x.dtype),
    "randn_like": lambda key, x, **_: jax.random.normal(key, x.shape, x.dtype),
}


def _random(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _RANDOM[name] = function
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


# ---- Numbers of Python's that are made of the batch's size ------------------------------------------------------------------

def _to_number(x):
    """Of the batch's size, which has a few operations of its own, a value; of a number of Python's what it is."""
    return jnp.asarray(x) if is_symbolic_dim(x) else x


def _to_float(x):
    return float(x) if isinstance(x, (bool, int, float)) else 1.0 * _to_number(x)


def _to_whole(function):
    return lambda x: function(_to_float(x)).astype(jnp.int64)


def _power(x, exponent):
    if isinstance(exponent, int) and exponent >= 0:
        return x ** exponent  # a size is a size again
    return jnp.power(_to_float(x), _to_float(exponent))


def _round(x, digits=None):
    if digits is not None:
        raise NotImplementedError("there is no code for round(x, digits) of the batch's size: compute it with torch.round(torch.tensor(..))")
    return _to_whole(jnp.round)(x)


def _of_numbers(function):
    return lambda *xs: function(*map(_to_number, xs))


def _of_sizes(of_sizes, of_numbers):
    """A size again where both are."""
    return lambda x, y: (of_sizes if all(isinstance(each, int) or is_symbolic_dim(each) for each in (x, y)) else _of_numbers(of_numbers))(x, y)


_OF_SIZES: dict[Any, Callable[..., Any]] = {
    torch.sym_float: _to_float, torch.sym_max: _of_sizes(core.max_dim, jnp.maximum), torch.sym_min: _of_sizes(core.min_dim, jnp.minimum), torch.sym_not: _of_numbers(jnp.logical_not),
    torch.sym_ite: _of_numbers(jnp.where), operator.pow: _power, pow: _power, math.ceil: _to_whole(jnp.ceil), math.floor: _to_whole(jnp.floor), math.trunc: _to_whole(jnp.trunc),
    round: _round, abs: _of_numbers(jnp.abs), operator.abs: _of_numbers(jnp.abs),
    **{each: _of_numbers(each) for each in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.and_, operator.or_, operator.xor, operator.lshift,
                                           operator.rshift)}}
for _name in ("sqrt", "cos", "sin", "tan", "cosh", "sinh", "tanh", "acos", "asin", "atan", "log2"):
    if hasattr(torch, f"_sym_{_name}"):
        _OF_SIZES[getattr(torch, f"_sym_{_name}")] = _of_numbers(_TABLE[_name])


# ---- Graphs ------------------------------------------------------------------------------------------------------------

def _get_names(target: Any) -> tuple[str, str]:
    """The names of an operation with and without its overload: sum.dim_IntList, sum. Other libraries' have theirs in front."""
    name = str(target).removeprefix("aten.")
    return name, name.rpartition(".")[0] or name


def _get_size_of_bags(node):
    """How many indices each bag has, where all have as many and there are no others."""
    given, bounds = node.args[1], node.args[2]
    made = bounds.target if isinstance(bounds, torch.fx.Node) else None
    if not str(made).startswith("aten.arange") or len(bounds.args) not in (2, 3) or bounds.args[0] != 0:
        return None
    end, step = bounds.args[1], bounds.args[2] if len(bounds.args) == 3 else 1
    end, count = end.meta["val"] if isinstance(end, torch.fx.Node) else end, given.meta["val"].shape[0]
    return step if isinstance(step, int) and step > 0 and statically_known_true(end == count) and statically_known_true(count % step == 0) else None


def _embedding_bag(node, weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
                   include_last_offset=False, padding_idx=-1):
    size = None if include_last_offset else _get_size_of_bags(node)
    rows = _embedding(weight, indices, scale_grad_by_freq=scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    counts = indices != padding_idx if padding_idx >= 0 else jnp.ones(indices.shape, bool)
    if size is not None:
        def sum_bags(x):
            return x.reshape(-1, size, *x.shape[1:]).sum(1)
    else:
        place = jnp.arange(indices.shape[0])
        begin = offsets[:-1] if include_last_offset else offsets
        bag = jnp.sum(begin <= place[:, None], 1) - 1
        if include_last_offset:
            counts = counts & (place < offsets[-1])

        def sum_bags(x):
            return jnp.zeros((begin.shape[0], *x.shape[1:]), x.dtype).at[bag].add(x)
    if mode < 2:
        total = sum_bags(jnp.where(counts[:, None], rows, 0))
        return (total if mode == 0 else total / jnp.maximum(sum_bags(counts.astype(rows.dtype)), 1)[:, None]), None, None, None
    if size is None:  # Each bag beside all rows.
        rows, counts = rows[None], counts & (bag == jnp.arange(begin.shape[0])[:, None])
    else:
        rows, counts = rows.reshape(-1, size, rows.shape[-1]), counts.reshape(-1, size)
    rows = jnp.where(counts[..., None], rows, -jnp.inf)
    # The first of those that are alike alone has the gradient.
    largest = jnp.take_along_axis(rows, jnp.argmax(rows, 1, keepdims=True), 1)[:, 0]
    return jnp.where(counts.any(1)[:, None], largest, 0), None, None, None


def _as_strided(node, x, shape, strides, offset=None):
    """Memory that is read in another order: elements by number, of all, or of each example where examples stay apart."""
    given = node.args[0].meta["val"]
    if not given.is_contiguous() or not all(isinstance(each, int) for each in (*strides, offset or 0)):
        raise NotImplementedError("there is no code for as_strided of a tensor that lies in another order, or with strides by the batch's size")
    front = int(not all(isinstance(size, int) for size in shape))
    if front and (node.meta["val"].shape[0] != given.shape[0] or strides[0] != given.stride(0) or not all(isinstance(size, int) for size in shape[1:])):
        raise NotImplementedError("there is no code for as_strided in which examples do not stay apart")
    places = np.asarray(offset or 0)
    for size, stride in zip(shape[front:], strides[front:]):
        places = places[..., None] + np.arange(size) * stride
    rows = x.reshape(*x.shape[:front], -1)
    if (places < 0).any() or (places >= rows.shape[front]).any():
        raise NotImplementedError("there is no code for as_strided that reads elements of other examples")
    return jnp.take(rows, places, axis=front, mode="clip")


# What keeps a vector's elements where they are.
_KEEPS = {"_to_copy", "alias", "clone", "contiguous", "detach", "detach_", "lift_fresh_copy", "to", "view_of"}


def _is_permutation(node: Any) -> bool:
    """Whether it is the order of all of a vector's elements: each number below their count once."""
    if not isinstance(node, torch.fx.Node) or node.op != "call_function" or getattr(node.meta.get("val"), "ndim", None) != 1:
        return False
    name = _get_names(node.target)[1] if node.target is not operator.getitem else "getitem"
    if name in _KEEPS:
        return _is_permutation(node.args[0])
    if name == "getitem":
        return node.args[1] == 1 and isinstance(node.args[0], torch.fx.Node) and _get_names(node.args[0].target)[1] == "sort"
    return name in ("argsort", "randperm")


def _put_rows(node, x, indices, values, accumulate=False):
    first = node.args[1][0] if node.args[1] else None
    if len(indices) == 1 and _is_permutation(first) and x.shape[0] == indices[0].shape[0]:
        # Every row is written once, from the row that the inverse names.
        rows = jnp.broadcast_to(values, x.shape).astype(x.dtype)[jnp.argsort(indices[0])]
        return x + rows if accumulate else rows
    return _index_put(x, indices, values, accumulate)


def _scatter_rows(node, x, axis, index, source):
    if x.ndim == 1 and _is_permutation(node.args[2]) and x.shape[0] == index.shape[0] and getattr(source, "ndim", 0) == 1:
        return source[jnp.argsort(index)].astype(x.dtype)
    return _scatter(x, axis, index, source)


# Those that are made of what the graph says of a value as well.
_OF_NODES: dict[str, Callable[..., Any]] = {"index_put": _put_rows, "scatter.src": _scatter_rows, "_embedding_bag": _embedding_bag, "_embedding_bag_forward_only": _embedding_bag,
                                            "as_strided": _as_strided, "max_unpool2d": _max_unpool, "max_unpool3d": _max_unpool, "_linalg_svd": _svd, "max_pool2d_with_indices": _max_pool, "max_pool3d_with_indices": _max_pool,
                                            "max_pool2d": _max_pool, "max_pool1d": _max_pool}


def get_decompositions() -> Any:
    """How torch.export is to write operations that are none of the core. Those whose gradient is not that of what PyTorch makes of them
    stay whole, and attention: what PyTorch makes of it asks for views that the layout in memory of its own result does not allow."""
    whole = {f"aten::{name}" for name in ("scaled_dot_product_attention", "detach", "linalg_vector_norm", "std.correction", "hardswish",
                                        "hardsigmoid", "xlogy.Tensor", "sinc", "stack", "logsumexp", "max_unpool2d", "max_unpool3d")}
    table = torch.export.default_decompositions()
    for operation in [each for each in table if each.name() in whole]:
        table.pop(operation)
    table.update(torch._decomp.get_decompositions([torch.ops.aten.grid_sampler_2d]))
    return table


def stop_gradients(module: torch.fx.GraphModule) -> None:
    """What is computed without gradients (torch.no_grad), which decomposition puts in line, is to be of detached values."""
    for node in list(module.graph.nodes):
        if node.op == "call_function" and str(node.target) == "wrap_with_set_grad_enabled" and node.args[0] is False:
            _detach_inputs(getattr(module, node.args[1].target))
    for part in module.children():
        if isinstance(part, torch.fx.GraphModule):
            stop_gradients(part)
    module.recompile()


def _detach_inputs(body: torch.fx.GraphModule) -> None:
    inputs = [node for node in body.graph.nodes if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor)]
    for node in inputs:
        with body.graph.inserting_after(inputs[-1]):
            detached = body.graph.call_function(torch.ops.aten.detach.default, (node,))
        detached.meta.update(node.meta)
        node.replace_all_uses_with(detached, delete_user_cb=lambda user, detached=detached: user is not detached)
    body.recompile()


def _draws(node: torch.fx.Node) -> bool:
    """Whether it takes random numbers."""
    name = _get_names(node.target)[1]
    if name != "scaled_dot_product_attention":
        return name in _RANDOM
    return (node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0.0)) > 0


def _is_ordered(node: torch.fx.Node) -> bool:
    """Whether it is a call that torch.export keeps in order by tokens: of checks."""
    return node.op == "call_function" and node.target is torch.ops.higher_order.with_effects


# Whose results PyTorch does not differentiate, though they are made of tensors.
_WITHOUT_GRADIENT = {"detach", "zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "randint_like", "normal_functional", "uniform",
                     "exponential", "multinomial", "sym_size", "sym_numel"}


# What to write in place of operations that there is no code for.
_WAYS_OUT = {
    "linalg_eig|linalg_ldl|geqrf|ormqr": "of real matrices there are solutions, inverses, determinants, factors (Cholesky's, LU, QR), eigenvalues of symmetric "
                                         "ones (eigh), singular values and pseudoinverses: write it with those, or compute it where the data are made",
    "masked_scatter": "how many elements there are depends on the data: weigh all of them by a mask (torch.where)",
    "embedding_renorm": "an Embedding with max_norm changes its weight when it is read: normalize the rows that it gives instead",
    "_local_scalar_dense": "a number that Python takes of a tensor (x.item(), float(x)) would stay what it is now: compute with the tensor (x.detach())",
    "_unique|unique_consecutive": "how often the value of each example is there are (y[:, None] == y).sum(1), and how often each class is torch.nn.functional.one_hot(y, n).sum(0)",
    "_pdist": "torch.cdist(x, x) has all distances: weigh them by a mask (torch.ones(n, n).triu(1))",
    "mode|bincount": "count with torch.nn.functional.one_hot(x, n).sum(0), or with bincount's minlength",
}


class Graph:
    """A graph of torch.export, as a function of the values of its inputs by name."""

    def __init__(self, graph: torch.fx.Graph, constant: set[str], rows: Mapping[str, int] = {}):
        """`constant`: the names of inputs that steps do not change. `rows`: of those that stand for rows of so many examples, and are all examples."""
        self.graph = graph
        self.rows = rows
        self.checked = _indices.find_checks(graph, constant)
        unknown: collections.Counter[str] = collections.Counter()
        for node in graph.nodes:
            if node.op not in ("placeholder", "output", "call_function"):
                unknown[f"{node.op} of {node.target}"] += 1
            elif _is_ordered(node):
                if not self._is_check(node.args[1]):
                    unknown[_get_names(node.args[1])[0]] += 1
            elif node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and not self._is_known(node):
                unknown[_get_names(node.target)[0]] += 1
        if unknown:
            ways = [way for names, way in _WAYS_OUT.items() if any(re.match(names, name) for name in unknown)]
            raise UnknownOperations("there is no code for the operations "
                                    + ", ".join(f"{name} ({count})" for name, count in sorted(unknown.items())) + "".join(f"; {way}" for way in ways))
        self.chosen = Chosen(graph)
        self.gradients = Gradients(graph, _draws, lambda node: node in self.chosen)
        self.draws = sum(node.op == "call_function" and _draws(node) for node in graph.nodes)

    def get_most_columns(self) -> int:
        """Of matrices that are factorized and have the batch's rows. With as many examples it is known which axis is the shorter one."""
        most = 1
        for node in self.graph.nodes:
            if node.op == "call_function" and _get_names(node.target)[1] in ("linalg_qr", "_linalg_svd"):
                known = [size for size in node.args[0].meta["val"].shape[-2:] if isinstance(size, int)]
                most = max(most, known[0] if len(known) == 1 else 1)
        return most

    def get_differentiated(self, output: int) -> set[str]:
        """The names of the inputs on which an output depends in a way that PyTorch's autograd follows: others have no gradient, which
        is not the same as one of zeros."""
        def is_float(node: torch.fx.Node) -> bool:
            value = node.meta.get("val")
            return not isinstance(value, torch.Tensor) or value.is_floating_point() or value.is_complex()

        (outputs,) = next(node for node in self.graph.nodes if node.op == "output").args
        found, waiting = set(), [outputs[output]]
        while waiting:
            node = waiting.pop()
            if node in found or not is_float(node) or (node.op == "call_function" and _get_names(node.target)[1] in _WITHOUT_GRADIENT):
                continue
            found.add(node)
            waiting += node.args[2] if node.target is WITH_GRADIENT else node.all_input_nodes
        return {node.name for node in found if node.op == "placeholder"}

    @staticmethod
    def _is_known(node: torch.fx.Node) -> bool:
        full, name = _get_names(node.target)
        return (full in _TABLE or name in _TABLE or name in ("masked_select", "nonzero") or name in _RANDOM or full in _OF_NODES or name in _OF_NODES
                or name in ("sym_size", "sym_numel", "scaled_dot_product_attention") or node.target in (COTANGENT, WITH_GRADIENT, JOIN) or Graph._is_check(node.target))

    @staticmethod
    def _is_check(target: Any) -> bool:
        """Whether it only raises an error where values are not as they should be."""
        return _get_names(target)[1].startswith(("_assert", "sym_constrain", "_linalg_check_errors"))

    def run(self, inputs: dict[str, Any], key: Any = None) -> list[Any]:
        values: dict[torch.fx.Node, Any] = {}
        draws = 0
        for node in self.graph.nodes:
            if node.op == "placeholder":
                values[node] = inputs[node.name]
            elif node.op == "output":
                return [values[each] if isinstance(each, torch.fx.Node) else each for each in node.args[0]]
            elif node in self.gradients.bodies:
                values[node] = self.gradients.run(node, values, self._compute)
            elif node not in self.gradients.inside:
                draw = node.op == "call_function" and _draws(node)
                values[node] = self._compute(node, values, jax.random.fold_in(key, draws) if draw else None)
                draws += draw
        raise ValueError("the graph has no output")

    def _compute(self, node: torch.fx.Node, values: Mapping[torch.fx.Node, Any], key: Any = None) -> Any:
        """The value of a node; `key` where it draws."""
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: values[each])
        if _is_ordered(node):
            return None, None
        if not isinstance(node.target, torch._ops.OpOverload):
            return _OF_SIZES.get(node.target, node.target)(*args, **kwargs)
        full, name = _get_names(node.target)
        if node in self.checked:
            args = _indices.with_checks(node, args, kwargs)
        if node in self.chosen and not _draws(node):
            compute = functools.partial(_OF_NODES.get(full) or _OF_NODES[name], node) if full in _OF_NODES or name in _OF_NODES else _TABLE.get(full) or _TABLE.get(name)
            return self._as_said(node, self.chosen.run(node, values, args, kwargs, compute))
        if node.target is JOIN:
            value = args[0]
        elif name == "sym_size" and args[1] == 0:
            value = args[0].shape[0] // self.rows.get(node.args[0].name, 1)
        elif name == "sym_size":
            value = args[0].shape[args[1]]
        elif name == "sym_numel":
            value = math.prod(args[0].shape)
        elif self._is_check(node.target):
            value = None
        elif full in _OF_NODES or name in _OF_NODES:
            value = (_OF_NODES.get(full) or _OF_NODES[name])(node, *args, **kwargs)
        elif name == "scaled_dot_product_attention":
            value = _attend(*args, **kwargs, random_key=key)
        elif name in _RANDOM:
            value = _RANDOM[name](key, *args, **kwargs)
        else:
            value = (_TABLE.get(full) or _TABLE[name])(*args, **kwargs)
        return self._as_said(node, value)

    @staticmethod
    def _as_said(node: torch.fx.Node, value: Any) -> Any:
        """Of the type that PyTorch's rules of promotion give. Of another shape than PyTorch says it would be broadcast to other elements."""
        said = node.meta.get("val")

        def is_other(size: Any, to: Any) -> bool:
            return isinstance(size, int) and isinstance(to, int) and size != to

        def convert(each: Any, to: Any) -> Any:
            if not isinstance(to, torch.Tensor) or each is None:
                return each
            dtype = to_dtype(to.dtype)
            each = jnp.asarray(each)
            if each.ndim != to.ndim or any(is_other(size, of) for size, of in zip(each.shape, to.shape)):
                raise NotImplementedError(f"there is no code for {node.target} that gives a tensor of shape {tuple(to.shape)}")
            return each if each.dtype == dtype else each.astype(dtype)

        if isinstance(said, (list, tuple)):
            return [convert(each, to) for each, to in zip(value, said)]
        if isinstance(value, tuple):  # of pools, PyTorch's positions are not computed
            return value
        return convert(value, said)
