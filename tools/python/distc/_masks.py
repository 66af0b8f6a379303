"""Elements that a mask chooses (x[mask]). How many there are depends on the data, which has no form in a program of fixed shapes: all are computed,
those that are not chosen as copies of the first that is, and none of them counts where the chosen ones are summed, averaged, compared, or put back."""
from __future__ import annotations

import functools
import math
import operator
from typing import Any, Callable, Iterator, Mapping

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols, statically_known_true

# What gives a mask as it is.
_SAME_MASK = {"alias", "clone", "contiguous", "detach", "lift_fresh_copy"}
# Whose result has for each element what the operand has in its place, beside those that PyTorch calls so.
_BY_ELEMENT = {"_to_copy", "alias", "clone", "contiguous", "detach", "lift_fresh_copy", "full_like", "zeros_like", "ones_like", "empty_like", "native_dropout", "rand_like",
               "randn_like", "log_sigmoid_forward"}
# Whose axes go elsewhere.
_MOVED = {"unsqueeze", "squeeze.dim", "squeeze.dims", "transpose", "permute", "t", "stack"}
_PRODUCTS = {"mm", "addmm", "bmm", "matmul", "mv", "dot"}
# What works along an axis, which is not to be that of the chosen ones: the argument that says it.
_ALONG = {"_softmax": 1, "_log_softmax": 1, "cumsum": 1, "cumprod": 1, "sort": 1, "argsort": 1, "topk": 2, "select": 1, "slice": 1, "split_with_sizes": 2, "split": 2, "unbind": 1,
          "cat": 1, "flip": 1, "max.dim": 1, "min.dim": 1, "var": 1, "var_mean": 1, "std": 1, "argmax": 1, "argmin": 1}
_DEFAULT_AXES = {"sort": -1, "argsort": -1, "topk": -1, "select": 0, "slice": 0, "split_with_sizes": 0, "split": 0, "unbind": 0, "cat": 0}
# What reduces, with what it is to see in place of elements that were not chosen.
_NEUTRAL: dict[str, Any] = {"sum": 0, "mean": 0, "any": False, "all": True, "linalg_vector_norm": 0, "amax": -math.inf, "amin": math.inf, "max.default": -math.inf,
                            "min.default": math.inf, "logsumexp": -math.inf}
_SHAPED = {"view", "reshape", "_unsafe_view", "expand", "full", "zeros", "ones", "empty"}
# The end of a slice that has none.
_END = 2**63 - 1
# Example by example, which are the first axis.
_BY_EXAMPLE = {"convolution", "native_group_norm", "max_pool2d", "max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d"}


def _get_names(node: torch.fx.Node) -> tuple[str, str]:
    name = str(node.target).removeprefix("aten.")
    return name, name.rpartition(".")[0] or name


def _find_equals(graph: torch.fx.Graph) -> dict[torch.fx.Node, torch.fx.Node]:
    """Of each node the first that computes the same of the same values: masks are written down where they are used (x[y > 0], z[y > 0])."""
    first: dict[Any, torch.fx.Node] = {}
    equal: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in graph.nodes:
        equal[node] = node
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded in node.target.tags:
            continue
        if _get_names(node)[1] in _SAME_MASK:
            equal[node] = equal[node.args[0]]  # type: ignore[index]
            continue
        arguments = torch.fx.map_arg((node.args, node.kwargs), lambda each: equal[each])
        equal[node] = first.setdefault((node.target, repr(arguments)), node)
    return equal


def _is_mask(node: Any) -> bool:
    return isinstance(node, torch.fx.Node) and isinstance(value := node.meta.get("val"), torch.Tensor) and value.dtype == torch.bool


def _get_tensors(node: torch.fx.Node) -> Iterator[torch.Tensor]:
    value = node.meta.get("val")
    yield from (each for each in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(each, torch.Tensor))


def is_open(node: torch.fx.Node) -> bool:
    """Whether a size of its value depends on the data."""
    return any(free_unbacked_symbols(size) for value in _get_tensors(node) for size in value.shape)


