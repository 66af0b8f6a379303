"""Training steps of PyTorch as files that distc compiles.

The forward pass of the module and its loss is what torch.export writes of them; it becomes a function of JAX, operation by operation
(distc._aten), with JAX's gradients and the optimizer's rule behind it, and is exported like any step of JAX. (torchax, which runs
modules on JAX's arrays, does not load with present versions of PyTorch, and hides the batch's size and the buffers that a step changes.)
"""
from __future__ import annotations

import builtins
import collections
import contextlib
import copy
import dataclasses
import gc
import math
import os
import re
import sys
import traceback
import weakref
from typing import Any, Callable, Iterable, Iterator, Mapping
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.utils.checkpoint
from jax import lax
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.utils import _pytree
from torch.utils.checkpoint import CheckpointFunction

from distc import jax as distc_jax
from distc._aten import Graph, UnknownOperations, get_decompositions, stop_gradients, to_dtype
from distc._ctc import ctc_loss
from distc._functions import call as call_function
from distc._indices import with_checked_classes
from distc._layers import with_open_layers
from distc._packed import with_packed_sequences
from distc._parts import find_multiples, join, take_apart
from distc._python_state import _PARTS_OF_MODULES, PythonState
from distc._schedules import Table
from distc._signature import Step

__all__ = ["UnknownOperations", "export", "load_state"]

Arrays = dict[str, Any]
Loss = Callable[[torch.nn.Module, Any], Any]


# ---- Optimizers: a rule is (gradient, parameter, slots, hyper-parameters, number of the step from 1) -> (parameter, slots) ---

def _decayed(g: Any, p: Any, h: Mapping[str, Any]) -> Any:
    g = -g if h.get("maximize") else g
    return g + h["weight_decay"] * p if h["weight_decay"] != 0 else g


def _sgd(g: Any, p: Any, s: Arrays, h: Mapping[str, Any], t: Any) -> tuple[Any, Arrays]:
    g = _decayed(g, p, h)
    if _is_zero(h["momentum"]):
        return p - h["lr"] * g, {}
    # The first step has no dampening.
    old = s["momentum_buffer"]
    buffer = h["momentum"] * old + (g if h["dampening"] == 0 else jnp.where(t == 1, 1.0, 1 - h["dampening"]) * g)
    return p - h["lr"] * (g + h["momentum"] * buffer if h["nesterov"] else buffer), {"momentum_buffer": buffer}


def _is_zero(number: Any) -> bool:
    """Of one that a scheduler changes, a value, that is not known."""
    return isinstance(number, (int, float)) and number == 0


def _correction(b: Any, t: Any) -> Any:
    """1 - b^t as PyTorch computes it in float64: in float32 nearly all of its digits would cancel."""
    if not isinstance(b, (int, float)):
        return -jnp.expm1(t.astype(b.dtype) * jnp.log(b))
    return -jnp.expm1(t * math.log(b)) if b > 0 else jnp.ones_like(t)


def _counted(t: Any, p: Any) -> Any:
    """The number of the step as wide as the parameter, whose rates are computed from it; no narrower than float32."""
    return t.astype(jnp.promote_types(p.dtype, jnp.float32))


def _adam_step(g: Any, p: Any, s: Arrays, h: Mapping[str, Any], t: Any) -> tuple[Any, Arrays]:
    b1, b2 = h["betas"]
    slots = {"exp_avg": b1 * s["exp_avg"] + (1 - b1) * g, "exp_avg_sq": b2 * s["exp_avg_sq"] + (1 - b2) * g * g}
    largest = slots["exp_avg_sq"]
    if h["amsgrad"]:
        largest = slots["max_exp_avg_sq"] = jnp.maximum(s["max_exp_avg_sq"], largest)
    t = _counted(t, p)
    denominator = jnp.sqrt(largest) / jnp.sqrt(_correction(b2, t)) + h["eps"]
    return p - (h["lr"] / _correction(b1, t)) * slots["exp_avg"] / denominator, slots


def _adam(g: Any, p: Any, s: Arrays, h: Mapping[str, Any], t: Any) -> tuple[Any, Arrays]:
    if h.get("decoupled_weight_decay"):
        return _adamw(g, p, s, h, t)
    return _adam_step(_decayed(g, p, h), p, s, h, t)


def _adamw(g: Any, p: Any, s: Arrays, h: Mapping[str, Any], t: Any) -> tuple[Any, Arrays]:
    return _adam_step(-g if h.get("maximize") else g, p * (1 - h["lr"] * h["weight_decay"]), s, h, t)


def _rmsprop(g: Any, p: Any, s: Arrays, h: Mapping[str, Any], t: Any) -> tuple[Any, Arrays]:
    g = _decayed(g, p, h)
    slots = {"square_avg": h["alpha"] * s["square_avg"] + (1 - h["alpha"]) * g * g}
    average = slots["square_avg"]
    if h["centered"]:
        slots["grad_avg"] = s["grad_avg"] + (1 - h["alpha"]) * (g - s["grad_avg"])
        average = average - slots["grad_avg"] * slots["grad_avg"]
    step = g / (jnp.sqrt(average) + h["eps"])
    if not _is_zero(h["momentum"]):
        step = slots["momentum_buffer"] = h["momentum"] * s["momentum_buffer"] + step
    return p - h["lr"] * step, slots


def _adagrad(g: Any, p: Any, s: Arrays, h: Mapping[str, Any], t: Any) -> tuple[Any, Arrays]:
    g = _decayed(g, p, h)
    total = s["sum"] + g * g
    rate = h["lr"] / (1 + (_counted(t, p) - 1) * h["lr_decay"])
    return p - rate * g / (jnp.sqrt(total) + h["eps"]), {"sum": total}


def _nadam(g: Any, p: Any, s: Arrays, h: Mapping[str, Any], t: Any) -> tuple[Any, Arrays]:
    (b1, b2), t = h["betas"], _counted(t, p)
    if h["decoupled_weight_decay"]:
        p, h = p * (1 - h["lr"] * h["weight_decay"]), dict(h, weight_decay=0)
    g = _decayed(g, p, h)
    now, then = (b1 * (1 - 0.5 * 0.96 ** (each * h["momentum_decay"])) for each in (t, t + 1))
    slots = {"mu_product": s["mu_product"] * now, "exp_avg": b1 * s["exp_avg"] + (1 - b1) * g,
             "exp_avg_sq": b2 * s["exp_avg_sq"] + (1 - b2) * g * g}
    product, root = slots["mu_product"], jnp.sqrt(slots["exp_avg_sq"] / _correction(b2, t)) + h["eps"]
    return p - h["lr"] * ((1 - now) / (1 - product) * g + then / (1 - product * then) * slots["exp_avg"]) / root, slots


def _radam(g: Any, p: Any, s: Arrays, h: Mapping[str, Any], t: Any) -> tuple[Any, Arrays]:
    (b1, b2), t = h["betas"], _counted(t, p)
    if h["decoupled_weight_decay"]:
        p, h = p * (1 - h["lr"] * h["weight_decay"]), dict(h, weight_decay=0)
    g = _decayed(g, p, h)
    slots = {"exp_avg": b1 * s["exp_avg"] + (1 - b1) * g, "exp_avg_sq": b2 * s["exp_avg_sq"] + (1 - b2) * g * g}
    last = 2 / (1 - b2) - 1
    # last - 2 t b2^t / (1 - b2^t); by Bernoulli's series where both are nearly the same.
    decay = -math.log(b2)
    x = t * decay
    early = (last - 2 / decay) + t - 2 / decay * (x**2 / 12 - x**4 / 720 + x**6 / 30240)
    length = jnp.where(x < 0.5, early, last - 2 * t * jnp.exp(-x) / _correction(b2, t))
    is_long = length > 5
    rectified = jnp.sqrt(jnp.where(is_long, (length - 4) * (length - 2) * last / ((last - 4) * (last - 2) * length), 1))
    adaptive = rectified * jnp.sqrt(_correction(b2, t)) / (jnp.sqrt(slots["exp_avg_sq"]) + h["eps"])
    return p - h["lr"] / _correction(b1, t) * slots["exp_avg"] * jnp.where(is_long, adaptive, 1), slots


def _adamax(g: Any, p: Any, s: Arrays, h: Mapping[str, Any], t: Any) -> tuple[Any, Arrays]:
    b1, b2 = h["betas"]
    g = _decayed(g, p, h)
    slots = {"exp_avg": b1 * s["exp_avg"] + (1 - b1) * g, "exp_inf": jnp.maximum(b2 * s["exp_inf"], jnp.abs(g) + h["eps"])}
    return p - h["lr"] / _correction(b1, _counted(t, p)) * slots["exp_avg"] / slots["exp_inf"], slots


def _adadelta(g: Any, p: Any, s: Arrays, h: Mapping[str, Any], t: Any) -> tuple[Any, Arrays]:
    g, rho = _decayed(g, p, h), h["rho"]
    square = rho * s["square_avg"] + (1 - rho) * g * g
    delta = jnp.sqrt(s["acc_delta"] + h["eps"]) / jnp.sqrt(square + h["eps"]) * g
    return p - h["lr"] * delta, {"square_avg": square, "acc_delta": rho * s["acc_delta"] + (1 - rho) * delta * delta}


def _rprop(g: Any, p: Any, s: Arrays, h: Mapping[str, Any], t: Any) -> tuple[Any, Arrays]:
    g = -g if h.get("maximize") else g
    (shrink, grow), agreement = h["etas"], g * s["prev"]
    size = jnp.clip(s["step_size"] * jnp.where(agreement > 0, grow, jnp.where(agreement < 0, shrink, 1.0)), *h["step_sizes"])
    g = jnp.where(agreement < 0, 0, g)
    return p - jnp.sign(g) * size, {"prev": g, "step_size": size}


def _asgd(g: Any, p: Any, s: Arrays, h: Mapping[str, Any], t: Any) -> tuple[Any, Arrays]:
    t = _counted(t, p)
    p = p * (1 - h["lambd"] * s["eta"]) - s["eta"] * _decayed(g, p, h)
    return p, {"ax": jnp.where(s["mu"] == 1, p, s["ax"] + (p - s["ax"]) * s["mu"]),
               "eta": h["lr"] / (1 + h["lambd"] * h["lr"] * t) ** h["alpha"], "mu": 1 / jnp.maximum(1, t - h["t0"])}


