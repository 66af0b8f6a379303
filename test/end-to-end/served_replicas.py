"""Servers that serve on their own: counted gradients (backup workers, several batches an update), a bound of staleness, asynchronous updates. What
does not depend on who comes first is compared with TensorFlow's numbers; all of it with what is promised of the log, the checkpoints and the step.

  served_replicas.py [NAME…]
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np

from support import DISTC, Checks, Folder, Model, must, need_tools, read_log, read_losses

# As many gradients as replicas: servers count them, and every update is what a synchronous one is. Slots, reference variables, a gradient that is
# clipped by a global norm, a sum over the batch, convolutions.
MODELS = ("mlp-adam", "mlp-momentum-ref", "mlp-clip", "mlp-sum", "convnet-momentum", "mlp-l2")
# Rows of a table, which the optimizer adds up.
SPARSE_MODELS = ("embedding-adam", "embedding-adagrad-ref", "embedding-momentum", "embedding-rmsprop-centered", "embedding-sgd")
# Replicas as processes, which share memory or do not.
PROCESSES = "--one-process-per-replica"
PLACES = (("threads", [], []), ("processes", [PROCESSES], []), ("processes, network", [PROCESSES], ["--collectives=network"]))
BUILDERS = ("PS", "PSLoadBalancing", "PartitionedPS", "UnevenPartitionedPS")
MODEL = "mlp-adam"


def build(folder, strategy, replicas, batch, *flags, name="train"):
    must([DISTC, "compile", Model(MODEL).graph, "--strategy", strategy, "--replicas", replicas, "--batch", batch, "-o", folder / name, *flags])
    return folder / name


def train(program, steps, *more, data=None, delays=None, restore=True):
    """Losses, variables, and the log's last line."""
    model = Model(MODEL)
    log, final = program.with_suffix(".jsonl"), program.with_suffix(".npz")
    environment = dict(os.environ) if delays is None else dict(os.environ, DRT_DELAYS=str(delays))
    out = must([program, "--data", data or model.feeds, "--steps", steps, "--log-json", log, "--export-npz", final,
                *(["--restore", model.checkpoint] if restore else []), *more], env=environment).stdout
    with np.load(final) as file:
        return np.array(read_losses(log)), {name: file[name] for name in file.files}, read_log(log)[-1], out


def apart(a, b):
    return max(np.linalg.norm(a[name].astype(float) - b[name]) / max(np.linalg.norm(b[name].astype(float)), 1e-6) for name in b)


def equals_synchronous(name, strategy, replicas, place=PLACES[0], seeds=(None, 1, 2)):
    model = Model(name)
    found = []
    with Folder() as folder:
        program = model.compile(folder / "train", replicas, f"{strategy}:replicas_to_aggregate={replicas}", "--ps", 2, *place[1])
        for delays in seeds:
            environment = dict(os.environ) if delays is None else dict(os.environ, DRT_DELAYS=str(delays))
            must([*model.run_command(program, folder), *place[2]], env=environment)
            found += [f"delays {delays}: {d}" for d in model.differences(folder)]
    return found


def async_alone(name):
    """One replica whose gradients are updates of their own is one device."""
    model = Model(name)
    with Folder() as folder:
        program = model.compile(folder / "train", 1, "PS:sync=false", "--ps", 1)
        must(model.run_command(program, folder))
        return model.differences(folder)


def whoever_comes_first(strategy, replicas, gradients, place=PLACES[0]):
    """Where every share has the same rows, every gradient of one version is the same: an update is that of one share, whichever gradients it has."""
    share, steps = 4, 12
    found = []
    with Folder() as folder:
        with np.load(Model(MODEL).feeds) as feeds:
            np.savez(folder / "data.npz", **{name: np.tile(feeds[name][:share], (8, *[1] * (feeds[name].ndim - 1))) for name in feeds.files})
        one = train(build(folder, "AllReduce", 1, share, name="one"), steps, data=folder / "data.npz")
        program = build(folder, strategy, replicas, share * replicas, "--ps", 1, *place[1])
        for delays in (None, 1, 2, 3):
            losses, variables, end, out = train(program, steps, *place[2], data=folder / "data.npz", delays=delays)
            if not np.allclose(losses, one[0], rtol=1e-5):
                found.append(f"delays {delays}: losses {losses}, not {one[0]}")
            if apart(variables, one[1]) > 1e-5:
                found.append(f"delays {delays}: variables are {apart(variables, one[1]):.1e} apart")
            if end["gradients"]["accepted"] < steps * gradients:
                found.append(f"delays {delays}: {end['gradients']} make no {steps} updates of {gradients}")
            if f"{end['gradients']['accepted']} gradients accepted, {end['gradients']['dropped']} dropped" not in out:
                found.append(f"the summary does not say so:\n{out}")
    return found


