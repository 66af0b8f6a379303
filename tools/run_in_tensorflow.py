#!/usr/bin/env python3
"""Trains what `distc compile … --emit=graphdef -o DIR` wrote, with stock TensorFlow, all tasks on this machine.

  run_in_tensorflow.py DIR --data F.npz --steps N [--restore PREFIX] [--save PREFIX] [--log-json F] [--timeout S]

A process a task of DIR/cluster.json runs a tf.distribute.Server, on free ports of this machine instead of those of cluster.json;
each worker's process opens a session on its own server and runs its own graph, DIR/worker-K.meta. Step k is fed the rows
[k*B, (k+1)*B) of the data, each replica its contiguous part; past the end the data starts over. Prints each step's loss of the
whole batch: the mean over all replicas, or their sum where the loss is a sum over the batch. A task that fails ends all of them.

The data has one array for each placeholder that a step needs, first axis = example. Needs numpy and tensorflow; nothing of distc.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import socket
import sys
import time
import traceback

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

# In a worker's MetaGraphDef: [replicas of all tasks, first of this task, of this task, global batch or 0, 1 where the chief
# may need gradients after a worker's last step], the placeholders that are fed by rows, and [1 where the whole batch's loss is the
# sum of the replicas'].
SHARE, FEEDS_BY_ROWS, LOSS_IS_SUM = "distc_share", "distc_feeds_by_rows", "distc_loss_is_sum"


class TaskError(Exception):
    pass


def session_config(tf1, graph=None):
    """What TensorFlow must be told to run collectives between sessions of different tasks, and a graph on a server."""
    config = tf1.ConfigProto(allow_soft_placement=True, inter_op_parallelism_threads=8)
    config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    if graph is not None and computes_in_bfloat16(graph):
        # The remapper joins convolutions of bfloat16 with what follows to _FusedConv2D, which has none of it; oneDNN's, which a
        # session of its own has in its place, servers have not.
        config.graph_options.rewrite_options.remapping = config.graph_options.rewrite_options.OFF
    return config


def computes_in_bfloat16(graph):
    definition = graph.as_graph_def()
    bfloat16 = 14  # DT_BFLOAT16
    return any(attribute.type == bfloat16 for nodes in (definition.node, *(f.node_def for f in definition.library.function))
               for node in nodes for attribute in node.attr.values())


def read_data(path):
    path = pathlib.Path(path)
    if path.is_dir():
        return {f.stem: np.load(f) for f in sorted(path.glob("*.npy"))}
    with np.load(path) as data:
        return {name: data[name] for name in data.files}


def take_rows(array, first, count):
    return array[np.arange(first, first + count) % len(array)]


def needed_operations(endpoints):
    """What must run for them: all that they depend on, by data or by order."""
    needed, left = set(), [e if hasattr(e, "outputs") else e.op for e in endpoints if e is not None]
    while left:
        op = left.pop()
        if op not in needed:
            needed.add(op)
            left += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    return needed


class Worker:
    """One worker task: its graph, and its session on its server."""

    def __init__(self, folder, server, index, data):
        import tensorflow as tf
        self.tf1 = tf1 = tf.compat.v1
        self.server, self.index = server, index
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.saver = tf1.train.import_meta_graph(str(folder / f"worker-{index}.meta"))
            self.train_op, self.init_op = (self.endpoint(name) for name in ("train_op", "init_op"))
            self.loss = self.endpoint("losses")
            replicas, first, own, batch, loose = tf1.get_collection(SHARE)
            by_rows = {f.name if hasattr(f, "name") else f for f in tf1.get_collection(FEEDS_BY_ROWS)}
            summed = any(tf1.get_collection(LOSS_IS_SUM))
        # A worker's loss is the mean over its replicas: its part of the whole batch's.
        self.share = own if summed else own / replicas
        self.goes_on = loose and index > 0
        self.feeds = []
        for op in sorted(needed_operations([self.train_op, self.loss]), key=lambda op: op.name):
            if op.type != "Placeholder":
                continue
            if op.name not in data:
                raise TaskError(f"the data has no array '{op.name}'; it has {sorted(data)}")
            tensor, array = op.outputs[0], data[op.name]
            if tensor.name not in by_rows:
                self.feeds.append((tensor, array, 0, 0, 0))
                continue
            rows = batch // replicas * own if batch else tensor.shape[0]
            self.feeds.append((tensor, array, rows // own * replicas, rows // own * first, rows))
        self.session = tf1.Session(self.server.target, graph=self.graph, config=session_config(tf1, self.graph))
        self.reads = {}

    def endpoint(self, collection):
        found = self.tf1.get_collection(collection)
        found = [self.graph.as_graph_element(f) if isinstance(f, str) else f for f in found]
        return found[0] if found else None

    def initialize(self, restores=True):
        if not restores and self.index == 0 and (left := self.uninitialized()):
            raise TaskError(f"nothing initializes '{left[0]}' and {len(left) - 1} other variables: --restore a checkpoint"
                            " (of a SavedModel SAVED/variables/variables)")
        if self.init_op is not None:
            self.session.run(self.init_op)

    def uninitialized(self):
        """The variables that a step needs and nothing initializes: of a SavedModel all, whose values are in its checkpoint.
        Each step fills a worker's shares itself, from the whole variables."""
        def variables(endpoint):
            return {op.name for op in needed_operations([endpoint])
                    if op.type == "VarHandleOp" and not op.name.endswith("/share/handle")}
        return sorted(variables(self.train_op) - variables(self.init_op))

    def restore(self, prefix):
        self.saver.restore(self.session, prefix)

    def save(self, prefix):
        self.saver.save(self.session, prefix, write_meta_graph=False, write_state=False)

    def read(self, name):
        """A variable's value, whoever holds it."""
        handle = self.graph.get_operation_by_name(name).outputs[0]
        if handle.dtype != "resource":
            return self.session.run(handle)
        if name not in self.reads:
            with self.graph.as_default():
                self.reads[name] = self.tf1.raw_ops.ReadVariableOp(resource=handle, dtype=handle.op.get_attr("dtype"))
        return self.session.run(self.reads[name])

    def step(self, number):
        fed = {tensor: take_rows(array, number * batch + first, rows) if rows else array
               for tensor, array, batch, first, rows in self.feeds}
        if self.loss is None:
            self.session.run(self.train_op, fed)
            return float("nan")
        return float(np.mean(self.session.run([self.loss, self.train_op], fed)[0]))


