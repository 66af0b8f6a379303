"""What --emit=graphdef writes of strategies that do not compute what one device computes, trained by stock TensorFlow: asynchronous
and stale ones, compressors, aggregators, backup workers. And what it keeps beside the model's variables: averages, copies.

  graphdef_relaxed_tensorflow.py [MODEL…]
"""
import sys

import numpy as np

from support import Checks, Folder, Model, must, need_tensorflow, need_tools, read_losses
from tensorflow_runs import (FOUR_IN_ONE_TASK, ONE_TASK, ONE_TASK_TWO_SERVERS, TWO_WORKERS, TWO_WORKERS_TWO_SERVERS,
                             Originals, export, load_runner)

CONVERGING = [
    ("mlp-adam", "PSLoadBalancing:sync=false,local_proxy_variable=true", TWO_WORKERS_TWO_SERVERS),
    ("mlp-adam", "PSLoadBalancing:sync=false", ONE_TASK_TWO_SERVERS),
    ("mlp-momentum", "PSLoadBalancing:staleness=2", TWO_WORKERS_TWO_SERVERS),
    ("mlp-momentum", "PSLoadBalancing:replicas_to_aggregate=3", TWO_WORKERS_TWO_SERVERS),
]
CONVERGING += [("mlp-sgd", f"{name}:aggregator={rule}", tasks) for name, rule, tasks in (
    ("AllReduce", "trimmed_mean:1", FOUR_IN_ONE_TASK), ("AllReduce", "krum:0", FOUR_IN_ONE_TASK),
    ("AllReduce", "multi_krum:0,2", FOUR_IN_ONE_TASK), ("AllReduce", "geometric_median", TWO_WORKERS),
    ("PSLoadBalancing", "median", TWO_WORKERS_TWO_SERVERS))]
CONVERGING += [("mlp-sgd", f"AllReduce:compressor={name}", TWO_WORKERS) for name in ("fp16", "fp16_ef", "bf16", "bf16_ef")]
STEPS_TO_CONVERGE = 30

# Compressors of each replica's own gradients: numbers do not depend on who runs them.
AS_NATIVE = [
    ("mlp-momentum", "AllReduce:compressor=power_sgd,power_sgd_rank=2", TWO_WORKERS),
    ("mlp-momentum", "AllReduce:compressor=power_sgd", ONE_TASK),
    ("mlp-sum", "AllReduce:compressor=power_sgd", TWO_WORKERS),
    ("mlp-momentum", "AllReduce:compressor=top_k,top_k_ratio=0.2", TWO_WORKERS),
    ("mlp-momentum", "AllReduce:compressor=top_k,top_k_ratio=0.2", ONE_TASK),
]

AVERAGED = [
    ("mlp-momentum", "AllReduce", TWO_WORKERS),
    ("mlp-momentum", "PSLoadBalancing", TWO_WORKERS_TWO_SERVERS),
    ("mlp-adam-ref", "PSLoadBalancing", TWO_WORKERS_TWO_SERVERS),
    ("mlp-adam", "PartitionedPS", ONE_TASK_TWO_SERVERS),
    ("mlp-momentum", "ShardedUpdate", TWO_WORKERS),
]

AVERAGE, COPY = "/ExponentialMovingAverage", "/proxy/copy"


def load(model):
    with np.load(model.feeds) as feeds:
        return {key: feeds[key] for key in feeds.files}


def one_batch(model):
    return {key: array[:model.case["batch"]] if array.ndim else array for key, array in load(model).items()}


def converges(runner, model, strategy, tasks):
    with Folder() as folder:
        export(folder / "graphs", model, strategy, tasks, model.case["batch"])
        losses = runner.train(folder / "graphs", one_batch(model), STEPS_TO_CONVERGE, restore=model.checkpoint, timeout=60)
    return [] if losses[-1] < 0.9 * losses[0] else [f"the loss of one batch does not fall: {losses}"]


def computes_as_native(runner, model, strategy, tasks):
    """Losses and variables are the executable's."""
    with Folder() as folder:
        export(folder / "graphs", model, strategy, tasks, model.case["batch"])
        losses = runner.train(folder / "graphs", load(model), model.case["steps"], restore=model.checkpoint, save=folder / "last.ckpt", timeout=60)
        native, variables = train_native(folder, model, strategy)
        _, tf = need_tensorflow()
        last = tf.train.load_checkpoint(str(folder / "last.ckpt"))
        found = []
        if not np.allclose(losses, native, rtol=model.case["loss_rtol"]):
            found.append(f"losses are {losses}, the executable's {native}")
        final = {name: last.get_tensor(name) for name in last.get_variable_to_shape_map()}
        for name, value in variables.items():
            found += model.variable_differences(name, final, value)
        expect = np.load(model.folder / "expect.npz")["loss"]
        if np.allclose(losses[1:], expect[1:], rtol=1e-6):
            found.append("nothing was compressed")
    return found


def draws_as_native(runner, name, strategy, tasks):
    """PowerSGD draws a column of Q anew where a gradient has too few of its own: here in two steps whose examples are all alike.
    What was drawn counts in the steps behind them."""
    with Folder() as folder:
        model = Model(name)
        data = load(model)
        for array in data.values():
            array[:2 * model.case["batch"]] = array[0]
        model.feeds = folder / "feeds.npz"
        np.savez(model.feeds, **data)
        return computes_as_native(runner, model, strategy, tasks)


