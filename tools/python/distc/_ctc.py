"""torch.ctc_loss as operations of PyTorch: its own asks Python how long each sequence is."""
from __future__ import annotations

import math
from typing import Any

import torch

# The logarithm of what cannot be. A number, as differences of infinities are none.
_NEVER = -1e30


def _to_lengths(lengths: Any, like: torch.Tensor) -> torch.Tensor:
    return lengths.long() if isinstance(lengths, torch.Tensor) else torch.tensor(lengths, device=like.device)


def ctc_loss(log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 1,
             zero_infinity: bool = False) -> torch.Tensor:
    """`log_probs` [time, examples, classes], `targets` [examples, labels], lengths [examples]; `reduction`: 0 none, 1 mean, 2 sum."""
    if log_probs.ndim != 3 or targets.ndim != 2:
        raise NotImplementedError("there is code for ctc_loss of log_probs [time, examples, classes] and targets [examples, labels] alone: fill up shorter ones, whose labels are behind each other "
                                  "otherwise, and say how long they are (target_lengths)")
    times, labels = log_probs.shape[0], targets.shape[1]
    input_lengths, target_lengths = _to_lengths(input_lengths, targets), _to_lengths(target_lengths, targets)
    targets = torch.where(torch.arange(labels) < target_lengths[:, None], targets.long(), blank)
    # A blank before each label, and behind the last.
    blanks = torch.full_like(targets, blank)
    states = torch.cat([torch.stack([blanks, targets], 2).flatten(1), torch.full_like(target_lengths, blank)[:, None]], 1)
    # From one label to the next without a blank between, where they differ.
    may_skip = torch.nn.functional.pad((states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2]), (2, 0))
    skips = torch.where(may_skip, 0, _NEVER).to(log_probs.dtype)
    counts = torch.arange(times)[:, None] < input_lengths
    # Of each time few operations, as each is written down.
    chances = log_probs.gather(2, states.expand(times, -1, -1)).unbind(0)
    paths = torch.where(torch.arange(2 * labels + 1) < 2, chances[0], _NEVER)
    for chance, is_there in zip(chances[1:], counts.unsqueeze(2).unbind(0)[1:]):
        before = torch.nn.functional.pad(paths, (2, 0), value=_NEVER)
        ways = [paths, before.narrow(1, 1, 2 * labels + 1), before.narrow(1, 0, 2 * labels + 1) + skips]
        paths = torch.where(is_there, torch.logsumexp(torch.stack(ways), 0) + chance, paths)
    last = paths.gather(1, 2 * target_lengths[:, None])
    before = torch.where(target_lengths[:, None] > 0, paths.gather(1, (2 * target_lengths[:, None] - 1).clamp(min=0)), _NEVER)
    loss = -torch.logsumexp(torch.cat([last, before], 1), 1)
    loss = torch.where(input_lengths > 0, loss, torch.where(target_lengths > 0, -_NEVER, 0.0).to(loss.dtype))
    is_impossible = loss.detach() > -_NEVER / 10
    # PyTorch's gradient is that of probabilities whose sum is one, whatever they are.
    sums = torch.where(counts, log_probs.exp().sum(2), 0).sum(0)
    loss = loss + (sums - sums.detach())
    if zero_infinity:
        loss = torch.where(is_impossible, 0, loss)
    else:
        loss = loss * torch.where(is_impossible, math.inf, 1.0).to(loss.dtype)
    if reduction == 1:
        return (loss / target_lengths.clamp(min=1).to(loss.dtype)).mean()
    return loss.sum() if reduction == 2 else loss
