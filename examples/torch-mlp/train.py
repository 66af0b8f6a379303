#!/usr/bin/env python3
"""A perceptron of two layers in PyTorch, with AdamW, clipping and a schedule, trained by two replicas."""
import math
import pathlib
import sys

import jax.numpy as jnp
import numpy as np
import torch

import distc
import distc.torch

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "digits"
BATCH, CLIP = 60, 1.0


class Perceptron(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(64, 64)
        self.output = torch.nn.Linear(64, 10)

    def forward(self, images):
        return self.output(torch.relu(self.hidden(images.reshape(-1, 64))))


def loss(module, batch):
    return torch.nn.functional.cross_entropy(module(batch["images"]), batch["labels"])


def schedule(step):
    """Warm-up, then half a cosine."""
    return jnp.where(step < 50, step / 50, 0.5 * (1 + jnp.cos(math.pi * jnp.minimum((step - 50) / 450, 1))))


def make_module():
    torch.manual_seed(0)
    return Perceptron()


def make_optimizer(module):
    return torch.optim.AdamW(module.parameters(), lr=3e-3)


def make_data():
    train = np.load(DIGITS / "train.npz")
    return {"images": train["image"], "labels": train["label"]}


def main():
    test, data = np.load(DIGITS / "test.npz"), make_data()
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "mlp.mlir")
    module = make_module()
    batch = {name: torch.from_numpy(array[:8]) for name, array in data.items()}
    exported = distc.torch.export(module, loss, make_optimizer(module), batch, path,
                                  schedule=schedule, max_norm=CLIP)
    executable = distc.compile(exported, strategy="AllReduce", replicas=2, batch=BATCH)
    result = executable.train(data, steps=500)
    distc.torch.load_state(module, result.state)
    with torch.no_grad():
        accuracy = float((module(torch.from_numpy(test["image"])).argmax(-1) == torch.from_numpy(test["label"])).float().mean())
    print(f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}, accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
