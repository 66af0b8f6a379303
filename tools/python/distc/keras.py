"""Training steps of Keras 3 as files that distc compiles. A model on another backend than JAX's is saved and exported by a process that runs on that one."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any, Iterator, Mapping
from unittest import mock

import keras
import numpy as np

from distc._signature import Step

__all__ = ["export", "load_state"]


def _on_jax(model: Any, feeds: Mapping[str, Any], path: str | os.PathLike[str]) -> Step:
    """Exports what Keras saves of the model, on the backend of JAX: a file .keras is of no backend."""
    specs = keras.tree.map_structure(lambda each: {"shape": [None, *each.shape[1:]], "dtype": keras.backend.standardize_dtype(each.dtype)}, dict(feeds))
    with tempfile.TemporaryDirectory(prefix="distc-") as name:
        folder = pathlib.Path(name)
        model.save(folder / "model.keras")
        # Optimizers that are loaded name their variables otherwise; the order is the same. Keras saves no states of random generators.
        variables = _get_variables(model)
        (folder / "step.json").write_text(json.dumps({"feeds": specs, "names": list(variables)}))
        values = [keras.ops.convert_to_numpy(variable.value) for variable in variables.values()]
        # NumPy writes no bfloat16, whose values float32 has.
        np.savez(folder / "state.npz", *(value.astype(np.float32) if value.dtype.name == "bfloat16" else value for value in values))
        command = [sys.executable, "-m", "distc.keras", str(folder), os.fspath(path)]
        packages = [str(pathlib.Path(__file__).resolve().parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": os.pathsep.join(packages)})
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if re.match(r"[A-Za-z_.]+(Error|Exception|Operation): ", line)]
        reason = said[-1] if said else done.stderr.strip() or f"it ended with status {done.returncode}"
        raise ValueError(f"the model cannot be exported through the file that Keras saves of it: {reason}; where it has code of its own, set "
                         "KERAS_BACKEND=jax before Keras is imported")
    return Step.read(os.fspath(path))


def _export_saved(folder: pathlib.Path, path: str) -> None:
    """What _on_jax starts."""
    import jax

    model = keras.saving.load_model(folder / "model.keras")
    step = json.loads((folder / "step.json").read_text())
    feeds = jax.tree.map(lambda spec: jax.ShapeDtypeStruct((2, *spec["shape"][1:]), spec["dtype"]), step["feeds"],
                         is_leaf=lambda each: isinstance(each, dict) and set(each) == {"shape", "dtype"})
    # On PyTorch optimizers are classes of that backend, which have the names of those of all.
    saved, of_all = model.optimizer, getattr(keras.optimizers, type(model.optimizer).__name__, type(model.optimizer))
    saved.build(model.trainable_variables)
    if type(saved) is not of_all:
        model.optimizer = of_all.from_config(saved.get_config())
        model.optimizer.build(model.trainable_variables)
        for variable, value in zip(model.optimizer.variables, saved.variables):
            variable.assign(value)
    variables = list(_get_variables(model).values())
    if len(variables) != len(step["names"]):
        raise ValueError(f"what Keras saves of it has {len(variables)} variables, and the model {len(step['names'])}")
    with np.load(folder / "state.npz") as state:
        for variable, value in zip(variables, state.values(), strict=True):
            variable.assign(value)
    with _expect_kept_assignments(model):
        _export(model, feeds, path, dict(zip(step["names"], variables)))


@contextlib.contextmanager
def _expect_kept_assignments(model: Any) -> Iterator[None]:
    """Refuses layers that assign a trained variable when they are called: on JAX Keras goes on with the old value, on other backends with the new one."""
    assign, compute = keras.Variable.assign, model.compute_loss_and_updates
    trained = {id(variable): variable.path for variable in model.trainable_variables}

    assigned: list[str] = []

    def watch(variable: Any, value: Any) -> Any:
        if id(variable) in trained:
            assigned.append(trained[id(variable)])
        return assign(variable, value)

    def compute_watched(*args: Any, **kwargs: Any) -> Any:
        with mock.patch.object(keras.Variable, "assign", watch):
            computed = compute(*args, **kwargs)
        if assigned:  # What a layer raises Keras makes an error of its own.
            raise NotImplementedError(f"a layer assigns the trained variable '{assigned[0]}' when it is called (SpectralNormalization does), which is kept on the backends of TensorFlow "
                                      "and PyTorch, and is not on JAX's, whose step this would be")
        return computed

    with mock.patch.object(model, "compute_loss_and_updates", compute_watched):
        yield


def _by_path(variables: Any) -> dict[str, Any]:
    """Variables by their paths (sequential/dense/kernel); of those with the same, the later ones are numbered."""
    named: dict[str, Any] = {}
    for variable in variables:
        name, number = variable.path, 0
        while name in named:
            number += 1
            name = f"{variable.path}_{number}"
        named[name] = variable
    return named


def _get_variables(model: Any) -> dict[str, Any]:
    return _by_path([*model.trainable_variables, *model.non_trainable_variables, *model.optimizer.variables])


def export(model: Any, batch: Any, path: str | os.PathLike[str]) -> Step:
    """Writes the training step of a compiled model to `path` (a file .mlir), with its signature (.json) and initial state (.npz) beside it.

    model:  with an optimizer and a loss (model.compile). On the backends of TensorFlow and PyTorch, one that Keras can save: its step is the same, and
            is traced by JAX in a process of its own, which needs jax installed; random numbers are JAX's. Its variables, those of the optimizer and the states of
            random generators are the state, under their paths. The loss is that of fit: with what layers add to it.
    batch:  (x, y) or (x, y, sample_weight) as fit takes them, arrays or what has a shape and a dtype; their feeds are called x, y,
            sample_weight, with the keys of dictionaries behind. The first axis of each is the batch's; its size is left open.
    """
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
        raise ValueError("the batch is (x, y) or (x, y, sample_weight)")
    if getattr(model, "optimizer", None) is None:
        raise ValueError("the model has no optimizer: call model.compile(optimizer, loss)")
    if type(model).train_step is not keras.Model.train_step:
        raise NotImplementedError("the model has a training step of its own: write it as a function of JAX, and give it to distc.jax.export")
    feeds = dict(zip(("x", "y", "sample_weight"), batch))
    if not model.built:
        model(keras.tree.map_structure(lambda each: np.zeros((2, *each.shape[1:]), keras.backend.standardize_dtype(each.dtype)), feeds["x"]))
    model.optimizer.build(model.trainable_variables)
    if keras.backend.backend() != "jax":
        return _on_jax(model, feeds, path)
    return _export(model, feeds, path, _get_variables(model))


def _export(model: Any, feeds: Mapping[str, Any], path: str | os.PathLike[str], variables: Mapping[str, Any]) -> Step:
    import jax

    from distc import jax as distc_jax

    names = list(variables)
    ends = np.cumsum([len(model.trainable_variables), len(model.non_trainable_variables)])

    def step(state: dict[str, Any], batch: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        values = [state[name] for name in names]
        trained, rest, slots = values[:ends[0]], values[ends[0]:ends[1]], values[ends[1]:]
        metrics = [variable.value for variable in model.metrics_variables]
        compute = jax.value_and_grad(model.compute_loss_and_updates, has_aux=True)
        (_, (loss, _, rest, _)), gradients = compute(trained, rest, metrics, batch["x"], batch["y"], batch.get("sample_weight"),
                                                     training=True, optimizer_variables=slots)
        trained, slots = model.optimizer.stateless_apply(slots, gradients, trained)
        return dict(zip(names, [*trained, *rest, *slots])), loss

    return distc_jax.export(step, {name: variable.value for name, variable in variables.items()}, dict(feeds), path)


def load_state(model: Any, state: Mapping[str, Any]) -> None:
    """Gives the model, its optimizer and its random generators the values of a state that training gave (Result.state)."""
    for name, variable in _get_variables(model).items():
        if name not in state:
            raise ValueError(f"the state has no '{name}'")
        variable.assign(state[name])


if __name__ == "__main__":
    _export_saved(pathlib.Path(sys.argv[1]), sys.argv[2])
