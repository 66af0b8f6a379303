"""Indices that are checked: where PyTorch raises an error for one that is out of range, JAX takes the nearest, or none. A check is a call in
the module (@distc.index), which distc makes one of the executable's own, with the feed, the value and its row."""
from __future__ import annotations

import operator
from typing import Any, Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax._src.interpreters import batching, mlir
from jax.extend import core

from distc.jax import CHECK_OF_INDICES

_check_p = core.Primitive("distc_index")
_check_p.def_abstract_eval(lambda indices, *, size: indices)
batching.defvectorized(_check_p)


def _lower(context: Any, indices: Any, *, size: int) -> Any:
    return mlir.custom_call(CHECK_OF_INDICES, result_types=[indices.type], operands=[indices], backend_config=str(size)).results


mlir.register_lowering(_check_p, _lower)


def check(indices: Any, size: Any, counts_from_end: bool = False) -> Any:
    """The indices, which end the executable where one is outside of [0, size). Of the batch's size, which is open, there is no check."""
    if not isinstance(size, int) or size < 1 or not jnp.issubdtype(indices.dtype, jnp.integer):
        return indices
    if counts_from_end:
        indices = jnp.where((indices < 0) & (indices >= -size), indices + size, indices)
    return _check_p.bind(jnp.asarray(indices), size=size)


# ---- Operations ----------------------------------------------------------------------------------------------------------

# In graphs alone: the class numbers of one_hot, which PyTorch compares with all, and checks otherwise.
_library = torch.library.Library("distc", "DEF")
_library.define("index(Tensor index, SymInt size) -> Tensor")
_library.impl("index", lambda index, size: index.clone(), "CompositeExplicitAutograd")


