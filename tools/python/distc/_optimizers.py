"""Optimizers of PyTorch and optax, as rules of JAX.

A rule is (gradient, parameter, slots, hyper-parameters, number of the step from 1) -> (parameter, slots).
"""
from __future__ import annotations

import math
from typing import Any, Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax

from distc._arrays import Arrays, to_array
from distc._schedules import Table


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


def make_torch_update(optimizer: torch.optim.Optimizer, names: Mapping[int, str], trained: list[str],
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


def make_optax_update(optimizer: Any, parameters: Arrays) -> tuple[Any, Callable[..., Any]]:
    import optax

    def update(gradients: Arrays, state: Any, parameters: Arrays, now: Any) -> tuple[Arrays, Any]:
        changes, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, changes), state

    return optimizer.init(parameters), update
