"""What a step asks of the open size of its batch: whether it is some number.

JAX answers that a symbolic size is no number (and says itself that this is unsound), so that `if x.shape[0] % 2 == 0` goes another way
than for the batches that the step is then given. What contradicts the example is refused.
"""
from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import jax
from jax._src.export import shape_poly

_JAX = str(pathlib.Path(jax.__file__).parent)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One that was answered with no."""

    size: Any
    other: Any
    place: str

    def check(self, b: int) -> None:
        """Fails where the two are equal in a batch of which JAX's symbol is `b`."""
        size, other = (int(each._evaluate({"b": b})) if isinstance(each, shape_poly._DimExpr) else int(each) for each in (self.size, self.other))
        if size == other:
            raise ValueError(
                f"the step asks in Python whether a size that follows from the batch's, {self.size}, is {self.other} ({self.place}): it is for the examples that are "
                "given, but the step is written down for any number of them, and JAX takes the answer for no. Compute with the size (jnp.where(x.shape[0] % 2 == 0, …)), "
                "leave the question out, or export with another number of examples where the two are equal by chance")


@contextlib.contextmanager
def watched_comparisons() -> Iterator[list[Comparison]]:
    """The comparisons with open sizes that something other than JAX makes inside, with the answer no."""
    found: list[Comparison] = []
    original = shape_poly._DimExpr.__eq__

    def equals(self: Any, other: Any) -> Any:
        answer = original(self, other)
        if answer is False and isinstance(other, (int, shape_poly._DimExpr)):
            frame = sys._getframe(1)
            if frame.f_code.co_name == "__ne__" and frame.f_back is not None:
                frame = frame.f_back
            if not frame.f_code.co_filename.startswith((_JAX, "<")):
                found.append(Comparison(self, other, f"{frame.f_code.co_filename}:{frame.f_lineno}"))
        return answer

    shape_poly._DimExpr.__eq__ = equals
    try:
        yield found
    finally:
        shape_poly._DimExpr.__eq__ = original
