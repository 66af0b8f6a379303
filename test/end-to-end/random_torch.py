#!/usr/bin/env python3
"""Random training steps of PyTorch (layers, losses, optimizers with their options, schedulers, masks, buffers, tied and frozen parameters), trained
by distc with random strategies, against PyTorch on one device. By hand: --seed 2 --count 200; --only K runs program K alone and prints it."""
import copy
import importlib.util
import os
import sys

from support import DISTC, HAS_EMULATED_GPU, ROOT, check_programs, need_tools, skip

for package in ("jax", "torch"):
    if importlib.util.find_spec(package) is None:
        skip(f"needs {package}: pip install 'jax[cpu]' torch, and set DISTC_PYTHON to that python")
need_tools(DISTC)
sys.path.insert(0, str(ROOT / "tools" / "python"))
os.environ["DISTC"] = str(DISTC)

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import distc
import distc.torch

BATCH, STEPS, ROWS, WIDTH, TIME, CLASSES, WORDS = 8, 4, 16, 4, 4, 3, 7
EMULATED = ["--target=cuda:emulated"]
RUNS = [("AllReduce", 1, False, []), ("AllReduce", 2, False, []), ("AllReduce", 4, False, []), ("PartitionedAR", 2, False, []), ("ShardedUpdate", 4, False, []), ("ShardedUpdate", 2, True, []),
        ("Parallax", 2, False, []), ("PSLoadBalancing", 2, True, []), ("AllReduce", 4, True, []), ("AllReduce:accumulate_steps=2", 2, False, []), *([("AllReduce", 2, False, EMULATED)] * HAS_EMULATED_GPU)]


