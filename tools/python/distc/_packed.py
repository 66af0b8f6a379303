"""Sequences of several lengths in nn.LSTM, nn.GRU and nn.RNN. PyTorch packs their steps behind each other, as many as the lengths say; here all
steps are computed, and those behind a sequence's end leave its state as it is."""
from __future__ import annotations

import contextlib
import inspect
import types
from typing import Any, Iterator
from unittest import mock

import torch
from torch import nn
from torch.nn.utils import rnn

_TAKEN = "pack_padded_sequence, into nn.LSTM, nn.GRU or nn.RNN, and pad_packed_sequence of what comes out"


class _Packed:
    """What stands for a PackedSequence: all steps [time, examples, ...], and how many of them are each sequence's."""

    def __init__(self, steps: torch.Tensor, lengths: torch.Tensor):
        self.steps, self.lengths = steps, lengths

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"there is no code for '{name}' of a PackedSequence, but for {_TAKEN}")

    def __iter__(self) -> Any:
        raise NotImplementedError(f"there is no code for the parts of a PackedSequence, but for {_TAKEN}")

    def __getitem__(self, number: Any) -> Any:
        return self.__iter__()


def _get_mask(packed: _Packed) -> torch.Tensor:
    """[time, examples, 1]: which steps are there."""
    return (torch.arange(packed.steps.shape[0], device=packed.steps.device)[:, None] < packed.lengths)[:, :, None]


def _pack(input: torch.Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> _Packed:
    steps = input.transpose(0, 1) if batch_first else input
    lengths = lengths if isinstance(lengths, torch.Tensor) else torch.tensor(lengths)
    time = steps.shape[0]
    if isinstance(time, int):  # PyTorch refuses more; and 0, which leaves the state here as it was.
        lengths = torch.ops.distc.index(lengths.long(), time + 1)
    return _Packed(steps, lengths)


def _pad(sequence: Any, batch_first: bool = False, padding_value: float = 0.0, total_length: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    if not isinstance(sequence, _Packed):
        raise NotImplementedError(f"there is no code for a PackedSequence that was made otherwise than by {_TAKEN}")
    if total_length is None:
        raise NotImplementedError("pad_packed_sequence gives as many steps as the longest sequence of the batch has, of which no size is known: say how many "
                                  "with total_length (those of the padded input, x.size(1))")
    time = sequence.steps.shape[0]
    if isinstance(total_length, int) and isinstance(time, int) and total_length < time:
        raise NotImplementedError(f"pad_packed_sequence with a total_length of {total_length} takes sequences of so many steps at most, and these may have {time}: pack the first "
                                  f"{total_length}, or say a total_length of {time}")
    is_there = _get_mask(sequence)
    rows = sequence.steps
    values = torch.where(is_there.reshape(*is_there.shape[:2], *[1] * (rows.ndim - 2)), rows, padding_value)
    if total_length != time:
        values = torch.cat([values, values.new_full((total_length - time, *values.shape[1:]), padding_value)])
    return values.transpose(0, 1) if batch_first else values, sequence.lengths


def _refuse(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"there is no code for {name}: write {_TAKEN}")
    return refuse


def _run_direction(module: nn.RNNBase, x: torch.Tensor, is_there: torch.Tensor, weights: list[torch.Tensor], h: torch.Tensor, c: torch.Tensor | None,
                   is_reverse: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """One direction of a layer: its values [time, examples, ...], and the states behind the last step of each sequence."""
    w_ih, w_hh = weights[:2]
    b_ih, b_hh = weights[2:4] if module.bias else (None, None)
    w_hr = weights[-1] if module.proj_size else None
    values = []
    # Each step is written down, so that what can be of all is.
    steps = list(zip(nn.functional.linear(x, w_ih, b_ih).unbind(0), is_there.unbind(0)))
    for given, now in reversed(steps) if is_reverse else steps:
        own = nn.functional.linear(h, w_hh, b_hh)
        new_c = c
        if module.mode == "LSTM":
            i, f, g, o = (given + own).chunk(4, -1)
            new_c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            new_h = o.sigmoid() * new_c.tanh()
            new_h = new_h if w_hr is None else nn.functional.linear(new_h, w_hr)
        elif module.mode == "GRU":
            (r, z, n), (own_r, own_z, own_n) = given.chunk(3, -1), own.chunk(3, -1)
            n, z = (n + (r + own_r).sigmoid() * own_n).tanh(), (z + own_z).sigmoid()
            new_h = (h - n) * z + n
        else:
            new_h = (given + own).tanh() if module.mode == "RNN_TANH" else (given + own).relu()
        h = torch.where(now, new_h, h)
        c = None if c is None else torch.where(now, new_c, c)
        values.append(h)
    return torch.stack(values[::-1] if is_reverse else values), h, c


def _run(module: nn.RNNBase, packed: _Packed, hx: Any = None) -> tuple[_Packed, Any]:
    """What the module gives of sequences of several lengths."""
    directions = 2 if module.bidirectional else 1
    is_lstm, is_there = module.mode == "LSTM", _get_mask(packed)
    # Whatever stands behind an end (NaN) is to have no part in a gradient.
    x = torch.where(is_there, packed.steps, 0)
    if hx is None:
        counts = module.num_layers * directions, x.shape[1]
        hx = x.new_zeros(*counts, module.proj_size or module.hidden_size)
        hx = (hx, x.new_zeros(*counts, module.hidden_size)) if is_lstm else hx
    elif any(each.ndim != 3 for each in (hx if is_lstm else [hx])):
        raise ValueError("the state that sequences begin with is one of three axes: layers, examples, elements")
    h0, c0 = hx if is_lstm else (hx, None)
    last: list[tuple[torch.Tensor, torch.Tensor | None]] = []
    for layer in range(module.num_layers):
        values = []
        for direction in range(directions):
            place = layer * directions + direction
            value, h, c = _run_direction(module, x, is_there, list(module.all_weights[place]), h0[place], None if c0 is None else c0[place], direction == 1)
            values.append(value)
            last.append((h, c))
        x = torch.cat(values, -1) if directions == 2 else values[0]
        if module.dropout and module.training and layer + 1 < module.num_layers:
            x = nn.functional.dropout(x, module.dropout)
    h = torch.stack([each for each, _ in last])
    state = (h, torch.stack([each for _, each in last if each is not None])) if is_lstm else h
    return _Packed(x, packed.lengths), state


def _enter(name: str) -> types.CodeType:
    """The code of a function of torch.nn.utils.rnn that calls ours."""
    scope: dict[str, Any] = {}
    function = getattr(rnn, name)
    given = ", ".join(inspect.signature(function).parameters)
    exec(f"def {name}({given}):\n    from distc import _packed\n    return _packed.OURS['{name}']({given})", scope)
    return scope[name].__code__


OURS = {"pack_padded_sequence": _pack, "pad_packed_sequence": _pad, **{name: _refuse(name) for name in ("pack_sequence", "unpack_sequence")}}


@contextlib.contextmanager
def with_packed_sequences() -> Iterator[None]:
    """Packs, unpacks and computes sequences of several lengths in this way."""
    with contextlib.ExitStack() as stack:
        for name in OURS:  # Whoever has imported them has the functions themselves.
            function = getattr(rnn, name)
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _enter(name)
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            def forward(module: Any, input: Any, hx: Any = None, *, otherwise: Any = kind.forward) -> Any:
                return _run(module, input, hx) if isinstance(input, _Packed) else otherwise(module, input, hx)
            stack.enter_context(mock.patch.object(kind, "forward", forward))
        yield
