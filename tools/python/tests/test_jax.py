import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp
import numpy as np

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
    step, data, losses, state = exported(model)
    executable = distc.compile(step, strategy=strategy, replicas=replicas, batch=BATCH, processes=processes)
    result = executable.train(data, STEPS)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
    assert jax.tree.structure(result.state) == jax.tree.structure(state)
    for ours, theirs in zip(jax.tree.leaves(result.state), jax.tree.leaves(state)):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_goes_on_from_a_state(exported):
    step, data, losses, _ = exported("mlp-adam")
    executable = distc.compile(step, batch=BATCH)
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


def test_a_step_that_was_read_has_names(exported):
    step, data, losses, state = exported("mlp-sgd")
    result = distc.compile(str(step.path), batch=BATCH).train(data, STEPS)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(result.state["params/w1"], state["params"]["w1"], rtol=1e-5, atol=1e-5)


def test_unknown_operations_are_listed(tmp_path):
    def step(state, batch):
        return state, jnp.abs(jnp.fft.fft(batch["x"] * state["w"])).mean()

    exported = distc.jax.export(step, {"w": jnp.ones(4)}, {"x": np.ones((4, 4), "f")}, tmp_path / "step.mlir")
    with pytest.raises(distc.CompileError, match=r"stablehlo\.fft \(1\)"):
        distc.compile(exported, batch=4)


def test_a_step_must_give_its_state(tmp_path):
    with pytest.raises(ValueError, match="structure"):
        distc.jax.export(lambda state, batch: ((), batch["x"].sum()), {"w": jnp.ones(3)}, {"x": np.ones((4, 3), "f")},
                         tmp_path / "step.mlir")
