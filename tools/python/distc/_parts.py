"""Batches that a loss takes apart into equal parts: torch.export makes none of a size that is a symbol. It is given a batch that lies in as many rows
as an example of the parts has, of which the loss sees all examples behind each other: their number is a product, of which it knows the parts."""
from __future__ import annotations

import re
from typing import Any

import torch
from torch.utils import _pytree

_MOST_PARTS, _MOST_TRIES = 64, 4

_library = torch.library.Library("distc", "FRAGMENT")
# Rows of examples as examples. Where a step is run both are one array.
_library.define("join(Tensor rows) -> Tensor")
_library.impl("join", lambda rows: rows.flatten(0, 1).clone(), "CompositeExplicitAutograd")

JOIN = torch.ops.distc.join.default


def find_multiples(batch: Any, error: str) -> list[int]:
    """Of how many examples parts of the batch may be, where torch.export has said what it does not know of their number: what it asks for, or else numbers by
    which that of the example can be divided."""
    examples = min(leaf.shape[0] for leaf in _pytree.tree_leaves(batch))
    asked = [int(each) for each in re.findall(r"batch = (\d+)\*_batch", error)]
    return [each for each in dict.fromkeys([*asked, *range(2, _MOST_PARTS + 1)]) if examples % each == 0][:_MOST_TRIES]


def take_apart(batch: Any, multiple: int) -> Any:
    """At least two rows of `multiple` examples."""
    if multiple == 1:
        return batch

    def reshape(leaf: torch.Tensor) -> torch.Tensor:
        if leaf.shape[0] % multiple:
            raise ValueError(f"the batch has {leaf.shape[0]} examples, which are no multiple of {multiple}")
        whole = leaf if leaf.shape[0] > multiple else torch.cat([leaf] * 2)
        return whole.reshape(-1, multiple, *leaf.shape[1:])

    return _pytree.tree_map(reshape, batch)


def join(batch: Any, multiple: int) -> Any:
    return batch if multiple == 1 else _pytree.tree_map(torch.ops.distc.join, batch)
