#!/usr/bin/env python3
"""The examples of training steps (examples/jax-*, flax-*, torch-*, keras-*): losses and final state are the framework's own over 20 steps.

  examples.py [--all] [--double] [NAMES…]     --all: every strategy, threads and processes, the emulated GPU; --double: in float64

Each runs in a process of its own: TensorFlow and PyTorch are two copies of LLVM, which do not bear each other, and Keras has one backend a
process. Examples whose frameworks are not installed are passed over."""
import argparse
import os
import subprocess
import sys

import numpy as np

from support import DISTC, EXIT_SKIPPED, HAS_EMULATED_GPU, ROOT, Folder, load_script, need_tools, skip

FRAMEWORKS = {"jax", "optax", "flax", "torch", "torchvision", "keras", "tensorflow"}
STEPS, MOST = 20, 1e-5
# Where rounding is amplified: PyTorch's own losses are up to 1.2 apart after starts that are 6e-8 apart. On GPUs, which have no
# convolutions of float64, it is the first step in float32.
IN_DOUBLE = {"torch-resnet18"}
EMULATED = "--target=cuda:emulated"
# Strategy, replicas, keywords of distc.compile.
RUNS = [("AllReduce", 2, {}), ("ShardedUpdate", 4, {}), ("PSLoadBalancing", 2, {"processes": True})]
ALL_RUNS = [("AllReduce", 1, {}), *RUNS, ("AllReduce", 4, {"processes": True}), ("PartitionedAR", 2, {}), ("PartitionedAR", 4, {"processes": True}),
            ("ShardedUpdate", 2, {"processes": True}), ("Parallax", 2, {}), ("Parallax", 4, {"processes": True}),
            ("PSLoadBalancing", 4, {"servers": 1})]
EMULATED_RUNS = [("AllReduce", 1, {"flags": [EMULATED]}), ("AllReduce", 2, {"flags": [EMULATED]}), ("ShardedUpdate", 2, {"flags": [EMULATED]})]


def batches(data, size, steps):
    count = len(next(iter(data.values())))
    for number in range(steps):
        begin = number * size % count
        yield {name: array[begin:begin + size] for name, array in data.items()}


def widened(array):
    return array.astype(np.float64) if getattr(array, "dtype", None) == np.float32 else array


# ---- Each gives what was exported, the data, the framework's losses and final state, and the same of a state of distc's ----

def of_jax(example, path, double, steps):
    import jax
    import distc

    def data_of_key(leaf):
        return jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf

    state, data, step = example.make_state(), example.make_data(), jax.jit(example.step)
    if double:
        state, data = jax.tree.map(widened, (state, data))
    exported, losses = distc.jax.export(example.step, state, data, path), []
    for batch in batches(data, example.BATCH, steps):
        state, loss = step(state, batch)
        losses.append(float(loss))
    return exported, data, losses, state, lambda state: jax.tree.leaves(jax.tree.map(data_of_key, state))


def of_torch(example, path, double, steps):
    import torch
    import distc.torch

    module, data, losses = example.make_module(), example.make_data(), []
    if double:
        module, data = module.double(), {name: widened(array) for name, array in data.items()}
    tensors = {name: torch.from_numpy(array) for name, array in data.items()}
    tensors = {name: tensor.long() if tensor.dtype == torch.int32 else tensor for name, tensor in tensors.items()}
    optimizer, extra, scheduler = example.make_optimizer(module), {}, None
    if hasattr(example, "schedule"):
        extra = {"schedule": example.schedule, "max_norm": example.CLIP}
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda number: float(example.schedule(number)))
    exported = distc.torch.export(module, example.loss, example.make_optimizer(module), next(batches(tensors, example.BATCH, steps)), path, **extra)
    for batch in batches(tensors, example.BATCH, steps):
        loss = example.loss(module, batch)
        optimizer.zero_grad()
        loss.backward()
        if scheduler:
            torch.nn.utils.clip_grad_norm_(module.parameters(), example.CLIP)
        optimizer.step()
        if scheduler:
            scheduler.step()
        losses.append(loss.item())
    state = {name: value.detach().numpy() for name, value in [*module.named_parameters(), *module.named_buffers()]}
    return exported, data, losses, state, lambda state_of: [np.asarray(state_of[name]) for name in state]


