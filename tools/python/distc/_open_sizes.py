"""Operations of PyTorch that ask how large the batch is, with forms for a size that is open."""
from __future__ import annotations

import builtins
import collections
import contextlib
import math
from typing import Any, Callable, Iterator
from unittest import mock

import torch

from distc._ctc import ctc_loss
from distc._layers import with_open_layers
from distc._packed import with_packed_sequences


def is_known(condition: Any) -> bool:
    """Whether it holds for every size of the batch."""
    return torch.fx.experimental.symbolic_shapes.statically_known_true(condition)


_LeastSquares = collections.namedtuple("_LeastSquares", ("solution", "residuals", "rank", "singular_values"))


@contextlib.contextmanager
def with_open_parts() -> Iterator[None]:
    """Equal parts of a size that is open, diagonals from one on, covariances, even spaces and len(), which torch.export takes for questions how large it is; and
    whether a mask is causal, which it takes for one what it holds."""
    split, diagonal = torch.Tensor.split, torch.Tensor.diagonal

    # Parameters have PyTorch's names.
    def split_open(tensor: torch.Tensor, split_size: Any, dim: int = 0) -> Any:
        whole = tensor.shape[dim]
        if isinstance(split_size, (list, tuple)) and any(isinstance(size, torch.SymInt) for size in split_size) and is_known(sum(split_size) == whole):
            return tuple(tensor.narrow(dim, sum(split_size[:i]), size) for i, size in enumerate(split_size))
        if not isinstance(split_size, (int, torch.SymInt)) or isinstance(whole, int) or not is_known(whole % split_size == 0):
            return split(tensor, split_size, dim)
        return tuple(tensor.narrow(dim, i * split_size, split_size) for i in range(int(whole // split_size)))

    def chunk_open(input: torch.Tensor, chunks: int, dim: int = 0) -> Any:
        whole = input.shape[dim]
        if isinstance(whole, int) or not is_known(whole % chunks == 0):
            return chunk(input, chunks, dim)
        return tuple(input.narrow(dim, i * (whole // chunks), whole // chunks) for i in range(chunks))

    def diagonal_open(input: torch.Tensor, offset: Any = 0, dim1: int = 0, dim2: int = 1) -> torch.Tensor:
        if isinstance(offset, int):
            return diagonal(input, offset, dim1, dim2)
        below, right = (0, offset) if is_known(offset >= 0) else (-offset, 0)
        rows, columns = input.shape[dim1] - below, input.shape[dim2] - right
        count = rows if is_known(rows <= columns) else columns
        return diagonal(input.narrow(dim1, below, count).narrow(dim2, right, count), 0, dim1, dim2)

    def diag_open(input: torch.Tensor, diagonal: Any = 0) -> torch.Tensor:
        return diag(input, diagonal) if isinstance(diagonal, int) or input.ndim != 2 else diagonal_open(input, diagonal)

    def cdist_open(x1: torch.Tensor, x2: torch.Tensor, p: float = 2.0, compute_mode: str | None = None) -> torch.Tensor:
        # By default it asks whether there are more than 25 rows.
        return cdist(x1, x2, p, "donot_use_mm_for_euclid_dist")

    def take_along_open(input: torch.Tensor, indices: torch.Tensor, dim: int | None = None) -> torch.Tensor:
        if dim is None or input.ndim != indices.ndim:
            return take_along(input, indices, dim)
        axis = dim % input.ndim
        beside = torch.broadcast_shapes(*((*each.shape[:axis], 1, *each.shape[axis + 1:]) for each in (input, indices)))
        input, indices = (each.expand(*beside[:axis], each.shape[axis], *beside[axis + 1:]) for each in (input, indices))
        return input.gather(axis, indices)

    def cov_open(input: torch.Tensor, *, correction: int = 1, fweights: torch.Tensor | None = None, aweights: torch.Tensor | None = None) -> torch.Tensor:
        if fweights is not None or aweights is not None or input.ndim > 2:
            return cov(input, correction=correction, fweights=fweights, aweights=aweights)
        rows = input if input.ndim == 2 else input.reshape(1, -1)
        rows = rows - rows.mean(1, keepdim=True)
        product = rows @ rows.conj().T / (rows.shape[1] - correction)
        return product if input.ndim == 2 and input.shape[0] != 1 else product.reshape(())

    def corrcoef_open(input: torch.Tensor) -> torch.Tensor:
        product = cov_open(input)
        if product.ndim == 0:
            return product / product
        if product.is_complex():
            return corrcoef(input)
        deviations = product.diagonal().sqrt()
        return (product / deviations[:, None] / deviations).clip(-1, 1)

    def linspace_open(start: Any, end: Any, steps: Any, *, out: torch.Tensor | None = None, dtype: torch.dtype | None = None, **options: Any) -> torch.Tensor:
        dtype = dtype or torch.get_default_dtype()
        if not isinstance(steps, torch.SymInt) or out is not None or not dtype.is_floating_point:
            return linspace(start, end, steps, out=out, dtype=dtype, **options)
        start, end = (each.to(dtype) if isinstance(each, torch.Tensor) else torch.scalar_tensor(each, dtype=dtype) for each in (start, end))
        places = torch.arange(steps)
        step = (end - start) / torch.scalar_tensor(steps - 1, dtype=dtype).clamp(min=1)
        # As PyTorch counts: the second half from the end, but not a single one.
        return torch.where((places < steps // 2) | (places == 0), start + step * places, end - step * (steps - 1 - places))

    def is_causal_open(mask: torch.Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
        # Whether the mask, which is used where this is not true, is the causal one depends on what it holds.
        return is_causal is True

    def masked_select_open(input: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if input.shape != mask.shape:
            input, mask = torch.broadcast_tensors(input, mask)
        return input[mask]

    def lstsq_open(A: torch.Tensor, B: torch.Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
        # PyTorch's gradient of it is that of this product. How many residuals there are depends on the rank.
        is_vector = B.ndim == A.ndim - 1 and A.ndim > 1
        solution = torch.linalg.pinv(A, rtol=rcond) @ (B[..., None] if is_vector else B)
        return _LeastSquares(solution[..., 0] if is_vector else solution, None, torch.linalg.matrix_rank(A.detach(), rtol=rcond), None)

    def matrix_norm_open(A: torch.Tensor, ord: Any = "fro", dim: tuple[int, int] = (-2, -1), keepdim: bool = False, *, dtype: torch.dtype | None = None, **out: Any) -> torch.Tensor:
        # Of the largest or the least singular value it asks how large the batch is.
        if ord not in (2, -2) or out:
            return matrix_norm(A, ord, dim, keepdim, dtype=dtype, **out)
        values = torch.linalg.svdvals((A if dtype is None else A.to(dtype)).movedim(dim, (-2, -1)))
        found = values.amax(-1) if ord == 2 else values.amin(-1)
        for axis in sorted(each % A.ndim for each in dim) if keepdim else ():
            found = found.unsqueeze(axis)
        return found

    def norm_open(A: torch.Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None, dtype: torch.dtype | None = None) -> torch.Tensor:
        axes = (0, 1) if dim is None and A.ndim == 2 else dim
        if ord in (2, -2) and isinstance(axes, (tuple, list)) and length(axes) == 2 and out is None:
            return matrix_norm_open(A, ord, tuple(axes), keepdim, dtype=dtype)
        return norm(A, ord, dim, keepdim, out=out, dtype=dtype)

    def fill_diagonal_open(tensor: torch.Tensor, fill_value: Any, wrap: bool = False) -> torch.Tensor:
        if tensor.ndim != 2 or (wrap and not is_known(tensor.shape[0] <= tensor.shape[1])):
            return fill_diagonal(tensor, fill_value, wrap)
        rows, columns = (torch.arange(size, device=tensor.device) for size in tensor.shape)
        return tensor.masked_fill_(rows[:, None] == columns, fill_value)

    def join_copies(otherwise: Callable[..., torch.Tensor], tensor: torch.Tensor, given: tuple[Any, ...], named: dict[str, Any]) -> torch.Tensor:
        times = given or tuple(named.values())
        times = times[0] if length(times) == 1 and isinstance(times[0], (tuple, list, torch.Size)) else times
        is_open = [isinstance(size, torch.SymInt) for size in tensor.shape]
        if sum(is_open) < 2 or length(times) != tensor.ndim or not all(isinstance(each, int) and each > 0 for each in times):
            return otherwise(tensor, *given, **named)
        # Of a matrix of examples by examples: rows of it joined, which a reshape would not show.
        for axis, each in enumerate(times):
            tensor = torch.cat([tensor] * each, axis)
        return tensor

    def repeat_open(tensor: torch.Tensor, *repeats: Any, **named: Any) -> torch.Tensor:
        return join_copies(repeat, tensor, repeats, named)

    def tile_open(input: torch.Tensor, *dims: Any, **named: Any) -> torch.Tensor:
        return join_copies(tile, input, dims, named)

    def len_open(x: Any) -> Any:
        return x.shape[0] if isinstance(x, torch.Tensor) and x.ndim > 0 else length(x)

    def of_open(function: Callable[..., float], compute: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, *args: (compute if isinstance(x, (torch.SymInt, torch.SymFloat)) else function)(x, *args)

    def to_tensor(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Any], torch.Tensor]:
        return lambda x: function(torch.scalar_tensor(x, dtype=torch.float64))

    # Of a size, which math makes a number of Python's. Of logarithms torch.export writes down those of tensors alone.
    of_sizes = {"sqrt": lambda x: x ** 0.5, "exp": lambda x: math.e ** x, "log2": to_tensor(torch.log2), "log10": to_tensor(torch.log10), "log1p": to_tensor(torch.log1p),
                "log": lambda x, base=math.e: to_tensor(torch.log)(x) / log(base)}
    log = math.log
    length, chunk, diag, cdist = builtins.len, torch.Tensor.chunk, torch.Tensor.diag, torch.cdist
    take_along, cov, corrcoef, linspace = torch.take_along_dim, torch.cov, torch.corrcoef, torch.linspace
    matrix_norm, norm = torch.linalg.matrix_norm, torch.linalg.norm
    fill_diagonal, repeat, tile = torch.Tensor.fill_diagonal_, torch.Tensor.repeat, torch.Tensor.tile
    with contextlib.ExitStack() as stack:
        for name, function in (("split", split_open), ("chunk", chunk_open), ("diagonal", diagonal_open), ("diag", diag_open)):
            stack.enter_context(mock.patch.object(torch.Tensor, name, function))
            if name != "split":  # which calls the method
                stack.enter_context(mock.patch.object(torch, name, function))
        stack.enter_context(mock.patch.object(torch.Tensor, "fill_diagonal_", fill_diagonal_open))
        stack.enter_context(mock.patch.object(torch.Tensor, "repeat", repeat_open))
        for owner in (torch.Tensor, torch):
            for name, function in (("tile", tile_open), ("take_along_dim", take_along_open), ("masked_select", masked_select_open), ("cov", cov_open), ("corrcoef", corrcoef_open)):
                stack.enter_context(mock.patch.object(owner, name, function))
        stack.enter_context(mock.patch.object(torch.nn.modules.transformer, "_detect_is_causal_mask", is_causal_open))
        # It orders the products of torch.einsum by their sizes.
        stack.enter_context(mock.patch.object(torch.backends.opt_einsum, "enabled", False))
        stack.enter_context(mock.patch.object(torch, "cdist", cdist_open))
        stack.enter_context(mock.patch.object(torch, "linspace", linspace_open))
        stack.enter_context(mock.patch.object(torch, "ctc_loss", ctc_loss))
        stack.enter_context(with_packed_sequences())
        stack.enter_context(with_open_layers())
        for name, function in (("lstsq", lstsq_open), ("matrix_norm", matrix_norm_open), ("norm", norm_open)):
            stack.enter_context(mock.patch.object(torch.linalg, name, function))
        stack.enter_context(mock.patch.object(builtins, "len", len_open))
        for name, compute in of_sizes.items():
            stack.enter_context(mock.patch.object(math, name, of_open(getattr(math, name), compute)))
        yield
