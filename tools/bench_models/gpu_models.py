#!/usr/bin/env python3
"""The benchmark's models in PyTorch on one GPU. Prints the milliseconds of a step, a number a line for each round.

  gpu_models.py MODEL MODE PRECISION STEPS ROUNDS     PRECISION: fp32 | tf32 | bf16 (autocast)

  MODEL   classifier (of mlp.py), or one of GPU_MODELS of tensorflow_models.py, as it is there
  MODE    eager; compile: torch.compile; graphs: torch.compile with its CUDA graphs; whole: the whole step as one CUDA graph

A round trains STEPS steps and divides what they took by their number: nothing waits for a step's loss. Inputs lie in pinned memory and are copied
on a stream beside, a step ahead.
"""
import contextlib
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def classifier():
    layers = []
    sizes = (784, 2048, 2048, 10)
    for n, m in zip(sizes, sizes[1:]):
        layers += [nn.Linear(n, m), nn.ReLU()]
    model = nn.Sequential(*layers[:-1]).cuda()
    data = [(torch.rand(128, 784), torch.randint(0, 10, (128,))) for _ in range(2)]
    return model, lambda x, y: F.cross_entropy(model(x), y), torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True), data, 0


def resnet50_of_keras():
    import torchvision

    model = torchvision.models.resnet50()
    # As Keras has it: the first convolution of a block strides, and convolutions have biases.
    for module in model.modules():
        if isinstance(module, torchvision.models.resnet.Bottleneck):
            module.conv1.stride, module.conv2.stride = module.conv2.stride, (1, 1)
        if isinstance(module, nn.Conv2d):
            module.bias = nn.Parameter(torch.zeros(module.out_channels))
    return model.to(memory_format=torch.channels_last)


def resnet50():
    model = resnet50_of_keras().cuda()
    data = [(torch.rand(256, 3, 224, 224).contiguous(memory_format=torch.channels_last), torch.randint(0, 1000, (256,))) for _ in range(2)]
    return model, lambda x, y: F.cross_entropy(model(x).float(), y), torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True), data, 0


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.inner, self.outer = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.norm1, self.norm2, self.heads = nn.LayerNorm(d, 1e-6), nn.LayerNorm(d, 1e-6), heads

    def forward(self, h):
        b, t, d = h.shape
        q, k, v = self.qkv(h).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        c = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        h = self.norm1(h + self.out(c))
        return self.norm2(h + self.outer(F.gelu(self.inner(h))))


class Bert(nn.Module):
    def __init__(self, length, layers=24, d=1024, heads=16, words=30522):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, d), nn.Parameter(torch.randn(length, d) * 0.02)
        nn.init.normal_(self.words.weight, std=0.02)
        self.norm, self.bias = nn.LayerNorm(d, 1e-6), nn.Parameter(torch.zeros(words))
        self.layers = nn.ModuleList(Layer(d, heads) for _ in range(layers))

    def forward(self, ids):
        h = self.norm(self.words(ids) + self.positions)
        for layer in self.layers:
            h = layer(h)
        return F.linear(h.flatten(0, 1), self.words.weight, self.bias)


def bert_large(length=512):
    model = Bert(length).cuda()
    data = [(torch.randint(0, 30522, (16, length)), torch.randint(0, 30522, (16, length))) for _ in range(2)]
    return model, lambda x, y: F.cross_entropy(model(x).float(), y.flatten()), torch.optim.Adam(model.parameters(), lr=1e-4, fused=True), data, 1.0


def perceptron(sizes):
    layers = []
    for n, m in zip(sizes, sizes[1:]):
        layers += [nn.Linear(n, m), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], 1))


class Ncf(nn.Module):
    def __init__(self, users, items, width=64):
        super().__init__()
        self.user, self.item = (nn.Embedding(n, width, sparse=True) for n in (users, items))
        self.dense = perceptron((2 * width, 256, 128, 64))

    def forward(self, users, items):
        return self.dense(torch.cat([self.user(users), self.item(items)], 1))[:, 0]


def ncf(batch=16384):
    model = Ncf(10_000_000, 1_000_000).cuda()
    data = [(torch.randint(0, 10_000_000, (batch,)), torch.randint(0, 1_000_000, (batch,)), torch.randint(0, 2, (batch,)).float()) for _ in range(2)]
    return model, lambda u, i, y: F.binary_cross_entropy_with_logits(model(u, i), y), torch.optim.Adagrad(model.parameters(), lr=0.05, initial_accumulator_value=0.1), data, 0


MODELS = {"classifier": classifier, "resnet50": resnet50, "bert-large": bert_large, "ncf": ncf}


def main():
    name, mode, precision, steps, rounds = sys.argv[1:]
    steps, rounds = int(steps), int(rounds)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    torch.manual_seed(0)
    model, loss_of, optimizer, data, clip = MODELS[name]()
    data = [tuple(t.pin_memory() for t in batch) for batch in data]
    cast = (lambda: torch.autocast("cuda", torch.bfloat16)) if precision == "bf16" else contextlib.nullcontext

    def forward(*batch):
        with cast():
            return loss_of(*batch)

    if mode in ("compile", "graphs"):
        forward = torch.compile(forward, mode="reduce-overhead" if mode == "graphs" else "default")

    def train(batch):
        optimizer.zero_grad(set_to_none=True)
        loss = forward(*batch)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()

    beside = torch.cuda.Stream()
    slots = [tuple(t.cuda() for t in batch) for batch in data]

    def copy(k):
        with torch.cuda.stream(beside):
            for here, there in zip(slots[k % 2], data[k % 2]):
                here.copy_(there, non_blocking=True)

    whole = None
    if mode == "whole":  # the whole step is one CUDA graph, fed from one place, as PyTorch's documentation does it
        fixed = tuple(t.clone() for t in slots[0])
        optimizer.zero_grad(set_to_none=True)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                train(fixed)
        torch.cuda.current_stream().wait_stream(side)
        whole = torch.cuda.CUDAGraph()
        with torch.cuda.graph(whole):
            train(fixed)

    def run(count):
        copy(0)
        for k in range(count):
            torch.cuda.current_stream().wait_stream(beside)
            beside.wait_stream(torch.cuda.current_stream())
            copy(k + 1)
            if whole:
                for here, there in zip(fixed, slots[k % 2]):
                    here.copy_(there)
                whole.replay()
            else:
                if mode == "graphs":
                    torch.compiler.cudagraph_mark_step_begin()
                train(slots[k % 2])
        torch.cuda.synchronize()

    started = time.perf_counter()
    run(6)
    print(f"# {name} {mode} {precision}: the first 6 steps took {time.perf_counter() - started:.1f} s", flush=True)
    for _ in range(rounds):
        started = time.perf_counter()
        run(steps)
        print(f"{1e3 * (time.perf_counter() - started) / steps:.4f}", flush=True)


if __name__ == "__main__":
    main()
