"""A graph of torch.export, as a function of JAX."""
from __future__ import annotations

import collections
import functools
import math
import re
from typing import Any, Mapping

import jax
import jax.numpy as jnp
import torch

from distc import _indices
from distc._aten.nodes import OF_NODES
from distc._aten.products import _attend
from distc._aten.random import RANDOM
from distc._aten.sizes import OF_SIZES
from distc._aten.table import get_names, TABLE, to_dtype, UnknownOperations
from distc._functions import COTANGENT, Gradients, WITH_GRADIENT
from distc._masks import Chosen
from distc._parts import JOIN


def _draws(node: torch.fx.Node) -> bool:
    """Whether it takes random numbers."""
    name = get_names(node.target)[1]
    if name != "scaled_dot_product_attention":
        return name in RANDOM
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
                    unknown[get_names(node.args[1])[0]] += 1
            elif node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and not self._is_known(node):
                unknown[get_names(node.target)[0]] += 1
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
            if node.op == "call_function" and get_names(node.target)[1] in ("linalg_qr", "_linalg_svd"):
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
            if node in found or not is_float(node) or (node.op == "call_function" and get_names(node.target)[1] in _WITHOUT_GRADIENT):
                continue
            found.add(node)
            waiting += node.args[2] if node.target is WITH_GRADIENT else node.all_input_nodes
        return {node.name for node in found if node.op == "placeholder"}

    @staticmethod
    def _is_known(node: torch.fx.Node) -> bool:
        full, name = get_names(node.target)
        return (full in TABLE or name in TABLE or name in ("masked_select", "nonzero") or name in RANDOM or full in OF_NODES or name in OF_NODES
                or name in ("sym_size", "sym_numel", "scaled_dot_product_attention") or _indices.is_place(node) or node.target in (COTANGENT, WITH_GRADIENT, JOIN) or Graph._is_check(node.target))

    @staticmethod
    def _is_check(target: Any) -> bool:
        """Whether it only raises an error where values are not as they should be."""
        return get_names(target)[1].startswith(("_assert", "sym_constrain", "_linalg_check_errors"))

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
            return OF_SIZES.get(node.target, node.target)(*args, **kwargs)
        full, name = get_names(node.target)
        if node in self.checked:
            args = _indices.with_checks(node, args, kwargs)
        if node in self.chosen and not _draws(node):
            compute = functools.partial(OF_NODES.get(full) or OF_NODES[name], node) if full in OF_NODES or name in OF_NODES else TABLE.get(full) or TABLE.get(name)
            return self._as_said(node, self.chosen.run(node, values, args, kwargs, compute))
        if node.target is JOIN or _indices.is_place(node):
            value = args[0]
        elif name == "sym_size" and args[1] == 0:
            value = args[0].shape[0] // self.rows.get(node.args[0].name, 1)
        elif name == "sym_size":
            value = args[0].shape[args[1]]
        elif name == "sym_numel":
            value = math.prod(args[0].shape)
        elif self._is_check(node.target):
            value = None
        elif full in OF_NODES or name in OF_NODES:
            value = (OF_NODES.get(full) or OF_NODES[name])(node, *args, **kwargs)
        elif name == "scaled_dot_product_attention":
            value = _attend(*args, **kwargs, random_key=key)
        elif name in RANDOM:
            value = RANDOM[name](key, *args, **kwargs)
        else:
            value = (TABLE.get(full) or TABLE[name])(*args, **kwargs)
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
