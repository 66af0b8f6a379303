"""Complex numbers and Fourier transforms."""
from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax

from distc._aten.table import define, TABLE

for _name, _function in {"complex": lambda real, imaginary: lax.complex(*jnp.broadcast_arrays(real, imaginary)), "polar": lambda size, angle: lax.complex(size * jnp.cos(angle), size * jnp.sin(angle)),
                         "view_as_complex": lambda x: lax.complex(x[..., 0], x[..., 1]),
                         "view_as_real": lambda x: jnp.stack([jnp.real(x), jnp.imag(x)], -1),
                         "real": jnp.real, "imag": jnp.imag, "angle": jnp.angle}.items():
    TABLE[_name] = _function
for _name in "_conj conj conj_physical _conj_physical".split():
    TABLE[_name] = jnp.conj
for _name in "resolve_conj resolve_neg".split():
    TABLE[_name] = lambda x: x


def _normalize_transform(x, sizes, normalization):
    """Of a transform that sums, as PyTorch divides it: not at all, by the root of how many elements there are, or by as many."""
    count = math.prod(sizes)
    return x / (1, math.sqrt(count), count)[normalization] if normalization else x


@define("_fft_c2c")
def _transform(x, axes, normalization, forward):
    sizes = [x.shape[axis] for axis in axes]
    for axis, size in zip(axes, sizes):
        x = jnp.fft.fft(x, axis=axis) if forward else jnp.fft.ifft(x, axis=axis) * size
    return _normalize_transform(x, sizes, normalization)


@define("_fft_r2c")
def _transform_real(x, axes, normalization, onesided):
    sizes = [x.shape[axis] for axis in axes]
    x = jnp.fft.rfft(x, axis=axes[-1]) if onesided else jnp.fft.fft(x, axis=axes[-1])
    return _normalize_transform(_transform(x, axes[:-1], 0, True), sizes, normalization)


@define("_fft_c2r")
def _transform_to_real(x, axes, normalization, last):
    sizes = [*(x.shape[axis] for axis in axes[:-1]), last]
    x = jnp.fft.irfft(_transform(x, axes[:-1], 0, False), n=last, axis=axes[-1]) * last
    return _normalize_transform(x, sizes, normalization)
