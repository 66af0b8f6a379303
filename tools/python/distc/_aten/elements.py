"""Operations that compute each element for itself."""
from __future__ import annotations

import operator

import jax
import jax.numpy as jnp
from jax import lax

from distc import _indices
from distc._aten.table import define, TABLE

for _name in ("exp log log1p log2 log10 expm1 sqrt sin cos tan tanh sinh cosh sign floor ceil trunc isnan isinf logical_not logical_and "
              "logical_or logical_xor maximum minimum bitwise_and bitwise_or bitwise_xor bitwise_not square fmod").split():
    TABLE[_name] = getattr(jnp, _name)
for _name, _function in {"neg": jnp.negative, "asin": jnp.arcsin, "acos": jnp.arccos, "atan": jnp.arctan,
                         "asinh": jnp.arcsinh, "acosh": jnp.arccosh, "atanh": jnp.arctanh, "atan2": jnp.arctan2,
                         "rsqrt": lax.rsqrt, "erf": lax.erf, "erfc": lax.erfc, "sigmoid": jax.nn.sigmoid, "relu": jax.nn.relu,
                         "silu": jax.nn.silu, "mish": jax.nn.mish, "round": jnp.round, "mul": operator.mul, "eq": operator.eq, "ne": operator.ne,
                         "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "pow": jnp.power,
                         "remainder": jnp.mod, "where": jnp.where, "floor_divide": jnp.floor_divide,
                         "reciprocal": lambda x: 1 / x, "lgamma": lax.lgamma, "digamma": lax.digamma,
                         "erfinv": lax.erf_inv, "sinc": jnp.sinc, "hypot": lambda x, y: _safe_root(x * x + y * y), "copysign": jnp.copysign,
                         "exp2": jnp.exp2, "ldexp": lambda x, y: x * jnp.exp2(y.astype(x.dtype)), "frexp": jnp.frexp, "signbit": jnp.signbit, "gcd": jnp.gcd,
                         "__lshift__": jnp.left_shift, "__rshift__": jnp.right_shift, "bitwise_left_shift": jnp.left_shift, "bitwise_right_shift": jnp.right_shift,
                         "i0": jax.scipy.special.i0, "special_i0e": jax.scipy.special.i0e, "special_i1": jax.scipy.special.i1,
                         "special_i1e": jax.scipy.special.i1e, "special_zeta": jax.scipy.special.zeta,
                         "special_ndtri": jax.scipy.special.ndtri, "special_log_ndtr": jax.scipy.special.log_ndtr,
                         "polygamma": jax.scipy.special.polygamma, "_is_all_true": jnp.all, "_is_any_true": jnp.any,
                         "log_sigmoid_forward": lambda x: (jax.nn.log_sigmoid(x), x)}.items():
    TABLE[_name] = _function
for _name in "clone alias lift_fresh_copy contiguous _to_copy lift view_as".split():
    TABLE[_name] = lambda x, *_, **__: x
TABLE["detach"] = lax.stop_gradient
TABLE["distc.index"] = _indices.check


@define("add")
def _add(x, y, alpha=1):
    return x + (y if alpha == 1 else alpha * y)


@define("sub")
def _sub(x, y, alpha=1):
    return x - (y if alpha == 1 else alpha * y)


@define("rsub")
def _rsub(x, y, alpha=1):
    return y - (x if alpha == 1 else alpha * x)


@define("div", "true_divide")
def _div(x, y, rounding_mode=None):
    if rounding_mode is None:
        return x / y
    if rounding_mode == "floor":
        return jnp.floor_divide(x, y)
    dtype = jnp.result_type(x, y)
    if not jnp.issubdtype(dtype, jnp.integer):
        return jnp.trunc(x / y)
    # Exactly: a float has no room for all integers.
    return lax.div(*jnp.broadcast_arrays(jnp.asarray(x, dtype), jnp.asarray(y, dtype)))


def _of_numbers_alone(function):
    """fmax and fmin: of a number and NaN the number."""
    return lambda x, y: function(jnp.where(jnp.isnan(x), y, x), jnp.where(jnp.isnan(y), x, y))


TABLE["fmax"] = _of_numbers_alone(jnp.maximum)
TABLE["fmin"] = _of_numbers_alone(jnp.minimum)


@define("abs")
def _abs(x):
    # Without a gradient at zero, where jnp.abs of real numbers has that of x.
    return x * lax.stop_gradient(jnp.sign(x)) if jnp.issubdtype(x.dtype, jnp.floating) else jnp.abs(x)


@define("clamp", "hardtanh")
def _clamp(x, low=None, high=None):
    # The gradient at a bound is shared with a bound that is a tensor; one that is a number leaves none to x.
    if low is not None:
        x = jnp.where(x <= low, low, x) if isinstance(low, (int, float)) else jnp.maximum(x, low)
    if high is not None:
        x = jnp.where(x >= high, high, x) if isinstance(high, (int, float)) else jnp.minimum(x, high)
    return x


@define("clamp_min")
def _clamp_min(x, low):
    return _clamp(x, low)


@define("clamp_max")
def _clamp_max(x, high):
    return _clamp(x, None, high)


@define("xlogy")
def _xlogy(x, y):
    # Zero times the logarithm of what has none is zero, without a gradient.
    is_zero = (x == 0) & ((y <= 0) | jnp.isinf(y))
    return jnp.where(is_zero, 0, x * jnp.log(jnp.where(is_zero, 1, y)))


@define("addcmul")
def _addcmul(x, a, b, value=1):
    return x + value * a * b


@define("addcdiv")
def _addcdiv(x, a, b, value=1):
    return x + value * a / b


@define("lerp")
def _lerp(x, end, weight):
    return x + weight * (end - x)


@define("masked_fill")
def _masked_fill(x, mask, value):
    return jnp.where(mask, value, x)


@define("gelu")
def _gelu(x, approximate="none"):
    return jax.nn.gelu(x, approximate=approximate == "tanh")


@define("leaky_relu")
def _leaky_relu(x, slope=0.01):
    return jnp.where(x > 0, x, slope * x)


@define("prelu", "_prelu_kernel")
def _prelu(x, slope):
    return jnp.where(x > 0, x, slope * x)


@define("elu")
def _elu(x, alpha=1, scale=1, input_scale=1):
    return scale * jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0, x) * input_scale))


@define("hardswish")
def _hardswish(x):
    return x * _clamp(x + 3, 0, 6) / 6


@define("hardsigmoid")
def _hardsigmoid(x):
    return _clamp(x + 3, 0, 6) / 6


@define("softplus")
def _softplus(x, beta=1, threshold=20):
    scaled = x * beta
    return jnp.where(scaled > threshold, x, jax.nn.softplus(jnp.minimum(scaled, threshold)) / beta)


@define("_softmax")
def _softmax(x, axis, half_to_float=False):
    return jax.nn.softmax(x, axis)


@define("_log_softmax")
def _log_softmax(x, axis, half_to_float=False):
    return jax.nn.log_softmax(x, axis)


def _safe_root(x):
    """The square root, whose gradient at zero is zero, as PyTorch says of norms and deviations, in place of infinity."""
    is_zero = x == 0
    return jnp.where(is_zero, 0, jnp.sqrt(jnp.where(is_zero, 1, x)))
