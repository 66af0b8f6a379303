"""Tasks of one host, from outside: what they listen on, what strangers can do there, and what is left when they are killed.
The program is fake-train, which needs no compiler (test/unit/support)."""
import contextlib
import os
import pathlib
import signal
import socket
import struct
import threading
import time

import numpy as np

from hosts import Process
from stops import children, command, wait_for
from support import BIN, Checks, Folder, must, need_tools

TRAIN = BIN / "fake-train"
STEPS = 1500


def message(kind, *fields):
    body = bytes([kind]) + b"".join(struct.pack("<I", len(field)) + field for field in fields)
    return struct.pack("<I", len(body)) + body


# As runtime/launch/socket.h numbers them.
HELLO, READY, SET, HEARTBEAT, FAILED, LOST, GOODBYE, ALL_GONE, WELCOME = 1, 2, 4, 7, 8, 9, 10, 11, 13
FORGED = [b"GET / HTTP/1.0\r\n\r\n", os.urandom(1000), struct.pack("<I", 0xFFFFFFFF), struct.pack("<I", 0),
          message(LOST, b"worker:1", b"1", b": forged"), message(FAILED, b"forged"), message(GOODBYE), message(ALL_GONE),
          message(SET, b"host/1", b"forged"), message(HEARTBEAT, b"1", b"1", b"1", b"x", b"1e99"), message(READY, b"127.0.0.1"),
          message(WELCOME, bytes(32)), message(HELLO), message(HELLO, b"1", b"2", b"", b""),
          *(message(HELLO, rank, b"2", b"", b"", bytes(32), bytes(32)) for rank in (b"0", b"1", b"-1", b"99", b"4294967297"))]


