"""What --emit=graphdef writes, trained by stock TensorFlow: the losses and the last variables are those of the model, whatever the
strategy and the tasks, and the model's own graph goes on from the checkpoint.

  graphdef_tensorflow.py [MODEL…]
"""
import sys

import numpy as np

from support import DISTC, Checks, Folder, Model, must, need_tensorflow, need_tools
from tensorflow_runs import (ONE_TASK, ONE_TASK_TWO_SERVERS, TWO_WORKERS, TWO_WORKERS_TWO_SERVERS, Originals, export,
                             hosts, load_runner, make_apart)

CASES = [
    ("mlp-adam", "AllReduce", ONE_TASK),
    ("mlp-adam", "AllReduce", TWO_WORKERS),
    ("mlp-adam", "AllReduce:chunk_size=1", TWO_WORKERS),
    ("mlp-adam-ref", "AllReduce", ONE_TASK),
    ("mlp-adam-ref", "AllReduce", TWO_WORKERS),
    ("mlp-clip", "AllReduce", ONE_TASK),
    ("mlp-clip", "AllReduce", TWO_WORKERS),
    ("convnet-momentum", "AllReduce", TWO_WORKERS),
    ("functions", "AllReduce", ONE_TASK),
    ("mlp-adam", "PS", TWO_WORKERS),
    ("mlp-adam", "PSLoadBalancing", TWO_WORKERS_TWO_SERVERS),
    ("mlp-adam", "PSLoadBalancing:local_proxy_variable=true", TWO_WORKERS_TWO_SERVERS),
    ("mlp-adam", "PSLoadBalancing", ONE_TASK_TWO_SERVERS),
    ("mlp-adam-ref", "PSLoadBalancing", TWO_WORKERS_TWO_SERVERS),
    ("mlp-clip", "PSLoadBalancing", TWO_WORKERS_TWO_SERVERS),
    ("mlp-momentum", "PS", ONE_TASK),
    ("mlp-momentum", "Parallax", TWO_WORKERS_TWO_SERVERS),
    ("mlp-adam", "PartitionedPS", TWO_WORKERS_TWO_SERVERS),
    ("mlp-adam", "UnevenPartitionedPS", TWO_WORKERS_TWO_SERVERS),
    ("mlp-adam", "PartitionedAR", ONE_TASK),
    ("mlp-adam", "RandomAxisPartitionAR", TWO_WORKERS),
    ("convnet-momentum", "UnevenPartitionedPS", TWO_WORKERS_TWO_SERVERS),
    ("mlp-adam", "ShardedUpdate", TWO_WORKERS),
    ("mlp-adam", "ShardedUpdate:stage=1", TWO_WORKERS),
    ("mlp-momentum-ref", "ShardedUpdate", TWO_WORKERS),
    ("mlp-adam", "ShardedUpdate", ONE_TASK),
    ("embedding-adagrad", "AllReduce", ONE_TASK),
    ("embedding-adagrad", "AllReduce", TWO_WORKERS),
    ("embedding-adagrad-ref", "AllReduce", TWO_WORKERS),
    ("embedding-adagrad", "PSLoadBalancing", TWO_WORKERS_TWO_SERVERS),
    ("embedding-adagrad", "Parallax", TWO_WORKERS_TWO_SERVERS),
    ("embedding-adagrad", "PartitionedPS", TWO_WORKERS_TWO_SERVERS),
    ("embedding-adagrad", "PartitionedAR", TWO_WORKERS),
    ("mlp-sgd", "AllReduce:aggregator=median", TWO_WORKERS),  # of two, the mean
    ("mlp-momentum", "PSLoadBalancing", TWO_WORKERS_TWO_SERVERS),
    ("mlp-adam-ref", "PSLoadBalancing:local_proxy_variable=true", TWO_WORKERS_TWO_SERVERS),
    ("mlp-dropout", "AllReduce", TWO_WORKERS),
    ("mlp-dropout", "PSLoadBalancing", ONE_TASK_TWO_SERVERS),
]
# A session that goes on from a checkpoint begins with the first of these models' random numbers.
DRAWING = {"mlp-dropout"}
# Two halves of a batch, one update.
ACCUMULATING = [
    ("mlp-adam", "AllReduce:accumulate_steps=2", ONE_TASK),
    ("mlp-adam", "AllReduce:accumulate_steps=2", TWO_WORKERS),
    ("mlp-adam", "PSLoadBalancing:accumulate_steps=2,local_proxy_variable=true", TWO_WORKERS_TWO_SERVERS),
    ("embedding-adagrad", "Parallax:accumulate_steps=2", TWO_WORKERS_TWO_SERVERS),
    ("embedding-adagrad", "Parallax:accumulate_steps=2", ONE_TASK_TWO_SERVERS),
    ("mlp-adam", "PSLoadBalancing:replicas_to_aggregate=4", TWO_WORKERS_TWO_SERVERS),
    ("embedding-adagrad", "PSLoadBalancing:replicas_to_aggregate=4", ONE_TASK_TWO_SERVERS),
]


