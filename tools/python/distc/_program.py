"""The program that torch.export writes of a step, and what it assumes."""
from __future__ import annotations

import collections
import contextlib
import copy
import os
import re
import traceback
from typing import Any, Callable, Iterator, Mapping

import torch
from torch.utils import _pytree

from distc import jax as distc_jax
from distc._loss import PREFIX, WithLoss
from distc._memory import LIBRARIES
from distc._open_sizes import with_open_parts
from distc._parts import take_apart
from distc._python_state import _PARTS_OF_MODULES


def drop_other_names(exported: torch.export.ExportedProgram, named: Mapping[str, torch.Tensor]) -> None:
    """A tensor that is registered under several names is an input under each, of which the step reads one: what is decomposed takes tensors
    that are written to and share memory for several."""
    signature, graph = exported.graph_signature, exported.graph_module.graph
    nodes = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    read = {id(named[spec.target.removeprefix(PREFIX)]) for spec in signature.input_specs
            if spec.target and spec.target.removeprefix(PREFIX) in named and nodes[spec.arg.name].users}
    seen: set[int] = set()
    for spec in list(signature.input_specs):
        name = (spec.target or "").removeprefix(PREFIX)
        if name not in named:
            continue
        identity = id(named[name])
        if not nodes[spec.arg.name].users and (identity in read or identity in seen):
            graph.erase_node(nodes[spec.arg.name])
            signature.input_specs.remove(spec)
        seen.add(identity)
    exported.graph_module.recompile()


def expect_no_hooks(module: torch.nn.Module) -> None:
    for name, parameter in module.named_parameters():
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise NotImplementedError(f"the parameter '{name}' has a hook of its gradient, which the exported step would not run: remove it, and "
                                      "write what it does into the loss or the optimizer (one of optax)")
    for name, part in module.named_modules():
        if part._backward_hooks or part._backward_pre_hooks:
            raise NotImplementedError(f"the module '{name}' ({type(part).__name__}) has a hook of its backward pass, which the exported step would "
                                      "not run: remove it")


def _name_line(error: BaseException) -> str:
    """Where in the module or the loss it was, as far as that is known."""
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith((*LIBRARIES, "<"))
             and os.sep + "contextlib.py" not in frame.filename]
    return f" (at {lines[-1].filename}:{lines[-1].lineno}: {lines[-1].line})" if lines else ""


@contextlib.contextmanager
def with_ways_out() -> Iterator[None]:
    """What torch.export says of a step that it cannot write down, with what to do about it."""
    try:
        yield
    except (torch._dynamo.exc.UserError, torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode,
            torch._subclasses.fake_tensor.DynamicOutputShapeException, torch._subclasses.fake_tensor.DataDependentOutputException, torch.fx.proxy.TraceError) as error:
        text = str(error)
        if "Constraints violated" in text:
            why = ("the batch's size does not stay open, as the module or the loss looks at it: a single example (x[0]), a comparison of it with another size, "
                   "or equal parts that the example has not (batch_multiple of the export says of how many). Compute over all examples, with sizes that are taken from the batch (x.shape[0])")
        elif isinstance(error, torch.fx.proxy.TraceError):
            why = ("an operation has a number that is made of the batch's size where it takes one that is known (alpha=1 / x.shape[0], bounds, exponents). Multiply by it, or "
                   "give it as a tensor (torch.tensor(1 / x.shape[0]))")
        else:
            why = ("Python looks at what a tensor holds (if tensor:, tensor.item(), a check of arguments), or at how "
                   "many elements a mask chooses (x[mask]). Write it with torch.where, say it by an argument, or use one tensor as the mask of all that belong together")
        raise NotImplementedError(f"torch.export cannot write the step down{_name_line(error)}: {why}. It says: {text.strip().splitlines()[0]}") from error
    except (RuntimeError, TypeError, AttributeError) as error:
        text = str(error)
        if "fake tensor in the exported program" in text or "has no attribute 'constant'" in text or "functorch tensor" in text:
            why = ("it has no form for gradients within the loss (torch.autograd.grad, torch.func.grad, jacrev). Write the gradient out by hand, or the step in JAX, "
                   "which differentiates any number of times (distc.jax.export)")
        elif "A view was created in no_grad mode" in text:
            why = ("the loss changes a part of a tensor that it has computed in place, with torch.no_grad() around, behind its gradient's back. Write "
                   "x + (value - x).detach() for a tensor with another value and the gradient of x")
        elif "is mutated in the forward method" in text:
            why = "the loss changes a tensor that is no parameter or buffer of the module. Make it one (register_buffer), or a part of the module"
        elif ".numpy() is not supported" in text or "Cannot access data pointer" in text:
            why = "the module or the loss takes a tensor out of PyTorch (.numpy(), DLPack). Compute it with torch, or feed it with the batch"
        else:
            raise
        raise NotImplementedError(f"torch.export cannot write the step down{_name_line(error)}: {why}. It says: {text.strip().splitlines()[0]}") from error


