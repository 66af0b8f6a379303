"""What the step of a module does to tensors' memory and gradients that torch.export does not write down."""
from __future__ import annotations

import collections
import contextlib
import dataclasses
import gc
import os
import sys
import weakref
from typing import Any, Callable, Iterable, Iterator, Mapping
from unittest import mock

import jax
import torch
import torch.utils.checkpoint
from torch.utils import _pytree
from torch.utils.checkpoint import CheckpointFunction

from distc._functions import call as call_function
from distc._open_sizes import is_known


@contextlib.contextmanager
def with_known_gradients(module: torch.nn.Module, memory: Memory) -> Iterator[None]:
    """Refuses what changes gradients where torch.export, which writes the forward pass, would say nothing of it. What is to be computed
    again for its gradient (torch.utils.checkpoint) is computed as it stands."""
    apply = torch.autograd.Function.__dict__["apply"]

    def get_versions() -> dict[str, tuple[int, ...]]:
        parameters = {id(parameter) for parameter in module.parameters()}
        return {name: (id(tensor), tensor._version, 0 if id(tensor) in parameters else memory.statistics.count(id(tensor)))
                for name, tensor in get_state(module).items()}

    def expect_unchanged(before: Mapping[str, tuple[int, ...]]) -> None:
        if torch.is_grad_enabled() and (changed := [name for name, version in get_versions().items() if before.get(name) != version]):
            raise NotImplementedError(f"the loss changes '{changed[0]}' of the module in a function that torch.utils.checkpoint calls, and once more where PyTorch calls it "
                                      "again for its gradient: call it without, as distc chooses itself what is computed again (--max-memory)")

    def compute_at_once(*args: Any, **kwargs: Any) -> Iterator[None]:
        before = get_versions()
        yield
        expect_unchanged(before)

    def call_known(function: Any, *args: Any, **kwargs: Any) -> Any:
        if function.__name__.startswith("GeneratedBackwardFor_"):  # Of an operation of a library, which is in the graph whole.
            return apply.__get__(None, function)(*args, **kwargs)
        if function is CheckpointFunction:
            called, _, *given = args
            if not any(isinstance(each, torch.Tensor) and each.requires_grad for each in given):
                with torch.no_grad():  # It has none, whatever it reads.
                    return called(*given)
            before = get_versions()
            result = called(*given)
            expect_unchanged(before)
            return result
        if kwargs:
            raise TypeError(f"{function.__name__}.apply takes no keyword arguments")
        return call_function(function, args)

    def refuse_hook(tensor: torch.Tensor, hook: Any) -> Any:
        raise NotImplementedError("there is no code for hooks of gradients (Tensor.register_hook): write what it does of operations, as "
                                  "x * 2 - x.detach() for x with twice its gradient")

    enter_inference, set_enabled = torch.inference_mode.__enter__, torch.set_grad_enabled.__init__

    def refuse_inference(mode: Any) -> Any:
        if mode.mode:  # PyTorch itself enters others, which leave it off.
            raise NotImplementedError("torch.export does not write down torch.inference_mode: use torch.no_grad")
        return enter_inference(mode)

    def refuse_inside_autocast(mode: Any, enabled: bool) -> None:
        if not enabled and torch.is_autocast_enabled("cpu"):
            raise NotImplementedError("torch.export does not write down torch.no_grad or torch.set_grad_enabled inside of torch.autocast: put it "
                                      "around, or detach the results")
        set_enabled(mode, enabled)

    with contextlib.ExitStack() as stack:
        for name in ("_checkpoint_without_reentrant_generator", "_checkpoint_without_reentrant_generator_impl"):  # of earlier and later versions
            if hasattr(torch.utils.checkpoint, name):
                stack.enter_context(mock.patch.object(torch.utils.checkpoint, name, compute_at_once))
        stack.enter_context(mock.patch.object(torch.autograd.Function, "apply", classmethod(call_known)))
        stack.enter_context(mock.patch.object(torch.Tensor, "register_hook", refuse_hook))
        stack.enter_context(mock.patch.object(torch.inference_mode, "__enter__", refuse_inference))
        stack.enter_context(mock.patch.object(torch.set_grad_enabled, "__init__", refuse_inside_autocast))  # torch.no_grad makes one.
        yield


