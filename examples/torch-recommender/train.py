#!/usr/bin/env python3
"""A recommender of embeddings in PyTorch: users, items and bags of tags; two replicas, whose workers own the tables."""
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import distc
import distc.torch

USERS, ITEMS, TAGS, WIDTH, BATCH = 400, 200, 30, 8, 40


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding(USERS, WIDTH), nn.Embedding(ITEMS, WIDTH)
        self.tags = nn.EmbeddingBag(TAGS, WIDTH, mode="mean")
        self.out = nn.Sequential(nn.Linear(3 * WIDTH, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, batch):
        rows = [self.users(batch["user"]), self.items(batch["item"]), self.tags(batch["tags"])]
        return self.out(torch.cat(rows, 1)).squeeze(1) + (rows[0] * rows[1]).sum(1)


def loss(module, batch):
    return F.binary_cross_entropy_with_logits(module(batch), batch["clicked"])


def make_module():
    torch.manual_seed(0)
    return Recommender()


def make_optimizer(module):
    return torch.optim.Adagrad(module.parameters(), 0.1)


def make_data():
    """A click where user and item are of the same half."""
    random = np.random.RandomState(0)
    user, item = random.randint(0, USERS, 4000), random.randint(0, ITEMS, 4000)
    return {"user": user.astype("i"), "item": item.astype("i"), "tags": random.randint(0, TAGS, (4000, 3)).astype("i"),
            "clicked": (user % 2 == item % 2).astype("f")}


def main():
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "recommender.mlir")
    module, data = make_module(), make_data()
    batch = {name: torch.from_numpy(array[:BATCH]) for name, array in data.items()}
    exported = distc.torch.export(module, loss, make_optimizer(module), batch, path)
    executable = distc.compile(exported, strategy="PSLoadBalancing", replicas=2, batch=BATCH, processes=True)
    result = executable.train(data, steps=500)
    distc.torch.load_state(module, result.state)
    with torch.no_grad():
        clicks = module({name: torch.from_numpy(array) for name, array in data.items()}) > 0
    print(f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}, accuracy {float((clicks.numpy() == data['clicked']).mean()):.4f}")


if __name__ == "__main__":
    main()
