"""Factors, solutions and functions of matrices."""
from __future__ import annotations

import functools
import operator

import jax
import jax.numpy as jnp
from jax import lax

from distc._aten.table import define


@define("linalg_inv_ex")
def _inverse(x, *, check_errors=False):
    return jnp.linalg.inv(x), jnp.zeros(x.shape[:-2], jnp.int32)


@define("_linalg_solve_ex")
def _solve(x, y, *, left=True, check_errors=False):
    is_vector = y.ndim == x.ndim - 1
    y = y[..., None] if is_vector else y
    result = jnp.linalg.solve(x, y) if left else jnp.swapaxes(jnp.linalg.solve(jnp.swapaxes(x, -1, -2), jnp.swapaxes(y, -1, -2)), -1, -2)
    return (result[..., 0] if is_vector else result), None, None, jnp.zeros(x.shape[:-2], jnp.int32)


@define("_linalg_det")
def _determinant(x):
    return jnp.linalg.det(x), None, None


@define("_linalg_slogdet")
def _logarithm_of_determinant(x):
    sign, logarithm = jnp.linalg.slogdet(x)
    return sign, logarithm, None, None


@define("linalg_cholesky_ex")
def _cholesky(x, *, upper=False, check_errors=False):
    return jnp.linalg.cholesky(x, upper=upper), jnp.zeros(x.shape[:-2], jnp.int32)


@define("linalg_solve_triangular")
def _solve_triangular(x, y, *, upper, left=True, unitriangular=False):
    front = y.shape[:-2] if y.ndim >= x.ndim else x.shape[:-2]
    x, y = (jnp.broadcast_to(each, (*front, *each.shape[-2:])) for each in (x, y))
    return lax.linalg.triangular_solve(x, y, left_side=left, lower=not upper, unit_diagonal=unitriangular)


@define("linalg_lu_factor_ex")
def _lu_factors(x, *, pivot=True, check_errors=False):
    if not pivot:
        raise NotImplementedError("there is no code for LU factors without an exchange of rows: leave pivot=False out")
    factors, pivots, _ = lax.linalg.lu(x)
    return factors, pivots + 1, jnp.zeros(x.shape[:-2], jnp.int32)


@define("linalg_lu")
def _lu(x, *, pivot=True):
    if not pivot:
        raise NotImplementedError("there is no code for LU factors without an exchange of rows: leave pivot=False out")
    factors, _, order = lax.linalg.lu(x)
    rows, columns = x.shape[-2:]
    shared = min(rows, columns)
    lower = jnp.tril(factors[..., :shared], -1) + jnp.eye(rows, shared, dtype=x.dtype)
    return jnp.swapaxes(jax.nn.one_hot(order, rows, dtype=x.dtype), -1, -2), lower, jnp.triu(factors[..., :shared, :])


def _solve_with_triangle(x, y, **form):
    """With axes in front that are broadcast."""
    front = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return lax.linalg.triangular_solve(*(jnp.broadcast_to(each, (*front, *each.shape[-2:])) for each in (x, y)), **form)


@define("linalg_lu_solve")
def _solve_with_lu(factors, pivots, y, *, left=True, adjoint=False):
    # Of an adjoint, or from the right, the steps of the other, turned.
    if not left:
        return jnp.swapaxes(_solve_with_lu(factors, pivots, jnp.swapaxes(y, -1, -2), adjoint=not adjoint), -1, -2)
    order = lax.linalg.lu_pivots_to_permutation(pivots - 1, factors.shape[-1])
    exchange = jax.nn.one_hot(order, factors.shape[-1], dtype=factors.dtype)
    if not adjoint:
        y = _solve_with_triangle(factors, jnp.matmul(exchange, y), left_side=True, lower=True, unit_diagonal=True)
        return _solve_with_triangle(factors, y, left_side=True, lower=False)
    y = _solve_with_triangle(factors, y, left_side=True, lower=False, transpose_a=True)
    y = _solve_with_triangle(factors, y, left_side=True, lower=True, unit_diagonal=True, transpose_a=True)
    return jnp.matmul(jnp.swapaxes(exchange, -1, -2), y)


@define("cholesky_solve")
def _solve_with_cholesky(y, factor, upper=False):
    y = _solve_with_triangle(factor, y, left_side=True, lower=not upper, transpose_a=upper)
    return _solve_with_triangle(factor, y, left_side=True, lower=not upper, transpose_a=not upper)


@define("cholesky_inverse")
def _invert_with_cholesky(factor, upper=False):
    return _solve_with_cholesky(jnp.eye(factor.shape[-1], dtype=factor.dtype), factor, upper)


@define("linalg_qr")
def _qr(x, mode="reduced"):
    rows, columns = x.shape[-2:]
    if mode != "complete" and isinstance(rows, int) and isinstance(columns, int) and rows < columns:
        # Of the first columns, which say what q is.
        q, r = jnp.linalg.qr(x[..., :rows])
        r = jnp.concatenate([r, jnp.matmul(jnp.swapaxes(q, -1, -2), x[..., rows:])], -1)
    else:
        q, r = jnp.linalg.qr(x, "complete" if mode == "complete" else "reduced")
    return (jnp.zeros((0,), x.dtype) if mode == "r" else q), r


