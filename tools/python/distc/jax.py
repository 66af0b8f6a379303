"""Training steps of JAX as files that distc compiles."""
from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import os
import pathlib
import re
from typing import Any, Callable, Iterator

import numpy as np

from distc._signature import Leaf, Step, to_file


def _describe(of: Any) -> str:
    return f"{of.dtype}[{','.join(map(str, of.shape))}]"


def _make_names(leaves: list[tuple[Any, Any]], prefix: str, taken: set[str]) -> list[str]:
    """Names of leaves by their place in the tree: params/0/w. Of letters, digits and _ . / -, none twice."""
    from jax import tree_util

    names = []
    for path, _ in leaves:
        name = re.sub(r"[^A-Za-z0-9_./-]+", "_", tree_util.keystr(path, simple=True, separator="/")).strip("/")
        if not name or not name[0].isalpha():
            name = f"{prefix}/{name}" if name else prefix
        unique, count = name, 0
        while unique in taken:
            count += 1
            unique = f"{name}_{count}"
        taken.add(unique)
        names.append(unique)
    return names


def _get_data(leaf: Any) -> Any:
    """Of a random key, its numbers; of a number of Python's (TrainState's step), the array that jax.jit makes of it."""
    import jax

    if isinstance(leaf, (bool, int, float)):
        return jax.numpy.asarray(leaf)
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(leaf)
    return leaf


@dataclasses.dataclass(frozen=True)
class _Static:
    """What is no array in a tree of arrays (an activation of an Equinox model): part of its structure."""

    value: Any


@functools.cache
def _register_static() -> None:
    import jax

    jax.tree_util.register_static(_Static)


# What a step may ask in Python, and not change (whether an Equinox layer trains, its share of dropped numbers). Integers count steps.
_ASKED = (bool, float)


def _without_statics(tree: Any, asked: tuple[type, ...] = ()) -> Any:
    """`asked`: types of Python's numbers that are no state."""
    import jax

    def is_array(leaf: Any) -> bool:
        return (isinstance(leaf, (bool, int, float, complex)) and type(leaf) not in asked) or (hasattr(leaf, "dtype") and hasattr(leaf, "shape"))

    _register_static()
    return jax.tree.map(lambda leaf: leaf if is_array(leaf) else _Static(leaf), tree)


def _with_statics(tree: Any) -> Any:
    import jax

    return jax.tree.map(lambda leaf: leaf.value if isinstance(leaf, _Static) else leaf, tree, is_leaf=lambda leaf: isinstance(leaf, _Static))


def flatten(tree: Any, value: Any) -> list[Any]:
    """The leaves of `value`, whose structure must be `tree`."""
    import jax

    leaves, structure = jax.tree.flatten(_without_statics(value))
    if structure != tree[0]:
        leaves, structure = jax.tree.flatten(_without_statics(value, _ASKED))
    if structure != tree[0]:
        raise ValueError(f"expected a tree of the structure {tree[0]}, got {structure}")
    return [_get_data(leaf) for leaf in leaves]


def unflatten(tree: Any, values: list[Any]) -> Any:
    import jax

    structure, keys = tree
    return _with_statics(jax.tree.unflatten(
        structure, [value if key is None else jax.random.wrap_key_data(value, impl=key) for value, key in zip(values, keys)]))


def _get_key_type(leaf: Any) -> Any:
    import jax

    if hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_impl(leaf)
    return None


# No platform of JAX's own: it writes what it would write for any, StableHLO itself, and none of the calls by which CPUs' and GPUs' code
# leaves it (LAPACK's routines, by names and flags that are no part of StableHLO).
_PLATFORM = "distc"

# The call that checks indices, which distc knows.
CHECK_OF_INDICES = "distc.index"


