"""Operations of PyTorch one by one: each case gives a tensor of each example, whose weighted sum is the loss, and has parameters of its own
that scale its input, so that a wrong gradient names the case."""
import copy

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jax")

import numpy as np
from torch import nn
from torch.nn import functional as F

import distc
import distc.torch

BATCH, STEPS = 8, 2
RANDOM = np.random.RandomState(0)
X = RANDOM.randn(2 * BATCH, 4, 6, 6)
Y = RANDOM.randint(0, 4, 2 * BATCH)


def row(x, number=0):
    return x[:, number, number]


def volume(x):
    return x.reshape(x.shape[0], 2, 2, 6, 6)


def with_modes(z):
    modes = torch.zeros(*z.shape[:2], 5, dtype=z.dtype)
    modes[:, :, 1:4] = z
    return modes


def of(function):
    """A case without a module."""
    return lambda: None, lambda m, x, y: function(x, y)


def module(make, pre=lambda x: x):
    return make, lambda m, x, y: m(pre(x))


def resized(**options):
    return of(lambda x, y: F.interpolate(x, **options))


MATRIX = torch.eye(6, dtype=torch.double)
CASES = {
    "nearest": resized(scale_factor=2),
    "nearest by a factor": resized(scale_factor=1.7),
    "nearest by factors": resized(scale_factor=(0.6, 1.3)),
    "nearest to a size": resized(size=(4, 9)),
    "bilinear by a factor": resized(scale_factor=1.7, mode="bilinear"),
    "bilinear to a size": resized(size=(4, 9), mode="bilinear"),
    "bilinear corners": resized(size=(9, 4), mode="bilinear", align_corners=True),
    "bilinear antialiased": resized(size=(3, 4), mode="bilinear", antialias=True),
    "bicubic": resized(scale_factor=1.7, mode="bicubic"),
    "grid sample": of(lambda x, y: F.grid_sample(x, torch.tanh(x[:, :2].permute(0, 2, 3, 1)), align_corners=False)),
    "dilated max pool": module(lambda: nn.MaxPool2d(3, 2, 1, 2, ceil_mode=True)),
    "adaptive max pool": module(lambda: nn.AdaptiveMaxPool2d((4, 2))),
    "adaptive max pool of volumes": module(lambda: nn.AdaptiveMaxPool3d((1, 4, 2)), volume),
    "places of a max pool": of(lambda x, y: F.max_pool2d(x, 2, return_indices=True)[1] * x[:, :, :3, :3]),
    "convolution of volumes": module(lambda: nn.Conv3d(2, 4, (1, 3, 3), (1, 2, 2), (0, 1, 1), groups=2), volume),
    "transposed convolution of volumes": module(lambda: nn.ConvTranspose3d(2, 4, 3, (1, 2, 2), 1, (0, 1, 1), 2), volume),
    "bilinear product": (lambda: nn.Bilinear(6, 6, 3), lambda m, x, y: m(row(x), row(x, 1))),
    "rrelu in evaluation": module(lambda: nn.RReLU().eval(), row),
    "embedding scaled by frequency": (lambda: nn.Embedding(4, 3, scale_grad_by_freq=True), lambda m, x, y: m(y)),
    "embedding bag with padding": (lambda: nn.EmbeddingBag(4, 3, mode="mean", padding_idx=2), lambda m, x, y: m(torch.stack([y, (y + 1) % 4], 1))),
    "embedding bag of one index": (lambda: nn.EmbeddingBag(4, 3), lambda m, x, y: m(y[:, None])),
    "embedding bags with offsets": (lambda: nn.EmbeddingBag(4, 3, mode="mean", padding_idx=2), lambda m, x, y: m(y, torch.arange(x.shape[0]) // 3 * 3)),
    "largest of embedding bags": (lambda: nn.EmbeddingBag.from_pretrained(torch.tensor([[0.0, 1], [0, 2], [1, 2], [-1, 1]]), freeze=False, mode="max"),
                                  lambda m, x, y: torch.cat([m(torch.stack([y, (y + 1) % 4], 1)), m(y, torch.arange(x.shape[0]) // 2 * 2)], 1)),
    "unpooled": of(lambda x, y: F.max_unpool2d(*(lambda z, at: (z.sin(), at))(*F.max_pool2d(x, 2, return_indices=True)), 2)),
    "unpooled by windows with padding": of(lambda x, y: F.max_unpool2d(*F.max_pool2d(x[:, :, :5], (2, 3), (3, 3), (1, 0), return_indices=True), (2, 3), (3, 3), (1, 0), output_size=(5, 6))),
    "unpooled rows": of(lambda x, y: F.max_unpool1d(*F.max_pool1d(x[:, 0], 2, return_indices=True), 2)),
    "unpooled volumes": of(lambda x, y: F.max_unpool3d(*F.max_pool3d(volume(x), 2, return_indices=True), 2)),
    "rows repeated": of(lambda x, y: torch.repeat_interleave(row(x), (torch.arange(x.shape[0]) % 2) * 2, 0, output_size=x.shape[0]) * row(x, 1)),
    "columns repeated": of(lambda x, y: row(x).repeat_interleave(torch.tensor([2, 0, 1, 1, 0, 3]), 1, output_size=7)),
    "distances": of(lambda x, y: torch.cdist(x[:, :, 0], x[:, :, 1])),
    "distances of order 1": of(lambda x, y: torch.cdist(x[:, :, 0], x[:, :, 1], p=1)),
    "cumulative": of(lambda x, y: row(x).logcumsumexp(1) + row(x).cummax(1)[0] * row(x).round().cummin(1)[1] + row(x).detach().logcumsumexp(1)),
    "counts of classes": of(lambda x, y: row(x) * torch.bincount(y, minlength=4)[y, None] + row(x, 1) * y.bincount(row(x)[:, 0].detach(), 4)[y][:, None]),
    "gaussian likelihood": of(lambda x, y: F.gaussian_nll_loss(row(x), row(x, 1), row(x, 2).square() - 1e-9, full=True, eps=0.1, reduction="none")),
    "gaussian likelihood of one variance a row": of(lambda x, y: F.gaussian_nll_loss(row(x), row(x, 1), row(x, 2).square().mean(1)) * row(x)),
    "batch norm by the mean of all batches": module(lambda: nn.BatchNorm2d(4, momentum=None)),
    "medians": of(lambda x, y: row(x).median(1)[0] + row(x).nanmedian(1)[0] + row(x).kthvalue(2, 1)[0]),
    "medians beside NaN": of(lambda x, y: torch.where(row(x) > 0.5, torch.nan, row(x)).nanmedian(1)[0].nan_to_num(3.0)),
    "medians of all": of(lambda x, y: row(x) * x.median() + row(x) * x.round().median() * torch.where(x > 0.5, torch.nan, x).nanmedian()),
    "of numbers alone": of(lambda x, y: (lambda a, b: torch.fmax(a, b) * torch.fmin(a, row(x, 2)) + torch.fmax(b, a) + torch.fmin(a, a.clone()))(row(x), torch.where(row(x, 1) > 0.5, torch.nan, row(x, 1)))),
    "norms of several": of(lambda x, y: row(x) * torch.stack(torch._foreach_norm([x[:, 0], x[:, 1]])).sum() / 9 + row(x) * torch._foreach_norm([x], 1)[0] / 99),
    "a distance": of(lambda x, y: row(x) * torch.dist(row(x), row(x, 1)) / 9 + row(x) * torch.dist(row(x), row(x, 1), 1) / 99),
    "places in rows": of(lambda x, y: row(x) * torch.searchsorted(x[:, 0, :2].detach().sort(-1)[0], x[:, 1, :2].detach().contiguous(), right=True)[:, 1]),
    "products": of(lambda x, y: (row(x) * (row(x) > -1)).prod(1)),
    "stable sort": of(lambda x, y: row(x).sort(stable=True)[0] + torch.argsort(row(x), dim=1, stable=True)),
    "scatter": of(lambda x, y: row(x).scatter(1, y[:, None], row(x, 1)[:, :1])),
    "scatter of few": of(lambda x, y: x[:, 0].scatter(1, torch.zeros(x.shape[0], 1, 2, dtype=torch.long) + 1, 3.5)),
    "scatter amax": of(lambda x, y: row(x).scatter_reduce(1, (y[:, None] + torch.arange(6)) % 3, row(x, 1), "amax")),
    "scatter prod": of(lambda x, y: row(x).scatter_reduce(1, (y[:, None] + torch.arange(6)) % 3, row(x, 1), "prod")),
    "scatter mean": of(lambda x, y: row(x).scatter_reduce(1, (y[:, None] + torch.arange(6)) % 3, row(x, 1), "mean")),
    "scatter sum of others": of(lambda x, y: row(x).scatter_reduce(1, (y[:, None] + torch.arange(6)) % 3, row(x, 1), "sum", include_self=False)),
    "windows": of(lambda x, y: row(x).unfold(1, 3, 2)),
    "buckets": of(lambda x, y: torch.bucketize(row(x).detach(), torch.tensor([-1.0, 0, 1]).double()) * row(x)),
    "bits": of(lambda x, y: ((y << 2) ^ 5 | 1)[:, None] * row(x) + (y >> 1)[:, None] * row(x, 1)),
    "functions": of(lambda x, y: torch.hypot(row(x), row(x, 1)) + torch.copysign(row(x), row(x, 1)) + row(x).exp2() + torch.ldexp(row(x), y[:, None])),
    "special functions": of(lambda x, y: torch.special.i0(row(x)) + torch.special.i1(row(x)) + torch.special.polygamma(1, row(x) ** 2 + 1)),
    "examples moved": of(lambda x, y: torch.zeros_like(row(x)).index_copy(0, row(x, 1)[:, 0].argsort(), row(x).cumsum(0)) + row(x, 2).index_fill(0, torch.tensor([0, -1]), 0.5)),
    "every other example set": of(lambda x, y: (lambda z: (z.__setitem__(slice(None, None, 2), row(x, 1)[1::2]), z)[1])(row(x).clone())),
    "normal distribution": of(lambda x, y: torch.special.log_ndtr(4 * row(x)) + torch.special.ndtri(torch.sigmoid(row(x, 1))) + torch.special.ndtr(row(x, 2))),
    "sums of products": of(lambda x, y: row(x) * torch.addbmm(MATRIX, x[:, 0], x[:, 1], beta=0.5, alpha=0.1)[0]),
    "inverse": of(lambda x, y: torch.linalg.inv(x[:, 0] + 9 * MATRIX)),
    "solution": of(lambda x, y: torch.linalg.solve(x[:, 0] + 9 * MATRIX, x[:, 1])),
    "logarithm of a determinant": of(lambda x, y: torch.slogdet(x[:, 0] + 9 * MATRIX)[1]),
    "cholesky": of(lambda x, y: torch.linalg.cholesky(x[:, 0] @ x[:, 0].mT + MATRIX)),
    "solution by a triangle": of(lambda x, y: torch.linalg.solve_triangular(x[:, 0].tril() + 9 * MATRIX, x[:, 1], upper=False)),
    "factors of rectangles": of(lambda x, y: (lambda q, r: q @ r.sin())(*torch.linalg.qr(x[:, 0, :, :4])) + (lambda q, r: (q @ r.sin())[..., :4])(*torch.linalg.qr(x[:, 1]))),
    "eigenvalues": of(lambda x, y: (lambda e, v: (v * e.sin()[:, None]) @ v.mT)(*torch.linalg.eigh(x[:, 0] + 3 * MATRIX * torch.arange(6.0).double())) + torch.linalg.eigvalsh(x[:, 1] + 3 * MATRIX * torch.arange(6.0).double())[:, :, None]),
    "singular values": of(lambda x, y: (lambda u, s, v: (u[..., :4] * s.sin()[:, None]) @ v)(*torch.linalg.svd(x[:, 0, :, :4])) + torch.linalg.svdvals(x[:, 1, :4])[:, None]),
    "what follows from singular values": of(lambda x, y: torch.linalg.pinv(x[:, 0, :, :2] + 2 * MATRIX[:, :2]) * torch.linalg.matrix_norm(x[:, 1], "nuc")[:, None, None] * torch.linalg.matrix_norm(x[:, 2], 2)[:, None, None] / 9),
    "factors of all examples": of(lambda x, y: row(x) * torch.linalg.matrix_norm(row(x, 1), "nuc") / 99 + (lambda q, r: q @ r.sin())(*torch.linalg.qr(row(x, 2)))),
    "least squares": of(lambda x, y: torch.linalg.lstsq(x[:, 0, :, :2] + 2 * MATRIX[:, :2], x[:, 1])[0] * torch.linalg.lstsq(x[:, 0] + 9 * MATRIX, x[:, 2, 0]).solution[:, :1, None]
                        + torch.linalg.norm(x[:, 3, :3], 2, (1, 2), keepdim=True)),
    "factors of solutions": of(lambda x, y: torch.linalg.lu_solve(*torch.linalg.lu_factor(x[:, 0] + 9 * MATRIX), x[:, 1]) + torch.cholesky_solve(x[:, 2], torch.linalg.cholesky(x[:, 0] @ x[:, 0].mT + MATRIX))),
    "reflections": of(lambda x, y: torch.linalg.householder_product(x[:, 0, :, :3], x[:, 1, 0, :3])),
    "one example": of(lambda x, y: x[0, 0] * x[:, 1] + x[-1, 2]),
    "one example by its place": of(lambda x, y: x[x[:, 0, 0, 0].argmax(), 0] * x[:, 1] + x[-1 - y[1], 2] + x[:, y[0], y[2]][:, None].sin()),
    "even spaces": of(lambda x, y: row(x) * torch.linspace(0, 1, x.shape[0])[:, None] + row(x, 1) * torch.linspace(x.shape[0] - 1.0, 2 * x.shape[0], 2 * x.shape[0])[x.shape[0]:, None] / 9),
    "parts of sizes": of(lambda x, y: (lambda a, b: torch.cat([row(b), row(a, 1)]) * row(x, 2))(*x.split([2, x.shape[0] - 2])) + torch.cat([x[:1, 3, 0], x[1:-1, 3, 1].sin(), x[-1:, 3, 2]])),
    "transforms": of(lambda x, y: torch.fft.rfft(row(x), norm="ortho").abs() + torch.fft.fft2(x[:, :, 0, :4], norm="forward").angle().cos()[:, 1]),
    "transforms of halves": of(lambda x, y: torch.fft.irfft2(torch.fft.rfft2(x[:, 0]) * torch.polar(torch.ones(4).double(), torch.arange(4).double())).flatten(1) + torch.fft.hfft(row(x), n=36)),
    "windows that are transformed": of(lambda x, y: torch.stft(x.flatten(1), 16, 8, window=torch.hann_window(16).double(), return_complex=True).abs().add(0.1).log()),
    "modes that are set": of(lambda x, y: torch.fft.irfft(with_modes(torch.view_as_complex(torch.view_as_real(torch.fft.rfft(x[:, 0])[..., :3]) * 0.5) * 1j), n=9)),
    "an exponential of a matrix": of(lambda x, y: torch.linalg.matrix_exp(x[:, 0] / 9)),
    "cumulative over the examples": of(lambda x, y: row(x).logcumsumexp(0) + row(x).cumsum(0) / x.shape[0]),
    "extremes so far over the examples": of(lambda x, y: row(x).cummax(0)[0] * row(x, 1).cummin(0)[0]),
    "distances between examples": of(lambda x, y: torch.cdist(row(x), row(x, 1)).mean(1, keepdim=True)),
    "pairs of places": of(lambda x, y: row(x)[:, torch.tril_indices(6, 6, -1)[0]] * row(x, 1)[:, torch.triu_indices(6, 6, 1)[1]]),
    "halves": of(lambda x, y: (lambda a, b: a[:, 0] * b[:, 1] + a[:, 2].roll(1, 0) * b[:, 3].flip(0))(*torch.cat([x, x.cos()]).chunk(2))),
    "parts of the examples": of(lambda x, y: (lambda a, b: a[:, 0] * b[:, 1])(*torch.cat([x, x.sin()]).split(x.shape[0]))),
    "a diagonal of both": of(lambda x, y: (lambda z: (torch.diag(z, x.shape[0]) * torch.diag(z, -x.shape[0]))[:, None])(torch.cat([row(x), row(x, 1)]) @ torch.cat([row(x, 2), row(x, 3)]).T)),
    "hashes of integers": of(lambda x, y: row(x) * ((y * 2654435761 + y ** 20 + (y << 40)) % 7)[:, None] + row(x, 1) * (((y + 1) * 65599 * 65599 * 65599 >> 7) % 5)[:, None]),
    "statistics of groups": of(lambda x, y: torch.cat(torch.native_group_norm(x, None, None, x.shape[0], 4, 36, 2, 1e-5)[1:], 1)),
    "statistics of rows": of(lambda x, y: row(x) * torch.native_layer_norm(row(x), [6], None, None, 1e-5)[1]),
    "scans of one number": of(lambda x, y: row(x) * (x.sum() / 999).cumsum(0) * (x.mean()).cummax(0)[0] + (x.mean()).topk(1)[0]),
    "a causal mask": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8, 0.0, batch_first=True), 1),
                      lambda m, x, y: m(x[:, 0], mask=nn.Transformer.generate_square_subsequent_mask(6, dtype=x.dtype))),
    "covariances": of(lambda x, y: row(x) @ torch.cov(row(x, 1).T) + row(x).T.cov(correction=0)[0] + torch.corrcoef(row(x, 2).T)[1] + torch.cov(row(x, 3)[:, 0])),
    "taken along": of(lambda x, y: torch.take_along_dim(row(x), row(x, 1).argsort(1), 1) + row(x).take_along_dim(y[:, None] % 6, -1)),
    "sums of chosen rows": of(lambda x, y: row(x) * (row(x, 1)[y > 1].square().mean() + row(x)[y > 0].sum(0) + x[y != 1].mean((0, 2)).sum())),
    "a loss of chosen rows": of(lambda x, y: row(x) * F.cross_entropy(row(x, 1)[y > 1], y[y > 1] % 6, label_smoothing=0.1)),
    "logarithms of chosen elements": of(lambda x, y: row(x) * (lambda z: z[z > 0].log().mean() + z.masked_select(z < 0.5).sum() + z[z > 0].norm() + z[z > 0].amin())(row(x, 1))),
    "chosen elements of examples": of(lambda x, y: (lambda z, k: row(x) * (z[k].softmax(-1)[:, :3].T @ z[k]).sum() / z[k].shape[0])(x[:, 0], x[:, 1, :, 0] > 0)),
    "chosen rows put back": of(lambda x, y: row(x).index_put((y > 1,), torch.tanh(row(x, 1)[y > 1] @ torch.ones(6, 6).double())).index_put((row(x, 2) > 0,), row(x)[row(x, 2) > 0].exp(), accumulate=True)),
    "chosen columns": of(lambda x, y: row(x) * row(x, 1)[:, torch.tensor([True, False, True, True, False, False])].square().sum(1, keepdim=True)),
    "rows by number": of(lambda x, y: (lambda i: row(x).index_add(0, i, row(x, 1)[i].sin()) * row(x, 1).index_select(0, i).square().mean())(torch.where(y > 1)[0])),
    "experts": of(lambda x, y: (lambda chosen, z: sum(z.index_add(0, token, x[None, token].reshape(-1, *x.shape[1:])[:, 1, number] * z[token, slot, None])
                                                      for number in range(3) for slot, token in [torch.where(chosen[number])]))(F.one_hot(torch.stack([y, (y + 1) % 4], 1), 4).permute(2, 1, 0), row(x))),
    "the last of several rows": of(lambda x, y: (lambda i, j, z: (z.index_put((i,), row(x)[i] * (j[:, None] + 1)) + z.index_put((i, j), z[i, j].exp()))[:, :6])
                                   (*torch.nonzero(torch.stack([y, (y + 1) % 3, y % 2] * 2, 1) == 1).unbind(1), row(x, 1))),
    "ctc": of(lambda x, y: row(x) * (F.ctc_loss(x[:, 0].log_softmax(-1).transpose(0, 1), (y[:, None] + torch.tensor([0, 2, 2, 1])) % 5 + 1, 6 - y % 2, y % 5)
                                     + F.ctc_loss(x[:, 1].transpose(0, 1) * 0.3 - 2, (y[:, None] + torch.tensor([0, 1, 1, 1])) % 5, torch.full((x.shape[0],), 6), y + 1, blank=5,
                                                  reduction="none", zero_infinity=True)[:, None])),
    "a distribution": of(lambda x, y: torch.distributions.Normal(row(x), row(x, 1) ** 2 + 0.1).log_prob(row(x, 2))),
}


class Cases(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.parts = nn.ModuleList((make() or nn.Identity()).double() for make, _ in CASES.values())
        self.scales = nn.ParameterList(nn.Parameter(torch.from_numpy(np.random.RandomState(1).normal(1, 0.3, X.shape[1:]))) for _ in CASES)

    def forward(self, batch):
        total = 0.0
        for (_, function), part, scale in zip(CASES.values(), self.parts, self.scales):
            x = batch["x"] * scale
            value = function(part, x, batch["y"]).double()
            weights = torch.cos(torch.arange(1.0, 1.0 + int(np.prod(value.shape[1:])), dtype=torch.double)).reshape(value.shape[1:])
            total = total + (value * weights).sum() / x.shape[0]
        return total


@pytest.mark.parametrize("replicas", [2])
def test_gradients_are_pytorchs(tmp_path, replicas):
    cases, data = Cases(), {"x": torch.from_numpy(X), "y": torch.from_numpy(Y)}
    theirs = copy.deepcopy(cases)
    step = distc.torch.export(cases, lambda m, b: m(b), torch.optim.SGD(cases.parameters(), 0.01), {name: each[:BATCH] for name, each in data.items()},
                              tmp_path / "step.mlir")
    optimizer = torch.optim.SGD(theirs.parameters(), 0.01)
    for number in range(STEPS):
        optimizer.zero_grad()
        theirs({name: each[number * BATCH:(number + 1) * BATCH] for name, each in data.items()}).backward()
        optimizer.step()
    result = distc.compile(step, replicas=replicas, batch=BATCH).train({"x": X, "y": Y}, STEPS)
    distc.torch.load_state(cases, result.state)
    wrong = []
    for number, name in enumerate(CASES):
        for ours, expected in [(cases.scales[number], theirs.scales[number]), *zip(cases.parts[number].parameters(), theirs.parts[number].parameters())]:
            if not torch.allclose(ours, expected, rtol=1e-6, atol=1e-6):
                wrong.append(f"{name}: {float((ours - expected).abs().max())}")
    assert not wrong


@pytest.mark.parametrize("loss,way", [
    (lambda m, b: m(b["x"])[b["y"] > 0].sort(0)[0][0].sum(), "weigh"),
    (lambda m, b: (lambda z: (z @ z.T).mean())(m(b["x"])[b["y"] > 0]), "weigh"),
    (lambda m, b: F.embedding(b["y"][b["y"] > 0], m.weight, scale_grad_by_freq=True).mean(), "weigh"),
    (lambda m, b: (lambda z: z.square().mean() + z.cumsum(0).mean())(m(b["x"])[b["y"] > 0]), "weigh"),
    (lambda m, b: torch.zeros(4, 6).index_put((b["x"][:, 0] > 0,), m(b["x"])[b["y"] > 0]).mean(), "mask"),
    (lambda m, b: m(b["x"]).mean() * m(b["x"]).sum().item(), "detach"),
    (lambda m, b: F.ctc_loss(m(b["x"])[None].log_softmax(2), b["y"] + 1, b["y"] * 0 + 1, b["y"] * 0 + 1), "examples, labels"),
    (lambda m, b: F.max_unpool2d(*F.max_pool2d(m(b["x"])[:, None, :2, None].expand(-1, 1, 2, 2), 2, 1, return_indices=True), 2, 1).mean(), "overlap"),
    (lambda m, b: F.max_unpool2d(m(b["x"])[:, None, None], torch.zeros_like(b["x"][:, None, None], dtype=torch.long), 1).mean(), "return_indices"),
    (lambda m, b: m(b["x"])[torch.where(b["y"] > 0)[0] + 1 - 1].cumsum(0).mean(), "weigh"),
    (lambda m, b: torch.zeros(9, 6).index_put((b["y"][torch.where(b["y"] > 0)[0]],), m(b["x"])[b["y"] > 0]).mean(), "mask"),
    (lambda m, b: torch.pdist(m(b["x"])).mean(), "cdist"),
    (lambda m, b: (lambda z: (z @ z.T)[~torch.eye(z.shape[0]).bool()].mean())(m(b["x"])), "weigh all pairs"),
    (lambda m, b: m(b["x"]).mean() * (1 / torch.unique(b["y"], return_counts=True)[1]).sum(), "one_hot"),
    (lambda m, b: torch.linalg.eigvals(m.weight).real.mean() * m(b["x"]).mean(), "eigh"),
])
def test_refusals_name_a_way_out(tmp_path, loss, way):
    linear = nn.Linear(6, 6)
    batch = {"x": torch.randn(4, 6), "y": torch.arange(4)}
    with pytest.raises(NotImplementedError, match=way):
        distc.torch.export(linear, loss, torch.optim.SGD(linear.parameters(), 0.1), batch, tmp_path / "step.mlir")
