"""Models with parameter servers: their losses and their last variables are TensorFlow's, for every builder that has servers, in
threads and in processes, whose checkpoints are whole and go from one strategy to another.

  servers.py [NAME…]
"""
import os
import resource
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from models import trains
from support import DISTC, Checks, Folder, Model, must, need_tools, saved_steps

BUILDERS = ("PS", "PSLoadBalancing", "RoundRobinPS", "HashPS", "PartitionedPS", "UnevenPartitionedPS", "fixed_size:shards=2",
            "min_max_variable:max_partitions=2,min_slice_bytes=64", "variable_axis_size:max_shard_bytes=4096", "Parallax",
            "PSLoadBalancing:local_proxy_variable=true")
# Slots, reference variables, a gradient that is clipped by a global norm, a sum over the batch, convolutions, rows.
MODELS = ("mlp-adam", "mlp-momentum-ref", "mlp-clip", "mlp-sum", "mlp-rmsprop-centered-ref", "convnet-momentum", "embedding-adam",
          "embedding-adagrad-ref")
# A process a replica: gradients go to their owners, and values come from them.
PROCESSES = ("mlp-adam", "mlp-clip", "embedding-adagrad-ref", "embedding-adam")
ROUND_TRIP = "mlp-adam"


def check_model(name, strategy, replicas, servers, *flags):
    model = Model(name)
    with Folder() as folder:
        executable = model.compile(folder / "train", replicas, strategy, "--ps", servers, *flags)
        found = [f"from init.ckpt: {d}" for d in trains(model, executable, replicas, restore=True)]
        if "--one-process-per-replica" in flags:
            # Values come piece by piece, as the owners' replicas are done with them: in any order.
            for environment in (None, dict(os.environ, DRT_DELAYS=str(replicas))):
                found += [f"over the network, {'with delays' if environment else 'as it comes'}: {d}" for d in
                          trains(model, executable, replicas, restore=True, environment=environment, flags=["--collectives=network"])]
        if model.case["own_init"]:
            found += [f"own initializers: {d}" for d in trains(model, executable, replicas, restore=False)]
        return found


def slots_are_the_owners(name):
    """Of two servers each has some variables, and alone the slots of these; gradients go there and values come back."""
    model = Model(name)
    with Folder() as folder:
        program = model.compile(folder / "train", 2, "PSLoadBalancing", "--ps", 2, "--one-process-per-replica")
        # Those of one host have all in common.
        plan = must([program, "--plan", "--collectives=network"]).out
        return [f"--plan does not say '{text}':\n{plan}" for text in
                ("in worker:0 alone", "in worker:1 alone", "pushed to worker:0, worker:1", "pulled from worker:0, worker:1") if text not in plan]