def trains_alike(runner, originals, model, strategy, tasks, parts=1):
    """`parts` batches an update. Works for any folder that Model describes."""
    expect = np.load(model.folder / "expect.npz")
    steps = model.case["steps"]
    batch = model.case["batch"]
    with Folder() as folder:
        export(folder / "graphs", model, strategy, tasks, batch and batch // parts)
        try:
            losses = runner.train(folder / "graphs", model.feeds, parts * steps, restore=model.checkpoint,
                                  save=folder / "last.ckpt", timeout=60)
        except runner.TaskError as error:
            return [error]
        losses = np.mean(np.reshape(losses, [-1, parts]), axis=1)
        found = []
        want = expect["loss"] / (parts if model.case["loss_is_sum"] else 1)
        off = np.max(np.abs(losses - want) / np.maximum(np.abs(want), 1e-12))
        if not off <= model.case["loss_rtol"]:
            found.append(f"loss off by {off:.1e}: got {losses}, want {want}")
        return found + saved_alike(originals, model, folder / "last.ckpt", expect)


def saved_alike(originals, model, checkpoint, expect):
    _, tf = need_tensorflow()
    first, last = (tf.train.load_checkpoint(str(path)) for path in (model.checkpoint, checkpoint))
    if first.get_variable_to_shape_map() != last.get_variable_to_shape_map():
        return [f"the checkpoint holds {last.get_variable_to_shape_map()}, that of the original graph {first.get_variable_to_shape_map()}"]
    final = {key: last.get_tensor(key) for key in last.get_variable_to_shape_map()}
    found = []
    for key in expect.files:
        if key.startswith("var/"):
            found += model.variable_differences(key[len("var/"):], final, expect[key])
    return found + originals.differences(model, checkpoint, model.case["steps"], draws=model.name in DRAWING)


def small_graph_trains_alike(runner, write, strategy, tasks, steps=30):
    with Folder() as folder:
        if not make_apart(write, folder, steps):
            return ["the graph could not be made"]
        must([DISTC, "compile", folder / "graph.meta", "--strategy", strategy, *tasks, "--emit=graphdef", "-o", folder / "graphs"])
        try:
            losses = runner.train(folder / "graphs", folder / "feeds.npz", steps, timeout=60)
        except runner.TaskError as error:
            return [error]
        want = np.load(folder / "losses.npy")
        off = np.max(np.abs(np.ravel(losses) - want) / want)
        return [] if off < 1e-5 else [f"loss off by {off:.1e}: got {losses}, want {want}"]


def write_constants(folder, steps):
    """A regression whose examples are constants, without a feed: its gradients are the same in all replicas, and nobody pushes them; yet
    no worker reads a later step's values."""
    tf1, tf = need_tensorflow()
    tf1.disable_eager_execution()
    draw = np.random.RandomState(0)
    with tf.Graph().as_default() as graph:
        x, y = (tf.constant(draw.randn(12, size).astype(np.float32)) for size in (5, 3))
        kernel = tf1.get_variable("kernel", [5, 3], initializer=tf1.constant_initializer(0.1), use_resource=True)
        bias = tf1.get_variable("bias", [3], initializer=tf1.zeros_initializer(), use_resource=True)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, kernel) + bias - y), name="loss")
        train = tf1.train.MomentumOptimizer(0.05, 0.9).minimize(loss, name="train")
        write_graph(folder, graph, loss, train, [{} for _ in range(steps)])
    np.savez(folder / "feeds.npz", unused=np.zeros(1, np.float32))