class Layer(nn.Module):
    """A layer that is a function of the values, the batch and its own parameters and buffers."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, (nn.Module, nn.Parameter)):
                setattr(self, name, part)
            else:
                self.register_buffer(name, part)

    def forward(self, x, batch):
        return self.function(self, x, batch)


def scaled(*shape, scale=0.5):
    return nn.Parameter(torch.randn(*shape) * scale)


def wrap(module):
    return Layer(lambda self, x, b: self.layer(x), layer=module)


ACTIVATIONS = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu tanh": lambda: nn.GELU("tanh"),
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "celu": lambda: nn.CELU(0.5),
    "selu": nn.SELU,
    "mish": nn.Mish,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "softplus": lambda: nn.Softplus(2.0, 1.0),
    "softsign": nn.Softsign,
    "leaky": lambda: nn.LeakyReLU(0.2),
    "prelu": nn.PReLU,
    "hardtanh": lambda: nn.Hardtanh(-0.5, 0.7),
    "hardswish": nn.Hardswish,
    "hardsigmoid": nn.Hardsigmoid,
    "relu6": nn.ReLU6,
    "tanhshrink": nn.Tanhshrink,
    "softshrink": lambda: nn.Softshrink(0.2),
    "hardshrink": lambda: nn.Hardshrink(0.2),
    "logsigmoid": nn.LogSigmoid,
    "threshold": lambda: nn.Threshold(0.1, -0.3),
    "softmin": lambda: nn.Softmin(-1),
}


def momentum_average(self, x, batch):
    with torch.no_grad():
        self.mean.lerp_(x.mean(0), 0.1)
        self.count += 1
    return x - self.mean.detach() + 0.1 * torch.cos(self.count)


def codebook(self, x, batch):
    distances = torch.cdist(x.detach(), self.codes)
    chosen = F.one_hot(distances.argmin(-1), 3).to(x.dtype)
    with torch.no_grad():
        self.sizes.mul_(0.9).add_(chosen.sum(0), alpha=0.1)
        self.codes.mul_(0.9).add_(chosen.T @ x / (chosen.sum(0)[:, None] + 1), alpha=0.1)
    near = chosen @ self.codes.clone()
    return x + 0.5 * (near - x).detach() + 0.1 * self.sizes.sum()


# Of x [batch, WIDTH].
DENSE = {
    "linear": lambda: wrap(nn.Linear(WIDTH, WIDTH)),
    "linear without bias": lambda: wrap(nn.Linear(WIDTH, WIDTH, bias=False)),
    "bilinear": lambda: Layer(lambda s, x, b: torch.tanh(s.layer(x, b["x"])), layer=nn.Bilinear(WIDTH, WIDTH, WIDTH)),
    "layer norm": lambda: wrap(nn.LayerNorm(WIDTH)),
    "rms norm": lambda: wrap(nn.RMSNorm(WIDTH, eps=1e-3)),
    "group norm": lambda: wrap(nn.GroupNorm(2, WIDTH, eps=0.1)),
    "batch norm": lambda: wrap(nn.BatchNorm1d(WIDTH, eps=0.1)),
    "batch norm, mean of all": lambda: wrap(nn.BatchNorm1d(WIDTH, eps=0.1, momentum=None)),
    "batch norm, bare": lambda: wrap(nn.BatchNorm1d(WIDTH, eps=0.1, affine=False)),
    "batch norm, no statistics": lambda: wrap(nn.BatchNorm1d(WIDTH, eps=0.1, track_running_stats=False)),
    "frozen batch norm": lambda: wrap(nn.BatchNorm1d(WIDTH).eval()),
    "residual": lambda: Layer(lambda s, x, b: x + s.layer(x), layer=nn.Sequential(nn.Linear(WIDTH, 6), nn.GELU(), nn.Linear(6, WIDTH))),
    "gated": lambda: Layer(lambda s, x, b: F.glu(s.layer(x), -1), layer=nn.Linear(WIDTH, 2 * WIDTH)),
    "embedding": lambda: Layer(lambda s, x, b: x + s.table(b["words"]).mean(1), table=nn.Embedding(WORDS, WIDTH)),
    "padded embedding": lambda: Layer(lambda s, x, b: x + s.table(b["words"]).sum(1), table=nn.Embedding(WORDS, WIDTH, padding_idx=2)),
    "embedding, scaled by frequency": lambda: Layer(lambda s, x, b: x + s.table(b["words"]).sum(1), table=nn.Embedding(WORDS, WIDTH, scale_grad_by_freq=True)),
    "bag": lambda: Layer(lambda s, x, b: x + s.table(b["words"]), table=nn.EmbeddingBag(WORDS, WIDTH, mode="mean")),
    "weighted bag": lambda: Layer(lambda s, x, b: x + s.table(b["words"], per_sample_weights=b["steps"][:, :, 0]), table=nn.EmbeddingBag(WORDS, WIDTH, mode="sum")),
    "largest of bag": lambda: Layer(lambda s, x, b: x * s.table(b["words"]), table=nn.EmbeddingBag(WORDS, WIDTH, mode="max")),
    "softmax": lambda: Layer(lambda s, x, b: x.softmax(-1) * WIDTH),
    "log softmax": lambda: Layer(lambda s, x, b: x.log_softmax(-1)),
    "normalize": lambda: Layer(lambda s, x, b: F.normalize(x, dim=-1)),
    "over the batch": lambda: Layer(lambda s, x, b: x.softmax(0) * len(x)),
    "attention of examples": lambda: Layer(lambda s, x, b: (x @ x.T / 2).softmax(-1) @ x),
    "deviation": lambda: Layer(lambda s, x, b: x / (0.5 + x.std(0))),
    "whitened": lambda: Layer(lambda s, x, b: x @ torch.tanh(x.T.cov())),
    "least": lambda: Layer(lambda s, x, b: x - x.min(0)[0]),
    "median": lambda: Layer(lambda s, x, b: x - x.median(0)[0]),
    "batch's norm": lambda: Layer(lambda s, x, b: x / (1 + x.norm())),
    "rolled": lambda: Layer(lambda s, x, b: x - 0.5 * x.roll(1, 0)),
    "flipped": lambda: Layer(lambda s, x, b: x * torch.tanh(x.flip(0))),
    "sorted": lambda: Layer(lambda s, x, b: x + x.sort(0)[0]),
    "sums so far": lambda: Layer(lambda s, x, b: x + x.cumsum(0) / 8),
    "halves": lambda: Layer(lambda s, x, b: torch.cat([a * torch.tanh(c) for a, c in [x.chunk(2, 1), x.chunk(2, 1)[::-1]]], 1)),
    "sorted features": lambda: Layer(lambda s, x, b: x.sort(-1, descending=True)[0]),
    "topk": lambda: Layer(lambda s, x, b: x.topk(2, -1)[0].repeat(1, 2)),
    "scatter": lambda: Layer(lambda s, x, b: torch.zeros_like(x).scatter(1, x.topk(2, -1)[1], x.topk(2, -1)[0])),
    "cumsum": lambda: Layer(lambda s, x, b: x.cumsum(-1) / 2),
    "cumprod": lambda: Layer(lambda s, x, b: x.tanh().cumprod(-1)),
    "logcumsumexp": lambda: Layer(lambda s, x, b: x.logcumsumexp(-1)),
    "cummax": lambda: Layer(lambda s, x, b: x.cummax(-1)[0]),
    "masked": lambda: Layer(lambda s, x, b: x.masked_fill(b["chosen"][:, None], 0.3) + s.p, p=scaled(WIDTH)),
    "where": lambda: Layer(lambda s, x, b: torch.where(x > s.p, x, s.p * x), p=scaled(WIDTH)),
    "rows that are chosen": lambda: Layer(lambda s, x, b: x.index_put((b["chosen"],), s.layer(x[b["chosen"]])), layer=nn.Linear(WIDTH, WIDTH)),
    "groups": lambda: Layer(lambda s, x, b: x + torch.zeros(CLASSES, WIDTH, dtype=x.dtype).index_add(0, b["y"], x)[b["y"]] / 8),
    "scattered rows": lambda: Layer(lambda s, x, b: x + torch.zeros(CLASSES, WIDTH, dtype=x.dtype).scatter_reduce(0, b["y"][:, None].expand(-1, WIDTH), x, "mean")[b["y"]]),
    "largest of groups": lambda: Layer(lambda s, x, b: x + torch.zeros(CLASSES, WIDTH, dtype=x.dtype).scatter_reduce(0, b["y"][:, None].expand(-1, WIDTH), x, "amax", include_self=False)[b["y"]]),
    "average in a buffer": lambda: Layer(momentum_average, mean=torch.zeros(WIDTH), count=torch.zeros(())),
    "codebook": lambda: Layer(codebook, codes=torch.randn(3, WIDTH), sizes=torch.ones(3)),
    "weight norm": lambda: wrap(nn.utils.parametrizations.weight_norm(nn.Linear(WIDTH, WIDTH))),
    "spectral norm": lambda: wrap(nn.utils.parametrizations.spectral_norm(nn.Linear(WIDTH, WIDTH))),
    "orthogonal": lambda: wrap(nn.utils.parametrizations.orthogonal(nn.Linear(WIDTH, WIDTH))),
    "experts": lambda: Layer(lambda s, x, b: sum((s.gate(x).softmax(-1).topk(2, -1)[1] == i).any(-1, keepdim=True) * e(x) for i, e in enumerate(s.experts)), gate=nn.Linear(WIDTH, 3), experts=nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(3)])),
    "frozen": lambda: Layer(lambda s, x, b: x + s.layer(x), layer=nn.Linear(WIDTH, WIDTH).requires_grad_(False)),
    "detached": lambda: Layer(lambda s, x, b: x * s.layer(x.detach()).sigmoid(), layer=nn.Linear(WIDTH, WIDTH)),
    "cell": lambda: Layer(lambda s, x, b: s.cell(b["x"], x), cell=nn.GRUCell(WIDTH, WIDTH)),
    "lstm cell": lambda: Layer(lambda s, x, b: sum(s.cell(b["x"], (x, x.tanh()))), cell=nn.LSTMCell(WIDTH, WIDTH)),
    "einsum": lambda: Layer(lambda s, x, b: torch.einsum("bi,ijk,bj->bk", x, s.p, b["x"]) / 2, p=scaled(WIDTH, WIDTH, WIDTH)),
    "cosine": lambda: Layer(lambda s, x, b: x * F.cosine_similarity(x, b["x"] + s.p, dim=-1)[:, None], p=scaled(WIDTH)),
    "distance": lambda: Layer(lambda s, x, b: torch.cdist(x, s.p), p=scaled(WIDTH, WIDTH)),
    "distances of examples": lambda: Layer(lambda s, x, b: x * torch.exp(-torch.cdist(x, x)).mean(1, keepdim=True)),
    "maximum": lambda: Layer(lambda s, x, b: torch.maximum(x, s.p) + torch.minimum(x, -s.p), p=scaled(WIDTH)),
    "clamp": lambda: Layer(lambda s, x, b: x.clamp(-1, 0.5) + s.p.clamp(min=0), p=scaled(WIDTH)),
    "logaddexp": lambda: Layer(lambda s, x, b: torch.logaddexp(x, s.p), p=scaled(WIDTH)),
    "lerp": lambda: Layer(lambda s, x, b: torch.lerp(x, b["x"], s.p.sigmoid()), p=scaled(WIDTH)),
    "addcmul": lambda: Layer(lambda s, x, b: torch.addcmul(x, s.p, b["x"], value=0.5), p=scaled(WIDTH)),
    "power": lambda: Layer(lambda s, x, b: (x.abs() + 0.1) ** s.p, p=scaled(WIDTH)),
    "solve": lambda: Layer(lambda s, x, b: torch.linalg.solve(torch.eye(WIDTH, dtype=x.dtype) * 3 + s.p, x.T).T, p=scaled(WIDTH, WIDTH)),
    "fft": lambda: Layer(lambda s, x, b: torch.fft.irfft(torch.fft.rfft(x) * s.p, n=WIDTH), p=scaled(WIDTH // 2 + 1)),
    "outer": lambda: Layer(lambda s, x, b: (x[:, :, None] * b["x"][:, None]).flatten(1).unfold(1, 4, 4).mean(-1)),
    "remainder": lambda: Layer(lambda s, x, b: x % 1.5 + torch.fmod(x, 0.7)),
    "polynomial": lambda: Layer(lambda s, x, b: torch.stack([x.tanh() ** i for i in range(3)], -1) @ s.p, p=scaled(3)),
    "in place": lambda: Layer(lambda s, x, b: x.clone().mul_(s.p).add_(1).relu_(), p=scaled(WIDTH)),
    "slices": lambda: Layer(lambda s, x, b: torch.cat([x[:, 1:] * s.p, x[:, :1]], 1), p=scaled(WIDTH - 1)),
    "written slices": lambda: Layer(lambda s, x, b: put(x, s.p), p=scaled(2)),
    "ghosts": lambda: Layer(lambda s, x, b: torch.cat([F.batch_norm(part, None, None, s.weight, training=True, eps=0.1) for part in x.chunk(2)]), weight=scaled(WIDTH)),
    "pairs of examples": lambda: Layer(lambda s, x, b: (x.view(-1, 2, WIDTH).flip(1) * s.p).reshape(x.shape) + x, p=scaled(WIDTH)),
    "first half": lambda: Layer(lambda s, x, b: torch.cat([x[:len(x) // 2] * s.p, x[len(x) // 2:].tanh()]), p=scaled(WIDTH)),
    "every other": lambda: Layer(lambda s, x, b: torch.stack([x[::2] * s.p, x[1::2]], 1).flatten(0, 1), p=scaled(WIDTH)),
    "mean of examples": lambda: Layer(lambda s, x, b: x - x.mean(0, keepdim=True) + s.p, p=scaled(WIDTH)),
    "counted": lambda: Layer(lambda s, x, b: x * (b["chosen"].sum() / len(x)) + s.p, p=scaled(WIDTH)),
    "histogram": lambda: Layer(lambda s, x, b: x * torch.bincount(b["y"], minlength=CLASSES).to(x.dtype)[b["y"], None] / 8),
}


def put(x, p):
    y = x.clone()
    y[:, 1:3] = x[:, 1:3] * p
    y[:, 0] += y[:, 3]
    return y


def padding(batch):
    return torch.arange(TIME)[None] >= batch["lengths"][:, None]


# Of x [batch, TIME, WIDTH].
SEQUENCE = {
    "linear": lambda: wrap(nn.Linear(WIDTH, WIDTH)),
    "layer norm": lambda: wrap(nn.LayerNorm(WIDTH, elementwise_affine=True)),
    "batch norm": lambda: Layer(lambda s, x, b: s.norm(x.transpose(1, 2)).transpose(1, 2), norm=nn.BatchNorm1d(WIDTH, eps=0.1)),
    "instance norm": lambda: Layer(lambda s, x, b: s.norm(x.transpose(1, 2)).transpose(1, 2), norm=nn.InstanceNorm1d(WIDTH, eps=0.1, affine=True)),
    "tracked instance norm": lambda: Layer(lambda s, x, b: s.norm(x.transpose(1, 2)).transpose(1, 2), norm=nn.InstanceNorm1d(WIDTH, eps=0.1, track_running_stats=True)),
    "attention": lambda: Layer(lambda s, x, b: x + s.layer(x, x, x, need_weights=False)[0], layer=nn.MultiheadAttention(WIDTH, 2, batch_first=True)),
    "attention with padding": lambda: Layer(lambda s, x, b: x + s.layer(x, x, x, key_padding_mask=padding(b))[0], layer=nn.MultiheadAttention(WIDTH, 2, batch_first=True, bias=False)),
    "causal attention": lambda: Layer(lambda s, x, b: F.scaled_dot_product_attention(s.q(x), s.k(x), x, is_causal=True), q=nn.Linear(WIDTH, WIDTH), k=nn.Linear(WIDTH, WIDTH)),
    "attention of two": lambda: Layer(lambda s, x, b: s.layer(x, b["steps"].flip(1), b["steps"], attn_mask=nn.Transformer.generate_square_subsequent_mask(TIME, dtype=x.dtype))[0], layer=nn.MultiheadAttention(WIDTH, 2, batch_first=True, add_bias_kv=False)),
    "transformer": lambda: Layer(lambda s, x, b: s.layer(x, src_key_padding_mask=padding(b)), layer=nn.TransformerEncoderLayer(WIDTH, 2, 6, 0.0, batch_first=True)),
    "transformer, norm first": lambda: wrap(nn.TransformerEncoderLayer(WIDTH, 2, 6, 0.0, "gelu", batch_first=True, norm_first=True)),
    "decoder": lambda: Layer(lambda s, x, b: s.layer(x, b["steps"]), layer=nn.TransformerDecoderLayer(WIDTH, 2, 6, 0.0, batch_first=True)),
    "lstm": lambda: Layer(lambda s, x, b: s.layer(x)[0], layer=nn.LSTM(WIDTH, WIDTH, batch_first=True)),
    "lstm both ways": lambda: Layer(lambda s, x, b: s.layer(x)[0], layer=nn.LSTM(WIDTH, WIDTH // 2, 2, batch_first=True, bidirectional=True)),
    "projected lstm": lambda: Layer(lambda s, x, b: s.layer(x)[0], layer=nn.LSTM(WIDTH, 6, batch_first=True, proj_size=WIDTH)),
    "gru": lambda: Layer(lambda s, x, b: s.layer(x)[0], layer=nn.GRU(WIDTH, WIDTH, 2, batch_first=True)),
    "gru from a state": lambda: Layer(lambda s, x, b: s.layer(x, b["x"][None].contiguous())[0], layer=nn.GRU(WIDTH, WIDTH, batch_first=True)),
    "rnn": lambda: Layer(lambda s, x, b: s.layer(x)[0], layer=nn.RNN(WIDTH, WIDTH // 2, nonlinearity="relu", batch_first=True, bidirectional=True)),
    "packed": lambda: Layer(packed, layer=nn.GRU(WIDTH, WIDTH, batch_first=True)),
    "packed lstm": lambda: Layer(packed, layer=nn.LSTM(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)),
    "convolution": lambda: Layer(lambda s, x, b: s.layer(x.transpose(1, 2)).transpose(1, 2), layer=nn.Conv1d(WIDTH, WIDTH, 3, padding=1)),
    "causal convolution": lambda: Layer(lambda s, x, b: s.layer(F.pad(x.transpose(1, 2), (2, 0))).transpose(1, 2), layer=nn.Conv1d(WIDTH, WIDTH, 2, dilation=2, groups=2)),
    "circular convolution": lambda: Layer(lambda s, x, b: s.layer(x.transpose(1, 2)).transpose(1, 2), layer=nn.Conv1d(WIDTH, WIDTH, 3, padding="same", padding_mode="circular")),
    "transposed convolution": lambda: Layer(lambda s, x, b: s.layer(x.transpose(1, 2)).transpose(1, 2), layer=nn.ConvTranspose1d(WIDTH, WIDTH, 3, padding=1)),
    "embedding": lambda: Layer(lambda s, x, b: x + s.words(b["words"]) + s.places(torch.arange(TIME)), words=nn.Embedding(WORDS, WIDTH), places=nn.Embedding(TIME, WIDTH)),
    "masked by length": lambda: Layer(lambda s, x, b: x.masked_fill(padding(b)[..., None], 0) * s.p, p=scaled(WIDTH)),
    "chosen steps": lambda: Layer(lambda s, x, b: x + s.layer(x) * (~padding(b))[..., None], layer=nn.Linear(WIDTH, WIDTH)),
    "flip": lambda: Layer(lambda s, x, b: x + x.flip(1)),
    "cumsum": lambda: Layer(lambda s, x, b: x.cumsum(1) / 2),
    "mean so far": lambda: Layer(lambda s, x, b: x.cumsum(1) / torch.arange(1, TIME + 1)[:, None]),
    "roll": lambda: Layer(lambda s, x, b: x - x.roll(1, 1)),
    "interpolated": lambda: Layer(lambda s, x, b: F.interpolate(x.transpose(1, 2), scale_factor=2, mode="linear").transpose(1, 2)[:, ::2]),
    "unrolled": lambda: Layer(unrolled, layer=nn.Linear(2 * WIDTH, WIDTH)),
    "last": lambda: Layer(lambda s, x, b: x * x.gather(1, (b["lengths"] - 1)[:, None, None].expand(-1, 1, WIDTH))),
    "last by numbers": lambda: Layer(lambda s, x, b: x + x[torch.arange(len(x)), b["lengths"] - 1][:, None]),
    "relative": lambda: Layer(lambda s, x, b: (x @ x.mT + s.p[torch.arange(TIME)[:, None] - torch.arange(TIME) + TIME - 1]).softmax(-1) @ x, p=scaled(2 * TIME - 1)),
    "pool": lambda: Layer(lambda s, x, b: F.avg_pool1d(x.transpose(1, 2), 3, 1, 1, count_include_pad=False).transpose(1, 2)),
    "max pool": lambda: Layer(lambda s, x, b: F.max_pool1d(x.transpose(1, 2), 3, 1, 1).transpose(1, 2)),
}


def packed(self, x, batch):
    values = nn.utils.rnn.pack_padded_sequence(x, batch["lengths"], batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(self.layer(values)[0], batch_first=True, total_length=TIME)[0]


def unrolled(self, x, batch):
    h, outputs = torch.zeros_like(x[:, 0]), []
    for t in range(TIME):
        h = torch.where((t < batch["lengths"])[:, None], torch.tanh(self.layer(torch.cat([h, x[:, t]], -1))), h)
        outputs.append(h)
    return torch.stack(outputs, 1)


# Of x [batch, WIDTH, 6, 6].
IMAGE = {
    "convolution": lambda: wrap(nn.Conv2d(WIDTH, WIDTH, 3, padding=1)),
    "depthwise": lambda: wrap(nn.Conv2d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH)),
    "dilated": lambda: wrap(nn.Conv2d(WIDTH, WIDTH, 3, padding=2, dilation=2, groups=2)),
    "reflected": lambda: wrap(nn.Conv2d(WIDTH, WIDTH, 3, padding=1, padding_mode="reflect")),
    "strided": lambda: wrap(nn.Sequential(nn.Conv2d(WIDTH, 6, 3, 2, 1), nn.ConvTranspose2d(6, WIDTH, 3, 2, 1, output_padding=1))),
    "transposed in groups": lambda: wrap(nn.ConvTranspose2d(WIDTH, WIDTH, (1, 3), padding=(0, 1), groups=2)),
    "batch norm": lambda: wrap(nn.BatchNorm2d(WIDTH, eps=0.1)),
    "instance norm": lambda: wrap(nn.InstanceNorm2d(WIDTH, eps=0.1)),
    "group norm": lambda: wrap(nn.GroupNorm(2, WIDTH, eps=0.1)),
    "response norm": lambda: wrap(nn.LocalResponseNorm(3, 0.1)),
    "max pool": lambda: wrap(nn.MaxPool2d(3, 1, 1)),
    "average pool": lambda: wrap(nn.AvgPool2d(3, 1, 1)),
    "lp pool": lambda: Layer(lambda s, x, b: F.pad(F.lp_pool2d(x.abs() + 0.1, 2.0, 2, 1), (0, 1, 0, 1))),
    "pooled and enlarged": lambda: wrap(nn.Sequential(nn.MaxPool2d(2), nn.Upsample(scale_factor=2))),
    "ceil": lambda: wrap(nn.Sequential(nn.AvgPool2d(4, 3, ceil_mode=True, count_include_pad=False), nn.Upsample((6, 6), mode="bilinear", align_corners=True))),
    "bicubic": lambda: wrap(nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Upsample((6, 6), mode="bicubic"))),
    "adaptive max": lambda: wrap(nn.Sequential(nn.AdaptiveMaxPool2d(4), nn.Upsample(size=(6, 6), mode="bilinear"))),
    "shuffle": lambda: wrap(nn.Sequential(nn.Conv2d(WIDTH, 4 * WIDTH, 1), nn.PixelShuffle(2), nn.PixelUnshuffle(2), nn.Conv2d(4 * WIDTH, WIDTH, 1))),
    "channel shuffle": lambda: wrap(nn.ChannelShuffle(2)),
    "squeeze": lambda: Layer(lambda s, x, b: x * s.layer(x.mean((2, 3), keepdim=True)).sigmoid(), layer=nn.Conv2d(WIDTH, WIDTH, 1)),
    "unfolded": lambda: Layer(lambda s, x, b: F.fold(F.unfold(x, 3, padding=1) * s.p, 6, 3, padding=1) / 4, p=scaled(1, 9 * WIDTH, 1)),
    "sampled": lambda: Layer(lambda s, x, b: F.grid_sample(x, F.affine_grid(torch.tanh(s.theta(b["x"])).reshape(-1, 2, 3), list(x.shape), align_corners=False), align_corners=False), theta=nn.Linear(WIDTH, 6)),
    "modulated": lambda: Layer(lambda s, x, b: x * s.layer(b["x"])[:, :, None, None] + s.p, layer=nn.Linear(WIDTH, WIDTH), p=scaled(WIDTH, 1, 1)),
    "padded": lambda: Layer(lambda s, x, b: F.pad(x, (1, 0, 2, -1), value=0.5)[:, :, :6, :6]),
    "replicated": lambda: Layer(lambda s, x, b: F.pad(x, (1, 1, 1, 1), mode="replicate")[:, :, 2:, 2:]),
    "blurred": lambda: Layer(lambda s, x, b: F.conv2d(x, s.kernel.expand(WIDTH, 1, 3, 3), padding=1, groups=WIDTH), kernel=torch.ones(1, 1, 3, 3) / 9),
    "spatial attention": lambda: Layer(lambda s, x, b: x * s.layer(torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)).sigmoid(), layer=nn.Conv2d(2, 1, 3, padding=1)),
    "volume": lambda: Layer(lambda s, x, b: s.layer(x[:, None])[:, 0], layer=nn.Conv3d(1, 1, 3, padding=1)),
    "channel layer norm": lambda: Layer(lambda s, x, b: s.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), norm=nn.LayerNorm(WIDTH)),
    "windows": lambda: Layer(windows, layer=nn.Linear(WIDTH, WIDTH)),
    "rolled": lambda: Layer(lambda s, x, b: x + x.roll((1, -1), (2, 3))),
}


def windows(self, x, batch):
    n = x.shape[0]
    parts = x.reshape(n, WIDTH, 3, 2, 3, 2).permute(0, 2, 4, 3, 5, 1).reshape(-1, 4, WIDTH)
    parts = (parts @ parts.mT).softmax(-1) @ self.layer(parts)
    return parts.reshape(n, 3, 3, 2, 2, WIDTH).permute(0, 5, 1, 3, 2, 4).reshape(n, WIDTH, 6, 6)


KINDS = {"dense": DENSE, "sequence": SEQUENCE, "image": IMAGE}

# Of logits [batch, CLASSES] and the values [batch, WIDTH] behind them.
LOSSES = {
    "cross entropy": lambda m, o, z, b: F.cross_entropy(o, b["y"]),
    "cross entropy, weighted": lambda m, o, z, b: F.cross_entropy(o, b["y"], weight=m.class_weights),
    "cross entropy, smoothed": lambda m, o, z, b: F.cross_entropy(o, b["y"], label_smoothing=0.1),
    "cross entropy, all": lambda m, o, z, b: F.cross_entropy(o, b["y"], weight=m.class_weights, ignore_index=1, label_smoothing=0.2),
    "cross entropy, summed": lambda m, o, z, b: F.cross_entropy(o, b["y"], reduction="sum") / 8,
    "cross entropy of probabilities": lambda m, o, z, b: F.cross_entropy(o, z[:, :CLASSES].detach().softmax(-1), weight=m.class_weights),
    "ignored": lambda m, o, z, b: F.cross_entropy(o, b["holes"]),
    "weighted examples": lambda m, o, z, b: (F.cross_entropy(o, b["y"], reduction="none") * b["weights"]).mean(),
    "normalized weights": lambda m, o, z, b: (F.cross_entropy(o, b["y"], reduction="none") * b["weights"]).sum() / b["weights"].sum(),
    "masked mean": lambda m, o, z, b: (F.cross_entropy(o, b["y"], reduction="none") * b["chosen"]).sum() / b["chosen"].sum().clamp(min=1),
    "chosen": lambda m, o, z, b: F.cross_entropy(o[b["chosen"]], b["y"][b["chosen"]]),
    "chosen and smoothed": lambda m, o, z, b: F.cross_entropy(o[b["chosen"]], b["y"][b["chosen"]], label_smoothing=0.1),
    "hardest": lambda m, o, z, b: F.cross_entropy(o, b["y"], reduction="none").topk(3)[0].mean(),
    "focal": lambda m, o, z, b: (lambda c: ((1 - torch.exp(-c)) ** 2 * c).mean())(F.cross_entropy(o, b["y"], reduction="none")),
    "nll": lambda m, o, z, b: F.nll_loss(o.log_softmax(-1), b["y"], weight=m.class_weights, reduction="sum"),
    "squares": lambda m, o, z, b: F.mse_loss(o, b["t"]),
    "squares, weighted": lambda m, o, z, b: F.mse_loss(o, b["t"], weight=b["weights"][:, None].expand_as(o)),
    "absolute": lambda m, o, z, b: F.l1_loss(o, b["t"]),
    "smooth": lambda m, o, z, b: F.smooth_l1_loss(o, b["t"], beta=0.5),
    "huber": lambda m, o, z, b: F.huber_loss(o, b["t"], delta=0.7, reduction="sum"),
    "binary": lambda m, o, z, b: F.binary_cross_entropy_with_logits(o, (b["t"] > 0).to(o.dtype), pos_weight=m.class_weights),
    "binary, weighted": lambda m, o, z, b: F.binary_cross_entropy(o.sigmoid(), (b["t"] > 0).to(o.dtype), weight=b["weights"][:, None]),
    "divergence": lambda m, o, z, b: F.kl_div(o.log_softmax(-1), b["t"].softmax(-1), reduction="batchmean"),
    "divergence of logs": lambda m, o, z, b: F.kl_div(o.log_softmax(-1), b["t"].log_softmax(-1), log_target=True, reduction="sum"),
    "poisson": lambda m, o, z, b: F.poisson_nll_loss(o, b["t"].abs(), full=True),
    "gaussian": lambda m, o, z, b: F.gaussian_nll_loss(o, b["t"], F.softplus(o.flip(1)) + 0.1),
    "hinge": lambda m, o, z, b: F.hinge_embedding_loss(o, torch.where(b["t"] > 0, 1.0, -1.0)),
    "margin": lambda m, o, z, b: F.multi_margin_loss(o, b["y"], margin=0.5, weight=m.class_weights),
    "multilabel": lambda m, o, z, b: F.multilabel_soft_margin_loss(o, (b["t"] > 0).to(o.dtype)),
    "soft margin": lambda m, o, z, b: F.soft_margin_loss(o, torch.where(b["t"] > 0, 1.0, -1.0)),
    "ranking": lambda m, o, z, b: F.margin_ranking_loss(o[:, 0], o[:, 1], torch.where(b["chosen"], 1.0, -1.0), margin=0.3),
    "triplet": lambda m, o, z, b: F.triplet_margin_loss(z, z.flip(0), b["x"], margin=0.5, swap=True),
    "cosine": lambda m, o, z, b: F.cosine_embedding_loss(z, b["x"], torch.where(b["chosen"], 1.0, -1.0), margin=0.2),
    "contrastive": lambda m, o, z, b: F.cross_entropy(F.normalize(z, dim=-1) @ F.normalize(b["x"], dim=-1).T / 0.5, torch.arange(len(z))),
    "clip": lambda m, o, z, b: (lambda s: (F.cross_entropy(s, torch.arange(len(z))) + F.cross_entropy(s.T, torch.arange(len(z)))) / 2)(F.normalize(z, dim=-1) @ F.normalize(b["x"], dim=-1).T * m.temperature.exp()),
    "two views": lambda m, o, z, b: simclr(z, b),
    "decorrelated": lambda m, o, z, b: ((lambda c: (c - torch.eye(WIDTH, dtype=c.dtype)).square().sum())((z - z.mean(0)).T @ (b["x"] - b["x"].mean(0)) / len(z))),
    "variance": lambda m, o, z, b: F.relu(1 - torch.sqrt(z.var(0) + 1e-4)).mean() + o.square().mean(),
    "with penalty": lambda m, o, z, b: F.cross_entropy(o, b["y"]) + 1e-2 * sum(p.square().sum() for p in m.parameters()) + 1e-3 * sum(p.abs().sum() for p in m.parameters()),
    "rates": lambda m, o, z, b: -torch.distributions.Normal(o, 0.7).log_prob(b["t"]).mean(),
    "pairs": lambda m, o, z, b: F.softplus(-(o[:, None, 0] - o[None, :, 0]) * torch.sign(b["t"][:, None, 0] - b["t"][None, :, 0])).mean(),
    "quantiles": lambda m, o, z, b: (lambda e: torch.maximum(0.3 * e, -0.7 * e).mean())(b["t"] - o),
    "dice": lambda m, o, z, b: 1 - (2 * (o.softmax(-1) * F.one_hot(b["y"], CLASSES)).sum(0) + 1).div(o.softmax(-1).sum(0) + F.one_hot(b["y"], CLASSES).sum(0) + 1).mean(),
    "entropy": lambda m, o, z, b: torch.special.entr(o.softmax(-1)).sum(-1).mean() - torch.special.entr(o.softmax(-1).mean(0)).sum(),
    "advantage": lambda m, o, z, b: -(o.log_softmax(-1).gather(1, b["y"][:, None])[:, 0] * ((b["weights"] - b["weights"].mean()) / (b["weights"].std() + 1e-3))).mean(),
    "triangle": lambda m, o, z, b: torch.triu(z @ z.T, 1).square().mean(),
    "uniform": lambda m, o, z, b: torch.log(torch.exp(-2 * torch.cdist(z, z).square()).mean()) + o.mean(),
}


SUMMED = {"cross entropy, summed", "nll", "huber", "divergence of logs"}


def simclr(z, batch):
    """The loss of SimCLR's tutorial: both views of an example against all others."""
    features = F.normalize(torch.cat([z, batch["x"]]), dim=1)
    labels = torch.cat([torch.arange(len(z))] * 2)
    labels = (labels[None] == labels[:, None]).to(z.dtype)
    similarity = features @ features.T
    mask = torch.eye(labels.shape[0], dtype=torch.bool)
    labels, similarity = labels.masked_fill(mask, 0), similarity.masked_fill(mask, -1e9) / 0.5
    return -(labels * similarity.log_softmax(1)).sum(1).mean()