# What writes a step down again.
_Write = Callable[[], torch.export.ExportedProgram]


def export_program(module: WithLoss, batch: Any) -> tuple[torch.export.ExportedProgram, int, _Write]:
    """What torch.export writes, how many examples the batch must have for it (times the parts that it is given in), and what writes it again at once."""
    batch = take_apart(batch, module.multiple)

    def export(least: int, most: int | None = None, batch: Any = batch, **options: Any) -> torch.export.ExportedProgram:
        size = torch.export.Dim("batch", min=least, max=most)
        shapes = _pytree.tree_map(lambda leaf: {0: size}, batch)
        try:
            return torch.export.export(module, (batch,), dynamic_shapes=(shapes,), strict=False, **options)
        except AssertionError as error:
            # It has no words for a bound of the batch's size that is no whole number.
            if not str(error).startswith("Expected op to be '=='"):
                raise
            kind = torch._dynamo.exc.UserErrorType.CONSTRAINT_VIOLATION
            raise torch._dynamo.exc.UserError(kind, f"Constraints violated (batch): {str(error).rpartition(' for ')[2]}") from error

    def written(smallest: int, *arguments: Any, **options: Any) -> tuple[torch.export.ExportedProgram, int, _Write]:
        return export(*arguments, **options), smallest, lambda: export(*arguments, **options)

    least = 2
    try:
        return written(1, least)
    except torch._dynamo.exc.UserError as error:
        if "Constraints violated" not in str(error):
            raise
        first = error
    # What it asks of the batch's size may hold for all from some number of examples on.
    suggested = re.search(r"batch = Dim\('batch', min=(\d+)\)", str(first))
    if suggested and int(suggested[1]) <= distc_jax.MOST_EXAMPLES:
        least = int(suggested[1])
        try:
            return written(least, least)
        except torch._dynamo.exc.UserError:
            pass
    # Or change nothing: those of more examples may give the same step.
    if limit := re.search(r"batch = Dim\('batch', (?:min=\d+, )?max=(\d+)\)", str(first)):
        most = int(limit[1])
        try:
            few = written(1, least, most)
            if most >= _NO_BATCH:
                return few
            copies = most // next(iter(_pytree.tree_leaves(batch))).shape[0] + 1
            many = export(most + 1, _NO_BATCH, batch=_pytree.tree_map(lambda leaf: leaf.repeat(copies, *[1] * (leaf.ndim - 1)), batch))
            if _get_code(few[0].graph_module) == _get_code(many.graph_module) and _are_equal(few[0].constants, many.constants):
                return few
        except torch._dynamo.exc.UserError:
            pass
    try:
        exported, _, write = written(1, least, prefer_deferred_runtime_asserts_over_guards=True)
    except (torch._dynamo.exc.UserError, torch.fx.proxy.TraceError):
        raise first from None
    smallest = _find_smallest_batch(exported)
    if smallest is None:
        raise first
    return exported, max(smallest, least if suggested else 1), write


def _get_code(graph: torch.fx.GraphModule) -> list[tuple[Any, ...]]:
    """The step, nodes by their numbers, without what says only how a tensor lies in memory."""
    numbers: dict[torch.fx.Node, Any] = {}
    code: list[tuple[Any, ...]] = []
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target is torch.ops.aten.contiguous.default:
            numbers[node] = numbers[node.args[0]]
            continue
        numbers[node] = f"%{len(code)}"
        of = getattr(graph, node.target, None) if node.op == "get_attr" else None
        inner = _get_code(of) if isinstance(of, torch.fx.GraphModule) else node.target
        code.append((node.op, inner, str(torch.fx.map_arg((node.args, node.kwargs), numbers.__getitem__))))
    return code


def expect_the_same_again(with_loss: WithLoss, batch: Any, exported: torch.export.ExportedProgram, write: _Write) -> None:
    """Refuses a loss that changes what it may read of Python's, unless its next call writes down the same step and changes no number any more."""
    changed = list(dict.fromkeys(name for name, _ in with_loss.changed))
    if not changed:
        return
    classes = {name: type(part).__name__ for part in with_loss.module.modules() for name in vars(part)}
    said = [f"the number '{last}' of {classes[last]}" if is_number and (last := name.rpartition(".")[2]) in classes else f"'{name}'"
            for name, is_number in dict(with_loss.changed).items()]
    names = ", ".join(said[:5]) + (f" and {len(said) - 5} others" if len(said) > 5 else "")
    error = NotImplementedError(f"the loss changes {names}, which would stay in the exported step what it is now: keep it in a buffer of the module "
                                "(register_buffer), feed it with the batch, or change it outside of the loss")
    try:
        with torch.enable_grad(), with_ways_out(), with_open_parts():
            # What was exported may be of a later call than the first. (torch.export gives modules back what they had.)
            if len(with_loss.calls) > 1:
                exported = write()
            with _as_behind_a_call(with_loss, batch):
                with_loss.changed.clear()
                again = write()
            if any(is_number for _, is_number in with_loss.changed):
                raise error
    except NotImplementedError as refused:
        raise (refused if refused is error else error) from None
    except Exception as failed:  # It holds what only the first call could use, such as a tensor of its own; or is none that PyTorch computes.
        raise NotImplementedError(f"{error}. Another call of it ends in: {str(failed).strip().splitlines()[0] if str(failed).strip() else type(failed).__name__}") from None
    if _get_code(exported.graph_module) != _get_code(again.graph_module) or not _are_equal(exported.constants, again.constants):
        raise error