def _adafactor(g: Any, p: Any, s: Arrays, h: Mapping[str, Any], t: Any) -> tuple[Any, Arrays]:
    t, g = _counted(t, p), -g if h.get("maximize") else g
    small, floor = h["eps"]
    small = float(jnp.finfo(p.dtype).eps) if small is None else small
    share = t ** h["beta2_decay"]
    rate = jnp.minimum(h["lr"], 1 / jnp.sqrt(t)) * jnp.maximum(floor, jnp.sqrt(jnp.mean(p * p)))
    p = p * (1 - h["lr"] * h["weight_decay"])

    def mix(slot: str, value: Any) -> Any:
        return s[slot] + share * (value - s[slot])

    if p.ndim > 1:
        slots = {"row_var": mix("row_var", jnp.mean(g * g, -1, keepdims=True)), "col_var": mix("col_var", jnp.mean(g * g, -2, keepdims=True))}
        variance = slots["row_var"] * slots["col_var"] / jnp.maximum(jnp.mean(slots["row_var"], -2, keepdims=True), small)
    else:
        slots = {"variance": mix("variance", g * g)}
        variance = slots["variance"]
    update = g * lax.rsqrt(jnp.maximum(variance, small * small))
    return p - rate / jnp.maximum(1.0, jnp.sqrt(jnp.mean(update * update)) / h["d"]) * update, slots


# What slots are before the first step, where it is not zeros like the parameter.
_STARTS: dict[str, Callable[[torch.Tensor, Mapping[str, Any]], torch.Tensor]] = {
    "sum": lambda p, h: torch.full_like(p, h["initial_accumulator_value"]),
    "step_size": lambda p, h: torch.full_like(p, h["lr"]),
    "mu_product": lambda p, h: torch.ones(()),
    "mu": lambda p, h: torch.ones(()),
    "eta": lambda p, h: torch.full((), h["lr"]),
    "row_var": lambda p, h: torch.zeros_like(p[..., :1]),
    "col_var": lambda p, h: torch.zeros_like(p[..., :1, :]),
}

_RULES: dict[type, tuple[Callable[..., tuple[Any, Arrays]], Callable[[Mapping[str, Any], torch.Tensor], list[str]]]] = {
    torch.optim.SGD: (_sgd, lambda h, p: ["momentum_buffer"] if h["momentum"] != 0 else []),
    torch.optim.Adam: (_adam, lambda h, p: ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * h["amsgrad"]),
    torch.optim.AdamW: (_adamw, lambda h, p: ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * h["amsgrad"]),
    torch.optim.RMSprop: (_rmsprop, lambda h, p: ["square_avg"] + ["grad_avg"] * h["centered"]
                          + ["momentum_buffer"] * (h["momentum"] > 0)),
    torch.optim.Adagrad: (_adagrad, lambda h, p: ["sum"]),
    torch.optim.NAdam: (_nadam, lambda h, p: ["mu_product", "exp_avg", "exp_avg_sq"]),
    torch.optim.RAdam: (_radam, lambda h, p: ["exp_avg", "exp_avg_sq"]),
    torch.optim.Adamax: (_adamax, lambda h, p: ["exp_avg", "exp_inf"]),
    torch.optim.Adadelta: (_adadelta, lambda h, p: ["square_avg", "acc_delta"]),
    torch.optim.Rprop: (_rprop, lambda h, p: ["prev", "step_size"]),
    torch.optim.ASGD: (_asgd, lambda h, p: ["ax", "eta", "mu"]),
    torch.optim.Adafactor: (_adafactor, lambda h, p: ["row_var", "col_var"] if p.ndim > 1 else ["variance"]),
}


def _make_torch_update(optimizer: torch.optim.Optimizer, names: Mapping[int, str], trained: list[str],
                       schedule: Table | Callable[[Any], Any] | None) -> tuple[Arrays, Callable[..., Any]]:
    """The optimizer's state of the parameters that are trained, and the function of (gradients, state, parameters, the schedule's step)
    that gives the new parameters and state."""
    known = _RULES.get(type(optimizer))
    if known is None:
        raise NotImplementedError(f"there is no code for the optimizer {type(optimizer).__name__}, but for "
                                  f"{', '.join(each.__name__ for each in _RULES)} and any of optax")
    if hasattr(optimizer.step, "_wrapped_by_lr_sched") and schedule is None:
        raise ValueError("the optimizer has a scheduler (torch.optim.lr_scheduler), whose steps are none of the exported step: give it as 'schedule', or its factor of the "
                         "learning rate, a function of the step's number")
    rule, get_slots = known
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        raise NotImplementedError("the optimizer has hooks around its steps, which the exported step would not run: give it without them")
    groups: dict[str, Mapping[str, Any]] = {}
    numbers: dict[str, int] = {}
    state: Arrays = {"step": np.zeros((), np.int32)}
    steps = set()
    for number, group in enumerate(optimizer.param_groups):
        hyper = {name: float(value) if isinstance(value, torch.Tensor) else value for name, value in group.items() if name != "params"}
        if "max_momentum" in group and not isinstance(schedule, Table):
            raise ValueError("the optimizer's scheduler (OneCycleLR, CyclicLR) changes the momentum as well as the learning rate, of which alone a function says: give it itself as "
                             "'schedule', or make it with cycle_momentum=False")
        if schedule is not None and not isinstance(schedule, Table):  # What a scheduler of PyTorch's multiplies; it has changed the rate itself.
            hyper["lr"] = float(hyper.get("initial_lr", hyper["lr"]))
        for parameter in group["params"]:
            name = names.get(id(parameter))
            if name is None:
                raise ValueError("the optimizer has a parameter that the module does not have")
            if name not in trained:
                continue
            groups[name], numbers[name] = hyper, number
            old = optimizer.state.get(parameter, {})
            # SGD counts no steps: its first is the one that makes the momentum.
            steps.add(int(old.get("step", old.get("momentum_buffer") is not None)))
            for slot in get_slots(hyper, parameter):
                value = old.get(slot)
                if value is None:
                    value = _STARTS.get(slot, lambda p, h: torch.zeros_like(p))(parameter, hyper)
                state.setdefault(slot, {})[name] = to_array(value)
    if len(steps) == 1:
        state["step"] = np.asarray(steps.pop(), np.int32)
    elif len(steps) > 1:
        raise ValueError("the optimizer's parameters have been updated differently often")

    def update(gradients: Arrays, state: Arrays, parameters: Arrays, now: Any) -> tuple[Arrays, Arrays]:
        new: Arrays = {"step": state["step"] + 1, **{slot: {} for slot in state if slot != "step"}}
        result = {}
        for name, gradient in gradients.items():
            hyper = groups.get(name)
            if hyper is None:  # in none of the optimizer's groups
                result[name] = parameters[name]
                continue
            if isinstance(schedule, Table):
                hyper = jax.tree.map(lambda value, like=parameters[name]: _counted(value, like) if isinstance(value, jax.Array) else value, schedule.get(numbers[name], hyper, now))
            elif schedule is not None:  # It may be of a wider type than the parameter.
                hyper = dict(hyper, lr=_counted(jnp.asarray(hyper["lr"] * schedule(now)), parameters[name]))
            slots = {slot: state[slot][name] for slot in state if slot != "step" and name in state[slot]}
            value, changed = rule(gradient, parameters[name], slots, hyper, new["step"])
            result[name] = jnp.asarray(value, parameters[name].dtype)
            for slot, value in changed.items():
                new[slot][name] = jnp.asarray(value, slots[slot].dtype)  # PyTorch keeps scalars of Adam's relatives in float32
        return result, new

    return state, update


def _make_optax_update(optimizer: Any, parameters: Arrays) -> tuple[Any, Callable[..., Any]]:
    import optax

    def update(gradients: Arrays, state: Any, parameters: Arrays, now: Any) -> tuple[Arrays, Any]:
        changes, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, changes), state

    return optimizer.init(parameters), update


# ---- Modules -----------------------------------------------------------------------------------------------------------

def to_array(tensor: torch.Tensor) -> np.ndarray:
    """As JAX has it."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        return np.asarray(jnp.asarray(tensor.float().numpy()).astype(jnp.bfloat16))
    return np.asarray(tensor.numpy()).astype(to_dtype(tensor.dtype))


@contextlib.contextmanager
def _with_known_gradients(module: torch.nn.Module, memory: _Memory) -> Iterator[None]:
    """Refuses what changes gradients where torch.export, which writes the forward pass, would say nothing of it. What is to be computed
    again for its gradient (torch.utils.checkpoint) is computed as it stands."""
    apply = torch.autograd.Function.__dict__["apply"]

    def get_versions() -> dict[str, tuple[int, ...]]:
        parameters = {id(parameter) for parameter in module.parameters()}
        return {name: (id(tensor), tensor._version, 0 if id(tensor) in parameters else memory.statistics.count(id(tensor)))
                for name, tensor in _get_state(module).items()}

    def expect_unchanged(before: Mapping[str, tuple[int, ...]]) -> None:
        if torch.is_grad_enabled() and (changed := [name for name, version in get_versions().items() if before.get(name) != version]):
            raise NotImplementedError(f"the loss changes '{changed[0]}' of the module in a function that torch.utils.checkpoint calls, and once more where PyTorch calls it "
                                      "again for its gradient: call it without, as distc chooses itself what is computed again (--max-memory)")

    def compute_at_once(*args: Any, **kwargs: Any) -> Iterator[None]:
        before = get_versions()
        yield
        expect_unchanged(before)

    def call_known(function: Any, *args: Any, **kwargs: Any) -> Any:
        if function.__name__.startswith("GeneratedBackwardFor_"):  # Of an operation of a library, which is in the graph whole.
            return apply.__get__(None, function)(*args, **kwargs)
        if function is CheckpointFunction:
            called, _, *given = args
            if not any(isinstance(each, torch.Tensor) and each.requires_grad for each in given):
                with torch.no_grad():  # It has none, whatever it reads.
                    return called(*given)
            before = get_versions()
            result = called(*given)
            expect_unchanged(before)
            return result
        if kwargs:
            raise TypeError(f"{function.__name__}.apply takes no keyword arguments")
        return call_function(function, args)

    def refuse_hook(tensor: torch.Tensor, hook: Any) -> Any:
        raise NotImplementedError("there is no code for hooks of gradients (Tensor.register_hook): write what it does of operations, as "
                                  "x * 2 - x.detach() for x with twice its gradient")

    enter_inference, set_enabled = torch.inference_mode.__enter__, torch.set_grad_enabled.__init__

    def refuse_inference(mode: Any) -> Any:
        if mode.mode:  # PyTorch itself enters others, which leave it off.
            raise NotImplementedError("torch.export does not write down torch.inference_mode: use torch.no_grad")
        return enter_inference(mode)

    def refuse_inside_autocast(mode: Any, enabled: bool) -> None:
        if not enabled and torch.is_autocast_enabled("cpu"):
            raise NotImplementedError("torch.export does not write down torch.no_grad or torch.set_grad_enabled inside of torch.autocast: put it "
                                      "around, or detach the results")
        set_enabled(mode, enabled)

    with contextlib.ExitStack() as stack:
        for name in ("_checkpoint_without_reentrant_generator", "_checkpoint_without_reentrant_generator_impl"):  # of earlier and later versions
            if hasattr(torch.utils.checkpoint, name):
                stack.enter_context(mock.patch.object(torch.utils.checkpoint, name, compute_at_once))
        stack.enter_context(mock.patch.object(torch.autograd.Function, "apply", classmethod(call_known)))
        stack.enter_context(mock.patch.object(torch.Tensor, "register_hook", refuse_hook))
        stack.enter_context(mock.patch.object(torch.inference_mode, "__enter__", refuse_inference))
        stack.enter_context(mock.patch.object(torch.set_grad_enabled, "__init__", refuse_inside_autocast))  # torch.no_grad makes one.
        yield


def _may_overlap(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether both have an element in one place of memory, as far as is known."""
    if any(each.layout != torch.strided for each in (tensor, other)) or tensor.untyped_storage()._cdata != other.untyped_storage()._cdata:
        return False

    def get_last(each: torch.Tensor) -> Any:
        return each.storage_offset() + sum((size - 1) * stride for size, stride in zip(each.shape, each.stride()))

    # In elements, which are bytes where the types differ.
    return tensor.dtype != other.dtype or not (_is_known(get_last(tensor) < other.storage_offset()) or _is_known(get_last(other) < tensor.storage_offset()))


