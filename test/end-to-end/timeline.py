"""--timeline of several tasks: one file, every task's rows, on one clock. What the clocks are off by is known here, since the
hosts are time namespaces of this machine; and nobody's collective ends before all have begun it, whatever the clocks.
"""
import json
import shutil
import signal
import subprocess
import time

from hosts import Process
from proxy import Proxy
from support import HAS_EMULATED_GPU, Checks, Folder, Model, expect, must, need_tools, read_log, read_losses, run

MODEL = "mlp-adam"
PROCESSES = "--one-process-per-replica"
PORT = 29571
AHEAD_S = 5000
# Of the file's numbers, in microseconds.
ROUNDING = 0.002


def other_clock(command):
    """The command where the monotonic clock is ahead."""
    return ["unshare", "--time", "--monotonic", AHEAD_S, "--fork", "--kill-child", *command]


def has_time_namespaces():
    return shutil.which("unshare") and subprocess.run([str(word) for word in other_clock(["true"])], stderr=subprocess.DEVNULL).returncode == 0


def spans(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def described(trace):
    return trace["otherData"]["tasks"]


def all_reduces(trace):
    """Of each step's all-reduces, when each task was in it: what replicas start and wait for is done by a thread of its own."""
    found = {}
    moves = {(event["pid"], event["tid"]) for event in trace["traceEvents"] if event["name"] == "thread_name" and event["args"]["name"] == "communication"}
    for event in spans(trace):
        if event["cat"] == "all_reduce" and (event["pid"], event["tid"]) in moves:
            found.setdefault((event["args"]["step"], event["name"]), {})[event["pid"]] = (event["ts"], event["ts"] + event["dur"])
    return found


def problems_of(trace, tasks, steps):
    found = []
    names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    if sorted(names) != list(range(tasks)) or any(not name.startswith(f"worker:{pid} (") for pid, name in names.items()):
        found.append(f"the tasks are {names}")
    known = {(event["pid"], event["tid"]) for event in trace["traceEvents"] if event["name"] == "thread_name"}
    if unknown := {(event["pid"], event["tid"]) for event in spans(trace)} - known:
        found.append(f"rows without a name: {unknown}")
    if [task["task"] for task in described(trace)] != [f"worker:{i}" for i in range(tasks)] or not all(task["complete"] for task in described(trace)):
        found.append(f"otherData: {described(trace)}")
    if [task["events"] for task in described(trace)] != [sum(event["pid"] == pid for event in spans(trace)) for pid in range(tasks)]:
        found.append(f"there are other events than otherData says: {described(trace)}")
    if any(event["ts"] < 0 or event["dur"] < 0 for event in spans(trace)):
        found.append("events before the run")
    for pid in range(tasks):
        if {event["args"]["step"] for event in spans(trace) if event["pid"] == pid} < set(range(steps)):
            found.append(f"worker:{pid} has no events of some steps")
    return found


def overlaps(trace, tasks, steps):
    """An all-reduce has every task's numbers: it ends on none before it has begun on all."""
    together = {key: times for key, times in all_reduces(trace).items() if len(times) == tasks}
    if len({step for step, _ in together}) < steps:
        return [f"all-reduces of {len(together)} kinds and steps only"]
    off = [task["uncertainty_us"] for task in described(trace)]
    found = []
    for key, times in together.items():
        for one, (begin, _) in times.items():
            for other, (_, end) in times.items():
                if begin - end > off[one] + off[other] + ROUNDING:
                    found.append(f"{key} ends in worker:{other} {begin - end} us before worker:{one} begins it; clocks are known to {off}")
    return found[:5]


def wrong_clock(trace, task, ahead_us):
    said = described(trace)[task]
    if said["clock"] != "measured" or abs(said["ahead_us"] - ahead_us) > said["uncertainty_us"] + ROUNDING:
        return [f"worker:{task} is ahead by {ahead_us} us: {said}"]
    return []


def of_processes(replicas, flags=(), target=()):
    model, steps = Model(MODEL), 6
    with Folder() as folder:
        program = model.compile(folder / "train", replicas, "AllReduce", PROCESSES, *target)
        command = [program, "--data", model.feeds, "--steps", steps, "--quiet", "--restore", model.checkpoint, *flags]
        logs = folder / "logs"
        logs.mkdir()
        found = expect(run([*command, "--log-json", logs / "with.jsonl", "--timeline", folder / "t.json"]), 0)
        found += expect(run([*command, "--log-json", logs / "without.jsonl"]), 0)
        if found:
            return found
        if read_losses(logs / "with.jsonl") != read_losses(logs / "without.jsonl"):
            found.append("the losses are others than without --timeline")
        trace = json.loads((folder / "t.json").read_text())
        # One host has one clock.
        found += [] if all(task["clock"] == "shared" for task in described(trace)) else [f"clocks: {described(trace)}"]
        if left := sorted(path.name for path in folder.iterdir() if path.name not in ("train", "t.json", "logs")):
            found.append(f"there are other files: {left}")
        # A device measures times more coarsely than two tasks differ in.
        return found + problems_of(trace, replicas, steps) + ([] if target else overlaps(trace, replicas, steps))


def start(program, model, task, folder, *more, rendezvous=PORT, wrapped=lambda command: command):
    command = [program, "--data", model.feeds, "--quiet", "--task", f"worker:{task}", "--rendezvous", f"127.0.0.1:{rendezvous}",
               "--collectives=network", "--failure-timeout", 30, *more]
    return Process(wrapped(command))


def of_two_clocks(delayed):
    """A host whose clock is ahead, and a network that is slow in one way, which is what an exchange cannot see."""
    model, steps = Model(MODEL), 6
    delay = 0.005
    with Folder() as folder:
        program = model.compile(folder / "train", 2, "AllReduce", PROCESSES)
        with Proxy(PORT, **{delayed: delay} if delayed else {}) as proxy:
            flags = ["--steps", steps, "--timeline", folder / "t.json"]
            first = start(program, model, 0, folder, *flags)
            second = start(program, model, 1, folder, *flags, rendezvous=proxy.port, wrapped=other_clock)
            statuses = [first.wait(120), second.wait(120)]
        if statuses != [0, 0]:
            return [f"exit statuses {statuses}", first.out, second.out]
        trace = json.loads((folder / "t.json").read_text())
        found = problems_of(trace, 2, steps) + overlaps(trace, 2, steps) + wrong_clock(trace, 1, AHEAD_S * 1e6)
        if delayed and described(trace)[1]["uncertainty_us"] < delay * 1e6 / 2:
            found.append(f"what is slow by {delay} s can be off by half of that: {described(trace)[1]}")
        return found


def lost(victim):
    """A task is killed: those that are left say what they have done, and task 0 whose events are missing."""
    model = Model(MODEL)
    with Folder() as folder:
        program = model.compile(folder / "train", 3, "AllReduce", PROCESSES)
        flags = ["--steps", 1000000000, "--timeline", folder / "t.json", "--log-json", folder / "log.jsonl"]
        tasks = [start(program, model, task, folder, *flags) for task in range(3)]
        deadline = time.monotonic() + 60
        while not (folder / "log.jsonl").exists() or len(read_log(folder / "log.jsonl")) < 20:
            if time.monotonic() > deadline:
                return ["no steps were done", *(task.out for task in tasks)]
            time.sleep(0.05)
        tasks[victim].popen.send_signal(signal.SIGKILL)
        statuses = [task.wait(60) for task in tasks]
        found = [] if [status for task, status in enumerate(statuses) if task != victim] == [1, 1] else [f"exit statuses {statuses}"]
        out = "".join(task.out for task in tasks)
        if victim == 0:
            return found + (["there is a timeline, though task 0 was killed"] if (folder / "t.json").exists() else [])
        if not (folder / "t.json").exists():
            return [*found, f"there is no timeline:\n{out}"]
        trace = json.loads((folder / "t.json").read_text())
        if [task["complete"] for task in described(trace)] != [task != victim for task in range(3)]:
            found.append(f"complete: {described(trace)}")
        if f"has no events of worker:{victim} (localhost)" not in tasks[0].out:
            found.append(f"nothing says that worker:{victim}'s events are missing:\n{out}")
        both = [times for times in all_reduces(trace).values() if len(times) == 2]
        return found + ([] if both else ["no step of those that are left"])


def of_some():
    """Who gives it to one task alone is told."""
    model = Model(MODEL)
    with Folder() as folder:
        program = model.compile(folder / "train", 2, "AllReduce", PROCESSES)
        first = start(program, model, 0, folder, "--steps", 3, "--timeline", folder / "t.json", "--arrival-timeout", 20)
        second = start(program, model, 1, folder, "--steps", 3)
        status = second.wait(60)
        first.kill()
        return [] if status == 1 and "not the flags, that worker:0" in second.out else [f"exit status {status}:\n{second.out}"]


def of_one():
    model = Model(MODEL)
    with Folder() as folder:
        program = model.compile(folder / "train", 2)
        must([program, "--data", model.feeds, "--steps", 3, "--quiet", "--timeline", folder / "t.json"])
        trace = json.loads((folder / "t.json").read_text())
        return [] if described(trace)[0]["complete"] and len(described(trace)) == 1 and spans(trace) else [f"otherData: {described(trace)}"]


def main():
    need_tools()
    checks = Checks()
    checks.check("one task", of_one)
    checks.check("three processes", of_processes, 3)
    checks.check("three processes, network", of_processes, 3, ["--collectives=network"])
    if HAS_EMULATED_GPU:
        checks.check("two processes, emulated GPUs", of_processes, 2, [], ["--target=cuda:emulated"])
    if has_time_namespaces():
        checks.check("two clocks", of_two_clocks, None)
        checks.check("two clocks, slow to task 0", of_two_clocks, "there")
        checks.check("two clocks, slow from task 0", of_two_clocks, "back")
    else:
        print("not looked at: two clocks, for which this machine permits no time namespaces; run the tests as root")
    checks.check("the last task is lost", lost, 2)
    checks.check("the first task is lost", lost, 0)
    checks.check("one task alone has the flag", of_some)
    checks.exit()


if __name__ == "__main__":
    main()
