"""distc launch: tasks on two hosts (network namespaces), which a stand-in for ssh reaches; it has a folder for temporary files on each. The numbers are TensorFlow's; the
file is copied once and verified; all end together, also where one is killed or the launcher is."""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from hosts import TwoHosts
from support import DISTC, Checks, Folder, Model, must, need_tools

SSH = """#!{python}
import json, os, sys
arguments = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(arguments) + "\\n")
target, command = arguments[-2:]
namespace, temporary = {hosts!r}[target.split("@")[-1]]
os.environ["TMPDIR"] = temporary
os.environ.pop("DISTC_SECRET", None)
os.execvp("ip", ["ip", "netns", "exec", namespace, "sh", "-c", command])
"""

MODEL = "mlp-adam"


class Run:
    """A program of two tasks, and how it is launched."""

    def __init__(self, folder, hosts):
        self.folder, self.model = folder, Model(MODEL)
        self.log = folder / "ssh.jsonl"
        places = {}
        for name, address in zip(hosts.names, hosts.addresses):
            (folder / address).mkdir()
            places[address] = (name, str(folder / address))
        (folder / "bin").mkdir()
        (folder / "bin" / "ssh").write_text(SSH.format(python=sys.executable, log=str(self.log), hosts=places))
        (folder / "bin" / "ssh").chmod(0o755)
        self.resources = folder / "resources.yml"
        self.resources.write_text("ssh:\n  lab:\n    username: somebody\n    key_file: /keys/lab\n    port: 2222\n    shared_envs:\n      SAID: it's here\nnodes:\n" + "".join(
            f"  - address: {address}\n    cpus: [0]\n    ssh_config: lab\n    chief: {'true' if i == 0 else 'false'}\n" for i, address in enumerate(hosts.addresses)))
        self.program = folder / "train"
        must([DISTC, "compile", self.model.graph, "--strategy", "AllReduce", "--resources", self.resources, "--batch", self.model.case["batch"], "-o", self.program])

    def start(self, *flags):
        command = [DISTC, "launch", self.program, "--resources", self.resources, "--directory", self.folder, "--", *flags]
        environment = dict(os.environ, PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}")
        return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)

    def tasks(self):
        """Processes of this folder's program."""
        found = []
        for process in pathlib.Path("/proc").iterdir():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except (OSError, ValueError):
                continue
            if len(words) > 3 and words[0].startswith(str(self.folder).encode()) and words[0].endswith(b"/train") and b"--task" in words:
                found.append((int(process.name), words))
        return found


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def trains():
    with Folder() as folder, TwoHosts() as hosts:
        run, found = Run(folder, hosts), []
        digest = hashlib.sha256(run.program.read_bytes()).hexdigest()
        for again in (False, True):
            launched = run.start("--data", run.model.feeds, "--steps", run.model.case["steps"], "--restore", run.model.checkpoint, "--log-json", folder / "log.jsonl",
                                 "--export-npz", folder / "final.npz")
            out = launched.communicate(timeout=120)[0]
            if launched.returncode != 0 or "[worker:0] done after" not in out:
                return [f"status {launched.returncode}: {out}"]
            found += run.model.differences(folder, replicas=2)
            calls = [json.loads(line) for line in run.log.read_text().splitlines()]
            run.log.unlink()
            for call in calls:
                if call[:-1] != ["-o", "BatchMode=yes", "-p", "2222", "-i", "/keys/lab", call[-2]] or not call[-2].startswith("somebody@10."):
                    found.append(f"ssh was called with {call}")
            # A question and a start on each host; a copy where the file is not there.
            if len(calls) != (4 if again else 6):
                found.append(f"{len(calls)} calls of ssh: {calls}")
        for address in hosts.addresses:
            copies = list((folder / address).glob("distc-*/train"))
            if len(copies) != 1 or hashlib.sha256(copies[0].read_bytes()).hexdigest() != digest:
                found.append(f"copies at {address}: {copies}")
            # One that was damaged is copied again.
            copies[0].write_bytes(b"#!/bin/sh\nexit 7\n")
        out = run.start("--data", run.model.feeds, "--steps", 1).communicate(timeout=120)[0]
        return found + ([] if "[worker:0] done after" in out else [f"behind damaged copies: {out}"])


def ends_together(how):
    """`how`: what is sent to a task, or to the launcher."""
    with Folder() as folder, TwoHosts() as hosts:
        run = Run(folder, hosts)
        launched = run.start("--data", run.model.feeds, "--steps", 1_000_000_000, "--log-json", folder / "log.jsonl", "--failure-timeout", 3)
        try:
            if not wait_until(lambda: len(run.tasks()) == 2 and (folder / "log.jsonl").exists()):
                return ["the tasks did not start"]
            found = [f"the secret is among the words of {words}" for _, words in run.tasks() if any(b"SECRET" in word for word in words)]
            for pid, _ in run.tasks():
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                if b"SAID=it's here" not in environment or not any(word.startswith(b"DISTC_SECRET=") and len(word) > 16 for word in environment):
                    found.append(f"a task's environment lacks what is shared: {environment}")
            if how == "kill a task":
                os.kill(next(pid for pid, words in run.tasks() if b"worker:1" in words), signal.SIGKILL)
            else:
                launched.send_signal(signal.SIGTERM if how == "end the launcher" else signal.SIGKILL)
            out = launched.communicate(timeout=90)[0]
            if not wait_until(lambda: not run.tasks(), 30):
                found.append(f"tasks are left: {run.tasks()}")
            want = {"kill a task": lambda status: status not in (0, 2), "end the launcher": lambda status: status == 128 + signal.SIGTERM}.get(how, lambda status: True)
            if not want(launched.returncode):
                found.append(f"status {launched.returncode}: {out}")
            return found
        finally:
            launched.kill()
            for pid, _ in run.tasks():
                os.kill(pid, signal.SIGKILL)


def refuses():
    with Folder() as folder, TwoHosts() as hosts:
        run = Run(folder, hosts)
        found = []
        (folder / "other.yml").write_text("nodes:\n  - address: 10.9.9.9\n")
        for command, text in (([DISTC, "launch", run.program, "--resources", folder / "other.yml"], "which"),
                              ([DISTC, "launch", run.program, "--resources", run.resources, "--", "--task", "worker:0"], "distc launch says"),
                              ([DISTC, "launch", "/bin/true", "--resources", run.resources], "is it an executable of distc?")):
            done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
            if done.returncode == 0 or text not in done.stdout:
                found.append(f"{command}: status {done.returncode}, {done.stdout}")
        # Who has made the folder could exchange the file once it is verified.
        digest = hashlib.sha256(run.program.read_bytes()).hexdigest()
        taken = folder / hosts.addresses[1] / f"distc-{os.getuid()}-{digest[:16]}"
        taken.mkdir()
        os.chown(taken, 4321, 4321)
        launched = run.start("--data", run.model.feeds, "--steps", 1)
        out = launched.communicate(timeout=60)[0]
        if launched.returncode == 0 or "is somebody else's" not in out or list(taken.iterdir()):
            found.append(f"somebody else's folder: status {launched.returncode}, {out}")
        return found


def main():
    need_tools()
    checks = Checks()
    checks.check("two hosts, twice", trains)
    for how in ("kill a task", "end the launcher", "kill the launcher"):
        checks.check(how, ends_together, how)
    checks.check("what is refused", refuses)
    checks.exit()


if __name__ == "__main__":
    main()
