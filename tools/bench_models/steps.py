#!/usr/bin/env python3
"""The benchmark's training steps of JAX and PyTorch: what distc compiles, and what jax.jit, PyTorch and torch.compile run beside it; tools/bench runs it.

  steps.py MODEL FOLDER                                     writes step.mlir (with .json and .npz) and data.npz
  steps.py MODEL jax | pytorch-eager | pytorch-compile DATA.npz BATCH STEPS THREADS      prints the milliseconds of each step as JSON; the first one compiles
"""
import json
import pathlib
import sys

import numpy as np
from peers import LAYERS, MOMENTUM, RATE, in_precision, timed

BATCHES = 2  # of which the data are
LENGTH, WIDTH, HEADS, BLOCKS, WORDS = 128, 256, 8, 4, 256  # of the GPTs


def draw(shape, classes=None):
    random = np.random.RandomState(len(shape))
    return random.rand(*shape).astype(np.float32) if classes is None else random.randint(0, classes, shape).astype(np.int32)


def jax_classifier():
    """784-2048-2048-10, ReLU, momentum: mlp.py's, in JAX."""
    import jax
    import jax.numpy as jnp
    import optax

    optimizer = optax.sgd(RATE, momentum=MOMENTUM)
    keys = iter(jax.random.split(jax.random.key(0), len(LAYERS)))
    shapes = list(zip(LAYERS, LAYERS[1:]))
    params = [{"kernel": jax.nn.initializers.glorot_uniform()(next(keys), shape), "bias": jnp.zeros(shape[1])} for shape in shapes]

    def loss_of(params, batch):
        x = batch["image"]
        for layer in params[:-1]:
            x = jax.nn.relu(x @ layer["kernel"] + layer["bias"])
        logits = x @ params[-1]["kernel"] + params[-1]["bias"]
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

    batch = 128
    return loss_of, optimizer, params, {"image": draw([BATCHES * batch, 784]), "label": draw([BATCHES * batch], 10)}


def jax_gpt():
    import jax
    import jax.numpy as jnp
    import optax

    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    keys = iter(jax.random.split(jax.random.key(0), 2 + 4 * BLOCKS))
    weight = lambda *shape: 0.02 * jax.random.normal(next(keys), shape)
    norm = lambda: {"scale": jnp.ones(WIDTH), "shift": jnp.zeros(WIDTH)}
    block = lambda: {"norm1": norm(), "norm2": norm(), "qkv": weight(WIDTH, 3 * WIDTH), "out": weight(WIDTH, WIDTH),
                     "up": weight(WIDTH, 4 * WIDTH), "down": weight(4 * WIDTH, WIDTH)}
    params = {"words": weight(WORDS, WIDTH), "places": weight(LENGTH, WIDTH), "norm": norm(), "blocks": [block() for _ in range(BLOCKS)]}

    def normalize(x, p):
        return p["scale"] * (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) + p["shift"]

    def loss_of(params, batch):
        x = params["words"][batch["tokens"][:, :-1]] + params["places"]
        for p in params["blocks"]:
            q, k, v = (y.reshape(*y.shape[:2], HEADS, -1) for y in jnp.split(normalize(x, p["norm1"]) @ p["qkv"], 3, -1))
            x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ p["out"]
            x = x + jax.nn.gelu(normalize(x, p["norm2"]) @ p["up"]) @ p["down"]
        logits = normalize(x, params["norm"]) @ params["words"].T
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["tokens"][:, 1:]).mean()

    return loss_of, optimizer, params, {"tokens": draw([BATCHES * 8, LENGTH + 1], WORDS)}