def make_optimizers(draw):
    """By name: what makes one of groups of parameters."""
    def on():
        return bool(draw.randint(2))
    decay = float([0, 0, 0.05][draw.randint(3)])
    common = {"weight_decay": decay, **({"maximize": True} if draw.randint(6) == 0 else {}), **({"foreach": True} if draw.randint(6) == 0 else {})}
    o = torch.optim
    momentum = on()
    return {
        "SGD": lambda p: o.SGD(p, 0.05, **common),
        "SGD with momentum": lambda p: o.SGD(p, 0.05, momentum=0.9, nesterov=momentum, dampening=0 if momentum else 0.3, **common),
        "Adam": lambda p: o.Adam(p, 0.02, (0.8, 0.95), eps=1e-3, amsgrad=momentum, **common),
        "AdamW": lambda p: o.AdamW(p, 0.02, eps=1e-3, amsgrad=momentum, **common),
        "RMSprop": lambda p: o.RMSprop(p, 0.01, 0.9, eps=1e-3, centered=momentum, momentum=0.5 * (decay > 0), **common),
        "Adagrad": lambda p: o.Adagrad(p, 0.05, lr_decay=0.1, initial_accumulator_value=0.1, **common),
        "NAdam": lambda p: o.NAdam(p, 0.02, eps=1e-3, decoupled_weight_decay=momentum, **common),
        "RAdam": lambda p: o.RAdam(p, 0.02, (0.8, 0.9), eps=1e-3, decoupled_weight_decay=momentum, **common),
        "Adamax": lambda p: o.Adamax(p, 0.02, eps=1e-2, **common),
        "Adadelta": lambda p: o.Adadelta(p, 1.0, eps=1e-3, **common),
        "ASGD": lambda p: o.ASGD(p, 0.05, t0=2, **common),
        "Adafactor": lambda p: o.Adafactor(p, 0.05, eps=(1e-3, 1e-3), weight_decay=decay),
    }