def variables_of(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def goes_on_elsewhere(first, second):
    """Half of the steps, a checkpoint, the other half by another strategy in other tasks: as if one had done them all."""
    model = Model(ROUND_TRIP)
    half = model.case["steps"] // 2
    with Folder() as folder:
        programs = [model.compile(folder / f"train{i}", 2, strategy, *flags) for i, (strategy, flags) in enumerate((first, second))]
        must([programs[0], "--data", model.feeds, "--steps", half, "--restore", model.checkpoint, "--checkpoint-dir", folder / "checkpoints"])
        prefix = next((folder / "checkpoints").glob("*.index")).with_suffix("")
        must([programs[1], "--data", model.feeds, "--steps", model.case["steps"] - half, "--restore", prefix, "--export-npz", folder / "final.npz"])
        must([programs[1], "--data", model.feeds, "--steps", model.case["steps"], "--restore", model.checkpoint, "--export-npz",
              folder / "whole.npz"])
        want, got = variables_of(folder / "whole.npz"), variables_of(folder / "final.npz")
        return [f"variable {name} differs" for name in want if not np.allclose(got[name], want[name], rtol=1e-4, atol=1e-6)]


def saves_in_parts(strategy, servers):
    """Each owner writes what it has, while the steps go on; where the folder is not everyone's, task 0 writes all. Either goes on as the whole run did."""
    model = Model(ROUND_TRIP)
    steps, found = model.case["steps"], []
    with Folder() as folder:
        program = model.compile(folder / "train", 2, strategy, "--ps", servers, "--one-process-per-replica")

        def train(name):
            with socket.socket() as port:
                port.bind(("127.0.0.1", 0))
                rendezvous = f"127.0.0.1:{port.getsockname()[1]}"
            own = [folder / name, folder / name if name == "shared" else folder / f"{name}-of-another-host"]
            tasks = [subprocess.Popen([str(part) for part in [program, "--data", model.feeds, "--steps", steps, "--restore", model.checkpoint, "--checkpoint-dir", own[i],
                                                              "--save-every", 2, "--keep", 0, "--task", f"worker:{i}", "--rendezvous", rendezvous, "--collectives=network"]],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for i in (0, 1)]
            outputs = [task.communicate(timeout=120)[0] for task in tasks]
            if any(task.returncode for task in tasks):
                raise AssertionError(f"{name}: {outputs}")
            return sorted(file.name for file in own[0].iterdir() if ".data-" in file.name or "tempstate" in file.name)

        expected = [f"ckpt-{step}" for step in sorted((*range(2, steps, 2), steps), key=str)]
        for name, parts in (("shared", 2), ("apart", 1)):
            names = train(name)
            want = [f"{prefix}.data-{part:05}-of-{parts:05}" for prefix in expected for part in range(parts)]
            if names != sorted(want):
                found.append(f"{name}: {names}, not {want}")
        for prefix in expected:
            arrays = []
            for name in ("shared", "apart"):
                must([DISTC, "checkpoint", "export", folder / name / prefix, folder / f"{name}.npz"])
                arrays.append(variables_of(folder / f"{name}.npz"))
            found += [f"{prefix}: {name} is another" for name in arrays[0] if not np.array_equal(arrays[0][name], arrays[1].get(name))]
        must([program, "--data", model.feeds, "--steps", steps, "--resume", folder / "shared" / "ckpt-2", "--checkpoint-dir", folder / "rest", "--collectives=network"])
        for name in ("shared", "rest"):
            must([DISTC, "checkpoint", "export", folder / name / f"ckpt-{steps}", folder / f"{name}.npz"])
        want, got = variables_of(folder / "shared.npz"), variables_of(folder / "rest.npz")
        return found + [f"from step 2 on: {name} is another" for name in want if not np.array_equal(got[name], want[name])]


def failed_parts_go(strategy, servers):
    """A task whose disk takes no more ends the run with the reason, whichever it is: the checkpoint before is whole, and no part of the next one is left."""
    model, found = Model(ROUND_TRIP), []
    with Folder() as folder:
        program = model.compile(folder / "train", 2, strategy, "--ps", servers, "--one-process-per-replica")
        for failing in (0, 1):
            own = folder / f"of-{failing}"
            with socket.socket() as port:
                port.bind(("127.0.0.1", 0))
                rendezvous = f"127.0.0.1:{port.getsockname()[1]}"
            tasks = [subprocess.Popen([str(part) for part in [program, "--data", model.feeds, "--steps", 10**9, "--restore", model.checkpoint, "--checkpoint-dir", own, "--quiet",
                                                              "--save-every", 1, "--task", f"worker:{i}", "--rendezvous", rendezvous, "--collectives=network"]],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for i in (0, 1)]
            try:
                deadline = time.monotonic() + 60
                while not saved_steps(own) and time.monotonic() < deadline:
                    time.sleep(0.01)
                resource.prlimit(tasks[failing].pid, resource.RLIMIT_FSIZE, (100, 100))
                outputs = [task.communicate(timeout=120)[0] for task in tasks]
            finally:
                for task in tasks:
                    task.kill()
            if [task.returncode for task in tasks] != [1, 1] or not all("File too large" in output for output in outputs):
                found.append(f"worker:{failing} fails: {[task.returncode for task in tasks]}, {outputs}")
            names = sorted(file.name for file in own.iterdir())
            if any("tempstate" in name for name in names):
                found.append(f"worker:{failing} fails: left are {names}")
            must([DISTC, "checkpoint", "export", own, folder / "newest.npz"])
    return found


def trains_on_hosts(name):
    """Two hosts of the resource file, a server and two workers on each, whose tasks are started by hand."""
    model = Model(name)
    with Folder() as folder, socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        rendezvous = f"127.0.0.1:{port.getsockname()[1]}"
        (folder / "resources.yml").write_text("nodes:\n  - address: 127.0.0.1\n    chief: true\n    cpus: [0, 1]\n"
                                              "  - address: localhost\n    cpus: [0, 1]\n")
        must([DISTC, "compile", model.graph, "--strategy", "PSLoadBalancing", "--resources", folder / "resources.yml", "--batch",
              model.case["batch"], "-o", folder / "train"])
        port.close()
        folders = [folder / "0", folder / "1"]
        for own in folders:
            own.mkdir()
        tasks = [subprocess.Popen([str(part) for part in model.run_command(folder / "train", own, True, "--task", f"worker:{i}",
                                                                           "--rendezvous", rendezvous)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for i, own in enumerate(folders)]
        outputs = [task.communicate(timeout=120)[0] for task in tasks]
        if any(task.returncode for task in tasks):
            return outputs
        return model.differences(folders[0], replicas=4)


def keeps_averages(strategy, *flags):
    """Moving averages of the variables, which checkpoints hold whole: what numpy makes of the values after each step."""
    model = Model("linreg-sgd")
    decay = 0.75
    with Folder() as folder:
        colon = "," if ":" in strategy else ":"
        averaged = model.compile(folder / "averaged", 2, f"{strategy}{colon}variable_averages={decay}", *flags)
        plain = model.compile(folder / "plain", 2, "AllReduce")
        values = []
        for steps in (1, 2, 3):
            must([plain, "--data", model.feeds, "--steps", steps, "--export-npz", folder / "final.npz"])
            values.append(variables_of(folder / "final.npz"))
        must([averaged, "--data", model.feeds, "--steps", 3, "--export-npz", folder / "averaged.npz"])
        got = variables_of(folder / "averaged.npz")
        must([averaged, "--data", model.feeds, "--steps", 1, "--export-npz", folder / "first.npz"])
        first = variables_of(folder / "first.npz")
        found = []
        names = [name for name in got if name.endswith("/ExponentialMovingAverage")]
        if not names:
            return [f"there are no averages among {sorted(got)}"]
        for name in names:
            variable = name.rsplit("/", 1)[0]
            want = first[name]
            for value in values[1:]:
                want = want - (want - value[variable]) * (1 - decay)
            if not np.allclose(got[name], want, rtol=1e-4, atol=1e-6):
                found.append(f"{name} is {got[name]}, not {want}")
        return found


def main():
    need_tools()
    checks = Checks()
    names = sys.argv[1:] or MODELS
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, name in enumerate(names):
            for i, strategy in enumerate(BUILDERS):
                # Each model and each builder with every number of replicas, but not all of all.
                replicas = (1, 2, 4)[(number + i) % 3]
                if Model(name).case["batch"] % replicas == 0:
                    pool.submit(checks.check, f"{name} {strategy} x{replicas}", check_model, name, strategy, replicas, 2)
                if name in PROCESSES:
                    pool.submit(checks.check, f"{name} {strategy} x2, a process each", check_model, name, strategy, 2, 1 + i % 3,
                                "--one-process-per-replica")
        pool.submit(checks.check, "four processes, three servers", check_model, "mlp-adam", "PSLoadBalancing", 4, 3, "--one-process-per-replica")
        pool.submit(checks.check, "slots are their owners'", slots_are_the_owners, "mlp-adam")
        apart = ("PSLoadBalancing", ["--ps", "2", "--one-process-per-replica"])
        split = ("PartitionedPS", ["--ps", "2", "--one-process-per-replica"])
        for first, second in ((apart, split), (split, ("ShardedUpdate", ["--one-process-per-replica"])), (("AllReduce", []), apart)):
            pool.submit(checks.check, f"{first[0]}, then {second[0]}", goes_on_elsewhere, first, second)
        for strategy in ("PSLoadBalancing", "PartitionedPS"):
            pool.submit(checks.check, f"a checkpoint in parts, {strategy}", saves_in_parts, strategy, 2)
            pool.submit(checks.check, f"parts of a checkpoint that fails, {strategy}", failed_parts_go, strategy, 2)
        for strategy in ("AllReduce", "PSLoadBalancing", "PartitionedPS"):
            pool.submit(checks.check, f"averages, {strategy}", keeps_averages, strategy)
        pool.submit(checks.check, "averages, a process each", keeps_averages, "PSLoadBalancing", "--ps", "2", "--one-process-per-replica")
        pool.submit(checks.check, "two hosts", trains_on_hosts, "mlp-adam")
    checks.exit()


if __name__ == "__main__":
    main()
