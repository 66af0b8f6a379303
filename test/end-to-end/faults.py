"""Faults at random moments: whatever dies, stops, fills up or breaks off, a run ends at the step that was asked for, with the bits
of a run that was left alone, every step in its log once, and leaves nothing behind.

  faults.py [--seed S] [--faults N] [--only FORM,…] [--kinds KIND,…] [--report FILE]

Without flags a few faults of some forms; docs/reliability.md holds what hundreds gave (--faults 400 --report docs/reliability.md).
The supervisors are the executables' own (--max-restarts). What is killed with its supervisor is started again by this script, with
--resume, as a scheduler would. Programs are compiled where distc is built, else fake-train's alone (test/unit/support).
"""
import argparse
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np

from hosts import PORT, Process, children
from slow_link import SlowHosts
from strangers import HELLO, flood, forge, listening, message, trickle
from support import BIN, DISTC, Folder, Model, must, need_tools, saved_steps

FAKE = BIN / "fake-train"
MARK = "FAULTS_RUN"  # in the environment of all that a run starts
TIMEOUT, ARRIVAL = 4, 20  # --failure-timeout, --arrival-timeout


# ---- Programs ----------------------------------------------------------------------------


@dataclasses.dataclass
class Form:
    """How a run is started: what is executed, and as how many processes that a scheduler starts."""
    name: str
    command: list
    steps: int
    every: int  # --save-every
    units: int = 1  # started one by one where there are several
    exact: bool = True  # asynchronous servers' numbers depend on who comes first
    network: bool = False  # --collectives=network
    hosts: bool = False  # two, with a link that can be slow, lose packets and break


def fake(name, plan, folder, steps, every, **more):
    path = folder / "fake.npz"
    if not path.exists():
        np.savez(path, x=np.arange(50000, dtype=np.float32).reshape(10, 5000) % 7, rate=np.float32(0.25))
    return Form(name, ["env", f"FAKE_PLAN={plan}", FAKE, "--data", path], steps, every, **more)


def compiled(name, strategy, folder, steps, every, *flags, model="mlp-adam", **more):
    model = Model(model)
    path = folder / (name.replace(" ", "-").replace(",", "") + ".exe")
    model.compile(path, 2, strategy, *flags)
    return Form(name, [path, "--data", model.feeds], steps, every, **more)


def on_two_hosts(name, strategy, folder, steps, every, each=1, model="mlp-adam", encrypted=False):
    """`each`: tasks of a host."""
    resources = folder / f"resources{each}.yml"
    resources.write_text("nodes:\n" + "".join(f"  - address: {address}\n    cpus: {list(range(each))}\n    chief: {'true' if i == 0 else 'false'}\n"
                                              for i, address in enumerate(SlowHosts.addresses)))
    model = Model(model)
    path = folder / (name.replace(" ", "-").replace(",", "") + ".exe")
    must([DISTC, "compile", model.graph, "--strategy", strategy, "--resources", resources, "--batch", model.case["batch"], "-o", path,
          *["--one-process-per-replica"] * (each > 1), *["--tls"] * encrypted])
    return Form(name, [path, "--data", model.feeds, *(certificate(folder) if encrypted else [])], steps, every, units=2 * each, hosts=True)


def certificate(folder):
    key, cert = folder / "key.pem", folder / "cert.pem"
    if not cert.exists():
        must(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=test", "-days", 3, "-keyout", key,
              "-out", cert])
    return ["--tls-cert", cert, "--tls-key", key, "--tls-ca", cert]