def _call_lapack(x: Any, routine: str, *shapes: tuple[Any, ...], **letters: str) -> list[Any]:
    """LAPACK's routine as JAX calls it on CPUs: results of x's type, and whether each matrix had some."""
    import jax

    if x.dtype not in (np.float32, np.float64):
        raise NotImplementedError(f"there is no code for '{routine}' of matrices of {x.dtype}")
    kinds = [jax.ShapeDtypeStruct(shape, x.dtype) for shape in shapes] + [jax.ShapeDtypeStruct(x.shape[:-2], np.int32)]
    call = jax.ffi.ffi_call(f"lapack_{'s' if x.dtype == np.float32 else 'd'}{routine}_ffi", kinds)
    return list(call(x, **{name: np.uint8(ord(letter)) for name, letter in letters.items()}))


def _eigh(x: Any, *, lower: bool, subset_by_index: Any = None, **_: Any) -> list[Any]:
    if subset_by_index not in (None, (0, x.shape[-1])):
        raise NotImplementedError("there is no code for some of the eigenvalues: take all of them")
    return _call_lapack(x, "syevd", x.shape, x.shape[:-1], mode="V", uplo="L" if lower else "U")[:2]


def _svd(x: Any, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any = None, **_: Any) -> list[Any]:
    from jax import core

    *batch, rows, columns = x.shape
    least = core.min_dim(rows, columns)
    if subset_by_index not in (None, (0, least)):
        raise NotImplementedError("there is no code for some of the singular values: take all of them")
    us, vs = (rows, columns) if full_matrices else (least, least)
    _, s, u, v, _ = _call_lapack(x, "gesdd", x.shape, (*batch, least), (*batch, rows, us), (*batch, vs, columns),
                                 mode="N" if not compute_uv else "A" if full_matrices else "S")
    return [s, u, v] if compute_uv else [s]


def _cumlogsumexp(x: Any, *, axis: int, reverse: bool) -> Any:
    from jax import lax
    from jax import numpy as jnp

    from distc._loops import scan_open

    return (lax.associative_scan if isinstance(x.shape[axis], int) else scan_open)(jnp.logaddexp, x, axis=axis, reverse=reverse)


@functools.cache
def _write_library_calls() -> None:
    """What JAX writes for some devices alone, a call of their libraries, it writes for a platform that is none of them as a call of LAPACK."""
    from jax import lax
    from jax.interpreters import mlir
    from jax.lax import linalg

    mlir.register_lowering(linalg.eigh_p, mlir.lower_fun(_eigh, multiple_results=True))
    mlir.register_lowering(linalg.svd_p, mlir.lower_fun(_svd, multiple_results=True))
    # JAX's own window of a function that is none of a sum's, product's or extreme's stays as it is on others.
    from jax._src.interpreters.mlir import LoweringRuleEntry, _platform_specific_lowerings
    _platform_specific_lowerings[_PLATFORM][lax.cumlogsumexp_p] = LoweringRuleEntry(mlir.lower_fun(_cumlogsumexp, multiple_results=False), True)


@contextlib.contextmanager
def _with_ways_out() -> Iterator[None]:
    """What JAX says of a step that it cannot write down, with what to do about it."""
    import jax

    try:
        yield
    except jax.errors.InconclusiveDimensionOperation as error:
        if re.search(r"'[^']*\bb\b[^']*' <= '\d+' is inconclusive", str(error)):
            raise NotImplementedError(
                "the step takes or writes as many rows as the batch has, whose number is left open, of an array of a known size, which may have fewer "
                "(lax.dynamic_update_slice of a queue): name them by their places (queue.at[(start + jnp.arange(x.shape[0])) % size].set(x)), or join them "
                f"(jnp.concatenate([x, queue])[:size]). JAX says: {str(error).strip().splitlines()[0]}") from error
        raise NotImplementedError(
            "the step asks how large the batch is, which is left open: for as many of the examples as a number says (lax.top_k over them; smallest_batch of "
            "distc.jax.export says how many there are at least), equal parts of it that the example has not (batch_multiple says what the number of examples is a "
            "multiple of), or a shape that is no multiple of it. Compute with all examples and weights that are zero for some, or "
            f"give what belongs together as one example. JAX says: {str(error).strip().splitlines()[0]}") from error
    except TypeError as error:
        if "_DimExpr" not in str(error):
            raise
        raise TypeError("the step takes how large the batch is, which is left open, for a number of Python's (len(x), int(x.shape[0]), range, a float): "
                        f"write x.shape[0], which jax.numpy computes with (jnp.arange(x.shape[0]), total / x.shape[0]). JAX says: {error}") from error
    except ValueError as error:
        if "EmitPythonCallback" not in str(error):
            raise
        raise NotImplementedError("the step calls Python and takes what it gives (jax.pure_callback, jax.experimental.io_callback), but an executable has none: write it "
                                  "with jax.numpy, or compute it where the data are made") from error
    except NotImplementedError as error:
        missing = re.search(r"translation rule for primitive '(\w+)' not found", str(error))
        if missing is None:
            raise
        raise NotImplementedError(
            f"there is no code for '{missing[1]}', which JAX has as a call of a library alone. Of matrices there are solutions, inverses, determinants, factors, "
            "eigenvalues of symmetric ones and singular values (jnp.linalg.solve, inv, slogdet, cholesky, qr, eigh, svd): write it with those, or compute it where "
            "the data are made") from error


