"""Hosts for the tests of plans that span several: network namespaces of this machine, joined by one veth pair.

Nothing leaves them. Needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) and `ip`; without, the test is skipped and says so.

  hosts.py COMMAND…    runs `COMMAND… --task worker:I --rendezvous …` on each of two hosts, and ends with the larger status
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

from support import skip

PREFIX = "distc-test"
PORT = 29500


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def remove_stale():
    """What a killed test left behind: a namespace's name holds the process that made it."""
    for line in ip("netns", "list", check=False).stdout.splitlines():
        name = line.split()[0]
        if name.startswith(PREFIX + "-") and not pathlib.Path(f"/proc/{name.split('-')[2]}").exists():
            ip("netns", "del", name, check=False)


class Process:
    """A task that runs on a host. What it prints is collected while it runs."""

    def __init__(self, command):
        self.command = [str(c) for c in command]
        self.lines = []
        self.changed = threading.Condition()
        self.popen = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.popen.stdout:
            with self.changed:
                self.lines.append(line)
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    @property
    def out(self):
        return "".join(self.lines)

    def wait_for_text(self, text, timeout=60):
        """Until it has printed `text`; fails when it ends without, or after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while text not in self.out:
                left = deadline - time.monotonic()
                if left <= 0 or not self.reader.is_alive():
                    raise AssertionError(f"'{text}' is not in what was printed by {' '.join(self.command)}\n{self.out}")
                self.changed.wait(min(left, 0.5))

    def wait(self, timeout=60):
        """The exit status; fails, with what was printed, where it does not end in time."""
        try:
            status = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still running after {timeout} s: {' '.join(self.command)}\n{self.out}") from None
        self.reader.join(10)
        return status

    def kill(self):
        """kill -9 of the task and all that it started."""
        try:
            os.killpg(self.popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for child in children(self.popen.pid):
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.popen.wait()


def children(pid):
    try:
        return [int(c) for c in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class TwoHosts:
    """with TwoHosts() as hosts: hosts.start(0, command); hosts.addresses[1]; …"""

    addresses = ("10.231.77.1", "10.231.77.2")

    def __init__(self):
        self.names = [f"{PREFIX}-{os.getpid()}-{i}" for i in range(2)]
        self.processes = []

    def __enter__(self):
        if not shutil.which("ip"):
            skip("needs the program ip: apt-get install iproute2")
        remove_stale()
        try:
            for name in self.names:
                ip("netns", "add", name)
            # Made inside the first namespace, so that nothing shows outside, even for a moment.
            ip("-n", self.names[0], "link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns",
               self.names[1])
            for name, address in zip(self.names, self.addresses):
                ip("-n", name, "address", "add", f"{address}/24", "dev", "veth0")
                ip("-n", name, "link", "set", "veth0", "up")
                ip("-n", name, "link", "set", "lo", "up")
            ip("netns", "exec", self.names[0], "true")
        except subprocess.CalledProcessError as error:
            self.__exit__()
            skip(f"needs network namespaces, which this machine does not permit: `{' '.join(error.cmd)}` says "
                 f"'{error.stderr.strip()}'; run the tests as root")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for name in self.names:
            ip("netns", "del", name, check=False)

    def start(self, host, command):
        process = Process(["ip", "netns", "exec", self.names[host], *command])
        self.processes.append(process)
        return process

    def start_task(self, host, command, port=PORT, task=None):
        """Task worker:HOST of a plan with one task a host, or another one."""
        return self.start(host, [*command, "--task", f"worker:{host if task is None else task}", "--rendezvous", f"{self.addresses[0]}:{port}"])

    def cut(self):
        """The cable is pulled: packets are lost, connections stay open."""
        ip("-n", self.names[0], "link", "set", "veth0", "down")


def main():
    with TwoHosts() as hosts:
        tasks = [hosts.start_task(i, sys.argv[1:]) for i in range(2)]
        statuses = [task.wait(600) for task in tasks]
        for i, task in enumerate(tasks):
            print(f"--- worker:{i} on {hosts.addresses[i]}: exit status {statuses[i]}\n{task.out}", end="")
    sys.exit(max(statuses))


if __name__ == "__main__":
    main()