def forms(folder, few):
    """(name, what makes it); `few`: those of a test."""
    steps = 2000 if few else 4000
    made = [("threads of one process", lambda n: fake(n, "2 1 4", folder, steps, 200)),
            ("three processes of one host", lambda n: fake(n, "3 3 6", folder, steps, 200)),
            ("tasks with a supervisor each", lambda n: fake(n, "2 2 4", folder, steps, 200, units=2))]
    if not few:
        made += [("tasks with a supervisor each, network", lambda n: fake(n, "3 3 6", folder, 1000, 50, units=3, network=True))]
    if not DISTC.exists():
        return made
    split = "--one-process-per-replica"
    made += [("servers, processes", lambda n: compiled(n, "PSLoadBalancing", folder, steps, 200, "--ps", 2, split))]
    if few:
        return made
    return made + [("compiled, threads", lambda n: compiled(n, "AllReduce", folder, 3000, 200)),
                   ("compiled, processes", lambda n: compiled(n, "AllReduce", folder, 3000, 200, split)),
                   ("emulated GPUs", lambda n: compiled(n, "AllReduce", folder, 300, 20, "--target", "cuda:emulated")),
                   ("emulated GPUs, processes", lambda n: compiled(n, "AllReduce", folder, 300, 20, "--target", "cuda:emulated", split)),
                   ("servers, threads", lambda n: compiled(n, "PS", folder, 3000, 200, "--ps", 1)),
                   ("servers, a supervisor each", lambda n: compiled(n, "PSLoadBalancing", folder, 2500, 200, "--ps", 2, split, units=2)),
                   ("servers that count gradients", lambda n: compiled(n, "PS:replicas_to_aggregate=2", folder, 2500, 200, split)),
                   ("asynchronous servers", lambda n: compiled(n, "PS:sync=false", folder, 3000, 200, split, exact=False)),
                   ("two hosts", lambda n: on_two_hosts(n, "AllReduce", folder, 800, 50)),
                   ("two hosts with servers", lambda n: on_two_hosts(n, "PSLoadBalancing", folder, 800, 50)),
                   ("two hosts of two tasks", lambda n: on_two_hosts(n, "AllReduce", folder, 600, 50, 2)),
                   ("two hosts of two tasks with servers", lambda n: on_two_hosts(n, "PSLoadBalancing", folder, 600, 50, 2)),
                   ("two hosts of two tasks with tables", lambda n: on_two_hosts(n, "Parallax", folder, 400, 50, 2, "embedding-adagrad")),
                   ("two hosts, encrypted", lambda n: on_two_hosts(n, "AllReduce", folder, 600, 50, encrypted=True)),
                   ("two hosts of two tasks, encrypted", lambda n: on_two_hosts(n, "ShardedUpdate", folder, 400, 50, 2, encrypted=True)),
                   ("servers, rows pulled", lambda n: compiled(n, "PartitionedPS", folder, 1500, 100, "--ps", 2, split, model="embedding-adagrad", network=True)),
                   ("servers that count rows", lambda n: compiled(n, "PS:replicas_to_aggregate=2", folder, 2500, 200, split, model="embedding-adam")),
                   ("two hosts, servers that count gradients", lambda n: on_two_hosts(n, "PS:replicas_to_aggregate=2", folder, 600, 50)),
                   ("two hosts of two tasks with a server that counts", lambda n: on_two_hosts(n, "PS:replicas_to_aggregate=4", folder, 400, 50, 2))]


