"""Matrix products and attention."""
from __future__ import annotations

import jax
import jax.numpy as jnp

from distc._aten.random import _dropout
from distc._aten.reductions import _vector_norm
from distc._aten.table import define, TABLE

for _name in ("mm", "bmm", "matmul", "mv", "dot"):
    TABLE[_name] = jnp.matmul


@define("addbmm")
def _addbmm(bias, x, y, *, beta=1, alpha=1):
    return beta * bias + alpha * jnp.einsum("bij,bjk->ik", x, y)


@define("addmm", "baddbmm", "addmv")
def _addmm(bias, x, y, *, beta=1, alpha=1):
    product = jnp.matmul(x, y)
    return (bias if beta == 1 else beta * bias) + (product if alpha == 1 else alpha * product)


def _attend(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False, random_key=None):
    if enable_gqa:
        key, value = (jnp.repeat(each, query.shape[-3] // each.shape[-3], -3) for each in (key, value))
    scores = jnp.matmul(query * (query.shape[-1] ** -0.5 if scale is None else scale), jnp.swapaxes(key, -1, -2))
    if is_causal:
        attn_mask = jnp.tril(jnp.ones((query.shape[-2], key.shape[-2]), bool))
    if attn_mask is None:
        weights = jax.nn.softmax(scores, -1)
    else:
        if attn_mask.dtype != bool:
            scores = scores + attn_mask
        # Who may look at nothing sees zeros, and leaves no NaN in gradients.
        seen = attn_mask if attn_mask.dtype == bool else scores != -jnp.inf
        some = jnp.any(seen, -1, keepdims=True)
        weights = jnp.where(some, jax.nn.softmax(jnp.where(seen, scores, jnp.where(some, -jnp.inf, 0)), -1), 0)
    if dropout_p > 0:
        weights = _dropout(random_key, weights, dropout_p)[0]
    return jnp.matmul(weights, value)


@define("_grouped_mm", "transformers.grouped_mm_fallback")
def _grouped_product(x, weight, offs, bias=None, out_dtype=None):
    """Rows in groups, which end where `offs` says, each group times its matrix; rows behind the last give zeros."""
    if x.ndim != 2 or weight.ndim != 3:
        raise NotImplementedError("there is code for grouped products of rows [rows, in] with matrices [groups, in, out] alone")
    row = jnp.arange(x.shape[0])[:, None]
    begin = jnp.concatenate([jnp.zeros_like(offs[:1]), offs[:-1]])
    is_in = ((row >= begin) & (row < offs)).astype(x.dtype)
    product = jnp.einsum("rg,rgo->ro", is_in, jnp.einsum("ri,gio->rgo", x, weight))
    return product if bias is None else product + bias


@define("_trilinear")
def _trilinear(x, y, z, expand_x, expand_y, expand_z, summed, unroll_dim=1):
    """The sum of products; `expand_*` are the axes of the product that an operand does not have."""
    return (jnp.expand_dims(x, tuple(expand_x)) * jnp.expand_dims(y, tuple(expand_y)) * jnp.expand_dims(z, tuple(expand_z))).sum(tuple(summed))


@define("_cdist_forward")
def _cdist(x, y, order, mode=None):
    return _vector_norm(x[..., :, None, :] - y[..., None, :, :], order, -1)


@define("linear")
def _linear(x, weight, bias=None):
    product = jnp.matmul(x, weight.T)
    return product if bias is None else product + bias