def of_keras(example, path, double, steps):
    import keras
    import distc.keras

    if double:
        keras.config.set_floatx("float64")
    model, data, losses = example.make_model(), example.make_data(), []
    if double:
        data = {name: widened(array) for name, array in data.items()}
    exported = distc.keras.export(model, (data["x"], data["y"]), path)
    for batch in batches(data, example.BATCH, steps):
        model.reset_metrics()
        losses.append(float(model.train_on_batch(batch["x"], batch["y"])))
    state = {variable.path: keras.ops.convert_to_numpy(variable.value) for variable in model.variables}
    return exported, data, losses, state, lambda state_of: [np.asarray(state_of[name]) for name in state]


def is_right(folder, runs, double, steps):
    """One example, in this process."""
    sys.path.insert(0, str(ROOT / "tools" / "python"))
    os.environ["DISTC"] = str(DISTC)
    example = load_script(folder.name.replace("-", "_"), folder / "train.py")
    import jax
    import distc

    jax.config.update("jax_enable_x64", double)
    make = of_torch if hasattr(example, "make_module") else of_keras if hasattr(example, "make_model") else of_jax
    right = True
    with Folder() as name:
        exported, data, losses, state, leaves = make(example, name / "step.mlir", double, steps)
        for strategy, replicas, keywords in runs:
            executable = distc.compile(exported, strategy=strategy, replicas=replicas, batch=example.BATCH, **keywords)
            result = executable.train(data, steps, flags=["--failure-timeout", "300"])  # emulated devices are slow
            pairs = [(result.losses, losses), *zip(leaves(result.state), leaves(state), strict=True)]
            worst = max(float(np.max(np.abs(np.asarray(a, "d") - np.asarray(b, "d")) / (1 + np.abs(np.asarray(b, "d"))))) for a, b in pairs)
            right &= worst <= MOST
            how = ", ".join([*("the emulated GPU" if key == "flags" else key for key in keywords), *["float64"] * double, *["the first step"] * (steps == 1)])
            print(f"{folder.name} {strategy} x{replicas}{f' ({how})' if how else ''}: {'the same' if worst <= MOST else 'differs'}, {worst:.1e}", flush=True)
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--first-step", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    need_tools(DISTC)
    if arguments.one:
        double = (arguments.double or arguments.one in IN_DOUBLE) and not arguments.first_step
        runs = RUNS if not arguments.all else ALL_RUNS * (not arguments.first_step) + EMULATED_RUNS * (HAS_EMULATED_GPU and not double)
        try:
            sys.exit(not is_right(ROOT / "examples" / arguments.one, runs, double, 1 if arguments.first_step else STEPS))
        except ModuleNotFoundError as error:
            if error.name not in FRAMEWORKS:
                raise
            skip(f"{arguments.one} needs {error.name}")

    folders = sorted(path.parent.name for path in (ROOT / "examples").glob("*-*/train.py"))
    if unknown := set(arguments.names) - set(folders):
        parser.error(f"there is no example {', '.join(sorted(unknown))}; there are {', '.join(folders)}")
    flags = [f"--{flag}" for flag in ("all", "double") if getattr(arguments, flag)]
    one = [["--one", name, *flags] for name in arguments.names or folders]
    one += [[*words, "--first-step"] for words in one if arguments.all and (arguments.double or words[1] in IN_DOUBLE)]
    ended = [subprocess.run([sys.executable, __file__, *words]).returncode for words in one]
    if set(ended) == {EXIT_SKIPPED}:
        skip("no framework is installed: set DISTC_PYTHON to a python that has jax and optax")
    sys.exit(any(status not in (0, EXIT_SKIPPED) for status in ended))


if __name__ == "__main__":
    main()
