import json

import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp
import numpy as np
from jax import lax

import distc
import models

BATCH, STEPS = 12, 20
MODELS = {
    "mlp-sgd": lambda: models.mlp(optax.sgd(0.1)),
    "mlp-momentum": lambda: models.mlp(optax.sgd(0.1, momentum=0.9, nesterov=True)),
    "mlp-adam": lambda: models.mlp(optax.adam(1e-2)),
    "mlp-adamw": lambda: models.mlp(models.adamw()),
    "convolutional": lambda: models.convolutional(optax.sgd(0.1, momentum=0.9)),
    "transformer": lambda: models.transformer(models.adamw()),
    "recurrent": lambda: models.recurrent(optax.adam(1e-2)),
}
# (strategy, replicas, processes); every model with the first ones.
ALL = [("AllReduce", 1, False), ("AllReduce", 2, False)]
SOME = [("AllReduce", 4, False), ("PartitionedAR", 2, False), ("ShardedUpdate", 2, True), ("PSLoadBalancing", 2, True)]
RUNS = [(model, *run) for model in MODELS for run in ALL] + [(model, *run) for model in ("mlp-adamw", "transformer") for run in SOME]


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Each model, exported once, with what JAX computes."""
    known = {}

    def get(name):
        if name not in known:
            step, state, data = MODELS[name]()
            path = tmp_path_factory.mktemp("step") / f"{name}.mlir"
            known[name] = (distc.jax.export(step, state, data, path), data,
                           *models.train_here(step, state, data, BATCH, STEPS))
        return known[name]

    return get


@pytest.mark.parametrize("model,strategy,replicas,processes", RUNS)
def test_training_is_jaxs(exported, model, strategy, replicas, processes):
    compare(exported(model), strategy=strategy, replicas=replicas, processes=processes)


# Slots come before the parameters here, and after them in TensorFlow's graphs.
@pytest.mark.parametrize("model,strategy,replicas", [("mlp-momentum", "ShardedUpdate", 2), ("transformer", "ShardedUpdate", 2),
                                                     ("convolutional", "AllReduce", 2)])
def test_training_is_jaxs_on_emulated_devices(exported, model, strategy, replicas):
    compare(exported(model), strategy=strategy, replicas=replicas, flags=["--target=cuda:emulated"])


def compare(model, **options):
    step, data, losses, state = model
    result = distc.compile(step, batch=BATCH, **options).train(data, STEPS)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
    assert jax.tree.structure(result.state) == jax.tree.structure(state)
    for ours, theirs in zip(jax.tree.leaves(result.state), jax.tree.leaves(state)):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


# Rules of one gradient, which workers divide, and (lamb, adafactor) others, which each computes.
OPTIMIZERS = {
    "adagrad": lambda: optax.adagrad(0.1), "rmsprop": lambda: optax.rmsprop(1e-2, momentum=0.9, centered=True), "lion": lambda: optax.lion(1e-3),
    "amsgrad": lambda: optax.amsgrad(1e-2), "adan": lambda: optax.adan(1e-2), "multisteps": lambda: optax.MultiSteps(optax.adam(1e-2), 2),
    "finite": lambda: optax.apply_if_finite(optax.adam(1e-2), 3), "ema": lambda: optax.chain(optax.ema(0.9), optax.sgd(0.1)),
    "lamb": lambda: optax.lamb(1e-2), "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=4),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_are_divided(tmp_path, name):
    step, state, data = models.mlp(OPTIMIZERS[name]())
    losses, last = models.train_here(step, state, data, BATCH, STEPS)
    exported = distc.jax.export(step, state, data, tmp_path / "step.mlir")
    for strategy, replicas, processes in (("ShardedUpdate", 2, True), ("PartitionedAR", 4, False), ("PSLoadBalancing", 2, True)):
        result = distc.compile(exported, strategy=strategy, replicas=replicas, batch=BATCH, processes=processes).train(data, STEPS)
        np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
        for ours, theirs in zip(jax.tree.leaves(result.state), jax.tree.leaves(last)):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_the_portable_artifact_is_converted(tmp_path):
    from jax import export as jax_export

    exported = jax_export.export(jax.jit(lambda w, x: (w - x.mean(0), (w * x).mean())))(
        jax.ShapeDtypeStruct((3,), jnp.float32), jax.ShapeDtypeStruct(jax_export.symbolic_shape("b, 3"), jnp.float32))
    (tmp_path / "step.bc").write_bytes(exported.mlir_module_serialized)
    (tmp_path / "step.txt").write_text(exported.mlir_module())
    (tmp_path / "step.json").write_text('{"version": 1, "arguments": [{"name": "w", "role": "state", "result": 0, "dtype": "float32", "shape": [3]}, '
                                        '{"name": "x", "role": "batch", "dtype": "float32", "shape": [null, 3]}], "loss": 1, "initial": "step.npz"}')
    np.savez(tmp_path / "step.npz", w=np.ones(3, "f"))
    for name in ("step.bc", "step.txt"):
        with pytest.raises(distc.CompileError, match="python -m distc convert"):
            distc.compile(distc.jax.Step.read(tmp_path / name), batch=4)
        distc.jax.convert(tmp_path / name, tmp_path / "step.mlir")
        result = distc.compile(tmp_path / "step.mlir", batch=4, replicas=2).train({"x": np.ones((4, 3), "f")}, 2)
        np.testing.assert_allclose(result.losses, [1.0, 0.0])
    (tmp_path / "broken.bc").write_bytes(exported.mlir_module_serialized[:100])
    with pytest.raises(ValueError, match="broken.bc"):
        distc.jax.convert(tmp_path / "broken.bc", tmp_path / "step.mlir")


@pytest.mark.parametrize("strategy,processes", [("AllReduce", False), ("ShardedUpdate", True)])
def test_goes_on_from_a_state(exported, strategy, processes):
    step, data, losses, _ = exported("mlp-adam")
    executable = distc.compile(step, batch=BATCH, strategy=strategy, replicas=2, processes=processes)
    first = executable.train(data, 10)
    # 10 steps are 5 times through the data.
    second = executable.train(data, 10, state=first.state)
    np.testing.assert_allclose(np.concatenate([first.losses, second.losses]), losses, rtol=1e-5, atol=1e-5)


def test_fetches(tmp_path):
    def step(state, batch):
        return {"w": state["w"] - 0.1 * batch["x"].mean(0)}, (state["w"] * batch["x"]).mean(), {"size": jnp.abs(state["w"]).max()}

    state, data = {"w": jnp.arange(3.0)}, {"x": np.ones((4, 3), "f")}
    executable = distc.compile(distc.jax.export(step, state, data, tmp_path / "step.mlir"), batch=4, replicas=2)
    np.testing.assert_allclose(executable.train(data, 3).fetches["size"], [2.0, 1.9, 1.8], rtol=1e-6)


def test_unsigned_fetches(tmp_path):
    data = {"x": np.arange(1, 9, dtype=np.float32)[:, None], "byte": np.array([200, 1, 2, 3, 250, 5, 6, 7], np.uint8), "word": np.full(8, 10 ** 9, np.uint32)}

    def step(state, batch):
        fetches = {"first": batch["byte"][0], "largest": batch["byte"].max(), "wrapped": batch["word"].sum()}
        return {"w": state["w"] + batch["x"].mean()}, batch["x"].mean(), fetches

    state = {"w": jnp.float32(0)}
    expected = {name: float(value) for name, value in jax.jit(step)(state, data)[2].items()}
    exported = distc.jax.export(step, state, data, tmp_path / "step.mlir")
    for replicas in (1, 2):
        fetches = distc.compile(exported, batch=8, replicas=replicas, output=tmp_path / "train").train(data, 1).fetches
        assert {name: float(value[0]) for name, value in fetches.items()} == pytest.approx(expected)


def test_a_step_that_was_read_has_names(exported):
    step, data, losses, state = exported("mlp-sgd")
    result = distc.compile(str(step.path), batch=BATCH).train(data, STEPS)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(result.state["params/w1"], state["params"]["w1"], rtol=1e-5, atol=1e-5)


def test_notebooks_show_the_plan(exported):
    step, _, _, _ = exported("mlp-sgd")
    executable = distc.compile(step, batch=BATCH, replicas=2)
    page = executable.plan_page()
    assert page.startswith("<!DOCTYPE html>") and '"name":"params/w1"' in page
    cell = executable._repr_html_()
    assert cell.startswith("<iframe") and "<script" not in cell
    with pytest.raises(distc.CompileError, match="knows what it was compiled of"):
        distc.Executable(executable.path, step).plan_page()


def test_unknown_operations_are_listed(tmp_path):
    def step(state, batch):
        return state, jnp.abs(jnp.linalg.qr(batch["x"].T @ batch["x"] * (1j * state["w"]))[1]).mean()

    exported = distc.jax.export(step, {"w": jnp.ones(4)}, {"x": np.ones((4, 4), "f")}, tmp_path / "step.mlir")
    with pytest.raises(distc.CompileError, match=r"stablehlo.custom_call of complex numbers \(2\)"):
        distc.compile(exported, batch=4)


def test_a_step_must_give_its_state(tmp_path):
    with pytest.raises(ValueError, match="structure"):
        distc.jax.export(lambda state, batch: ((), batch["x"].sum()), {"w": jnp.ones(3)}, {"x": np.ones((4, 3), "f")},
                         tmp_path / "step.mlir")


def test_functions_in_the_state_stay(tmp_path):
    """Models whose activations are leaves, as Equinox has them, and numbers that Python is asked about."""
    def step(state, batch):
        def loss(w):
            return (state["model"]["activation"](batch["x"] @ w) if state["model"]["trains"] else w).mean()

        value, gradient = jax.value_and_grad(loss)(state["model"]["w"])
        return {**state, "model": {**state["model"], "w": state["model"]["w"] - 0.1 * gradient}}, value

    state, data = {"model": {"activation": jnp.tanh, "trains": True, "w": jnp.arange(3.0)}, "name": "small"}, {"x": np.full((8, 3), 0.5, "f")}
    executable = distc.compile(distc.jax.export(step, state, data, tmp_path / "step.mlir"), batch=8, replicas=2)
    first = executable.train(data, 2)
    assert first.state["model"]["activation"] is jnp.tanh and first.state["model"]["trains"] is True and first.state["name"] == "small"
    second = executable.train(data, 1, state=first.state)
    again, loss = step(first.state, data)
    np.testing.assert_allclose(second.losses, [loss], rtol=1e-5)
    np.testing.assert_allclose(second.state["model"]["w"], again["model"]["w"], rtol=1e-5)


@pytest.mark.parametrize("step,batch,message", [
    (lambda w, x: (w, (x @ w).sum().astype(int)), np.ones((4, 3), "f"), r"one number, but is int32\[\]"),
    (lambda w, x: (w, ((x @ w).mean(), {"n": 1.0})), np.ones((4, 3), "f"), "one number, but is .*'n'"),
    (lambda w, x: (w.astype(jnp.bfloat16), (x @ w).mean()), np.ones((4, 3), "f"), r"is float32\[3\], but the step gives bfloat16\[3\]"),
    (lambda w, x: (w[:2], (x @ w).mean()), np.ones((4, 3), "f"), r"is float32\[3\], but the step gives float32\[2\]"),
    (lambda w, x: (w, jnp.abs(x @ w).mean()), np.ones((4, 3), "complex64"), "has complex numbers"),
])
def test_what_a_step_is_not(tmp_path, step, batch, message):
    with pytest.raises(ValueError, match=message):
        distc.jax.export(step, jnp.ones(3), batch, tmp_path / "step.mlir")


def test_gradients_are_widened_before_they_are_reduced(tmp_path):
    """A parameter of float32 whose gradient is computed in bfloat16."""
    def step(state, batch):
        def loss(w):
            return (batch["x"].astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32).mean()

        value, gradient = jax.value_and_grad(loss)(state["w"])
        slot = 0.9 * state["slot"] + gradient
        return {"w": state["w"] - 0.1 * slot, "slot": slot}, value

    state, data = {"w": jnp.ones((3, 2)), "slot": jnp.zeros((3, 2))}, {"x": np.full((8, 3), 0.5, "f")}
    exported = distc.jax.export(step, state, data, tmp_path / "step.mlir")
    for strategy, processes in (("AllReduce", False), ("ShardedUpdate", True)):
        result = distc.compile(exported, strategy=strategy, batch=8, replicas=2, processes=processes).train(data, 2)
        np.testing.assert_allclose(result.losses, [1.5, 1.4625], rtol=1e-2)


def test_arrays_of_numpys_own_types(tmp_path):
    """float64 and int64 are what JAX makes of them; a fetch that is no number is left out of what training gives."""
    def step(state, batch):
        y = batch["x"] @ state["w"]
        fetches = {"largest": y.max(), "all": jnp.stack([y.min(), y.max()]), "none": y.max() / 0}
        return {"w": state["w"] - 0.1 * batch["x"].mean(0) * batch["n"].sum(), "count": state["count"] + 1}, y.mean(), fetches

    state = {"w": np.ones(3), "count": np.int64(3)}
    data = {"x": np.random.default_rng(0).normal(size=(8, 3)), "n": np.arange(8)}
    exported = distc.jax.export(step, state, data, tmp_path / "step.mlir")
    for read in (exported, distc.Step.read(tmp_path / "step.mlir")) if hasattr(distc, "Step") else (exported,):
        result = distc.compile(read, batch=8, replicas=2).train(data, 2)
        assert result.state["count"] == 5 and set(result.fetches) == {"largest", "none"} and result.fetches["none"].dtype == float
        np.testing.assert_allclose(result.losses[0], data["x"].sum(1).mean(), rtol=1e-5)


def test_state_of_bfloat16(tmp_path):
    def step(state, batch):
        value, gradient = jax.value_and_grad(lambda w: ((batch["x"] @ w.astype(jnp.float32)) ** 2).mean())(state["w"])
        return {"w": state["w"] - jnp.bfloat16(0.125) * gradient}, value

    state, data = {"w": jnp.ones((3, 2), jnp.bfloat16)}, {"x": np.full((8, 3), 0.5, "f")}
    exported = distc.jax.export(step, state, data, tmp_path / "step.mlir")
    want, _ = jax.jit(step)(state, data)
    result = distc.compile(exported, batch=8, replicas=2).train(data, 1)
    assert result.state["w"].dtype == jnp.bfloat16
    np.testing.assert_array_equal(result.state["w"], want["w"])
    np.testing.assert_array_equal(distc.compile(exported, batch=8).train(data, 1, state=want).state["w"], jax.jit(step)(want, data)[0]["w"])


@pytest.mark.parametrize("loss", [
    # What is kept is rounded to its own precision.
    lambda x, w: jax.checkpoint(lambda x: jnp.tanh(jnp.tanh(x @ w) @ w.T), policy=jax.checkpoint_policies.dots_saveable)(x).mean(),
    lambda x, w: jax.lax.reduce_window(x @ w, jnp.inf, jax.lax.min, (1, 2), (1, 1), "VALID").mean(),
    lambda x, w: jax.lax.reduce_window(jnp.tanh(x @ w), jnp.inf, jax.lax.min, (1, 2), (1, 2), "SAME").mean(),
    # What examples of jax.vmap have in common.
    lambda x, w: jax.vmap(lambda row: (row @ w - jax.lax.pmean(row @ w, "i")) * jax.lax.rsqrt(0.1 + jax.lax.pmean((row @ w) ** 2, "i")) * jax.lax.psum(row[0], "i"), axis_name="i")(x).var(),
    lambda x, w: jax.vmap(lambda row: jax.nn.logsumexp(jax.lax.all_gather(row @ w, "i") @ (row @ w)) / jax.lax.axis_size("i"), axis_name="i")(x).mean(),
    # Every part of an example meets every part of every other one.
    lambda x, w: jax.nn.logsumexp(jnp.einsum("bqd,cnd->bcqn", x.reshape(-1, 2, 2), jnp.stack([x @ w, -x @ w], -1)).max(-1).sum(-1), 1).mean(),
])
def test_gradients_are_jaxs(tmp_path, loss):
    def step(state, batch):
        value, gradient = jax.value_and_grad(lambda w: loss(batch["x"], w))(state["w"])
        return {"w": state["w"] - 0.5 * gradient}, value

    # In float32 means of terms of either sign nearly cancel, and JAX's own weights are as far from these as distc's.
    with jax.enable_x64(True):
        numbers = np.random.default_rng(0)
        state, data = {"w": jnp.asarray(numbers.normal(size=(4, 3)))}, {"x": numbers.normal(size=(8, 4))}
        result = distc.compile(distc.jax.export(step, state, data, tmp_path / "step.mlir"), batch=8, replicas=2).train(data, 3)
        losses, last = models.train_here(step, state, data, 8, 3)
        np.testing.assert_allclose(result.losses, losses, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(result.state["w"], last["w"], rtol=1e-9, atol=1e-12)


def test_numbers_of_python_are_state(tmp_path):
    def step(state, batch):
        return {"w": state["w"] - 0.1 * batch["x"].mean(0), "step": state["step"] + 1, "count": state["count"] + jnp.uint32(2)}, (state["w"] * batch["x"]).mean()

    state, data = {"w": jnp.arange(3.0), "step": 4, "count": jnp.uint32(2**31)}, {"x": np.ones((4, 3), "f")}
    result = distc.compile(distc.jax.export(step, state, data, tmp_path / "step.mlir"), batch=4, replicas=2).train(data, 3)
    assert result.state["step"] == 7 and result.state["count"] == 2**31 + 6 and result.state["count"].shape == ()


@pytest.mark.parametrize("kind", ["rbg", "unsafe_rbg"])
@pytest.mark.parametrize("replicas,flags", [(3, []), (2, ["--target", "cuda:emulated"])])
def test_keys_of_the_devices_generator(tmp_path, kind, replicas, flags):
    """Philox's numbers, by rows of three: what a replica draws begins within one of the generator's four."""
    def step(state, batch):
        key, *keys = jax.random.split(state["key"], 4)
        def loss(w):
            rows = batch["x"] * w + jax.random.normal(keys[0], batch["x"].shape)
            rows = jnp.where(jax.random.bernoulli(keys[1], 0.7, rows.shape), rows, 0)
            return jnp.mean((rows.sum(1) + jax.random.uniform(keys[2], rows.shape[:1])) ** 2)
        value, gradient = jax.value_and_grad(loss)(state["w"])
        return {"w": state["w"] - 0.1 * gradient, "key": key}, value

    state = {"w": jnp.arange(3.0), "key": jax.random.key(7, impl=kind)}
    data = {"x": np.random.RandomState(0).randn(36, 3).astype("f")}
    losses, last = models.train_here(step, state, data, 12, 3)
    exported = distc.jax.export(step, state, data, tmp_path / "step.mlir")
    result = distc.compile(exported, replicas=replicas, batch=12, flags=flags).train(data, 3)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5)
    np.testing.assert_allclose(result.state["w"], last["w"], rtol=1e-5)
    assert (jax.random.key_data(result.state["key"]) == jax.random.key_data(last["key"])).all()


@pytest.mark.parametrize("to", ["uint8", "uint16", "float16", "int64", "float64"])
def test_bits_of_other_sizes(tmp_path, to):
    def step(state, batch):
        bits = jax.lax.bitcast_convert_type(batch["x"].reshape(-1, 2) if to.endswith("64") else batch["x"], to)
        return state, jnp.mean(jnp.where(jnp.isfinite(bits.astype("float64")), bits, 1).astype("float64") % 1000)

    with jax.enable_x64(True):
        data = {"x": np.random.RandomState(0).randint(-2**31, 2**31, (12, 2)).astype("i4")}
        want = [float(step({}, {"x": data["x"]})[1])]
        exported = distc.jax.export(step, {"w": jnp.float32(0)}, data, tmp_path / "step.mlir")
        np.testing.assert_allclose(distc.compile(exported, replicas=2, batch=12).train(data, 1).losses, want, rtol=1e-6)


@pytest.mark.parametrize("optimizer", [optax.sgd(0.1), optax.adagrad(0.1), optax.sgd(0.1, momentum=0.9)])
@pytest.mark.parametrize("strategy,processes", [("AllReduce", False), ("PartitionedAR", False), ("Parallax", True)])
def test_gradients_of_embeddings_are_rows(tmp_path, optimizer, strategy, processes):
    """Rows from the end and outside of the table included. Momentum changes rows that the batch does not name."""
    random = np.random.RandomState(0)
    params = {"users": jnp.asarray(random.randn(90, 4), "f"), "items": jnp.asarray(random.randn(70, 4), "f")}
    data = {"user": random.randint(0, 20, 24).astype("i"), "item": random.randint(-9, 9, (24, 3)).astype("i"), "y": random.randn(24).astype("f")}
    data["user"][3] = 500
    step, state = models.make_step(lambda p, batch: jnp.mean(((p["users"][batch["user"]] * p["items"][batch["item"]].mean(1)).sum(1) - batch["y"]) ** 2),
                                   optimizer, params)
    losses, last = models.train_here(step, state, data, BATCH, STEPS)
    exported = distc.jax.export(step, state, data, tmp_path / "step.mlir")
    result = distc.compile(exported, strategy=strategy, replicas=2, batch=BATCH, processes=processes).train(data, STEPS)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(jax.tree.leaves(result.state), jax.tree.leaves(last)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def accumulate(w, x):
    """Microbatches by hand."""
    def add(total, part):
        value, gradient = jax.value_and_grad(lambda w: jnp.tanh(part @ w).var())(w)
        return (total[0] + value, total[1] + gradient), None
    (value, gradient), _ = lax.scan(add, (0.0, jnp.zeros_like(w)), x.reshape(4, -1, 3))
    return value / 4 + jnp.sum(w * lax.stop_gradient(gradient))


def contrast(w, x):
    """Two views of each example, as SimCLR has them."""
    z = jnp.concatenate(jnp.split(x, 2)[::-1]) * w
    n = x.shape[0] // 2
    others = jnp.concatenate([jnp.arange(n) + n, jnp.arange(n)])
    return -jnp.take_along_axis(jax.nn.log_softmax(jnp.where(jnp.eye(2 * n, dtype=bool), -9.0, z @ z.T)), others[:, None], 1).mean()


@pytest.mark.parametrize("loss,multiple", [
    (accumulate, 4), (contrast, 2),
    (lambda w, x: sum(jnp.tanh(part @ w).var() for part in jnp.split(x, 3)), 3),
    (lambda w, x: ((x[:x.shape[0] // 2] @ w) * jnp.sin(x[x.shape[0] // 2:] @ w)).mean(), 2),
    (lambda w, x: jnp.tanh((x[0::2] - x[1::2]) @ w).var(), 2),
    (lambda w, x: jnp.tanh((x.reshape(-1, 4, 3) - x.reshape(-1, 4, 3).mean(1, keepdims=True)) @ w).std(1).mean(), 4),
    (lambda w, x: (jnp.roll(x @ w, x.shape[0] // 2) * jnp.tanh(x @ w)).mean(), 2),
    (lambda w, x: jnp.tanh(x.at[:x.shape[0] // 4].multiply(0.5).at[x.shape[0] // 2:].set(x[:x.shape[0] // 2]) @ w).var(), 4),
    (lambda w, x: lax.map(lambda row: jnp.tanh(row @ w), x, batch_size=2).var(), 2),
    (lambda w, x: lax.scan(lambda c, i: (c + lax.dynamic_slice_in_dim(jnp.tanh(x * w), i * (x.shape[0] // 4), x.shape[0] // 4).std(), None), 0.0, jnp.arange(4))[0], 4),
    (lambda w, x: (x[jax.random.permutation(jax.random.key(0), x.shape[0])] @ w * jnp.tanh(x @ w)).mean(), None),
])
def test_equal_parts_of_the_batch(tmp_path, loss, multiple):
    def step(w, batch):
        value, gradient = jax.value_and_grad(loss)(w, batch["x"])
        return w - 0.3 * gradient, value

    w, data = jnp.asarray([0.7, -0.2, 0.4]), {"x": np.random.RandomState(0).randn(48, 3).astype("f")}
    exported = distc.jax.export(step, w, {"x": data["x"][:24]}, tmp_path / "step.mlir")
    assert json.loads((tmp_path / "step.json").read_text()).get("batch_multiple") == multiple
    losses, last = models.train_here(step, w, data, 24, 3)
    for replicas in (1, 2):
        result = distc.compile(exported, batch=24, replicas=replicas).train(data, 3)
        np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(result.state, last, rtol=1e-5, atol=1e-6)


def test_steps_of_one_device_of_several(tmp_path):
    """Out of a jax.pmap: what is over its axis is of one device. Loops over the examples as well."""
    def step(w, batch):
        def loss(w):
            x = batch["x"] - lax.pmean(batch["x"].mean(0), "devices")
            x = x * jax.random.bernoulli(jax.random.fold_in(jax.random.key(0), lax.axis_index("devices")), 0.9, x.shape)
            return lax.scan(lambda c, row: (c + jnp.tanh(row @ w), None), 0.0, x)[0] / x.shape[0]

        value, gradient = jax.value_and_grad(loss)(w)
        return w - 0.3 * lax.pmean(gradient, axis_name="devices"), lax.psum(value, "devices")

    mesh, every, rows = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("devices",)), jax.sharding.PartitionSpec(), jax.sharding.PartitionSpec("devices")
    sharded = jax.shard_map(step, mesh=mesh, in_specs=(every, rows), out_specs=every, check_vma=False)
    w, data = jnp.asarray([0.7, -0.2, 0.4]), {"x": np.random.RandomState(0).randn(16, 3).astype("f")}
    losses, last = models.train_here(sharded, w, data, 8, 4)
    for each in (step, sharded):
        result = distc.compile(distc.jax.export(each, w, {"x": data["x"][:8]}, tmp_path / "step.mlir"), batch=8, replicas=2).train(data, 4)
        np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(result.state, last, rtol=1e-5, atol=1e-6)
    with pytest.raises(NotImplementedError, match="give the function that jax.pmap is given"):
        distc.jax.export(jax.pmap(step, axis_name="devices"), w[None], {"x": data["x"][None]}, tmp_path / "step.mlir")
    several = (tmp_path / "step.mlir").read_text().replace("mhlo.num_partitions = 1", "mhlo.num_partitions = 2")
    (tmp_path / "step.mlir").write_text(several)
    with pytest.raises(distc.CompileError, match="several devices"):
        distc.compile(tmp_path / "step.mlir", batch=8)


def test_parts_that_a_batch_has_not(tmp_path):
    def step(w, batch):
        return w - batch["x"].reshape(4, -1, 3).std(0).mean(0), (batch["x"] @ w).mean()

    w, data = jnp.ones(3), {"x": np.random.RandomState(0).randn(16, 3).astype("f")}
    with pytest.raises(NotImplementedError, match="batch_multiple"):
        distc.jax.export(step, w, {"x": data["x"][:6]}, tmp_path / "step.mlir")
    exported = distc.jax.export(step, w, {"x": data["x"][:6]}, tmp_path / "step.mlir", batch_multiple=4)
    with pytest.raises(distc.CompileError, match="a --batch that is a multiple of 8"):
        distc.compile(exported, batch=12, replicas=2)
    np.testing.assert_allclose(distc.compile(exported, batch=16, replicas=2).train(data, 1).state, step(w, data)[0], rtol=1e-5)


def test_many_examples_in_random_order(tmp_path):
    """From 1626 on JAX sorts them twice."""
    def step(w, batch):
        return w + batch[jax.random.permutation(jax.random.key(0), batch.shape[0])][0], (batch * w).mean()

    data = np.random.RandomState(0).randn(1626, 3).astype("f")
    exported = distc.jax.export(step, jnp.ones(3), data, tmp_path / "step.mlir")
    for batch in (2, 1624, 1626):
        result = distc.compile(exported, batch=batch, replicas=2).train(data[:batch], 1)
        np.testing.assert_allclose(result.state, step(jnp.ones(3), data[:batch])[0], rtol=1e-6)


@pytest.mark.parametrize("replace", [
    lambda x, i: jnp.zeros_like(x).at[jnp.argsort(x[:, 0])].set(jnp.tanh(x)),
    lambda x, i: x.at[i].set(jnp.tanh(x)),  # some twice, some outside
    lambda x, i: x.at[jnp.stack([i, 9 - i], 1)].set(jnp.stack([jnp.tanh(x), x * x], 1)),
    lambda x, i: x.at[::2].set(0.5) * jnp.zeros(x.shape[0], bool).at[i].set(True)[:, None],
])
def test_examples_that_are_replaced(tmp_path, replace):
    """Where indices say; of several that go to one example, the last."""
    def step(w, batch):
        value, gradient = jax.value_and_grad(lambda w: (replace(batch["x"] * w, batch["i"]) * batch["y"]).mean())(w)
        return w - 0.1 * gradient, value

    random = np.random.RandomState(0)
    data = {"x": random.randn(16, 3).astype("f"), "y": random.randn(16, 3).astype("f"), "i": random.randint(-9, 10, 16).astype("i")}
    losses, last = models.train_here(step, jnp.ones(3), data, 8, 3)
    exported = distc.jax.export(step, jnp.ones(3), {name: array[:8] for name, array in data.items()}, tmp_path / "step.mlir")
    for replicas, processes in ((2, False), (4, True)):
        result = distc.compile(exported, batch=8, replicas=replicas, processes=processes).train(data, 3)
        np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(result.state, last, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scan", [
    lambda z: jax.lax.cumlogsumexp(z, 0),
    lambda z: jax.lax.cumlogsumexp(z[None], 1, reverse=True)[0],
    lambda z: jax.lax.cumprod(jnp.tanh(z) + 0.5, 0) + jax.lax.cummax(z, 0) * jax.lax.cummin(z, 0, reverse=True),
    lambda z: jax.lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (jax.nn.sigmoid(z), z))[1],
    lambda z: jax.lax.associative_scan(lambda a, b: (a @ b) / 2, z[:, :, None] * z[:, None] + jnp.eye(3), reverse=True)[:, 0],
])
def test_scans_over_the_examples(tmp_path, scan):
    """Of which JAX makes halves, where it knows how many there are. (The first two are those of a proportional hazards model.)"""
    def step(w, batch):
        value, gradient = jax.value_and_grad(lambda w: (scan(batch["x"] * w) * batch["y"]).mean())(w)
        return w - 0.1 * gradient, value

    data = {"x": np.random.RandomState(0).randn(14, 3).astype("f"), "y": np.random.RandomState(1).randn(14, 3).astype("f")}
    exported = distc.jax.export(step, jnp.ones(3), data, tmp_path / "step.mlir")
    for batch in (2, 14):
        result = distc.compile(exported, batch=batch, replicas=2).train(data, 2)
        w, losses = jnp.ones(3), []
        for number in range(2):
            begin = number * batch % 14
            w, value = step(w, {name: array[begin:begin + batch] for name, array in data.items()})
            losses.append(value)
        np.testing.assert_allclose(result.losses, losses, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(result.state, w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss,way", [
    (lambda w, x: (x.reshape(5, -1, 3).std(0) @ w).mean(), "as one example"),
    (lambda w, x: jax.lax.top_k((x @ w)[:, 0], 9)[0].mean(), "weights that are zero"),
    (lambda w, x: jax.lax.dynamic_update_slice(jnp.zeros((24, 2)), x @ w, (3, 0)).mean(), "by their places"),
    (lambda w, x: jnp.linalg.eigvals(w.T @ w).real.mean() * x.mean(), "'eig'.*symmetric"),
])
def test_what_jax_does_not_write_down_has_a_way_out(tmp_path, loss, way):
    def step(state, batch):
        value, gradient = jax.value_and_grad(loss)(state, batch["x"])
        return state - gradient, value

    with pytest.raises(NotImplementedError, match=way):
        distc.jax.export(step, jnp.ones((3, 2)), {"x": np.ones((8, 3), "f")}, tmp_path / "step.mlir")


def test_as_many_of_the_examples_as_a_number_says(tmp_path):
    def step(state, batch):
        value, gradient = jax.value_and_grad(lambda w: jax.lax.top_k((batch["x"] * w).sum(1) ** 2, 4)[0].mean())(state["w"])
        return {"w": state["w"] - 0.1 * gradient}, value

    state, data = {"w": jnp.ones(3)}, {"x": np.sin(np.arange(24, dtype="f")).reshape(8, 3)}
    with pytest.raises(NotImplementedError, match="smallest_batch"):
        distc.jax.export(step, state, {"x": data["x"][:3]}, tmp_path / "step.mlir")
    distc.jax.export(step, state, {"x": data["x"][:3]}, tmp_path / "said.mlir", smallest_batch=4)
    exported = distc.jax.export(step, state, data, tmp_path / "step.mlir")  # The batch has as many.
    assert (tmp_path / "step.json").read_text().replace("step.npz", "said.npz") == (tmp_path / "said.json").read_text()
    with pytest.raises(distc.CompileError, match="4 examples or more"):
        distc.compile(exported, batch=2)
    expected = jax.jit(step)(state, data)[0]["w"]
    np.testing.assert_allclose(distc.compile(exported, batch=8, replicas=2).train(data, 1).state["w"], expected, rtol=1e-5)


def test_a_loop_in_which_an_example_needs_another(tmp_path):
    def loss(w, x):
        last, states = jax.lax.scan(lambda c, row: (jnp.tanh(0.5 * c + row.sum() * w),) * 2, jnp.float32(0), x)
        return (states ** 2).mean() + last

    def step(state, batch):
        value, gradient = jax.value_and_grad(loss)(state["w"], batch["x"])
        return {"w": state["w"] - 0.1 * gradient}, value

    state, data = {"w": jnp.float32(1)}, {"x": np.sin(np.arange(16, dtype="f")).reshape(4, 4)}
    exported = distc.jax.export(step, state, data, tmp_path / "step.mlir")
    for replicas in (1, 2):
        result = distc.compile(exported, batch=4, replicas=replicas).train(data, 2)
        expected = jax.jit(step)(jax.jit(step)(state, data)[0], data)
        np.testing.assert_allclose(result.state["w"], expected[0]["w"], rtol=1e-5)
        np.testing.assert_allclose(result.losses[1], expected[1], rtol=1e-5)


def with_prints(w, x):
    h = jnp.sin(x @ w)
    jax.debug.print("h is {h}", h=h)
    jax.debug.print("w is {w}", w=w, ordered=True)
    jax.debug.callback(lambda value: None, h.mean())
    jax.vmap(lambda row: jax.debug.print("a row: {row}", row=row))(x)

    def add(carry, row):
        jax.debug.print("so far {carry}", carry=carry)
        return carry + jnp.sin(row @ w), None

    def double(carry, _):
        jax.debug.callback(print, carry, ordered=True)
        return carry * w.sum(), None
    return lax.scan(add, 0.0, x)[0] / x.shape[0] + (lax.scan(double, h, None, length=2)[0] ** 2).mean()


@pytest.mark.parametrize("loss", [
    lambda w, x: jnp.prod(1 + x * w, -1).mean(),
    lambda w, x: jax.vmap(lambda row: jnp.prod(1 + row * w))(x).mean(),
    lambda w, x: jnp.prod(1 + (x * w)[:, :, None] * jnp.arange(1.0, 3), (1, 2)).mean() + jnp.prod((x * w)[:, :0], 1).mean(),
    lambda w, x: jax.grad(lambda v: lax.reduce(1 + x * v, 1.0, lax.mul, (1,)).mean())(w).sum(),
    lambda w, x: (lambda sums: sums[0] / sums[1])(lax.scan(lambda c, row: ((c[0] + jnp.sin(row @ w), c[1] + 1), None), (0.0, 0), x)[0]),
    lambda w, x: jnp.sin(x[x.shape[0] - 3:] @ w).mean() * (2 if x.shape[0] > 3 else 1),
    lambda w, x: jnp.sin(x[:3] @ w).mean() + jnp.cos(x[2:5] @ w).mean() + jnp.tanh(x[4:] @ w).std() + jnp.tanh((x[2:] - x[:-2]) @ w).std() + ((x @ w)[-3:] * jnp.arange(3)).sum(),
    # Of a matrix of all examples by all.
    lambda w, x: jnp.median((x * w) @ x.T, 1).mean() + (lambda values, places: (jax.nn.softmax(values)[..., None] * (x * w)[places]).sum(1).std())(*lax.top_k((x * w) @ x.T, 3))
    + jnp.sort((x * w) @ x.T, 0)[:3].std(),
    pytest.param(with_prints, marks=pytest.mark.filterwarnings("ignore:the step calls jax.debug")),
])
def test_what_jax_writes_down_of_an_open_batch(tmp_path, loss):
    """Products with gradients, sums of examples from Python's numbers on, sizes that the example has; and prints, which are left out."""
    def step(w, batch):
        value, gradient = jax.value_and_grad(loss)(w, batch["x"])
        return w - 0.1 * gradient, value

    w, data = jnp.asarray([0.1, -0.2, 0.3]), {"x": np.random.RandomState(0).randn(16, 3).astype("f")}
    result = distc.compile(distc.jax.export(step, w, {"x": data["x"][:8]}, tmp_path / "step.mlir"), batch=8, replicas=2).train(data, 2)
    losses, last = models.train_here(step, w, data, 8, 2)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(result.state, last, rtol=1e-5, atol=1e-6)