def repeat_shares(path, batch, replicas):
    """Data whose every share of a batch has the same rows, of the model's."""
    share = batch // replicas
    with np.load(Model(MODEL).feeds) as feeds:
        np.savez(path, **{name: np.concatenate([np.tile(rows[first:first + share], (replicas, *[1] * (rows.ndim - 1)))
                                                for first in range(0, len(rows) - share + 1, share)])
                          for name, rows in feeds.items()})
    return path


def learns(strategy, replicas, drops, place=PLACES[0]):
    """The loss falls, the global step counts updates, nothing is dropped that the strategy does not drop, and any delays do."""
    steps, batch = 60, 12
    found = []
    with Folder() as folder:
        program = build(folder, strategy, replicas, batch, "--ps", 2, *place[1])
        # Of a replica that is late each time nothing is learned: its rows must be others' as well, for the loss to fall whoever comes first.
        data = repeat_shares(folder / "data.npz", batch, replicas) if drops else None
        for delays in (None, 1, 2):
            # A checkpoint without averages is none of a program that keeps them.
            losses, variables, end, _ = train(program, steps, *place[2], data=data, delays=delays, restore="averages" not in strategy)
            if len(losses) != steps or not end["done"] or end["steps"] != steps:
                found.append(f"delays {delays}: {len(losses)} steps logged, ended by {end}")
            # Without a bound a gradient may be as late as the machine makes a replica, and throws Adam back for some steps when it comes.
            if not np.median(losses[steps // 2:]) < np.mean(losses[:6]):
                found.append(f"delays {delays}: the loss does not fall: {losses}")
            if variables["global_step"] != steps:
                found.append(f"delays {delays}: the global step is {variables['global_step']} after {steps} updates")
            if end["gradients"]["dropped"] and not drops:
                found.append(f"delays {delays}: {end['gradients']}")
    return found


def saves_whole(strategy, replicas, place=PLACES[0]):
    """Checkpoints between updates, under the original names; another strategy goes on from them."""
    model = Model(MODEL)
    half = model.case["steps"] // 2
    with Folder() as folder:
        served = model.compile(folder / "served", replicas, strategy, "--ps", 2, *place[1])
        other = model.compile(folder / "other", replicas, "AllReduce")
        must([served, "--data", model.feeds, "--steps", half, "--restore", model.checkpoint, "--checkpoint-dir", folder / "checkpoints", "--save-every", 1])
        names = sorted(path.stem for path in (folder / "checkpoints").glob("*.index"))
        if f"ckpt-{half}" not in names:
            return [f"there is no ckpt-{half}, but {names}"]
        for first, second in ((other, folder / "by_other"), (served, folder / "by_served")):
            second.mkdir()
            must([first, "--data", model.feeds, "--steps", model.case["steps"] - half, "--restore", folder / "checkpoints" / f"ckpt-{half}",
                  "--export-npz", second / "final.npz"])
        expect, found = np.load(model.folder / "expect.npz"), []
        for second in ("by_other", "by_served"):
            final = np.load(folder / second / "final.npz")
            for key in expect.files:
                if key.startswith("var/"):
                    found += [f"{second}: {d}" for d in model.variable_differences(key[len("var/"):], final, expect[key])]
        return found


def aggregates(rule, builder, replicas, place=PLACES[0]):
    """The rules of synchronous servers, by those that count gradients: of as many as there are replicas they make the same."""
    with Folder() as folder:
        losses, variables, *_ = train(build(folder, f"{builder}:aggregator={rule}", replicas, 20, name="together"), 6)
        served = build(folder, f"{builder}:aggregator={rule},replicas_to_aggregate={replicas}", replicas, 20, "--ps", 2, *place[1], name="served")
        found = []
        for delays in (None, 1):
            got, final, *_ = train(served, 6, *place[2], delays=delays)
            if not np.allclose(got, losses, rtol=1e-6) or apart(final, variables) > 1e-6:
                found.append(f"delays {delays}: losses {got}, not {losses}; variables {apart(final, variables):.1e} apart")
        return found


def logs_norms(strategy, replicas, place=PLACES[0]):
    """What a server makes of an update's gradients, their norm, is logged with the update, and is what it is where replicas are in step."""
    model, norm = Model("mlp-clip"), "global_norm/global_norm:0"
    with Folder() as folder:
        logged = []
        for said, flags in (("AllReduce", []), (strategy, [*place[1], "--ps", 1])):
            program = model.compile(folder / "train", replicas if "replicas" in strategy else 1, said, *flags, "--fetch", norm)
            must([*model.run_command(program, folder), "--fetch", norm, *(place[2] if flags else [])])
            logged.append([line["fetches"][norm] for line in read_log(folder / "log.jsonl") if "fetches" in line])
        found = [] if len(logged[0]) == model.case["steps"] and np.allclose(*logged, rtol=1e-5) else [f"norms {logged[1]}, not {logged[0]}"]
        refused = subprocess.run([program, "--eval", "--data", model.feeds, "--fetch", norm], capture_output=True, text=True)
        if refused.returncode == 0 or "what servers make of an update's gradients" not in refused.stderr:
            found.append(f"--eval --fetch {norm}: {refused.stderr}")
        return found


def counts_epochs():
    """An update of four gradients of two replicas takes two batches."""
    with Folder() as folder:
        program = build(folder, "PS:replicas_to_aggregate=4", 2, 12, "--ps", 1)
        with np.load(Model(MODEL).feeds) as feeds:
            np.savez(folder / "data.npz", **{name: np.resize(feeds[name], (48, *feeds[name].shape[1:])) for name in feeds.files})
        must([program, "--data", folder / "data.npz", "--epochs", 3, "--log-json", folder / "log.jsonl"])
        lines = read_log(folder / "log.jsonl")
    return [] if lines[-1]["steps"] == 6 else [f"3 epochs of 4 batches are 6 updates, not {lines[-1]['steps']}"]


def evaluates_between_updates():
    with Folder() as folder:
        program = build(folder, "PS:sync=false", 2, 12, "--ps", 1)
        must([program, "--data", Model(MODEL).feeds, "--steps", 20, "--eval-data", Model(MODEL).feeds, "--eval-every", 5, "--log-json",
              folder / "log.jsonl"])
        evaluated = [line["step"] for line in read_log(folder / "log.jsonl") if "eval" in line]
    return [] if evaluated == [4, 9, 14, 19] else [f"evaluated behind steps {evaluated}"]


def loses_a_process(place, victim):
    """Whoever is left ends, and says who is gone; asynchronous checkpoints are whole up to there."""
    model = Model(MODEL)
    with Folder() as folder:
        program = build(folder, "PS:sync=false", 2, 12, "--ps", 1, *place[1])
        command = [program, "--data", model.feeds, "--steps", 100000000, "--checkpoint-dir", folder / "checkpoints", "--save-every", 50, *place[2]]
        run = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        deadline = time.monotonic() + 60
        while not (folder / "checkpoints" / "checkpoint").exists() and time.monotonic() < deadline and run.poll() is None:
            time.sleep(0.05)
        children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        tasks = sorted(map(int, children))
        if len(tasks) != 2:
            run.kill()
            return [f"{len(tasks)} processes, not 2: {run.communicate()[0]}"]
        os.kill(tasks[victim], signal.SIGKILL)
        try:
            out, _ = run.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            run.kill()
            return ["it hangs", run.communicate()[0]]
        found = [] if run.returncode else ["it ended well"]
        found += [] if f"worker:{victim}" in out else [f"worker:{victim} is not named in:\n{out}"]
        found += [f"process {task} is left" for task in tasks if pathlib.Path(f"/proc/{task}").exists()]
        other = model.compile(folder / "other", 2, "AllReduce")
        must([other, "--data", model.feeds, "--steps", 2, "--restore", folder / "checkpoints"])
        return found


def counts_in_the_timeline():
    """Losses are summed an update each, whatever the replicas count; what a lost task's step is called follows from the same number."""
    with Folder() as folder:
        program = build(folder, "PS:sync=false", 2, 12, "--ps", 1, PROCESSES)
        must([program, "--data", Model(MODEL).feeds, "--steps", 30, "--timeline", folder / "t.json", "--collectives=network"])
        events = json.loads((folder / "t.json").read_text())["traceEvents"]
    found = []
    for task in (0, 1):
        # One event a sum; a task may have allowed further updates by then.
        steps = [event["args"]["step"] for event in sorted((e for e in events if e["pid"] == task and (e["name"], e.get("cat")) == ("loss", "all_reduce")), key=lambda e: e["ts"])]
        if len(steps) != 30 or steps != sorted(steps) or steps[-1] != 29 or any(step < at for at, step in enumerate(steps)):
            found.append(f"worker:{task} sums the losses of steps {steps}")
    return found


def says_its_plan():
    with Folder() as folder:
        found = []
        for strategy, text in (("PS:sync=false", "every gradient is an update of its own"),
                               ("PS:staleness=2", "which may be 2 steps ahead of the slowest"),
                               ("PS:replicas_to_aggregate=1", "takes the first 1 gradients of 2 replicas")):
            plan = must([build(folder, strategy, 2, 12, "--ps", 1), "--plan"]).out
            if text not in plan:
                found.append(f"{strategy}: --plan does not say '{text}':\n{plan}")
        plan = must([build(folder, "PS:sync=false", 2, 12, "--ps", 1, PROCESSES), "--plan"]).out
        if "in worker:0, which the replicas of other tasks ask" not in plan:
            found.append(f"--plan does not say where the server is:\n{plan}")
        table = Model("embedding-adagrad")
        for strategy, tables in (("PS:sync=false", 1), ("PartitionedPS:sync=false", 3)):
            plan = must([table.compile(folder / "table", 2, strategy, "--ps", 2), "--plan"]).out
            if f"rows of {tables} tables" not in plan:
                found.append(f"{strategy}: --plan does not say that replicas have no copy of the table:\n{plan}")
        return found


def main():
    need_tools()
    wanted = sys.argv[1:]
    checks = Checks(share=0.6)
    jobs = [(f"{name} {strategy} x{replicas}, as synchronous", equals_synchronous, name, strategy, replicas)
            for name in MODELS for strategy, replicas in ((BUILDERS[len(name) % len(BUILDERS)], 2), ("PSLoadBalancing", 4))]
    jobs += [(f"{name} {BUILDERS[i % len(BUILDERS)]} x{2 + i % 3}, as synchronous", equals_synchronous, name, BUILDERS[i % len(BUILDERS)], 2 + i % 3,
              PLACES[0], (None, 1)) for i, name in enumerate(SPARSE_MODELS)]
    jobs += [(f"{name} {strategy} x{replicas}, {place[0]}, as synchronous", equals_synchronous, name, strategy, replicas, place, (None, 1))
             for place in PLACES[1:]
             for name, strategy, replicas in (("mlp-adam", "PS", 2), ("convnet-momentum", "PSLoadBalancing", 3), ("embedding-adam", "PartitionedPS", 2))]
    jobs += [(f"asynchronous, one replica, {name}", async_alone, name) for name in (MODEL, "embedding-adam")]
    jobs += [("backup workers: 2 of 3", whoever_comes_first, "PS:replicas_to_aggregate=2", 3, 2),
             ("backup workers: 1 of 4", whoever_comes_first, "PartitionedPS:replicas_to_aggregate=1", 4, 1),
             ("several batches an update: 4 of 2", whoever_comes_first, "PS:replicas_to_aggregate=4", 2, 4),
             ("several batches an update: 5 of 2", whoever_comes_first, "PS:replicas_to_aggregate=5", 2, 5)]
    jobs += [(f"{strategy} x{replicas} learns", learns, strategy, replicas, drops)
             for strategy, replicas, drops in (("PS:sync=false", 2, False), ("PSLoadBalancing:sync=false", 4, False), ("PS:staleness=2", 3, False),
                                               ("PS:staleness=1,variable_averages=0.9", 2, False), ("PS:replicas_to_aggregate=2", 3, True),
                                               ("PS:replicas_to_aggregate=2,staleness=2", 4, True))]
    jobs += [(f"PS:sync=false x2 learns, {place[0]}", learns, "PS:sync=false", 2, False, place) for place in PLACES[1:]]
    jobs += [("PS:staleness=2 x2 learns, processes", learns, "PS:staleness=2", 2, False, PLACES[1]),
             ("backup workers: 2 of 3, processes", whoever_comes_first, "PS:replicas_to_aggregate=2", 3, 2, PLACES[1]),
             ("checkpoints, processes", saves_whole, "PartitionedPS:replicas_to_aggregate=2", 2, PLACES[1])]
    jobs += [(f"kill -9 of worker:{victim}, {place[0]}", loses_a_process, place, victim) for place in PLACES[1:] for victim in (0, 1)]
    jobs += [(f"{rule}, {builder} x{replicas}", aggregates, rule, builder, replicas)
             for rule, builder, replicas in (("median", "PS", 4), ("trimmed_mean:1", "PartitionedPS", 4), ("krum:1", "PSLoadBalancing", 5),
                                             ("multi_krum:1,2", "PS", 5), ("geometric_median", "PartitionedPS", 4))]
    jobs += [("median, processes", aggregates, "median", "PS", 4, PLACES[2])]
    jobs += [("norms, counted", logs_norms, "PS:replicas_to_aggregate=2", 2), ("norms, asynchronous", logs_norms, "PS:sync=false", 1),
             ("norms, processes", logs_norms, "PartitionedPS:replicas_to_aggregate=2", 2, PLACES[2])]
    jobs += [("checkpoints", saves_whole, "PartitionedPS:replicas_to_aggregate=2", 2), ("epochs", counts_epochs),
             ("evaluation", evaluates_between_updates), ("timeline", counts_in_the_timeline), ("plan", says_its_plan)]
    for name, function, *arguments in jobs:
        if not wanted or any(word in name for word in wanted):
            checks.check(name, function, *arguments)
    checks.exit()


if __name__ == "__main__":
    main()
