#!/usr/bin/env python3
"""The same training with other frameworks; tools/bench runs it. Prints the milliseconds of each step as JSON.

  peers.py tensorflow | tensorflow-sync-replicas | pytorch | ddp   DATA.npz BATCH STEPS THREADS
  peers.py tensorflow | tensorflow-xla   DATA.npz BATCH STEPS THREADS MODEL     a model of tensorflow_models.py

PyTorch on a GPU is gpu_models.py.
"""
import json
import os
import sys
import time

import numpy as np

LAYERS = (784, 2048, 2048, 10)
RATE, MOMENTUM = 0.01, 0.9


def batches(path, batch):
    data = np.load(path)
    images, labels = data["image"], data["label"]
    return [(images[i:i + batch], labels[i:i + batch]) for i in range(0, len(labels), batch)]


def timed(step, data, steps):
    """Of each step, from the batch in memory to the updated variables and the loss."""
    times = []
    for k in range(steps):
        started = time.perf_counter()
        step(*data[k % len(data)])
        times.append(1e3 * (time.perf_counter() - started))
    return times


def tensorflow(path, batch, steps, threads):
    """One process, a session, the optimizer of tf.compat.v1: what distc reads is this graph."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import mlp  # the graph that is compiled

    tf1 = mlp.tf1
    config = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
    with mlp.tf.Graph().as_default(), tf1.Session(config=config) as session:
        tf1.enable_resource_variables()
        loss, train, init = mlp.build()
        session.run(init)
        run = session.make_callable([loss, train], ["image:0", "label:0"])
        return timed(run, batches(path, batch), steps)


def sync_replicas_task(job, index, addresses, results, path, batch, steps):
    """A server, or a worker of one thread: TensorFlow's SyncReplicasOptimizer over its own gRPC servers."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import mlp

    tf1, workers = mlp.tf1, len(addresses["worker"])
    config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2)
    server = mlp.tf.distribute.Server(addresses, job, index, config=config)
    if job == "ps":
        server.join()
    made = []

    def wrap(optimizer):
        made.append(tf1.train.SyncReplicasOptimizer(optimizer, workers, workers))
        return made[0]

    with mlp.tf.Graph().as_default():
        tf1.enable_resource_variables()
        with tf1.device(tf1.train.replica_device_setter(cluster=mlp.tf.train.ClusterSpec(addresses), worker_device=f"/job:worker/task:{index}")):
            loss, train, _ = mlp.build(wrap)
        share = batch // workers
        data = [(x[index * share:(index + 1) * share], y[index * share:(index + 1) * share]) for x, y in batches(path, batch)]
        with tf1.train.MonitoredTrainingSession(master=server.target, is_chief=index == 0, hooks=[made[0].make_session_run_hook(index == 0)], save_checkpoint_secs=None,
                                                save_summaries_steps=None, config=config) as session:
            times = timed(lambda x, y: session.run([loss, train], {"image:0": x, "label:0": y}), data, steps)
    if index == 0:
        results.put(times)


def tensorflow_sync_replicas(path, batch, steps, threads):
    import multiprocessing
    import socket

    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(threads + 1)]
    names = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    addresses = {"ps": names[:1], "worker": names[1:]}
    tasks = [context.Process(target=sync_replicas_task, args=(job, i, addresses, results, path, batch, steps)) for job in addresses for i in range(len(addresses[job]))]
    for task in tasks:
        task.start()
    times = results.get()
    for task in tasks:
        task.kill()
        task.join()
    return times


def tensorflow_model(name, path, batch, steps, threads, xla):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if xla:
        os.environ["TF_XLA_FLAGS"] = "--tf_xla_cpu_global_jit"
    import tensorflow_models

    tf1 = tensorflow_models.tf1
    tf1.disable_eager_execution()
    config = tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    if xla:
        config.graph_options.optimizer_options.global_jit_level = tf1.OptimizerOptions.ON_1
    with np.load(path) as arrays:
        data = {feed: arrays[feed] for feed in arrays.files}
    count = len(next(iter(data.values())))
    with tensorflow_models.tf.Graph().as_default(), tf1.Session(config=config) as session:
        loss, train, init, _ = tensorflow_models.build(name)
        session.run(init)
        run = session.make_callable([loss, train], [f"{feed}:0" for feed in data])
        return timed(run, [[array[i:i + batch] for array in data.values()] for i in range(0, count, batch)], steps)


def in_precision(torch, forward):
    """`forward` with products in what tools/bench --precision says."""
    def cast(*batch):
        with torch.autocast("cpu", torch.bfloat16, enabled=os.environ.get("BENCH_PRECISION") == "bf16"):
            return forward(*batch)

    return cast


def torch_model(torch):
    torch.manual_seed(0)
    layers = []
    for n, m in zip(LAYERS, LAYERS[1:]):
        layers += [torch.nn.Linear(n, m), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def torch_steps(torch, model, parameters, path, batch, part, parts, steps):
    optimizer = torch.optim.SGD(parameters, lr=RATE, momentum=MOMENTUM)
    criterion = torch.nn.CrossEntropyLoss()
    loss_of = in_precision(torch, lambda x, y: criterion(model(x), y))
    share = batch // parts
    data = [(torch.from_numpy(x[part * share:(part + 1) * share]), torch.from_numpy(y[part * share:(part + 1) * share]).long())
            for x, y in batches(path, batch)]

    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return timed(step, data, steps)


def pytorch(path, batch, steps, threads):
    import torch

    torch.set_num_threads(threads)
    model = torch_model(torch)
    return torch_steps(torch, model, model.parameters(), path, batch, 0, 1, steps)


def ddp_process(rank, processes, folder, results, path, batch, steps):
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=processes)
    model = torch.nn.parallel.DistributedDataParallel(torch_model(torch))
    times = torch_steps(torch, model, model.parameters(), path, batch, rank, processes, steps)
    torch.distributed.destroy_process_group()
    if rank == 0:
        results.put(times)


def run_processes(function, count, *arguments):
    """What function(rank, count, folder, results, *arguments) puts into results, in `count` processes that have a folder in common."""
    import tempfile

    import torch.multiprocessing as processes

    context = processes.get_context("spawn")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        started = [context.Process(target=function, args=(rank, count, folder, results, *arguments)) for rank in range(count)]
        for process in started:
            process.start()
        result = results.get()
        for process in started:
            process.join()
    return result


def ddp(path, batch, steps, threads):
    """A process of one thread for each core, gradients over gloo."""
    return run_processes(ddp_process, threads, path, batch, steps)


PEERS = {"tensorflow": tensorflow, "tensorflow-sync-replicas": tensorflow_sync_replicas, "pytorch": pytorch, "ddp": ddp}

if __name__ == "__main__":
    peer, path, batch, steps, threads, *model = sys.argv[1:]
    if model:
        print(json.dumps(tensorflow_model(model[0], path, int(batch), int(steps), int(threads), xla=peer == "tensorflow-xla")))
    else:
        print(json.dumps(PEERS[peer](path, int(batch), int(steps), int(threads))))