def torch_gpt():
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = (part.view(b, t, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, WIDTH))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(BLOCKS))), nn.LayerNorm(WIDTH)
            nn.init.normal_(self.words.weight, std=0.02)

        def forward(self, tokens):
            return self.norm(self.blocks(self.words(tokens) + self.places(torch.arange(LENGTH)))) @ self.words.weight.T

    def loss_of(module, batch):
        return F.cross_entropy(module(batch["tokens"][:, :-1]).flatten(0, 1), batch["tokens"][:, 1:].flatten())

    return loss_of, lambda p, **fused: torch.optim.AdamW(p, 1e-3, **fused), Gpt(), {"tokens": draw([BATCHES * 8, LENGTH + 1], WORDS)}


def torch_resnet18():
    """torchvision's ResNet-18 at 64 x 64, momentum."""
    import torch
    import torchvision

    def loss_of(module, batch):
        return torch.nn.functional.cross_entropy(module(batch["image"]), batch["label"])

    return (loss_of, lambda p, **fused: torch.optim.SGD(p, RATE, momentum=MOMENTUM, **fused), torchvision.models.resnet18(num_classes=10),
            {"image": draw([BATCHES * 16, 3, 64, 64]), "label": draw([BATCHES * 16], 10)})


MODELS = {"jax-classifier": jax_classifier, "jax-gpt": jax_gpt, "torch-gpt": torch_gpt, "torch-resnet18": torch_resnet18}


def parts(data, batch):
    count = len(next(iter(data.values())))
    return [{name: array[i:i + batch] for name, array in data.items()} for i in range(0, count, batch)]


def to_tensors(torch, batch):
    return {name: torch.from_numpy(array).long() if array.dtype == np.int32 else torch.from_numpy(array) for name, array in batch.items()}


def make_jax_step(loss_of, optimizer):
    import jax
    import optax

    def step(state, batch):
        loss, gradients = jax.value_and_grad(loss_of)(state["params"], batch)
        updates, opt = optimizer.update(gradients, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, loss
    return step


def write(name, folder):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
    loss_of, optimizer, trained, data = MODELS[name]()
    first = parts(data, len(next(iter(data.values()))) // BATCHES)[0]
    if name.startswith("jax"):
        import distc.jax
        distc.jax.export(make_jax_step(loss_of, optimizer), {"params": trained, "opt": optimizer.init(trained)}, first, folder / "step.mlir")
    else:
        import torch
        import distc.torch
        distc.torch.export(trained, loss_of, optimizer(trained.parameters()), to_tensors(torch, first), folder / "step.mlir")
        data = {name: array.numpy() for name, array in to_tensors(torch, data).items()}  # Files have PyTorch's types.
    np.savez(folder / "data.npz", **data)


def run_jax(name, data, steps):
    import jax

    loss_of, optimizer, params, _ = MODELS[name]()
    compiled = jax.jit(make_jax_step(loss_of, optimizer), donate_argnums=0)
    state = {"params": params, "opt": optimizer.init(params)}

    def step(batch):
        nonlocal state
        state, loss = compiled(state, batch)
        float(loss)
        jax.block_until_ready(state)

    return timed(step, [(batch,) for batch in data], steps)


def run_torch(name, data, steps, threads, compiled):
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    loss_of, make_optimizer, module, _ = MODELS[name]()
    optimizer = make_optimizer(module.parameters(), fused=True)
    forward = in_precision(torch, lambda batch: loss_of(module, batch))
    forward = torch.compile(forward) if compiled else forward

    def step(batch):
        optimizer.zero_grad()
        loss = forward(batch)
        loss.backward()
        optimizer.step()
        return loss.item()

    return timed(step, [(to_tensors(torch, batch),) for batch in data], steps)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        write(sys.argv[1], pathlib.Path(sys.argv[2]))
    else:
        model, peer, path, batch, steps, threads = sys.argv[1:]
        with np.load(path) as arrays:
            data = parts(dict(arrays), int(batch))
        times = run_jax(model, data, int(steps)) if peer == "jax" else run_torch(model, data, int(steps), int(threads), peer == "pytorch-compile")
        print(json.dumps(times))
