"""The table of operations, which each kind fills, and PyTorch's element types."""
from __future__ import annotations

from typing import Any, Callable

import jax
import jax.numpy as jnp
import torch

TABLE: dict[str, Callable[..., Any]] = {}


class UnknownOperations(NotImplementedError):
    """Names every operation of a module that there is no code for."""


def define(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            TABLE[name] = function
        return function
    return add


def to_dtype(dtype: torch.dtype) -> Any:
    """JAX's type for PyTorch's."""
    return jax.dtypes.canonicalize_dtype(jnp.dtype(str(dtype).removeprefix("torch.")))


def get_names(target: Any) -> tuple[str, str]:
    """The names of an operation with and without its overload: sum.dim_IntList, sum. Other libraries' have theirs in front."""
    name = str(target).removeprefix("aten.")
    return name, name.rpartition(".")[0] or name


# What keeps a vector's elements where they are.
KEEPS = {"_to_copy", "alias", "clone", "contiguous", "detach", "detach_", "lift_fresh_copy", "to", "view_of"}