def test_calls_of_python(tmp_path, capfd):
    """What gives nothing is left out of the step, with a warning; the step itself prints as before."""
    def step(w, batch):
        jax.debug.print("the mean is {m}", m=batch.mean())
        return w, (batch * w).sum()

    def call(w, batch):
        return w, jax.pure_callback(lambda x: x.sum(), jax.ShapeDtypeStruct((), jnp.float32), batch[0] * w)

    data = np.ones((4, 3), "f")
    with pytest.warns(UserWarning, match="jax.debug.print .* is left out"):
        distc.jax.export(step, jnp.float32(1), data, tmp_path / "step.mlir")
    jax.jit(step)(jnp.float32(1), data)
    jax.effects_barrier()
    assert capfd.readouterr().out.count("the mean is 1.0") == 1
    with pytest.raises(NotImplementedError, match="calls Python and takes what it gives"):
        distc.jax.export(call, jnp.float32(1), data, tmp_path / "step.mlir")


@pytest.mark.parametrize("key", [jax.random.key(0), jnp.uint32(0)], ids=["key", "count"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_each_accumulated_batch_has_random_numbers_of_its_own(tmp_path, key, replicas):
    """A schedule counts updates."""
    optimizer = optax.sgd(optax.linear_schedule(0.1, 0.01, 10))

    def draw(key):
        return (key + 1, jax.random.fold_in(jax.random.key(3), key)) if key.dtype == jnp.uint32 else jax.random.split(key)

    def loss(w, key, x):
        return ((x * jax.random.bernoulli(key, 0.5, x.shape)) @ w + jax.random.normal(key)).mean() ** 2

    def step(state, batch):
        key, used = draw(state["key"])
        value, gradient = jax.value_and_grad(loss)(state["w"], used, batch["x"])
        update, moments = optimizer.update(gradient, state["moments"])
        return {"w": state["w"] + update, "moments": moments, "key": key}, value

    data, w = {"x": np.random.RandomState(0).randn(32, 3).astype("f")}, jnp.ones(3)
    exported = distc.jax.export(step, {"w": w, "moments": optimizer.init(w), "key": key}, {"x": data["x"][:8]}, tmp_path / "step.mlir")
    result = distc.compile(exported, batch=8, replicas=replicas, strategy="AllReduce:accumulate_steps=2").train(data, 4)
    moments, losses, gradients = optimizer.init(w), [], []
    for begin in range(0, 32, 8):
        key, used = draw(key)
        value, gradient = jax.value_and_grad(loss)(w, used, data["x"][begin:begin + 8])
        losses.append(value)
        gradients.append(gradient)
        if len(gradients) % 2 == 0:
            update, moments = optimizer.update((gradients[-2] + gradients[-1]) / 2, moments)
            w = w + update
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5)
    np.testing.assert_allclose(result.state["w"], w, rtol=1e-5)


def gamma_noise(parameters, x, y, key):
    """Rejection sampling draws until all are accepted: a loop that nothing bounds."""
    return jnp.mean((x @ parameters["w"] + parameters["b"] * jax.random.gamma(key, 2.5, (2,)) - y) ** 2)


def until_it_converges(parameters, x, y, key):
    w = lax.stop_gradient(parameters["w"])
    a = w @ w.T
    step = lambda v, n, _: (a @ v / jnp.linalg.norm(a @ v), jnp.linalg.norm(a @ v), n)
    _, norm, _ = lax.while_loop(lambda s: jnp.abs(s[1] - s[2]) > 1e-3, lambda s: step(*s), (jnp.ones(4), 1.0, 0.0))
    return jnp.mean((x @ parameters["w"] / norm + parameters["b"] - y) ** 2)


def until_all_examples_are_small(parameters, x, y, key):
    h = lax.stop_gradient(x @ parameters["w"])
    turns = jax.vmap(lambda row: lax.while_loop(lambda s: jnp.sum(s[0] ** 2) > 0.1, lambda s: (s[0] * 0.8, s[1] + 1.0), (row, 0.0))[1])(h)
    return jnp.mean(turns * 0.1 + jnp.sum(x @ parameters["w"] + parameters["b"] - y, 1) ** 2)


@pytest.mark.parametrize("replicas", [1, 4])
@pytest.mark.parametrize("loss", [gamma_noise, until_it_converges, until_all_examples_are_small], ids=lambda f: f.__name__)
def test_loops_that_data_end(tmp_path, loss, replicas):
    optimizer, numbers = optax.adam(0.05), np.random.default_rng(0)
    parameters = {"w": jnp.asarray(numbers.normal(size=(4, 2)), jnp.float32), "b": jnp.zeros(2)}
    data = tuple(numbers.normal(size=(24, n)).astype(np.float32) for n in (4, 2))

    def step(state, batch):
        key, draw = jax.random.split(state["key"])
        value, gradients = jax.value_and_grad(loss)(state["parameters"], *batch, draw)
        updates, moments = optimizer.update(gradients, state["moments"])
        return {"parameters": optax.apply_updates(state["parameters"], updates), "moments": moments, "key": key}, value
    state = {"parameters": parameters, "moments": optimizer.init(parameters), "key": jax.random.PRNGKey(0)}
    exported = distc.jax.export(step, state, tuple(x[:8] for x in data), tmp_path / "step.mlir")
    result, losses = distc.compile(exported, batch=8, replicas=replicas).train(data, steps=3), []
    for k in range(0, 24, 8):
        state, value = jax.jit(step)(state, tuple(x[k:k + 8] for x in data))
        losses.append(float(value))
    np.testing.assert_allclose(result.losses, losses, rtol=1e-4)
    np.testing.assert_allclose(result.state["parameters"]["w"], state["parameters"]["w"], rtol=1e-3, atol=1e-4)


def test_line_search_of_any_length(tmp_path):
    optimizer, numbers = optax.lbfgs(), np.random.default_rng(0)
    parameters = {"w": jnp.asarray(numbers.normal(size=(4, 2)), jnp.float32), "b": jnp.zeros(2)}
    data = tuple(numbers.normal(size=(24, n)).astype(np.float32) for n in (4, 2))

    def step(state, batch):
        loss = lambda p: jnp.mean((batch[0] @ p["w"] + p["b"] - batch[1]) ** 2)
        value, gradients = optax.value_and_grad_from_state(loss)(state["parameters"], state=state["moments"])
        updates, moments = optimizer.update(gradients, state["moments"], state["parameters"], value=value, grad=gradients, value_fn=loss)
        return {"parameters": optax.apply_updates(state["parameters"], updates), "moments": moments}, value
    state = {"parameters": parameters, "moments": optimizer.init(parameters)}
    exported = distc.jax.export(step, state, tuple(x[:8] for x in data), tmp_path / "step.mlir")
    result, losses = distc.compile(exported, batch=8, replicas=2).train(data, steps=3), []
    for k in range(0, 24, 8):
        state, value = jax.jit(step)(state, tuple(x[k:k + 8] for x in data))
        losses.append(float(value))
    np.testing.assert_allclose(result.losses, losses, rtol=1e-4)


def test_masks_that_a_step_closes_over(tmp_path):
    mask = np.tril(np.ones((16, 16), bool))  # More elements than are printed one by one.

    def step(w, batch):
        def loss(w):
            return jax.nn.softmax(jnp.where(mask, batch["x"][:, :, None] * w, -1e9))[:, :, 0].mean()
        value, gradient = jax.value_and_grad(loss)(w)
        return w - 0.1 * gradient, value

    data = {"x": np.random.RandomState(0).randn(8, 16).astype("f")}
    result = distc.compile(distc.jax.export(step, jnp.ones(16), data, tmp_path / "step.mlir"), replicas=2, batch=8).train(data, 1)
    state, value = step(jnp.ones(16), data)
    np.testing.assert_allclose(result.losses, [value], rtol=1e-6)
    np.testing.assert_allclose(result.state, state, rtol=1e-6)


def test_the_batchs_size_is_no_number_of_pythons(tmp_path):
    def step(w, batch):
        return w, (batch["x"] * w * jnp.arange(len(batch["x"]))[:, None]).sum()

    with pytest.raises(TypeError, match="write x.shape"):
        distc.jax.export(step, jnp.ones(3), {"x": np.ones((8, 3), "f")}, tmp_path / "step.mlir")


def test_a_step_that_is_read_takes_trees_by_their_names(tmp_path):
    def step(state, batch):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((batch["x"][0] @ w + batch["x"][1] - batch["y"]) ** 2))(state["w"])
        return {"w": state["w"] - 0.1 * gradient}, loss

    batch = {"x": [np.ones((8, 3), np.float32), np.full((8,), 0.5, np.float32)], "y": np.ones((8,), np.float32)}
    distc.jax.export(step, {"w": np.zeros(3, np.float32)}, batch, tmp_path / "step.mlir")
    read = distc.jax.Step.read(tmp_path / "step.mlir")
    executable = distc.compile(read, batch=8)
    losses = executable.train(batch, 2).losses
    np.testing.assert_array_equal(executable.train({"x/0": batch["x"][0], "x/1": batch["x"][1], "y": batch["y"]}, 2).losses, losses)
    with pytest.raises(ValueError, match="got x/0, y"):
        executable.train({"x": batch["x"][:1], "y": batch["y"]}, 2)


