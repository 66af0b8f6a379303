"""Random training graphs in stock TensorFlow: as they are, unrolled for several replicas, and as --emit=graphdef writes them for random
strategies and tasks. The losses and the last variables of all of them, and of executables, agree to the rounding of float32.

  random_graphs_tensorflow.py [--seed S] [--count N]
"""
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tensorflow_runs import load_runner
from random_graphs import ACCUMULATED, BATCH, STEPS, Case, Trained, read_arguments
from support import BIN, DISTC, TRANSLATE, Checks, Folder, must, need_tensorflow, need_tools

OPT = BIN / "distc-opt"
COLLECTIVE = ("AllReduce", "AllReduce:chunk_size=1", "PartitionedAR", "RandomAxisPartitionAR:seed=3", "ShardedUpdate:stage=1",
              "ShardedUpdate:stage=2", f"AllReduce:accumulate_steps={ACCUMULATED}")
WITH_SERVERS = ("PS", "PSLoadBalancing", "PSLoadBalancing:local_proxy_variable=true", "PartitionedPS", "UnevenPartitionedPS", "Parallax",
                "RoundRobinPS", f"PSLoadBalancing:accumulate_steps={ACCUMULATED}")
TIMEOUT_S = 60  # of what would wait for ever
TASKS = 2  # workers and servers


class TensorFlow:
    """All tasks in this process: a server each, whose variables are forgotten after each graph."""

    def __init__(self, tf1, tf):
        self.tf1, self.tf = tf1, tf
        self.runner = load_runner()
        session_config = self.runner.session_config

        def limited(tf1, graph=None):
            config = session_config(tf1, graph)
            config.operation_timeout_in_ms = TIMEOUT_S * 1000
            return config
        self.runner.session_config = limited
        ports = iter(self.runner.free_ports(2 * TASKS))
        cluster = {job: [f"localhost:{next(ports)}" for _ in range(TASKS)] for job in ("worker", "ps")}
        self.servers = {(job, index): self.runner.start_server(cluster, job, index) for job in cluster for index in range(TASKS)}

    def read_variables(self, graph):
        """Operations that read all variables of `graph`, by name."""
        with graph.as_default():
            return {op.name: self.tf.raw_ops.ReadVariableOp(resource=op.outputs[0], dtype=op.get_attr("dtype"))
                    for op in graph.get_operations() if op.type == "VarHandleOp"}

    def train_here(self, path, case, replicas):
        """The graph itself, or its unrolled form, whose replicas have placeholders of their own."""
        graph = self.tf.Graph()
        with graph.as_default():
            definition = self.tf1.GraphDef()
            definition.ParseFromString(path.read_bytes())
            self.tf1.import_graph_def(definition, name="")
        placeholders = [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]
        losses = [op.outputs[0] for op in graph.get_operations() if re.fullmatch(r"(replica_\d+/)?loss", op.name)]
        reads = self.read_variables(graph)
        got = []
        with self.tf1.Session(graph=graph) as session:
            session.run("init")
            for step in range(STEPS):
                fed = {tensor: self.share(case, tensor, step, replicas) for tensor in placeholders}
                values = session.run([losses, "train"], fed)[0]
                got.append(np.sum(values) if case.graph.loss_is_sum else np.mean(values))
            return Trained(got, session.run(reads))

    def share(self, case, tensor, step, replicas):
        scope, _, name = tensor.op.name.rpartition("/")
        array = case.feeds[name]
        if array.ndim == 0:
            return array
        rows = BATCH // replicas
        first = step * BATCH + (int(scope.rsplit("_")[-1]) * rows if scope else 0)
        return array[first:first + rows]

    def train_tasks(self, folder, case, workers, parts):
        """What --emit=graphdef wrote."""
        workers = [self.runner.Worker(folder, self.servers["worker", index], index, case.feeds) for index in range(workers)]
        reads = [self.read_variables(worker.graph) for worker in workers]
        try:
            for worker in workers:
                worker.initialize()
            with ThreadPoolExecutor(len(workers)) as pool:
                losses = [sum(pool.map(lambda worker: worker.share * worker.step(step), workers)) for step in range(STEPS * parts)]
            variables = workers[0].session.run(reads[0])
        finally:
            for worker in workers:
                worker.session.close()
            for server in self.servers.values():
                self.tf1.Session.reset(server.target)
        losses = np.reshape(losses, [-1, parts]).mean(axis=1)
        return losses, variables