L = torch.optim.lr_scheduler
SCHEDULES = {"steps": lambda o: L.StepLR(o, 2, 0.5), "cosine": lambda o: L.CosineAnnealingLR(o, 5), "one cycle": lambda o: L.OneCycleLR(o, 0.05, total_steps=12), "warm up": lambda o: L.SequentialLR(o, [L.LinearLR(o, 0.1, total_iters=2), L.ExponentialLR(o, 0.7)], [2]), "lambda": lambda o: L.LambdaLR(o, lambda step: 1 / (1 + step)), "cyclic": lambda o: L.CyclicLR(o, 0.01, 0.05, 2, cycle_momentum=False)}


class Program(nn.Module):
    """A module and its loss, a list of layers that are described by text."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.draw = draw = np.random.RandomState(seed)
        self.text = []
        self.kind = self.choose(["dense", "dense", "sequence", "image"])
        self.layers = nn.ModuleList()
        self.register_buffer("class_weights", torch.tensor([0.5, 1.0, 2.0]))
        self.temperature = nn.Parameter(torch.tensor(0.3))
        table = KINDS[self.kind]
        for _ in range(draw.randint(1, 5)):
            if draw.randint(4) == 0:
                name = self.choose(ACTIVATIONS)
                self.layers.append(wrap(ACTIVATIONS[name]()))
            else:
                name = self.choose(table)
                self.layers.append(table[name]())
            self.text.append(f"{self.kind}: {name}")
        self.tied = draw.randint(5) == 0
        self.head = nn.Linear(WIDTH, CLASSES)
        if self.tied:
            self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
            self.second.weight = self.first.weight
            self.text.append("tied weights")
        self.reduction = self.choose(LOSSES)
        self.others = self.choose(LOSSES) if draw.randint(5) == 0 else None
        self.name, self.make = (lambda all: (lambda name: (name, all[name]))(self.choose(all)))(make_optimizers(draw))
        self.schedule = self.choose(SCHEDULES) if draw.randint(4) == 0 else None
        if self.schedule == "one cycle" and self.name not in ("Adam", "AdamW", "SGD with momentum", "NAdam"):
            self.schedule = "cosine"
        self.max_norm = 0.5 if draw.randint(4) == 0 else None
        self.grouped = draw.randint(4) == 0
        self.run = RUNS[draw.randint(len(RUNS))]
        self.wide = draw.randint(4) != 0 and not self.run[3]  # Devices have convolutions of float32 alone.
        options = repr(self.make([nn.Parameter(torch.zeros(1))])).replace("\n", " ")
        if "accumulate" in self.run[0] and SUMMED & {self.reduction, self.others}:  # Of which the gradients are added up, and not averaged.
            self.run = RUNS[1]
        self.text += [f"loss: {self.reduction}, {self.others}", f"optimizer: {options}, schedule {self.schedule}, norm {self.max_norm}, groups {self.grouped}", f"float64: {self.wide}, run: {self.run}"]

    def choose(self, options):
        return list(options)[self.draw.randint(len(options))]

    def forward(self, batch):
        x = {"dense": batch["x"], "sequence": batch["steps"], "image": batch["image"]}[self.kind]
        for layer in self.layers:
            x = layer(x, batch)
        if self.kind == "sequence":
            x = x.mean(1)
        elif self.kind == "image":
            x = x.mean((2, 3))
        if self.tied:
            x = x + self.second(torch.tanh(self.first(x)))
        return self.head(x), x

    def make_optimizer(self):
        parameters = [p for p in self.parameters() if p.requires_grad]
        if not self.grouped:
            return self.make(parameters)
        return self.make([{"params": [p for p in parameters if p.ndim > 1]}, {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0, "lr": 0.01}])


def loss(module, batch):
    output, values = module(batch)
    value = LOSSES[module.reduction](module, output, values, batch)
    return value if module.others is None else value + 0.3 * LOSSES[module.others](module, output, values, batch)


def make_data(seed, dtype):
    torch.manual_seed(seed + 1)
    holes = torch.randint(0, CLASSES, (ROWS,))
    holes[torch.rand(ROWS) < 0.4] = -100
    holes[::BATCH] = 0
    chosen = torch.rand(ROWS) < 0.5
    chosen[::BATCH] = True
    return {
        "x": torch.randn(ROWS, WIDTH, dtype=dtype),
        "steps": torch.randn(ROWS, TIME, WIDTH, dtype=dtype),
        "image": torch.randn(ROWS, WIDTH, 6, 6, dtype=dtype),
        "y": torch.randint(0, CLASSES, (ROWS,)),
        "holes": holes,
        "chosen": chosen,
        "t": torch.randn(ROWS, CLASSES, dtype=dtype),
        "weights": torch.rand(ROWS, dtype=dtype),
        "words": torch.randint(0, WORDS, (ROWS, TIME)),
        "lengths": torch.randint(1, TIME + 1, (ROWS,)),
    }


def train_here(module, data, accumulated):
    """Losses, and the module is trained."""
    optimizer = module.make_optimizer()
    scheduler = SCHEDULES[module.schedule](optimizer) if module.schedule else None
    losses = []
    for number in range(STEPS):
        begin = number * BATCH % ROWS
        value = loss(module, {name: tensor[begin:begin + BATCH] for name, tensor in data.items()})
        (value / accumulated).backward()
        losses.append(value.item())
        if (number + 1) % accumulated == 0:
            if module.max_norm is not None:
                nn.utils.clip_grad_norm_(module.parameters(), module.max_norm)
            optimizer.step()
            optimizer.zero_grad()
            if scheduler is not None:
                scheduler.step()
    return losses


def check(seed, folder):
    """What is wrong, and the program as text."""
    module = Program(seed).train()
    for each in module.modules():  # The frozen one stays in evaluation.
        if isinstance(each, nn.BatchNorm1d) and "frozen batch norm" in " ".join(module.text) and each.eps == 1e-5:
            each.eval()
    dtype = torch.float64 if module.wide else torch.float32
    module.to(dtype)
    data = make_data(seed, dtype)
    theirs = copy.deepcopy(module)
    strategy, replicas, processes, flags = module.run
    accumulated = 2 if "accumulate_steps" in strategy else 1
    try:
        losses = train_here(theirs, data, accumulated)
    except RuntimeError:  # Nothing in it has a gradient.
        return "", module
    if not np.isfinite(losses).all() or np.abs(losses).max() > 1e3:
        return "", module
    optimizer = module.make_optimizer()
    scheduled = {"schedule": SCHEDULES[module.schedule](optimizer), "schedule_steps": STEPS} if module.schedule else {}
    try:
        exported = distc.torch.export(module, loss, optimizer, {name: tensor[:BATCH] for name, tensor in data.items()}, folder / "step.mlir", max_norm=module.max_norm, **scheduled)
    except (NotImplementedError, ValueError, distc.torch.UnknownOperations) as error:
        return f"refused: {error}", module
    try:
        result = distc.compile(exported, strategy=strategy, replicas=replicas, batch=BATCH, processes=processes, flags=flags).train({name: tensor.numpy() for name, tensor in data.items()}, STEPS)
    except (distc.CompileError, distc.RunError) as error:
        # Of values that are made of the whole batch nobody knows how they add up over several.
        return "" if accumulated > 1 and "accumulate_steps=1" in str(error) else f"distc: {error}", module
    near = 1e-6 if module.wide else 2e-3
    if not np.allclose(result.losses, losses, rtol=near, atol=near):
        return f"losses {result.losses}, not {losses}", module
    distc.torch.load_state(module, result.state)
    for name, expected in theirs.state_dict().items():
        value = module.state_dict()[name]
        # Of a normalization that makes nothing of it, this counts updates, as all does that nothing of a batch is made with.
        if accumulated > 1 and name.endswith("num_batches_tracked") and module.get_submodule(name.rpartition(".")[0]).momentum is not None:
            continue
        if not torch.allclose(value, expected, rtol=near, atol=near):
            return f"'{name}' is {value}, not {expected}", module
    return "", module


if __name__ == "__main__":
    torch.set_num_threads(1)
    check_programs(check, Program, count=4)
