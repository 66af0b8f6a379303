"""Numbers of Python's that are made of the batch's size."""
from __future__ import annotations

import math
import operator
from typing import Any, Callable

import jax.numpy as jnp
import torch
from jax import core
from jax.export import is_symbolic_dim

from distc._aten.table import TABLE


def _to_number(x):
    """Of the batch's size, which has a few operations of its own, a value; of a number of Python's what it is."""
    return jnp.asarray(x) if is_symbolic_dim(x) else x


def _to_float(x):
    return float(x) if isinstance(x, (bool, int, float)) else 1.0 * _to_number(x)


def _to_whole(function):
    return lambda x: function(_to_float(x)).astype(jnp.int64)


def _power(x, exponent):
    if isinstance(exponent, int) and exponent >= 0:
        return x ** exponent  # a size is a size again
    return jnp.power(_to_float(x), _to_float(exponent))


def _round(x, digits=None):
    if digits is not None:
        raise NotImplementedError("there is no code for round(x, digits) of the batch's size: compute it with torch.round(torch.tensor(..))")
    return _to_whole(jnp.round)(x)


def _of_numbers(function):
    return lambda *xs: function(*map(_to_number, xs))


def _of_sizes(of_sizes, of_numbers):
    """A size again where both are."""
    return lambda x, y: (of_sizes if all(isinstance(each, int) or is_symbolic_dim(each) for each in (x, y)) else _of_numbers(of_numbers))(x, y)


OF_SIZES: dict[Any, Callable[..., Any]] = {
    torch.sym_float: _to_float, torch.sym_max: _of_sizes(core.max_dim, jnp.maximum), torch.sym_min: _of_sizes(core.min_dim, jnp.minimum), torch.sym_not: _of_numbers(jnp.logical_not),
    torch.sym_ite: _of_numbers(jnp.where), operator.pow: _power, pow: _power, math.ceil: _to_whole(jnp.ceil), math.floor: _to_whole(jnp.floor), math.trunc: _to_whole(jnp.trunc),
    round: _round, abs: _of_numbers(jnp.abs), operator.abs: _of_numbers(jnp.abs),
    **{each: _of_numbers(each) for each in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.and_, operator.or_, operator.xor, operator.lshift,
                                           operator.rshift)}}
for _name in ("sqrt", "cos", "sin", "tan", "cosh", "sinh", "tanh", "acos", "asin", "atan", "log2"):
    if hasattr(torch, f"_sym_{_name}"):
        OF_SIZES[getattr(torch, f"_sym_{_name}")] = _of_numbers(TABLE[_name])