# Of how many examples at least a step may be: from more on none is written down where it holds for no smaller batch.
MOST_EXAMPLES = 64


_COMPARISON = re.compile(r"comparison '(?:(\d+)\*)?b( [-+] \d+)?' \S+ '(-?\d+)'")
_SMALLER, _LARGER = re.compile(r"min\((?:(\d+)\*)?b( [-+] \d+)?, (\d+)\)"), re.compile(r"max\(0, (?:(\d+)\*)?b( - \d+)()\)")


def _find_least(text: str, least: int, most: int) -> int:
    """From which b on a comparison in `text` has one outcome, or all sizes in it (min(b, 3): of x[:3]) are known to be the one or the other; `least` where from none up to `most`."""
    def find(form: re.Pattern[str]) -> list[int]:
        return [-(-(int(limit or 0) - int((offset or "0").replace(" ", ""))) // int(factor or 1)) for factor, offset, limit in form.findall(text)]

    compared = [limit + more for limit in find(_COMPARISON) for more in (0, 1) if least < limit + more <= most]
    return min(compared) if compared else max((limit for form in (_SMALLER, _LARGER) for limit in find(form) if limit <= most), default=least)


def _write_for_enough(write: Callable[[int], Any], least: int, most: int) -> tuple[int, Any]:
    """What `write` gives for as few examples as possible, from `least` on and with no more than `most`: JAX says which comparison with the batch's size
    is open, such as b >= 4. The last of what it gives are its sizes, as text."""
    import jax

    first: Exception | None = None
    found: tuple[int, Any] | None = None
    for _ in range(8):
        try:
            found = least, write(least)
            text = found[1][-1]
        except (jax.errors.InconclusiveDimensionOperation, TypeError, ValueError) as error:
            first, text = first or error, str(error)
        except Exception:
            if first is None and found is None:
                raise
            break
        larger = _find_least(text, least, min(most, MOST_EXAMPLES))
        if larger <= least:
            break
        least = larger
    if found is None:
        assert first is not None
        raise first
    return found


def _of_arrays(step: Callable[[Any, Any], Any], asked: tuple[type, ...] = ()) -> Callable[[Any, Any], Any]:
    """`step` of a state whose leaves are arrays."""
    @functools.wraps(step)
    def of_arrays(state: Any, batch: Any) -> Any:
        results = step(_with_statics(state), batch)
        return (_without_statics(results[0], asked), *results[1:]) if isinstance(results, tuple) and results else results
    return of_arrays


def _on_one_device(step: Callable[[Any, Any], Any], axes: tuple[str, ...]) -> Callable[[Any, Any], Any]:
    """`step` with axes of devices, of which there is one: lax.pmean over it changes nothing."""
    import jax

    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape((1,) * len(axes)), axes)
    every = jax.sharding.PartitionSpec()
    return jax.shard_map(step, mesh=mesh, in_specs=every, out_specs=every, check_vma=False)


# What the size of an open batch was divided by: floordiv(b, 2), mod(3*b, - 12).
_QUOTIENT = re.compile(r"(?:floordiv|mod)\((?:(\d+)\*)?b(?: [-+] \d+)?, (?:- )?(\d+)\)")


def _find_multiple(text: str, multiple: int) -> int:
    """What a batch of `multiple` times b is to be a multiple of for its quotients in `text` to be whole."""
    return multiple * math.lcm(*(int(divisor) // math.gcd(int(divisor), int(factor or 1)) for factor, divisor in _QUOTIENT.findall(text)))


def _write_for_parts(write: Callable[[int, int], Any], smallest: int, example: int, multiple: int | None) -> tuple[int, int, Any]:
    """What `write` gives of a batch of k times b examples, with b at least some number, for as small a k as possible by which `example` can be divided: JAX says what
    it cannot divide. `write` gives as well in what terms of b it wrote."""
    import jax

    def write_for(k: int) -> tuple[int, Any]:
        return _write_for_enough(functools.partial(write, k), -(-smallest // k), max(example // k, 1))

    first: Exception | None = None
    found: tuple[int, int, Any] | None = None
    k = multiple or 1
    for _ in range(8):
        try:
            least, written = write_for(k)
        except (jax.errors.InconclusiveDimensionOperation, TypeError, ValueError) as error:
            first, text = first or error, str(error)
        else:
            found, text = (k, k * least if least > 1 else 1, written), written[-1]
        larger = k if multiple else _find_multiple(text, k)
        if larger == k or example % larger:
            break
        k = larger
    if found is None:
        assert first is not None
        raise first
    return found


def export(step: Callable[[Any, Any], Any], state: Any, batch: Any, path: str | os.PathLike[str], *, smallest_batch: int = 1,
           batch_multiple: int | None = None) -> Step:
    """Writes a training step to `path` (the module), with its signature (.json) and initial state (.npz) beside it.

    step:   `step(state, batch)` gives the next state and the loss, one number; or those and a dictionary of further
            values, which may be fetched while training.
    state:  a tree of arrays: parameters, the optimizer's state, counters, random keys. What is no array in it (functions) stays as it is.
    batch:  a tree of arrays, or of what has a shape and a dtype. The first axis of each is the batch's; its size is left
            open.
    smallest_batch: how many examples every batch has at least, where the step takes some of them by a number (lax.top_k over them). What
            holds from some number on that `batch` has is found, and refused for smaller ones by `distc compile`.
    batch_multiple: what each replica's number of examples is a multiple of, where the step takes the batch apart into equal parts (x.reshape(4, -1, 8),
            jnp.split, x[:n // 2]). Is found where `batch` can be divided so.
    """
    import jax

    if pathlib.PurePath(getattr(getattr(step, "__code__", None), "co_filename", "")).parts[-3:] == ("jax", "_src", "pmap.py"):
        raise NotImplementedError("the step is one of several devices (jax.pmap): give the function that jax.pmap is given, with a state and a batch that have no axis of devices. "
                                  "lax.pmean by its axis_name is of one device then, and distc makes replicas of it")
    path = pathlib.Path(path)
    if path.suffix != ".mlir":
        raise ValueError(f"the path of a step ends in .mlir, but is '{path}'")
    try:
        return _export(_of_arrays(step), _without_statics(state), batch, path, smallest_batch, batch_multiple)
    except jax.errors.ConcretizationTypeError:
        asked = _without_statics(state, _ASKED)
        if jax.tree.structure(asked) == jax.tree.structure(_without_statics(state)):
            raise
    return _export(_of_arrays(step, _ASKED), asked, batch, path, smallest_batch, batch_multiple)


def _export(step: Callable[[Any, Any], Any], state: Any, batch: Any, path: pathlib.Path, smallest_batch: int, batch_multiple: int | None) -> Step:
    """Of a state whose leaves are arrays."""
    import jax
    from jax import export as jax_export

    from distc._comparisons import watched_comparisons
    from distc._debug import warn_of_calls, without_calls
    from distc._loops import with_examples_at_once

    state_leaves, state_structure = jax.tree_util.tree_flatten_with_path(state)
    batch_leaves, batch_structure = jax.tree_util.tree_flatten_with_path(batch)
    taken = {"train", "init", "loss"}
    state_names = _make_names(state_leaves, "state", taken)
    batch_names = _make_names(batch_leaves, "batch", taken)

    for name, (_, leaf) in zip(batch_names, batch_leaves):
        if not hasattr(leaf, "shape") or len(leaf.shape) == 0:
            raise ValueError(f"'{name}' of the batch has no axis of examples")
        if jax.numpy.issubdtype(leaf.dtype, jax.numpy.complexfloating):
            raise ValueError(f"'{name}' of the batch has complex numbers, which executables do not read: give real and imaginary parts, of which the step makes them")
    counts = {leaf.shape[0]: name for name, (_, leaf) in zip(batch_names, batch_leaves)}
    if len(counts) > 1:
        raise ValueError("each array of the batch has as many examples, but " + ", ".join(f"'{name}' has {count}" for count, name in counts.items()))

    _write_library_calls()
    most = min((leaf.shape[0] for _, leaf in batch_leaves if isinstance(leaf.shape[0], int)), default=0)

    def write(multiple: int, least: int) -> tuple[Any, list[Any], str]:
        (size,) = jax_export.symbolic_shape("b" if multiple == 1 else f"{multiple}*b", constraints=[f"b >= {least}"] if least > 1 else [])
        specs = [jax.ShapeDtypeStruct((size, *leaf.shape[1:]), jax.dtypes.canonicalize_dtype(leaf.dtype)) for _, leaf in batch_leaves]
        symbolic = jax.tree.unflatten(batch_structure, specs)
        # Unused arguments stay: each leaf of the state is one.
        with watched_comparisons() as comparisons:
            jitted, sizes = with_examples_at_once(step, state, symbolic)
            exported = jax_export.export(jitted, platforms=(_PLATFORM,),
                                         disabled_checks=[jax_export.DisabledSafetyCheck.custom_call(CHECK_OF_INDICES)])(state, symbolic)
        if most and most % multiple == 0:
            for comparison in comparisons:
                comparison.check(most // multiple)
        return exported, specs, sizes

    axes: list[str] = []
    given = step
    with _with_ways_out(), without_calls() as calls:
        while True:
            try:
                multiple, smallest_batch, (exported, specs, _) = _write_for_parts(write, smallest_batch, most, batch_multiple)
                break
            except NameError as error:
                # The step of one device out of a jax.pmap or shard_map over several.
                axis = re.search(r"unbound axis name: ([^\s.]+)", str(error))
                if axis is None or axis[1] in axes:
                    raise
                axes.append(axis[1])
                step = _on_one_device(given, tuple(axes))
    if calls:
        warn_of_calls(stacklevel=2)
    shapes = jax.eval_shape(step, state, jax.tree.unflatten(
        batch_structure, [jax.ShapeDtypeStruct((-(-max(8, smallest_batch) // multiple) * multiple, *spec.shape[1:]), spec.dtype) for spec in specs]))
    if not isinstance(shapes, tuple) or len(shapes) not in (2, 3):
        raise ValueError(f"the step gives (state, loss) or (state, loss, fetches), but gave {jax.tree.map(_describe, shapes)}")
    if jax.tree.structure(shapes[0]) != state_structure:
        raise ValueError(f"the step gives a state of the structure {jax.tree.structure(shapes[0])}, "
                         f"but takes one of {state_structure}")
    if jax.tree.structure(shapes[1]) != jax.tree.structure(0) or shapes[1].shape != () or not jax.numpy.issubdtype(shapes[1].dtype, jax.numpy.floating):
        raise ValueError(f"the loss, the second of what the step gives, is one number, but is {jax.tree.map(_describe, shapes[1])}")
    for name, (_, leaf), given in zip(state_names, state_leaves, jax.tree.leaves(shapes[0])):
        before = jax.eval_shape(lambda leaf: leaf, leaf)
        if (before.shape, before.dtype) != (given.shape, given.dtype):
            raise ValueError(f"'{name}' of the state is {_describe(before)}, but the step gives {_describe(given)} for it")
    fetched = jax.tree_util.tree_flatten_with_path(shapes[2])[0] if len(shapes) == 3 else []
    fetch_names = _make_names(fetched, "fetch", taken)

    arguments: list[dict[str, Any]] = []
    initial: dict[str, np.ndarray] = {}
    leaves: list[Leaf] = []
    for number, (name, (_, leaf)) in enumerate(zip(state_names, state_leaves)):
        array = np.asarray(_get_data(leaf))
        array = array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)
        leaves.append(Leaf(name, array.dtype.name, array.shape))
        initial[name] = to_file(name, array)
        arguments.append({"name": name, "role": "state", "result": number, "dtype": array.dtype.name,
                          "shape": list(array.shape)})
    feeds = [Leaf(name, np.dtype(spec.dtype).name, (None, *spec.shape[1:])) for name, spec in zip(batch_names, specs)]
    for leaf in feeds:
        arguments.append({"name": leaf.name, "role": "batch", "dtype": leaf.dtype, "shape": list(leaf.shape)})
    count = len(state_leaves)
    signature = {"version": 1, "arguments": arguments, "loss": count,
                 "fetches": [{"name": name, "result": count + 1 + i, "shape": list(shape.shape)}
                             for i, (name, (_, shape)) in enumerate(zip(fetch_names, fetched))],
                 "initial": path.with_suffix(".npz").name}
    if smallest_batch > 1:
        signature["smallest_batch"] = smallest_batch
    if multiple > 1:
        signature["batch_multiple"] = multiple
    path.write_text(_get_text(exported.mlir_module()))
    path.with_suffix(".json").write_text(json.dumps(signature, indent=1) + "\n")
    with open(path.with_suffix(".npz"), "wb") as file:
        np.savez(file, **initial)
    keys = [_get_key_type(leaf) for _, leaf in state_leaves]
    logged = [name for name, (_, shape) in zip(fetch_names, fetched) if shape.shape == ()]
    return Step(path, leaves, feeds, logged, (state_structure, keys), (batch_structure, [None] * len(feeds)))


def _get_text(module: str) -> str:
    """The module in generic form, which any MLIR reads."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        return print_generic(ir.Module.parse(module))


def print_generic(module: Any) -> str:
    """A module of jaxlib's bindings in generic form. Of its locations the names stay, not the caller's files."""
    from jaxlib.mlir import ir

    def rename(op: Any) -> Any:
        # The first that is quoted and no file, which a line's number follows.
        name = re.search(r'"((?:[^"\\]|\\.)*)"(?!:)', str(op.location))
        op.operation.location = ir.Location.name(name[1]) if name else ir.Location.unknown()
        return ir.WalkResult.ADVANCE

    module.operation.walk(rename)
    text = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)
    return re.sub(r'loc\("(?:[^"\\]|\\.)*":\d[^()]*\)', "loc(unknown)", text)


def convert(source: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Writes the module of StableHLO in the file `source`, a portable artifact or text, to `path` in the generic form that distc
    reads. Fails with a ValueError that says what is wrong with it."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    data = pathlib.Path(source).read_bytes()
    with mlir.make_ir_context() as context:
        try:
            module = stablehlo.deserialize_portable_artifact(context, data) if data.startswith(b"ML\xefR") else ir.Module.parse(data)
        except Exception as error:  # of the bindings, whose types differ between versions
            raise ValueError(f"'{source}' is no module of StableHLO that this jaxlib reads: {error}") from error
        if module is None:
            raise ValueError(f"'{source}' is no portable artifact that this jaxlib reads")
        pathlib.Path(path).write_text(print_generic(module))
