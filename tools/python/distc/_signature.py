"""What is known of a step that was exported: names, types, and where its values are in the caller's trees."""
from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

# Of the same bits: what executables know are signed integers.
_SIGNED = {"uint8": "int8", "uint16": "int16", "uint32": "int32", "uint64": "int64"}


def _fit(name: str, value: Any, dtype: str) -> np.ndarray:
    """The array in the step's type, where that has all of its values: int64 labels of an int32 step, float64 data of a float32 one."""
    array = np.asarray(value)
    if array.dtype.name == dtype or dtype not in np.sctypeDict:
        return array
    wanted = np.dtype(dtype)
    if wanted.kind == "f" and array.dtype.kind in "fiu":
        return array.astype(wanted)
    if wanted.kind not in "iu" or array.dtype.kind not in "iu":
        return array
    limits = np.iinfo(wanted)
    if array.size and (array.min() < limits.min or array.max() > limits.max):
        raise ValueError(f"'{name}' has values from {array.min()} to {array.max()}, but the step takes {dtype}")
    return array.astype(wanted)


def to_file(name: str, value: Any) -> np.ndarray:
    """The array as files for executables have it."""
    array = np.asarray(value)
    signed = _SIGNED.get(array.dtype.name)
    if signed:
        return np.asarray(array, order="C").view(signed)
    if array.dtype.name == "bfloat16":  # which NumPy has not: raw elements of two bytes
        return np.asarray(array, order="C").view("V2")
    if array.dtype.kind not in "fib":
        raise TypeError(f"'{name}' has elements of type {array.dtype}, which .npz files do not hold; "
                        + ("keep real and imaginary parts" if array.dtype.kind == "c" else "make them float32 in the step"))
    return array


def from_file(array: np.ndarray, dtype: str) -> np.ndarray:
    array = np.asarray(array, order="C")
    if dtype == "bfloat16":
        import ml_dtypes  # JAX's

        return array.view(ml_dtypes.bfloat16)
    return array.view(dtype) if dtype in _SIGNED else array


@dataclasses.dataclass
class Leaf:
    """An array of the state or of the batch."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]


def _name_leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of mappings and lists, keys and places joined by /."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, (list, tuple)) else None
    if items is None:
        yield name, value
        return
    for key, item in items:
        yield from _name_leaves(item, f"{name}/{key}" if name else str(key))


@dataclasses.dataclass
class Step:
    """A training step that was exported. `path` is the module; signature and initial state lie beside it."""

    path: pathlib.Path
    state: list[Leaf]
    batch: list[Leaf]
    fetches: list[str]  # those of one number: a log takes no other
    # Of JAX: the structure of the state and of the batch. None for a step that was read from its files.
    state_tree: Any = None
    batch_tree: Any = None
    # Of a graph of TensorFlow: what `distc compile` has to be told of it, and where training begins, if not as it
    # initializes its variables.
    flags: list[str] = dataclasses.field(default_factory=list)
    initial: Any = None
    loss: str = "loss"  # its node

    @classmethod
    def read(cls, path: str | pathlib.Path) -> "Step":
        """The step of these files. Its state is a dictionary by names, as the structure of a tree is not in them."""
        path = pathlib.Path(path)
        signature = json.loads(path.with_suffix(".json").read_text())
        leaves: dict[str, list[Leaf]] = {"state": [], "batch": [], "feed": []}
        for entry in signature["arguments"]:
            leaves[entry["role"]].append(Leaf(entry["name"], entry["dtype"], tuple(entry["shape"])))
        return cls(path, leaves["state"], leaves["batch"] + leaves["feed"],
                   [entry["name"] for entry in signature.get("fetches", []) if not entry.get("shape")])

    def flatten(self, leaves: Sequence[Leaf], tree: Any, value: Any) -> dict[str, np.ndarray]:
        """Arrays by name; `value` is a tree of the structure, or a mapping of names."""
        names = [leaf.name for leaf in leaves]
        if isinstance(value, Mapping) and set(value) == set(names):
            values = [value[name] for name in names]
        elif tree is not None:
            from distc.jax import flatten
            values = flatten(tree, value)
        else:
            # A step that was read from its file: trees have the names that keys and places give.
            by_name = dict(_name_leaves(value))
            if set(by_name) != set(names):
                raise ValueError(f"expected arrays by name: {', '.join(names)}; got {', '.join(by_name) or 'none'}")
            values = [by_name[name] for name in names]
        return {leaf.name: to_file(leaf.name, _fit(leaf.name, each, leaf.dtype)) for leaf, each in zip(leaves, values)}

    def unflatten_state(self, arrays: Mapping[str, np.ndarray]) -> Any:
        values = [from_file(arrays[leaf.name], leaf.dtype).reshape(leaf.shape) for leaf in self.state]
        if self.state_tree is None:
            return {leaf.name: value for leaf, value in zip(self.state, values)}
        from distc.jax import unflatten
        return unflatten(self.state_tree, values)
