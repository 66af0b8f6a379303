"""Operations one by one: each case gives an array, of which the step fetches a weighted sum."""
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
import numpy as np
from jax import lax

import distc

RANDOM = np.random.RandomState(1)
W = jnp.asarray(RANDOM.randn(6, 5), jnp.float32)
I = jnp.asarray(RANDOM.randint(-9, 9, (6, 5)), jnp.int32)
U = jnp.asarray(RANDOM.randint(0, 2**32, (6, 5), dtype=np.uint32))
X = RANDOM.randn(8, 6, 5).astype("f")
LABELS = RANDOM.randint(0, 5, (8, 6)).astype("i")

# Of w [6, 5] floats, i and u alike of integers: what no example is in.
WHOLE = {
    "sort of signs": lambda w, i, u: jnp.sign(w) * jnp.cbrt(w),
    "rounding": lambda w, i, u: jnp.round(w * 3) + lax.round(w * 2, lax.RoundingMethod.AWAY_FROM_ZERO) + jnp.floor(w),
    "sorted": lambda w, i, u: jnp.sort(w, 0) + 2 * jnp.sort(-w, 1) + jnp.sort(i, 1) + (jnp.sort(u, 0) > u),
    "sorted places": lambda w, i, u: jnp.argsort(w, 1) + jnp.argsort(i, 0, descending=True) + jnp.argsort(u, 1) + jnp.lexsort((w[:, 0], i[:, 1]))[:5],
    "sorted with NaN and zeros": lambda w, i, u: jnp.argsort(jnp.where(w > 1, jnp.nan, jnp.round(w) * jnp.where(i > 0, 1, -1)), 1),
    "sorted pairs": lambda w, i, u: sum(lax.sort((i % 3, w, i), num_keys=2)),
    "places in order": lambda w, i, u: jnp.searchsorted(jnp.sort(w[:, 0]), w) + jnp.interp(w, jnp.arange(3.0), w[0, :3]),
    "medians": lambda w, i, u: jnp.median(w, 1)[:5] + jnp.quantile(w, 0.3, 0),
    "random numbers": lambda w, i, u: jax.random.normal(jax.random.key(3), (6, 5)) + jax.random.permutation(jax.random.key(4), w) + jax.random.bernoulli(jax.random.key(i[0, 0]), 0.3, (6, 5)),
    "logarithms of sums so far": lambda w, i, u: lax.cumlogsumexp(w, 1) + lax.cumlogsumexp(w, 0, reverse=True),
    "argmax": lambda w, i, u: jnp.argmax(w, 1) + 10 * jnp.argmin(w, 0).sum(),
    "argmax of integers": lambda w, i, u: jnp.argmax(i, 1),
    "argmax of unsigned integers": lambda w, i, u: jnp.argmax(u, 1) + 10 * jnp.argmin(u.astype(jnp.uint8), 0).sum(),
    "argmax with ties": lambda w, i, u: jnp.argmax(jnp.round(w), 1),
    "argmax with NaN": lambda w, i, u: jnp.argmax(jnp.where(w > 0.5, jnp.nan, w), 1),
    "integer quotients": lambda w, i, u: i // 3 + i % 4 + lax.div(i, 2 + i * i) + lax.rem(i, -4),
    "unsigned quotients": lambda w, i, u: (u // 7 + u % 1000).astype(jnp.int32) % 1000,
    "unsigned order": lambda w, i, u: (u > u[::-1]) + 2 * (u.max(0) > u[0]) + 3 * (jnp.minimum(u, u[::-1]) == u),
    "unsigned as floats": lambda w, i, u: u.astype(jnp.float32) / 1e9,
    "floats beyond integers": lambda w, i, u: (w * 100).astype(jnp.uint8) + (w * 100).astype(jnp.int8) + (w * 4e9).astype(jnp.int32) % 1000 + (w * 4e9).astype(jnp.uint32) % 1000 + jnp.where(w > 0.5, jnp.nan, w).astype(jnp.int16),
    "narrow unsigned": lambda w, i, u: u.astype(jnp.uint8).astype(jnp.float32) + u.astype(jnp.uint8).astype(jnp.int32),
    "shifts": lambda w, i, u: ((u >> 5) ^ (u << 27)).astype(jnp.int32) % 1000 + (i >> 1) + lax.shift_right_logical(i, 28),
    "shifts by data": lambda w, i, u: lax.shift_right_logical(u, (u & 63)).astype(jnp.int32) % 1000 + (i << (jnp.abs(i) * 4)) % 999,
    "counts of bits": lambda w, i, u: lax.population_count(i) + lax.clz(i) * 40 + lax.population_count(u.astype(jnp.uint8)).astype(jnp.int32) + lax.clz(i.astype(jnp.int16)),
    "bits": lambda w, i, u: lax.bitcast_convert_type(w, jnp.int32) % 1000 + (~i & 12 | 5),
    "booleans": lambda w, i, u: jnp.all(w > -1, 0) * 1.0 + jnp.any(w > 1, 1).sum() + ((w > 0) ^ (i > 0)).sum(0) + ((w > 0) != (i > 0)).sum(0),
    "slices": lambda w, i, u: w[1:6:2, ::-1][:, :3],
    "indices that are constants": lambda w, i, u: w[jnp.array([0, 5, 2]), jnp.array([1, -1, 3])],
    "indices that are data": lambda w, i, u: w[jnp.abs(i[:, 0]) % 6] + w[jnp.abs(i[:5, 1]) % 6][0],
    "indices that are narrow and unsigned": lambda w, i, u: jnp.take(jnp.arange(1280.0).reshape(256, 5), u[:, 0].astype(jnp.uint8), axis=0) + jnp.arange(256.0)[u.astype(jnp.uint8)],
    "the largest of unsigned integers": lambda w, i, u: lax.top_k(u.astype(jnp.uint8), 2)[0].sum(1)[:5] + lax.top_k(u, 1)[1].sum(),
    "products of narrow integers": lambda w, i, u: lax.dot_general(u.astype(jnp.uint8), u.astype(jnp.uint8), (((0,), (0,)), ((), ())), preferred_element_type=jnp.int32),
    "indices that are clipped": lambda w, i, u: jnp.take(w, i[:, 0], axis=0, mode="clip"),
    "indices that are filled": lambda w, i, u: jnp.take(w, i[:, 0] + 4, axis=1, mode="fill", fill_value=7.0),
    "along an axis": lambda w, i, u: jnp.take_along_axis(w, jnp.abs(i) % 5, axis=1) + jnp.take_along_axis(w, jnp.abs(i) % 6, axis=0),
    "a dynamic slice": lambda w, i, u: lax.dynamic_slice(w, (i[0, 0], i[0, 1]), (3, 2)),
    "a dynamic update": lambda w, i, u: lax.dynamic_update_slice(w, w[:2, :3] * 10, (i[0, 0], i[1, 1])),
    "a known update": lambda w, i, u: lax.dynamic_update_slice(w, w[:2] * 10, (3, 0)) + lax.dynamic_update_slice(w, w[:2, :2], (9, 1)),
    "windows by index": lambda w, i, u: jax.vmap(lambda n: lax.dynamic_slice(w, (n, 1), (2, 3)))(i[:, 0]),
    "added": lambda w, i, u: w.at[jnp.abs(i[:, 0]) % 6].add(w * 2),
    "added beyond": lambda w, i, u: w.at[i[:, 0]].add(w),
    "added at pairs": lambda w, i, u: w.at[jnp.abs(i[:, 0]) % 6, jnp.abs(i[:, 1]) % 5].add(w[:, 0]),
    "set": lambda w, i, u: w.at[jnp.array([4, 1])].set(0.5).at[:, 2].set(w[:, 0]),
    "set beyond": lambda w, i, u: w.at[i[0, 0] + 20].set(3.0).at[i[0, 1] % 6].set(4.0),
    "set at pairs": lambda w, i, u: w.at[jnp.array([0, 3]), jnp.array([1, 2])].set(w[0, :2]),
    "windows added": lambda w, i, u: lax.fori_loop(0, 3, lambda n, x: lax.dynamic_update_slice(x, x[:2] + n, (n, 0)), w),
    "paddings": lambda w, i, u: lax.pad(w, jnp.float32(2.0), ((1, 2, 1), (-1, 1, 0))),
    "concatenated": lambda w, i, u: jnp.concatenate([w, w[:2] * 3]) @ jnp.arange(5.0),
    "products": lambda w, i, u: jnp.einsum("ab,cb->ca", w, w) + jnp.einsum("ab,ac,ad->d", w, w, w).sum() + jnp.tensordot(w, w, 2),
    "sums of powers": lambda w, i, u: jnp.cumsum(w, 0) + jnp.cumprod(w, 1) + w**3 + jnp.abs(w) ** 0.5 + jnp.prod(w, 0),
    "gradients of windows": lambda w, i, u: jax.grad(lambda w: (lax.reduce_window(w, -jnp.inf, lax.max, (2, 3), (1, 2), "SAME") ** 2).sum())(w)
    + jax.grad(lambda w: (lax.reduce_window(w[None, :, :, None, None] * jnp.arange(1.0, 3.0), -jnp.inf, lax.max, (1, 2, 2, 1, 2), (1, 2, 1, 1, 1), "SAME") ** 2).sum())(w),
    "windows": lambda w, i, u: lax.reduce_window(w, -jnp.inf, lax.max, (2, 3), (1, 2), "SAME").sum() + lax.reduce_window(w, 0.0, lax.add, (3, 1), (2, 1), "VALID"),
    "special functions": lambda w, i, u: lax.erf(w) + jax.scipy.special.erfinv(w / 9) + lax.lgamma(jnp.abs(w) + 1) + jax.nn.gelu(w, approximate=False) + jax.nn.silu(w) + jax.nn.softplus(w),
    "more functions": lambda w, i, u: jnp.arctan2(w, w[::-1]) + jnp.sinh(w) + jnp.arcsinh(w) + jnp.expm1(w) + jnp.log1p(jnp.abs(w)) + jnp.tan(w) + lax.rsqrt(jnp.abs(w) + 1),
    "extremes": lambda w, i, u: jnp.clip(w, -0.5, w[0]) + jnp.max(w, 0) + jnp.min(i) + jax.nn.logsumexp(w, 1)[:5],
    "the largest": lambda w, i, u: lax.top_k(w, 3)[0] + lax.top_k(w, 3)[1],
    "one of branches": lambda w, i, u: lax.switch(i[0, 0] % 3, [lambda x: x, lambda x: x * 2, lambda x: jnp.sin(x)], w),
    "a condition": lambda w, i, u: lax.cond(w[0, 0] > 0, lambda x: x + i[0, 0], lambda x: -x, w),
    "a loop": lambda w, i, u: lax.fori_loop(0, 4, lambda n, x: jnp.sin(x) + n * w[n % 6, 0], w),
    "a scan": lambda w, i, u: lax.scan(lambda c, x: (c + x, c * x), jnp.zeros(5), w)[1],
    "a scan and its gradient": lambda w, i, u: jax.grad(lambda v: (lax.scan(lambda c, x: (jnp.tanh(c + x), c * x), jnp.zeros(5), v)[1] ** 2).sum())(w),
    "random numbers": lambda w, i, u: jax.random.normal(jax.random.key(3), (4, 5)),
    "random numbers of a key in data": lambda w, i, u: jax.random.uniform(jax.random.wrap_key_data(u[0, :2]), (7,)),
    "factors of matrices": lambda w, i, u: jnp.linalg.cholesky(w.T @ w + jnp.eye(5)) + jnp.linalg.cholesky(w.T @ w + jnp.eye(5), upper=True),
    "solutions by triangles": lambda w, i, u: sum(jax.scipy.linalg.solve_triangular(w[:5] + 4 * jnp.eye(5), w.T, trans=trans, lower=lower, unit_diagonal=unit)
                                                  for trans in (0, 1) for lower in (False, True) for unit in (False, True)),
    "inverses and solutions": lambda w, i, u: jnp.linalg.inv(w[:5] + 4 * jnp.eye(5)) + jnp.linalg.solve(w[1:] - 3 * jnp.eye(5), w[:5]) + jnp.linalg.slogdet(w[1:])[1] + jnp.linalg.det(w[:5]),
    "factors of rectangles": lambda w, i, u: (lambda q, r: q @ jnp.sin(r))(*jnp.linalg.qr(w)) + jnp.linalg.qr(w, "complete")[0].sum() * jnp.linalg.qr(w.T, "r")[0, 0] + jnp.linalg.qr(w.T)[0].sum(),
    "eigenvalues": lambda w, i, u: (lambda e, v: (v * jnp.sin(e)) @ v.T)(*jnp.linalg.eigh(w.T @ w)) + jnp.linalg.eigvalsh(w[:5], UPLO="U"),
    "singular values": lambda w, i, u: (lambda u, s, v: (u * jnp.sin(s)) @ v)(*jnp.linalg.svd(w, full_matrices=False)) + jnp.linalg.svd(w.T, compute_uv=False)
    + (lambda u, s, v: (u[:, :5] * jnp.cos(s)) @ v)(*jnp.linalg.svd(w)),
    "what follows from singular values": lambda w, i, u: jnp.linalg.pinv(w) @ w + jnp.linalg.lstsq(w, w[:, 0])[0] + jnp.linalg.matrix_rank(w) + jnp.linalg.norm(w, "nuc") + jnp.linalg.norm(w, 2),
    "gradients of decompositions": lambda w, i, u: jax.grad(lambda v: (lambda q, r, e, f, s: (q @ jnp.cos(r)).sum() + ((f * jnp.sin(e)) @ f.T * W[:5]).sum() + ((s[0] * jnp.sin(s[1])) @ s[2] * W).sum()
                                                            + (jnp.linalg.pinv(v) * W.T).sum() + jnp.linalg.norm(v, "nuc"))(*jnp.linalg.qr(v), *jnp.linalg.eigh(v.T @ v), jnp.linalg.svd(v, full_matrices=False)))(w),
    "the gradient of a solution": lambda w, i, u: jax.grad(lambda v: (jnp.linalg.solve(v[:5] + 4 * jnp.eye(5), v[5]) ** 2).sum())(w),
    "the first condition": lambda w, i, u: jnp.select([w > 1, w > 0, i > 0], [w, 2 * w, -w], 7) + jnp.argmax(w > 0, 0) + jnp.argmin(w > 0, 0),
    "convolutions": lambda w, i, u: lax.conv_general_dilated(w[None, :, :, None], W[None, None, 0, :2].reshape(1, 2, 1, 1), (2, 1), ((1, 0), (0, 2)), rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")),
    "convolutions of strides": lambda w, i, u: jax.grad(lambda v: (lax.conv_general_dilated(v[None, None], W[None, None, :3, :2], (2, 2), "SAME") ** 2).sum())(w),
    "convolutions of one axis": lambda w, i, u: lax.conv_general_dilated(w[None], W[:3, :, None] * jnp.ones((1, 1, 2)), (1,), ((2, 0),), dimension_numbers=("NWC", "WIO", "NWC")),
    "Fourier transforms": lambda w, i, u: jnp.abs(jnp.fft.rfft(w)) + jnp.fft.fft2(w).imag[:, :3] + jnp.fft.irfft(jnp.fft.rfft(w, axis=0) * 1j, n=6, axis=0)[:, :3] + jnp.fft.ifft(w).real[:, 1:4],
    "complex functions": lambda w, i, u: (lambda z: sum((f(z).real - 2 * f(z).imag for f in (jnp.exp, jnp.expm1, jnp.log, jnp.log1p, jnp.sqrt, jnp.sign, lambda z: z**1.5, lambda z: 1 / z)), jnp.abs(z) + jnp.angle(z)))(jax.lax.complex(w, w[::-1] + 0.1)),
    "the gradient of a transform": lambda w, i, u: jax.grad(lambda v: (jnp.abs(jnp.fft.rfft(v, n=8) * jnp.exp(1j * jnp.arange(5.0))) ** 2).sum() + jnp.fft.irfft(jnp.fft.rfft(v) ** 2, n=5).sum())(w),
    "a complex recurrence": lambda w, i, u: jnp.abs(lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (jnp.exp(-jnp.exp(w) + 1j * w), w.astype(jnp.complex64)))[1]),
    "complex products": lambda w, i, u: (lambda z: (z @ z.conj().T).real[:, :5] + jnp.where(w > 0, z, z.at[:, 1:3].set(2j)).imag.at[0].add(z.sum(0).imag))(w + 1j * w[::-1]),
    "groups": lambda w, i, u: jax.grad(lambda k: (lax.conv_general_dilated(w.reshape(1, 5, 3, 2), k, (1, 1), "SAME", feature_group_count=2, dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2).sum())(W[:2, :4].reshape(2, 1, 1, 4)),
}
# Of x [b, 6, 5] and labels [b, 6]: one number, which N replicas compute as one does.
BATCHED = {
    "mean": lambda w, x, y: (x * w).mean(),
    "sum": lambda w, x, y: (x * w).sum(),
    "softmax": lambda w, x, y: (jax.nn.softmax(x * w, -1) * w).mean(),
    "labels": lambda w, x, y: jnp.take_along_axis(jax.nn.log_softmax(x * w), y[..., None], -1).mean(),
    "rows": lambda w, x, y: (w[y] * x[:, :1]).mean(),
    "one hot": lambda w, x, y: (jax.nn.one_hot(y, 5) * x * w).mean(),
    "the gradient of rows": lambda w, x, y: (jax.grad(lambda v: (v[y] ** 2 * x[:, :1]).mean())(w) * W).sum(),
    "the gradient of labels": lambda w, x, y: (jax.grad(lambda v: jnp.take_along_axis(jax.nn.log_softmax(x * v), y[..., None], -1).mean())(w) * W).sum(),
    "the gradient of a convolution": lambda w, x, y: (jax.grad(lambda v: (lax.conv_general_dilated(x[..., None], v[:3, :2, None, None], (2, 1), ((1, 0), (1, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2).mean())(w) * W).sum(),
    "the gradient of a transposed convolution": lambda w, x, y: (jax.grad(lambda v: (lax.conv_transpose(x[..., None], v[:3, :2, None, None], (2, 3), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2).mean())(w) * W).sum(),
    "the gradient of a convolution of volumes": lambda w, x, y: (jax.grad(lambda v: (lax.conv_general_dilated(x.reshape(-1, 3, 2, 5, 1), v[:4, :3].reshape(2, 2, 3, 1, 1), (1, 1, 2), ((1, 0), (1, 1), (2, 1)), rhs_dilation=(2, 1, 1), dimension_numbers=("NDHWC", "DHWIO", "NDHWC")) ** 2).mean())(w) * W).sum(),
    "the gradient of volumes in groups": lambda w, x, y: (jax.grad(lambda v: (lax.conv_general_dilated((x * v).reshape(-1, 5, 3, 1, 2), v[:2, :4].reshape(2, 1, 1, 1, 4), (2, 1, 1), ((0, 1), (0, 0), (0, 0)), lhs_dilation=(1, 2, 1), feature_group_count=2, dimension_numbers=("NDHWC", "DHWIO", "NDHWC")) ** 2).mean())(w) * W).sum(),
    "statistics of the batch": lambda w, x, y: (((x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5) * w) ** 3).mean(),
    "the largest over the batch": lambda w, x, y: (x * w).max(0).mean(),
    "products": lambda w, x, y: jnp.einsum("bij,bkj->ik", x * w, x).mean() / x.shape[0],
    "slices": lambda w, x, y: x[:, 1:4:2, ::-1].mean() * w[0, 0],
    "an element of each example": lambda w, x, y: (x * w)[jnp.arange(x.shape[0]), y[:, 0]].mean(),
    "two elements of each example": lambda w, x, y: (x * w)[jnp.arange(x.shape[0])[:, None], y[:, :2], y[:, 2:4]].mean(),
    "elements that are set": lambda w, x, y: ((x * w)[:, 0].at[jnp.arange(x.shape[0])[:, None], y[:, :3]].set(x[:, 1, :3]) * w[1]).mean(),
    "elements that are multiplied": lambda w, x, y: ((x * w)[:, 0].at[jnp.arange(x.shape[0])[:, None], y[:, :3]].mul(x[:, 1, :3]) * w[1]).mean(),
    "the gradient of elements": lambda w, x, y: (jax.grad(lambda v: ((x * v)[jnp.arange(x.shape[0]), y[:, 0]] ** 2).mean())(w) * W).sum(),
    "examples beside each other": lambda w, x, y: -jnp.take_along_axis(jax.nn.log_softmax((x[:, 0] * w[0]) @ x[:, 1].T), jnp.arange(x.shape[0])[:, None], 1).mean(),
    "the gradient beside each other": lambda w, x, y: (jax.grad(lambda v: jnp.take_along_axis(jax.nn.log_softmax((x[:, 0] * v[0]) @ x[:, 1].T), jnp.arange(x.shape[0])[:, None], 1).mean())(w) * W).sum(),
    "all examples beside each other": lambda w, x, y: (jnp.tanh(jnp.einsum("bij,cij->bc", x * w, x)) * jnp.triu(jnp.tensordot(x, x * w, ((2, 1), (2, 1))))).sum(1).mean() / x.shape[0],
    "the gradient of all examples": lambda w, x, y: (jax.grad(lambda v: jnp.tanh(jnp.einsum("bij,cij->bc", x * v, x) / 9).sum(1).mean() / x.shape[0])(w) * W).sum(),
    "a diagonal": lambda w, x, y: jnp.diag(jax.nn.log_softmax((x[:, 0] * w[0]) @ x[:, 1].T)).mean(),
    "the gradient of a diagonal": lambda w, x, y: (jax.grad(lambda v: jnp.diag(jax.nn.log_softmax((x[:, 0] * v[0]) @ x[:, 1].T)).mean())(w) * W).sum(),
    "the first of what is broadcast": lambda w, x, y: (jnp.broadcast_to(w, x.shape)[:1] * x).mean(),
    "all of it set": lambda w, x, y: (x.at[:, :].set(w) * x.at[:].add(w)).mean(),
    "sums so far": lambda w, x, y: (jnp.cumsum(x * w, 0) * x).mean() / x.shape[0] + lax.cumsum(y[:, 0], 0, reverse=True).max() * w[0, 0],
    "the gradient of sums so far": lambda w, x, y: (jax.grad(lambda v: (jnp.cumsum(x * v, 0) ** 2).mean() / x.shape[0])(w) * W).sum(),
    "the largest of segments": lambda w, x, y: (jax.ops.segment_max((x * w)[:, 0], y[:, 0], 7).clip(-3) * jax.ops.segment_min(y[:, 1], y[:, 0], 7).clip(-3, 9)[:, None]).mean(),
    "the gradient of the largest of segments": lambda w, x, y: (jax.grad(lambda v: (jax.ops.segment_max(x * v, y[:, 0], 7).clip(-3) ** 2).mean())(w) * W).sum(),
    "segments of each example": lambda w, x, y: (jax.vmap(lambda r, i: jax.ops.segment_max(r, i, 5))(x * w, y).clip(-3) * jax.vmap(lambda i: jax.ops.segment_sum(i, i, 5))(jnp.tile(y, (1, 7)))[..., None]).mean(),
    "the gradient of segments of each example": lambda w, x, y: (jax.grad(lambda v: (jax.vmap(lambda r, i: jax.ops.segment_min(r, i, 5))(x * v, y).clip(-3, 3) ** 2).mean())(w) * W).sum(),
    "segments of unsigned numbers": lambda w, x, y: (jax.vmap(lambda i: jax.ops.segment_max((i * 60).astype(jnp.uint8), i % 3, 5))(y).astype(jnp.float32).mean() + jax.ops.segment_min((y[:, 0] * 60).astype(jnp.uint8), y[:, 1], 7).astype(jnp.float32).mean()) * w[0, 0],
    "distances of examples": lambda w, x, y: jnp.where(y[:, None, 0] == y[None, :, 0], jnp.sqrt((((x * w)[:, None] - x[None]) ** 2).sum((-1, -2)) + 1e-3), 0).max(1).mean(),
    "the gradient of distances of examples": lambda w, x, y: (jax.grad(lambda v: jnp.exp(-(((x * v)[:, None, 0] - (x * v)[None, :, 1]) ** 2).sum(-1) / 9).mean())(w) * W).sum(),
    "two views": lambda w, x, y: (lambda z, n: (z[:n] * jnp.sin(z[n:])).sum(-1))(jnp.concatenate([x[:, 0] * w[0], x[:, 1]]), x.shape[0]).mean(),
    "the gradient of two views": lambda w, x, y: (jax.grad(lambda v: (lambda z, n: -jax.nn.log_softmax(z @ z.T - 9 * jnp.eye(2 * n))[jnp.arange(2 * n), (jnp.arange(2 * n) + n) % (2 * n)].mean())(jnp.tanh(jnp.concatenate([x[:, 0], x[:, 1]]) @ v.T), x.shape[0]))(w) * W).sum(),
    "the gradient of three views": lambda w, x, y: (jax.grad(lambda v: (lambda z, n: jax.nn.relu(((z[:n] - z[n:2 * n]) ** 2).sum(-1) - ((z[:n] - z[2 * n:]) ** 2).sum(-1) + 1).mean())(jnp.tanh(jnp.concatenate([x[:, 0], x[:, 1], x[:, 2]]) @ v.T), x.shape[0]))(w) * W).sum(),
    "the gradient of views that are normalized": lambda w, x, y: (jax.grad(lambda v: (lambda h, n: ((h[:n] - h[n:]) ** 2).mean())((lambda h: (h - h.mean(0)) / (h.std(0) + 0.1))(jnp.concatenate([x[:, 0] * v[0], x[:, 1] * v[1]])), x.shape[0]))(w) * W).sum(),
    "the gradient of single examples": lambda w, x, y: (jax.grad(lambda v: (lambda h: (h[:1] * h - h[1] * h[-1]).mean())(jnp.tanh(x * v)))(w) * W).sum(),
    "the gradient of differences": lambda w, x, y: (jax.grad(lambda v: (jnp.diff(x * v, axis=0) ** 2).mean())(w) * W).sum(),
    "examples moved round": lambda w, x, y: (jnp.roll(x * w, 1, 0) * x + jnp.roll(x * w, -3, 0) * jnp.roll(x, 2, 0)).mean(),
    "the gradient of examples moved round": lambda w, x, y: (jax.grad(lambda v: ((jnp.roll(x * v, 1, 0) - x) ** 2 * jnp.roll(x * v, -3, 0)).mean())(w) * W).sum(),
    "labels moved round": lambda w, x, y: (lambda z, n: -jnp.take_along_axis(jax.nn.log_softmax(z @ z.T), jnp.roll(jnp.arange(2 * n), n)[:, None], 1).mean())(jnp.concatenate([x[:, 0] * w[0], x[:, 1]]), x.shape[0]),
    "the gradient of transforms": lambda w, x, y: (jax.grad(lambda v: (jnp.abs(jnp.fft.rfft(x * v)) ** 2).mean())(w) * W).sum() + jnp.fft.fft2(x * w).real[:, 1].mean(),
    "a map over the examples": lambda w, x, y: (lax.map(lambda r: jnp.tanh(r @ w.T).max(), x) ** 2).mean(),
    "the gradient of a map": lambda w, x, y: (jax.grad(lambda v: (lax.map(jax.checkpoint(lambda r: jnp.tanh(r * v).sum()), x) ** 2).mean())(w) * W).sum(),
    "a sum over the examples": lambda w, x, y: (lambda t, ls: t[0] / t[1] + ls.max())(*lax.scan(lambda c, r: ((c[0] + jnp.sin(r * w).sum(), c[1] + 1), r[0, 0]), (jnp.float32(0), 0), x)),
    "examples by number": lambda w, x, y: ((x * w)[(jnp.arange(x.shape[0]) - 3) % x.shape[0]] * x).mean(),
    "the largest, nearly": lambda w, x, y: (lax.approx_max_k(x * w, 3)[0] * jnp.arange(3.0)).mean() + lax.approx_min_k(x * w, 2, reduction_dimension=1)[0].mean(),
    "matrices of each example": lambda w, x, y: (jnp.linalg.inv(x[:, :5] * w[:5] + 4 * jnp.eye(5)) * jnp.linalg.cholesky(jnp.einsum("bij,bik->bjk", x, x) + jnp.eye(5))).mean(),
    "decompositions of each example": lambda w, x, y: (lambda q, e, s: (q[0] @ jnp.sin(q[1])).mean() + (e[1][..., :1] ** 2 * e[0][..., None, :]).mean() + (s[0][..., :1] @ s[2][..., :1, :]).mean())(
        jnp.linalg.qr(x * w), jnp.linalg.eigh(jnp.einsum("bij,bik->bjk", x, x * w)), jnp.linalg.svd(x + w, full_matrices=False)),
    "gradients of decompositions of each example": lambda w, x, y: (jax.grad(lambda v: jnp.linalg.norm(x * v, "nuc", axis=(1, 2)).mean() + (jnp.linalg.pinv(x + v) * 0.1).sum(1).mean())(w) * W).sum(),
    "a map over the examples that decomposes": lambda w, x, y: lax.map(lambda r: jnp.linalg.svd(r * w, compute_uv=False)[0] + jnp.linalg.eigvalsh(r.T @ r)[-1], x).mean(),
    "values of a matrix of all examples": lambda w, x, y: (jnp.linalg.eigvalsh(jnp.einsum("bij,bik->jk", x * w, x * w) / x.shape[0]) * jnp.arange(5.0)).sum(),
    "a matrix of all examples": lambda w, x, y: jnp.linalg.slogdet(jnp.einsum("bij,bik->jk", x * w, x * w) / x.shape[0] + jnp.eye(5))[1],
    "accuracy": lambda w, x, y: ((x * w).argmax(-1) == y).mean(),
}


def make_weights(shape):
    return jnp.cos(jnp.arange(np.prod(shape, dtype=int), dtype=jnp.float32).reshape(shape) + 1)


def check(tmp_path, cases, compute, state, data, replicas):
    """All cases in one program; those that have no code, alone, say so."""
    def step(state, batch):
        values = {}
        for number, case in enumerate(cases):
            value = compute(case, state, batch).astype(jnp.float32)
            values[f"case{number}"] = (value * make_weights(value.shape)).sum()
        loss = (state["w"] * batch["x"]).mean()
        return {**state, "w": state["w"] * 0.9}, loss, values

    executable = distc.compile(distc.jax.export(step, state, data, tmp_path / "step.mlir"), batch=8, replicas=replicas)
    ours = executable.train(data, 1).fetches
    theirs = jax.jit(step)(state, data)[2]
    return {case: (float(ours[f"case{number}"][0]), float(theirs[f"case{number}"])) for number, case in enumerate(cases)}


DATA = {"x": X, "y": LABELS}
STATE = {"w": W, "i": I, "u": U}


@pytest.mark.parametrize("replicas", [1, 2])
def test_whole(tmp_path, replicas):
    found = check(tmp_path, WHOLE, lambda case, state, batch: WHOLE[case](state["w"], state["i"], state["u"]), STATE, DATA, replicas)
    for case, (ours, theirs) in found.items():
        assert ours == pytest.approx(theirs, rel=2e-5, abs=2e-5), case


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_batched(tmp_path, replicas):
    found = check(tmp_path, BATCHED, lambda case, state, batch: BATCHED[case](state["w"], batch["x"], batch["y"]), STATE, DATA, replicas)
    for case, (ours, theirs) in found.items():
        assert ours == pytest.approx(theirs, rel=2e-5, abs=2e-5), case


@pytest.mark.parametrize("replicas", [1, 2])
def test_bfloat16_is_rounded_where_the_program_says(tmp_path, replicas):
    """As JAX does without jit, which drops roundings between operations that it fuses."""
    def step(state, batch):
        y = batch["x"][:, 0].astype(jnp.bfloat16) @ state["w"].astype(jnp.bfloat16).T
        values = {"product": y, "function": jnp.tanh(y), "two": (y + 1) * y, "sum": jnp.exp(y).sum(1)}
        return state, batch["x"].mean(), {name: value.astype(jnp.float32).mean() for name, value in values.items()}

    data = {"x": X}
    executable = distc.compile(distc.jax.export(step, {"w": W}, data, tmp_path / "step.mlir"), batch=8, replicas=replicas)
    theirs = step({"w": W}, {"x": jnp.asarray(X)})[2]
    for name, value in executable.train(data, 1).fetches.items():
        np.testing.assert_allclose(value[0], theirs[name], rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("replicas", [1, 2])
def test_unsigned_integers_of_64_bits(tmp_path, replicas):
    with jax.enable_x64(True):
        a = jnp.arange(64, dtype=jnp.uint64) * jnp.uint64(0x9E3779B97F4A7C15)
        b = jnp.uint64(1) << jnp.arange(64, dtype=jnp.uint64) | (jnp.arange(64, dtype=jnp.uint64) * jnp.uint64(77) % jnp.uint64(5))

        def step(state, batch):
            value = state["a"] // (state["b"] + batch["n"].sum()) ^ state["a"] % (state["b"] + batch["n"].sum())
            return {**state, "a": value}, batch["n"].astype(jnp.int32).sum().astype(jnp.float32)

        data = {"n": np.array([1, 0, 2, 3] * 4, np.uint64)}
        state = {"a": a, "b": b}
        executable = distc.compile(distc.jax.export(step, state, data, tmp_path / "step.mlir"), batch=8, replicas=replicas)
        expected = jax.jit(step)(state, {"n": jnp.asarray(data["n"][:8])})[0]
        np.testing.assert_array_equal(executable.train(data, 1).state["a"], expected["a"])
