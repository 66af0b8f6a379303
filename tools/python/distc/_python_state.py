"""What a function of Python keeps between its calls. A step that is exported once keeps what these were at its export."""
from __future__ import annotations

import collections
import functools
import random
import sys
import types
from typing import Any, Iterable, Iterator, Mapping

import numpy as np
import torch

# Objects of these packages change by themselves (caches, counts of compilations), and are no part of a user's loss.
_LIBRARIES = frozenset(sys.stdlib_module_names) | {"torch", "numpy", "jax", "jaxlib", "optax", "distc"}
# What a torch.nn.Module has beside its attributes: parameters and buffers are state, which is exported.
_PARTS_OF_MODULES = frozenset(vars(torch.nn.Module())) - {"_modules"}
# No more values are looked at, so that a loss that holds its data is not searched for minutes.
_MOST_VALUES = 100_000


class PythonState:
    """The numbers, texts, tensors and arrays that a loss and a module can reach, each under a name for messages, and what NumPy's and
    Python's random numbers have come to. It is taken when it is made."""

    def __init__(self, *roots: Any):
        self.values: dict[str, Any] = {}
        self._seen: set[int] = set()
        self._kept: list[Any] = []  # so that no identity is used twice
        for root in roots:
            self._add("", root)
        self._generators = (repr(random.getstate()), repr(np.random.get_state()))

    def find_changes(self, later: PythonState) -> Iterator[tuple[str, bool]]:
        """The names of what is not in `later` what it is here, and whether it is a number in both."""
        for name in dict.fromkeys([*self.values, *later.values]):
            old, new = self.values.get(name, _ABSENT), later.values.get(name, _ABSENT)
            if old != new:
                yield name, isinstance(old, (bool, int, float)) and isinstance(new, (bool, int, float)) and not name.startswith("len(")

    def draws(self, later: PythonState) -> str | None:
        """The package whose random numbers were drawn in between."""
        return next((name for name, old, new in zip(("random", "numpy.random"), self._generators, later._generators) if old != new), None)

    def _add(self, name: str, value: Any) -> None:
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
            # NaN is what it was.
            self.values[name] = value if value == value else "NaN"
            return
        if id(value) in self._seen or len(self._seen) > _MOST_VALUES:
            return
        self._seen.add(id(value))
        self._kept.append(value)
        if isinstance(value, torch.Tensor):
            self.values[name] = ("tensor", id(value))
        elif isinstance(value, np.ndarray):
            self.values[name] = ("array", id(value) if value.nbytes > _MOST_VALUES else value.tobytes())
        elif isinstance(value, Mapping):
            for key, item in list(value.items()):
                self._add(f"{name}[{key!r}]", item)
        elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
            self.values[f"len({name})"] = len(value)
            for i, item in enumerate(value if not isinstance(value, (set, frozenset)) else ()):
                self._add(f"{name}[{i}]", item)
        elif isinstance(value, functools.partial):
            self._add_all(name, [("func", value.func), ("args", value.args), ("keywords", value.keywords)])
        elif isinstance(value, types.MethodType):
            self._add(name, value.__self__)
            self._add_function(name, value.__func__)
        elif isinstance(value, types.FunctionType):
            self._add_function(name, value)
        elif isinstance(value, torch.nn.Module):
            self._add_all(name, [(key, item) for key, item in vars(value).items() if key not in _PARTS_OF_MODULES])
            self._add_function(name, type(value).forward)
        elif isinstance(value, (type, types.ModuleType)) or type(value).__module__.partition(".")[0] in _LIBRARIES:
            if callable(value):
                self.values[name] = ("callable", id(value))
            if isinstance(value, type) and value.__module__.partition(".")[0] not in _LIBRARIES:
                self._add_all(name, [(key, item) for key, item in vars(value).items() if isinstance(item, (bool, int, float, list, dict, torch.Tensor))])
        else:
            self._add_all(name, list(getattr(value, "__dict__", {}).items()))
            slots = [slot for each in type(value).__mro__ for slot in _as_list(getattr(each, "__slots__", ()))]
            self._add_all(name, [(slot, getattr(value, slot)) for slot in slots if hasattr(value, slot)])
            self._add(name, type(value))
            if isinstance(getattr(type(value), "__call__", None), types.FunctionType):
                self._add_function(name, type(value).__call__)

    def _add_all(self, name: str, items: Iterable[tuple[str, Any]]) -> None:
        for key, item in items:
            self._add(f"{name}.{key}" if name else str(key), item)

    def _add_function(self, name: str, function: Any) -> None:
        if not isinstance(function, types.FunctionType) or (function.__module__ or "").partition(".")[0] in _LIBRARIES:
            return
        code = function.__code__
        for variable, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                self._add(variable, cell.cell_contents)
            except ValueError:  # not yet assigned
                pass
        self._add_all(name, [("defaults", function.__defaults__ or ()), ("defaults", function.__kwdefaults__ or {}), *vars(function).items()])
        for variable in sorted(_find_names(code)):
            if variable in function.__globals__:
                self._add(variable, function.__globals__[variable])


_ABSENT = object()


def _as_list(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else list(slots)


def _find_names(code: types.CodeType) -> set[str]:
    """Of the globals that a function and those inside of it may use."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _find_names(constant)
    return names
