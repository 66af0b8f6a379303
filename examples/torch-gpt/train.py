#!/usr/bin/env python3
"""A small GPT in PyTorch that learns the characters of the repository's license, with AdamW, clipping and a schedule, by two replicas."""
import pathlib
import sys

import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import distc
import distc.torch

TEXT = pathlib.Path(__file__).resolve().parents[2] / "LICENSE"
LENGTH, WIDTH, HEADS, LAYERS, BATCH, CLIP = 32, 32, 4, 2, 16, 1.0


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (part.view(b, t, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(128, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(LAYERS))), nn.LayerNorm(WIDTH)
        nn.init.normal_(self.words.weight, std=0.1)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.norm(self.blocks(x)) @ self.words.weight.T


def loss(module, batch):
    return F.cross_entropy(module(batch["tokens"][:, :-1]).flatten(0, 1), batch["tokens"][:, 1:].flatten())


def schedule(step):
    """The factor of the learning rate: a warm-up, and half a cosine."""
    return jnp.minimum((step + 1) / 20, 0.5 * (1 + jnp.cos(jnp.pi * step / 200)))


def make_module():
    torch.manual_seed(0)
    return Gpt()


def make_optimizer(module):
    return torch.optim.AdamW(module.parameters(), 1e-2)


def make_data():
    characters = np.frombuffer(TEXT.read_bytes(), np.uint8).astype(np.int32) % 128
    count = (len(characters) - 1) // LENGTH // BATCH * BATCH
    return {"tokens": np.stack([characters[i * LENGTH:(i + 1) * LENGTH + 1] for i in range(count)])}


def main():
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "gpt.mlir")
    module, data = make_module(), make_data()
    batch = {name: torch.from_numpy(array[:BATCH]).long() for name, array in data.items()}
    exported = distc.torch.export(module, loss, make_optimizer(module), batch, path, schedule=schedule, max_norm=CLIP)
    result = distc.compile(exported, replicas=2, batch=BATCH).train(data, steps=200)
    distc.torch.load_state(module, result.state)
    print(f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}")


if __name__ == "__main__":
    main()
