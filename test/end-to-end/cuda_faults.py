"""Each call that a run makes of CUDA's libraries fails once, on the emulated machine: the run ends with an error that says which call it was,
or, where nothing depends on the call, with the numbers of a run that was left alone. None hangs, none dies by a signal.

  cuda_faults.py            of each function the first and the last call, in the first program that calls it
  cuda_faults.py --all      every call in every program, but of functions that only ask whether something has ended
  cuda_faults.py --only cuMemAlloc,ncclAllReduce
"""
import argparse
import os
import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from support import ROOT, Checks, Folder, Model, need_emulated_gpu, need_tools, run

TARGET = "--target=cuda:emulated"
STEPS = 3
# Programs that together make nearly every call: model, replicas, strategy, and flags.
PROGRAMS = [("convnet-momentum", 2, "AllReduce", []), ("mlp-adam", 2, "ShardedUpdate", []), ("embedding-adagrad", 2, "AllReduce", []),
            ("ops-bessel", 1, "AllReduce", []), ("mlp-dropout", 2, "AllReduce", ["--one-process-per-replica"])]
# What a library says of a call that went wrong.
STATUS = {"cu": 719, "cublasLt": 13, "cudnn": 5000, "nccl": 1}
# Who polls calls these as often as there is time.
POLLS = {"cuEventQuery", "cuStreamQuery", "ncclCommGetAsyncError"}
# The library refuses a convolution's algorithm, with the reason (CUDNN_STATUS_NOT_SUPPORTED_SHAPE): another one is taken.
REFUSED, TRIED = 3002, "cudnnConvolutionBiasActivationForward"
# In one of two tasks: the other one, whose collectives it leaves, says why as well.
IN_ONE_TASK = ["cuMemAlloc", "cuStreamEndCapture", "cuGraphDestroy", "cuGraphLaunch", "cuLaunchKernel", "ncclAllReduce", "ncclBroadcast"]
# No run comes near; one that hangs does not end.
MOST_SECONDS = 60


def status_of(function):
    return STATUS[max((name for name in STATUS if function.startswith(name)), key=len)]


def functions():
    """All that the runtime may call, of the headers' names."""
    return set(re.findall(r"F\((\w+)\)", (ROOT / "runtime" / "cuda" / "api" / "functions.h").read_text()))


class Program:
    """A compiled model, and what a run makes of it that was left alone."""

    def __init__(self, folder, model, replicas, strategy, flags):
        self.name = f"{model} {strategy} x{replicas} {' '.join(flags)}".rstrip()
        self.model, self.folder = Model(model), folder / model
        self.folder.mkdir()
        self.executable = self.model.compile(self.folder / "train", replicas, strategy, TARGET, *flags)
        done, self.final = self.train(DRT_EMULATED_COUNTS=self.folder / "counts")
        if done.returncode != 0:
            raise AssertionError(done.out)
        self.counts, self.least = {}, {}  # of tasks that have processes of their own
        for line in (self.folder / "counts").read_text().splitlines():
            function, count = line.split()
            self.counts[function] = max(self.counts.get(function, 0), int(count))
            self.least[function] = min(self.least.get(function, int(count)), int(count))

    def train(self, **environment):
        with Folder() as folder:
            done = run([self.executable, "--data", self.model.feeds, "--steps", STEPS, "--quiet", "--restore", self.model.checkpoint, "--timeline",
                        folder / "timeline.json", "--checkpoint-dir", folder / "ckpt", "--export-npz", folder / "final.npz", "--failure-timeout", 20],
                       timeout=MOST_SECONDS, env=dict(os.environ, **{name: str(value) for name, value in environment.items()}))
            final = dict(np.load(folder / "final.npz")) if done.returncode == 0 else None
        return done, final

    def refuses(self, function):
        """What is not as promised where the library does not support an algorithm that its heuristic names."""
        done, final = self.train(DRT_EMULATED_FAIL=f"{function}:{REFUSED}:0")
        if done.returncode != 0:
            return [f"exit status {done.returncode}:\n{done.out}"]
        return [f"other numbers in {name}" for name, value in self.final.items() if not np.array_equal(final[name], value)]

    def fails(self, function, call):
        """What is not as promised where that call fails."""
        done, final = self.train(DRT_EMULATED_FAIL=f"{function}:{status_of(function)}:{call}", DRT_EMULATED_SEED=call + 1)
        if done.returncode == 0:
            wrong = [name for name, value in self.final.items() if not np.array_equal(final[name], value)]
            return [f"ended well, with other numbers in {wrong}"] if wrong else []
        if done.returncode != 1:
            return [f"exit status {done.returncode}:\n{done.out}"]
        return [] if function in done.stderr else [f"the error does not name the call:\n{done.stderr}"]


def check_task(program, function, failing):
    """Two tasks that are started one by one; the last call of one of them fails."""
    with Folder() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()
        tasks = []
        for task in range(2):
            environment = dict(os.environ, DISTC_SECRET="of this run alone, and of no other")
            if task == failing:
                environment["DRT_EMULATED_FAIL"] = f"{function}:{status_of(function)}:{program.least[function] - 1}"
            tasks.append(subprocess.Popen([str(part) for part in (program.executable, "--data", program.model.feeds, "--steps", STEPS, "--quiet", "--restore",
                                           program.model.checkpoint, "--task", f"worker:{task}", "--rendezvous", address, "--failure-timeout", 20)],
                                          env=environment, cwd=folder, stderr=subprocess.PIPE, text=True))
        found = []
        for task, process in enumerate(tasks):
            try:
                said = process.communicate(timeout=MOST_SECONDS)[1]
            except subprocess.TimeoutExpired:
                process.kill()
                found.append(f"task {task} has not ended after {MOST_SECONDS} s")
                continue
            if process.returncode != 1 or function not in said:
                found.append(f"task {task}: exit status {process.returncode}:\n{said}")
        return found


def calls_of(count, every):
    return range(count) if every else sorted({0, count - 1})


def check(program, function, every):
    found = []
    for call in calls_of(program.counts[function], every and function not in POLLS):
        try:
            found += [f"call {call}: {problem}" for problem in program.fails(function, call)]
        except subprocess.TimeoutExpired:
            found.append(f"call {call}: has not ended after {MOST_SECONDS} s")
    return found


def main():
    need_tools()
    need_emulated_gpu()
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    only = set(filter(None, arguments.only.split(",")))
    checks, seen = Checks(), set()
    with Folder() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        programs = [Program(folder, *described) for described in PROGRAMS]
        if not only or TRIED in only:
            pool.submit(checks.check, f"{programs[0].name}: {TRIED} refuses an algorithm", programs[0].refuses, TRIED)
        for function in IN_ONE_TASK:
            for failing in (0, 1) if not only or function in only else ():
                pool.submit(checks.check, f"{programs[-1].name}: {function} in task {failing}", check_task, programs[-1], function, failing)
        for program in programs:
            for function in program.counts:
                # In short, each function fails in the first program that calls it.
                if (only and function not in only) or (function in seen and not arguments.all):
                    continue
                seen.add(function)
                pool.submit(checks.check, f"{program.name}: {function}, called {program.counts[function]} times", check, program, function, arguments.all)
    if not only:
        print("never called:", *sorted(functions() - seen))
    checks.exit()


if __name__ == "__main__":
    main()
