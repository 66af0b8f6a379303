"""Programs of two hosts (network namespaces) whose threads pause at random (DRT_DELAYS): every run gives the losses and variables of one that was left alone, bit by bit.

  delayed_hosts.py [--seed S] [--runs N]    N runs of each program, with delays of their own
"""
import argparse
import os
import random

import numpy as np

from hosts import TwoHosts
from support import DISTC, Checks, Folder, Model, must, need_tools, read_losses

TWO, FOUR = "[0]", "[0, 1]"

# Model, strategy, devices a host: each way in which tasks of several hosts exchange something.
PROGRAMS = (
    ("mlp-adam", "AllReduce:all_reduce_alg=ring", FOUR),
    ("mlp-momentum", "AllReduce:all_reduce_alg=halving,chunk_size=1", TWO),
    ("mlp-clip", "ShardedUpdate", FOUR),
    ("mlp-adam", "PSLoadBalancing", FOUR),
    ("embedding-adagrad", "PartitionedPS", FOUR),
    ("embedding-adam", "PartitionedPS", FOUR),
    ("embedding-adagrad", "Parallax", TWO),
    ("mlp-adam", "PS:replicas_to_aggregate=2", TWO),
)


def resources(devices):
    return "nodes:\n" + "".join(f"  - address: {address}\n    cpus: {devices}\n    chief: {'true' if i == 0 else 'false'}\n"
                                for i, address in enumerate(TwoHosts.addresses))


def run(hosts, model, program, folder, tasks, delays):
    folders = [folder / f"task{i}" for i in range(tasks)]
    for own in folders:
        own.mkdir(exist_ok=True)
    environment = [] if delays is None else ["env", f"DRT_DELAYS={delays}"]
    started = [hosts.start_task(2 * i // tasks, [*environment, *model.run_command(program, folders[i])], task=i) for i in range(tasks)]
    statuses = [task.wait(180) for task in started]
    if any(statuses):
        raise AssertionError(f"exit statuses {statuses}: " + "".join(task.out for task in started))
    with np.load(folders[0] / "final.npz") as file:
        variables = {name: file[name].tobytes() for name in file.files}
    return read_losses(folders[0] / "log.jsonl"), variables, model.differences(folders[0], replicas=tasks)


def same_bits(name, strategy, devices, seeds):
    model = Model(name)
    with Folder() as folder, TwoHosts() as hosts:
        (folder / "resources.yml").write_text(resources(devices))
        must([DISTC, "compile", model.graph, "--strategy", strategy, "--resources", folder / "resources.yml", "--batch", model.case["batch"], "-o",
              folder / "train", "--one-process-per-replica"])
        tasks = 2 if devices == TWO else 4
        losses, variables, found = run(hosts, model, folder / "train", folder, tasks, None)
        for seed in seeds:
            again = run(hosts, model, folder / "train", folder, tasks, seed)
            if again[0] != losses:
                found.append(f"DRT_DELAYS={seed}: losses {again[0]}, not {losses}")
            found += [f"DRT_DELAYS={seed}: variable {key} has other bits" for key, want in variables.items() if again[1][key] != want]
        return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    arguments = parser.parse_args()
    need_tools()
    checks, drawn = Checks(), random.Random(arguments.seed)
    for name, strategy, devices in PROGRAMS:
        seeds = [drawn.randrange(1, 1 << 30) for _ in range(arguments.runs)]
        checks.check(f"{name}, {strategy}, {2 if devices == TWO else 4} tasks", same_bits, name, strategy, devices, seeds)
    checks.exit()


if __name__ == "__main__":
    main()
