"""Executables of several numbers of workers (distc compile --min-workers): whatever the number, losses and variables are TensorFlow's, and a run goes on
with other numbers from its checkpoints. Elastic runs (--min-workers of the executable): workers are killed, go and come, and every step is in the log once with the loss of a
run that was left alone.

  elastic.py [--seed S] [--runs N] [--only WORDS]    more random ones"""
import argparse
import contextlib
import json
import os
import random
import signal
import socket
import time

import numpy as np

from hosts import PORT, Process, children
from support import Checks, Folder, Model, expect, must, need_tools, read_log, read_losses, run, saved_steps

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


STEPS, EVERY = 800, 4


class ElasticRun:
    """Workers of a small model in float64, where other sums are the same to 1e-12; saving every few steps is what its time goes to."""

    def __init__(self, folder, least=1, *flags, last_call=0.5, hosts=None, steps=STEPS):
        """`hosts`: the first half of the workers is on one of two hosts, the others on the other."""
        self.folder = folder
        self.steps = steps
        self.hosts = hosts
        self.model = Model("mlp-float64")
        self.program = compiled(self.model, folder)
        self.least = least
        self.flags = flags
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.rendezvous = f"{hosts.addresses[0]}:{PORT}" if hosts else f"127.0.0.1:{free.getsockname()[1]}"
        self.workers = {}
        self.gone = []
        common = ["--data", self.model.feeds, "--steps", steps, "--restore", self.model.checkpoint, "--quiet"]
        must([self.program, "--workers", 1, *common, "--log-json", folder / "want.jsonl", "--export-npz", folder / "want.npz"])
        self.common = [*common, "--min-workers", least, "--max-restarts", 50, "--last-call", last_call, "--failure-timeout", 8, "--arrival-timeout", 60,
                       "--checkpoint-dir", folder / "kept", "--save-every", EVERY, "--resume", "--log-json", folder / "log.jsonl", "--export-npz",
                       folder / "final.npz", "--rendezvous", self.rendezvous, *flags]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in [*self.workers.values(), *self.gone]:
            process.kill()

    def start(self, *ranks):
        for rank in ranks:
            there = ["ip", "netns", "exec", self.hosts.names[rank * 2 // WORKERS]] if self.hosts else []
            self.workers[rank] = Process([*there, "env", "DISTC_SECRET=a secret of a test, 16 or more", self.program, "--task", f"worker:{rank}", *self.common])

    def log(self):
        """Whole lines of the log so far."""
        path = self.folder / "log.jsonl"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]

    def wait(self, what, holds, timeout=90):
        until = time.monotonic() + timeout
        while not holds():
            if time.monotonic() > until:
                raise AssertionError(f"no {what} after {timeout} s; the workers said:\n{self.said()}")
            time.sleep(0.02)

    def saved(self):
        """The last step that is saved: the log's lines are not all written at once."""
        return max(saved_steps(self.folder / "kept"), default=0)

    def wait_for_step(self, step):
        self.wait(f"step {step}", lambda: self.saved() >= step)

    def wait_for_progress(self):
        """Of a group that has been formed: a task that is told to go before its first step is lost to the others."""
        self.wait_for_step(self.saved() + 2 * EVERY)

    def wait_for_workers(self, number):
        said = f"note: {number} of {WORKERS} workers compute"
        self.wait(f"group of {number}", lambda: [line for line in self.workers[0].out.splitlines() if "workers compute" in line][-1:] and
                  [line for line in self.workers[0].out.splitlines() if "workers compute" in line][-1].startswith(said))

    def kill(self, rank):
        """kill -9 of a worker with its supervisor."""
        process = self.workers.pop(rank)
        process.kill()
        self.gone.append(process)

    def kill_task(self, rank):
        """kill -9 of the task alone: its supervisor starts it again."""
        self.send_task(rank, signal.SIGKILL)

    def stop(self, rank, seconds):
        """A task stands still; its supervisor kills it where that is longer than the others wait."""
        self.send_task(rank, signal.SIGSTOP)
        time.sleep(seconds)
        self.send_task(rank, signal.SIGCONT)

    def send_task(self, rank, number):
        for child in children(self.workers[rank].popen.pid):
            with contextlib.suppress(ProcessLookupError):  # it ends as it is asked for
                os.kill(child, number)

    def terminate(self, rank):
        process = self.workers.pop(rank)
        # Before it supervises, and says a word, TERM is what it is to any process.
        expected = {0, 128 + signal.SIGTERM} | ({-signal.SIGTERM} if not process.out else set())
        os.kill(process.popen.pid, signal.SIGTERM)
        status = process.wait(60)
        self.gone.append(process)
        return [] if status in expected else [f"worker:{rank} ended with {status} after TERM:\n{process.out}"]

    def said(self):
        return "".join(f"--- worker:{rank}\n{process.out}" for rank, process in sorted(self.workers.items()))

    def end(self):
        """What is not as in a run that was left alone."""
        found = []
        for rank, process in sorted(self.workers.items()):
            if rank and self.is_too_late(process):
                process.kill()
                continue
            try:
                status = process.wait(300)
            except AssertionError:
                raise AssertionError(f"worker:{rank} does not end; the workers said:\n{self.said()}") from None
            found += [] if status == 0 else [f"worker:{rank} ended with {status}"]
        log = self.log()
        steps = [line["step"] for line in log if "loss" in line]
        if steps != list(range(self.steps)):
            found.append(f"the log has {len(steps)} steps, the last {steps[-5:]}, not {self.steps} in order")
        elif not np.allclose(read_losses(self.folder / "log.jsonl"), read_losses(self.folder / "want.jsonl"), rtol=1e-9):
            found.append("the losses are others")
        with np.load(self.folder / "final.npz") as got, np.load(self.folder / "want.npz") as want:
            found += [f"{name} is another" for name in want if not np.allclose(got[name], want[name], rtol=1e-8, atol=1e-11)]
        return found + [self.said()] if found else []

    def is_too_late(self, process):
        """Whether the run is over, and a worker that the link kept away waits for it."""
        until = time.monotonic() + 20
        while self.hosts and process.popen.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        return self.hosts and process.popen.poll() is None and process.out.rstrip().endswith("(Connection refused)")

    def sizes(self):
        log = self.log()
        return [log[0]["tasks"]] + [line["workers"] for line in log if "workers" in line]


def goes_and_comes():
    """TERM to a worker ends it alone, and nothing is computed again; one that comes is taken in."""
    with Folder() as folder, ElasticRun(folder) as run_:
        run_.start(0, 1, 2, 3)
        run_.wait_for_step(40)
        found = run_.terminate(3)
        run_.wait_for_workers(3)
        run_.start(3)
        run_.wait_for_workers(4)
        run_.wait_for_progress()
        found += run_.terminate(1)
        run_.wait_for_workers(3)
        found += run_.end()
        return found + ([] if run_.sizes() == [4, 3, 4, 3] else [f"groups of {run_.sizes()}\n{run_.said()}"])


def is_killed():
    """kill -9 of a worker and its supervisor: the others go on from the last checkpoint. Of a task alone: it comes again."""
    with Folder() as folder, ElasticRun(folder, last_call=1.5) as run_:
        run_.start(0, 1, 2, 3)
        run_.wait_for_step(40)
        run_.kill(2)
        run_.wait_for_workers(3)
        run_.kill(1)
        run_.wait_for_workers(2)
        run_.kill_task(3)
        run_.start(1)
        run_.wait_for_workers(3)
        run_.kill_task(0)
        return run_.end()


def begins_with_fewer():
    """One worker begins, others join, and one more than may compute waits until the run is over."""
    with Folder() as folder, ElasticRun(folder, 1, "--max-workers", 2) as run_:
        run_.start(0)
        run_.wait_for_workers(1)
        run_.start(2)
        run_.wait_for_workers(2)
        run_.start(3)
        run_.workers[3].wait_for_text("takes worker:3 in when its group is formed again")
        found = run_.end()
        return found + expect_text(run_.workers[3].out, "has ended without worker:3")


def has_one_timeline():
    """Workers come and go: what each has done is in one file, with the steps that groups before have done."""
    with Folder() as folder, ElasticRun(folder, 1, "--timeline", folder / "timeline.json") as run_:
        run_.start(0)
        run_.wait_for_workers(1)
        run_.wait_for_progress()
        run_.start(2)
        run_.wait_for_workers(2)
        run_.wait_for_progress()
        found = run_.terminate(2)
        run_.wait_for_workers(1)
        found += run_.end()
        trace = json.loads((folder / "timeline.json").read_text())
        rows = {(event["pid"], event["tid"]): event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
        steps, begins = {}, {}
        for event in trace["traceEvents"]:
            if event["ph"] == "X" and rows[event["pid"], event["tid"]].startswith("replica"):
                steps.setdefault(event["pid"], set()).add(event["args"]["step"])
                begins[event["args"]["step"]] = min(event["ts"], begins.get(event["args"]["step"], event["ts"]))
        if sorted(steps) != [0, 2] or not steps[2] < steps[0]:
            return [*found, f"events of workers {sorted(steps)}"]
        # The newest that a row keeps; of those before, none is missing in between.
        if sorted(steps[0]) != list(range(min(steps[0]), STEPS)):
            found.append(f"of worker:0 there are {len(steps[0])} steps, from {min(steps[0])} to {max(steps[0])}")
        if [begins[step] for step in sorted(begins)] != sorted(begins.values()):
            found.append("later steps begin before earlier ones")
        if not {"worker:2"} <= {task["task"] for task in trace["otherData"]["earlier"]}:
            found.append(f"otherData: {trace['otherData']}")
        return found


def too_few():
    """Below --min-workers the others wait, and go on when there are enough again."""
    with Folder() as folder, ElasticRun(folder, 2) as run_:
        run_.start(0, 1)
        run_.wait_for_step(40)
        run_.kill(1)
        run_.workers[0].wait_for_text("waiting for worker:1")
        run_.start(3)
        return run_.end()


def expect_text(out, text):
    return [] if text in out else [f"'{text}' is not in:\n{out}"]


def first_is_told_to_go():
    """TERM to worker:0 ends the run, which goes on when it is started again."""
    with Folder() as folder, ElasticRun(folder) as run_:
        run_.start(0, 1, 2)
        run_.wait_for_step(40)
        found = run_.terminate(0)
        for rank in (1, 2):
            process = run_.workers.pop(rank)
            status = process.wait(60)
            found += [] if status == 128 + signal.SIGTERM else [f"worker:{rank} ended with {status}:\n{process.out}"]
        run_.start(0, 3)
        return found + run_.end()


def at_random(seed, hosts=None):
    """Workers but the first are killed, go, come; tasks are killed, the first one, too; between `hosts` the link breaks, loses packets or is slow."""
    rng = random.Random(seed)
    with Folder() as folder, ElasticRun(folder, 1, "--collectives", "network" if seed % 2 else "auto", hosts=hosts) as run_:
        run_.start(*range(rng.randint(1, WORKERS)))
        found, events = [], []
        for _ in range(rng.randint(3, 7)):
            time.sleep(rng.choice([0.05, 0.3, 1, 2]) * rng.random())
            if run_.workers[0].popen.poll() is not None:
                break
            there = [rank for rank in run_.workers if rank and run_.workers[rank].popen.poll() is None]
            away = [rank for rank in range(1, WORKERS) if rank not in run_.workers]
            what = rng.choice([kind for kind, able in [("kill", there), ("terminate", there), ("kill_task", there), ("start", away), ("kill_first", True),
                                                       ("link", hosts), ("stop", there and hosts)] if able])
            if what == "link":
                events.append(disturb(hosts, rng))
                continue
            rank = 0 if what == "kill_first" else rng.choice(away if what == "start" else there)
            events.append(f"{what} {rank}")
            if what == "terminate":
                found += run_.terminate(rank)
            elif what == "stop":
                run_.stop(rank, rng.choice([0.5, 12]))
            else:
                getattr(run_, "kill_task" if what == "kill_first" else what)(rank)
        found += run_.end()
        return [f"seed {seed}: {', '.join(events)}", *found] if found else []


def disturb(hosts, rng):
    """The link, for a while; what it did."""
    what, value, seconds = rng.choice([("down", True, rng.choice([0.5, 3, 12])), ("loss", 0.2, 2), ("delay", 0.2, 2)])
    usual = getattr(hosts, what)
    setattr(hosts, what, value)
    time.sleep(seconds)
    setattr(hosts, what, usual)
    return f"link: {what} {seconds} s"


def refused():
    with Folder() as folder:
        model = Model("mlp-momentum")
        program = compiled(model, folder)
        base = [program, "--data", model.feeds, "--steps", 5]
        supervised = ["--max-restarts", 1, "--checkpoint-dir", folder / "kept", "--save-every", 1]
        found = expect(run([*base, "--min-workers", 3, "--max-workers", 2]), 2, "--min-workers 3 is more than --max-workers 2")
        found += expect(run([*base, "--min-workers", 5]), 2, "compiled for 1, 2, 3 or 4 workers, none of which is between")
        found += expect(run([*base, "--max-workers", 2]), 2, "--max-workers is the other end of --min-workers")
        found += expect(run([*base, "--min-workers", 1, "--workers", 2]), 2, "--workers and --min-workers exclude each other")
        found += expect(run([*base, "--min-workers", 1]), 2, "say --max-restarts R, --checkpoint-dir D and --save-every K")
        found += expect(run([*base, "--min-workers", 1, *supervised]), 2, "--min-workers is for workers that are started one by one")
        plain = model.compile(folder / "plain", 2, "AllReduce", "--one-process-per-replica")
        return found + expect(run([plain, "--data", model.feeds, "--steps", 5, "--min-workers", 1, *supervised]), 2, "the program is compiled for 2 workers")


if __name__ == "__main__":
    need_tools()
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    checks = Checks()
    elastic = {"workers go and come": goes_and_comes, "workers are killed": is_killed, "a run begins with fewer": begins_with_fewer,
               "a run has one timeline": has_one_timeline, "too few": too_few, "the first is told to go": first_is_told_to_go, "refused": refused}
    for name, function in elastic.items():
        if arguments.only in name:
            checks.check(name, function)
    if arguments.only in "random":
        for seed in range(arguments.seed, arguments.seed + arguments.runs):
            checks.check(f"random, seed {seed}", at_random, seed)
    if arguments.only:
        checks.exit()
    # Synchronous servers are tasks of workers: who holds what follows from their number.
    for name, strategy in [("mlp-momentum", "AllReduce"), ("mlp-adam", "ShardedUpdate"), ("mlp-momentum", "PSLoadBalancing"), ("embedding-adam", "Parallax")]:
        checks.check(f"{name}, {strategy}, any number of workers", every_number, name, strategy)
        checks.check(f"{name}, {strategy}, a step each", hands_over, name, strategy)
    checks.check("as many as a launcher has started", launchers_number)
    checks.check("numbers that the batch has no shares for", left_out)
    checks.exit()
