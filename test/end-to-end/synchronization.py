"""Ways of synchronizing beyond a sum: compressors, aggregators, several batches an update, sharded updates. Each computes the same with replicas as
threads and as processes."""
import re

import numpy as np

from support import DISTC, Checks, Folder, Model, must, need_tools, read_losses

MODEL = "mlp-momentum"


def train(folder, strategy, replicas, batch, steps, *more, data=None, compiling=(), model=MODEL):
    """The log's losses and the final variables."""
    model = Model(model)
    must([DISTC, "compile", model.graph, "--strategy", strategy, "--replicas", replicas, "--batch", batch, "-o", folder / "train", *compiling])
    must([folder / "train", "--data", data or model.feeds, "--steps", steps, "--log-json", folder / "log.jsonl", "--export-npz",
          folder / "final.npz", "--restore", model.checkpoint, *more])
    losses = read_losses(folder / "log.jsonl")
    return np.array(losses), dict(np.load(folder / "final.npz"))


def apart(a, b):
    return max(np.linalg.norm(a[name].astype(float) - b[name]) / max(np.linalg.norm(b[name].astype(float)), 1e-6) for name in b)


def compresses(key, loss_bound, replicas):
    """`loss_bound`: how far the last losses may be from those without; None: the loss must have come down to half."""
    with Folder() as folder:
        plain, _ = train(folder, "AllReduce", replicas, 12, 50)
        losses, threads = train(folder, f"AllReduce:compressor={key}", replicas, 12, 50)
        other, processes = train(folder, f"AllReduce:compressor={key}", replicas, 12, 50, compiling=["--one-process-per-replica"])
    found = []
    if apart(threads, processes) > (1e-4 if "power_sgd" in key else 0):
        found.append(f"threads and processes are {apart(threads, processes):.1e} apart")
    if np.array_equal(losses, plain):
        found.append("nothing was compressed")
    if loss_bound is None and not losses[-5:].mean() < losses[0] / 2:
        found.append(f"the loss went from {losses[0]} to {losses[-5:].mean()} only")
    if loss_bound is not None and not np.max(np.abs(losses - plain)) < loss_bound * plain[0]:
        found.append(f"losses are up to {np.max(np.abs(losses - plain)):.1e} from those without compressor")
    return found


def accumulates(replicas, compiling=(), model=MODEL):
    """Two batches of 12 are one of 24: of each replica's rows, in another order."""
    found = []
    with Folder() as folder:
        losses, final = train(folder, "AllReduce:accumulate_steps=2", replicas, 12, 11, "--checkpoint-dir", folder / "ckpt", compiling=compiling,
                              model=model)
        whole, want = train(folder, "AllReduce", replicas, 24, 5, model=model)
        checkpoints = sorted(path.stem for path in (folder / "ckpt").glob("*.index"))
    if len(losses) != 11:
        found.append(f"{len(losses)} batches logged, not 11")
    if not np.allclose(losses[:10].reshape(5, 2).mean(axis=1), whole, rtol=1e-5):
        found.append(f"losses are {losses}, of whole batches {whole}")
    if apart(final, want) > 1e-4:
        found.append(f"variables are {apart(final, want):.1e} apart")
    if checkpoints != ["ckpt-5"]:
        found.append(f"checkpoints are {checkpoints}: updates count")
    return found


def loss_on(folder, data):
    out = must([folder / "train", "--eval", "--fetch", "loss", "--data", data, "--restore", folder / "final" / "ckpt-30"]).stdout
    return float(re.search(r"loss:0 = (\S+)", out).group(1))


