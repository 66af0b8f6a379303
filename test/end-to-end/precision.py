"""Products of TF32, bfloat16 and float16: losses near TensorFlow's, for replicas, cores and processes, on processors (also such as have no bfloat16) and on the
emulated GPU, which agree.

  precision.py
"""
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from support import HAS_EMULATED_GPU, Checks, Folder, Model, must, need_tools, read_losses

GPU, TWO_CORES, PROCESSES = "--target=cuda:emulated", "--cores-per-replica=2", "--one-process-per-replica"
# A model, replicas, flags, how many steps are compared, and how far losses are from float32's at most.
CASES = [("mlp-adam", 2, "tf32", [GPU], 1e-2), ("convnet-momentum", 1, "tf32", [GPU], 1e-2), ("mlp-adam", 2, "bf16", [GPU], 4e-2), ("convnet-momentum", 1, "bf16", [GPU], 4e-2),
         ("mlp-adam", 1, "bf16", [], 4e-2), ("mlp-adam", 2, "bf16", [], 4e-2), ("mlp-adam", 4, "bf16", [PROCESSES], 4e-2), ("convnet-momentum", 1, "bf16", [], 4e-2),
         ("convnet-momentum", 1, "bf16", [TWO_CORES], 4e-2), ("convnet-momentum", 2, "bf16", [], 4e-2), ("mlp-clip", 2, "bf16", [TWO_CORES], 4e-2),
         ("mlp-adam", 2, "fp16", [], 4e-3), ("mlp-clip", 2, "fp16", [TWO_CORES], 4e-3), ("mlp-adam", 2, "fp16", [GPU], 4e-3), ("convnet-momentum", 1, "fp16", [GPU], 1e-2)]
# What a machine before AVX-512 has of oneDNN.
OLD_MACHINE = dict(os.environ, DNNL_MAX_CPU_ISA="AVX2", ONEDNN_MAX_CPU_ISA="AVX2")


def losses_of(folder, name, replicas, precision, flags, environment=None):
    model = Model(name)
    executable = model.compile(folder / "train", replicas, "AllReduce", *flags, f"--precision={precision}")
    must(model.run_command(executable, folder), env=environment)
    return np.array(read_losses(folder / "log.jsonl"))


def check_precision(name, replicas, lower, flags, tolerance):
    """Fewer bits of mantissa in products: near TensorFlow's losses, and not float32's own."""
    with Folder() as folder:
        own, losses = (losses_of(folder, name, replicas, precision, flags) for precision in ("fp32", lower))
    want = np.load(Model(name).folder / "expect.npz")["loss"]
    off = np.max(np.abs(losses - want) / np.abs(want))
    found = [] if off < tolerance else [f"losses off by {off:.1e}: {losses}, not {want}"]
    if np.array_equal(losses, own):
        found.append(f"the losses are float32's own: no product took {lower}")
    return found


def check_targets(name, replicas, tolerance):
    """The same pass rounds the same values, whatever multiplies them."""
    with Folder() as folder:
        here = losses_of(folder, name, replicas, "bf16", [])
        others = {"a machine before AVX-512": losses_of(folder, name, replicas, "bf16", [], OLD_MACHINE)}
        if HAS_EMULATED_GPU:
            others["the emulated GPU"] = losses_of(folder, name, replicas, "bf16", [GPU])
    return [f"losses of {what} are off by {off:.1e}: {losses}, not {here}" for what, losses in others.items()
            if not (off := np.max(np.abs(losses - here) / np.abs(here))) < tolerance]


def main():
    need_tools()
    checks = Checks()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, replicas, lower, flags, tolerance in CASES:
            if GPU in flags and not HAS_EMULATED_GPU:
                continue
            pool.submit(checks.check, f"{name} x{replicas} in {lower} {' '.join(flags)}", check_precision, name, replicas, lower, flags, tolerance)
        for name, replicas, tolerance in (("mlp-adam", 2, 1e-3), ("convnet-momentum", 2, 5e-3)):
            pool.submit(checks.check, f"{name} x{replicas} on several machines", check_targets, name, replicas, tolerance)
    checks.exit()


if __name__ == "__main__":
    main()
