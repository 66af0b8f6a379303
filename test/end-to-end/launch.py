"""Launching on one machine: a plain start of several tasks, its signals and restarts, and what other launchers set."""
import os
import signal
import socket

from hosts import Process
from support import BIN, Checks, Folder, expect, need_tools, run

TRAINER = BIN / "drt-test-trainer"
WEIGHT = "done: 10 steps, 2 tasks, weight 165"


def plain():
    return expect(run([TRAINER]), 0, WEIGHT, "task 0 is done", "worker:1| task 1 is done")


def dies():
    return expect(run([TRAINER, "--die", "1:5"]), 128 + signal.SIGKILL,
                  "error: worker:1 (localhost) was lost in step 5: connection closed", "worker:1 was killed by signal 9")


def fails():
    return expect(run([TRAINER, "--fail", "1:5"]), 1, "worker:1| error: the data file ends early",
                  "worker:1 (localhost) failed in step 5: the data file ends early")


def wrong_input():
    """Ends the others at once, and is not tried again."""
    done = run([TRAINER, "--wrong-input", "1", "--max-restarts", "3"])
    return expect(done, 1, "worker:1| error: no such file: data.npz") + (["restarted"] if "restart " in done.out else [])


def restart():
    with Folder() as folder:
        return expect(run([TRAINER, "--die", "1:5", "--max-restarts", "2", "--checkpoint-dir", folder]), 0, WEIGHT,
                      f"worker:1 was killed by signal 9 (Killed); restart 1 of 2 from {folder}/ckpt-5")


def gives_up():
    return expect(run([TRAINER, "--die", "0:5", "--max-restarts", "2"]), 128 + signal.SIGKILL,
                  "restart 1 of 2 from the beginning", "given up after 2 restarts")


def signal_is_passed_on():
    process = Process([TRAINER, "--linger", "1:3"])
    try:
        process.wait_for_text("lingering")
        os.kill(process.popen.pid, signal.SIGTERM)
        status = process.wait(30)
        return [f"exit status {status}, not 143:\n{process.out}"] if status != 128 + signal.SIGTERM else []
    finally:
        process.kill()


def children_end_with_the_parent():
    """Even when it is killed. They hold the pipe that is read here, so the end of it shows that they are gone."""
    process = Process([TRAINER, "--linger", "1:3"])
    try:
        process.wait_for_text("lingering")
        os.kill(process.popen.pid, signal.SIGKILL)
        process.reader.join(30)
        return ["a task outlives the process that started it"] if process.reader.is_alive() else []
    finally:
        process.kill()


def by_environment(variables):
    """Two processes, each with what a launcher sets for it; variables(rank, port) says what."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    try:
        for rank in range(2):
            settings = [f"{name}={value}" for name, value in variables(rank, port).items()]
            processes.append(Process(["env", *settings, TRAINER, "--hosts", "node-a,node-b"]))
        statuses = [process.wait() for process in processes]
        out = processes[0].out
        return [f"exit statuses {statuses}:\n{out}{processes[1].out}"] if statuses != [0, 0] or WEIGHT not in out else []
    finally:
        for process in processes:
            process.kill()


def torchrun(rank, port):
    return {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}


def tf_config(rank, port):
    cluster = f'{{"worker": ["127.0.0.1:{port}", "127.0.0.1:1"]}}'
    return {"TF_CONFIG": f'{{"cluster": {cluster}, "task": {{"type": "worker", "index": {rank}}}}}'}


def wrong_size():
    done = run(["env", "RANK=0", "WORLD_SIZE=3", TRAINER])
    return expect(done, 1, "torchrun says that there are 3 processes (WORLD_SIZE=3), but the plan has 2 tasks")


def main():
    need_tools(TRAINER)
    checks = Checks()
    checks.check("a plain start runs every task", plain)
    checks.check("a task that dies is named", dies)
    checks.check("a task that fails says why", fails)
    checks.check("wrong input is not tried again", wrong_input)
    checks.check("a restart goes on from the checkpoint", restart)
    checks.check("restarts are counted", gives_up)
    checks.check("a signal is passed on", signal_is_passed_on)
    checks.check("children end with the parent", children_end_with_the_parent)
    checks.check("torchrun's environment", by_environment, torchrun)
    checks.check("TF_CONFIG", by_environment, tf_config)
    checks.check("a launcher that disagrees with the plan", wrong_size)
    checks.exit()


if __name__ == "__main__":
    main()
