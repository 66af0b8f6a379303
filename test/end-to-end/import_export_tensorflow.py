"""A graph that distc-translate imports and exports again trains in TensorFlow as the original does."""
import os
import subprocess
import sys

import numpy as np

from support import TRANSLATE, Checks, Folder, Model, model_names, need_tensorflow, need_tools


def round_trip(model, out):
    """import | export, as a user would do it."""
    imported = subprocess.run([TRANSLATE, "--import-graphdef", model.graph], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert imported.returncode == 0, imported.stderr.decode(errors="replace")
    exported = subprocess.run([TRANSLATE, "--export-graphdef", "-o", out], input=imported.stdout, stderr=subprocess.PIPE)
    assert exported.returncode == 0, exported.stderr.decode(errors="replace")


def value_of(graph, name):
    """A reference variable is its own value, a resource variable has a node that reads it."""
    handle = graph.get_tensor_by_name(name + ":0")
    return handle if handle.dtype._is_ref_dtype else graph.get_tensor_by_name(name + "/Read/ReadVariableOp:0")


def check_model(tf1, meta_type, graph_type, model):
    with Folder() as folder:
        round_trip(model, folder / "graph.meta")
        data = (folder / "graph.meta").read_bytes()
    meta = meta_type()
    try:
        meta.ParseFromString(data)
    except Exception:  # a GraphDef
        meta.graph_def.CopyFrom(graph_type.FromString(data))
    case, feeds, expect = model.case, np.load(model.feeds), np.load(model.folder / "expect.npz")
    import tensorflow as tf
    with tf.Graph().as_default() as graph:
        tf1.import_graph_def(meta.graph_def, name="")
        with tf1.Session(graph=graph, config=tf1.ConfigProto(intra_op_parallelism_threads=1)) as session:
            session.run(graph.get_operation_by_name(case["init_op"]))
            losses = []
            for step in range(case["steps"]):
                rows = lambda a: a if a.ndim == 0 else a[step * case["batch"] % len(a):][:case["batch"]]
                fed = {name + ":0": rows(feeds[name]) for name in feeds.files}
                losses.append(session.run([case["loss"], graph.get_operation_by_name(case["train_op"])], fed)[0])
            variables = [key[len("var/"):] for key in expect.files if key.startswith("var/")]
            final = dict(zip(variables, session.run([value_of(graph, name) for name in variables])))
    found = [p for name in variables for p in model.variable_differences(name, final, expect["var/" + name])]
    off = np.max(np.abs(np.array(losses) - expect["loss"]) / np.abs(expect["loss"]))
    if not off <= case["loss_rtol"]:
        found.append(f"loss off by {off:.1e}: got {losses}, want {expect['loss']}")
    return found


def main():
    tf1, _ = need_tensorflow()
    need_tools(TRANSLATE)
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

    checks = Checks()
    for name in sys.argv[1:] or model_names():
        checks.check(name, check_model, tf1, MetaGraphDef, GraphDef, Model(name))
    checks.exit()


if __name__ == "__main__":
    main()