def start_server(cluster, job, index):
    import tensorflow as tf
    tf.compat.v1.disable_eager_execution()
    return tf.distribute.Server(cluster, job_name=job, task_index=index, config=session_config(tf.compat.v1))


def run_worker(pipe, folder, cluster, index, data):
    """Does what the parent says until it says no more."""
    try:
        worker = Worker(folder, start_server(cluster, "worker", index), index, data)
        pipe.send(("ready", worker.share))
        while True:
            command, *arguments = pipe.recv()
            if command == "exit":
                break
            if command == "train":
                first, count = arguments
                for number in range(first, first + count):
                    pipe.send(("step", worker.step(number)))
                number = first + count
                pipe.send(("trained", worker.goes_on))
                while worker.goes_on and not pipe.poll():
                    worker.step(number)
                    number += 1
                continue
            pipe.send(("done", getattr(worker, command)(*arguments)))
    except EOFError:
        pass
    except BaseException as error:  # the parent tells of it
        text = str(error).strip().splitlines() or [""]
        pipe.send(("failed", f"{type(error).__name__}: {text[0]}\n{traceback.format_exc()}"))
    os._exit(0)  # a server cannot be stopped


def run_server(pipe, cluster, index):
    try:
        server = start_server(cluster, "ps", index)
        pipe.send(("ready", server.target))
        pipe.recv()
    except EOFError:
        pass
    except BaseException as error:
        pipe.send(("failed", str(error)))
    os._exit(0)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("localhost", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


class Cluster:
    """The tasks' processes; in a `with`, whose end ends them all."""

    def __init__(self, folder, data, timeout=300):
        self.timeout = timeout
        jobs = json.loads((folder / "cluster.json").read_text())
        ports = iter(free_ports(sum(map(len, jobs.values()))))
        cluster = {job: [f"localhost:{next(ports)}" for _ in tasks] for job, tasks in jobs.items() if tasks}
        # TensorFlow is imported once, before the tasks fork.
        import tensorflow  # noqa: F401
        context = multiprocessing.get_context("fork")
        self.tasks = []
        self.workers = []
        for job in ("ps", "worker"):
            for index in range(len(cluster.get(job, []))):
                here, there = context.Pipe()
                arguments = (there, cluster, index) if job == "ps" else (there, folder, cluster, index, data)
                process = context.Process(target=run_server if job == "ps" else run_worker, args=arguments, daemon=True)
                process.start()
                there.close()
                self.tasks.append((f"{job}:{index}", process, here))
                if job == "worker":
                    self.workers.append(self.tasks[-1])

    def __enter__(self):
        try:
            shares = [self.receive(task, "ready") for task in self.tasks]
        except BaseException:
            self.close()
            raise
        self.shares = shares[len(self.tasks) - len(self.workers):]
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for _, process, pipe in self.tasks:
            try:
                pipe.send(("exit",))
            except OSError:
                pass
        deadline = time.time() + 2
        for _, process, _ in self.tasks:
            process.join(max(0, deadline - time.time()))
            if process.is_alive():
                process.kill()
                process.join()

    def receive(self, task, kind):
        name, _, pipe = task
        deadline = time.time() + self.timeout
        while not pipe.poll(0.2):
            self.raise_failures()
            if time.time() > deadline:
                raise TaskError(f"{name} has said nothing for {self.timeout} s")
        try:
            got, value = pipe.recv()
        except EOFError:
            raise TaskError(f"{name} has ended") from None
        if got == "failed":
            raise TaskError(f"{name}: {value}")
        if got != kind:
            raise TaskError(f"{name} said '{got}' instead of '{kind}'")
        return value

    def raise_failures(self):
        for name, process, pipe in self.tasks:
            if not process.is_alive() and not pipe.poll():
                raise TaskError(f"{name} has ended with status {process.exitcode}")

    def do(self, *command):
        """On the chief first, which makes what the others use; then on the others."""
        for group in (self.workers[:1], self.workers[1:]):
            for _, _, pipe in group:
                pipe.send(command)
            for worker in group:
                self.receive(worker, "done")

    def ask(self, index, *command):
        """What one worker answers."""
        worker = self.workers[index]
        worker[2].send(command)
        return self.receive(worker, "done")

    def train(self, steps, first=0):
        """The whole batch's loss of each step from number `first` on."""
        for _, _, pipe in self.workers:
            pipe.send(("train", first, steps))
        for _ in range(steps):
            yield sum(share * self.receive(worker, "step") for share, worker in zip(self.shares, self.workers))
        for worker in self.workers:
            self.receive(worker, "trained")


def train(folder, data, steps, restore=None, save=None, timeout=300, on_step=None):
    """The losses of `steps` steps; `data` is a path or a dictionary of arrays."""
    losses = []
    data = data if isinstance(data, dict) else read_data(data)
    with Cluster(pathlib.Path(folder), data, timeout) as cluster:
        cluster.do("initialize", restore is not None)
        if restore:
            cluster.do("restore", str(restore))
        for loss in cluster.train(steps):
            if on_step:
                on_step(len(losses), loss)
            losses.append(loss)
        if save:
            cluster.ask(0, "save", str(save))
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--restore", metavar="PREFIX", help="a checkpoint of the original graph")
    parser.add_argument("--save", metavar="PREFIX", help="write the variables as a checkpoint of the original graph")
    parser.add_argument("--log-json", metavar="F")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that a task may say nothing (default %(default)s)")
    options = parser.parse_args()
    if not (options.folder / "cluster.json").exists():
        sys.exit(f"error: {options.folder} has no cluster.json; distc compile … --emit=graphdef -o {options.folder} writes it")
    log = open(options.log_json, "w") if options.log_json else None

    def on_step(step, loss):
        print(f"step {step} loss {loss:.7g}", flush=True)
        if log:
            log.write(json.dumps({"step": step, "loss": loss}) + "\n")

    try:
        train(options.folder, options.data, options.steps, options.restore, options.save, options.timeout, on_step)
    except TaskError as error:
        sys.exit(f"error: {error}")
    if log:
        log.write(json.dumps({"done": True, "steps": options.steps}) + "\n")
        log.close()


if __name__ == "__main__":
    main()
