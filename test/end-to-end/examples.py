#!/usr/bin/env python3
"""The examples of training steps (examples/jax-*, flax-*, torch-*, keras-*): losses and final state are the framework's own over 20 steps.
Examples whose framework is not installed are passed over; NAMES chooses some."""
import importlib.util
import os
import pathlib
import sys
import tempfile

from support import DISTC, ROOT, need_tools, skip

os.environ.setdefault("KERAS_BACKEND", "jax")
need_tools(DISTC)
if any(importlib.util.find_spec(module) is None for module in ("jax", "optax")):
    skip("needs jax and optax: set DISTC_PYTHON to a python that has them")
os.environ["DISTC"] = str(DISTC)
sys.path.insert(0, str(ROOT / "tools" / "python"))

import jax
import numpy as np

import distc

STEPS = 20
RUNS = [("AllReduce", 2, False), ("ShardedUpdate", 4, False), ("PSLoadBalancing", 2, True)]


def load(folder):
    spec = importlib.util.spec_from_file_location(folder.name.replace("-", "_"), folder / "train.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def batches(data, size):
    count = len(next(iter(data.values())))
    for number in range(STEPS):
        begin = number * size % count
        yield {name: array[begin:begin + size] for name, array in data.items()}


def of_jax(example, path):
    state, data, step = example.make_state(), example.make_data(), jax.jit(example.step)
    exported, losses = distc.jax.export(example.step, state, data, path), []
    for batch in batches(data, example.BATCH):
        state, loss = step(state, batch)
        losses.append(float(loss))
    return exported, data, losses, lambda state: jax.tree.leaves(jax.tree.map(data_of_key, state)), state


def data_of_key(leaf):
    return jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


def of_torch(example, path):
    import torch
    import distc.torch

    module, data, losses = example.make_module(), example.make_data(), []
    tensors = {name: torch.from_numpy(array) for name, array in data.items()}
    tensors = {name: tensor.long() if tensor.dtype == torch.int32 else tensor for name, tensor in tensors.items()}
    optimizer, extra, scheduler = example.make_optimizer(module), {}, None
    if hasattr(example, "schedule"):
        extra = {"schedule": example.schedule, "max_norm": example.CLIP}
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda number: float(example.schedule(number)))
    exported = distc.torch.export(module, example.loss, example.make_optimizer(module), next(batches(tensors, example.BATCH)), path, **extra)
    for batch in batches(tensors, example.BATCH):
        loss = example.loss(module, batch)
        optimizer.zero_grad()
        loss.backward()
        if scheduler:
            torch.nn.utils.clip_grad_norm_(module.parameters(), example.CLIP)
        optimizer.step()
        if scheduler:
            scheduler.step()
        losses.append(loss.item())
    names = [name for name, _ in module.named_parameters()]
    return (exported, data, losses, lambda state: [np.asarray(state[name]) for name in names],
            {name: parameter.detach().numpy() for name, parameter in module.named_parameters()})


def of_keras(example, path):
    import distc.keras

    model, data, losses = example.make_model(), example.make_data(), []
    exported = distc.keras.export(model, (data["x"], data["y"]), path)
    for batch in batches(data, example.BATCH):
        model.reset_metrics()
        losses.append(float(model.train_on_batch(batch["x"], batch["y"])))
    names = [variable.path for variable in model.variables]
    return exported, data, losses, lambda state: [np.asarray(state[name]) for name in names], {v.path: np.array(v) for v in model.variables}


FRAMEWORKS = {"jax": (of_jax, "jax"), "flax": (of_jax, "flax"), "torch": (of_torch, "torch"), "keras": (of_keras, "keras")}
failed = False
for folder in sorted((ROOT / "examples").glob("*-*")):
    make, needed = FRAMEWORKS[folder.name.split("-")[0]]
    if importlib.util.find_spec(needed) is None or (sys.argv[1:] and folder.name not in sys.argv[1:]):
        continue
    example = load(folder)
    with tempfile.TemporaryDirectory() as name:
        exported, data, losses, leaves, state = make(example, pathlib.Path(name) / "step.mlir")
        for strategy, replicas, processes in RUNS:
            executable = distc.compile(exported, strategy=strategy, replicas=replicas, batch=example.BATCH, processes=processes)
            result = executable.train(data, STEPS)
            pairs = [(result.losses, np.array(losses)), *zip(leaves(result.state), leaves(state))]
            worst = max(float(np.max(np.abs(np.asarray(a, "d") - np.asarray(b, "d")) / (1 + np.abs(np.asarray(b, "d"))))) for a, b in pairs)
            right = worst <= 1e-5
            failed |= not right
            print(f"{folder.name} {strategy} x{replicas}: {'the same' if right else 'differs'}, {worst:.1e}", flush=True)
sys.exit(failed)
