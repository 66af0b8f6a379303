"""jax.debug.print and jax.debug.callback: executables have no Python that they could call. What does so and gives nothing is left out."""
from __future__ import annotations

import contextlib
import warnings
from typing import Any, Iterator
from unittest import mock

from jax._src import debugging
from jax._src.interpreters import batching, mlir

_SILENT = [each for each in (getattr(debugging, name, None) for name in ("debug_callback_p", "debug_print_p")) if each is not None]


def is_silent(eqn: Any) -> bool:
    return eqn.primitive in _SILENT


# CPUs and GPUs have rules of their own.
for _primitive in _SILENT:
    mlir.register_lowering(_primitive, lambda context, *args, **params: [])


@contextlib.contextmanager
def without_calls() -> Iterator[list[str]]:
    """What is traced within may call Python, in any order, also for each example. Gives the names of what did for all examples at once."""
    seen: list[str] = []

    def unorder(primitive: Any) -> Any:
        bind = primitive.bind

        def bind_unordered(*args: Any, **params: Any) -> Any:
            seen.append(primitive.name)
            others = {"effect": debugging.debug_effect, "ordered": False}
            return bind(*args, **params | {name: value for name, value in others.items() if name in params})
        return bind_unordered

    def forget_open(rule: Any) -> Any:
        def batch(*args: Any, **params: Any) -> Any:
            values, axes = args[-2:]
            size = next((value.shape[axis] for value, axis in zip(values, axes) if isinstance(axis, int)), 1)
            return rule(*args, **params) if isinstance(size, int) else ([], [])
        return batch

    # Of earlier and later versions.
    tables = [table for table in (getattr(batching, "fancy_primitive_batchers", None), batching.primitive_batchers) if isinstance(table, dict)]
    with contextlib.ExitStack() as stack:
        for table in tables:
            stack.enter_context(mock.patch.dict(table, {each: forget_open(table[each]) for each in _SILENT if each in table}))
        for primitive in _SILENT:
            stack.enter_context(mock.patch.object(primitive, "bind", unorder(primitive)))
        yield seen


def warn_of_calls(stacklevel: int) -> None:
    warnings.warn("the step calls jax.debug.print or jax.debug.callback, which is left out: an executable has no Python to call. Give the value as a fetch, "
                  "in the dictionary behind the loss", stacklevel=stacklevel + 1)
