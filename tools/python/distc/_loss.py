"""A module with its loss, as the one module that torch.export writes down."""
from __future__ import annotations

import collections
from typing import Any, Callable, Mapping

import torch
from torch.utils import _pytree

from distc._indices import with_checked_classes
from distc._memory import expect_what_gradients_need, get_state, Memory, with_assigned_buffers, with_kept_parameters, with_known_gradients
from distc._parts import join
from distc._python_state import PythonState

Loss = Callable[[torch.nn.Module, Any], Any]


class _Log(collections.deque):
    """What was seen while a step was exported."""


# Of tensors, what gives them other memory or the memory itself away.
_MEMORY_ITSELF = ("untyped_storage", "storage", "_typed_storage", "data_ptr")
_IN_PLACE = ("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__", "__iand__", "__ior__", "__ixor__")


class _Called(torch.overrides.TorchFunctionMode):
    """What the loss calls of PyTorch. Parameters and buffers that it reaches otherwise than through the module (a list of them, a variable)
    are those that torch.export has put in the module's place of them; what changes a tensor behind its gradient's back is refused."""

    def __init__(self, replaced: Mapping[int, torch.Tensor], memory: Memory):
        super().__init__()
        self.replaced, self.memory = replaced, memory
        self.reached: list[torch.Tensor] = []  # of the module's tensors, those that were reached so
        # With a gradient, and no views: of which version, and what it was made by.
        self.made: list[tuple[torch.Tensor, int, Any]] = []

    def __torch_function__(self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        name, changed = getattr(function, "__name__", ""), args[0] if args else None
        if isinstance(changed, torch.Tensor) and changed.grad_fn is not None:
            if name == "detach_":
                raise NotImplementedError("there is no code for detach_ of a tensor that the loss has computed: write x = x.detach()")
            in_place = name in _IN_PLACE or (name.endswith("_") and not name.endswith("__"))
            if in_place and name not in ("requires_grad_", "retains_grad_") and not torch.is_grad_enabled():
                raise NotImplementedError(f"the loss changes a tensor that it has computed ({name}) with torch.no_grad() around, behind its gradient's back: write "
                                          "x + (value - x).detach() for a tensor with another value and the gradient of x")

        if name in _MEMORY_ITSELF:
            raise NotImplementedError(f"there is no code for {name} of a tensor, whose memory torch.export does not know: write operations, and copy_ in place of what writes to it")

        def replace(value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or (of := self.replaced.get(id(value))) is None:
                return value
            self.reached.append(of)
            return of

        args, kwargs = _pytree.tree_map(replace, args), _pytree.tree_map(replace, kwargs or {})
        args, kwargs = with_checked_classes(function, args, kwargs)
        if name in ("batch_norm", "instance_norm"):
            # Of both, of torch and of torch.nn.functional.
            training = args[5] if len(args) > 5 else kwargs.get("training", kwargs.get("use_input_stats", name == "instance_norm"))
            self.memory.statistics += [id(each) for each in (*args, *kwargs.values()) if training and isinstance(each, torch.Tensor)]
        self.memory.expect_unread(_pytree.tree_leaves((args, kwargs)))
        result = function(*args, **kwargs)
        for leaf in _pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None and not leaf._is_view():
                self.made.append((leaf, leaf._version, leaf.grad_fn))
        return result

    def expect_known_gradients(self) -> None:
        """An operation in place has a gradient of its own; what else writes to a tensor's memory has none."""
        for tensor, version, made_by in self.made:
            if tensor._version != version and tensor.grad_fn is made_by:
                raise NotImplementedError(f"the loss changes what {made_by.name()} has computed in place, without a gradient (by .data, detach() or torch.no_grad()), behind "
                                          "its gradient's back: write x + (value - x).detach() for a tensor with another value and the gradient of x")


class WithLoss(torch.nn.Module):
    def __init__(self, module: torch.nn.Module, loss: Loss, multiple: int):
        super().__init__()
        self.originals = tuple((name, id(tensor)) for name, tensor in get_state(module).items())
        self.module = module
        self.loss = loss
        # No list: torch.export gives attributes that are trees back what they were.
        self.assigned: collections.deque[tuple[str, str, torch.Tensor]] = _Log()
        # What the loss changed of Python's, and whether that is a number.
        self.changed: collections.deque[tuple[str, bool]] = _Log()
        self.calls: collections.deque[None] = _Log()
        self.multiple = multiple  # of how many examples the batch's parts are

    def forward(self, batch: Any) -> Any:
        self.calls.append(None)
        batch = join(batch, self.multiple)
        # One size, not one for each tensor.
        sizes = [leaf.shape[0] for leaf in _pytree.tree_leaves(batch)]
        for size in sizes[1:]:
            torch._check(size == sizes[0])
        before = PythonState(self.loss, self.module)
        state = get_state(self.module)
        # Of those that are not the originals any more.
        replaced = {identity: state[name] for name, identity in self.originals if name in state and id(state[name]) != identity}
        memory = Memory()
        with with_kept_parameters(self.module, memory), with_known_gradients(self.module, memory):
            with with_assigned_buffers(self.module, self.assigned, memory):
                with _Called(replaced, memory) as called:
                    value = self.loss(self.module, batch)
                called.expect_known_gradients()
                memory.expect_unread(_pytree.tree_leaves(value))
                expect_what_gradients_need(value, memory)
            if any(tensor is each for tensor in called.reached for each in memory.assigned):
                raise NotImplementedError("the loss assigns a buffer of the module anew, and has the one that it was before the export in a variable of its own: read it from the module")
        after = PythonState(self.loss, self.module)
        if package := before.draws(after):
            raise NotImplementedError(f"the loss draws random numbers of Python's '{package}', which would stay in the exported step what they are now: draw "
                                      "them with torch (torch.rand), or feed them with the batch")
        self.changed.extend(before.find_changes(after))
        return value


PREFIX = "module."