def write_clipped_rows(folder, steps, batch=8):
    """Rows of a table that one batch has several times, clipped by their norm as backward made them: none may be added before."""
    tf1, tf = need_tensorflow()
    tf1.disable_eager_execution()
    draw = np.random.RandomState(0)
    with tf.Graph().as_default() as graph:
        ids = tf1.placeholder(tf.int32, [None], "ids")
        table = tf1.get_variable("table", [5, 3], initializer=tf1.constant_initializer(draw.randn(5, 3)), use_resource=True)
        kernel = tf1.get_variable("kernel", [3, 2], initializer=tf1.constant_initializer(draw.randn(3, 2)), use_resource=True)
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.embedding_lookup(table, ids), kernel) - 1.0), name="loss")
        gradients, _ = tf.clip_by_global_norm(tf1.gradients(loss, [table, kernel]), 0.1)
        train = tf1.train.AdagradOptimizer(0.3).apply_gradients(zip(gradients, [table, kernel]), name="train")
        batches = draw.randint(0, 5, [steps, batch]).astype(np.int32)
        write_graph(folder, graph, loss, train, [{ids: rows} for rows in batches])
    np.savez(folder / "feeds.npz", ids=batches.reshape(-1))


def write_graph(folder, graph, loss, train, feeds):
    """graph.meta, and losses.npy: what TensorFlow makes of it on one device, a step for each of `feeds`."""
    tf1, _ = need_tensorflow()
    init = tf1.global_variables_initializer()
    meta = tf1.train.export_meta_graph(graph=graph, saver_def=tf1.train.Saver().saver_def)
    for key, node in (("train_op", train), ("init_op", init), ("losses", loss)):
        meta.collection_def[key].node_list.value[:] = [node.name]
    (folder / "graph.meta").write_bytes(meta.SerializeToString())
    with tf1.Session(graph=graph) as session:
        session.run(init)
        np.save(folder / "losses.npy", [session.run([loss, train], feed)[0] for feed in feeds])


def main():
    need_tensorflow()
    need_tools()
    runner, originals = load_runner(), Originals()
    checks = Checks(share=0.4)
    for parts, cases in ((1, CASES), (2, ACCUMULATING)):
        for name, strategy, (tasks, flags) in cases:
            if len(sys.argv) < 2 or name in sys.argv[1:]:
                checks.check(f"{name}, {strategy}, {tasks}", trains_alike, runner, originals, Model(name), strategy, flags, parts)
    if len(sys.argv) < 2 or "constants" in sys.argv[1:]:
        for strategy in ("PSLoadBalancing", "PartitionedPS", "PSLoadBalancing:local_proxy_variable=true"):
            name, flags = TWO_WORKERS_TWO_SERVERS
            checks.check(f"constants, {strategy}, {name}", small_graph_trains_alike, runner, write_constants, strategy, flags)
    if len(sys.argv) < 2 or "clipped-rows" in sys.argv[1:]:
        for strategy, (name, flags) in (("PSLoadBalancing", TWO_WORKERS_TWO_SERVERS), ("PartitionedPS", ONE_TASK_TWO_SERVERS),
                                        ("Parallax", TWO_WORKERS_TWO_SERVERS)):
            checks.check(f"clipped rows, {strategy}, {name}", small_graph_trains_alike, runner, write_clipped_rows, strategy,
                         [*flags, "--batch", 8])
    with Folder() as folder:
        flags = hosts(folder / "resources.yml", 3)
        for strategy in ("PSLoadBalancing:total_replicas=2", "AllReduce:total_replicas=2"):
            if len(sys.argv) < 2 or "mlp-momentum" in sys.argv[1:]:
                checks.check(f"mlp-momentum, {strategy}, 3 hosts", trains_alike, runner, originals, Model("mlp-momentum"), strategy, flags)
    checks.exit()


if __name__ == "__main__":
    main()