def _get_axis(value: torch.Tensor) -> tuple[int, int, Any] | None:
    """The axis of chosen elements, how many of it belong to each, and the symbol of their number."""
    axes = [(axis, size) for axis, size in enumerate(value.shape) if free_unbacked_symbols(size)]
    if len(axes) != 1:
        return None
    (axis, size), = axes
    symbols = free_unbacked_symbols(size)
    symbol = next(iter(symbols))
    each = size.node.expr / symbol
    return (axis, int(each), symbol) if len(symbols) == 1 and each.is_Integer and each > 0 else None


def _chooses(node: torch.fx.Node) -> bool:
    name = _get_names(node)[1]
    if name == "nonzero":
        return not is_open(node.args[0]) and node.args[0].meta["val"].ndim > 0  # type: ignore[arg-type,union-attr]
    if name not in ("index", "masked_select"):
        return False
    x, mask = node.args[0], _get_choice(node)
    if not _is_mask(mask) or is_open(mask) or is_open(x):  # type: ignore[arg-type]
        return False
    shape = mask.meta["val"].shape
    of_all = math.prod(shape)
    return len(shape) > 0 and not (isinstance(of_all, int) and of_all < 2) and (name == "index" or x.meta["val"].shape == shape)  # type: ignore[union-attr]


def _get_choice(node: torch.fx.Node) -> Any:
    if _get_names(node)[1] in ("masked_select", "nonzero"):
        return node.args[1 if _get_names(node)[1] == "masked_select" else 0]
    indices = [each for each in node.args[1] if each is not None]  # type: ignore[union-attr]
    return indices[0] if len(indices) == 1 else None


@functools.partial(jax.custom_jvp, nondiff_argnums=(3,))
def _take_last(x: Any, chosen: Any, is_last: Any, axes: tuple[int, ...]) -> Any:
    """Of several chosen elements for one place the last, though with PyTorch each has the gradient."""
    there = jnp.where(chosen & is_last, x, jnp.zeros((), x.dtype))
    return jnp.any(there, axes) if x.dtype == bool else jnp.sum(there, axes, dtype=x.dtype)


@_take_last.defjvp
def _take_last_jvp(axes: tuple[int, ...], given: tuple[Any, ...], changes: tuple[Any, ...]) -> tuple[Any, Any]:
    x, chosen, is_last = given
    put = _take_last(x, chosen, is_last, axes)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return put, np.zeros(put.shape, jax.dtypes.float0)
    return put, jnp.sum(jnp.where(chosen, changes[0], 0), axes, dtype=x.dtype)


