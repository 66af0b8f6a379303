"""Training steps of PyTorch as files that distc compiles.

The forward pass of the module and its loss is what torch.export writes of them; it becomes a function of JAX, operation by operation
(distc._aten), with JAX's gradients and the optimizer's rule behind it, and is exported like any step of JAX. (torchax, which runs
modules on JAX's arrays, does not load with present versions of PyTorch, and hides the batch's size and the buffers that a step changes.)
"""
from __future__ import annotations

import dataclasses
import math
import os
from typing import Any, Callable, Iterable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.utils import _pytree

from distc import jax as distc_jax
from distc._arrays import Arrays, to_array
from distc._aten import Graph, UnknownOperations, get_decompositions, stop_gradients, to_dtype
from distc._loss import Loss, PREFIX, WithLoss
from distc._memory import get_state
from distc._open_sizes import with_open_parts
from distc._optimizers import make_optax_update, make_torch_update
from distc._parts import find_multiples
from distc._program import drop_other_names, expect_no_hooks, expect_the_same_again, export_program, with_ways_out
from distc._schedules import Table
from distc._signature import Step

__all__ = ["UnknownOperations", "export", "load_state"]


def _with_wide_integers() -> Any:
    """JAX has integers of 64 bits, as PyTorch's are: what a hash of them is, or a product of two, is no other number."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64
    return enable_x64()


def export(module: torch.nn.Module, loss: Loss | Mapping[str, Loss], optimizer: Any, batch: Any, path: str | os.PathLike[str], *,
           schedule: Any = None, schedule_steps: int | None = None, schedule_every: int = 1, max_norm: float | None = None, seed: int = 0,
           batch_multiple: int | None = None) -> Step:
    """Writes a training step to `path` (a file .mlir), with its signature (.json) and initial state (.npz) beside it.

    module:    in the mode in which it is trained (module.train()). Parameters and buffers are the state, under their names in its
               state_dict; those that share memory are one, under the first name.
    loss:      `loss(module, batch)` gives one number; or that and a dictionary of further values, which may be fetched.
               Or a dictionary of such losses, which take turns in each step.
    optimizer: one of torch.optim (all but Muon, SparseAdam and LBFGS) over the module's parameters, with groups; or one of optax.
               Of several losses a dictionary of as many of torch.optim: each trains its own parameters on the loss of its name, with
               what the turns before have made of all others. Two losses may have one optimizer.
    batch:     a tensor, or a dictionary, tuple or list of tensors: two examples or more, first axis; its size is left open.
    schedule:  of torch.optim's: a scheduler of torch.optim.lr_scheduler, which goes on from where it is; or the factor of the learning rate
               as a function of the step's number from 0 (as of LambdaLR), in jax.numpy. Of several losses a dictionary of them.
    schedule_steps: with a scheduler, whose numbers the step has as a table: how many steps the training has at most.
    schedule_every: after how many steps the scheduler makes one (those of an epoch, where it counts epochs).
    max_norm:  gradients are clipped by their global norm (torch.nn.utils.clip_grad_norm_), those of each loss by themselves.
    seed:      of dropout and other random numbers, which are JAX's, not PyTorch's.
    batch_multiple: what the number of a replica's examples is a multiple of, where the loss takes the batch apart into equal parts; else it
               is found.
    """
    if batch_multiple is not None and (not isinstance(batch_multiple, int) or batch_multiple < 1):
        raise ValueError(f"batch_multiple is a number of parts, but is {batch_multiple!r}")
    losses, optimizers, schedules = loss, optimizer, schedule
    if not isinstance(loss, Mapping):
        losses, optimizers, schedules = {"": loss}, {"": optimizer}, {"": schedule}
    elif not isinstance(optimizer, Mapping) or not loss or optimizer.keys() != loss.keys():
        raise TypeError(f"of several losses ({', '.join(map(str, loss))}) each has an optimizer: give a dictionary of as many, by the same names")
    elif not all(isinstance(name, str) and name for name in loss) or "loss" in loss:
        raise ValueError("names of losses are text, and none is 'loss', as which their sum is known")
    elif schedule is None:
        schedules = {}
    elif not isinstance(schedule, Mapping) or not schedule.keys() <= loss.keys():
        raise TypeError(f"of several losses ({', '.join(loss)}) schedules are a dictionary, by their names")
    with _with_wide_integers():
        made = {name: Table(each, optimizers[name], schedule_steps, schedule_every) if isinstance(each, (LRScheduler, ReduceLROnPlateau)) else each
                for name, each in schedules.items()}
        return _export(module, losses, optimizers, batch, path, made, max_norm, seed, batch_multiple)


def _get_memory(tensor: torch.Tensor) -> int | None:
    """Which memory it lies in; None where it has none of its own."""
    if isinstance(tensor, torch._subclasses.FakeTensor) or tensor.numel() == 0 or tensor.layout != torch.strided:
        return None
    return tensor.untyped_storage().data_ptr()


def _find_state(tensor: Any, values: Mapping[str, torch.Tensor]) -> str | None:
    """The parameter or buffer that a tensor is, or shares its elements with. A part of one is refused."""
    if not isinstance(tensor, torch.Tensor) or _get_memory(tensor) is None:
        return None
    for name, value in values.items():
        if value is tensor:
            return name
        if _get_memory(value) == _get_memory(tensor):
            if value.data_ptr() == tensor.data_ptr() and value.shape == tensor.shape and value.stride() == tensor.stride() and value.dtype == tensor.dtype:
                return name
            raise NotImplementedError(f"the loss reads a part of '{name}' of the module that was taken before the export and would stay as it is now: take it "
                                      "in the loss")
    return None


def _find_shared_memory(tensors: Iterable[tuple[str, Any]]) -> list[list[str]]:
    """Names of tensors that lie in the same memory, at least two in each list."""
    by_memory: dict[int, list[str]] = {}
    for name, tensor in tensors:
        if isinstance(tensor, torch.Tensor) and (memory := _get_memory(tensor)) is not None:
            by_memory.setdefault(memory, []).append(name)
    return [names for names in by_memory.values() if len(names) > 1]


def _expect_own_memory(exported: torch.export.ExportedProgram, values: Mapping[str, torch.Tensor], named: Mapping[str, torch.Tensor], trained: list[str],
                       written: set[str]) -> None:
    """Refuses tensors that share memory with one that the steps change: they would not follow."""
    why = "would not follow: take it from the other one in forward"
    for names in _find_shared_memory(values.items()):
        if changes := [name for name in names if name in written or name in trained]:
            other = next(name for name in names if name != changes[0])
            raise NotImplementedError(f"'{changes[0]}' of the module changes with the steps, and '{other}', which shares its memory, {why}")
    # Buffers that are not in the state_dict (persistent=False) are among the constants by their names.
    for constant in (tensor for name, tensor in exported.constants.items() if name.removeprefix(PREFIX) not in named):
        for name in written:
            if _find_shared_memory([(name, values[name]), ("", constant)]):
                raise NotImplementedError(f"the loss changes '{name}' of the module, and a tensor that was taken of it before the export {why}")


def _find_constants(exported: torch.export.ExportedProgram, values: Mapping[str, torch.Tensor], named: Mapping[str, torch.Tensor], written: set[int]) -> set[str]:
    """The inputs of the graph that are the same in every step. `written`: identities of the tensors that a step changes."""
    kinds = torch.export.graph_signature.InputKind
    return {spec.arg.name for spec in exported.graph_signature.input_specs
            if (spec.kind == kinds.BUFFER and id(named[spec.target.removeprefix(PREFIX)]) not in written)
            or (spec.kind == kinds.CONSTANT_TENSOR and _find_state(exported.constants[spec.target], values) is None)}


@dataclasses.dataclass
class _Turn:
    """A loss, and the optimizer that follows it."""

    name: str  # "" where there is one alone
    loss: Loss
    optimizer: Any
    schedule: Table | Callable[[Any], Any] | None
    exported: torch.export.ExportedProgram
    trained: list[str]
    slots: str  # the name of the turn that has its optimizer's state
    multiple: int  # of how many examples the parts are that its loss takes the batch apart into
    # Of its loss: (parameters, the rest of the state, batch, key) -> (loss, (changed buffers, fetches)); and whether that draws random numbers.
    evaluate: Callable[..., Any] | None = None
    draws: bool = False
    update: Callable[..., Any] | None = None


def _expect_optimizer(optimizer: Any, has_others: bool) -> None:
    if isinstance(optimizer, torch.optim.Optimizer):
        return
    if not (callable(getattr(optimizer, "init", None)) and callable(getattr(optimizer, "update", None))):
        raise TypeError(f"the optimizer is one of torch.optim that was made for the module's parameters, or one of optax, but is {optimizer!r}")
    if has_others:
        raise NotImplementedError("several optimizers are of torch.optim, each made for the parameters that it trains: one of optax does not say which those are")


def _trace(module: torch.nn.Module, loss: Loss, batch: Any, named: Mapping[str, torch.Tensor], values: Mapping[str, torch.Tensor],
           multiple: int | None) -> tuple[torch.export.ExportedProgram, int, int]:
    """The loss in core operations, how many examples it needs, and what their number is a multiple of."""
    if isinstance(loss, torch.nn.Module) and (list(loss.parameters()) or list(loss.buffers())):
        raise NotImplementedError(f"the loss ({type(loss).__name__}) has parameters or buffers of its own: make it a part of the module, and give a function as the loss")
    with torch.enable_grad(), with_ways_out(), with_open_parts():
        first: Exception | None = None
        multiples = [multiple or 1]
        for each in multiples:
            with_loss = WithLoss(module, loss, each)
            try:
                exported, smallest_batch, write = export_program(with_loss, batch)
                break
            except torch._dynamo.exc.UserError as error:
                if "Constraints violated" not in str(error):
                    raise
                if first is None and multiple is None:
                    multiples += find_multiples(batch, str(error))
                first = first or error
        else:
            assert first is not None
            raise first
    for part, name, old in with_loss.assigned:
        # What the trace itself has assigned before has no memory.
        if not isinstance(old, torch._subclasses.FakeTensor) and any(
                constant is old or (isinstance(constant, torch.Tensor) and constant.data_ptr() == old.data_ptr()) for constant in exported.constants.values()):
            raise NotImplementedError(f"the loss reads the tensor '{name}' of {part} and assigns it anew, which would stay in the exported step what it is "
                                      "now: make it a buffer (register_buffer)")
    expect_the_same_again(with_loss, batch, exported, write)
    drop_other_names(exported, named)
    stop_gradients(exported.graph_module)
    try:
        with with_ways_out():
            return exported.run_decompositions(get_decompositions()), smallest_batch * with_loss.multiple, with_loss.multiple
    except AssertionError as error:  # It takes no tensors of one memory that are written to.
        if not (shared := _find_shared_memory([*values.items(), *((f"a tensor ({name})", each) for name, each in exported.constants.items())])):
            raise
        raise NotImplementedError(f"the loss writes to memory that {' and '.join(shared[0])} of the module share: make one of them in forward, of the other "
                                  "one") from error


def _get_written(exported: torch.export.ExportedProgram, named: Mapping[str, torch.Tensor]) -> set[int]:
    """Identities of the module's tensors that it changes."""
    outputs = torch.export.graph_signature.OutputKind
    return {id(named[spec.target.removeprefix(PREFIX)]) for spec in exported.graph_signature.output_specs if spec.kind in (outputs.BUFFER_MUTATION, outputs.PARAMETER_MUTATION)}