@define("linalg_householder_product")
def _reflections(x, scales):
    """The first columns of (1 - s0 v0 v0')(1 - s1 v1 v1').. = 1 - V T V', of which T is D - D S T: scales, and a triangle of V'V."""
    rows, columns = x.shape[-2:]
    count = scales.shape[-1]
    vectors = jnp.tril(x[..., :count], -1) + jnp.eye(rows, count, dtype=x.dtype)
    products = jnp.triu(jnp.matmul(jnp.swapaxes(vectors, -1, -2), vectors), 1)
    scaled = scales[..., None] * jnp.eye(count, dtype=x.dtype)
    triangle = _solve_with_triangle(scales[..., None] * products + jnp.eye(count, dtype=x.dtype), scaled, left_side=True, lower=False, unit_diagonal=True)
    return jnp.eye(rows, columns, dtype=x.dtype) - vectors @ triangle @ jnp.swapaxes(vectors[..., :columns, :], -1, -2)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _symmetric(x, is_lower):
    """What a triangle says. PyTorch's gradient is half of it for each."""
    half = jnp.tril(x) if is_lower else jnp.triu(x)
    return half + jnp.swapaxes(jnp.tril(x, -1) if is_lower else jnp.triu(x, 1), -1, -2)


_symmetric.defjvp(lambda is_lower, primals, tangents: (_symmetric(primals[0], is_lower), (tangents[0] + jnp.swapaxes(tangents[0], -1, -2)) / 2))


@define("_linalg_eigh")
def _eigh(x, triangle="L", compute_v=True):
    vectors, values = lax.linalg.eigh(_symmetric(x, triangle.upper() == "L"), symmetrize_input=False)
    return values, vectors if compute_v else jnp.zeros((0,), x.dtype)


def _svd(node, x, full_matrices=False, compute_uv=True, *, driver=None):
    if compute_uv and {user.args[1] if user.target is operator.getitem else None for user in node.users} <= {1}:
        # Values alone are read: their gradient asks for no quotients of differences.
        return None, jnp.linalg.svd(x, compute_uv=False), None
    if not compute_uv:
        return jnp.zeros((0,), x.dtype), jnp.linalg.svd(x, compute_uv=False), jnp.zeros((0,), x.dtype)
    u, values, v = jnp.linalg.svd(x, full_matrices=False)
    if full_matrices and x.shape[-2] != x.shape[-1]:
        # The others have no gradient.
        all_u, _, all_v = jnp.linalg.svd(lax.stop_gradient(x), full_matrices=True)
        u = jnp.concatenate([u, all_u[..., u.shape[-1]:]], -1)
        v = jnp.concatenate([v, all_v[..., v.shape[-2]:, :]], -2)
    return u, values, v


def _get_bound(x, values, atol, rtol):
    """Below which values count for nothing."""
    otherwise = max(x.shape[-2:]) * jnp.finfo(x.dtype).eps
    absolute, relative = (each if each is None else jnp.asarray(each, x.dtype)[..., None] for each in (atol, rtol))
    if relative is None:
        relative = otherwise if absolute is None else jnp.where(absolute > 0, 0, otherwise)
    return jnp.maximum(0 if absolute is None else absolute, relative * jnp.max(values, -1, keepdims=True))


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _pseudo_inverse(x, invert):
    return invert(x)


@_pseudo_inverse.defjvp
def _pseudo_inverse_jvp(invert, primals, tangents):
    # Where the rank stays as it is (Golub and Pereyra, 1973).
    (x,), (dx,) = primals, tangents
    inverse = _pseudo_inverse(x, invert)
    turn = lambda each: jnp.swapaxes(each, -1, -2)
    part = turn(dx) - turn(dx) @ x @ inverse
    other = turn(dx) @ turn(inverse) @ inverse
    return inverse, inverse @ turn(inverse) @ part + other - inverse @ x @ other - inverse @ dx @ inverse


@define("linalg_pinv.atol_rtol_tensor")
def _pinv(x, *, atol=None, rtol=None, hermitian=False):
    def invert(x):
        if hermitian:
            vectors, values = lax.linalg.eigh(_symmetric(x, True), symmetrize_input=False)
            left, sizes = vectors, jnp.abs(values)
        else:
            left, values, v = jnp.linalg.svd(x, full_matrices=False)
            vectors, sizes = jnp.swapaxes(v, -1, -2), values
        counts = sizes > _get_bound(x, sizes, atol, rtol)
        return (vectors * jnp.where(counts, 1 / jnp.where(counts, values, 1), 0)[..., None, :]) @ jnp.swapaxes(left, -1, -2)

    return _pseudo_inverse(x, invert)


@define("linalg_matrix_exp")
def _matrix_exponential(x):
    return jax.scipy.linalg.expm(x)