def outvotes(aggregator, survives, compiling=()):
    """Replica 5 of 6 is given garbage; what was learned is judged on clean data."""
    replicas, batch = 6, 60
    with Folder() as folder:
        clean = dict(np.load(Model(MODEL).feeds))
        rows = batch * 4
        feeds = {name: np.resize(array, (rows, *array.shape[1:])) for name, array in clean.items()}
        np.savez(folder / "clean.npz", **feeds)
        own = np.arange(rows) % batch >= batch - batch // replicas
        for name, array in feeds.items():
            if array.dtype == np.float32:
                array = array.copy()
                array[own] *= -1000
                feeds[name] = array
        np.savez(folder / "garbage.npz", **feeds)
        key = f",aggregator={aggregator}" if aggregator else ""
        train(folder, f"AllReduce:chunk_size=1000{key}", replicas, batch, 30, "--checkpoint-dir", folder / "final",
              data=folder / "garbage.npz", compiling=compiling)
        after = loss_on(folder, folder / "clean.npz")
        train(folder, "AllReduce", replicas, batch, 1, data=folder / "clean.npz")
        before = read_losses(folder / "log.jsonl")[0]
    if (after < 0.9 * before) != survives:
        return [f"the loss went from {before} to {after}"]
    return []


def shards(name, stage, replicas, compiling=(), running=()):
    """What TensorFlow computed; whole slots in checkpoints, from which a run of another strategy goes on."""
    model = Model(name)
    with Folder() as folder:
        executable = model.compile(folder / "train", replicas, f"ShardedUpdate:stage={stage}", *compiling)
        must(model.run_command(executable, folder, True, "--checkpoint-dir", folder / "ckpt", *running))
        found = model.differences(folder, replicas)
        plan = must([executable, "--plan", *running]).stdout
        # Replicas of one task, and processes of one host, share the memory of slots anyway; devices have their own.
        divides = bool(running) or any(flag.startswith("--target=cuda") for flag in compiling)
        if (f"a share of {replicas}" in plan) != divides:
            found.append("the plan shows shares where there are none, or none")
        last = folder / "ckpt" / f"ckpt-{model.case['steps']}"
        must([DISTC, "checkpoint", "export", last, folder / "saved.npz"])
        saved, final = np.load(folder / "saved.npz"), np.load(folder / "final.npz")
        found += [f"{key} in the checkpoint is not what was exported" for key in final.files if not np.array_equal(saved[key], final[key])]
        # Two ways on from there.
        ends = []
        for other in (executable, model.compile(folder / "plain", replicas, "AllReduce")):
            must([other, "--data", model.feeds, "--steps", 3, "--restore", last, *(running if other is executable else []), "--export-npz", folder / "end.npz"])
            ends.append(dict(np.load(folder / "end.npz")))
        if apart(*ends) > 1e-5:
            found.append(f"restored, it is {apart(*ends):.1e} from what goes on without shares")
    return found


if __name__ == "__main__":
    need_tools()
    checks = Checks()
    for replicas in (2, 4):
        for key in ("fp16", "fp16_ef", "bf16", "bf16_ef"):
            checks.check(f"{key} x{replicas}", compresses, key, 5e-3 if "bf16" in key else 1e-3, replicas)
        for key in ("power_sgd,power_sgd_rank=2", "top_k,top_k_ratio=0.1"):
            checks.check(f"{key} x{replicas}", compresses, key, None, replicas)
    for replicas in (2, 4):
        checks.check(f"accumulate x{replicas}", accumulates, replicas)
    checks.check("accumulate, processes", accumulates, 2, ["--one-process-per-replica"])
    checks.check("the mean does not survive garbage", outvotes, None, False)
    for aggregator in ("median", "trimmed_mean:1", "krum:1", "multi_krum:1,3", "geometric_median"):
        checks.check(aggregator, outvotes, aggregator, True)
    checks.check("median, processes", outvotes, "median", True, ["--one-process-per-replica"])
    checks.check("krum, processes", outvotes, "krum:1", True, ["--one-process-per-replica"])
    for name in ("mlp-adam", "mlp-momentum", "convnet-momentum", "mlp-clip"):
        for stage in (1, 2):
            for replicas in (2, 4):
                checks.check(f"{name}, sharded in stage {stage} x{replicas}", shards, name, stage, replicas)
            checks.check(f"{name}, sharded in stage {stage}, processes", shards, name, stage, 3, ["--one-process-per-replica"])
            checks.check(f"{name}, sharded in stage {stage}, network", shards, name, stage, 3, ["--one-process-per-replica"], ["--collectives=network"])
    checks.check("sharded, one replica", shards, "mlp-adam", 2, 1)
    checks.exit()