def _holds_tensors(value: Any) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in _pytree.tree_leaves(value))


@contextlib.contextmanager
def _as_behind_a_call(with_loss: WithLoss, batch: Any) -> Iterator[None]:
    """The module as a call of the loss leaves it, but for tensors that are kept: those are caches, or state. Then as it was."""
    def copy_of(value: Any) -> Any:
        return copy.copy(value) if isinstance(value, (dict, list, set, collections.deque)) else value

    parts = list(with_loss.module.modules())
    before = [{name: (value, copy_of(value)) for name, value in vars(part).items()} for part in parts]
    tensors = {name: tensor.detach().clone() for name, tensor in with_loss.module.state_dict().items() if isinstance(tensor, torch.Tensor)}
    random_state = torch.get_rng_state()

    def give_back(part: torch.nn.Module, name: str, old: tuple[Any, Any]) -> None:
        value, contents = old
        if isinstance(value, (list, collections.deque)):
            value.clear()
            value.extend(contents)
        elif isinstance(value, (dict, set)):
            value.clear()
            value.update(contents)
        part.__dict__[name] = value

    try:
        with torch.no_grad():
            with_loss.loss(with_loss.module, batch)
        for part, old in zip(parts, before):
            for name, value in list(vars(part).items()):
                if name not in _PARTS_OF_MODULES and _holds_tensors(value):
                    if name in old:
                        give_back(part, name, old[name])
                    else:
                        del part.__dict__[name]
        yield
    finally:
        for part, old in zip(parts, before):
            for name in [name for name in vars(part) if name not in old]:
                del part.__dict__[name]
            for name, value in old.items():
                give_back(part, name, value)
        with torch.no_grad():
            state = with_loss.module.state_dict()
            for name, tensor in tensors.items():
                state[name].copy_(tensor)
        torch.set_rng_state(random_state)


def _are_equal(constants: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    return constants.keys() == others.keys() and all(torch.equal(value, others[name]) for name, value in constants.items()
                                                     if isinstance(value, torch.Tensor))


# More examples than any batch has: whether sizes are too large for integers of 32 bits is asked in many places.
_NO_BATCH = 1 << 20


def _get_conditions(exported: torch.export.ExportedProgram) -> Iterator[Any]:
    """What the program assumes of the batch's size. It asserts those of whole numbers; of others it has no word."""
    for node in exported.graph.nodes:
        if isinstance(value := node.meta.get("val"), torch.Tensor) and (sizes := getattr(getattr(value, "fake_mode", None), "shape_env", None)) is not None:
            yield from (guard.expr for guard in sizes.guards)
            yield from (assertion.expr for assertions in sizes.deferred_runtime_asserts.values() for assertion in assertions)
            break
    for node in exported.graph.nodes:
        if node.op != "call_function" or not str(node.target).startswith("aten._assert_scalar"):
            continue
        condition = node.args[0].meta["val"] if isinstance(node.args[0], torch.fx.Node) else node.args[0]
        if isinstance(condition, torch.SymBool):
            yield condition.node.expr


def _find_smallest_batch(exported: torch.export.ExportedProgram) -> int | None:
    """From which number of examples on all hold that the program assumes of their number; None where there is none."""
    smallest = 1
    for expression in _get_conditions(exported):
        if torch.fx.experimental.symbolic_shapes.free_unbacked_symbols(expression):
            continue  # Of what a tensor holds.
        # All others are the batch's size.
        def holds(size: int, expression: Any = expression) -> bool:
            try:
                return bool(expression.subs({each: size for each in expression.free_symbols}))
            except ZeroDivisionError:  # of the examples by halves of them
                return False

        broken = [size for size in (*range(1, 2 * distc_jax.MOST_EXAMPLES), 1000, 1024, 4099, 65536, 1000003) if not holds(size)]
        if broken:
            smallest = max(smallest, broken[-1] + 1)
    return smallest if smallest <= distc_jax.MOST_EXAMPLES else None
