"""Loops over the examples of the batch (lax.map, lax.scan), whose size is left open: where each example is computed for itself, all of
them at once, as jax.vmap does. What examples that jax.vmap computes have in common by its axis_name (lax.psum, lax.pmean) are sums over them."""
from __future__ import annotations

import bisect
import contextlib
import functools
import math
from typing import Any, Callable, Iterator
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.lax import lax as lax_internal
from jax.export import is_symbolic_dim
from jax.extend import core

from distc._debug import is_silent

# Calls of what may stand in line.
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "checkpoint": "jaxpr", "remat": "jaxpr",
          "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}


def _get_jaxpr(of: Any) -> Any:
    """Without its constants."""
    return of.jaxpr if isinstance(of, core.ClosedJaxpr) else of


def _get_parts(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for each in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(each, (core.Jaxpr, core.ClosedJaxpr)):
                yield _get_jaxpr(each)


def _is_over_examples(eqn: Any) -> bool:
    return eqn.primitive.name == "scan" and not isinstance(eqn.params["length"], int)


# What jax.vmap leaves of them when it has an axis_name, which JAX writes down for a size that is known alone.
_COLLECTIVES = {"psum": jnp.sum, "pmax": jnp.max, "pmin": jnp.min}


def _is_collective(eqn: Any) -> bool:
    return (eqn.primitive.name in _COLLECTIVES and eqn.params.get("axis_index_groups") is None and all(isinstance(axis, int) for axis in eqn.params["axes"])
            and any(not isinstance(size, int) for each in eqn.invars for size in each.aval.shape))


def _collect(eqn: Any, values: list[Any]) -> list[Any]:
    reduce, axes = _COLLECTIVES[eqn.primitive.name], eqn.params["axes"]
    return [reduce(value, axes).astype(value.dtype) if axes else value for value in values]


@contextlib.contextmanager
def _with_open_axes() -> Iterator[None]:
    """The size of an axis of jax.vmap may be open: JAX makes an array's constant of it."""
    make = getattr(lax_internal, "_const", None)

    def make_open(example: Any, value: Any) -> Any:
        if not is_symbolic_dim(value):
            return make(example, value)
        return value if isinstance(example, int) else jnp.asarray(value).astype(jnp.result_type(example))

    reduce = getattr(lax_internal, "_reduce_jvp", None)

    def reduce_open(reducer: Any, starts: Any, primals: Any, tangents: Any, axes: Any) -> Any:
        shape = primals[0].shape
        if all(isinstance(size, int) for size in shape):
            return reduce(reducer, starts, primals, tangents, axes)
        if not all(isinstance(shape[axis], int) for axis in axes):
            raise NotImplementedError("there is no code for the gradient of products over the examples of the batch (jnp.prod), whose number is left open: sum their logarithms")
        return _reduce_by_halves(reducer, starts, primals, tangents, axes)

    with contextlib.ExitStack() as patches:
        if make:
            patches.enter_context(mock.patch.object(lax_internal, "_const", make_open))
        if reduce:
            patches.enter_context(mock.patch.object(lax_internal, "_reduce_jvp", reduce_open))
        _open_permutations(patches)
        _open_scans(patches)
        yield


def scan_open(function: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """lax.associative_scan over examples whose number is open: behind step k each has what the 2^k that end with it make."""
    # Of no type of Python's own, which the loop would change.
    elems = jax.tree.map(jnp.asarray, elems)
    axis %= jax.tree.leaves(elems)[0].ndim
    size = jax.tree.leaves(elems)[0].shape[axis]
    numbers = jnp.arange(size, dtype=np.int32)

    def double(elems: Any, distance: Any) -> Any:
        before = numbers + distance if reverse else numbers - distance
        is_there = (before >= 0) & (before < jnp.asarray(size, np.int32))
        joined = function(jax.tree.map(lambda x: jnp.take(x, jnp.where(is_there, before, numbers), axis=axis), elems), elems)
        return jax.tree.map(lambda new, x: jnp.where(is_there.reshape([-1 if each == axis else 1 for each in range(x.ndim)]), new, x), joined, elems)

    def step(elems: Any, distance: Any) -> tuple[Any, None]:
        return lax.cond(distance < jnp.asarray(size, np.int32), double, lambda elems, _: elems, elems, distance), None

    return lax.scan(step, elems, 2 ** jnp.arange(31, dtype=np.int32))[0]


def _open_scans(patches: contextlib.ExitStack) -> None:
    """lax.associative_scan over the examples, of which JAX also makes the gradients of cumprod, cummax and cumlogsumexp: it divides them in halves."""
    from jax._src.lax.control_flow import loops

    scan = lax.associative_scan

    def scan_any(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
        leaves = jax.tree.leaves(elems)
        is_open = bool(leaves) and leaves[0].ndim > 0 and is_symbolic_dim(leaves[0].shape[axis])
        return (scan_open if is_open else scan)(fn, elems, reverse, axis)

    for module in (lax, loops):
        if hasattr(module, "associative_scan"):
            patches.enter_context(mock.patch.object(module, "associative_scan", scan_any))


def _open_permutations(patches: contextlib.ExitStack) -> None:
    """jax.random.permutation of the examples: JAX sorts by random numbers as often as follows from how many there are."""
    try:
        from jax._src import core as jax_core
        from jax._src.random import core as random
        shuffle, get_constant = random._shuffle, jax_core.concrete_or_error
    except (ImportError, AttributeError):
        return

    def get_open(force: Any, value: Any, *rest: Any, **named: Any) -> Any:
        is_open = is_symbolic_dim(value) and any(f"jax.random.{name}()" in str((rest, named)) for name in ("permutation", "choice"))
        return value if is_open else get_constant(force, value, *rest, **named)

    def count_rounds(size: int) -> int:
        return math.ceil(3 * np.log(max(1, size)) / np.log(np.iinfo(np.uint32).max))

    def shuffle_open(key: Any, x: Any, axis: int) -> Any:
        if not is_symbolic_dim(x.size):
            return shuffle(key, x, axis)
        # Of what all integers have a round is enough, and another order of one element is none.
        for rounds in range(1, count_rounds(np.iinfo(np.int32).max) + 1):
            key, used = jax.random.split(key)
            sorted_ = jax.lax.sort_key_val(jax.random.bits(used, x.shape), x, axis)[1]
            fewer = bisect.bisect_left(range(np.iinfo(np.int32).max), rounds, key=count_rounds) if rounds > 1 else 0
            x = jnp.where(jnp.asarray(x.size) >= fewer, sorted_, x) if fewer else sorted_
        return x

    patches.enter_context(mock.patch.object(random, "_shuffle", shuffle_open))
    patches.enter_context(mock.patch.object(jax_core, "concrete_or_error", get_open))


def _reduce_by_halves(reducer: Any, starts: Any, primals: Any, tangents: Any, axes: Any) -> Any:
    """JAX's gradient of reductions (jnp.prod) is by halves of an array of NumPy's sizes; here sizes of other axes may be open."""
    rest = [axis for axis in range(primals[0].ndim) if axis not in axes]
    shape = tuple(primals[0].shape[axis] for axis in rest)
    count = math.prod(primals[0].shape[axis] for axis in axes)

    def reduce(*xs: Any) -> list[Any]:
        while (size := xs[0].shape[0]) > 1:
            half = size // 2
            pairs = reducer(*(x[:half] for x in xs), *(x[half:2 * half] for x in xs))
            xs = tuple(jnp.concatenate([pair, x[2 * half:]]) for pair, x in zip(pairs, xs)) if size % 2 else tuple(pairs)
        if xs[0].shape[0] == 0:
            return [jnp.broadcast_to(start, shape).astype(x.dtype) for start, x in zip(starts, xs)]
        return [x[0] for x in xs]

    for _ in range(len(shape) + 1):
        reducer = jax.vmap(reducer)
    return jax.jvp(reduce, *([jnp.reshape(jnp.transpose(x, (*axes, *rest)), (count, *shape)) for x in xs] for xs in (primals, tangents)))


def _has_loops(jaxpr: Any) -> bool:
    return any(_is_over_examples(eqn) or _is_collective(eqn) or any(_has_loops(part) for part in _get_parts(eqn.params)) for eqn in jaxpr.eqns)


def _is_same(eqn: Any) -> bool:
    """Whether it only says that a type is not weak any more (that of a carry of Python's 0.0)."""
    return eqn.primitive.name == "convert_element_type" and eqn.invars[0].aval.dtype == eqn.outvars[0].aval.dtype


def _is_sum(jaxpr: Any, carry: Any, result: Any) -> bool:
    """Whether `result` is `carry` and something else that is added to it, and the carry is nothing else's."""
    made = {out: eqn for eqn in jaxpr.eqns for out in eqn.outvars}
    uses = [each for eqn in jaxpr.eqns if not is_silent(eqn) for each in eqn.invars if isinstance(each, core.Var)] + [each for each in jaxpr.outvars if isinstance(each, core.Var)]
    while result is not carry:
        eqn = made.get(result) if isinstance(result, core.Var) else None
        if eqn is None or not (_is_same(eqn) or eqn.primitive.name in ("add", "add_any")) or uses.count(result) != 1:
            return False
        result = next((each for each in eqn.invars if _leads_to(made, each, carry)), None)
    return uses.count(carry) == 1


def _leads_to(made: dict[Any, Any], value: Any, carry: Any) -> bool:
    if value is carry:
        return True
    eqn = made.get(value) if isinstance(value, core.Var) else None
    return eqn is not None and (_is_same(eqn) or eqn.primitive.name in ("add", "add_any")) and any(_leads_to(made, each, carry) for each in eqn.invars)


def _run_at_once(eqn: Any, values: list[Any]) -> list[Any] | None:
    """The results of a loop over the examples; none where an example needs another's."""
    body, consts, carries = eqn.params["jaxpr"], eqn.params["num_consts"], eqn.params["num_carry"]
    jaxpr = body.jaxpr
    before, given = jaxpr.invars[consts:consts + carries], values[consts:consts + carries]
    is_same = [carry is result for carry, result in zip(before, jaxpr.outvars)]
    if not all(same or _is_sum(jaxpr, carry, result) for same, carry, result in zip(is_same, before, jaxpr.outvars)):
        return None
    compute = core.jaxpr_as_fun(body)
    begin = [value if same else jnp.zeros_like(value) for same, value in zip(is_same, given)]

    def compute_one(_: Any, xs: list[Any]) -> list[Any]:
        return compute(*values[:consts], *begin, *xs)

    results = jax.vmap(compute_one)(jnp.arange(eqn.params["length"]), values[consts + carries:])
    return [value if same else value + jnp.sum(result, 0) for same, value, result in zip(is_same, given, results)] + results[carries:]


def _evaluate(jaxpr: Any, constants: list[Any], arguments: list[Any]) -> list[Any]:
    values = dict(zip(jaxpr.constvars, constants)) | dict(zip(jaxpr.invars, arguments))
    for eqn in jaxpr.eqns:
        if is_silent(eqn):
            continue
        operands = [each.val if isinstance(each, core.Literal) else values[each] for each in eqn.invars]
        results = _run_at_once(eqn, operands) if _is_over_examples(eqn) else _collect(eqn, operands) if _is_collective(eqn) else None
        name = eqn.primitive.name
        if results is None and name in _CALLS and any(_has_loops(part) for part in _get_parts(eqn.params)):
            called = eqn.params[_CALLS[name]]
            results = _evaluate(_get_jaxpr(called), called.consts if isinstance(called, core.ClosedJaxpr) else [], operands)
        if results is None and name == "shard_map" and eqn.params["mesh"].size == 1 and _has_loops(eqn.params["jaxpr"]):
            inside = functools.partial(lambda jaxpr, *values: _evaluate(jaxpr, [], list(values)), eqn.params["jaxpr"])
            results = jax.shard_map(inside, mesh=eqn.params["mesh"], in_specs=tuple(eqn.params["in_specs"]), out_specs=list(eqn.params["out_specs"]), check_vma=False)(*operands)
        if results is None:
            params = eqn.primitive.get_bind_params(eqn.params)
            functions, params = params if isinstance(params, tuple) else ((), params)
            results = eqn.primitive.bind(*functions, *operands, **params)
            results = results if eqn.primitive.multiple_results else [results]
        values.update(zip(eqn.outvars, results))
    return [each.val if isinstance(each, core.Literal) else values[each] for each in jaxpr.outvars]


def _find_sizes(jaxpr: Any, found: set[str]) -> set[str]:
    """The open sizes in it, as text."""
    for eqn in jaxpr.eqns:
        for size in [size for each in eqn.outvars for size in getattr(each.aval, "shape", ())] + list(eqn.params.values()):
            if is_symbolic_dim(size):
                found.add(str(size))
        for part in _get_parts(eqn.params):
            _find_sizes(part, found)
    return found


def with_examples_at_once(step: Callable[..., Any], state: Any, batch: Any) -> tuple[Callable[..., Any], str]:
    """`step`, jitted, without loops over the examples of a batch of open size, where it has any that are of single examples, and without collectives of them. And the
    open sizes in it."""
    jitted = jax.jit(step, keep_unused=True)
    with _with_open_axes():
        traced = jitted.trace(state, batch)
    sizes = "; ".join(sorted(_find_sizes(traced.jaxpr.jaxpr, set())))
    if not _has_loops(traced.jaxpr.jaxpr):
        return jitted, sizes
    structure = jax.tree.structure(traced.out_info)

    def evaluate(state: Any, batch: Any) -> Any:
        results = _evaluate(traced.jaxpr.jaxpr, traced.jaxpr.consts, jax.tree.leaves((state, batch)))
        return jax.tree.unflatten(structure, results)

    return jax.jit(evaluate, keep_unused=True), sizes
