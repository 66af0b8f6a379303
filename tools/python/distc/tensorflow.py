"""Training graphs of TensorFlow (tf.compat.v1) as files that distc compiles."""
from __future__ import annotations

import os
import pathlib
from typing import Any, Mapping

import tensorflow as tf

from distc._signature import Leaf, Step

__all__ = ["export", "load_state"]

_V1 = tf.compat.v1


def _get_shape(shape: Any) -> tuple[int | None, ...]:
    return () if shape.rank is None else tuple(shape.as_list())


def _make_leaf(tensor: Any, name: str) -> Leaf:
    return Leaf(name, tensor.dtype.base_dtype.name, _get_shape(tensor.shape))


def export(graph: tf.Graph, path: str | os.PathLike[str], *, loss: Any, train_op: Any, init_op: Any = None,
           fetches: Mapping[str, Any] | None = None, session: Any = None) -> Step:
    """Writes a graph that trains a model, with gradients and optimizer in it, as the MetaGraphDef `path`.

    `loss` is its tensor of one number, `train_op` the operation (or tensor) that trains, `init_op` the one that
    initializes; without it each variable's own initializer does. `fetches`: further tensors by name, which a training
    logs where they have one number, and `Executable.evaluate` gives. The batch is fed by the names of placeholders whose
    first size is open. With a `session`, training begins with the values that variables have there. Raises ValueError for
    what is no part of the graph."""
    path = pathlib.Path(path)
    for what, value in {"loss": loss, "train_op": train_op, "init_op": init_op, **(fetches or {})}.items():
        if value is not None and getattr(value, "graph", None) is not graph:
            raise ValueError(f"'{what}' is no tensor and no operation of the graph")
    for name, tensor in (fetches or {}).items():
        if tensor.op.name != name:
            with graph.as_default(), _V1.device(None), _V1.name_scope(None):
                if name in (operation.name for operation in graph.get_operations()):
                    raise ValueError(f"the graph has another node with the name of the fetch '{name}'")
                tf.identity(tensor, name)
    variables = graph.get_collection(_V1.GraphKeys.GLOBAL_VARIABLES)
    with graph.as_default():
        if init_op is None and session is None:
            init_op = _V1.variables_initializer(variables, "distc_init")
        _V1.train.export_meta_graph(str(path))
    feeds = [operation.outputs[0] for operation in graph.get_operations() if operation.type in ("Placeholder", "PlaceholderWithDefault")]
    flags = [f"--loss={loss.name}", f"--train-op={getattr(train_op, 'op', train_op).name}"]
    if init_op is not None:
        flags.append(f"--init-op={getattr(init_op, 'op', init_op).name}")
    flags += [f"--fetch={name}:0" for name in fetches or {}]
    initial = {variable.op.name: value for variable, value in zip(variables, session.run(variables))} if session else None
    return Step(path, [_make_leaf(variable, variable.op.name) for variable in variables],
                [_make_leaf(feed, feed.op.name) for feed in feeds if feed.op.type == "Placeholder"],
                [name for name, tensor in (fetches or {}).items() if tensor.shape.rank == 0], flags=flags, initial=initial,
                loss=loss.op.name)


def load_state(graph: tf.Graph, state: Mapping[str, Any], session: Any) -> None:
    """Gives the variables of a session the values of a training's result."""
    for variable in graph.get_collection(_V1.GraphKeys.GLOBAL_VARIABLES):
        variable.load(state[variable.op.name], session)
