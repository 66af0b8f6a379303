#!/usr/bin/env python3
"""The models of tensorflow_models.py in PyTorch, on processors. Prints the milliseconds of each step as JSON.

  torch_models.py pytorch-eager | pytorch-compile | ddp   DATA.npz BATCH STEPS THREADS MODEL

ddp: a process of one thread for each of THREADS, each on its share of the batch. From the batch in memory to the updated variables and the loss, as peers.py has it.
"""
import functools
import json
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from gpu_models import Ncf, perceptron, resnet50_of_keras
from peers import in_precision, run_processes, timed


def resnet50():
    # The data have channels last, and so do tensors of its format.
    return resnet50_of_keras(), lambda model, image, label: F.cross_entropy(model(image.permute(0, 3, 1, 2)), label.long()), momentum


class Layer(nn.Module):
    """Normalized before attention and before the dense layers."""

    def __init__(self, width, heads):
        super().__init__()
        self.before_attention, self.before_dense = nn.LayerNorm(width, 1e-6), nn.LayerNorm(width, 1e-6)
        self.query_key_value, self.mixed = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner, self.outer, self.heads = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), heads

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = self.query_key_value(self.before_attention(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.mixed(F.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(batch, length, width))
        return x + self.outer(F.gelu(self.inner(self.before_dense(x))))


class Transformer(nn.Module):
    def __init__(self, length=128, width=512, heads=8, layers=4, words=30522, classes=1000):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Parameter(torch.zeros(length, width))
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)), nn.LayerNorm(width, 1e-6), nn.Linear(width, classes))

    def forward(self, words):
        return self.layers(self.words(words) + self.positions)


def transformer():
    return Transformer(), lambda model, words, label: F.cross_entropy(model(words).flatten(0, 1), label.flatten().long()), adam


class Recurrent(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.hidden, self.classes = nn.LSTM(width, width, num_layers=2, batch_first=True), nn.Linear(width, 10)

    def forward(self, x):
        return self.classes(self.hidden(x)[0][:, -1])


def lstm():
    return Recurrent(), lambda model, x, label: F.cross_entropy(model(x), label.long()), adam


def ncf():
    return Ncf(2_000_000, 2_000_000), lambda model, user, item, label: F.binary_cross_entropy_with_logits(model(user, item), label), adagrad


class WideAndDeep(nn.Module):
    def __init__(self, features=26, rows=100_000, width=16, numbers=13):
        super().__init__()
        self.vectors, self.weights = (nn.ModuleList(nn.Embedding(rows, size, sparse=True) for _ in range(features)) for size in (width, 1))
        self.dense = perceptron([features * width + numbers, 256, 128, 64])

    def forward(self, category, number):
        vectors = [table(category[:, i]) for i, table in enumerate(self.vectors)]
        weights = [table(category[:, i]) for i, table in enumerate(self.weights)]
        return (self.dense(torch.cat([*vectors, number], 1)) + sum(weights))[:, 0]


def wide_and_deep():
    return WideAndDeep(), lambda model, category, number, label: F.binary_cross_entropy_with_logits(model(category, number), label), adagrad


class Table(nn.Module):
    def __init__(self, rows=50_000_000, width=16):
        super().__init__()
        self.vectors = nn.Embedding(rows, width, sparse=True)
        self.output = nn.Linear(width, 1)

    def forward(self, ids):
        return self.output(self.vectors(ids))[:, 0]


def table():
    return Table(), lambda model, ids, label: F.binary_cross_entropy_with_logits(model(ids), label), adagrad


# Of PyTorch's forms the one that is fastest.
momentum = functools.partial(torch.optim.SGD, lr=0.01, momentum=0.9, fused=True)
adam = functools.partial(torch.optim.Adam, lr=1e-4, fused=True)
adagrad = functools.partial(torch.optim.Adagrad, lr=0.05, initial_accumulator_value=0.1)  # which has no fused form for sparse gradients
MODELS = {"resnet50": resnet50, "transformer": transformer, "lstm": lstm, "ncf": ncf, "wide-and-deep": wide_and_deep, "table": table}


def train(name, path, batch, steps, compiled=False, part=0, parts=1):
    torch.manual_seed(0)
    model, loss_of, make_optimizer = MODELS[name]()
    loss_of = in_precision(torch, loss_of)
    if parts > 1:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = make_optimizer(model.parameters())
    if compiled:
        loss_of = torch.compile(loss_of)
    with np.load(path) as arrays:
        data = [torch.from_numpy(arrays[feed]) for feed in arrays.files]
    share = batch // parts
    shares = [[array[i + part * share:i + (part + 1) * share] for array in data] for i in range(0, len(data[0]), batch)]

    def step(*arrays):
        optimizer.zero_grad()
        loss = loss_of(model, *arrays)
        loss.backward()
        optimizer.step()
        return loss.item()

    return timed(step, shares, steps)


def train_process(rank, processes, folder, results, name, path, batch, steps):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=processes)
    times = train(name, path, batch, steps, part=rank, parts=processes)
    torch.distributed.destroy_process_group()
    if rank == 0:
        results.put(times)


if __name__ == "__main__":
    mode, path, batch, steps, threads, name = sys.argv[1:]
    batch, steps, threads = int(batch), int(steps), int(threads)
    torch.set_num_threads(threads)
    times = (run_processes(train_process, threads, name, path, batch, steps) if mode == "ddp" else
             train(name, path, batch, steps, compiled=mode == "pytorch-compile"))
    print(json.dumps(times))
