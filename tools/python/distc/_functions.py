"""Gradients that a torch.autograd.Function defines. torch.export writes forward passes alone: what the function's backward computes is written
down beside it, of a cotangent that is an operation of its own, and is run where JAX asks for the gradient."""
from __future__ import annotations

from typing import Any, Callable, Mapping

import jax
import jax.numpy as jnp
import torch
from jax import lax
from torch.fx.experimental.symbolic_shapes import statically_known_true

_library = torch.library.Library("distc", "FRAGMENT")
# What stands for the gradient of the result.
_library.define("cotangent(Tensor result) -> Tensor")
_library.impl("cotangent", lambda result: torch.zeros_like(result), "CompositeExplicitAutograd")
# The result, of whose gradient `of` those of the inputs are.
_library.define("with_gradient(Tensor result, Tensor of, Tensor[] inputs, Tensor[] gradients) -> Tensor")
_library.impl("with_gradient", lambda result, of, inputs, gradients: result.clone(), "CompositeExplicitAutograd")

COTANGENT, WITH_GRADIENT = torch.ops.distc.cotangent.default, torch.ops.distc.with_gradient.default


class _Context:
    """What forward leaves for backward."""

    def __init__(self, needs: tuple[bool, ...]):
        self.needs_input_grad = needs
        self.saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        pass

    def set_materialize_grads(self, value: bool) -> None:
        pass

    def mark_dirty(self, *tensors: Any) -> None:
        raise NotImplementedError("there is no code for a torch.autograd.Function that changes its input in place (mark_dirty): let it give a new tensor")

    def mark_non_differentiable(self, *tensors: Any) -> None:
        raise NotImplementedError("there is no code for a torch.autograd.Function with results without a gradient (mark_non_differentiable): detach them outside")


def call(function: Any, args: tuple[Any, ...]) -> Any:
    """function.apply(*args), as torch.export is to write it."""
    name = function.__name__
    if any(not isinstance(each, torch.Tensor) and any(isinstance(leaf, torch.Tensor) for leaf in torch.utils._pytree.tree_leaves(each)) for each in args):
        raise NotImplementedError(f"there is no code for {name} (torch.autograd.Function) of lists of tensors: give it each by itself")
    needs = tuple(isinstance(each, torch.Tensor) and each.requires_grad and torch.is_grad_enabled() for each in args)
    context = _Context(needs)
    versions = [each._version for each in args if isinstance(each, torch.Tensor)]
    if function.setup_context is not torch.autograd.Function.setup_context:
        result = function.forward(*args)
        function.setup_context(context, args, result)
    else:
        result = function.forward(context, *args)
    if versions != [each._version for each in args if isinstance(each, torch.Tensor)]:
        raise NotImplementedError(f"there is no code for {name} (torch.autograd.Function), which changes its input in place: let it give a new tensor")
    if not any(needs):
        return result.detach() if isinstance(result, torch.Tensor) and result.requires_grad else result
    if not isinstance(result, torch.Tensor) or not result.is_floating_point():
        raise NotImplementedError(f"there is no code for the gradient that {name} (torch.autograd.Function) defines of more than one result: write it of operations, as "
                                  "x + (f(x) - x).detach() for an f(x) with the gradient of x")
    # Below it nobody is to look at a gradient of what forward has computed.
    result = result.detach()
    cotangent = torch.ops.distc.cotangent(result)
    gradients = function.backward(context, cotangent)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    if len(gradients) < len(args) or any(each is not None for each in gradients[len(args):]):
        raise NotImplementedError(f"{name} (torch.autograd.Function) gives {len(gradients)} gradients of {len(args)} inputs")
    given = [(x, gradient) for x, gradient, need in zip(args, gradients, needs) if need and gradient is not None]
    for x, gradient in given:
        if gradient.ndim != x.ndim or not all(statically_known_true(size == of) for size, of in zip(gradient.shape, x.shape)):
            raise NotImplementedError(f"{name} (torch.autograd.Function) gives a gradient {list(gradient.shape)} of an input {list(x.shape)}: give it that shape")
    if not given:
        return result
    return torch.ops.distc.with_gradient(result, cotangent, [x for x, _ in given], [gradient.detach() for _, gradient in given])


class Gradients:
    """The nodes of a graph that are computed for gradients alone."""

    def __init__(self, graph: torch.fx.Graph, draws: Callable[[torch.fx.Node], bool], is_open: Callable[[torch.fx.Node], bool]):
        # Of each result with a gradient of its own what computes that, in order.
        self.bodies: dict[torch.fx.Node, list[torch.fx.Node]] = {}
        self.inside: set[torch.fx.Node] = set()
        order = {node: number for number, node in enumerate(graph.nodes)}
        for end in graph.nodes:
            if end.target is not WITH_GRADIENT:
                continue
            begin: Any = end.args[1]
            body, waiting = {begin}, [begin]
            while waiting:
                for user in waiting.pop().users:
                    if user is not end and user not in body:
                        body.add(user)
                        waiting.append(user)
            if any(each.op != "call_function" or draws(each) or is_open(each) or each.target is WITH_GRADIENT for each in body):
                raise NotImplementedError("there is no code for a torch.autograd.Function whose backward draws random numbers, chooses elements by a mask, or keeps what it computes for others")
            self.bodies[end] = sorted(body - {begin}, key=order.__getitem__)
            self.inside |= body

    def run(self, end: torch.fx.Node, values: Mapping[torch.fx.Node, Any], compute: Callable[[torch.fx.Node, dict[torch.fx.Node, Any]], Any]) -> Any:
        """The result, with its gradient. `compute` gives a node's value."""
        result, begin, inputs, gradients = end.args
        body = self.bodies[end]
        outer = {each for node in (*body, end) for each in node.all_input_nodes if each not in self.inside}
        arrays = [each for each in outer if isinstance(values[each], (jax.Array, jax.core.Tracer))]
        others = {each: values[each] for each in outer if each not in set(arrays)}

        @jax.custom_vjp
        def call(result: Any, inputs: list[Any], given: list[Any]) -> Any:
            return result

        def forward(result: Any, inputs: list[Any], given: list[Any]) -> Any:
            return result, given

        def backward(given: list[Any], cotangent: Any) -> Any:
            inner = {**others, **dict(zip(arrays, given)), begin: cotangent}
            for node in body:
                inner[node] = compute(node, inner)
            return None, [jnp.asarray(inner[gradient]).astype(values[x].dtype) for x, gradient in zip(inputs, gradients)], None

        call.defvjp(forward, backward)
        return call(lax.stop_gradient(jnp.asarray(values[result])), [jnp.asarray(values[each]) for each in inputs], [lax.stop_gradient(values[each]) for each in arrays])