def join_shards(got, like):
    """Variables of `like` that `got` has, or all shards of."""
    found = {}
    for name, whole in like.items():
        if name in got and got[name].shape == whole.shape:
            found[name] = got[name]
        parts = [got[f"{name}/part_{k}"] for k in range(len(got)) if f"{name}/part_{k}" in got]
        for axis in range(whole.ndim if parts else 0):
            if all(np.delete(part.shape, axis).tolist() == np.delete(whole.shape, axis).tolist() for part in parts):
                found[name] = np.concatenate(parts, axis)
                break
    return found


def check_graph(tensorflow, seed, number):
    try:
        return compare(tensorflow, seed, number)
    except tensorflow.tf.errors.OpError as error:
        return [f"{type(error).__name__}: {error.message}"]


def compare(tensorflow, seed, number):
    with Folder() as folder:
        case = Case(folder, seed, number)
        expect = tensorflow.train_here(folder / "graph.pb", case, 1)
        found = [f"the executable: {d}" for d in expect.differences(case.train("AllReduce", case.rng.choice([1, 2, 4])))]

        replicas = case.rng.choice([2, 4])
        strategy = case.rng.choice(["AllReduce", "AllReduce:chunk_size=1"])
        must([OPT, folder / "graph.mlir", f"--distribute=strategy={strategy} replicas={replicas} unrolled=true", "--mlir-print-debuginfo",
              "-o", folder / "unrolled.mlir"])
        must([TRANSLATE, "--export-graphdef", folder / "unrolled.mlir", "-o", folder / "unrolled.pb"])
        got = tensorflow.train_here(folder / "unrolled.pb", case, replicas)
        found += [f"unrolled x{replicas}, {strategy}: {d}" for d in expect.differences(got)]

        strategy, flags, workers = random_tasks(case.rng)
        replicas = case.rng.choice([2, 4]) if workers == 1 else workers
        parts = ACCUMULATED if "accumulate_steps" in strategy else 1
        try:
            case.compile(folder / "tasks", strategy, replicas, *flags, "--emit=graphdef", parts=parts)
        except AssertionError as error:
            # What is refused of several workers for good reason is trained by one.
            if workers == 1 or "workers cannot know when the chief has updated" not in str(error):
                raise
            workers, flags = 1, flags[1:]
            case.compile(folder / "tasks", strategy, replicas, *flags, "--emit=graphdef", parts=parts)
        if workers > 1 and b"Collective" in (folder / "tasks" / "worker-0.meta").read_bytes():
            # TensorFlow remembers the collectives of a process for good: those of two graphs cannot follow each other.
            workers, flags = 1, flags[1:]
            shutil.rmtree(folder / "tasks")
            case.compile(folder / "tasks", strategy, replicas, *flags, "--emit=graphdef", parts=parts)
        title = f"--emit=graphdef of {strategy} x{replicas} {' '.join(map(str, flags))}"
        losses, variables = tensorflow.train_tasks(folder / "tasks", case, workers, parts)
        if case.graph.loss_is_sum:
            losses = losses * parts
        joined = join_shards(variables, expect.variables)
        missing = set(case.graph.trained) - set(joined)
        found += [f"{title}: no variable {name}" for name in missing]
        # A statistic's average counts batches, not updates.
        same = Trained(expect.losses, {name: expect.variables[name] for name in joined if parts == 1 or name != "moving"})
        return found + [f"{title}: {d}" for d in same.differences(Trained(losses, joined))]


def random_tasks(rng):
    """A strategy, the flags of its tasks, the number of workers."""
    strategy = rng.choice(COLLECTIVE + WITH_SERVERS)
    workers = rng.choice([1, 2])
    flags = ["--one-process-per-replica"] if workers > 1 else []
    if strategy in WITH_SERVERS:
        flags += ["--ps", rng.randint(1, TASKS)]
    return strategy, flags, workers


def main():
    seed, numbers = read_arguments(__doc__, 20)
    tf1, tf = need_tensorflow()
    need_tools(DISTC, TRANSLATE, OPT)
    tensorflow = TensorFlow(tf1, tf)
    checks = Checks(share=0.6)
    for number in numbers:
        checks.check(f"graph {number} of seed {seed}", check_graph, tensorflow, seed, number)
    checks.exit()


if __name__ == "__main__":
    main()
