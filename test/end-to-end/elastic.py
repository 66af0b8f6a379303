"""Executables of several numbers of workers (distc compile --min-workers): whatever the number, losses and variables are TensorFlow's, and a run goes on
with other numbers from its checkpoints."""
import socket

import numpy as np

from hosts import Process
from support import Checks, Folder, Model, expect, must, need_tools, read_log, read_losses, run

WORKERS = 4
ELASTIC = ["--one-process-per-replica", "--min-workers", 1]


def compiled(model, folder, strategy="AllReduce", *more):
    return model.compile(folder / "train", WORKERS, strategy, *ELASTIC, *more)


def numbers(program):
    """Of workers, that the plan says it is compiled for."""
    line = next(line for line in must([program, "--plan"]).out.splitlines() if line.startswith("Compiled for "))
    return [int(word) for word in line.replace(",", "").split() if word.isdigit()]


def every_number(name, strategy):
    with Folder() as folder:
        model = Model(name)
        program = compiled(model, folder, strategy)
        found = []
        for workers in numbers(program):
            must(model.run_command(program, folder, True, "--quiet", "--workers", workers))
            found += [f"{workers} workers: {problem}" for problem in model.differences(folder)]
            first = read_log(folder / "log.jsonl")[0]
            if (first["tasks"], first["batch"]) != (workers, model.case["batch"]):
                found.append(f"{workers} workers: the log begins with {first}")
        return found


def hands_over(name, strategy, order=(4, 2, 3, 1, 4)):
    """Every step by another number of workers, each from the checkpoint of the one before."""
    with Folder() as folder:
        model = Model(name)
        program = compiled(model, folder, strategy)
        there = numbers(program)
        used = []
        for step in range(model.case["steps"]):
            workers = [w for w in order if w in there][step % len([w for w in order if w in there])]
            resumes = ["--resume"] if step else []
            must([program, "--quiet", "--workers", workers, "--data", model.feeds, "--steps", step + 1, "--restore", model.checkpoint, "--checkpoint-dir",
                  folder / "kept", "--log-json", folder / "log.jsonl", "--export-npz", folder / "final.npz", *resumes])
            used.append(workers)
        log = read_log(folder / "log.jsonl")
        said = [log[0]["tasks"]] + [line["workers"] for line in log if "workers" in line]
        return model.differences(folder) + ([] if said == used else [f"the log says that {said} workers computed, not {used}"])


def launchers_number():
    """As many workers as a launcher started; a number that there is no program for is an error."""
    with Folder() as folder:
        model = Model("mlp-momentum")
        program = compiled(model, folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = model.run_command(program, folder, True, "--quiet")
        found = []
        for size in (1, 3):
            processes = [Process(["env", f"RANK={rank}", f"WORLD_SIZE={size}", "MASTER_ADDR=127.0.0.1", f"MASTER_PORT={port}", *command]) for rank in range(size)]
            try:
                statuses = [process.wait() for process in processes]
            finally:
                for process in processes:
                    process.kill()
            if statuses != [0] * size:
                return [f"exit statuses {statuses}:\n" + "".join(process.out for process in processes)]
            found += [f"{size} processes: {problem}" for problem in model.differences(folder)]
            found += [] if read_log(folder / "log.jsonl")[0]["tasks"] == size else ["the log says another number"]
        done = run(["env", "RANK=0", "WORLD_SIZE=5", *command])
        return found + expect(done, 2, "torchrun says that there are 5 processes (WORLD_SIZE=5): the program is compiled for 1, 2, 3 or 4 workers")


def left_out():
    """12 examples have no equal shares for 5 workers, nor 13 for any but 1 and 13."""
    with Folder() as folder:
        model = Model("mlp-momentum")
        command = model.compile_command(folder / "train", 6, "AllReduce", "--one-process-per-replica", "--min-workers", 3)
        found = expect(run(command), 0, "--min-workers: 5 workers are left out, since the batch of 12 has no equal shares for them")
        found += [] if numbers(folder / "train") == [3, 4, 6] else [f"compiled for {numbers(folder / 'train')}"]
        found += expect(run([folder / "train", "--workers", 5, "--steps", 1]), 2, "--workers 5: the program is compiled for 3, 4 or 6 workers")
        command = model.compile_command(folder / "none", 6, "AllReduce", "--one-process-per-replica", "--min-workers", 5)
        return found + expect(run(command), 1, "the batch of 12 has equal shares for no number of workers from 5 to 5")


if __name__ == "__main__":
    need_tools()
    checks = Checks()
    # Synchronous servers are tasks of workers: who holds what follows from their number.
    for name, strategy in [("mlp-momentum", "AllReduce"), ("mlp-adam", "ShardedUpdate"), ("mlp-momentum", "PSLoadBalancing"), ("embedding-adam", "Parallax")]:
        checks.check(f"{name}, {strategy}, any number of workers", every_number, name, strategy)
        checks.check(f"{name}, {strategy}, a step each", hands_over, name, strategy)
    checks.check("as many as a launcher has started", launchers_number)
    checks.check("numbers that the batch has no shares for", left_out)
    checks.exit()
