#!/usr/bin/env python3
"""A step of JAX, as it exported it (test/dialects/dfg/stablehlo/Inputs/linear.mlir: a linear model, momentum, a counter), is
trained by one and by several replicas. JAX is not needed: numpy does the same steps."""
import shutil
import sys

import numpy as np

from support import DISTC, ROOT, Folder, need_tools, run

INPUTS = ROOT / "test" / "dialects" / "dfg" / "stablehlo" / "Inputs"
BATCH, STEPS = 12, 10
RUNS = [("AllReduce", 1, []), ("AllReduce", 2, []), ("PartitionedAR", 2, []), ("ShardedUpdate", 2, ["--one-process-per-replica"])]


def train_here(state, x, y):
    w, b = state["params/w"], state["params/b"]
    trace_w, trace_b = state["opt/0/trace/w"], state["opt/0/trace/b"]
    for step in range(STEPS):
        rows = slice(step * BATCH % len(x), step * BATCH % len(x) + BATCH)
        difference = 2 * (x[rows] @ w + b - y[rows]) / (BATCH * y.shape[1])
        trace_w, trace_b = x[rows].T @ difference + 0.9 * trace_w, difference.sum(0) + 0.9 * trace_b
        w, b = w - 0.1 * trace_w, b - 0.1 * trace_b
    return {"params/w": w, "params/b": b, "opt/0/trace/w": trace_w, "opt/0/trace/b": trace_b, "count": STEPS + state["count"]}


def main():
    need_tools(DISTC)
    random = np.random.RandomState(0)
    x, y = random.randn(24, 3).astype("f"), random.randn(24, 2).astype("f")
    state = {"params/w": random.randn(3, 2).astype("f"), "params/b": np.zeros(2, "f"), "count": np.array(7, "i"),
             "opt/0/trace/w": np.zeros((3, 2), "f"), "opt/0/trace/b": np.zeros(2, "f")}
    expected = train_here(state, x, y)
    failed = False
    with Folder() as folder:
        for name in ("linear.mlir", "linear.json"):
            shutil.copy(INPUTS / name, folder / name)
        np.savez(folder / "data.npz", x=x, y=y)

        # Without its initial values a step has none.
        done = run([DISTC, "compile", folder / "linear.mlir", "--batch", BATCH, "-o", folder / "train"])
        if done.returncode != 1 or "linear.npz" not in done.stderr:
            failed = True
            print(f"error: a missing file of initial values is not named: {done.stderr}")

        np.savez(folder / "linear.npz", **state)
        for strategy, replicas, flags in RUNS:
            done = run([DISTC, "compile", folder / "linear.mlir", "--strategy", strategy, "--replicas", replicas,
                        "--batch", BATCH, *flags, "-o", folder / "train"])
            if done.returncode == 0:
                done = run([folder / "train", "--data", folder / "data.npz", "--steps", STEPS, "--quiet",
                            "--export-npz", folder / "state.npz"])
            if done.returncode != 0:
                failed = True
                print(f"error: {strategy}, {replicas} replicas: {done.stderr}")
                continue
            with np.load(folder / "state.npz") as found:
                for name, value in expected.items():
                    if not np.allclose(found[name], value, rtol=1e-5, atol=1e-6):
                        failed = True
                        print(f"error: {strategy}, {replicas} replicas: '{name}' is {found[name]}, not {value}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
