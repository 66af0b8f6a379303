"""The files of examples/restarts: their commands run, under stand-ins for srun and torchrun that say what those say to their tasks; tasks that
are killed come again; and the Kubernetes manifest fits its schema, where the package kubernetes-validate is installed.
The program is fake-train, which needs no compiler (test/unit/support)."""
import importlib.util
import os
import pathlib
import re
import shlex
import signal

import numpy as np

from hosts import Process
from stops import children, data, free_port, wait_for
from support import BIN, ROOT, Checks, Folder, must, need_tools, read_log, run, saved_steps

EXAMPLES = ROOT / "examples" / "restarts"
TRAIN = BIN / "fake-train"
EPOCHS, STEPS = 1000, 2500  # of 10 examples, in batches of 4

# Starts the program on "two nodes"; $FREE_PORT stands for the port of the launcher.
SRUN = """#!/usr/bin/env bash
shift # --kill-on-bad-exit
export SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=localhost
SLURM_PROCID=0 "$@" --rendezvous 127.0.0.1:$FREE_PORT & first=$!
SLURM_PROCID=1 "$@" --rendezvous 127.0.0.1:$FREE_PORT & second=$!
trap 'kill -TERM $first $second' TERM
status=0
for task in $first $second; do
  wait $task || { wait $task; s=$?; [ $s -gt $status ] && status=$s; }
done
exit $status
"""
# An agent: when a task fails it ends the others and starts all again.
TORCHRUN = """#!/usr/bin/env bash
while [ "$1" != "$TRAIN" ]; do shift; done
export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$FREE_PORT
for attempt in 1 2 3 4 5; do
  RANK=0 "$@" & first=$!
  RANK=1 "$@" & second=$!
  wait -n; status=$?
  [ $status -eq 0 ] && wait $first && wait $second && exit 0
  kill -9 $first $second 2>/dev/null; wait
done
exit 1
"""


def stand_in(folder, name, text):
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)


def environment(folder):
    (folder / "secret").write_text("a secret of a test that nobody keeps\n")
    stand_in(folder, "srun", SRUN)
    stand_in(folder, "torchrun", TORCHRUN)
    stand_in(folder, "scontrol", '#!/usr/bin/env bash\necho "$@" > requeued\n')
    return [f"PATH={folder}:{os.environ['PATH']}", "FAKE_PLAN=2 2 4", f"TRAIN={TRAIN}", f"DATA={data(folder)}", f"EPOCHS={EPOCHS}",
            f"FREE_PORT={free_port()}", "SLURM_JOB_ID=7", "NODE=0", "MASTER=localhost"]


def in_folder(folder, script):
    return Process(["env", "-C", folder, *environment(folder), EXAMPLES / script])


def tasks_of(pid):
    """Processes under one that run the program and supervise none."""
    below = children(pid) if pathlib.Path(f"/proc/{pid}").exists() else []
    found = [task for child in below for task in tasks_of(child)]
    return found or ([pid] if os.readlink(f"/proc/{pid}/exe") == str(TRAIN.resolve()) else [])


def whole(folder):
    """What is wrong with the log of a run that has ended."""
    steps = [line["step"] for line in read_log(folder / "log.jsonl") if "step" in line]
    return [] if steps == list(range(STEPS)) else [f"{len(steps)} lines in the log, not {STEPS} in order"]


def survives(script):
    """A task is killed behind the first checkpoint."""
    with Folder() as folder:
        process = in_folder(folder, script)
        try:
            wait_for("checkpoint", lambda: saved_steps(folder / "checkpoints"))
            os.kill(tasks_of(process.popen.pid)[-1], signal.SIGKILL)
            status = process.wait(120)
            return whole(folder) if status == 0 else [f"exit status {status}:\n{process.out}"]
        finally:
            process.kill()


def is_requeued():
    """Slurm's warning, and the job a second time."""
    with Folder() as folder:
        process = in_folder(folder, "slurm.sh")
        try:
            wait_for("checkpoint", lambda: saved_steps(folder / "checkpoints"))
            for task in tasks_of(process.popen.pid):
                os.kill(task, signal.SIGTERM)
            status = process.wait(60)
            if status != 143 or not (folder / "requeued").exists():
                return [f"exit status {status}, requeued: {(folder / 'requeued').exists()}\n{process.out}"]
            process = in_folder(folder, "slurm.sh")
            status = process.wait(120)
            return whole(folder) if status == 0 else [f"exit status {status}:\n{process.out}"]
        finally:
            process.kill()


def starts_tasks(commands):
    """The commands, of one task each, run together; port 29500 is another one here."""
    with Folder() as folder:
        secret = ["DISTC_SECRET=a secret of a test that nobody keeps", *environment(folder)]
        data(folder, "train.npz")
        port = free_port()
        processes = [Process(["env", "-C", folder, *secret, TRAIN,
                              *(re.sub(r"(train-0\.train|host-0):29500", f"127.0.0.1:{port}", word) for word in command[1:])])
                     for command in commands]
        try:
            statuses = [process.wait(120) for process in processes]
            return whole_of_hundred(folder) if statuses == [0, 0] else [f"exit statuses {statuses}:\n{processes[0].out}{processes[1].out}"]
        finally:
            for process in processes:
                process.kill()


def whole_of_hundred(folder):
    """The files say 100 epochs."""
    count = sum("loss" in line for line in read_log(folder / "log.jsonl"))
    return [] if count == STEPS // 10 else [f"{count} steps in the log, not {STEPS // 10}"]


def systemd():
    text = (EXAMPLES / "distc-train@.service").read_text().replace("\\\n", " ")
    line = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    return starts_tasks([shlex.split(line.removeprefix("ExecStart=").replace("%i", str(i))) for i in range(2)])


def kubernetes():
    text = (EXAMPLES / "kubernetes.yaml").read_text()
    words = [word.split(" #")[0].strip() for word in re.findall(r"^ {12}- (\./train|--.*)$", text, re.MULTILINE)]
    return starts_tasks([[word.replace("$(TASK)", str(i)) for word in words] for i in range(2)])


def fits_schema():
    if importlib.util.find_spec("kubernetes_validate") is None or importlib.util.find_spec("yaml") is None:
        print("       (not compared with its schema: kubernetes-validate is not installed)")
        return []
    import kubernetes_validate
    import yaml
    for document in yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    return []


def main():
    need_tools(TRAIN)
    checks = Checks()
    for script in ("slurm.sh", "torchrun.sh"):
        must(["bash", "-n", EXAMPLES / script])
        checks.check(f"{script}, a task is killed", survives, script)
    checks.check("slurm.sh, its time is up", is_requeued)
    checks.check("the unit of systemd", systemd)
    checks.check("the tasks of Kubernetes", kubernetes)
    checks.check("the manifest of Kubernetes", fits_schema)
    checks.exit()


if __name__ == "__main__":
    main()