@contextlib.contextmanager
def _with_assigned_buffers(module: torch.nn.Module, assigned: collections.deque[tuple[str, str, torch.Tensor]], memory: _Memory) -> Iterator[None]:
    """A buffer that forward assigns anew (`self.mean = 0.9 * self.mean + ...`) is written at its end: torch.export sees what is written in
    place alone. Tensors that are no buffers, and were assigned, are appended to `assigned`: the module's class, the name, what it was."""
    assign = torch.nn.Module.__setattr__
    originals: dict[tuple[torch.nn.Module, str], torch.Tensor] = {}
    before = _get_state(module)

    def watch(part: torch.nn.Module, name: str, value: Any) -> None:
        buffer = part.__dict__.get("_buffers", {}).get(name)
        if isinstance(buffer, torch.Tensor) and isinstance(value, torch.Tensor):
            originals.setdefault((part, name), buffer)
        old = part.__dict__.get(name)
        if isinstance(old, torch.Tensor) and isinstance(value, torch.Tensor):
            assigned.append((type(part).__name__, name, old))
        assign(part, name, value)

    with mock.patch.object(torch.nn.Module, "__setattr__", watch):
        yield
    for (part, name), original in originals.items():
        value = part._buffers[name]
        if value is None or value.shape != original.shape or value.dtype != original.dtype:
            what = "none" if value is None else f"one {list(value.shape)} of {value.dtype}"
            raise NotImplementedError(f"the loss makes the buffer '{name}' of {type(part).__name__}, which is {list(original.shape)} of {original.dtype}, {what}: keep its "
                                      "shape and type")
    memory.expect_one_each(before, _get_state(module))
    new = {key: key[0]._buffers[key[1]] for key, original in originals.items() if key[0]._buffers[key[1]] is not original}
    memory.assigned.extend(originals[key] for key in new)
    with torch.no_grad():
        # Of what two of them exchange each is written before the other one is read.
        values = {key: value.clone() if len(new) > 1 else value for key, value in new.items()}
        for (part, name), original in originals.items():
            part._buffers[name] = original
            if (part, name) in values:
                original.copy_(values[part, name])


@dataclasses.dataclass
class _Detached:
    """A tensor without its history, and the one whose memory it is."""

    value: Callable[[], torch.Tensor | None]
    of: torch.Tensor


@dataclasses.dataclass
class _Given:
    """A tensor that was assigned to .data of a parameter or buffer: with PyTorch both are one memory, in the exported step one is a copy."""

    of: torch.Tensor
    of_version: int
    value: torch.Tensor
    value_version: int