class Chosen:
    """The values of a graph that have an axis of chosen elements, and how they are computed."""

    def __init__(self, graph: torch.fx.Graph):
        # Of each: the axis, how many of it belong to each chosen element, and which mask chose them.
        self.found: dict[torch.fx.Node, tuple[int, int, torch.fx.Node]] = {}
        self.reduced: set[torch.fx.Node] = set()
        self.sizes: set[torch.fx.Node] = set()
        # Of numbers of elements (torch.where(mask), mask.nonzero()) the mask, and along which of its axes; those of all axes have none.
        self.places: dict[torch.fx.Node, tuple[torch.fx.Node, int | None]] = {}
        by_symbol: dict[Any, set[torch.fx.Node]] = {}
        self.equal = _find_equals(graph)
        for node in graph.nodes:
            if node.op == "output" and any(is_open(each) for each in node.all_input_nodes):
                raise NotImplementedError("the step gives elements that a mask chooses (x[mask]), whose number is not known: give their sum or mean, or put them back (y[mask] = ..)")
            if node.op != "call_function" or not (is_open(node) or any(is_open(each) for each in node.all_input_nodes)) or _get_names(node)[1].startswith(("_assert", "sym_constrain")):
                continue
            if node.target in (torch.ops.aten.sym_size.int, torch.ops.aten.sym_numel.default):
                self.sizes.add(node)
                continue
            found = [_get_axis(value) for value in _get_tensors(node) if any(free_unbacked_symbols(size) for size in value.shape)]
            if _chooses(node) and found[0] is not None:
                mask = self.equal[_get_choice(node)]
                if sum(not isinstance(size, int) for size in mask.meta["val"].shape) > 1:
                    raise NotImplementedError("there is no code for elements that a mask of examples by examples chooses (x[mask], x[~torch.eye(n).bool()]): weigh all pairs by it, as "
                                              "(x * mask).sum() / mask.sum(), or torch.where(mask, x, -torch.inf) of what is exponentiated")
            else:
                given = [each for each in node.all_input_nodes if is_open(each)]
                masks = {self.found[each][2] for each in given} or (by_symbol.get(found[0][2], set()) if found and found[0] else set())
                if None in found or len(masks) != 1 or not self._is_known(node, found):
                    raise NotImplementedError(
                        f"there is no code for {node.target} of elements that a mask chooses (x[mask]), whose number is not known. There is for what computes each of them by itself, their sums and "
                        "means, and for putting them back (y[mask] = ..), with one tensor as the mask of all that belong together: weigh all by the mask (torch.where), or let the loss pass over them "
                        "(ignore_index)")
                (mask,) = masks
            if found:
                axis, count, symbol = found[0]  # type: ignore[misc]
                by_symbol.setdefault(symbol, set()).add(mask)
                self.found[node] = (axis, count, mask)
                self._find_places(node, mask)
            else:
                self.reduced.add(node)

    def _find_places(self, node: torch.fx.Node, mask: torch.fx.Node) -> None:
        full, name = _get_names(node)
        of: Any = node.args[0] if node.args else None
        if name == "nonzero":
            self.places[node] = (mask, None)
            return
        if of not in self.places:
            return
        axis, rank = self.places[of][1], mask.meta["val"].ndim
        if name in _SAME_MASK or (name == "unbind" and node.args[1:] in ((1,), (-1,)) and axis is None):
            pass
        elif node.target is operator.getitem:
            axis = node.args[1] % rank  # type: ignore[operator]
        elif full in ("squeeze.dim", "squeeze.dims", "view.default", "reshape.default"):
            axis = 0 if axis is None and rank == 1 else axis
            if axis is None:
                return
        elif name == "select" and node.args[1] in (1, -1):
            axis = node.args[2] % rank if axis is None else axis  # type: ignore[operator]
        elif name == "slice" and axis is None and node.args[1] == 1 and isinstance(node.args[2], int) and 0 <= node.args[2] < rank and node.meta["val"].shape[1] == 1:
            axis = node.args[2]
        else:
            return
        self.places[node] = (mask, axis)

    def _get_places(self, node: torch.fx.Node) -> tuple[int, list[int]] | None:
        """Of an operation that takes or puts elements of the first argument by numbers of chosen elements: how many axes stand before, and which of the mask's axes the
        following ones are."""
        name = _get_names(node)[1]
        if name == "index_select":
            indices: Any = [None] * (node.args[1] % max(node.args[0].meta["val"].ndim, 1)) + [node.args[2]]  # type: ignore[operator,union-attr]
        else:
            indices = list(node.args[1])  # type: ignore[arg-type]
        front = next((number for number, each in enumerate(indices) if each is not None), 0)
        given = [self.places.get(each) for each in indices[front:]]
        x = node.args[0]
        if not given or None in given or x in self.found:
            return None
        axes = [axis for _, axis in given]  # type: ignore[misc]
        (mask, *others) = {mask for mask, _ in given}  # type: ignore[misc]
        if others or None in axes or len(set(axes)) < len(axes) or any(each.meta["val"].ndim != 1 for each in indices[front:]):
            return None
        sizes, of = x.meta["val"].shape[front:], mask.meta["val"].shape  # type: ignore[union-attr]
        # What is taken from may have more elements along an axis.
        is_taken = name != "index_put"
        return (front, axes) if all(statically_known_true(size == of[axis]) or (is_taken and isinstance(size, int) and isinstance(of[axis], int) and size > of[axis])
                                    for size, axis in zip(sizes, axes)) else None

    def _is_put_at_places(self, node: torch.fx.Node) -> bool:
        """Whether it puts, or adds, a value of each chosen element to where a number says."""
        x, indices, values = node.args[:3]
        accumulate = len(node.args) > 3 and bool(node.args[3])
        if x in self.found:
            return False
        known = self._get_places(node)
        count = len(indices)  # type: ignore[arg-type]
        rest = x.meta["val"].ndim - count  # type: ignore[union-attr]
        rank = values.meta["val"].ndim  # type: ignore[union-attr]
        if values in self.found:
            is_each = self.found[values][:2] == (0, 1) and rank == 1 + rest  # type: ignore[index]
        else:
            is_each = rank <= rest
        if known is not None:
            return known[0] == 0 and is_each
        # What is added to rows that numbers of chosen elements name.
        return (accumulate and is_each and values in self.found and count == 1 and indices[0] in self.found and not _is_mask(indices[0])  # type: ignore[index]
                and indices[0].meta["val"].ndim == 1)  # type: ignore[index,union-attr]

    def _is_known(self, node: torch.fx.Node, found: list[Any]) -> bool:
        """Whether each chosen element is computed by itself, or they are reduced as `run` does."""
        if node.target is operator.getitem:
            return True
        if not isinstance(node.target, torch._ops.OpOverload):
            return False
        full, name = _get_names(node)
        first = node.args[0] if node.args and isinstance(node.args[0], torch.fx.Node) else None
        others = [each for each in node.all_input_nodes if isinstance(each.meta.get("val"), torch.Tensor) and each is not first]
        axis, count, _ = self.found.get(first, (-1, 1, None))  # type: ignore[arg-type]
        rank = first.meta["val"].ndim if first is not None else 0
        is_alone = axis >= 0 and not any(each in self.found for each in others)
        if torch.Tag.pointwise in node.target.tags or name == "expand":
            return len(found) > 0 and isinstance(result := node.meta["val"], torch.Tensor) and all(self._is_beside(each, result, found[0]) for each in node.all_input_nodes)
        if name in _BY_ELEMENT or full.startswith("distc.index"):
            return is_alone and not others
        if name in _MOVED or full in _MOVED:
            return len(found) > 0 and all(each in self.found and self.found[each][1] == found[0][1] for each in node.all_input_nodes)
        if name == "repeat":
            return is_alone and len(found) > 0 and node.args[1][axis - rank] == 1  # type: ignore[index]
        if name in _NEUTRAL or full in _NEUTRAL:
            order = node.args[1] if name == "linalg_vector_norm" and len(node.args) > 1 else 2
            return is_alone and isinstance(order, (int, float)) and 0 < order < math.inf if name == "linalg_vector_norm" else is_alone
        if name in ("full", "zeros", "ones", "empty"):
            return True
        if name in _SHAPED:
            if not is_alone or len(found) == 0:
                return False
            before, after, to = first.meta["val"].shape, node.meta["val"].shape, found[0][0]  # type: ignore[union-attr]
            sizes = (before[:axis], after[:to], before[axis + 1:], after[to + 1:])
            if not all(isinstance(size, int) for part in sizes for size in part):
                return False
            front, new_front, back, new_back = map(math.prod, sizes)
            return front == new_front and count * back == found[0][1] * new_back
        if name in _ALONG or full in _ALONG:
            place = _ALONG.get(full) or _ALONG[name]
            along = node.args[place] if len(node.args) > place else node.kwargs.get("dim", _DEFAULT_AXES.get(name))
            if name == "cat":
                if any(each not in self.found for each in node.all_input_nodes):
                    return False
                axis, rank = self.found[node.all_input_nodes[0]][0], node.all_input_nodes[0].meta["val"].ndim
            elif not is_alone or others:
                return False
            elif name == "slice" and (*node.args[1:], *(0, 0, _END, 1)[len(node.args) - 1:]) == (along, 0, _END, 1):
                return len(found) > 0  # all of it
            return len(found) > 0 and along is not None and axis not in [each % rank for each in (along if isinstance(along, (list, tuple)) else [along])]  # type: ignore[operator]
        if name in ("linear", "native_layer_norm"):
            return is_alone and axis < rank - (1 if name == "linear" else len(node.args[1]))  # type: ignore[arg-type]
        if name in _PRODUCTS:
            left, right = node.args[-2:]
            if left not in self.found or (name == "addmm" and first in self.found):
                return False
            return self._sums(node) or self._is_product_each(node) or (right not in self.found and self.found[left][0] == left.meta["val"].ndim - 2)  # type: ignore[index,union-attr]
        if name == "embedding":
            # With scale_grad_by_freq all indices would be counted.
            return first not in self.found and not (len(node.args) > 3 and node.args[3]) and not node.kwargs.get("scale_grad_by_freq")
        if name == "gather":
            index = node.args[2]
            if first not in self.found:
                return rank == 1 and index in self.found
            return index in self.found and self.found[index][:2] == (axis, count) and node.args[1] % rank != axis  # type: ignore[index,operator]
        if name == "index":
            if self._get_places(node) is not None:
                return True
            indices = [each for each in node.args[1] if each is not None]  # type: ignore[union-attr]
            return first not in self.found and len(indices) == 1 and not _is_mask(indices[0])
        if name == "index_select":
            return first not in self.found
        if name == "index_put":
            return self._is_put_back(node) or self._is_put_at_places(node)
        return name in _BY_EXAMPLE and is_alone and axis == 0

    def _is_beside(self, node: torch.fx.Node, result: torch.Tensor, found: Any) -> bool:
        """Whether it has the chosen elements where the result has them, or one value for all."""
        value, place = node.meta.get("val"), result.ndim - found[0]
        if not isinstance(value, torch.Tensor):
            return True
        if node in self.found:
            return self.found[node][1] == found[1] and value.ndim - self.found[node][0] == place
        return value.ndim < place or (isinstance(size := value.shape[-place], int) and size == 1)

    def _sums(self, node: torch.fx.Node) -> bool:
        """Whether it is a product of matrices that sums over the chosen elements of both."""
        left, right = node.args[-2:]
        if left not in self.found or right not in self.found:
            return False
        (axis, count, _), (other, as_many, _) = self.found[left], self.found[right]  # type: ignore[index]
        return count == as_many and axis == left.meta["val"].ndim - 1 and other == max(right.meta["val"].ndim - 2, 0)  # type: ignore[union-attr]

    def _is_product_each(self, node: torch.fx.Node) -> bool:
        left, right = node.args[-2:]
        return _get_names(node)[1] == "bmm" and left in self.found and right in self.found and self.found[left][:2] == self.found[right][:2] and self.found[left][0] == 0  # type: ignore[index]

    def _is_put_back(self, node: torch.fx.Node) -> bool:
        x, indices, values = node.args[:3]
        masks = [(place, each) for place, each in enumerate(indices) if each is not None]  # type: ignore[arg-type,union-attr,var-annotated]
        if x in self.found or values not in self.found or len(masks) != 1 or not _is_mask(masks[0][1]):
            return False
        (place, mask), (axis, count, chosen_by) = masks[0], self.found[values]  # type: ignore[index]
        behind = x.meta["val"].ndim - mask.meta["val"].ndim - place  # type: ignore[union-attr]
        return count == 1 and chosen_by is self.equal[mask] and values.meta["val"].ndim - 1 - axis == behind  # type: ignore[union-attr]

    def __contains__(self, node: torch.fx.Node) -> bool:
        return node in self.found or node in self.reduced or node in self.sizes

    def run(self, node: torch.fx.Node, values: Mapping[torch.fx.Node, Any], args: tuple[Any, ...], kwargs: dict[str, Any], compute: Callable[..., Any]) -> Any:
        """The value of one of these nodes. `compute` is of an operation where nothing is chosen."""
        full, name = _get_names(node)
        if node in self.sizes:
            return self._get_size(node, values)
        if _chooses(node):
            return self._choose(node, values)
        if name == "index_put" and self._is_put_back(node):
            return self._put_back(node, *args, **kwargs)
        if name == "index_put":
            return self._put_at_places(node, values, *args, **kwargs)
        if name in ("index", "index_select") and self._get_places(node) is not None:
            return self._take_at_places(node, values)
        if name in _SHAPED and node in self.found:
            place = int(isinstance(node.args[0], torch.fx.Node))
            axis, count, mask = self.found[node]
            said = node.meta["val"].shape
            shape = [self._count_all(values, mask) * count if number == axis else size if isinstance(size, int) else args[place][number] for number, size in enumerate(said)]
            return compute(*args[:place], shape, *args[place + 1:], **kwargs)
        if name in _NEUTRAL or full in _NEUTRAL:
            return self._reduce(node, values, args, kwargs, compute)
        if name in _PRODUCTS and self._sums(node):
            *front, left, right = args
            parts = [jnp.where(self._get_flags(values, of, each.ndim), each, 0) for of, each in zip(node.args[-2:], (left, right))]  # type: ignore[arg-type]
            return compute(*front, *parts, **kwargs)
        return compute(*args, **kwargs)

    def _get_size(self, node: torch.fx.Node, values: Mapping[torch.fx.Node, Any]) -> Any:
        """How many elements along an axis, or in all."""
        of: Any = node.args[0]
        axis, count, mask = self.found[of]
        shape = values[of].shape
        is_axis = node.target is torch.ops.aten.sym_size.int
        if is_axis and node.args[1] % len(shape) != axis:  # type: ignore[operator]
            return shape[node.args[1]]
        chosen = jnp.sum(self._get_mask(values, mask), dtype=jnp.int64) * count
        return chosen if is_axis else chosen * math.prod(size for number, size in enumerate(shape) if number != axis)

    @staticmethod
    def _get_mask(values: Mapping[torch.fx.Node, Any], mask: torch.fx.Node) -> Any:
        flags = jnp.asarray(values[mask])
        return flags if flags.dtype == bool else flags != 0

    @staticmethod
    def _count_all(values: Mapping[torch.fx.Node, Any], mask: torch.fx.Node) -> Any:
        return math.prod(values[mask].shape)

    def _get_flags(self, values: Mapping[torch.fx.Node, Any], node: torch.fx.Node, rank: int) -> Any:
        """Which along the axis were chosen, beside the others."""
        axis, count, mask = self.found[node]
        flags = self._get_mask(values, mask).reshape(-1)
        if count > 1:
            flags = jnp.broadcast_to(flags[:, None], (flags.shape[0], count)).reshape(-1)
        return jnp.expand_dims(flags, [number for number in range(rank) if number != axis])

    def _choose(self, node: torch.fx.Node, values: Mapping[torch.fx.Node, Any]) -> Any:
        axis, _, mask = self.found[node]
        flags = self._get_mask(values, mask)
        if _get_names(node)[1] == "nonzero":
            along = [jnp.expand_dims(jnp.arange(size), [other for other in range(flags.ndim) if other != number]) for number, size in enumerate(flags.shape)]
            return self._choose_rows(jnp.stack([jnp.broadcast_to(each, flags.shape) for each in along], -1), flags, 0)
        return self._choose_rows(jnp.asarray(values[node.args[0]]), flags, axis)  # type: ignore[index]

    @staticmethod
    def _choose_rows(x: Any, flags: Any, axis: int) -> Any:
        """Of x, whose axes from `axis` on are the mask's."""
        size = math.prod(flags.shape)
        rows = x.reshape(*x.shape[:axis], size, *x.shape[axis + flags.ndim:])
        number = jnp.arange(size)
        first = jnp.min(jnp.where(flags.reshape(-1), number, size))
        beside = [each for each in range(rows.ndim) if each != axis]
        is_first = jnp.expand_dims(number == first, beside)
        # What holds for a chosen element holds for its copy: a logarithm has no NaN of it, and a label is in range.
        if rows.dtype == bool:
            copy = jnp.any(rows & is_first, axis, keepdims=True)
        else:
            copy = jnp.sum(jnp.where(is_first, lax.stop_gradient(rows), 0), axis, keepdims=True, dtype=rows.dtype)
        if jnp.issubdtype(rows.dtype, jnp.floating):
            copy = jnp.where(first < size, copy, 1)
        return jnp.where(jnp.expand_dims(flags.reshape(-1), beside), rows, copy)

    def _take_at_places(self, node: torch.fx.Node, values: Mapping[torch.fx.Node, Any]) -> Any:
        front, axes = self._get_places(node)  # type: ignore[misc]
        x, flags = jnp.asarray(values[node.args[0]]), self._get_mask(values, self.found[node][2])  # type: ignore[index]
        rest = range(front + len(axes), x.ndim)
        for number, axis in enumerate(axes):
            if isinstance(flags.shape[axis], int):
                x = lax.slice_in_dim(x, 0, flags.shape[axis], axis=front + number)
        x = jnp.transpose(x, [*range(front), *(front + axes.index(axis) for axis in sorted(axes)), *rest])
        x = jnp.expand_dims(x, [front + axis for axis in range(flags.ndim) if axis not in axes])
        return self._choose_rows(jnp.broadcast_to(x, (*x.shape[:front], *flags.shape, *x.shape[front + flags.ndim:])), flags, front)

    def _put_at_places(self, node: torch.fx.Node, values: Mapping[torch.fx.Node, Any], x: Any, indices: Any, new: Any, accumulate: bool = False) -> Any:
        x, known = jnp.asarray(x), self._get_places(node)
        mask = self.found[node.args[1][0]][2]  # type: ignore[index]
        flags = self._get_mask(values, mask)
        rest = x.shape[len(indices):]
        new = jnp.broadcast_to(new, (math.prod(flags.shape), *rest)).astype(x.dtype)
        if known is None:
            return x.at[indices[0]].add(jnp.where(jnp.expand_dims(flags.reshape(-1), range(1, new.ndim)), new, 0))
        new, chosen = new.reshape(*flags.shape, *rest), jnp.expand_dims(flags, range(flags.ndim, flags.ndim + len(rest)))
        axes = known[1]
        others = tuple(axis for axis in range(flags.ndim) if axis not in axes)
        back = [sorted(axes).index(axis) for axis in axes] + list(range(len(axes), x.ndim))
        if accumulate:
            return x + jnp.transpose(jnp.sum(jnp.where(chosen, new, 0), others, dtype=x.dtype), back)
        number = jnp.zeros((), int)
        for axis in others:
            number = number * flags.shape[axis] + jnp.expand_dims(jnp.arange(flags.shape[axis]), [other for other in range(chosen.ndim) if other != axis])
        last = jnp.max(jnp.where(chosen, number, -1), others, keepdims=True)
        put = _take_last(new, chosen, number == last, others)
        return jnp.where(jnp.transpose(jnp.squeeze(last, others) >= 0, back), jnp.transpose(put, back), x)

    def _put_back(self, node: torch.fx.Node, x: Any, indices: Any, new: Any, accumulate: bool = False) -> Any:
        (place, flags), = ((place, each) for place, each in enumerate(indices) if each is not None)
        x, flags = jnp.asarray(x), jnp.asarray(flags)
        behind = x.shape[place + flags.ndim:]
        new = jnp.broadcast_to(new, (*x.shape[:place], math.prod(flags.shape), *behind)).reshape(x.shape).astype(x.dtype)
        return jnp.where(flags.reshape(*flags.shape, *[1] * len(behind)), x + new if accumulate else new, x)

    def _reduce(self, node: torch.fx.Node, values: Mapping[torch.fx.Node, Any], args: tuple[Any, ...], kwargs: dict[str, Any], compute: Callable[..., Any]) -> Any:
        full, name = _get_names(node)
        of: Any = node.args[0]
        x, place = args[0], 2 if name == "linalg_vector_norm" else 1
        axes = args[place] if len(args) > place and full not in ("max.default", "min.default") else kwargs.get("dim")
        axes = list(range(x.ndim)) if axes is None or axes == [] else [each % x.ndim for each in (axes if isinstance(axes, (list, tuple)) else [axes])]
        if self.found[of][0] not in axes:
            return compute(*args, **kwargs)
        flags, neutral = self._get_flags(values, of, x.ndim), _NEUTRAL.get(full, _NEUTRAL.get(name))
        if isinstance(neutral, float) and not jnp.issubdtype(x.dtype, jnp.floating):
            limits = (False, True) if x.dtype == bool else (jnp.iinfo(x.dtype).min, jnp.iinfo(x.dtype).max)
            neutral = limits[neutral > 0]
        filled = jnp.where(flags, x, jnp.asarray(neutral, x.dtype))
        if name != "mean":
            return compute(filled, *args[1:], **kwargs)
        if (dtype := kwargs.get("dtype")) is not None:
            filled = filled.astype(str(dtype).removeprefix("torch."))
        count = jnp.sum(flags) * math.prod(x.shape[each] for each in axes if each != self.found[of][0])
        keepdim = args[2] if len(args) > 2 else kwargs.get("keepdim", False)
        return jnp.sum(filled, tuple(axes), keepdims=keepdim) / count.astype(filled.dtype)