def _may_overlap(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether both have an element in one place of memory, as far as is known."""
    if any(each.layout != torch.strided for each in (tensor, other)) or tensor.untyped_storage()._cdata != other.untyped_storage()._cdata:
        return False

    def get_last(each: torch.Tensor) -> Any:
        return each.storage_offset() + sum((size - 1) * stride for size, stride in zip(each.shape, each.stride()))

    # In elements, which are bytes where the types differ.
    return tensor.dtype != other.dtype or not (is_known(get_last(tensor) < other.storage_offset()) or is_known(get_last(other) < tensor.storage_offset()))


@contextlib.contextmanager
def with_assigned_buffers(module: torch.nn.Module, assigned: collections.deque[tuple[str, str, torch.Tensor]], memory: Memory) -> Iterator[None]:
    """A buffer that forward assigns anew (`self.mean = 0.9 * self.mean + ...`) is written at its end: torch.export sees what is written in
    place alone. Tensors that are no buffers, and were assigned, are appended to `assigned`: the module's class, the name, what it was."""
    assign = torch.nn.Module.__setattr__
    originals: dict[tuple[torch.nn.Module, str], torch.Tensor] = {}
    before = get_state(module)

    def watch(part: torch.nn.Module, name: str, value: Any) -> None:
        buffer = part.__dict__.get("_buffers", {}).get(name)
        if isinstance(buffer, torch.Tensor) and isinstance(value, torch.Tensor):
            originals.setdefault((part, name), buffer)
        old = part.__dict__.get(name)
        if isinstance(old, torch.Tensor) and isinstance(value, torch.Tensor):
            assigned.append((type(part).__name__, name, old))
        assign(part, name, value)

    with mock.patch.object(torch.nn.Module, "__setattr__", watch):
        yield
    for (part, name), original in originals.items():
        value = part._buffers[name]
        if value is None or value.shape != original.shape or value.dtype != original.dtype:
            what = "none" if value is None else f"one {list(value.shape)} of {value.dtype}"
            raise NotImplementedError(f"the loss makes the buffer '{name}' of {type(part).__name__}, which is {list(original.shape)} of {original.dtype}, {what}: keep its "
                                      "shape and type")
    memory.expect_one_each(before, get_state(module))
    new = {key: key[0]._buffers[key[1]] for key, original in originals.items() if key[0]._buffers[key[1]] is not original}
    memory.assigned.extend(originals[key] for key in new)
    with torch.no_grad():
        # Of what two of them exchange each is written before the other one is read.
        values = {key: value.clone() if len(new) > 1 else value for key, value in new.items()}
        for (part, name), original in originals.items():
            part._buffers[name] = original
            if (part, name) in values:
                original.copy_(values[part, name])


@dataclasses.dataclass
class _Detached:
    """A tensor without its history, and the one whose memory it is."""

    value: Callable[[], torch.Tensor | None]
    of: torch.Tensor


@dataclasses.dataclass
class _Given:
    """A tensor that was assigned to .data of a parameter or buffer: with PyTorch both are one memory, in the exported step one is a copy."""

    of: torch.Tensor
    of_version: int
    value: torch.Tensor
    value_version: int


class Memory:
    """Which tensors of a step are one memory behind the back of torch.export."""

    def __init__(self) -> None:
        self.given: list[_Given] = []
        self.assigned: list[torch.Tensor] = []  # buffers that are others behind the step
        self.statistics: list[int] = []  # identities of what normalizations have been given to update, of which no version tells

    def give(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        with torch.no_grad():
            tensor.copy_(value)
        self.given.append(_Given(tensor, tensor._version, value, value._version))

    def expect_unread(self, tensors: Iterable[Any]) -> None:
        """Refuses tensors that are read and would have changed along with a parameter or buffer."""
        changed = [each.value for each in self.given if each.of._version != each.of_version]
        if changed and any(_may_overlap(tensor, value) for tensor in tensors if isinstance(tensor, torch.Tensor) for value in changed):
            raise NotImplementedError("the loss assigns a tensor to .data of a parameter or buffer, changes that in place, and reads the tensor, which has changed as "
                                      "well: write copy_ with torch.no_grad() around, or assign x.clone()")

    def expect_known_writes(self) -> None:
        if any(each.value._version != each.value_version for each in self.given):
            raise NotImplementedError("the loss changes a tensor that it has assigned to .data of a parameter or buffer: write copy_ with torch.no_grad() around")

    def expect_one_each(self, before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> None:
        """Refuses a module two of whose tensors lie in one memory behind the step because of it: the next step changes both."""
        given = {id(each.of): each.value for each in self.given}
        # Of a tensor with several names one.
        now = {id(before.get(name, tensor)): (name, given.get(id(tensor), tensor), id(tensor) in given or before.get(name) is not tensor) for name, tensor in after.items()}
        for name, tensor, is_new in now.values():
            for other, each, _ in now.values():
                if is_new and other != name and _may_overlap(tensor, each):
                    raise NotImplementedError(f"the loss gives '{name}' and '{other}' of the module one memory, so that later steps change both: assign x.clone() to one of them, or make "
                                              "them one before the export")


def _has_views(tensor: torch.Tensor) -> bool:
    """Whether somebody has a part of it."""
    for each in gc.get_objects():
        if issubclass(type(each), torch.Tensor):
            with contextlib.suppress(RuntimeError):  # of a view that may not be used any more
                if each._base is tensor:
                    return True
    return False


def expect_what_gradients_need(value: Any, memory: Memory) -> None:
    """Refuses a loss that has changed what its gradient is computed from: by .data PyTorch does so without a word."""
    nodes = [leaf.grad_fn for leaf in _pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        for name in dir(node):
            # Of tensors: a number that is made of the batch's size would be asked for what it is.
            if not name.startswith("_saved_") or not hasattr(type(node), f"_raw{name}"):
                continue
            try:
                saved = getattr(node, name)
            except RuntimeError as error:
                if "modified by an inplace operation" not in str(error):
                    continue
                raise NotImplementedError(f"the loss changes a tensor by .data, detach() or copy_ after {node.name()} has used it, whose gradient is of what it was "
                                          "in the exported step: change it before, or at the end of a step without gradients of it (use x.clone())") from error
            memory.expect_unread(_pytree.tree_leaves(saved))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)


@contextlib.contextmanager
def with_kept_parameters(module: torch.nn.Module, memory: Memory) -> Iterator[None]:
    """Refuses a parameter or buffer that is another tensor afterwards, whose new values torch.export would not see, and a parameter that is
    frozen or trained in a part of the step alone."""
    parameters = {id(parameter) for parameter in module.parameters()}
    set_gradient, toggle = torch.Tensor.requires_grad, torch.Tensor.requires_grad_  # type: ignore[attr-defined]

    def refuse_toggle(tensor: torch.Tensor, value: bool) -> None:
        if id(tensor) in parameters and bool(value) != set_gradient.__get__(tensor):
            raise NotImplementedError("the loss changes requires_grad of a parameter, which torch.export does not write down: set it before the export, or "
                                      "call the module with detached parameters (torch.func.functional_call)")

    def toggle_watched(tensor: torch.Tensor, value: bool = True) -> torch.Tensor:
        refuse_toggle(tensor, value)
        return toggle(tensor, value)

    def set_watched(tensor: torch.Tensor, value: bool) -> None:
        refuse_toggle(tensor, value)
        set_gradient.__set__(tensor, value)

    set_memory = torch.Tensor.set_

    def refuse_set(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if sys._getframe(1).f_code.co_filename.startswith(LIBRARIES):  # which makes its tensors without memory so
            return set_memory(tensor, *args, **kwargs)
        raise NotImplementedError("there is no code for set_, which gives a tensor the memory of another one: write copy_ with torch.no_grad() around")

    def refuse_swap(*args: Any) -> Any:
        raise NotImplementedError("there is no code for torch.utils.swap_tensors: exchange what they hold (old = a.clone(); a.copy_(b); b.copy_(old)) with torch.no_grad() around")

    def refuse_conversion(part: torch.nn.Module, convert: Any, recurse: bool = True) -> torch.nn.Module:
        # Of the type that it has (module.to(x.dtype)) it is what it was.
        if all(convert(tensor) is tensor for tensor in (*part.parameters(recurse), *part.buffers(recurse))):
            return part
        raise NotImplementedError(f"the loss converts the tensors of {type(part).__name__} (.to, .double, .half): convert the module before the export, or in the loss the values that it is given and "
                                  "gives")

    taken: list[_Detached] = []  # what .data and detach() gave
    detach = torch.Tensor.detach

    def get_data(tensor: torch.Tensor) -> torch.Tensor:
        # The same memory without its history, which torch.export sees what is written to.
        value = detach(tensor)
        taken.append(_Detached(weakref.ref(value), tensor))
        return value

    def set_data_watched(tensor: torch.Tensor, value: torch.Tensor) -> None:
        if any(each.of is tensor and each.value() is value for each in taken):
            return  # as it was
        if not any(tensor is each for each in before.values()):
            if not isinstance(tensor, torch._subclasses.FakeTensor):
                raise NotImplementedError("the loss assigns to .data of a tensor that is no parameter or buffer of the module: make it one, or a part of the module")
            raise NotImplementedError("the loss assigns to .data of a tensor that it has computed, of which torch.export sees nothing: write x + (value - x).detach() "
                                      "for a tensor with another value and the gradient of x")
        if value.shape != tensor.shape or value.dtype != tensor.dtype:
            raise NotImplementedError(f"the loss assigns a tensor {list(value.shape)} of {value.dtype} to .data of a parameter or buffer {list(tensor.shape)} of "
                                      f"{tensor.dtype}, which torch.export does not see: write copy_ with torch.no_grad() around")
        # The exported step writes to the memory that there is, which is the same unless somebody has the old or the new one as well.
        if any(each.value() is value for each in taken) or any(value is each for each in before.values()):
            raise NotImplementedError("the loss assigns the memory of one tensor to .data of another, so that later both change: write copy_ with torch.no_grad() around")
        if any(each.of is tensor and each.value() is not None for each in taken) or _has_views(tensor):
            raise NotImplementedError("the loss assigns to .data of a parameter or buffer and keeps what it was (x = p.data, p.detach(), p[:2]): write copy_ with torch.no_grad() around, "
                                      "and keep p.clone()")
        memory.give(tensor, value)

    before = get_state(module)
    # What a refused step has made of them is of no use to whoever goes on without it.
    registered = [(kept, dict(kept)) for part in module.modules() for kept in (part._parameters, part._buffers)]
    with mock.patch.object(torch.Tensor, "requires_grad_", toggle_watched), \
            mock.patch.object(torch.Tensor, "requires_grad", property(set_gradient.__get__, set_watched), create=True), \
            mock.patch.object(torch.nn.Module, "_apply", refuse_conversion), mock.patch.object(torch.Tensor, "set_", refuse_set), mock.patch.object(torch.utils, "swap_tensors", refuse_swap), \
            mock.patch.object(torch.Tensor, "detach", get_data), mock.patch.object(torch, "detach", get_data), \
            mock.patch.object(torch.Tensor, "data", property(get_data, set_data_watched), create=True):
        try:
            yield
            memory.expect_known_writes()
        finally:
            after = get_state(module)
            for kept, tensors in registered:
                kept.clear()
                kept.update(tensors)
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) is not after.get(name):
            raise NotImplementedError(f"the loss makes '{name}' of the module another tensor, whose values the exported step would lose: write them in place, "
                                      "as self.x.copy_(value), with torch.no_grad() around where it is a parameter")


LIBRARIES = tuple(os.path.dirname(each.__file__) + os.sep for each in (torch, jax)) + (os.path.dirname(__file__) + os.sep,)


def get_state(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers under all of their names."""
    return dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