# ---- A run -------------------------------------------------------------------------------


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def marked(mark):
    """Processes of a run, whoever their parents are now."""
    found = []
    for path in pathlib.Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                if f"{MARK}={mark}\0".encode() in (path / "environ").read_bytes():
                    if (path / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                        found.append(int(path.name))
            except OSError:
                pass
    return found


def shared_files():
    """What may be left of shared memory. (Sockets without a file go with the last process that has them.)"""
    return {f"/dev/shm/{name}" for name in os.listdir("/dev/shm") if "distc" in name} if os.path.isdir("/dev/shm") else set()


def temporaries(folder):
    return sorted(p.name for p in folder.rglob("*") if "temp" in p.name)


class Run:
    """A run under faults; its units are started again, with --resume, when a fault took their supervisor."""
    count = 0

    def __init__(self, form, folder, restarts=1000, hosts=None):
        Run.count += 1
        self.mark = f"{os.getpid()}-{Run.count}"
        self.form, self.folder = form, folder
        folder.mkdir()
        self.checkpoints, self.log, self.final = folder / "checkpoints", folder / "log.jsonl", folder / "final.npz"
        self.flags = ["--quiet", "--steps", form.steps, "--seed", 7, "--shuffle", "--checkpoint-dir", self.checkpoints, "--save-every", form.every,
                      "--log-json", self.log, "--export-npz", self.final, "--failure-timeout", TIMEOUT, "--max-restarts", restarts, "--no-pin",
                      "--arrival-timeout", ARRIVAL]
        if form.network:
            self.flags += ["--collectives", "network"]
        self.hosts = hosts
        self.rendezvous = f"{hosts.addresses[0]}:{PORT}" if hosts else f"127.0.0.1:{free_port()}"
        self.units = [None] * form.units
        self.resumes = False
        self.printed = []
        self.before = shared_files()

    def command(self, unit):
        command = ["env", f"{MARK}={self.mark}", f"DISTC_SECRET=the-secret-of-{self.mark}-run", *self.form.command, *self.flags]
        if self.form.units > 1:
            command += ["--task", f"worker:{unit}", "--rendezvous", self.rendezvous]
        if self.hosts:
            command = ["ip", "netns", "exec", self.hosts.names[unit * 2 // self.form.units], *command]
        return command + (["--resume"] if self.resumes else [])

    def start(self, unit):
        if self.units[unit]:
            self.printed.append(self.units[unit].out)
        self.units[unit] = Process(self.command(unit))

    def start_all(self):
        for unit in range(len(self.units)):
            self.start(unit)

    def tasks(self):
        return [child for unit in self.units for child in children(unit.popen.pid)]

    def ended(self):
        return all(unit.popen.poll() is not None for unit in self.units)

    def failed(self):
        return any(unit.popen.poll() not in (None, 0) for unit in self.units)

    @property
    def out(self):
        return "\n".join([*self.printed, *(unit.out for unit in self.units if unit)])

    def restarts(self):
        return self.out.count("; restart ")

    def kill_all(self):
        # Who has just been started has no mark before it executes something: it would be waited for, and go on.
        for unit in self.units:
            if unit and unit.popen.poll() is None:
                unit.popen.kill()
        for pid in marked(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for unit in self.units:
            if unit:
                unit.popen.wait()

    def finish(self, timeout):
        """Waits for the end; what is not as promised."""
        deadline = time.monotonic() + timeout
        while not self.ended() and time.monotonic() < deadline:
            time.sleep(0.01)
        if not self.ended():
            return [f"hangs: not at its end {timeout} s after the last fault"]
        for unit in self.units:
            unit.reader.join(5)
        statuses = [unit.popen.returncode for unit in self.units]
        return [] if not any(statuses) else [f"exit statuses {statuses}"]

    def left(self):
        """What is left when all has ended."""
        deadline = time.monotonic() + 2 * TIMEOUT
        # Another run's files come and go meanwhile.
        while ((alive := marked(self.mark)) or shared_files() - self.before) and time.monotonic() < deadline:
            time.sleep(0.02)
        found = [f"process {pid} is left" for pid in alive]
        found += [f"{name} is left" for name in temporaries(self.folder)]
        return found + [f"{name} is left" for name in shared_files() - self.before]


def read_log(path):
    """(losses by step, in order; what is wrong with the lines)"""
    lines = path.read_text().splitlines()
    found, losses = [], []
    try:
        lines = [json.loads(line) for line in lines]
    except ValueError as error:
        return [], [f"the log has a line that is none: {error}"]
    if "strategy" not in lines[0]:
        found.append("the log's first line does not say what runs")
    if lines[-1].get("done") is not True or sum("done" in line for line in lines) != 1:
        found.append(f"the log does not end with the run: {lines[-1]}")
    for at, line in enumerate(line for line in lines if "step" in line):
        if line["step"] != at:
            found.append(f"step {line['step']} stands in the log where step {at} should")
            break
        losses.append(line["loss"])
    return losses, found


def arrays(path):
    with np.load(path) as file:
        return {name: file[name].tobytes() for name in file.files}


def differences(run, reference):
    """Of a run that has ended from one that was left alone."""
    losses, found = read_log(run.log)
    if len(losses) != run.form.steps:
        found.append(f"{len(losses)} steps in the log, not {run.form.steps}")
    elif run.form.exact:
        want, variables = reference
        wrong = [k for k, (a, b) in enumerate(zip(losses, want)) if a != b]
        if wrong:
            found.append(f"losses differ from step {wrong[0]} on: {losses[wrong[0]]}, not {want[wrong[0]]}")
        if arrays(run.final) != variables:
            found.append("the variables are not those of a run that was left alone")
    return found


# ---- Faults ------------------------------------------------------------------------------


class Faults:
    """Strikes a run at random moments, and counts."""

    def __init__(self, run, rng, counts):
        self.run, self.rng, self.counts = run, rng, counts
        self.hosts = run.hosts

    def wait(self):
        """Until the next fault: any time, or just behind a start, or while something is saved."""
        how = self.rng.random()
        if how < 0.25:
            before = set(self.run.tasks())
            until = time.monotonic() + 1
            while set(self.run.tasks()) <= before and time.monotonic() < until and not self.run.ended():
                time.sleep(0.001)
            time.sleep(self.rng.uniform(0, 0.05))
        elif how < 0.5:
            until = time.monotonic() + 1
            while not temporaries(self.run.folder) and time.monotonic() < until and not self.run.ended():
                time.sleep(0.0002)
        else:
            time.sleep(self.rng.uniform(0, 0.6))

    def strike(self, kind):
        if getattr(self, kind)() is not False:
            self.counts[kind] += 1
            return True
        return False

    def a_task(self):
        tasks = self.run.tasks()
        return self.rng.choice(tasks) if tasks else None

    def send(self, pid, number):
        try:
            os.kill(pid, number)
        except (ProcessLookupError, TypeError):
            return False
        return True

    def kill_task(self):
        return self.send(self.a_task(), signal.SIGKILL)

    def kill_at_the_end(self):
        """When all is written, and some may have heard that all have done their part."""
        until = time.monotonic() + 10
        while not self.run.final.exists() and not self.run.ended() and time.monotonic() < until:
            time.sleep(0.0002)
        time.sleep(self.rng.uniform(0, 0.004))
        return self.kill_task()

    def kill_supervisor(self):
        unit = self.rng.randrange(len(self.run.units))
        if self.run.units[unit].popen.poll() is not None:
            return False
        self.run.units[unit].popen.kill()
        self.run.units[unit].popen.wait()
        self.run.resumes = True
        time.sleep(self.rng.choice([0, self.rng.uniform(0, 0.5)]))
        self.run.start(unit)

    def kill_everything(self):
        self.run.kill_all()
        self.run.resumes = True
        self.run.start_all()

    def stop_task(self):
        """For longer than the others wait."""
        pid = self.a_task()
        if not self.send(pid, signal.SIGSTOP):
            return False
        alone = len(self.run.tasks()) + len(self.run.units) <= 2  # nobody waits for it
        # One that has not joined yet is awaited as long as any.
        patience = 1 if alone else ARRIVAL + 3 * TIMEOUT
        until = time.monotonic() + patience
        while pathlib.Path(f"/proc/{pid}").exists() and time.monotonic() < until:
            time.sleep(0.05)
        if self.send(pid, signal.SIGCONT) and not alone:
            raise AssertionError(f"a task that stands still is not replaced within {patience} s")

    def link_down(self):
        """For longer than silence is borne, or for a moment."""
        self.hosts.down = True
        time.sleep(self.rng.choice([0.5, 1.5 * TIMEOUT]))
        self.hosts.down = False

    def link_loses(self):
        self.hosts.loss = 0.2
        time.sleep(self.rng.uniform(1, 3))
        self.hosts.loss = 0

    def link_slow(self):
        self.hosts.delay = 0.2
        time.sleep(self.rng.uniform(1, 3))
        self.hosts.delay = 0

    def strangers(self):
        """Garbage, forged and replayed messages, slow bytes and floods, at every port that listens."""
        where = listening(marked(self.run.mark))
        until = threading.Event()
        threads = [threading.Thread(target=attack, args=(address, until)) for address in where for attack in (forge, trickle, flood, replay)]
        for thread in threads:
            thread.start()
        time.sleep(self.rng.uniform(0.2, 1))
        until.set()
        for thread in threads:
            thread.join()
        return len(where) > 0

    def full_disk(self):
        """The files of the task that writes them, once it does, may grow no further."""
        try:
            writer = next((pid for pid in self.run.tasks() if self.writes(pid)), None)
            resource.prlimit(writer, resource.RLIMIT_FSIZE, (self.rng.choice([100, 10000]),) * 2)
        except (ProcessLookupError, PermissionError, TypeError):
            return False
        time.sleep(0.3)

    def writes(self, pid):
        for fd in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError):
                if os.readlink(fd) == str(self.run.log):
                    return True
        return False

    def torn_files(self):
        """The machine went down, and what was written last is damaged."""
        self.run.kill_all()
        self.run.resumes = True
        saved = saved_steps(self.run.checkpoints)
        if len(saved) > 1:
            self.tear(self.run.checkpoints / f"ckpt-{max(saved)}.index")
        if self.run.log.exists():
            with open(self.run.log, "r+b") as log:
                log.seek(0, 2)
                log.write(b'{"step":1234567,"los')
        self.run.start_all()
        return len(saved) > 1

    def tear(self, index):
        data = next(index.parent.glob(index.stem + ".data-*"), index)  # gone where it was torn before
        how = self.rng.randrange(6)
        path = [index, data, data, data, index.with_suffix(".input"), index.parent / "checkpoint"][how]
        content = path.read_bytes()
        if how == 3:
            path.unlink()
        elif how == 2:
            at = self.rng.randrange(len(content))
            path.write_bytes(content[:at] + bytes([content[at] ^ 1 << self.rng.randrange(8)]) + content[at + 1:])
        else:
            path.write_bytes(content[:self.rng.randrange(len(content))])


def replay(where, until):
    """What a task of another run said, with a proof that was right there, and the server's own words back to it."""
    overheard = message(HELLO, b"1", b"2", b"", b"127.0.0.1", os.urandom(32), os.urandom(32))
    while not until.is_set():
        try:
            with socket.create_connection(where, 2) as stranger:
                stranger.settimeout(0.2)
                stranger.sendall(stranger.recv(1000))
                stranger.sendall(overheard)
                stranger.sendall(stranger.recv(1000))
        except OSError:
            time.sleep(0.01)


def kinds(form):
    """A fault is drawn from these."""
    drawn = ["kill_task"] * 7 + ["kill_at_the_end"] + ["kill_supervisor"] * 3 + ["kill_everything"] * 2 + ["full_disk", "torn_files", "stop_task"]
    if form.hosts:
        return drawn + ["link_down", "link_loses", "link_slow"] * 2
    return drawn + ["strangers"] * (form.units > 1 or "processes" in form.name)


def reference_of(form, folder, hosts):
    """What a run that is left alone computes, and how long it takes."""
    run = Run(form, folder / "alone", 0, hosts)
    started = time.monotonic()
    try:
        run.start_all()
        found = run.finish(200)
        losses, wrong = read_log(run.log)
        found += wrong + run.left()
        if found:
            raise AssertionError("\n".join([*found, run.out]))
        return (losses, arrays(run.final)), time.monotonic() - started
    finally:
        run.kill_all()


def struck(form, folder, reference, rng, faults, counts, chosen, hosts):
    """One run that is struck so often, or until its end; what was wrong, its restarts, and the seconds from the last fault to the end."""
    run = Run(form, folder, 1000, hosts)
    strikes = Faults(run, rng, counts)
    history, done = [], 0
    try:
        run.start_all()
        deadline = time.monotonic() + 20 + 5 * faults
        while done < faults and not run.ended() and time.monotonic() < deadline:
            strikes.wait()
            if run.ended():
                break
            kind = rng.choice(chosen)
            history.append(kind)
            done += strikes.strike(kind)
        last = time.monotonic()
        found = run.finish(150) or differences(run, reference)
        seconds = time.monotonic() - last
        found += run.left()
        if found:
            found += ["faults: " + ", ".join(history), run.out[-6000:]]
        return found, run.restarts(), seconds
    except AssertionError as error:
        return [str(error), "faults: " + ", ".join(history), run.out[-6000:]], run.restarts(), 0
    finally:
        run.kill_all()


REPORT_START, REPORT_END = "<!-- faults.py writes this -->", "<!-- up to here -->"


def write_report(path, command, rows):
    """Between its marks; the rest of the page is written by hand."""
    kinds = sorted({kind for row in rows for kind in row["faults"]})
    total = sum(sum(row["faults"].values()) for row in rows)
    killed = sum(row["faults"][kind] for row in rows for kind in kinds if kind.startswith("kill"))
    lines = [REPORT_START, "", f"`{command}`: {total} faults in {sum(row['runs'] for row in rows)} runs, {killed} of them kill -9, "
             f"{sum(row['restarts'] for row in rows)} restarts. Runs that did not end as promised: {sum(row['failed'] for row in rows)}.", "",
             "| form | runs | " + " | ".join(kind.replace("_", " ") for kind in kinds) + " | restarts | not as promised |",
             "| --- |" + " ---: |" * (len(kinds) + 3)]
    for row in rows:
        lines.append(f"| {row['name']} | {row['runs']} | " + " | ".join(str(row["faults"][kind] or "") for kind in kinds) +
                     f" | {row['restarts']} | {row['failed']} |")
    before, _, rest = path.read_text().partition(REPORT_START)
    path.write_text(before + "\n".join([*lines, "", REPORT_END]) + rest.partition(REPORT_END)[2])


def main():
    need_tools(FAKE)
    flags = argparse.ArgumentParser()
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--faults", type=int, default=0, help="in all; 0: a few of some forms")
    flags.add_argument("--only", default="", help="forms whose names contain one of these, separated by commas")
    flags.add_argument("--kinds", default="", help="kinds of faults, separated by commas")
    flags.add_argument("--report", type=pathlib.Path)
    flags = flags.parse_args()
    few = not flags.faults
    rows = []
    with Folder() as folder:
        chosen = [(name, make) for name, make in forms(folder, few) if not flags.only or any(o in name for o in flags.only.split(","))]
        wanted = flags.faults // len(chosen) if flags.faults else 3
        for name, make in chosen:
            form = make(name)
            place = folder / "runs" / name.replace(" ", "-")
            place.mkdir(parents=True)
            with SlowHosts(flags.seed) if form.hosts else contextlib.nullcontext() as hosts:
                reference, alone = reference_of(form, place, hosts)
                rng = random.Random(f"{flags.seed} {name}")
                row = {"name": name, "runs": 0, "faults": collections.Counter(), "restarts": 0, "failed": 0}
                rows.append(row)
                started, slowest = time.monotonic(), 0
                while (done := sum(row["faults"].values())) < wanted and row["runs"] < 3 * wanted:
                    row["runs"] += 1
                    found, restarts, seconds = struck(form, place / str(row["runs"]), reference, rng, min(8, wanted - done), row["faults"],
                                                      flags.kinds.split(",") if flags.kinds else kinds(form), hosts)
                    slowest = max(slowest, seconds)
                    row["restarts"] += restarts
                    row["failed"] += bool(found)
                    if found:
                        print(f"FAILED {name}, run {row['runs']}")
                        for line in found:
                            print("       ", line.replace("\n", "\n        "), flush=True)
                    shutil.rmtree(place / str(row["runs"]))
            print(f"{name}: {alone:.1f} s alone; {row['runs']} runs, {dict(row['faults'])}, {row['restarts']} restarts, "
                  f"{time.monotonic() - started:.1f} s, up to {slowest:.1f} s from the last fault to the end", flush=True)
            if flags.report:
                write_report(flags.report, " ".join(["faults.py", *sys.argv[1:]]), rows)
    sys.exit(1 if any(row["failed"] for row in rows) else 0)


if __name__ == "__main__":
    main()
