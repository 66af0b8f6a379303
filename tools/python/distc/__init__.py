"""distc from Python: training steps become distributed executables.

    step = distc.jax.export(train_step, state, batch, "mlp.mlir")             # of JAX
    step = distc.torch.export(module, loss, optimizer, batch, "mlp.mlir")     # of PyTorch
    step = distc.keras.export(model, (x, y), "mlp.mlir")                      # of Keras 3
    step = distc.tensorflow.export(graph, "mlp.meta", loss=loss, train_op=op) # of TensorFlow
    executable = distc.compile(step, strategy="AllReduce", replicas=2, batch=64)
    result = executable.train({"x": x, "y": y}, steps=100)
    result.losses, result.state

The command `distc` does all of the work; it is found as $DISTC, in the wheel, on the PATH, or beside this package in a build of the
repository.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distc import jax, keras, tensorflow, torch
    from distc._executable import CompileError, Executable, Result, RunError, StepRecord, compile

__all__ = ["CompileError", "Executable", "Result", "RunError", "StepRecord", "compile", "jax", "keras", "tensorflow", "torch"]


def __getattr__(name: str) -> Any:
    """Each part is loaded when it is asked for: frameworks need not be there for the others."""
    if name in ("jax", "keras", "tensorflow", "torch"):
        return importlib.import_module(f"distc.{name}")
    if name in __all__:
        return getattr(importlib.import_module("distc._executable"), name)
    raise AttributeError(f"module 'distc' has no attribute '{name}'")
