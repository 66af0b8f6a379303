"""Layers, losses and counts that ask Python what a tensor holds, as operations that do not."""
from __future__ import annotations

import contextlib
import math
from typing import Any, Iterator
from unittest import mock

import torch
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm


def _gaussian_nll_loss(input: torch.Tensor, target: torch.Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> torch.Tensor:
    """PyTorch ends with an error where a variance is negative: here the loss is no number there."""
    if not isinstance(var, torch.Tensor):
        return _gaussian_nll(input, target, var, full, eps, reduction)
    if var.ndim == input.ndim - 1:
        var = var.unsqueeze(-1)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    # The least variance has a gradient, as in PyTorch.
    var = var + (torch.where(var < 0, math.nan, var.clamp(min=eps)) - var).detach()
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    loss = loss + 0.5 * math.log(2 * math.pi) if full else loss
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def _normalize(module: _BatchNorm, input: torch.Tensor) -> torch.Tensor:
    if module.momentum is not None or not module.training or not module.track_running_stats or module.num_batches_tracked is None:
        return _batch_norm(module, input)
    # The mean of all batches until now, whose share is none of Python's numbers.
    module._check_input_dim(input)
    module.num_batches_tracked.add_(1)
    with torch.no_grad():
        share = 1 / module.num_batches_tracked.to(module.running_mean.dtype)
        variance, mean = torch.var_mean(input.detach().to(share.dtype), (0, *range(2, input.ndim)))
        module.running_mean.add_(share * (mean - module.running_mean))
        module.running_var.add_(share * (variance - module.running_var))
    return F.batch_norm(input, None, None, module.weight, module.bias, True, 0.0, module.eps)


def _bincount(input: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0) -> torch.Tensor:
    """As many counts as it is to have at least; of a value beyond them, for which PyTorch has more, the run ends."""
    if not isinstance(minlength, int) or minlength < 1:
        return _counts(input, weights, minlength)
    places = F.one_hot(input.long(), minlength)
    if weights is None:
        return places.sum(0)
    weights = weights.detach() if weights.dtype == torch.float32 else weights.detach().double()
    return (places * weights[:, None]).sum(0)


_gaussian_nll, _batch_norm, _counts = F.gaussian_nll_loss, _BatchNorm.forward, torch.bincount


@contextlib.contextmanager
def with_open_layers() -> Iterator[None]:
    with mock.patch.object(F, "gaussian_nll_loss", _gaussian_nll_loss), mock.patch.object(_BatchNorm, "forward", _normalize), \
            mock.patch.object(torch, "bincount", _bincount), mock.patch.object(torch.Tensor, "bincount", _bincount):
        yield
