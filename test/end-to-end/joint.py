"""A process a replica on one host: the processes have variables and arenas in common and run the plan of one process' replicas, bit for bit. Where they can have
no common memory another plan runs. A killed process ends the others in time, and nothing is left behind."""
import os
import pathlib
import signal
import time

import numpy as np

from hosts import Process
from support import DISTC, Checks, Folder, Model, must, need_tools, read_losses, run, trained

# Large products, whose gradients are never written.
GRAPH = pathlib.Path(__file__).resolve().parents[2] / "tools" / "bench_models" / "mlp.meta"
BATCH, STEPS = 32, 6


def make_data(folder, batches=8):
    random = np.random.default_rng(0)
    np.savez(folder / "data.npz", image=random.random((batches * BATCH, 784), np.float32),
             label=random.integers(0, 10, batches * BATCH).astype(np.int32))
    return folder / "data.npz"


def compiled(folder, name, *flags, replicas=2):
    must([DISTC, "compile", GRAPH, "--batch", BATCH, "--replicas", replicas, "--target", "cpu:native", "-o", folder / name, *flags])
    return folder / name


def same_bits(got, want, what):
    (losses, variables), (want_losses, want_variables) = got, want
    found = [] if losses == want_losses else [f"{what}: losses {losses}, not {want_losses}"]
    return found + [f"{what}: {name} differs by {np.abs(variables[name] - value).max()}" for name, value in want_variables.items()
                    if not np.array_equal(variables[name], value)]


def plan_of_threads(replicas, *flags):
    """The bits of replicas that are threads, and the numbers of processes without common memory."""
    with Folder() as folder:
        data = make_data(folder)
        threads = compiled(folder, "threads", *flags, replicas=replicas)
        processes = compiled(folder, "processes", "--one-process-per-replica", *flags, replicas=replicas)
        want = trained(threads, data, STEPS)
        # One that is initialized by its seed begins alike anywhere.
        found = same_bits(trained(processes, data, STEPS), want, "processes")
        os.environ["DRT_DELAYS"] = "3"
        found += same_bits(trained(processes, data, STEPS), want, "delayed processes")
        del os.environ["DRT_DELAYS"]
        log = folder / "network.jsonl"
        must([processes, "--quiet", "--data", data, "--steps", STEPS, "--collectives=network", "--log-json", log])
        return found + ([] if np.allclose(read_losses(log), want[0], rtol=1e-4) else [f"network: {read_losses(log)}, not {want[0]}"])


def goes_on():
    """Checkpoints of one form are another's, in the middle of a run and at its end; so are examples and evaluations between the steps."""
    with Folder() as folder:
        data = make_data(folder)
        processes = compiled(folder, "processes", "--one-process-per-replica")
        whole, _ = trained(processes, data, 8)
        kept = ["--quiet", "--data", data, "--checkpoint-dir", folder / "kept", "--log-json", folder / "log"]
        must([processes, *kept, "--steps", 5, "--save-every", 2])
        must([compiled(folder, "threads"), *kept, "--steps", 6, "--resume"])
        must([processes, *kept, "--steps", 8, "--resume", "--report", folder / "report.json", "--timeline", folder / "timeline.json"])
        losses = read_losses(folder / "log")
        return [] if losses == whole else [f"in three parts the losses are {losses}, not {whole}"]


def plan_says_so():
    with Folder() as folder:
        processes = compiled(folder, "processes", "--one-process-per-replica")
        common, network = run([processes, "--plan"]).out, run([processes, "--plan", "--collectives=network"]).out
        words = "have variables and arenas in common"
        found = [] if words in common else [f"'{words}' is not in:\n{common}"]
        return found + ([f"'{words}' is in:\n{network}"] if words in network else [])


def killed():
    """Any of the processes, in the middle of steps: the rest ends in time and names it."""
    with Folder() as folder:
        data = make_data(folder)
        processes = compiled(folder, "processes", "--one-process-per-replica")
        found = []
        for rank in range(2):
            process = Process([processes, "--data", data, "--steps", 100000, "--failure-timeout", 4])
            try:
                process.wait_for_text("step ")
                children = pathlib.Path(f"/proc/{process.popen.pid}/task/{process.popen.pid}/children").read_text().split()
                os.kill(int(children[rank]), signal.SIGKILL)
                began = time.monotonic()
                status = process.wait(30)
                if status != 128 + signal.SIGKILL or f"worker:{rank} (localhost) was lost" not in process.out:
                    found.append(f"exit status {status} of:\n{process.out[-2000:]}")
                if time.monotonic() - began > 8:
                    found.append(f"it took {time.monotonic() - began:.1f} s to end")
            finally:
                process.kill()
        return found


def stopped():
    """A process that stands still for a while is named, and the run goes on to its end."""
    with Folder() as folder:
        processes = compiled(folder, "processes", "--one-process-per-replica")
        process = Process([processes, "--data", make_data(folder), "--steps", 100000, "--failure-timeout", 60, "--stall-warning", 1])
        try:
            process.wait_for_text("step ")
            children = pathlib.Path(f"/proc/{process.popen.pid}/task/{process.popen.pid}/children").read_text().split()
            os.kill(int(children[1]), signal.SIGSTOP)
            process.wait_for_text("late: replica 1")
            os.kill(int(children[1]), signal.SIGCONT)
            os.kill(process.popen.pid, signal.SIGTERM)
            status = process.wait(30)
            return [] if status == 128 + signal.SIGTERM else [f"exit status {status} of:\n{process.out[-2000:]}"]
        finally:
            process.kill()


def models():
    """What replicas share beside products: rows of tables, sums of several batches, values of the whole batch."""
    found = []
    for name, strategy in (("embedding-adam", "Parallax"), ("mlp-adam", "ShardedUpdate"), ("convnet-momentum", "PSLoadBalancing"), ("mlp-clip", "AllReduce")):
        model = Model(name)
        with Folder() as folder:
            flags = ["--ps", 2] if strategy in ("PSLoadBalancing", "Parallax") else []
            executable = model.compile(folder / "train", 2, strategy, "--one-process-per-replica", *flags)
            must(model.run_command(executable, folder))
            found += [f"{name}, {strategy}: {d}" for d in model.differences(folder, 2)]
    return found


def main():
    need_tools()
    checks = Checks()
    checks.check("the plan of threads", plan_of_threads, 2)
    checks.check("the plan of four threads", plan_of_threads, 4)
    checks.check("several cores a replica", plan_of_threads, 2, "--cores-per-replica", "2")
    checks.check("goes on", goes_on)
    checks.check("the plan says so", plan_says_so)
    checks.check("killed", killed)
    checks.check("stopped", stopped)
    checks.check("models", models)
    checks.exit()


if __name__ == "__main__":
    main()