def listening(pids):
    """(address, port) of all sockets that these processes listen on."""
    inodes = set()
    for pid in pids:
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                    if (target := os.readlink(f"/proc/{pid}/fd/{fd}")).startswith("socket:["):
                        inodes.add(target[8:-1])
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass  # ended meanwhile
    found = set()
    for table, family, size in (("tcp", socket.AF_INET, 4), ("tcp6", socket.AF_INET6, 16)):
        path = pathlib.Path(f"/proc/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                address, port = words[1].split(":")
                raw = b"".join(bytes.fromhex(address[i:i + 8])[::-1] for i in range(0, 2 * size, 8))
                found.add((socket.inet_ntop(family, raw), int(port, 16)))
    return found


def connect(where):
    return socket.create_connection(where, 2)


def forge(where, until):
    while not until.is_set():
        for said in FORGED:
            try:
                with connect(where) as stranger:
                    stranger.sendall(said)
                    stranger.settimeout(0.01)
                    stranger.recv(1000)
            except OSError:
                pass
            if until.is_set():
                return


def trickle(where, until):
    """As many connections as there may be, each a byte now and then of a message that never ends."""
    strangers = []
    while not until.is_set():
        try:
            strangers.append(connect(where))
            strangers[-1].sendall(struct.pack("<I", 1 << 20))
        except OSError:
            time.sleep(0.01)
        for stranger in strangers[-100:]:
            try:
                stranger.send(b"x")
            except OSError:
                pass
        del strangers[:-300]


def flood(where, until):
    """Hellos without end, that reads nothing of what it is told."""
    hellos = message(HELLO, b"1", b"2", b"w", b"", bytes(32), bytes(32)) * 1000
    while not until.is_set():
        try:
            with connect(where) as stranger:
                stranger.settimeout(0.2)
                while not until.is_set():
                    stranger.sendall(hellos)
        except OSError:
            pass


def losses(log):
    return [line for line in log.read_text().splitlines() if '"loss"' in line and '"step"' in line]


@contextlib.contextmanager
def strangers_at(where):
    """Garbage, slow bytes and floods at the address until the block ends."""
    until = threading.Event()
    threads = [threading.Thread(target=attack, args=(where, until)) for attack in (forge, trickle, flood)]
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        until.set()
        for thread in threads:
            thread.join()


def exported(path):
    with np.load(path) as arrays:
        return {name: arrays[name].tobytes() for name in arrays.files}


def harmless(*flags):
    """A run among strangers, from its first moment on, against one that is left alone."""
    with Folder() as folder:
        must(command("2 2 4", folder, "--steps", STEPS, "--export-npz", folder / "alone.npz", *flags))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            where = free.getsockname()
        process = Process(command("2 2 4", folder, "--steps", STEPS, "--export-npz", folder / "among.npz", "--failure-timeout", 5,
                                  "--rendezvous", f"127.0.0.1:{where[1]}", "--log-json", folder / "log", *flags))
        found = []
        try:
            with strangers_at(where):
                wait_for("step", lambda: process.popen.poll() is not None or (folder / "log").exists() and losses(folder / "log"))
                if process.popen.poll() is None:
                    open_at = listening([process.popen.pid, *children(process.popen.pid)])
                    found += [f"listens at {a}" for a in open_at if a[0] not in ("127.0.0.1", "::1")]
                status = process.wait(120)
        finally:
            process.kill()
        if status != 0:
            return found + [f"exit status {status}:\n{process.out}"]
        if exported(folder / "alone.npz") != exported(folder / "among.npz"):
            found.append("the variables are not those of a run that was left alone")
        if process.out.count("others like it are closed without a word") != 1:
            found.append(f"not one note of strangers:\n{process.out}")
        return found


def shares_memory():
    """A run of one host listens at its rendezvous alone, and its tasks have the same file in memory."""
    with Folder() as folder:
        process = Process(command("2 2 4", folder, "--steps", 10 ** 9, "--log-json", folder / "log"))
        try:
            wait_for("step", lambda: (folder / "log").exists() and losses(folder / "log"))
            tasks = children(process.popen.pid)
            found = [f"listens at {open_at}"] if len(open_at := listening([process.popen.pid, *tasks])) != 1 else []
            return found + [f"task {task} has no shared memory" for task in tasks
                            if "memfd:distc-collectives" not in pathlib.Path(f"/proc/{task}/maps").read_text()]
        finally:
            process.kill()


def ends_with(number, victim, text, timeout):
    """A task that is killed, or stopped, in whatever it does; the others say so in time and nothing is left."""
    with Folder() as folder:
        shared = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
        process = Process(command("3 3 6", folder, "--steps", 10 ** 9, "--log-json", folder / "log", "--failure-timeout", timeout))
        tasks = []
        try:
            wait_for("step", lambda: (folder / "log").exists() and losses(folder / "log"))
            tasks = children(process.popen.pid)
            os.kill(tasks[victim], number)
            status = process.wait(timeout + 20)
            found = [] if status not in (0, None) else [f"exit status {status}"]
            found += [] if text in process.out else [f"'{text}' is not in:\n{process.out}"]
            found += [f"task {task} is still there" for task in tasks if pathlib.Path(f"/proc/{task}").exists()]
            left = set(os.listdir("/dev/shm")) - shared if shared else set()
            return found + [f"left in /dev/shm: {name}" for name in left if "distc" in name]
        finally:
            process.kill()


def main():
    need_tools(TRAIN)
    checks = Checks()
    checks.check("tasks of a host share memory, and listen at one port", shares_memory)
    for victim in range(3):
        checks.check(f"task {victim} is killed", ends_with, signal.SIGKILL, victim,
                     f"worker:{victim} was killed by signal 9" if victim == 0 else f"worker:{victim} (localhost) was lost in step", 5)
    checks.check("task 1 is stopped", ends_with, signal.SIGSTOP, 1, "worker:1 (localhost) was lost in step", 3)
    checks.check("strangers, shared memory", harmless)
    checks.check("strangers, network", harmless, "--collectives=network")
    checks.exit()


if __name__ == "__main__":
    main()
