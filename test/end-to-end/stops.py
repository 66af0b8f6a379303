"""How runs end before their time, and what is left then: signals to runs that hang, tasks that are killed again and again, tasks
that were given other inputs. The program is mostly fake-train, which needs no compiler (test/unit/support)."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import struct
import time

import numpy as np

from hosts import Process
from support import BIN, DISTC, Checks, Folder, Model, need_tools, read_log, run, saved_steps

TRAIN = BIN / "fake-train"
COLUMNS, ROWS = 5000, 10


def data(folder, name="data.npz", add=0):
    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) % 7 + add
    np.savez(folder / name, x=x, rate=np.float32(0.25))
    return folder / name


def command(plan, folder, *flags, **settings):
    settings["FAKE_PLAN"] = plan
    return ["env", *(f"{name}={value}" for name, value in settings.items()), TRAIN, "--data", data(folder), "--quiet", *flags]


def children(pid):
    return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(what, found, timeout=60):
    deadline = time.monotonic() + timeout
    while not (value := found()):
        if time.monotonic() > deadline:
            raise AssertionError(f"no {what} after {timeout} s")
        time.sleep(0.01)
    return value


def ends(process, *texts):
    """What is not as promised of a run that was sent TERM."""
    status = process.wait(30)
    found = [] if status == 128 + signal.SIGTERM else [f"exit status {status}, not 143"]
    found += [f"'{text}' is not in:\n{process.out}" for text in texts if text not in process.out]
    return found


def hung_replica():
    """One replica computes for ever and the other waits for it; the variables are in the middle of a step."""
    with Folder() as folder:
        process = Process(command("2 1 4", folder, "--steps", 100, "--checkpoint-dir", folder / "ckpt", "--save-every", 1,
                                  FAKE_HANGING_REPLICA=1))
        try:
            wait_for("checkpoint of step 3", lambda: 3 in saved_steps(folder / "ckpt"))
            os.kill(process.popen.pid, signal.SIGTERM)
            found = ends(process, "without a last checkpoint")
            return found + ([] if saved_steps(folder / "ckpt") == {1, 2, 3} else [f"checkpoints {saved_steps(folder / 'ckpt')}"])
        finally:
            process.kill()


def slow_disk():
    """The checkpoint that is written beside the steps takes longer than a step that hangs is borne: it is the last one, as no update came behind it."""
    model = Model("linreg-sgd")
    with Folder() as folder:
        program = model.compile(folder / "train", 1, "AllReduce:accumulate_steps=200000")
        (folder / "ckpt").mkdir()
        slow = folder / "ckpt" / "ckpt-1.input"
        os.mkfifo(slow)  # who writes it waits until somebody reads
        process = Process([program, "--data", model.feeds, "--steps", 10**9, "--checkpoint-dir", folder / "ckpt", "--save-every", 200000, "--quiet"])
        try:
            wait_for("data of the checkpoint", lambda: list((folder / "ckpt").glob("*.data*")))
            os.kill(process.popen.pid, signal.SIGTERM)
            time.sleep(5)
            with slow.open("rb") as reader:
                reader.read()
            found = ends(process)
            return found + ([] if saved_steps(folder / "ckpt") == {1} else [f"checkpoints {saved_steps(folder / 'ckpt')}: {process.out}"])
        finally:
            process.kill()


def hung_task():
    """A replica of another task hangs, so that every task waits."""
    with Folder() as folder:
        process = Process(command("2 2 4", folder, "--steps", 100, "--checkpoint-dir", folder / "ckpt", "--save-every", 3,
                                  FAKE_HANGING_REPLICA=1))
        try:
            wait_for("checkpoint of step 3", lambda: 3 in saved_steps(folder / "ckpt"))
            os.kill(process.popen.pid, signal.SIGTERM)
            return ends(process, "without a last checkpoint")
        finally:
            process.kill()


def stopped_task():
    """A task that is stopped handles no signal, unless it is woken."""
    with Folder() as folder:
        process = Process(command("2 2 4", folder, "--steps", 10 ** 9, "--checkpoint-dir", folder / "ckpt", "--save-every", 50))
        try:
            wait_for("checkpoint", lambda: saved_steps(folder / "ckpt"))
            os.kill(children(process.popen.pid)[1], signal.SIGSTOP)
            os.kill(process.popen.pid, signal.SIGTERM)
            return ends(process)
        finally:
            process.kill()


def signal_saves(plan, number):
    with Folder() as folder:
        process = Process(["env", "--default-signal", *command(plan, folder, "--steps", 10 ** 9, "--checkpoint-dir", folder / "ckpt",
                                                               "--log-json", folder / "log")])
        try:
            wait_for("step", lambda: (folder / "log").exists() and '"step":' in (folder / "log").read_text())
            os.kill(process.popen.pid, number)
            found = ends(process)
            steps = [line["step"] for line in read_log(folder / "log") if "step" in line]
            if saved_steps(folder / "ckpt") != {len(steps)} or steps != list(range(len(steps))):
                found.append(f"checkpoints {saved_steps(folder / 'ckpt')} of {len(steps)} steps in the log")
            return found
        finally:
            process.kill()


def computes_undisturbed():
    """A signal handled by a thread that computes destroys what its matmuls work with: one thread takes them, the others have none."""
    def statuses_of_threads(pid):
        found = []
        for thread in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # One that saved a checkpoint has ended meanwhile.
                found.append((thread / "status").read_text())
        return found

    def open_to_term(status):
        blocked = int(re.search(r"SigBlk:\s+(\w+)", status)[1], 16)
        return not blocked & 1 << (signal.SIGTERM - 1)

    with Folder() as folder:
        process = Process(command("2 1 4", folder, "--steps", 10 ** 9, "--checkpoint-dir", folder / "ckpt", "--save-every", 50))
        try:
            wait_for("checkpoint", lambda: saved_steps(folder / "ckpt"))
            statuses = statuses_of_threads(process.popen.pid)
            takes = sum(map(open_to_term, statuses))
            return [] if takes == 1 and len(statuses) > 2 else [f"{takes} of {len(statuses)} threads take TERM"]
        finally:
            process.kill()


def waits_in_vain():
    """Before the first step a signal ends the process as it ends any."""
    with Folder() as folder:
        process = Process(command("2 2 4", folder, "--steps", 3, "--task", "worker:0", "--rendezvous", f"127.0.0.1:{free_port()}"))
        try:
            process.wait_for_text("waiting for worker:1", 20)
            process.popen.send_signal(signal.SIGTERM)
            status = process.wait(5)
            return [] if status == -signal.SIGTERM else [f"exit status {status}:\n{process.out}"]
        finally:
            process.kill()


def log_over_restarts(plan):
    """Killed just behind a save, again and again: every step is in the log once."""
    steps, kills = 120, 5
    with Folder() as folder:
        process = Process(command(plan, folder, "--steps", steps, "--checkpoint-dir", folder / "ckpt", "--save-every", 7,
                                  "--log-json", folder / "log", "--max-restarts", kills, "--failure-timeout", 5))
        try:
            for kill in range(kills):
                newest = max(saved_steps(folder / "ckpt"), default=0) if kill else 0
                wait_for("checkpoint", lambda: max(saved_steps(folder / "ckpt") if (folder / "ckpt").exists() else [0], default=0) > newest
                         or process.popen.poll() is not None)
                tasks = children(process.popen.pid) if process.popen.poll() is None else []
                if not tasks:
                    break  # it was faster
                os.kill(tasks[0], signal.SIGKILL)
            status = process.wait(90)
            log = read_log(folder / "log")
        finally:
            process.kill()
    got = [line["step"] for line in log if "step" in line]
    found = [] if status == 0 else [f"exit status {status}:\n{process.out}"]
    if got != list(range(steps)) or "strategy" not in log[0] or log[-1].get("done") is not True:
        found.append(f"{len(got)} lines, {len(set(got))} steps of {steps}; missing {sorted(set(range(steps)) - set(got))}")
    return found


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def supervised(folder, steps, *flags):
    """Two tasks, each with a supervisor of its own."""
    port = free_port()
    return [supervised_task(rank, folder, port, steps, *flags) for rank in range(2)]


def supervised_task(rank, folder, port, steps, *flags):
    return Process(command("2 2 4", folder, "--steps", steps, "--checkpoint-dir", folder / "ckpt", "--save-every", 500, "--failure-timeout", 3,
                           "--arrival-timeout", 30, "--task", f"worker:{rank}", "--rendezvous", f"127.0.0.1:{port}", "--export-npz",
                           folder / "final.npz", "--max-restarts", 5, *flags))


def final(folder, steps):
    """The variables of a run that was left alone, and of the one that ended in the folder."""
    run(command("2 1 4", folder, "--steps", steps, "--export-npz", folder / "alone.npz"))
    with np.load(folder / "alone.npz") as alone, np.load(folder / "final.npz") as file:
        return alone["w"].tobytes(), file["w"].tobytes()


def goes_on(strike, *texts):
    """One of two supervised tasks is struck, and its own supervisor replaces it."""
    steps = 3000
    with Folder() as folder:
        processes = supervised(folder, steps)
        try:
            wait_for("checkpoint", lambda: saved_steps(folder / "ckpt"))
            strike(processes)
            statuses = [process.wait(60) for process in processes]
            out = processes[0].out + processes[1].out
            if statuses != [0, 0]:
                return [f"exit statuses {statuses}:\n{out}"]
            alone, got = final(folder, steps)
            found = [] if got == alone else ["the variables are not those of a run that was left alone"]
            return found + [f"'{text}' is not in:\n{out}" for text in texts if text not in out]
        finally:
            for process in processes:
                process.kill()


def strike_task(number):
    return lambda processes: os.kill(children(processes[1].popen.pid)[0], number)


def killed_before_the_first_step():
    """A task that waits for the others is killed, and comes again."""
    with Folder() as folder:
        port = free_port()
        flags = ["--steps", 10, "--checkpoint-dir", folder / "ckpt", "--max-restarts", 1, "--rendezvous", f"127.0.0.1:{port}"]
        late = Process(command("2 2 4", folder, *flags, "--task", "worker:1"))
        first = None
        try:
            late.wait_for_text("waiting for worker:0")
            os.kill(children(late.popen.pid)[0], signal.SIGKILL)
            first = Process(command("2 2 4", folder, *flags, "--task", "worker:0"))
            statuses = [process.wait(60) for process in (first, late)]
            return [] if statuses == [0, 0] else [f"exit statuses {statuses}:\n{first.out}{late.out}"]
        finally:
            for process in (first, late):
                if process:
                    process.kill()


def one_comes_late():
    """Later than --arrival-timeout: who waits begins to wait again."""
    with Folder() as folder:
        flags = ["--steps", 10, "--checkpoint-dir", folder / "ckpt", "--max-restarts", 20, "--arrival-timeout", 1, "--rendezvous",
                 f"127.0.0.1:{free_port()}"]
        early = Process(command("2 2 4", folder, *flags, "--task", "worker:0"))
        late = None
        try:
            early.wait_for_text("; restart 2 of 20 ")
            late = Process(command("2 2 4", folder, *flags, "--task", "worker:1"))
            statuses = [process.wait(60) for process in (early, late)]
            return [] if statuses == [0, 0] else [f"exit statuses {statuses}:\n{early.out}{late.out}"]
        finally:
            for process in (early, late):
                if process:
                    process.kill()


def full_disk():
    """What cannot be written ends a run after its restarts, with the checkpoint before; with room again it goes on."""
    with Folder() as folder:
        flags = ["--checkpoint-dir", folder / "ckpt", "--save-every", 5, "--export-npz", folder / "final.npz"]
        run(command("2 1 4", folder, "--steps", 10, *flags))
        full = run(["prlimit", "--fsize=15000:15000", *command("2 1 4", folder, "--steps", 20, *flags, "--resume", "--max-restarts", 2)])
        found = [] if full.returncode == 1 and "File too large" in full.out and "given up after 2 restarts" in full.out else [
            f"exit status {full.returncode}:\n{full.out}"]
        if saved_steps(folder / "ckpt") != {5, 10} or any("temp" in path.name for path in (folder / "ckpt").iterdir()):
            found.append(f"there are {sorted(path.name for path in (folder / 'ckpt').iterdir())}")
        done = run(command("2 1 4", folder, "--steps", 20, *flags, "--resume"))
        if done.returncode != 0:
            return [*found, done.out]
        alone, got = final(folder, 20)
        return found + ([] if got == alone else ["the variables are not those of a run that was left alone"])


def one_is_told_to_stop():
    """INT or TERM on one host ends the run on all of them, and nobody starts it again."""
    with Folder() as folder:
        processes = supervised(folder, 10 ** 9)
        try:
            wait_for("checkpoint", lambda: saved_steps(folder / "ckpt"))
            os.kill(processes[1].popen.pid, signal.SIGTERM)
            statuses = [process.wait(30) for process in processes]
            out = processes[0].out + processes[1].out
            return [] if statuses == [143, 143] and "; restart " not in out else [f"exit statuses {statuses}:\n{out}"]
        finally:
            for process in processes:
                process.kill()


def cut(path):
    path.write_bytes(path.read_bytes()[:-2])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def damaged_newest(damage, suffix):
    """The newest checkpoint is damaged: the run goes on from the one before it, and says so."""
    with Folder() as folder:
        flags = ["--checkpoint-dir", folder / "ckpt", "--export-npz", folder / "final.npz", "--save-every", 5]
        run(command("2 1 4", folder, "--steps", 12, *flags))
        damage(folder / "ckpt" / f"ckpt-12{suffix}")
        done = run(command("2 1 4", folder, "--steps", 20, *flags, "--resume"))
        if done.returncode != 0 or "ckpt-12 is passed over" not in done.out:
            return [f"exit status {done.returncode}:\n{done.out}"]
        alone, got = final(folder, 20)
        return [] if got == alone else ["the variables are not those of a run that was left alone"]


def removes_what_was_left():
    """Files of a process that was killed while it wrote, and no others."""
    with Folder() as folder:
        flags = ["--checkpoint-dir", folder / "ckpt", "--export-npz", folder / "final.npz", "--timeline", folder / "timeline"]
        run(command("2 1 4", folder, "--steps", 5, *flags))
        left = [folder / "final.npz.tempstate123", folder / "timeline.tempstate4", folder / "ckpt" / "ckpt-9.tempstate5.data",
                folder / "ckpt" / "checkpoint.tempstate6"]
        others = [folder / "final.npz.tempstate-of-mine", folder / "another.npz.tempstate7", folder / "ckpt" / "notes.tempstate8"]
        for path in left + others:
            path.write_text("x")
        done = run(command("2 1 4", folder, "--steps", 5, *flags, "--resume"))
        found = [f"{path.name} is left" for path in left if path.exists()] + [f"{path.name} is gone" for path in others if not path.exists()]
        return found + ([] if done.returncode == 0 else [done.out])


def damaged_alone():
    with Folder() as folder:
        flags = ["--checkpoint-dir", folder / "ckpt"]
        run(command("2 1 4", folder, "--steps", 12, *flags))
        flip(folder / "ckpt" / "ckpt-12.data-00000-of-00001")
        refused = run(command("2 1 4", folder, "--steps", 20, *flags, "--resume"))
        anew = run(command("2 1 4", folder, "--steps", 20, *flags, "--overwrite"))
        return [] if refused.returncode == 1 and "holds damaged checkpoints alone" in refused.out and anew.returncode == 0 else [
            f"exit statuses {refused.returncode}, {anew.returncode}:\n{refused.out}{anew.out}"]


def two_owners():
    """A second run in the folder of one that goes on; nothing of the first is touched."""
    with Folder() as folder:
        flags = ["--checkpoint-dir", folder / "ckpt", "--save-every", 50]
        process = Process(command("2 2 4", folder, "--steps", 10 ** 9, *flags))
        try:
            wait_for("checkpoint", lambda: saved_steps(folder / "ckpt"))
            second = run(command("2 1 4", folder, "--steps", 10, *flags, "--overwrite"))
            newest = max(saved_steps(folder / "ckpt"))
            wait_for("further checkpoint", lambda: max(saved_steps(folder / "ckpt")) > newest)
            if second.returncode != 1 or "is another run's, which still goes on" not in second.out:
                return [f"exit status {second.returncode}:\n{second.out}"]
            os.kill(process.popen.pid, signal.SIGKILL)  # its tasks end with it, and another one has the folder
            third = run(command("2 1 4", folder, "--steps", 10, *flags, "--overwrite"))
            return [] if third.returncode == 0 else [f"exit status {third.returncode}:\n{third.out}"]
        finally:
            process.kill()


def ends_once():
    """A run that --stop-when has ended has ended, also where a scheduler starts it again; another condition goes on."""
    with Folder() as folder:
        flags = ["--steps", 50, "--checkpoint-dir", folder / "ckpt", "--log-json", folder / "log", "--resume", "--stop-when"]
        first = run(command("2 1 4", folder, *flags, "loss < 1e5"))
        before = losses_of(folder / "log")
        run(command("2 2 4", folder, *flags, "loss < 1e5"))
        again = losses_of(folder / "log")
        run(command("2 1 4", folder, *flags, "loss < -1"))
        on = losses_of(folder / "log")
        if first.returncode or not 0 < len(before) < 50 or again != before or len(on) != 50:
            return [f"{len(before)} steps, {len(again)} when started again, {len(on)} by another condition:\n{first.out}"]
        return []


def started_once_more():
    """One task of a run that has ended, whose supervisor was killed before it could say so: the others are gone. A run of more
    steps awaits them."""
    with Folder() as folder:
        flags = ["--steps", 5, "--failure-timeout", 1, "--arrival-timeout", 1]
        processes = supervised(folder, 5, *flags)
        statuses = [process.wait(60) for process in processes]
        found = [] if statuses == [0, 0] else [f"exit statuses {statuses}:\n{processes[0].out}{processes[1].out}"]
        before = (folder / "final.npz").stat().st_mtime_ns
        for rank in range(2):
            process = supervised_task(rank, folder, free_port(), 5, *flags, "--resume")
            status = process.wait(60)
            if status or "nothing is left to do" not in process.out:
                found.append(f"worker:{rank}: exit status {status}:\n{process.out}")
        if (folder / "final.npz").stat().st_mtime_ns != before:
            found.append("what was exported is written again")
        process = supervised_task(0, folder, free_port(), 6, "--arrival-timeout", 1, "--max-restarts", 0, "--resume")
        if process.wait(60) != 1 or "worker:1 (localhost) has not arrived" not in process.out:
            found.append(f"six steps:\n{process.out}")
        cut(folder / "ckpt" / "ckpt-5.input")  # as task 0 passes it over, the others ask task 0
        process = supervised_task(1, folder, free_port(), 5, *flags, "--max-restarts", 0, "--resume")
        if process.wait(60) != 1 or "worker:0 (localhost) has not opened the rendezvous" not in process.out:
            found.append(f"a damaged end:\n{process.out}")
        return found


def losses_of(log):
    return [line["loss"] for line in read_log(log) if "step" in line]


def events(folder):
    """step -> value of the loss, as TensorBoard reads all files of a folder."""
    values = {}
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        while data:
            length, = struct.unpack("<Q", data[:8])
            event, data = data[12:12 + length], data[16 + length:]
            if start := re.fullmatch(rb"\x09.{8}\x10(.)\x3a\x02\x08\x01", event, re.S):
                values = {step: value for step, value in values.items() if step < start[1][0]}
            elif value := re.fullmatch(rb"\x09.{8}\x10(.)\x2a.*\x15(.{4})", event, re.S):
                values[value[1][0]] = values.get(value[1][0], ()) + struct.unpack("<f", value[2])
    return values


def events_over_restarts():
    with Folder() as folder:
        flags = ["--checkpoint-dir", folder / "ckpt", "--save-every", 4, "--log-json", folder / "log", "--summary-dir", folder / "events", "--resume"]
        run(command("2 1 4", folder, "--steps", 10, *flags))
        for path in (folder / "ckpt").glob("ckpt-10*"):  # as if it had not come to this
            path.unlink()
        time.sleep(1.1)  # files are named by the second
        run(command("2 1 4", folder, "--steps", 12, *flags))
        want = {step + 1: (np.float32(loss),) for step, loss in enumerate(losses_of(folder / "log"))}
        got = events(folder / "events")
        return [] if got == want and len(got) == 12 else [f"{got}, not {want}"]


def other_inputs(flags, *texts):
    """Two tasks that are started by hand, with flags(folder, rank) of their own."""
    with Folder() as folder:
        port = free_port()
        run(command("2 1 4", folder, "--steps", 1, "--checkpoint-dir", folder / "one"))
        run(command("2 1 4", folder, "--steps", 2, "--checkpoint-dir", folder / "two"))
        data(folder, "other.npz", add=1)
        processes = [Process(command("2 2 4", folder, "--steps", 3, "--task", f"worker:{rank}", "--rendezvous",
                                     f"127.0.0.1:{port}", *flags(folder, rank))) for rank in range(2)]
        try:
            statuses = [process.wait(60) for process in processes]
            out = processes[0].out + processes[1].out
        finally:
            for process in processes:
                process.kill()
        expected = [1, 1] if texts else [0, 0]
        found = [] if statuses == expected else [f"exit statuses {statuses}, not {expected}:\n{out}"]
        return found + [f"'{text}' is not in:\n{out}" for text in texts if text not in out]


def wrong_in_one():
    """What only task 0 reads is wrong: the supervisors of all tasks hear that nothing is to be tried again."""
    with Folder() as folder:
        processes = supervised(folder, 3, "--restore", folder / "absent")
        try:
            statuses = [process.wait(20) for process in processes]
        finally:
            for process in processes:
                process.kill()
        out = processes[0].out + processes[1].out
        found = [] if statuses == [1, 1] else [f"exit statuses {statuses}"]
        return found + [f"tried again:\n{out}"] * ("restart" in out)


def main():
    need_tools(TRAIN, DISTC)
    checks = Checks()
    checks.check("a signal ends a run whose replica hangs", hung_replica)
    checks.check("a signal leaves the checkpoint that a slow disk takes", slow_disk)
    checks.check("a signal ends tasks that wait for one that hangs", hung_task)
    checks.check("a signal ends a task that is stopped", stopped_task)
    checks.check("a signal leaves a checkpoint and a log that agree", signal_saves, "2 1 4", signal.SIGTERM)
    checks.check("a terminal that is gone leaves a checkpoint", signal_saves, "2 2 4", signal.SIGHUP)
    checks.check("signals come to one thread, which does not compute", computes_undisturbed)
    checks.check("a signal ends a task that waits for others", waits_in_vain)
    checks.check("a log over restarts", log_over_restarts, "2 1 4")
    checks.check("a log over restarts of two tasks", log_over_restarts, "2 2 4")
    checks.check("a task that is killed is replaced by its own supervisor", goes_on, strike_task(signal.SIGKILL),
                 "worker:1 was killed by signal 9 (Killed); restart 1 of 5 from ")
    checks.check("a task that is stopped for too long is replaced", goes_on, strike_task(signal.SIGSTOP),
                 "worker:1 was killed by signal 9 (Killed); restart ")
    checks.check("a task that is killed before the first step is replaced", killed_before_the_first_step)
    checks.check("input that is wrong in one task", wrong_in_one)
    checks.check("a task that comes late", one_comes_late)
    checks.check("a full disk", full_disk)
    checks.check("a signal to one supervisor ends all tasks", one_is_told_to_stop)
    for name, damage, suffix in (("index is cut", cut, ".index"), ("data are cut", cut, ".data-00000-of-00001"),
                                 ("data are damaged", flip, ".data-00000-of-00001"), ("data are gone", os.unlink, ".data-00000-of-00001"),
                                 ("place in the data is damaged", cut, ".input")):
        checks.check(f"the newest checkpoint's {name}", damaged_newest, damage, suffix)
    checks.check("unfinished files of an earlier run", removes_what_was_left)
    checks.check("damaged checkpoints alone", damaged_alone)
    checks.check("two runs in one folder", two_owners)
    checks.check("a run that a condition ended", ends_once)
    checks.check("a task of a run that has ended is started once more", started_once_more)
    checks.check("events over restarts", events_over_restarts)
    checks.check("the same inputs", other_inputs, lambda folder, rank: [])
    checks.check("other data in a task", other_inputs, lambda folder, rank: ["--data", folder / "other.npz"] if rank else [],
                 "worker:1 (localhost) was given other --data than worker:0")
    checks.check("another checkpoint in a task", other_inputs,
                 lambda folder, rank: ["--restore", folder / ("two/ckpt-2" if rank else "one/ckpt-1")],
                 "worker:1 (localhost) was given another --restore than worker:0")
    checks.check("a checkpoint that only task 0 has", other_inputs,
                 lambda folder, rank: ["--restore", folder / ("nowhere/ckpt-1" if rank else "one/ckpt-1")])
    checks.exit()


if __name__ == "__main__":
    main()
