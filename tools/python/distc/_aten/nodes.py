"""Operations that are made of what the graph says of a value as well."""
from __future__ import annotations

import operator
from typing import Any, Callable

import jax.numpy as jnp
import numpy as np
import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from distc._aten.indices import _embedding, _index_put, _scatter
from distc._aten.linear_algebra import _svd
from distc._aten.table import get_names, KEEPS
from distc._aten.windows import _max_pool, _max_unpool


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


def _is_permutation(node: Any) -> bool:
    """Whether it is the order of all of a vector's elements: each number below their count once."""
    if not isinstance(node, torch.fx.Node) or node.op != "call_function" or getattr(node.meta.get("val"), "ndim", None) != 1:
        return False
    name = get_names(node.target)[1] if node.target is not operator.getitem else "getitem"
    if name in KEEPS:
        return _is_permutation(node.args[0])
    if name == "getitem":
        return node.args[1] == 1 and isinstance(node.args[0], torch.fx.Node) and get_names(node.args[0].target)[1] == "sort"
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
OF_NODES: dict[str, Callable[..., Any]] = {"index_put": _put_rows, "scatter.src": _scatter_rows, "_embedding_bag": _embedding_bag, "_embedding_bag_forward_only": _embedding_bag,
                                            "as_strided": _as_strided, "max_unpool2d": _max_unpool, "max_unpool3d": _max_unpool, "_linalg_svd": _svd, "max_pool2d_with_indices": _max_pool, "max_pool3d_with_indices": _max_pool,
                                            "max_pool2d": _max_pool, "max_pool1d": _max_pool}
