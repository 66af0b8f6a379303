"""Training steps of Keras 3 as files that distc compiles: of models on the backend of JAX."""
from __future__ import annotations

import os
from typing import Any, Mapping

import keras
import numpy as np

from distc._signature import Step

__all__ = ["export", "load_state"]


def _need_jax() -> None:
    backend = keras.backend.backend()
    if backend == "jax":
        return
    way = "save its training step as a SavedModel, which distc compiles" if backend == "tensorflow" else "give distc.torch.export its module"
    raise NotImplementedError(f"Keras runs on the backend {backend}: set KERAS_BACKEND=jax before it is imported, or {way}")


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

    model:  with an optimizer and a loss (model.compile), on the backend of JAX. Its variables, those of the optimizer and the states of
            random generators are the state, under their paths. The loss is that of fit: with what layers add to it.
    batch:  (x, y) or (x, y, sample_weight) as fit takes them, arrays or what has a shape and a dtype; their feeds are called x, y,
            sample_weight, with the keys of dictionaries behind. The first axis of each is the batch's; its size is left open.
    """
    import jax

    from distc import jax as distc_jax

    _need_jax()
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
        raise ValueError("the batch is (x, y) or (x, y, sample_weight)")
    if getattr(model, "optimizer", None) is None:
        raise ValueError("the model has no optimizer: call model.compile(optimizer, loss)")
    if type(model).train_step is not keras.Model.train_step:
        raise NotImplementedError("the model has a training step of its own: write it as a function of JAX, and give it to distc.jax.export")
    feeds = dict(zip(("x", "y", "sample_weight"), batch))
    if not model.built:
        model(jax.tree.map(lambda each: np.zeros((2, *each.shape[1:]), each.dtype), feeds["x"]))
    model.optimizer.build(model.trainable_variables)
    variables = _get_variables(model)
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

    return distc_jax.export(step, {name: variable.value for name, variable in variables.items()}, feeds, path)


def load_state(model: Any, state: Mapping[str, Any]) -> None:
    """Gives the model, its optimizer and its random generators the values of a state that training gave (Result.state)."""
    for name, variable in _get_variables(model).items():
        if name not in state:
            raise ValueError(f"the state has no '{name}'")
        variable.assign(state[name])