class _Memory:
    """Which tensors of a step are one memory behind the back of torch.export."""

    def __init__(self) -> None:
        self.given: list[_Given] = []
        self.assigned: list[torch.Tensor] = []  # buffers that are others behind the step
        self.statistics: list[int] = []  # identities of what normalizations have been given to update, of which no version tells

    def give(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        with torch.no_grad():
            tensor.copy_(value)
        self.given.append(_Given(tensor, tensor._version, value, value._version))

    def expect_unread(self, tensors: Iterable[Any]) -> None:
        """Refuses tensors that are read and would have changed along with a parameter or buffer."""
        changed = [each.value for each in self.given if each.of._version != each.of_version]
        if changed and any(_may_overlap(tensor, value) for tensor in tensors if isinstance(tensor, torch.Tensor) for value in changed):
            raise NotImplementedError("the loss assigns a tensor to .data of a parameter or buffer, changes that in place, and reads the tensor, which has changed as "
                                      "well: write copy_ with torch.no_grad() around, or assign x.clone()")

    def expect_known_writes(self) -> None:
        if any(each.value._version != each.value_version for each in self.given):
            raise NotImplementedError("the loss changes a tensor that it has assigned to .data of a parameter or buffer: write copy_ with torch.no_grad() around")

    def expect_one_each(self, before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> None:
        """Refuses a module two of whose tensors lie in one memory behind the step because of it: the next step changes both."""
        given = {id(each.of): each.value for each in self.given}
        # Of a tensor with several names one.
        now = {id(before.get(name, tensor)): (name, given.get(id(tensor), tensor), id(tensor) in given or before.get(name) is not tensor) for name, tensor in after.items()}
        for name, tensor, is_new in now.values():
            for other, each, _ in now.values():
                if is_new and other != name and _may_overlap(tensor, each):
                    raise NotImplementedError(f"the loss gives '{name}' and '{other}' of the module one memory, so that later steps change both: assign x.clone() to one of them, or make "
                                              "them one before the export")


def _has_views(tensor: torch.Tensor) -> bool:
    """Whether somebody has a part of it."""
    for each in gc.get_objects():
        if issubclass(type(each), torch.Tensor):
            with contextlib.suppress(RuntimeError):  # of a view that may not be used any more
                if each._base is tensor:
                    return True
    return False


def _expect_what_gradients_need(value: Any, memory: _Memory) -> None:
    """Refuses a loss that has changed what its gradient is computed from: by .data PyTorch does so without a word."""
    nodes = [leaf.grad_fn for leaf in _pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        for name in dir(node):
            # Of tensors: a number that is made of the batch's size would be asked for what it is.
            if not name.startswith("_saved_") or not hasattr(type(node), f"_raw{name}"):
                continue
            try:
                saved = getattr(node, name)
            except RuntimeError as error:
                if "modified by an inplace operation" not in str(error):
                    continue
                raise NotImplementedError(f"the loss changes a tensor by .data, detach() or copy_ after {node.name()} has used it, whose gradient is of what it was "
                                          "in the exported step: change it before, or at the end of a step without gradients of it (use x.clone())") from error
            memory.expect_unread(_pytree.tree_leaves(saved))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)


@contextlib.contextmanager
def _with_kept_parameters(module: torch.nn.Module, memory: _Memory) -> Iterator[None]:
    """Refuses a parameter or buffer that is another tensor afterwards, whose new values torch.export would not see, and a parameter that is
    frozen or trained in a part of the step alone."""
    parameters = {id(parameter) for parameter in module.parameters()}
    set_gradient, toggle = torch.Tensor.requires_grad, torch.Tensor.requires_grad_  # type: ignore[attr-defined]

    def refuse_toggle(tensor: torch.Tensor, value: bool) -> None:
        if id(tensor) in parameters and bool(value) != set_gradient.__get__(tensor):
            raise NotImplementedError("the loss changes requires_grad of a parameter, which torch.export does not write down: set it before the export, or "
                                      "call the module with detached parameters (torch.func.functional_call)")

    def toggle_watched(tensor: torch.Tensor, value: bool = True) -> torch.Tensor:
        refuse_toggle(tensor, value)
        return toggle(tensor, value)

    def set_watched(tensor: torch.Tensor, value: bool) -> None:
        refuse_toggle(tensor, value)
        set_gradient.__set__(tensor, value)

    set_memory = torch.Tensor.set_

    def refuse_set(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if sys._getframe(1).f_code.co_filename.startswith(_LIBRARIES):  # which makes its tensors without memory so
            return set_memory(tensor, *args, **kwargs)
        raise NotImplementedError("there is no code for set_, which gives a tensor the memory of another one: write copy_ with torch.no_grad() around")

    def refuse_swap(*args: Any) -> Any:
        raise NotImplementedError("there is no code for torch.utils.swap_tensors: exchange what they hold (old = a.clone(); a.copy_(b); b.copy_(old)) with torch.no_grad() around")

    def refuse_conversion(part: torch.nn.Module, convert: Any, recurse: bool = True) -> torch.nn.Module:
        # Of the type that it has (module.to(x.dtype)) it is what it was.
        if all(convert(tensor) is tensor for tensor in (*part.parameters(recurse), *part.buffers(recurse))):
            return part
        raise NotImplementedError(f"the loss converts the tensors of {type(part).__name__} (.to, .double, .half): convert the module before the export, or in the loss the values that it is given and "
                                  "gives")

    taken: list[_Detached] = []  # what .data and detach() gave
    detach = torch.Tensor.detach

    def get_data(tensor: torch.Tensor) -> torch.Tensor:
        # The same memory without its history, which torch.export sees what is written to.
        value = detach(tensor)
        taken.append(_Detached(weakref.ref(value), tensor))
        return value

    def set_data_watched(tensor: torch.Tensor, value: torch.Tensor) -> None:
        if any(each.of is tensor and each.value() is value for each in taken):
            return  # as it was
        if not any(tensor is each for each in before.values()):
            if not isinstance(tensor, torch._subclasses.FakeTensor):
                raise NotImplementedError("the loss assigns to .data of a tensor that is no parameter or buffer of the module: make it one, or a part of the module")
            raise NotImplementedError("the loss assigns to .data of a tensor that it has computed, of which torch.export sees nothing: write x + (value - x).detach() "
                                      "for a tensor with another value and the gradient of x")
        if value.shape != tensor.shape or value.dtype != tensor.dtype:
            raise NotImplementedError(f"the loss assigns a tensor {list(value.shape)} of {value.dtype} to .data of a parameter or buffer {list(tensor.shape)} of "
                                      f"{tensor.dtype}, which torch.export does not see: write copy_ with torch.no_grad() around")
        # The exported step writes to the memory that there is, which is the same unless somebody has the old or the new one as well.
        if any(each.value() is value for each in taken) or any(value is each for each in before.values()):
            raise NotImplementedError("the loss assigns the memory of one tensor to .data of another, so that later both change: write copy_ with torch.no_grad() around")
        if any(each.of is tensor and each.value() is not None for each in taken) or _has_views(tensor):
            raise NotImplementedError("the loss assigns to .data of a parameter or buffer and keeps what it was (x = p.data, p.detach(), p[:2]): write copy_ with torch.no_grad() around, "
                                      "and keep p.clone()")
        memory.give(tensor, value)

    before = _get_state(module)
    # What a refused step has made of them is of no use to whoever goes on without it.
    registered = [(kept, dict(kept)) for part in module.modules() for kept in (part._parameters, part._buffers)]
    with mock.patch.object(torch.Tensor, "requires_grad_", toggle_watched), \
            mock.patch.object(torch.Tensor, "requires_grad", property(set_gradient.__get__, set_watched), create=True), \
            mock.patch.object(torch.nn.Module, "_apply", refuse_conversion), mock.patch.object(torch.Tensor, "set_", refuse_set), mock.patch.object(torch.utils, "swap_tensors", refuse_swap), \
            mock.patch.object(torch.Tensor, "detach", get_data), mock.patch.object(torch, "detach", get_data), \
            mock.patch.object(torch.Tensor, "data", property(get_data, set_data_watched), create=True):
        try:
            yield
            memory.expect_known_writes()
        finally:
            after = _get_state(module)
            for kept, tensors in registered:
                kept.clear()
                kept.update(tensors)
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) is not after.get(name):
            raise NotImplementedError(f"the loss makes '{name}' of the module another tensor, whose values the exported step would lose: write them in place, "
                                      "as self.x.copy_(value), with torch.no_grad() around where it is a parameter")


def _drop_other_names(exported: torch.export.ExportedProgram, named: Mapping[str, torch.Tensor]) -> None:
    """A tensor that is registered under several names is an input under each, of which the step reads one: what is decomposed takes tensors
    that are written to and share memory for several."""
    signature, graph = exported.graph_signature, exported.graph_module.graph
    nodes = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    read = {id(named[spec.target.removeprefix(_PREFIX)]) for spec in signature.input_specs
            if spec.target and spec.target.removeprefix(_PREFIX) in named and nodes[spec.arg.name].users}
    seen: set[int] = set()
    for spec in list(signature.input_specs):
        name = (spec.target or "").removeprefix(_PREFIX)
        if name not in named:
            continue
        identity = id(named[name])
        if not nodes[spec.arg.name].users and (identity in read or identity in seen):
            graph.erase_node(nodes[spec.arg.name])
            signature.input_specs.remove(spec)
        seen.add(identity)
    exported.graph_module.recompile()


def _expect_no_hooks(module: torch.nn.Module) -> None:
    for name, parameter in module.named_parameters():
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise NotImplementedError(f"the parameter '{name}' has a hook of its gradient, which the exported step would not run: remove it, and "
                                      "write what it does into the loss or the optimizer (one of optax)")
    for name, part in module.named_modules():
        if part._backward_hooks or part._backward_pre_hooks:
            raise NotImplementedError(f"the module '{name}' ({type(part).__name__}) has a hook of its backward pass, which the exported step would "
                                      "not run: remove it")


_LIBRARIES = tuple(os.path.dirname(each.__file__) + os.sep for each in (torch, jax)) + (os.path.dirname(__file__) + os.sep,)


def _name_line(error: BaseException) -> str:
    """Where in the module or the loss it was, as far as that is known."""
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith((*_LIBRARIES, "<"))
             and os.sep + "contextlib.py" not in frame.filename]
    return f" (at {lines[-1].filename}:{lines[-1].lineno}: {lines[-1].line})" if lines else ""


@contextlib.contextmanager
def _with_ways_out() -> Iterator[None]:
    """What torch.export says of a step that it cannot write down, with what to do about it."""
    try:
        yield
    except (torch._dynamo.exc.UserError, torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode,
            torch._subclasses.fake_tensor.DynamicOutputShapeException, torch._subclasses.fake_tensor.DataDependentOutputException, torch.fx.proxy.TraceError) as error:
        text = str(error)
        if "Constraints violated" in text:
            why = ("the batch's size does not stay open, as the module or the loss looks at it: a single example (x[0]), a comparison of it with another size, "
                   "or equal parts that the example has not (batch_multiple of the export says of how many). Compute over all examples, with sizes that are taken from the batch (x.shape[0])")
        elif isinstance(error, torch.fx.proxy.TraceError):
            why = ("an operation has a number that is made of the batch's size where it takes one that is known (alpha=1 / x.shape[0], bounds, exponents). Multiply by it, or "
                   "give it as a tensor (torch.tensor(1 / x.shape[0]))")
        else:
            why = ("Python looks at what a tensor holds (if tensor:, tensor.item(), a check of arguments), or at how "
                   "many elements a mask chooses (x[mask]). Write it with torch.where, say it by an argument, or use one tensor as the mask of all that belong together")
        raise NotImplementedError(f"torch.export cannot write the step down{_name_line(error)}: {why}. It says: {text.strip().splitlines()[0]}") from error
    except (RuntimeError, TypeError, AttributeError) as error:
        text = str(error)
        if "fake tensor in the exported program" in text or "has no attribute 'constant'" in text or "functorch tensor" in text:
            why = ("it has no form for gradients within the loss (torch.autograd.grad, torch.func.grad, jacrev). Write the gradient out by hand, or the step in JAX, "
                   "which differentiates any number of times (distc.jax.export)")
        elif "A view was created in no_grad mode" in text:
            why = ("the loss changes a part of a tensor that it has computed in place, with torch.no_grad() around, behind its gradient's back. Write "
                   "x + (value - x).detach() for a tensor with another value and the gradient of x")
        elif "is mutated in the forward method" in text:
            why = "the loss changes a tensor that is no parameter or buffer of the module. Make it one (register_buffer), or a part of the module"
        elif ".numpy() is not supported" in text or "Cannot access data pointer" in text:
            why = "the module or the loss takes a tensor out of PyTorch (.numpy(), DLPack). Compute it with torch, or feed it with the batch"
        else:
            raise
        raise NotImplementedError(f"torch.export cannot write the step down{_name_line(error)}: {why}. It says: {text.strip().splitlines()[0]}") from error


def _is_known(condition: Any) -> bool:
    """Whether it holds for every size of the batch."""
    return torch.fx.experimental.symbolic_shapes.statically_known_true(condition)


_LeastSquares = collections.namedtuple("_LeastSquares", ("solution", "residuals", "rank", "singular_values"))


@contextlib.contextmanager
def _with_open_parts() -> Iterator[None]:
    """Equal parts of a size that is open, diagonals from one on, covariances and len(), which torch.export takes for questions how large it is; and
    whether a mask is causal, which it takes for one what it holds."""
    split, diagonal = torch.Tensor.split, torch.Tensor.diagonal

    # Parameters have PyTorch's names.
    def split_open(tensor: torch.Tensor, split_size: Any, dim: int = 0) -> Any:
        whole = tensor.shape[dim]
        if not isinstance(split_size, (int, torch.SymInt)) or isinstance(whole, int) or not _is_known(whole % split_size == 0):
            return split(tensor, split_size, dim)
        return tuple(tensor.narrow(dim, i * split_size, split_size) for i in range(int(whole // split_size)))

    def chunk_open(input: torch.Tensor, chunks: int, dim: int = 0) -> Any:
        whole = input.shape[dim]
        if isinstance(whole, int) or not _is_known(whole % chunks == 0):
            return chunk(input, chunks, dim)
        return tuple(input.narrow(dim, i * (whole // chunks), whole // chunks) for i in range(chunks))

    def diagonal_open(input: torch.Tensor, offset: Any = 0, dim1: int = 0, dim2: int = 1) -> torch.Tensor:
        if isinstance(offset, int):
            return diagonal(input, offset, dim1, dim2)
        below, right = (0, offset) if _is_known(offset >= 0) else (-offset, 0)
        rows, columns = input.shape[dim1] - below, input.shape[dim2] - right
        count = rows if _is_known(rows <= columns) else columns
        return diagonal(input.narrow(dim1, below, count).narrow(dim2, right, count), 0, dim1, dim2)

    def diag_open(input: torch.Tensor, diagonal: Any = 0) -> torch.Tensor:
        return diag(input, diagonal) if isinstance(diagonal, int) or input.ndim != 2 else diagonal_open(input, diagonal)

    def cdist_open(x1: torch.Tensor, x2: torch.Tensor, p: float = 2.0, compute_mode: str | None = None) -> torch.Tensor:
        # By default it asks whether there are more than 25 rows.
        return cdist(x1, x2, p, "donot_use_mm_for_euclid_dist")

    def take_along_open(input: torch.Tensor, indices: torch.Tensor, dim: int | None = None) -> torch.Tensor:
        if dim is None or input.ndim != indices.ndim:
            return take_along(input, indices, dim)
        axis = dim % input.ndim
        beside = torch.broadcast_shapes(*((*each.shape[:axis], 1, *each.shape[axis + 1:]) for each in (input, indices)))
        input, indices = (each.expand(*beside[:axis], each.shape[axis], *beside[axis + 1:]) for each in (input, indices))
        return input.gather(axis, indices)

    def cov_open(input: torch.Tensor, *, correction: int = 1, fweights: torch.Tensor | None = None, aweights: torch.Tensor | None = None) -> torch.Tensor:
        if fweights is not None or aweights is not None or input.ndim > 2:
            return cov(input, correction=correction, fweights=fweights, aweights=aweights)
        rows = input if input.ndim == 2 else input.reshape(1, -1)
        rows = rows - rows.mean(1, keepdim=True)
        product = rows @ rows.conj().T / (rows.shape[1] - correction)
        return product if input.ndim == 2 and input.shape[0] != 1 else product.reshape(())

    def corrcoef_open(input: torch.Tensor) -> torch.Tensor:
        product = cov_open(input)
        if product.ndim == 0:
            return product / product
        if product.is_complex():
            return corrcoef(input)
        deviations = product.diagonal().sqrt()
        return (product / deviations[:, None] / deviations).clip(-1, 1)

    def is_causal_open(mask: torch.Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
        # Whether the mask, which is used where this is not true, is the causal one depends on what it holds.
        return is_causal is True

    def masked_select_open(input: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if input.shape != mask.shape:
            input, mask = torch.broadcast_tensors(input, mask)
        return input[mask]

    def lstsq_open(A: torch.Tensor, B: torch.Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
        # PyTorch's gradient of it is that of this product. How many residuals there are depends on the rank.
        is_vector = B.ndim == A.ndim - 1 and A.ndim > 1
        solution = torch.linalg.pinv(A, rtol=rcond) @ (B[..., None] if is_vector else B)
        return _LeastSquares(solution[..., 0] if is_vector else solution, None, torch.linalg.matrix_rank(A.detach(), rtol=rcond), None)

    def matrix_norm_open(A: torch.Tensor, ord: Any = "fro", dim: tuple[int, int] = (-2, -1), keepdim: bool = False, *, dtype: torch.dtype | None = None, **out: Any) -> torch.Tensor:
        # Of the largest or the least singular value it asks how large the batch is.
        if ord not in (2, -2) or out:
            return matrix_norm(A, ord, dim, keepdim, dtype=dtype, **out)
        values = torch.linalg.svdvals((A if dtype is None else A.to(dtype)).movedim(dim, (-2, -1)))
        found = values.amax(-1) if ord == 2 else values.amin(-1)
        for axis in sorted(each % A.ndim for each in dim) if keepdim else ():
            found = found.unsqueeze(axis)
        return found

    def norm_open(A: torch.Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None, dtype: torch.dtype | None = None) -> torch.Tensor:
        axes = (0, 1) if dim is None and A.ndim == 2 else dim
        if ord in (2, -2) and isinstance(axes, (tuple, list)) and length(axes) == 2 and out is None:
            return matrix_norm_open(A, ord, tuple(axes), keepdim, dtype=dtype)
        return norm(A, ord, dim, keepdim, out=out, dtype=dtype)

    def fill_diagonal_open(tensor: torch.Tensor, fill_value: Any, wrap: bool = False) -> torch.Tensor:
        if tensor.ndim != 2 or (wrap and not _is_known(tensor.shape[0] <= tensor.shape[1])):
            return fill_diagonal(tensor, fill_value, wrap)
        rows, columns = (torch.arange(size, device=tensor.device) for size in tensor.shape)
        return tensor.masked_fill_(rows[:, None] == columns, fill_value)

    def join_copies(otherwise: Callable[..., torch.Tensor], tensor: torch.Tensor, given: tuple[Any, ...], named: dict[str, Any]) -> torch.Tensor:
        times = given or tuple(named.values())
        times = times[0] if length(times) == 1 and isinstance(times[0], (tuple, list, torch.Size)) else times
        is_open = [isinstance(size, torch.SymInt) for size in tensor.shape]
        if sum(is_open) < 2 or length(times) != tensor.ndim or not all(isinstance(each, int) and each > 0 for each in times):
            return otherwise(tensor, *given, **named)
        # Of a matrix of examples by examples: rows of it joined, which a reshape would not show.
        for axis, each in enumerate(times):
            tensor = torch.cat([tensor] * each, axis)
        return tensor

    def repeat_open(tensor: torch.Tensor, *repeats: Any, **named: Any) -> torch.Tensor:
        return join_copies(repeat, tensor, repeats, named)

    def tile_open(input: torch.Tensor, *dims: Any, **named: Any) -> torch.Tensor:
        return join_copies(tile, input, dims, named)

    def len_open(x: Any) -> Any:
        return x.shape[0] if isinstance(x, torch.Tensor) and x.ndim > 0 else length(x)

    def of_open(function: Callable[..., float], compute: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, *args: (compute if isinstance(x, (torch.SymInt, torch.SymFloat)) else function)(x, *args)

    def to_tensor(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any], torch.Tensor]:
        return lambda x: function(torch.scalar_tensor(x, dtype=torch.float64))

    # Of a size, which math makes a number of Python's. Of logarithms torch.export writes down those of tensors alone.
    of_sizes = {"sqrt": lambda x: x ** 0.5, "exp": lambda x: math.e ** x, "log2": to_tensor(torch.log2), "log10": to_tensor(torch.log10), "log1p": to_tensor(torch.log1p),
                "log": lambda x, base=math.e: to_tensor(torch.log)(x) / log(base)}
    log = math.log
    length, chunk, diag, cdist = builtins.len, torch.Tensor.chunk, torch.Tensor.diag, torch.cdist
    take_along, cov, corrcoef = torch.take_along_dim, torch.cov, torch.corrcoef
    matrix_norm, norm = torch.linalg.matrix_norm, torch.linalg.norm
    fill_diagonal, repeat, tile = torch.Tensor.fill_diagonal_, torch.Tensor.repeat, torch.Tensor.tile
    with contextlib.ExitStack() as stack:
        for name, function in (("split", split_open), ("chunk", chunk_open), ("diagonal", diagonal_open), ("diag", diag_open)):
            stack.enter_context(mock.patch.object(torch.Tensor, name, function))
            if name != "split":  # which calls the method
                stack.enter_context(mock.patch.object(torch, name, function))
        stack.enter_context(mock.patch.object(torch.Tensor, "fill_diagonal_", fill_diagonal_open))
        stack.enter_context(mock.patch.object(torch.Tensor, "repeat", repeat_open))
        for owner in (torch.Tensor, torch):
            for name, function in (("tile", tile_open), ("take_along_dim", take_along_open), ("masked_select", masked_select_open), ("cov", cov_open), ("corrcoef", corrcoef_open)):
                stack.enter_context(mock.patch.object(owner, name, function))
        stack.enter_context(mock.patch.object(torch.nn.modules.transformer, "_detect_is_causal_mask", is_causal_open))
        # It orders the products of torch.einsum by their sizes.
        stack.enter_context(mock.patch.object(torch.backends.opt_einsum, "enabled", False))
        stack.enter_context(mock.patch.object(torch, "cdist", cdist_open))
        stack.enter_context(mock.patch.object(torch, "ctc_loss", ctc_loss))
        stack.enter_context(with_packed_sequences())
        stack.enter_context(with_open_layers())
        for name, function in (("lstsq", lstsq_open), ("matrix_norm", matrix_norm_open), ("norm", norm_open)):
            stack.enter_context(mock.patch.object(torch.linalg, name, function))
        stack.enter_context(mock.patch.object(builtins, "len", len_open))
        for name, compute in of_sizes.items():
            stack.enter_context(mock.patch.object(math, name, of_open(getattr(math, name), compute)))
        yield


# What writes a step down again.
_Write = Callable[[], torch.export.ExportedProgram]


def _export_program(module: _WithLoss, batch: Any) -> tuple[torch.export.ExportedProgram, int, _Write]:
    """What torch.export writes, how many examples the batch must have for it (times the parts that it is given in), and what writes it again at once."""
    batch = take_apart(batch, module.multiple)

    def export(least: int, most: int | None = None, batch: Any = batch, **options: Any) -> torch.export.ExportedProgram:
        size = torch.export.Dim("batch", min=least, max=most)
        shapes = _pytree.tree_map(lambda leaf: {0: size}, batch)
        return torch.export.export(module, (batch,), dynamic_shapes=(shapes,), strict=False, **options)

    def written(smallest: int, *arguments: Any, **options: Any) -> tuple[torch.export.ExportedProgram, int, _Write]:
        return export(*arguments, **options), smallest, lambda: export(*arguments, **options)

    least = 2
    try:
        return written(1, least)
    except torch._dynamo.exc.UserError as error:
        if "Constraints violated" not in str(error):
            raise
        first = error
    # What it asks of the batch's size may hold for all from some number of examples on.
    suggested = re.search(r"batch = Dim\('batch', min=(\d+)\)", str(first))
    if suggested and int(suggested[1]) <= distc_jax.MOST_EXAMPLES:
        least = int(suggested[1])
        try:
            return written(least, least)
        except torch._dynamo.exc.UserError:
            pass
    # Or change nothing: those of more examples may give the same step.
    if limit := re.search(r"batch = Dim\('batch', (?:min=\d+, )?max=(\d+)\)", str(first)):
        most = int(limit[1])
        try:
            few = written(1, least, most)
            if most >= _NO_BATCH:
                return few
            copies = most // next(iter(_pytree.tree_leaves(batch))).shape[0] + 1
            many = export(most + 1, _NO_BATCH, batch=_pytree.tree_map(lambda leaf: leaf.repeat(copies, *[1] * (leaf.ndim - 1)), batch))
            if _get_code(few[0].graph_module) == _get_code(many.graph_module) and _are_equal(few[0].constants, many.constants):
                return few
        except torch._dynamo.exc.UserError:
            pass
    try:
        exported, _, write = written(1, least, prefer_deferred_runtime_asserts_over_guards=True)
    except (torch._dynamo.exc.UserError, torch.fx.proxy.TraceError):
        raise first from None
    smallest = _find_smallest_batch(exported)
    if smallest is None:
        raise first
    return exported, max(smallest, least if suggested else 1), write


def _get_code(graph: torch.fx.GraphModule) -> list[tuple[Any, ...]]:
    """The step, nodes by their numbers, without what says only how a tensor lies in memory."""
    numbers: dict[torch.fx.Node, Any] = {}
    code: list[tuple[Any, ...]] = []
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target is torch.ops.aten.contiguous.default:
            numbers[node] = numbers[node.args[0]]
            continue
        numbers[node] = f"%{len(code)}"
        of = getattr(graph, node.target, None) if node.op == "get_attr" else None
        inner = _get_code(of) if isinstance(of, torch.fx.GraphModule) else node.target
        code.append((node.op, inner, str(torch.fx.map_arg((node.args, node.kwargs), numbers.__getitem__))))
    return code


def _expect_the_same_again(with_loss: _WithLoss, batch: Any, exported: torch.export.ExportedProgram, write: _Write) -> None:
    """Refuses a loss that changes what it may read of Python's, unless its next call writes down the same step and changes no number any more."""
    changed = list(dict.fromkeys(name for name, _ in with_loss.changed))
    if not changed:
        return
    classes = {name: type(part).__name__ for part in with_loss.module.modules() for name in vars(part)}
    said = [f"the number '{last}' of {classes[last]}" if is_number and (last := name.rpartition(".")[2]) in classes else f"'{name}'"
            for name, is_number in dict(with_loss.changed).items()]
    names = ", ".join(said[:5]) + (f" and {len(said) - 5} others" if len(said) > 5 else "")
    error = NotImplementedError(f"the loss changes {names}, which would stay in the exported step what it is now: keep it in a buffer of the module "
                                "(register_buffer), feed it with the batch, or change it outside of the loss")
    try:
        with torch.enable_grad(), _with_ways_out(), _with_open_parts():
            # What was exported may be of a later call than the first. (torch.export gives modules back what they had.)
            if len(with_loss.calls) > 1:
                exported = write()
            with _as_behind_a_call(with_loss, batch):
                with_loss.changed.clear()
                again = write()
            if any(is_number for _, is_number in with_loss.changed):
                raise error
    except NotImplementedError as refused:
        raise (refused if refused is error else error) from None
    except Exception as failed:  # It holds what only the first call could use, such as a tensor of its own; or is none that PyTorch computes.
        raise NotImplementedError(f"{error}. Another call of it ends in: {str(failed).strip().splitlines()[0] if str(failed).strip() else type(failed).__name__}") from None
    if _get_code(exported.graph_module) != _get_code(again.graph_module) or not _are_equal(exported.constants, again.constants):
        raise error


def _holds_tensors(value: Any) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in _pytree.tree_leaves(value))


@contextlib.contextmanager
def _as_behind_a_call(with_loss: _WithLoss, batch: Any) -> Iterator[None]:
    """The module as a call of the loss leaves it, but for tensors that are kept: those are caches, or state. Then as it was."""
    def copy_of(value: Any) -> Any:
        return copy.copy(value) if isinstance(value, (dict, list, set, collections.deque)) else value

    parts = list(with_loss.module.modules())
    before = [{name: (value, copy_of(value)) for name, value in vars(part).items()} for part in parts]
    tensors = {name: tensor.detach().clone() for name, tensor in with_loss.module.state_dict().items() if isinstance(tensor, torch.Tensor)}
    random_state = torch.get_rng_state()

    def give_back(part: torch.nn.Module, name: str, old: tuple[Any, Any]) -> None:
        value, contents = old
        if isinstance(value, (list, collections.deque)):
            value.clear()
            value.extend(contents)
        elif isinstance(value, (dict, set)):
            value.clear()
            value.update(contents)
        part.__dict__[name] = value

    try:
        with torch.no_grad():
            with_loss.loss(with_loss.module, batch)
        for part, old in zip(parts, before):
            for name, value in list(vars(part).items()):
                if name not in _PARTS_OF_MODULES and _holds_tensors(value):
                    if name in old:
                        give_back(part, name, old[name])
                    else:
                        del part.__dict__[name]
        yield
    finally:
        for part, old in zip(parts, before):
            for name in [name for name in vars(part) if name not in old]:
                del part.__dict__[name]
            for name, value in old.items():
                give_back(part, name, value)
        with torch.no_grad():
            state = with_loss.module.state_dict()
            for name, tensor in tensors.items():
                state[name].copy_(tensor)
        torch.set_rng_state(random_state)


def _are_equal(constants: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    return constants.keys() == others.keys() and all(torch.equal(value, others[name]) for name, value in constants.items()
                                                     if isinstance(value, torch.Tensor))


# More examples than any batch has: whether sizes are too large for integers of 32 bits is asked in many places.
_NO_BATCH = 1 << 20


def _get_conditions(exported: torch.export.ExportedProgram) -> Iterator[Any]:
    """What the program assumes of the batch's size. It asserts those of whole numbers; of others it has no word."""
    for node in exported.graph.nodes:
        if isinstance(value := node.meta.get("val"), torch.Tensor) and (sizes := getattr(getattr(value, "fake_mode", None), "shape_env", None)) is not None:
            yield from (guard.expr for guard in sizes.guards)
            yield from (assertion.expr for assertions in sizes.deferred_runtime_asserts.values() for assertion in assertions)
            break
    for node in exported.graph.nodes:
        if node.op != "call_function" or not str(node.target).startswith("aten._assert_scalar"):
            continue
        condition = node.args[0].meta["val"] if isinstance(node.args[0], torch.fx.Node) else node.args[0]
        if isinstance(condition, torch.SymBool):
            yield condition.node.expr


def _find_smallest_batch(exported: torch.export.ExportedProgram) -> int | None:
    """From which number of examples on all hold that the program assumes of their number; None where there is none."""
    smallest = 1
    for expression in _get_conditions(exported):
        if torch.fx.experimental.symbolic_shapes.free_unbacked_symbols(expression):
            continue  # Of what a tensor holds.
        # All others are the batch's size.
        def holds(size: int, expression: Any = expression) -> bool:
            try:
                return bool(expression.subs({each: size for each in expression.free_symbols}))
            except ZeroDivisionError:  # of the examples by halves of them
                return False

        broken = [size for size in (*range(1, 2 * distc_jax.MOST_EXAMPLES), 1000, 1024, 4099, 65536, 1000003) if not holds(size)]
        if broken:
            smallest = max(smallest, broken[-1] + 1)
    return smallest if smallest <= distc_jax.MOST_EXAMPLES else None


class _Log(collections.deque):
    """What was seen while a step was exported."""


def _get_state(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers under all of their names."""
    return dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))


# Of tensors, what gives them other memory or the memory itself away.
_MEMORY_ITSELF = ("untyped_storage", "storage", "_typed_storage", "data_ptr")
_IN_PLACE = ("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__", "__iand__", "__ior__", "__ixor__")


class _Called(torch.overrides.TorchFunctionMode):
    """What the loss calls of PyTorch. Parameters and buffers that it reaches otherwise than through the module (a list of them, a variable)
    are those that torch.export has put in the module's place of them; what changes a tensor behind its gradient's back is refused."""

    def __init__(self, replaced: Mapping[int, torch.Tensor], memory: _Memory):
        super().__init__()
        self.replaced, self.memory = replaced, memory
        self.reached: list[torch.Tensor] = []  # of the module's tensors, those that were reached so
        # With a gradient, and no views: of which version, and what it was made by.
        self.made: list[tuple[torch.Tensor, int, Any]] = []

    def __torch_function__(self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        name, changed = getattr(function, "__name__", ""), args[0] if args else None
        if isinstance(changed, torch.Tensor) and changed.grad_fn is not None:
            if name == "detach_":
                raise NotImplementedError("there is no code for detach_ of a tensor that the loss has computed: write x = x.detach()")
            in_place = name in _IN_PLACE or (name.endswith("_") and not name.endswith("__"))
            if in_place and name not in ("requires_grad_", "retains_grad_") and not torch.is_grad_enabled():
                raise NotImplementedError(f"the loss changes a tensor that it has computed ({name}) with torch.no_grad() around, behind its gradient's back: write "
                                          "x + (value - x).detach() for a tensor with another value and the gradient of x")

        if name in _MEMORY_ITSELF:
            raise NotImplementedError(f"there is no code for {name} of a tensor, whose memory torch.export does not know: write operations, and copy_ in place of what writes to it")

        def replace(value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or (of := self.replaced.get(id(value))) is None:
                return value
            self.reached.append(of)
            return of

        args, kwargs = _pytree.tree_map(replace, args), _pytree.tree_map(replace, kwargs or {})
        args, kwargs = with_checked_classes(function, args, kwargs)
        if name in ("batch_norm", "instance_norm"):
            # Of both, of torch and of torch.nn.functional.
            training = args[5] if len(args) > 5 else kwargs.get("training", kwargs.get("use_input_stats", name == "instance_norm"))
            self.memory.statistics += [id(each) for each in (*args, *kwargs.values()) if training and isinstance(each, torch.Tensor)]
        self.memory.expect_unread(_pytree.tree_leaves((args, kwargs)))
        result = function(*args, **kwargs)
        for leaf in _pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None and not leaf._is_view():
                self.made.append((leaf, leaf._version, leaf.grad_fn))
        return result

    def expect_known_gradients(self) -> None:
        """An operation in place has a gradient of its own; what else writes to a tensor's memory has none."""
        for tensor, version, made_by in self.made:
            if tensor._version != version and tensor.grad_fn is made_by:
                raise NotImplementedError(f"the loss changes what {made_by.name()} has computed in place, without a gradient (by .data, detach() or torch.no_grad()), behind "
                                          "its gradient's back: write x + (value - x).detach() for a tensor with another value and the gradient of x")


class _WithLoss(torch.nn.Module):
    def __init__(self, module: torch.nn.Module, loss: Loss, multiple: int):
        super().__init__()
        self.originals = tuple((name, id(tensor)) for name, tensor in _get_state(module).items())
        self.module = module
        self.loss = loss
        # No list: torch.export gives attributes that are trees back what they were.
        self.assigned: collections.deque[tuple[str, str, torch.Tensor]] = _Log()
        # What the loss changed of Python's, and whether that is a number.
        self.changed: collections.deque[tuple[str, bool]] = _Log()
        self.calls: collections.deque[None] = _Log()
        self.multiple = multiple  # of how many examples the batch's parts are

    def forward(self, batch: Any) -> Any:
        self.calls.append(None)
        batch = join(batch, self.multiple)
        # One size, not one for each tensor.
        sizes = [leaf.shape[0] for leaf in _pytree.tree_leaves(batch)]
        for size in sizes[1:]:
            torch._check(size == sizes[0])
        before = PythonState(self.loss, self.module)
        state = _get_state(self.module)
        # Of those that are not the originals any more.
        replaced = {identity: state[name] for name, identity in self.originals if name in state and id(state[name]) != identity}
        memory = _Memory()
        with _with_kept_parameters(self.module, memory), _with_known_gradients(self.module, memory):
            with _with_assigned_buffers(self.module, self.assigned, memory):
                with _Called(replaced, memory) as called:
                    value = self.loss(self.module, batch)
                called.expect_known_gradients()
                memory.expect_unread(_pytree.tree_leaves(value))
                _expect_what_gradients_need(value, memory)
            if any(tensor is each for tensor in called.reached for each in memory.assigned):
                raise NotImplementedError("the loss assigns a buffer of the module anew, and has the one that it was before the export in a variable of its own: read it from the module")
        after = PythonState(self.loss, self.module)
        if package := before.draws(after):
            raise NotImplementedError(f"the loss draws random numbers of Python's '{package}', which would stay in the exported step what they are now: draw "
                                      "them with torch (torch.rand), or feed them with the batch")
        self.changed.extend(before.find_changes(after))
        return value


_PREFIX = "module."


def _with_wide_integers() -> Any:
    """JAX has integers of 64 bits, as PyTorch's are: what a hash of them is, or a product of two, is no other number."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64
    return enable_x64()


def export(module: torch.nn.Module, loss: Loss | Mapping[str, Loss], optimizer: Any, batch: Any, path: str | os.PathLike[str], *,
           schedule: Any = None, schedule_steps: int | None = None, schedule_every: int = 1, max_norm: float | None = None, seed: int = 0,
           batch_multiple: int | None = None) -> Step:
    """Writes a training step to `path` (a file .mlir), with its signature (.json) and initial state (.npz) beside it.

    module:    in the mode in which it is trained (module.train()). Parameters and buffers are the state, under their names in its
               state_dict; those that share memory are one, under the first name.
    loss:      `loss(module, batch)` gives one number; or that and a dictionary of further values, which may be fetched.
               Or a dictionary of such losses, which take turns in each step.
    optimizer: one of torch.optim (all but Muon, SparseAdam and LBFGS) over the module's parameters, with groups; or one of optax.
               Of several losses a dictionary of as many of torch.optim: each trains its own parameters on the loss of its name, with
               what the turns before have made of all others. Two losses may have one optimizer.
    batch:     a tensor, or a dictionary, tuple or list of tensors: two examples or more, first axis; its size is left open.
    schedule:  of torch.optim's: a scheduler of torch.optim.lr_scheduler, which goes on from where it is; or the factor of the learning rate
               as a function of the step's number from 0 (as of LambdaLR), in jax.numpy. Of several losses a dictionary of them.
    schedule_steps: with a scheduler, whose numbers the step has as a table: how many steps the training has at most.
    schedule_every: after how many steps the scheduler makes one (those of an epoch, where it counts epochs).
    max_norm:  gradients are clipped by their global norm (torch.nn.utils.clip_grad_norm_), those of each loss by themselves.
    seed:      of dropout and other random numbers, which are JAX's, not PyTorch's.
    batch_multiple: what the number of a replica's examples is a multiple of, where the loss takes the batch apart into equal parts; else it
               is found.
    """
    if batch_multiple is not None and (not isinstance(batch_multiple, int) or batch_multiple < 1):
        raise ValueError(f"batch_multiple is a number of parts, but is {batch_multiple!r}")
    losses, optimizers, schedules = loss, optimizer, schedule
    if not isinstance(loss, Mapping):
        losses, optimizers, schedules = {"": loss}, {"": optimizer}, {"": schedule}
    elif not isinstance(optimizer, Mapping) or not loss or optimizer.keys() != loss.keys():
        raise TypeError(f"of several losses ({', '.join(map(str, loss))}) each has an optimizer: give a dictionary of as many, by the same names")
    elif not all(isinstance(name, str) and name for name in loss) or "loss" in loss:
        raise ValueError("names of losses are text, and none is 'loss', as which their sum is known")
    elif schedule is None:
        schedules = {}
    elif not isinstance(schedule, Mapping) or not schedule.keys() <= loss.keys():
        raise TypeError(f"of several losses ({', '.join(loss)}) schedules are a dictionary, by their names")
    with _with_wide_integers():
        made = {name: Table(each, optimizers[name], schedule_steps, schedule_every) if isinstance(each, (LRScheduler, ReduceLROnPlateau)) else each
                for name, each in schedules.items()}
        return _export(module, losses, optimizers, batch, path, made, max_norm, seed, batch_multiple)


def _get_memory(tensor: torch.Tensor) -> int | None:
    """Which memory it lies in; None where it has none of its own."""
    if isinstance(tensor, torch._subclasses.FakeTensor) or tensor.numel() == 0 or tensor.layout != torch.strided:
        return None
    return tensor.untyped_storage().data_ptr()


def _find_state(tensor: Any, values: Mapping[str, torch.Tensor]) -> str | None:
    """The parameter or buffer that a tensor is, or shares its elements with. A part of one is refused."""
    if not isinstance(tensor, torch.Tensor) or _get_memory(tensor) is None:
        return None
    for name, value in values.items():
        if value is tensor:
            return name
        if _get_memory(value) == _get_memory(tensor):
            if value.data_ptr() == tensor.data_ptr() and value.shape == tensor.shape and value.stride() == tensor.stride() and value.dtype == tensor.dtype:
                return name
            raise NotImplementedError(f"the loss reads a part of '{name}' of the module that was taken before the export and would stay as it is now: take it "
                                      "in the loss")
    return None


def _find_shared_memory(tensors: Iterable[tuple[str, Any]]) -> list[list[str]]:
    """Names of tensors that lie in the same memory, at least two in each list."""
    by_memory: dict[int, list[str]] = {}
    for name, tensor in tensors:
        if isinstance(tensor, torch.Tensor) and (memory := _get_memory(tensor)) is not None:
            by_memory.setdefault(memory, []).append(name)
    return [names for names in by_memory.values() if len(names) > 1]


def _expect_own_memory(exported: torch.export.ExportedProgram, values: Mapping[str, torch.Tensor], named: Mapping[str, torch.Tensor], trained: list[str],
                       written: set[str]) -> None:
    """Refuses tensors that share memory with one that the steps change: they would not follow."""
    why = "would not follow: take it from the other one in forward"
    for names in _find_shared_memory(values.items()):
        if changes := [name for name in names if name in written or name in trained]:
            other = next(name for name in names if name != changes[0])
            raise NotImplementedError(f"'{changes[0]}' of the module changes with the steps, and '{other}', which shares its memory, {why}")
    # Buffers that are not in the state_dict (persistent=False) are among the constants by their names.
    for constant in (tensor for name, tensor in exported.constants.items() if name.removeprefix(_PREFIX) not in named):
        for name in written:
            if _find_shared_memory([(name, values[name]), ("", constant)]):
                raise NotImplementedError(f"the loss changes '{name}' of the module, and a tensor that was taken of it before the export {why}")


def _find_constants(exported: torch.export.ExportedProgram, values: Mapping[str, torch.Tensor], named: Mapping[str, torch.Tensor], written: set[int]) -> set[str]:
    """The inputs of the graph that are the same in every step. `written`: identities of the tensors that a step changes."""
    kinds = torch.export.graph_signature.InputKind
    return {spec.arg.name for spec in exported.graph_signature.input_specs
            if (spec.kind == kinds.BUFFER and id(named[spec.target.removeprefix(_PREFIX)]) not in written)
            or (spec.kind == kinds.CONSTANT_TENSOR and _find_state(exported.constants[spec.target], values) is None)}


@dataclasses.dataclass
class _Turn:
    """A loss, and the optimizer that follows it."""

    name: str  # "" where there is one alone
    loss: Loss
    optimizer: Any
    schedule: Table | Callable[[Any], Any] | None
    exported: torch.export.ExportedProgram
    trained: list[str]
    slots: str  # the name of the turn that has its optimizer's state
    multiple: int  # of how many examples the parts are that its loss takes the batch apart into
    # Of its loss: (parameters, the rest of the state, batch, key) -> (loss, (changed buffers, fetches)); and whether that draws random numbers.
    evaluate: Callable[..., Any] | None = None
    draws: bool = False
    update: Callable[..., Any] | None = None


def _expect_optimizer(optimizer: Any, has_others: bool) -> None:
    if isinstance(optimizer, torch.optim.Optimizer):
        return
    if not (callable(getattr(optimizer, "init", None)) and callable(getattr(optimizer, "update", None))):
        raise TypeError(f"the optimizer is one of torch.optim that was made for the module's parameters, or one of optax, but is {optimizer!r}")
    if has_others:
        raise NotImplementedError("several optimizers are of torch.optim, each made for the parameters that it trains: one of optax does not say which those are")


def _trace(module: torch.nn.Module, loss: Loss, batch: Any, named: Mapping[str, torch.Tensor], values: Mapping[str, torch.Tensor],
           multiple: int | None) -> tuple[torch.export.ExportedProgram, int, int]:
    """The loss in core operations, how many examples it needs, and what their number is a multiple of."""
    if isinstance(loss, torch.nn.Module) and (list(loss.parameters()) or list(loss.buffers())):
        raise NotImplementedError(f"the loss ({type(loss).__name__}) has parameters or buffers of its own: make it a part of the module, and give a function as the loss")
    with torch.enable_grad(), _with_ways_out(), _with_open_parts():
        first: Exception | None = None
        multiples = [multiple or 1]
        for each in multiples:
            with_loss = _WithLoss(module, loss, each)
            try:
                exported, smallest_batch, write = _export_program(with_loss, batch)
                break
            except torch._dynamo.exc.UserError as error:
                if "Constraints violated" not in str(error):
                    raise
                if first is None and multiple is None:
                    multiples += find_multiples(batch, str(error))
                first = first or error
        else:
            assert first is not None
            raise first
    for part, name, old in with_loss.assigned:
        # What the trace itself has assigned before has no memory.
        if not isinstance(old, torch._subclasses.FakeTensor) and any(
                constant is old or (isinstance(constant, torch.Tensor) and constant.data_ptr() == old.data_ptr()) for constant in exported.constants.values()):
            raise NotImplementedError(f"the loss reads the tensor '{name}' of {part} and assigns it anew, which would stay in the exported step what it is "
                                      "now: make it a buffer (register_buffer)")
    _expect_the_same_again(with_loss, batch, exported, write)
    _drop_other_names(exported, named)
    stop_gradients(exported.graph_module)
    try:
        with _with_ways_out():
            return exported.run_decompositions(get_decompositions()), smallest_batch * with_loss.multiple, with_loss.multiple
    except AssertionError as error:  # It takes no tensors of one memory that are written to.
        if not (shared := _find_shared_memory([*values.items(), *((f"a tensor ({name})", each) for name, each in exported.constants.items())])):
            raise
        raise NotImplementedError(f"the loss writes to memory that {' and '.join(shared[0])} of the module share: make one of them in forward, of the other "
                                  "one") from error


def _get_written(exported: torch.export.ExportedProgram, named: Mapping[str, torch.Tensor]) -> set[int]:
    """Identities of the module's tensors that it changes."""
    outputs = torch.export.graph_signature.OutputKind
    return {id(named[spec.target.removeprefix(_PREFIX)]) for spec in exported.graph_signature.output_specs if spec.kind in (outputs.BUFFER_MUTATION, outputs.PARAMETER_MUTATION)}


def _make_evaluation(turn: _Turn, graph: Graph, named: Mapping[str, torch.Tensor], first: Mapping[int, str], values: Mapping[str, torch.Tensor], trained: list[str],
                     example: Mapping[str, torch.Tensor]) -> None:
    """The turn's loss as a function of JAX, and of what it trains that alone which the loss depends on."""
    exported = turn.exported
    # What the inputs of the graph are.
    kinds = torch.export.graph_signature.InputKind
    inputs: dict[str, str] = {}
    constants: Arrays = {}
    detached: set[str] = set()
    feeds = iter(example)
    fed: dict[str, str] = {}
    for spec in exported.graph_signature.input_specs:
        if spec.kind in (kinds.PARAMETER, kinds.BUFFER):
            tensor = named[spec.target.removeprefix(_PREFIX)]
            if tensor.is_complex():  # The angles of positions, which no step changes; no state.
                constants[spec.arg.name] = to_array(tensor)
            else:
                inputs[spec.arg.name] = first[id(tensor)]
        elif spec.kind == kinds.USER_INPUT:
            fed[spec.arg.name] = next(feeds)
        elif spec.kind == kinds.TOKEN:
            constants[spec.arg.name] = None
        else:
            tensor = exported.constants[spec.target]
            # Parameters and buffers that the loss reaches otherwise than through the module's attributes.
            name = _find_state(tensor, values)
            if name is None:
                constants[spec.arg.name] = to_array(tensor)
            else:
                inputs[spec.arg.name] = name
                if not tensor.requires_grad:
                    detached.add(spec.arg.name)
    mutated: list[str] = []
    results = tokens = 0
    outputs = torch.export.graph_signature.OutputKind
    for spec in exported.graph_signature.output_specs:
        if spec.kind in (outputs.BUFFER_MUTATION, outputs.PARAMETER_MUTATION):
            target = spec.target.removeprefix(_PREFIX)
            if named[target].is_complex():
                raise NotImplementedError(f"the step changes the complex buffer '{target}': keep its real and imaginary part")
            if first[id(named[target])] in trained:
                raise NotImplementedError(f"the loss changes the parameter '{target}', which the optimizer trains: leave it out of the optimizer, and "
                                          "requires_grad_(False), or change it behind the step")
            mutated.append(first[id(named[target])])
        elif spec.kind == outputs.USER_OUTPUT:
            results += 1
        elif spec.kind == outputs.TOKEN:  # before all others
            tokens += 1
        else:
            raise NotImplementedError(f"the loss changes '{spec.target}', which is no parameter or buffer of the module")
    structure = exported.call_spec.out_spec
    if isinstance(turn.optimizer, torch.optim.Optimizer):
        # PyTorch's optimizers pass over parameters without a gradient: they do not decay, either.
        differentiated = {inputs.get(name) for name in graph.get_differentiated(tokens + len(mutated)) if name not in detached}
        turn.trained = [name for name in turn.trained if name in differentiated]
        if not turn.trained:
            raise ValueError(f"the loss '{turn.name}' depends on no parameter that requires a gradient and that its optimizer has" if turn.name else
                             "the loss depends on no parameter that requires a gradient")

    def evaluate(parameters: Arrays, rest: Arrays, batch: Arrays, key: Any) -> tuple[Any, tuple[Arrays, Arrays]]:
        state = {**rest, **parameters}
        given = {**constants, **{name: lax.stop_gradient(state[of]) if name in detached else state[of] for name, of in inputs.items()}, **{name: batch[of] for name, of in fed.items()}}
        values = graph.run(given, key)[tokens:]
        outcome = _pytree.tree_unflatten(values[len(mutated):], structure)
        number, fetches = outcome if isinstance(outcome, (tuple, list)) and len(outcome) == 2 else (outcome, {})
        if getattr(number, "shape", None) != () or not isinstance(fetches, Mapping):
            raise TypeError("the loss gives one number (a mean over the examples), or that and a dictionary of further values")
        return number, (dict(zip(mutated, values)), fetches)

    turn.evaluate, turn.draws = evaluate, graph.draws


def _export(module: torch.nn.Module, losses: Mapping[str, Loss], optimizers: Mapping[str, Any], batch: Any, path: str | os.PathLike[str],
            schedules: Mapping[str, Table | Callable[[Any], Any] | None], max_norm: float | None, seed: int, batch_multiple: int | None) -> Step:
    named = _get_state(module)
    first: dict[int, str] = {}
    for name, tensor in named.items():
        first.setdefault(id(tensor), name)
    values = {name: tensor for name, tensor in named.items() if first[id(tensor)] == name and not tensor.is_complex()}
    for name, parameter in module.named_parameters():
        if parameter.is_complex():
            raise NotImplementedError(f"the parameter '{name}' is complex: keep its real and imaginary part (torch.view_as_real), and make the complex "
                                      "tensor of them in forward (torch.view_as_complex)")
    trained = [name for name, tensor in values.items() if isinstance(tensor, torch.nn.Parameter) and tensor.requires_grad]
    _expect_no_hooks(module)
    if not trained:
        raise ValueError("the module has no parameter that requires a gradient")

    leaves, batch_structure = _pytree.tree_flatten_with_path(batch)
    example: dict[str, torch.Tensor] = {}
    for key, leaf in leaves:
        if not isinstance(leaf, torch.Tensor) or leaf.ndim == 0:
            raise ValueError(f"'{_get_name(key)}' of the batch is no tensor with an axis of examples")
        example[_get_name(key)] = leaf
    if any(len(leaf) < 2 for leaf in example.values()):
        raise ValueError("the batch needs two examples or more, so that PyTorch leaves its size open")
    first_key, *others = example
    for key in others:
        if len(example[key]) != len(example[first_key]):
            raise ValueError(f"'{first_key}' of the batch has {len(example[first_key])} examples, and '{key}' {len(example[key])}: what has no axis of examples (weights of classes) is a "
                             "buffer of the module")
    for optimizer in optimizers.values():
        _expect_optimizer(optimizer, len(optimizers) > 1)

    turns: list[_Turn] = []
    smallest_batch = of_all = 1
    identities = {id(tensor): first[id(tensor)] for tensor in named.values()}
    for turn_name, loss in losses.items():
        optimizer = optimizers[turn_name]
        own = trained
        if turn_name:
            of_optimizer = {identities.get(id(parameter)) for group in optimizer.param_groups for parameter in group["params"]}
            own = [name for name in trained if name in of_optimizer]
        exported, smallest, multiple = _trace(module, loss, batch, named, values, batch_multiple)
        smallest_batch, of_all = max(smallest_batch, smallest), math.lcm(of_all, multiple)
        slots = next((turn.slots for turn in turns if turn.optimizer is optimizer), turn_name)
        turns.append(_Turn(turn_name, loss, optimizer, schedules.get(turn_name), exported, own, slots, multiple))
    written = set().union(*(_get_written(turn.exported, named) for turn in turns))
    for turn in turns:
        _expect_own_memory(turn.exported, values, named, trained, {first[identity] for identity in written})
        rows = {spec.arg.name: turn.multiple for spec in turn.exported.graph_signature.input_specs if spec.kind == torch.export.graph_signature.InputKind.USER_INPUT}
        graph = Graph(turn.exported.graph, _find_constants(turn.exported, values, named, written), rows)
        if (columns := graph.get_most_columns()) <= distc_jax.MOST_EXAMPLES:
            smallest_batch = max(smallest_batch, columns)
        _make_evaluation(turn, graph, named, first, values, trained, example)

    arrays = {name: to_array(tensor) for name, tensor in values.items()}
    trained = [name for name in trained if any(name in turn.trained for turn in turns)]
    parameters = {name: arrays.pop(name) for name in trained}
    slots: Arrays = {}
    for turn in turns:
        before = next((each for each in turns if each is not turn and each.optimizer is turn.optimizer and each.update is not None), None)
        if before is not None:
            if turn.schedule is not None:
                raise ValueError(f"the losses '{before.name}' and '{turn.name}' have one optimizer, whose schedule is the first one's")
            if before.trained != turn.trained:
                raise NotImplementedError(f"the losses '{before.name}' and '{turn.name}' have one optimizer, but depend on different ones of its parameters: give each an optimizer of its own")
            turn.update = before.update
        elif isinstance(turn.optimizer, torch.optim.Optimizer):
            slots[turn.slots], turn.update = _make_torch_update(turn.optimizer, identities, turn.trained, turn.schedule)
        else:
            if turn.schedule is not None:
                raise ValueError("a schedule goes into the optimizer of optax: optax.sgd(schedule)")
            slots[turn.slots], turn.update = _make_optax_update(turn.optimizer, parameters)
    is_one = list(losses) == [""]
    state: Arrays = {**parameters, **arrays, "optimizer": slots[""] if is_one else slots}
    if any(turn.draws for turn in turns):
        state["random_key"] = jax.random.key(seed)
    if any(turn.schedule is not None for turn in turns):
        state["schedule_step"] = np.zeros((), np.int32)

    def step(state: Arrays, batch: Arrays) -> tuple[Any, ...]:
        new = dict(state)
        key = None
        if "random_key" in state:
            key, new["random_key"] = jax.random.split(state["random_key"])
        if "schedule_step" in state:
            new["schedule_step"] = state["schedule_step"] + 1
        total, all_fetches, now = None, {}, {"": state["optimizer"]} if is_one else dict(state["optimizer"])
        for number, turn in enumerate(turns):
            parameters = {name: new[name] for name in turn.trained}
            rest = {name: new[name] for name in (*arrays, *trained) if name not in parameters}
            drawn = key if number == 0 or key is None else jax.random.fold_in(key, number)
            (value, (buffers, fetches)), gradients = jax.value_and_grad(turn.evaluate, has_aux=True)(parameters, rest, batch, drawn)
            if max_norm is not None:
                norm = jnp.sqrt(sum(jnp.sum(jnp.square(gradient)) for gradient in gradients.values()))
                scale = jnp.minimum(max_norm / (norm + 1e-6), 1.0)
                gradients = {name: gradient * scale for name, gradient in gradients.items()}
            changed, now[turn.slots] = turn.update(gradients, now[turn.slots], parameters, state.get("schedule_step"))
            new.update(changed)
            new.update(buffers)
            total = value if total is None else total + value
            fetches = fetches if is_one else {**fetches, turn.name: value}
            if twice := fetches.keys() & all_fetches.keys():
                raise ValueError(f"two of the losses give a value '{min(twice)}'")
            all_fetches |= fetches
        new["optimizer"] = now[""] if is_one else now
        return (new, total, all_fetches) if all_fetches else (new, total)

    specs = {name: jax.ShapeDtypeStruct(tuple(leaf.shape), to_dtype(leaf.dtype)) for name, leaf in example.items()}
    made = distc_jax.export(step, state, specs, path, smallest_batch=smallest_batch if smallest_batch > of_all else 1, batch_multiple=of_all if of_all > 1 else None)
    # Data may be given as the batch is, too. A key that is another's name (a parameter's) has a leaf of another name.
    names, structure = jax.tree.flatten(_pytree.tree_unflatten(list(example), batch_structure))
    by_name = dict(zip(jax.tree.leaves({name: name for name in specs}), made.batch))
    return dataclasses.replace(made, batch=[by_name[name] for name in names], batch_tree=(structure, [None] * len(names)))


def _get_name(key: Any) -> str:
    """params/0 for ["params"][0]; what is no tree is 'batch'."""
    parts = [str(getattr(entry, "key", getattr(entry, "idx", getattr(entry, "name", entry)))) for entry in key]
    name = "/".join(parts)
    return name if name and name[0].isalpha() else f"batch/{name}" if name else "batch"


def load_state(module: torch.nn.Module, state: Mapping[str, Any]) -> None:
    """Copies the parameters and buffers of a state that training gave (Result.state) into the module."""
    named = dict(module.named_parameters()) | dict(module.named_buffers())
    with torch.no_grad():
        for name, tensor in named.items():
            if tensor.is_complex():
                continue
            if name not in state:
                raise ValueError(f"the state has no '{name}'")
            tensor.copy_(torch.from_numpy(np.array(jnp.asarray(state[name]).astype(jnp.float32) if tensor.dtype == torch.bfloat16
                                                   else state[name])))
