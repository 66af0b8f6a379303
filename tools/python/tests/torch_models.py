"""Small modules of PyTorch, with their losses and data."""
import numpy as np
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn

RANDOM = np.random.RandomState(0)


def floats(*shape):
    return torch.from_numpy(RANDOM.randn(*shape).astype("f"))


def integers(limit, *shape):
    return torch.from_numpy(RANDOM.randint(0, limit, shape))


def classify(module, batch):
    return F.cross_entropy(module(batch["x"]), batch["y"])


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.second, self.out = nn.Conv2d(4, 8, 3, stride=2), nn.Linear(8, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)
        return self.out(F.adaptive_avg_pool2d(F.relu(self.second(x)), 1).flatten(1))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


class ResNet(nn.Module):
    """ResNet-18 with fewer channels."""

    def __init__(self, width=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        self.layers = nn.Sequential(*(nn.Sequential(Block(i, o, 1 if n == 0 else 2), Block(o, o, 1))
                                      for n, (i, o) in enumerate(zip(sizes, sizes[1:]))))
        self.out = nn.Linear(sizes[-1], 4)

    def forward(self, x):
        return self.out(self.layers(self.stem(x)).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        # Without biases, of which those of keys have no gradient but rounding.
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, width = x.shape
        q, k, v = (part.view(b, t, self.heads, width // self.heads).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(width, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, words=11, length=6, width=8, heads=2, layers=2):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.out.weight = self.words.weight

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x))


def predict_next(module, batch):
    return F.cross_entropy(module(batch["tokens"][:, :-1]).flatten(0, 1), batch["tokens"][:, 1:].flatten())


class Decoder(nn.Module):
    """What transformers' models are written with: positions and kinds of tokens from buffers, tokens that are shifted in place, masks, groups of queries."""

    def __init__(self, words=11, length=6, width=8):
        super().__init__()
        self.words, self.kinds, self.out = nn.Embedding(words, width), nn.Embedding(2, width), nn.Linear(width, words)
        self.q, self.kv = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.register_buffer("places", torch.arange(length).expand((1, -1)))
        self.register_buffer("parts", torch.tensor([[0, 0, 1, 1, 0, 1]]))

    def forward(self, tokens, lengths):
        b, t = tokens.shape
        shifted = tokens.new_zeros(tokens.shape)
        shifted[:, 1:] = tokens[:, :-1].clone()
        kinds = torch.gather(self.parts.expand(b, -1), 1, self.places).expand(b, t)
        x = self.words(shifted) + self.kinds(kinds)
        # Who is behind the end may be looked at by nobody, and nobody by who has no tokens.
        mask = (self.places < lengths[:, None])[:, None, None, :].expand(b, 1, t, t) & torch.ones(t, t, dtype=torch.bool).tril()
        heads = lambda y: y.view(b, t, -1, 2).transpose(1, 2)
        k, v = self.kv(x).chunk(2, -1)
        mixed = F.scaled_dot_product_attention(heads(self.q(x)), heads(k), heads(v), attn_mask=mask, enable_gqa=True)
        return self.out(x + mixed.transpose(1, 2).reshape(b, t, -1))


def decode(module, batch):
    logits = module(batch["tokens"], batch["lengths"])
    # The logits where each sequence ends count twice.
    last = logits[torch.arange(logits.shape[0]), (batch["lengths"] - 1).clamp(min=0)]
    ends = F.cross_entropy(last, batch["tokens"][:, 0])
    return F.cross_entropy(logits.flatten(0, 1), batch["tokens"].flatten()) + ends


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items, self.tags = nn.Embedding(20, 4), nn.Embedding(30, 4), nn.EmbeddingBag(10, 4, mode="mean")
        self.out = nn.Sequential(nn.Linear(12, 8), nn.SiLU(), nn.Linear(8, 1))

    def forward(self, batch):
        rows = [self.users(batch["user"]), self.items(batch["item"]), self.tags(batch["tags"])]
        return self.out(torch.cat(rows, 1)).squeeze(1)


def click(module, batch):
    return F.binary_cross_entropy_with_logits(module(batch), batch["y"])


class WithSpares(nn.Module):
    """Layers, and parameters that losses use each in its own way: one that starts where functions have kinks, and one that is far from any."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)
        self.kinks, self.spare = nn.Parameter(torch.tensor([-1.0, 0.0, 1.0, 0.0])), nn.Parameter(torch.ones(4))
        self.register_buffer("average", torch.zeros(16, 8))

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


def _with_kinks(value):
    return lambda module, batch: F.cross_entropy(module(batch["x"]) + value(module.kinks, module.spare), batch["y"])


def _without_gradient(module, batch):
    with torch.no_grad():
        target = torch.sin(module(batch["x"]))
    return F.mse_loss(module(batch["x"]), target)


def _quantized(module, batch):
    hidden = torch.tanh(module.first(batch["x"]))
    hidden = hidden + (torch.round(4 * hidden) / 4 - hidden).detach()
    return F.cross_entropy(module.second(hidden), batch["y"])


def _averaged(module, batch):
    with torch.no_grad():
        module.average.mul_(0.9).add_(module.first.weight, alpha=0.1)
    return classify(module, batch) + F.mse_loss(module.second(F.linear(batch["x"], module.average)), module(batch["x"]))


def _checkpointed(reentrant):
    def loss(module, batch):
        hidden = torch.utils.checkpoint.checkpoint(lambda x: torch.tanh(module.first(x)), batch["x"].requires_grad_(True), use_reentrant=reentrant)
        return F.cross_entropy(module.second(hidden), batch["y"])
    return loss


def _of_zeros(function):
    """Of rows of which the half are zeros."""
    def loss(module, batch):
        rows = torch.relu(module(batch["x"])) * (batch["x"][:, :1] > 0)
        return function(rows).square().mean() + classify(module, batch)
    return loss


# Losses of a WithSpares whose gradients are PyTorch's own ways.
GRADIENTS = {
    "unused": classify,
    "detached": _with_kinks(lambda k, s: s.detach()),
    "zero gradient": _with_kinks(lambda k, s: 0 * s),
    "no_grad": _without_gradient,
    "straight through": _quantized,
    "averaged weights": _averaged,
    "checkpoint": _checkpointed(False),
    "reentrant checkpoint": _checkpointed(True),
    "clamp": _with_kinks(lambda k, s: k.clamp(-1, 1) + k.clamp(min=0) - k.clamp(max=0) + torch.clamp(k, 0 * s, s)),
    "hard functions": _with_kinks(lambda k, s: F.hardtanh(k) + F.relu6(6 * k) + F.hardswish(3 * k) + F.hardsigmoid(3 * k)),
    "abs": _with_kinks(lambda k, s: k.abs() + F.softsign(k) + torch.maximum(k, 0 * s)),
    "xlogy": _with_kinks(lambda k, s: torch.xlogy(k, s + 1)),
    "largest of equals": _with_kinks(lambda k, s: s.max(0).values * k + s.amax() + (0 * s).min(0, keepdim=True).values * s),
    "norms at zero": _with_kinks(lambda k, s: (0 * s).norm() * k + (0 * s).norm(1) + (0 * s).norm(3) + F.normalize(0 * s, dim=0)),
    "norms of rows": _of_zeros(lambda x: x.norm(dim=1)),
    "normalized rows": _of_zeros(lambda x: F.normalize(x, dim=1)),
    "deviations of rows": _of_zeros(lambda x: x.std(1)),
    "cosines": lambda module, batch: -F.cosine_similarity(module(batch["x"]), module(batch["x"] + 0.1).detach()).mean(),
    "cosine embedding": lambda module, batch: F.cosine_embedding_loss(module(batch["x"]), batch["x"][:, :4], batch["y"] % 2 * 2 - 1),
    "spread": _of_zeros(lambda x: torch.var_mean(x, 1)[0] + torch.cumprod(torch.sigmoid(x), 1).sum(1)),
}

LABELS = integers(4, 24)
# Of each: the module, the loss, the data.
MODELS = {
    "mlp": (mlp, classify, {"x": floats(24, 8), "y": LABELS}),
    "convolutional": (Convolutional, classify, {"x": floats(24, 1, 8, 8), "y": LABELS}),
    "resnet": (ResNet, classify, {"x": floats(24, 3, 32, 32), "y": LABELS}),
    "gpt": (Gpt, predict_next, {"tokens": integers(11, 24, 7)}),
    "decoder": (Decoder, decode, {"tokens": integers(11, 24, 6), "lengths": integers(7, 24)}),
    "recommender": (Recommender, click, {"user": integers(20, 24), "item": integers(30, 24), "tags": integers(10, 24, 3),
                                         "y": torch.from_numpy(RANDOM.rand(24).astype("f"))}),
}


def train_here(module, loss, optimizer, data, batch, steps, scheduler=None, max_norm=None):
    """What PyTorch computes itself: losses; the module has the last state."""
    losses, count = [], len(next(iter(data.values())))
    for number in range(steps):
        begin = number * batch % count
        value = loss(module, {name: tensor[begin:begin + batch] for name, tensor in data.items()})
        optimizer.zero_grad()
        value.backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(module.parameters(), max_norm)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        losses.append(value.item())
    return np.array(losses)