def _make_evaluation(turn: _Turn, graph: Graph, named: Mapping[str, torch.Tensor], first: Mapping[int, str], values: Mapping[str, torch.Tensor], trained: list[str],
                     example: Mapping[str, torch.Tensor]) -> None:
    """The turn's loss as a function of JAX, and of what it trains that alone which the loss depends on."""
    exported = turn.exported
    # What the inputs of the graph are.
    kinds = torch.export.graph_signature.InputKind
    inputs: dict[str, str] = {}
    constants: Arrays = {}
    detached: set[str] = set()
    feeds = iter(example)
    fed: dict[str, str] = {}
    for spec in exported.graph_signature.input_specs:
        if spec.kind in (kinds.PARAMETER, kinds.BUFFER):
            tensor = named[spec.target.removeprefix(PREFIX)]
            if tensor.is_complex():  # The angles of positions, which no step changes; no state.
                constants[spec.arg.name] = to_array(tensor)
            else:
                inputs[spec.arg.name] = first[id(tensor)]
        elif spec.kind == kinds.USER_INPUT:
            fed[spec.arg.name] = next(feeds)
        elif spec.kind == kinds.TOKEN:
            constants[spec.arg.name] = None
        else:
            tensor = exported.constants[spec.target]
            # Parameters and buffers that the loss reaches otherwise than through the module's attributes.
            name = _find_state(tensor, values)
            if name is None:
                constants[spec.arg.name] = to_array(tensor)
            else:
                inputs[spec.arg.name] = name
                if not tensor.requires_grad:
                    detached.add(spec.arg.name)
    mutated: list[str] = []
    results = tokens = 0
    outputs = torch.export.graph_signature.OutputKind
    for spec in exported.graph_signature.output_specs:
        if spec.kind in (outputs.BUFFER_MUTATION, outputs.PARAMETER_MUTATION):
            target = spec.target.removeprefix(PREFIX)
            if named[target].is_complex():
                raise NotImplementedError(f"the step changes the complex buffer '{target}': keep its real and imaginary part")
            if first[id(named[target])] in trained:
                raise NotImplementedError(f"the loss changes the parameter '{target}', which the optimizer trains: leave it out of the optimizer, and "
                                          "requires_grad_(False), or change it behind the step")
            mutated.append(first[id(named[target])])
        elif spec.kind == outputs.USER_OUTPUT:
            results += 1
        elif spec.kind == outputs.TOKEN:  # before all others
            tokens += 1
        else:
            raise NotImplementedError(f"the loss changes '{spec.target}', which is no parameter or buffer of the module")
    structure = exported.call_spec.out_spec
    if isinstance(turn.optimizer, torch.optim.Optimizer):
        # PyTorch's optimizers pass over parameters without a gradient: they do not decay, either.
        differentiated = {inputs.get(name) for name in graph.get_differentiated(tokens + len(mutated)) if name not in detached}
        turn.trained = [name for name in turn.trained if name in differentiated]
        if not turn.trained:
            raise ValueError(f"the loss '{turn.name}' depends on no parameter that requires a gradient and that its optimizer has" if turn.name else
                             "the loss depends on no parameter that requires a gradient")

    def evaluate(parameters: Arrays, rest: Arrays, batch: Arrays, key: Any) -> tuple[Any, tuple[Arrays, Arrays]]:
        state = {**rest, **parameters}
        given = {**constants, **{name: lax.stop_gradient(state[of]) if name in detached else state[of] for name, of in inputs.items()}, **{name: batch[of] for name, of in fed.items()}}
        values = graph.run(given, key)[tokens:]
        outcome = _pytree.tree_unflatten(values[len(mutated):], structure)
        number, fetches = outcome if isinstance(outcome, (tuple, list)) and len(outcome) == 2 else (outcome, {})
        if getattr(number, "shape", None) != () or not isinstance(fetches, Mapping):
            raise TypeError("the loss gives one number (a mean over the examples), or that and a dictionary of further values")
        return number, (dict(zip(mutated, values)), fetches)

    turn.evaluate, turn.draws = evaluate, graph.draws