def with_checked_classes(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a function of PyTorch, those of one_hot checked."""
    if function is not torch.nn.functional.one_hot:
        return args, kwargs
    given = dict(zip(("tensor", "num_classes"), args)) | {"tensor" if name in ("input", "self") else name: value for name, value in kwargs.items()}
    classes = given.get("num_classes", -1)
    if not isinstance(classes, int) or classes < 1 or not isinstance(given.get("tensor"), torch.Tensor):
        return args, kwargs
    return (torch.ops.distc.index(given["tensor"], classes), classes), {}


def _along(place: int) -> Callable[..., Any]:
    """Along the axis that the argument before says."""
    return lambda args, kwargs: [((place,), args[0].shape[args[place - 1]] if args[0].ndim else 1)]


def _of_rows(args: Any, kwargs: Any) -> Any:
    return [((1,), args[0].shape[0])]


def _of_axes(args: Any, kwargs: Any) -> Any:
    return [((1, axis), args[0].shape[axis]) for axis, index in enumerate(args[1]) if index is not None]


# Which arguments (places, of lists two) are indices, and below what they must be.
_INDICES: dict[str, Callable[..., Any]] = {
    "embedding": _of_rows, "_embedding_bag": _of_rows, "_embedding_bag_forward_only": _of_rows, "index": _of_axes, "index_put": _of_axes,
    **{name: _along(2) for name in ("select", "index_select", "gather", "scatter", "scatter_add", "scatter_reduce", "index_reduce", "index_add", "index_copy", "index_fill")}}
# What takes -1 for the last. What PyTorch makes of others (index_add) would as well.
_FROM_END = {"select", "index", "index_put", "index_fill", "take", "put"}
# What PyTorch makes operations with indices of; those of others it makes itself, inside.
_CHECKED = {*_INDICES, *_FROM_END, "nll_loss_forward", "nll_loss2d_forward", "nll_loss", "nll_loss2d", "multi_margin_loss", "take_along_dim"}

_SAME_ELEMENTS = {"_local_scalar_dense", "_to_copy", "alias", "clone", "contiguous", "detach", "expand", "lift_fresh_copy", "permute", "reshape", "select", "slice", "squeeze", "t",
                  "transpose", "unsqueeze", "view", "_unsafe_view"}
# With places along an axis as a result, and which argument says the axis.
_PLACES = {"argmax": 1, "argmin": 1, "argsort": 1, "sort": 1, "topk": 2, "max": 1, "min": 1, "kthvalue": 2}


# What takes a number of a tensor, as x[i] does.
_NUMBER = "_local_scalar_dense"


def is_place(node: torch.fx.Node) -> bool:
    """Whether it is a number of a tensor's that only says which part another one is of (x[i] of a tensor i without axes)."""
    return _get_name(node.target) == _NUMBER and all(_get_name(user.target) == "select" and user.args[2] is node and user.args[0] is not node for user in node.users)


def _get_name(target: Any) -> str:
    return str(target).removeprefix("aten.").partition(".")[0]


def _are_places(node: torch.fx.Node, size: int, default: int = -1) -> bool:
    name = _get_name(node.target)
    if name not in _PLACES or not isinstance(node.args[0], torch.fx.Node):
        return False
    place = _PLACES[name]
    axis = node.args[place] if len(node.args) > place else node.kwargs.get("dim", default)
    given = node.args[0].meta.get("val")
    if not isinstance(given, torch.Tensor):
        return False
    if not isinstance(axis, int) or isinstance(axis, bool):
        count = given.numel() if name in ("argmax", "argmin") and axis is None else None
    else:
        count = given.shape[axis] if given.ndim else 1
    return isinstance(count, int) and count <= size


def _are_inside(node: Any, size: int) -> bool:
    """Whether no element is outside of [0, size), whatever the data are."""
    if not isinstance(node, torch.fx.Node) or node.op != "call_function":
        return False
    value = node.meta.get("val")
    name = _get_name(node.target)
    if node.target is operator.getitem:
        return node.args[1] == 1 and isinstance(node.args[0], torch.fx.Node) and node.args[0].op == "call_function" and _are_places(node.args[0], size)
    if isinstance(value, torch.Tensor) and value.dtype == torch.bool:
        return size >= 2
    if name in _SAME_ELEMENTS:
        given = node.args[0]
        of = given.meta.get("val") if isinstance(given, torch.fx.Node) else None
        if isinstance(of, torch.Tensor) and of.dtype == torch.bool:
            return size >= 2
        return isinstance(of, torch.Tensor) and not of.is_floating_point() and not of.is_complex() and _are_inside(given, size)
    if name in ("argmax", "argmin", "argsort"):
        return _are_places(node, size, default=-1 if name == "argsort" else None)  # type: ignore[arg-type]
    if name == "clamp" and len(node.args) == 3:
        return all(isinstance(bound, int) for bound in node.args[1:]) and 0 <= node.args[1] <= node.args[2] < size  # type: ignore[operator]
    if name == "remainder" and isinstance(node.args[1], int):
        return 0 < node.args[1] <= size
    return False


def find_checks(graph: torch.fx.Graph, constant: set[str]) -> set[torch.fx.Node]:
    """The operations whose indices are to be checked: of what is fed, or changes with the steps. `constant`: inputs that stay what they
    are."""
    varying: set[torch.fx.Node] = set()
    for node in graph.nodes:
        if node.op == "placeholder" and node.name not in constant or any(each in varying for each in node.all_input_nodes):
            varying.add(node)
    return {node for node in graph.nodes if node.op == "call_function" and any(of in varying for of in _get_indices(node))}


def _get_indices(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    name = _get_name(node.target)
    original = node.meta.get("original_aten")
    if name not in _INDICES or (original is not None and _get_name(original) not in _CHECKED):
        return
    place = 2 if _INDICES[name] not in (_of_rows, _of_axes) else 1
    given = node.args[place]
    for each in given if isinstance(given, (list, tuple)) else [given]:
        # A number that is made of the batch's size is no tensor's.
        if isinstance(each, torch.fx.Node) and (name != "select" or _get_name(each.target) == _NUMBER):
            yield each


def with_checks(node: torch.fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of an operation, indices checked."""
    changed = list(args)
    original = _get_name(node.meta.get("original_aten") or node.target)
    for place, size in _INDICES[_get_name(node.target)](args, kwargs):
        of = node.args[place[0]] if len(place) == 1 else node.args[place[0]][place[1]]  # type: ignore[index]
        if not isinstance(size, int) or not isinstance(of, torch.fx.Node) or _are_inside(of, size):
            continue
        if len(place) == 1:
            changed[place[0]] = check(changed[place[0]], size, original in _FROM_END)
        else:
            changed[place[0]] = list(changed[place[0]])
            changed[place[0]][place[1]] = check(changed[place[0]][place[1]], size, original in _FROM_END)
    return tuple(changed)
