"""Convolutions, pools, and images of another size."""
from __future__ import annotations

import math
import operator

import jax.numpy as jnp
import numpy as np
import torch
from jax import lax

from distc._aten.table import define, get_names, KEEPS


@define("convolution")
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


@define("adaptive_max_pool2d", "adaptive_max_pool3d")
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
            return of if places.args[1] == 1 and get_names(of.target)[1] in ("max_pool2d_with_indices", "max_pool3d_with_indices") else None
        if get_names(places.target)[1] not in KEEPS | {"unsqueeze", "squeeze", "view"}:
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


@define("avg_pool1d", "avg_pool2d", "avg_pool3d")
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


@define("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d")
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


@define("upsample_nearest2d")
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


@define("upsample_bilinear2d")
def _upsample_bilinear(x, size, align_corners, *scales):
    def get_weights(size, to, scale):
        if align_corners:
            at = np.arange(to) * ((size - 1) / (to - 1) if to > 1 else 0)
        else:
            at = np.maximum((np.arange(to) + 0.5) * (1 / scale if scale else size / to) - 0.5, 0)
        return np.maximum(0, 1 - np.abs(np.minimum(at, size - 1)[:, None] - np.arange(size)))

    return _interpolate(x, _get_targets(x, size, scales), get_weights)


@define("_upsample_bilinear2d_aa")
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
