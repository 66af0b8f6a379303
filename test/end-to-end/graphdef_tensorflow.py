"""What --emit=graphdef writes, trained by stock TensorFlow: the losses and the last variables are those of the model, whatever the
strategy and the tasks, and the checkpoint is one of the original graph.

  graphdef_tensorflow.py [MODEL…]
"""
import importlib.util
import sys

import numpy as np

from support import ROOT, Checks, Folder, Model, must, need_tensorflow, need_tools

# Tasks: what distc is told of them.
ONE_TASK = ("2 replicas in one task", ["--replicas", 2])
TWO_WORKERS = ("2 workers", ["--replicas", 2, "--one-process-per-replica"])
TWO_WORKERS_TWO_SERVERS = ("2 workers and 2 servers", ["--replicas", 2, "--ps", 2, "--one-process-per-replica"])
ONE_TASK_TWO_SERVERS = ("2 replicas in one task and 2 servers", ["--replicas", 2, "--ps", 2])

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
]

FOUR_IN_ONE_TASK = ("4 replicas in one task", ["--replicas", 4])

# What is asynchronous or stale does not compute what one device computes: it must converge.
CONVERGING = [
    ("mlp-adam", "PSLoadBalancing:sync=false", TWO_WORKERS_TWO_SERVERS),
    ("mlp-adam", "PSLoadBalancing:sync=false", ONE_TASK_TWO_SERVERS),
    ("mlp-momentum", "PSLoadBalancing:staleness=2", TWO_WORKERS_TWO_SERVERS),
]
CONVERGING += [("mlp-sgd", f"{name}:aggregator={rule}", tasks) for name, rule, tasks in (
    ("AllReduce", "trimmed_mean:1", FOUR_IN_ONE_TASK), ("AllReduce", "krum:0", FOUR_IN_ONE_TASK),
    ("AllReduce", "multi_krum:0,2", FOUR_IN_ONE_TASK), ("AllReduce", "geometric_median", TWO_WORKERS),
    ("PSLoadBalancing", "median", TWO_WORKERS_TWO_SERVERS))]
CONVERGING += [("mlp-sgd", f"AllReduce:compressor={name}", TWO_WORKERS) for name in ("fp16", "fp16_ef", "bf16", "bf16_ef")]
# Two halves of a batch, one update.
ACCUMULATING = [
    ("mlp-adam", "AllReduce:accumulate_steps=2", ONE_TASK),
    ("mlp-adam", "AllReduce:accumulate_steps=2", TWO_WORKERS),
    ("mlp-adam", "PSLoadBalancing:accumulate_steps=2", TWO_WORKERS_TWO_SERVERS),
]
STEPS_TO_CONVERGE = 30


def load_runner():
    spec = importlib.util.spec_from_file_location("run_in_tensorflow", ROOT / "tools" / "run_in_tensorflow.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_to(folder, model, strategy, tasks, parts=1):
    batch = ["--batch", model.case["batch"] // parts] if model.case["batch"] else []
    must([model.compile_command(folder)[0], "compile", model.graph, "--strategy", strategy, *tasks, *batch, "--emit=graphdef", "-o", folder])


def accumulates_alike(tf, runner, name, strategy, tasks):
    return trains_alike(tf, runner, name, strategy, tasks, parts=2)


def trains_alike(tf, runner, name, strategy, tasks, parts=1):
    model = Model(name)
    expect = np.load(model.folder / "expect.npz")
    with Folder() as folder:
        compile_to(folder / "graphs", model, strategy, tasks, parts)
        try:
            losses = runner.train(folder / "graphs", model.feeds, parts * model.case["steps"], restore=model.checkpoint,
                                  save=folder / "last.ckpt", timeout=60)
        except runner.TaskError as error:
            return [error]
        losses = np.mean(np.reshape(losses, [-1, parts]), axis=1)
        found = []
        want = expect["loss"] / (2 if model.case["loss_is_sum"] else 1)
        off = np.max(np.abs(losses - want) / np.maximum(np.abs(want), 1e-12))
        if not off <= model.case["loss_rtol"]:
            found.append(f"loss off by {off:.1e}: got {losses}, want {want}")
        first, last = (tf.train.load_checkpoint(str(path)) for path in (model.checkpoint, folder / "last.ckpt"))
        if first.get_variable_to_shape_map() != last.get_variable_to_shape_map():
            return found + [f"the checkpoint holds {last.get_variable_to_shape_map()}, that of the original graph "
                            f"{first.get_variable_to_shape_map()}"]
        final = {key: last.get_tensor(key) for key in last.get_variable_to_shape_map()}
        for key in expect.files:
            if key.startswith("var/"):
                found += model.variable_differences(key[len("var/"):], final, expect[key])
        return found


def converges(_, runner, name, strategy, tasks):
    model = Model(name)
    with np.load(model.feeds) as feeds:
        one_batch = {key: feeds[key][:model.case["batch"]] if feeds[key].ndim else feeds[key] for key in feeds.files}
    with Folder() as folder:
        compile_to(folder / "graphs", model, strategy, tasks)
        try:
            losses = runner.train(folder / "graphs", one_batch, STEPS_TO_CONVERGE, restore=model.checkpoint, timeout=60)
        except runner.TaskError as error:
            return [error]
    return [] if losses[-1] < 0.9 * losses[0] else [f"the loss of one batch does not fall: {losses}"]


def main():
    _, tf = need_tensorflow()
    need_tools()
    runner = load_runner()
    checks = Checks()
    for check, cases in ((trains_alike, CASES), (accumulates_alike, ACCUMULATING), (converges, CONVERGING)):
        for name, strategy, (tasks, flags) in cases:
            if len(sys.argv) < 2 or name in sys.argv[1:]:
                checks.check(f"{name}, {strategy}, {tasks}", check, tf, runner, name, strategy, flags)
    checks.exit()


if __name__ == "__main__":
    main()
