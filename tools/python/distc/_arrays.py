"""Tensors of PyTorch as arrays of JAX."""
from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

from distc._aten import to_dtype

Arrays = dict[str, Any]


def to_array(tensor: torch.Tensor) -> np.ndarray:
    """As JAX has it."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        return np.asarray(jnp.asarray(tensor.float().numpy()).astype(jnp.bfloat16))
    return np.asarray(tensor.numpy()).astype(to_dtype(tensor.dtype))