def _export(module: torch.nn.Module, losses: Mapping[str, Loss], optimizers: Mapping[str, Any], batch: Any, path: str | os.PathLike[str],
            schedules: Mapping[str, Table | Callable[[Any], Any] | None], max_norm: float | None, seed: int, batch_multiple: int | None) -> Step:
    named = get_state(module)
    first: dict[int, str] = {}
    for name, tensor in named.items():
        first.setdefault(id(tensor), name)
    values = {name: tensor for name, tensor in named.items() if first[id(tensor)] == name and not tensor.is_complex()}
    for name, parameter in module.named_parameters():
        if parameter.is_complex():
            raise NotImplementedError(f"the parameter '{name}' is complex: keep its real and imaginary part (torch.view_as_real), and make the complex "
                                      "tensor of them in forward (torch.view_as_complex)")
    trained = [name for name, tensor in values.items() if isinstance(tensor, torch.nn.Parameter) and tensor.requires_grad]
    expect_no_hooks(module)
    if not trained:
        raise ValueError("the module has no parameter that requires a gradient")

    leaves, batch_structure = _pytree.tree_flatten_with_path(batch)
    example: dict[str, torch.Tensor] = {}
    for key, leaf in leaves:
        if not isinstance(leaf, torch.Tensor) or leaf.ndim == 0:
            raise ValueError(f"'{_get_name(key)}' of the batch is no tensor with an axis of examples")
        example[_get_name(key)] = leaf
    if any(len(leaf) < 2 for leaf in example.values()):
        raise ValueError("the batch needs two examples or more, so that PyTorch leaves its size open")
    first_key, *others = example
    for key in others:
        if len(example[key]) != len(example[first_key]):
            raise ValueError(f"'{first_key}' of the batch has {len(example[first_key])} examples, and '{key}' {len(example[key])}: what has no axis of examples (weights of classes) is a "
                             "buffer of the module")
    for optimizer in optimizers.values():
        _expect_optimizer(optimizer, len(optimizers) > 1)

    turns: list[_Turn] = []
    smallest_batch = of_all = 1
    identities = {id(tensor): first[id(tensor)] for tensor in named.values()}
    for turn_name, loss in losses.items():
        optimizer = optimizers[turn_name]
        own = trained
        if turn_name:
            of_optimizer = {identities.get(id(parameter)) for group in optimizer.param_groups for parameter in group["params"]}
            own = [name for name in trained if name in of_optimizer]
        exported, smallest, multiple = _trace(module, loss, batch, named, values, batch_multiple)
        smallest_batch, of_all = max(smallest_batch, smallest), math.lcm(of_all, multiple)
        slots = next((turn.slots for turn in turns if turn.optimizer is optimizer), turn_name)
        turns.append(_Turn(turn_name, loss, optimizer, schedules.get(turn_name), exported, own, slots, multiple))
    written = set().union(*(_get_written(turn.exported, named) for turn in turns))
    for turn in turns:
        _expect_own_memory(turn.exported, values, named, trained, {first[identity] for identity in written})
        rows = {spec.arg.name: turn.multiple for spec in turn.exported.graph_signature.input_specs if spec.kind == torch.export.graph_signature.InputKind.USER_INPUT}
        graph = Graph(turn.exported.graph, _find_constants(turn.exported, values, named, written), rows)
        if (columns := graph.get_most_columns()) <= distc_jax.MOST_EXAMPLES:
            smallest_batch = max(smallest_batch, columns)
        _make_evaluation(turn, graph, named, first, values, trained, example)

    arrays = {name: to_array(tensor) for name, tensor in values.items()}
    trained = [name for name in trained if any(name in turn.trained for turn in turns)]
    parameters = {name: arrays.pop(name) for name in trained}
    slots: Arrays = {}
    for turn in turns:
        before = next((each for each in turns if each is not turn and each.optimizer is turn.optimizer and each.update is not None), None)
        if before is not None:
            if turn.schedule is not None:
                raise ValueError(f"the losses '{before.name}' and '{turn.name}' have one optimizer, whose schedule is the first one's")
            if before.trained != turn.trained:
                raise NotImplementedError(f"the losses '{before.name}' and '{turn.name}' have one optimizer, but depend on different ones of its parameters: give each an optimizer of its own")
            turn.update = before.update
        elif isinstance(turn.optimizer, torch.optim.Optimizer):
            slots[turn.slots], turn.update = make_torch_update(turn.optimizer, identities, turn.trained, turn.schedule)
        else:
            if turn.schedule is not None:
                raise ValueError("a schedule goes into the optimizer of optax: optax.sgd(schedule)")
            slots[turn.slots], turn.update = make_optax_update(turn.optimizer, parameters)
    is_one = list(losses) == [""]
    state: Arrays = {**parameters, **arrays, "optimizer": slots[""] if is_one else slots}
    if any(turn.draws for turn in turns):
        state["random_key"] = jax.random.key(seed)
    if any(turn.schedule is not None for turn in turns):
        state["schedule_step"] = np.zeros((), np.int32)

    def step(state: Arrays, batch: Arrays) -> tuple[Any, ...]:
        new = dict(state)
        key = None
        if "random_key" in state:
            key, new["random_key"] = jax.random.split(state["random_key"])
        if "schedule_step" in state:
            new["schedule_step"] = state["schedule_step"] + 1
        total, all_fetches, now = None, {}, {"": state["optimizer"]} if is_one else dict(state["optimizer"])
        for number, turn in enumerate(turns):
            parameters = {name: new[name] for name in turn.trained}
            rest = {name: new[name] for name in (*arrays, *trained) if name not in parameters}
            drawn = key if number == 0 or key is None else jax.random.fold_in(key, number)
            (value, (buffers, fetches)), gradients = jax.value_and_grad(turn.evaluate, has_aux=True)(parameters, rest, batch, drawn)
            if max_norm is not None:
                norm = jnp.sqrt(sum(jnp.sum(jnp.square(gradient)) for gradient in gradients.values()))
                scale = jnp.minimum(max_norm / (norm + 1e-6), 1.0)
                gradients = {name: gradient * scale for name, gradient in gradients.items()}
            changed, now[turn.slots] = turn.update(gradients, now[turn.slots], parameters, state.get("schedule_step"))
            new.update(changed)
            new.update(buffers)
            total = value if total is None else total + value
            fetches = fetches if is_one else {**fetches, turn.name: value}
            if twice := fetches.keys() & all_fetches.keys():
                raise ValueError(f"two of the losses give a value '{min(twice)}'")
            all_fetches |= fetches
        new["optimizer"] = now[""] if is_one else now
        return (new, total, all_fetches) if all_fetches else (new, total)

    specs = {name: jax.ShapeDtypeStruct(tuple(leaf.shape), to_dtype(leaf.dtype)) for name, leaf in example.items()}
    made = distc_jax.export(step, state, specs, path, smallest_batch=smallest_batch if smallest_batch > of_all else 1, batch_multiple=of_all if of_all > 1 else None)
    # Data may be given as the batch is, too. A key that is another's name (a parameter's) has a leaf of another name.
    names, structure = jax.tree.flatten(_pytree.tree_unflatten(list(example), batch_structure))
    by_name = dict(zip(jax.tree.leaves({name: name for name in specs}), made.batch))
    return dataclasses.replace(made, batch=[by_name[name] for name in names], batch_tree=(structure, [None] * len(names)))


def _get_name(key: Any) -> str:
    """params/0 for ["params"][0]; what is no tree is 'batch'."""
    parts = [str(getattr(entry, "key", getattr(entry, "idx", getattr(entry, "name", entry)))) for entry in key]
    name = "/".join(parts)
    return name if name and name[0].isalpha() else f"batch/{name}" if name else "batch"


def load_state(module: torch.nn.Module, state: Mapping[str, Any]) -> None:
    """Copies the parameters and buffers of a state that training gave (Result.state) into the module."""
    named = dict(module.named_parameters()) | dict(module.named_buffers())
    with torch.no_grad():
        for name, tensor in named.items():
            if tensor.is_complex():
                continue
            if name not in state:
                raise ValueError(f"the state has no '{name}'")
            tensor.copy_(torch.from_numpy(np.array(jnp.asarray(state[name]).astype(jnp.float32) if tensor.dtype == torch.bfloat16
                                                   else state[name])))
