"""Schedulers of torch.optim.lr_scheduler: what they make of an optimizer's groups in each step, which does not depend on the data, as a table."""
from __future__ import annotations

import contextlib
import copy
import warnings
from typing import Any, Iterator, Mapping

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.optim import lr_scheduler

from distc._indices import check

# Of a group, what a table may change; of Adam's numbers the first.
_CHANGED = ("lr", "momentum", "betas")
_MOST_STEPS = 1 << 22


def _get_parts(scheduler: Any) -> Iterator[Any]:
    yield scheduler
    for part in getattr(scheduler, "_schedulers", ()):
        yield from _get_parts(part)


@contextlib.contextmanager
def _as_it_was(scheduler: Any) -> Iterator[None]:
    """What steps of a scheduler change, in itself and in its optimizer, is given back."""
    def copy_of(value: Any) -> Any:
        return value.clone() if isinstance(value, torch.Tensor) else copy.copy(value) if isinstance(value, (list, dict)) else value

    optimizer = scheduler.optimizer
    parts = [(part, {name: copy_of(value) for name, value in vars(part).items() if name != "optimizer"}) for part in _get_parts(scheduler)]
    groups = [(group, {name: (value, copy_of(value)) for name, value in group.items() if name != "params"}) for group in optimizer.param_groups]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a scheduler that makes steps without the optimizer
            yield
    finally:
        for part, before in parts:
            part.__dict__.update(before)
        for group, kept in groups:
            for name, (value, old) in kept.items():
                if isinstance(value, torch.Tensor):
                    value.copy_(old)
                group[name] = value


def _read(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    def plain(value: Any) -> Any:
        return float(value) if isinstance(value, torch.Tensor) else tuple(map(plain, value)) if isinstance(value, (tuple, list)) else value

    return [{name: plain(value) for name, value in group.items() if name != "params"} for group in optimizer.param_groups]


class Table:
    """What a scheduler makes of its optimizer's groups in the next steps."""

    def __init__(self, scheduler: Any, optimizer: torch.optim.Optimizer, steps: int | None, every: int):
        what = type(scheduler).__name__
        if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
            raise NotImplementedError(f"{what} looks at the losses, which no table of the steps holds: train in parts (Result.state, Executable.train), or give a schedule of the step's number")
        if not isinstance(steps, int) or not isinstance(every, int) or every < 1 or not 0 < steps <= _MOST_STEPS:
            raise ValueError(f"with a scheduler ({what}) 'schedule_steps' says how many steps at most the training has (up to {_MOST_STEPS}), and 'schedule_every' after how many of them the "
                             f"scheduler makes one, but they are {steps!r} and {every!r}")
        if scheduler.optimizer is not optimizer:
            raise ValueError(f"the scheduler ({what}) is not of the optimizer that is exported")
        self.every, self.rows = every, -(-steps // every)
        read = []
        with _as_it_was(scheduler):
            for number in range(self.rows):
                if number > 0:
                    try:
                        scheduler.step()
                    except ValueError as error:  # OneCycleLR counts them.
                        raise ValueError(f"the scheduler ({what}) makes no {self.rows} steps: {error}") from error
                read.append(_read(optimizer))
        self.changes: list[dict[str, np.ndarray]] = []
        for group, first in enumerate(read[0]):
            varying = [name for name, value in first.items() if any(row[group].get(name) != value for row in read)]
            if unknown := [name for name in varying if name not in _CHANGED or (name == "betas" and any(row[group][name][1:] != first[name][1:] for row in read))]:
                raise NotImplementedError(f"the scheduler ({what}) changes '{unknown[0]}' of the optimizer's groups, but there is code for learning rates, momentum and the first of betas")
            self.changes.append({name: np.array([row[group][name][0] if name == "betas" else row[group][name] for row in read], np.float64) for name in varying})

    def get(self, group: int, hyper: Mapping[str, Any], step: Any) -> dict[str, Any]:
        """The hyper-parameters of a group in a step, a value. A step behind the last ends the executable."""
        with jax.named_scope("schedule_steps"):  # for who reads the error
            row = check(step // self.every, self.rows)
        found = {name: jnp.take(jnp.asarray(column), row, mode="clip") for name, column in self.changes[group].items()}
        if "betas" in found:
            found["betas"] = (found["betas"], hyper["betas"][1])
        return {**hyper, **found}
