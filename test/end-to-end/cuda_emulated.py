"""Models compiled for GPUs, on an emulated machine: the plan, its kernels and its library calls give TensorFlow's
numbers, whatever the order in which a device runs what is not ordered. Models with operations that have no code for
GPUs are refused.

  cuda_emulated.py [NAME…]
"""
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from models import PROCESSES, REPLICAS
from support import BIN, Checks, Folder, Model, model_names, must, need_tools, run, skip
from synchronization import accumulates, shards

TARGET = "--target=cuda:emulated"
# What docs/gpu.md says is not there yet, and the first node of each model that needs it.
REFUSED = {
    "mlp-float64": "node 'hidden/MatMul': 'drt.matmul' of f64 has no code for GPUs yet",
    "ops-rows": "node 'CheckNumerics/CheckNumerics': a check for numbers that are not finite has no code for GPUs yet",
    "ops-bessel": "node 'BesselI0/bessel_i0/BesselI0': a special function has no code for GPUs yet",
}

# Models, the stage of sharding, replicas and flags; three replicas leave the last one little or nothing of most variables.
SHARDED = [("mlp-adam", 1, 2, []), ("mlp-adam", 2, 4, []), ("mlp-momentum", 2, 2, []), ("convnet-momentum", 2, 3, []), ("mlp-clip", 2, 3, []),
           ("mlp-clip", 2, 2, ["--one-process-per-replica"]), ("mlp-adam", 2, 3, ["--one-process-per-replica"])]


def refusal(name):
    return next((words for start, words in REFUSED.items() if name.startswith(start)), None)


def check_model(name, replicas, *flags):
    """Compiles once; runs it from the checkpoint and from its own initializers, each time in another order."""
    model = Model(name)
    with Folder() as folder:
        executable = model.compile(folder / "train", replicas, "AllReduce", TARGET, *flags)
        found = []
        for restore in (True, False) if model.case["own_init"] else (True,):
            with Folder() as outputs:
                environment = dict(os.environ, DRT_EMULATED_SEED=str(2 * replicas + restore))
                must(model.run_command(executable, outputs, restore), env=environment)
                start = "from init.ckpt" if restore else "own initializers"
                found += [f"{start}: {d}" for d in model.differences(outputs, replicas)]
        return found


def check_refused(name):
    with Folder() as folder:
        done = run(Model(name).compile_command(folder / "train", 1, "AllReduce", TARGET))
        if done.returncode != 1 or refusal(name) not in done.stderr:
            return [f"exit status {done.returncode}, expected 1 and: {refusal(name)}\n{done.out}"]
        return []


def check_memory(name):
    """A device without memory, whatever it is for: an error that says so, and libraries end before their context does."""
    model, found = Model(name), []
    with Folder() as folder:
        executable = model.compile(folder / "train", 1, "AllReduce", TARGET)
        for call in range(12):
            environment = dict(os.environ, DRT_EMULATED_FAIL=f"cuMemAlloc:2:{call}")
            done = run(model.run_command(executable, folder), env=environment)
            if done.returncode == 0:
                break
            if done.returncode != 1 or "the device has no memory for" not in done.stderr:
                found.append(f"without memory at its allocation {call}: exit status {done.returncode}\n{done.out}")
        if call < 4:
            found.append(f"only {call} allocations")
    return found


def main():
    need_tools()
    if not (BIN.parent / "lib" / "drt-cuda-emulated.link").exists():
        skip("the runtime for GPUs is not built: needs the headers of CUDA, cuDNN and NCCL (CUDA_HOME)")
    checks = Checks()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in sys.argv[1:] or model_names():
            if refusal(name):
                pool.submit(checks.check, f"{name} is refused", check_refused, name)
                continue
            batch = Model(name).case["batch"]
            for replicas in REPLICAS:
                if batch and batch % replicas:
                    continue
                pool.submit(checks.check, f"{name} x{replicas}", check_model, name, replicas)
                if name in PROCESSES and replicas == 2:
                    pool.submit(checks.check, f"{name} --one-process-per-replica", check_model, name, replicas,
                                "--one-process-per-replica")
        if not sys.argv[1:]:
            pool.submit(checks.check, "several batches an update x2", accumulates, 2, [TARGET])
            pool.submit(checks.check, "a device without memory", check_memory, "convnet-momentum")
            for name, stage, replicas, flags in SHARDED:
                pool.submit(checks.check, f"{name}, sharded in stage {stage} x{replicas} {' '.join(flags)}", shards, name, stage, replicas,
                            [TARGET, *flags])
            pool.submit(checks.check, "several batches of sparse gradients an update x2", accumulates, 2, [TARGET], "embedding-adagrad")
    checks.exit()


if __name__ == "__main__":
    main()
