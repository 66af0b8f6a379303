"""distc from Python: training steps become distributed executables.

    step = distc.jax.export(train_step, state, batch, "mlp.mlir")
    executable = distc.compile(step, strategy="AllReduce", replicas=2, batch=64)
    result = executable.train({"x": x, "y": y}, steps=100)
    result.losses, result.state

The command `distc` does all of the work; it is found as $DISTC, on the PATH, or beside this package in a build of the
repository.
"""
from distc import jax
from distc._executable import CompileError, Executable, Result, RunError, compile

__all__ = ["CompileError", "Executable", "Result", "RunError", "compile", "jax"]