@pytest.mark.parametrize("examples, asks, refused", [(6, lambda n: n == 6, True), (4, lambda n: n % 3 == 0, False), (4, lambda n: n != 4, True), (4, lambda n: n == 1, False)])
def test_question_about_the_size_of_the_batch(tmp_path, examples, asks, refused):
    """In Python, which JAX answers with no for an open size."""
    def step(state, batch):
        x = batch["x"]
        loss = jnp.mean((x * state["w"]) ** 2) * (2.0 if asks(x.shape[0]) else 1.0)
        return {"w": state["w"] - loss}, loss

    export = lambda: distc.jax.export(step, {"w": jnp.ones(2)}, {"x": np.ones((examples, 2), np.float32)}, tmp_path / "step.mlir")
    if not refused:
        export()
        return
    with pytest.raises(ValueError, match="asks in Python whether a size that follows from the batch's"):
        export()


def test_question_about_parts_of_the_batch(tmp_path):
    """Of a batch that can be taken apart into as many, the answer is yes."""
    def step(state, batch):
        x = batch["x"]
        loss = jnp.mean((x * state["w"]) ** 2) * (2.0 if x.shape[0] % 3 == 0 else 1.0)
        return {"w": state["w"] - loss}, loss

    state, data = {"w": jnp.ones(2, jnp.float32)}, {"x": np.arange(12, dtype=np.float32).reshape(6, 2)}
    exported = distc.jax.export(step, state, data, tmp_path / "step.mlir")
    result = distc.compile(exported, replicas=2, batch=6).train(data, steps=1)
    np.testing.assert_allclose(result.losses, [step(state, data)[1]], rtol=1e-5)
