"""--report: what a run's time went to. Keys, shares that add up, the task that is late; no time is compared with another machine's."""
import json
import os
import signal
import time

from hosts import Process, children
from support import Checks, Folder, Model, expect, need_tools, read_losses, run

MODEL = "mlp-adam"
PROCESSES = "--one-process-per-replica"
SHARES = {"compute", "waiting", "transfer", "input", "between_steps"}
STEP_TIMES = ["min", "p50", "p90", "p95", "p99", "max"]


def problems_of(report, steps, tasks, replicas):
    """What any report promises."""
    found = [f"'{key}' is missing" for key in ("done", "strategy", "graph", "steps", "seconds", "step_ms", "tasks", "replicas", "collectives", "stragglers")
             if key not in report]
    if found:
        return found
    if not report["done"] or report["steps"] != steps:
        found.append(f"done {report['done']} after {report['steps']} steps, not {steps}")
    times = [report["step_ms"][name] for name in STEP_TIMES]
    if times != sorted(times) or not times[0] <= report["step_ms"]["mean"] <= times[-1]:
        found.append(f"percentiles are not in order: {report['step_ms']}")
    if len(report["tasks"]) != tasks or len(report["replicas"]) != replicas:
        found.append(f"{len(report['tasks'])} tasks and {len(report['replicas'])} replicas, not {tasks} and {replicas}")
    for part in report["tasks"] + report["replicas"]:
        shares = part["shares"]
        if set(shares) != SHARES or min(shares.values()) < 0 or abs(sum(shares.values()) - 1) > 1e-3:
            found.append(f"shares of {part.get('task')}: {shares}")
        late = part["late"]
        if set(late) != {"steps", "share", "seconds", "dropped"} or not 0 <= late["steps"] <= steps or late["seconds"] < 0:
            found.append(f"late: {late}")
    for task in report["tasks"]:
        moved = task["transfer"]
        if (moved is None) != (tasks == 1):
            found.append(f"transfer of {task['task']}: {moved}")
        if moved and not moved["measured_bytes_per_s"] > 0:
            found.append(f"no bandwidth was measured: {moved}")
    return found


def reported(place, flags, strategy, replicas, steps=50):
    """A run's report, and that the losses are those of a run without it."""
    model = Model(MODEL)
    with Folder() as folder:
        program = model.compile(folder / "train", replicas, strategy, *place)
        command = [program, "--data", model.feeds, "--steps", steps, "--restore", model.checkpoint, *flags]
        found = expect(run([*command, "--log-json", folder / "with.jsonl", "--report", folder / "report.json"]), 0, "report: a step takes", "worker:0")
        found += expect(run([*command, "--log-json", folder / "without.jsonl"]), 0)
        if found:
            return found
        report = json.loads((folder / "report.json").read_text())
        found = problems_of(report, steps, replicas if PROCESSES in place else 1, replicas)
        served = "replicas_to_aggregate" in strategy or "sync=false" in strategy
        if PROCESSES in place and not served:
            # Processes that have their memory in common move nothing.
            moves = "--collectives=network" in flags
            if not report["collectives"] or any(c["count"] != steps or (c["bytes"] > 0) != moves for c in report["collectives"]):
                found.append(f"collectives: {report['collectives']}")
            if moves and any(task["transfer"]["bytes_per_step"] <= 0 or task["transfer"]["bytes_per_s"] <= 0 for task in report["tasks"]):
                found.append(f"nothing was moved: {report['tasks']}")
        if PROCESSES in place and served and report["tasks"][1]["transfer"]["bytes_per_step"] <= 0:
            found.append(f"nothing was pulled and pushed: {report['tasks'][1]}")
        if "sync=false" not in strategy and read_losses(folder / "with.jsonl") != read_losses(folder / "without.jsonl"):
            found.append("the losses are others than without --report")
        return found


def stopped_task_is_late(late):
    """A task that is stopped again and again is the late one, by name and by far."""
    model = Model(MODEL)
    steps = 3000000  # more than are done
    with Folder() as folder:
        program = model.compile(folder / "train", 2, "AllReduce", PROCESSES)
        process = Process([program, "--data", model.feeds, "--steps", steps, "--report", folder / "report.json", "--log-json", folder / "log.jsonl"])
        try:
            # At once: what a busy machine makes either of them wait for counts as well.
            while process.popen.poll() is None and not (folder / "log.jsonl").exists():
                time.sleep(0.01)
            pid = children(process.popen.pid)[late]
            for _ in range(10):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.6)
                os.kill(pid, signal.SIGCONT)
                time.sleep(0.02)
            os.kill(process.popen.pid, signal.SIGTERM)
            process.wait()
        finally:
            process.kill()
        report = json.loads((folder / "report.json").read_text())
        found = problems_of(report, report["steps"], 2, 2)
        if [each["who"] for each in report["stragglers"]] != [f"worker:{late}"]:
            found.append(f"late are {report['stragglers']}, not worker:{late}: {report['tasks']}")
        if f"worker:{late} is late" not in process.out:
            found.append(f"the table does not say that worker:{late} is late:\n{process.out}")
        # Which of them waits more says nothing: a task may be stopped while it waits.
        return found


def refused():
    model = Model(MODEL)
    with Folder() as folder:
        program = model.compile(folder / "train")
        command = [program, "--data", model.feeds, "--steps", 3]
        return expect(run([*command, "--report", folder / "no" / "report.json"]), 1, "error: ", "report.json")


def main():
    need_tools()
    checks = Checks()
    checks.check("threads", reported, [], [], "AllReduce", 2)
    checks.check("one replica", reported, [], [], "AllReduce", 1)
    checks.check("processes", reported, [PROCESSES], [], "AllReduce", 2)
    checks.check("processes, network", reported, [PROCESSES], ["--collectives=network"], "AllReduce", 2)
    checks.check("processes, shares of updates", reported, [PROCESSES], [], "ShardedUpdate", 2)
    checks.check("servers", reported, [], [], "PS:replicas_to_aggregate=2", 2)
    checks.check("servers, processes", reported, [PROCESSES], [], "PS:replicas_to_aggregate=2", 2)
    checks.check("servers, processes, network", reported, [PROCESSES], ["--collectives=network"], "PS:replicas_to_aggregate=2", 2)
    checks.check("asynchronous servers", reported, [PROCESSES], [], "PS:sync=false", 2)
    checks.check("the second task is late", stopped_task_is_late, 1)
    checks.check("the first task is late", stopped_task_is_late, 0)
    checks.check("a folder that is not there", refused)
    checks.exit()


if __name__ == "__main__":
    main()