def train_native(folder, model, strategy):
    model.compile(folder / "train", 2, strategy)
    must(model.run_command(folder / "train", folder))
    losses = read_losses(folder / "log.jsonl")
    with np.load(folder / "final.npz") as final:
        return losses, {name: final[name] for name in final.files}


def find_variables(graphs, suffix):
    """Of worker 0's graph, the names before `suffix`."""
    tf1, _ = need_tensorflow()
    meta = tf1.MetaGraphDef.FromString((graphs / "worker-0.meta").read_bytes())
    return sorted(node.name[:-len(suffix)] for node in meta.graph_def.node if node.op == "VarHandleOp" and node.name.endswith(suffix))


def averages(runner, model, strategy, tasks):
    """After each step, in every worker's eyes: average -= (1 - decay) * (average - variable), from the initial value on."""
    decay, found = 0.75, []
    with Folder() as folder:
        export(folder / "graphs", model, f"{strategy}:variable_averages={decay}", tasks, model.case["batch"])
        names = find_variables(folder / "graphs", AVERAGE)
        with runner.Cluster(folder / "graphs", load(model), timeout=60) as cluster:
            cluster.do("initialize")
            expected = {name: cluster.ask(0, "read", name) for name in names}
            first = dict(expected)
            for step in range(3):
                list(cluster.train(1, first=step))
                for name in names:
                    expected[name] = expected[name] - (1 - decay) * (expected[name] - cluster.ask(0, "read", name))
                    for worker in range(len(cluster.workers)):
                        got = cluster.ask(worker, "read", name + AVERAGE)
                        if not np.allclose(got, expected[name], rtol=1e-5, atol=1e-7):
                            found.append(f"step {step}: worker {worker}'s average of {name} is off by {np.max(np.abs(got - expected[name])):.1e}")
            if cluster.ask(0, "read", "global_step") != 3:
                found.append("3 steps count as another number")
            found += [f"{name} was not trained" for name in names if np.array_equal(first[name], expected[name])]
    return found or ([] if names else ["no average is kept"])


def keeps_copies(runner, model, strategy, tasks):
    """Every worker's copy is the server's variable: from the beginning, after restoring, and after each step."""
    found = []
    with Folder() as folder:
        export(folder / "graphs", model, strategy, tasks, model.case["batch"])
        names = find_variables(folder / "graphs", COPY)
        with runner.Cluster(folder / "graphs", load(model), timeout=60) as cluster:
            def compare(when):
                for worker in range(len(cluster.workers)):
                    for name in names:
                        copy, own = cluster.ask(worker, "read", name + COPY), cluster.ask(0, "read", name)
                        if not np.array_equal(copy, own):
                            found.append(f"{when}: worker {worker}'s copy of {name} is off by {np.max(np.abs(copy - own)):.1e}")
            cluster.do("initialize")
            compare("initialized")
            cluster.do("restore", str(model.checkpoint))
            compare("restored")
            for step in range(2):
                list(cluster.train(1, first=step))
                compare(f"after step {step}")
    return found or ([] if names else ["no copy is kept"])


def drops_late_gradients(runner, originals, name, strategy, tasks):
    """Backup workers: there is one batch, with two halves that are alike, so that either replica's gradient is the whole batch's
    whichever step it is at. What comes late must not be in the variables."""
    steps = 8
    with Folder() as folder:
        model = Model(name)
        half = model.case["batch"] // 2
        data = {key: np.concatenate([array[:half], array[:half]]) for key, array in load(model).items()}
        model.feeds = folder / "feeds.npz"
        np.savez(model.feeds, **data)
        export(folder / "graphs", model, strategy, tasks, model.case["batch"])
        runner.train(folder / "graphs", model.feeds, steps, restore=model.checkpoint, save=folder / "last.ckpt", timeout=60)
        return originals.differences(model, folder / "last.ckpt", steps)


def main():
    need_tensorflow()
    need_tools()
    runner, originals = load_runner(), Originals()
    checks = Checks(share=0.6)

    def check(name, strategy, tasks, function, *arguments):
        def run():
            try:
                return function(*arguments, strategy, tasks[1])
            except runner.TaskError as error:
                return [error]
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            checks.check(f"{name}, {strategy}, {tasks[0]}", run)

    for function, cases in ((converges, CONVERGING), (computes_as_native, AS_NATIVE), (averages, AVERAGED)):
        for name, strategy, tasks in cases:
            check(name, strategy, tasks, function, runner, Model(name))
    check("mlp-momentum", "AllReduce:compressor=power_sgd,power_sgd_rank=2", TWO_WORKERS, draws_as_native, runner, "mlp-momentum")
    for name in ("mlp-adam", "mlp-adam-ref"):
        check(name, "PSLoadBalancing:local_proxy_variable=true", TWO_WORKERS_TWO_SERVERS, keeps_copies, runner, Model(name))
    check("mlp-momentum", "PSLoadBalancing:replicas_to_aggregate=1", TWO_WORKERS_TWO_SERVERS, drops_late_gradients, runner, originals, "mlp-momentum")
    checks.exit()


if __name__ == "__main__":
    main()
