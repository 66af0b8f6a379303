"""What an executable does beside training: it is looked on at, ended, evaluated and timed."""
import json
import time

import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import numpy as np

import distc
import models

BATCH, STEPS = 12, 10


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    train, state, data = models.mlp(optax.adam(1e-2))

    def with_size(state, batch):
        state, loss = train(state, batch)
        return state, loss, {"twice": 2 * loss}

    return distc.jax.export(with_size, state, data, tmp_path_factory.mktemp("step") / "step.mlir"), data


@pytest.fixture(scope="module", params=[False, True], ids=["threads", "processes"])
def executable(request, step):
    return distc.compile(step[0], replicas=2, batch=BATCH, processes=request.param)


def expect_same(state, other):
    for ours, theirs in zip(jax.tree.leaves(state), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_steps_are_told(executable, step):
    seen = []
    result = executable.train(step[1], STEPS, on_step=seen.append)
    expect_same(result.state, executable.train(step[1], STEPS).state)
    assert [record.step for record in seen] == list(range(STEPS))
    np.testing.assert_array_equal([record.loss for record in seen], result.losses)
    np.testing.assert_allclose([record.fetches["twice"] for record in seen], 2 * result.losses, rtol=1e-6)
    assert all(record.milliseconds > 0 for record in seen)


def test_a_training_ends_when_it_is_told_to(executable, step):
    result = executable.train(step[1], 10**9, on_step=lambda record: record.step >= 3)
    assert len(result.losses) > 3
    expect_same(result.state, executable.train(step[1], len(result.losses)).state)


def test_what_a_training_does_itself_is_refused(executable, step):
    with pytest.raises(ValueError, match="--log-json=log"):
        executable.train(step[1], 1, flags=["--log-json=log"])
    with pytest.raises(TypeError, match="it is 3"):
        executable.train(step[1], 1, on_step=3)


def test_errors_are_those_of_the_caller_and_of_the_run(executable, step):
    with pytest.raises(ZeroDivisionError):
        executable.train(step[1], 10**9, on_step=lambda record: 1 / 0)

    def wait(record):  # while the pipe fills
        time.sleep(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        executable.train(step[1], 10**9, on_step=wait)
    few = jax.tree.map(lambda array: array[:BATCH - 1], step[1])
    for on_step in (None, print):
        with pytest.raises(distc.RunError, match="fewer than the batch"):
            executable.train(few, STEPS, on_step=on_step)


def test_batches_of_an_iterator_and_files(executable, step, tmp_path):
    parts = [jax.tree.map(lambda array: array[i * BATCH:(i + 1) * BATCH], step[1]) for i in (1, 0, 1)]
    whole = jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)
    batches = iter(parts)
    losses = executable.train(batches, 2).losses
    assert next(batches) is parts[2]  # No more are taken than steps.
    np.testing.assert_array_equal(losses, executable.train(whole, 2).losses)
    np.savez(tmp_path / "data.npz", **step[0].flatten(step[0].batch, step[0].batch_tree, whole))
    np.testing.assert_array_equal(losses, executable.train(tmp_path / "data.npz", 2).losses)
    with pytest.raises(ValueError, match="gives 1 batches, but 2 are needed"):
        executable.train(iter(parts[:1]), 2)
    with pytest.raises(ValueError, match="batches of 5 and 12 examples"):
        executable.train(iter([parts[0], jax.tree.map(lambda array: array[:5], parts[1])]), 2)


def test_evaluation_is_of_all_examples(executable, step):
    first = jax.tree.map(lambda array: array[:2 * BATCH], step[1])
    trained = executable.train(step[1], STEPS).state
    values = executable.evaluate(first, trained)
    # A step's loss is that of the variables before it.
    losses = [executable.train(jax.tree.map(lambda array: array[i:i + BATCH], first), 1, trained).losses[0] for i in (0, BATCH)]
    np.testing.assert_allclose(values["loss"], np.mean(losses), rtol=1e-6)
    np.testing.assert_allclose(values["twice"], 2 * np.mean(losses), rtol=1e-6)
    assert abs(executable.evaluate(first)["loss"] - values["loss"]) > 1e-3


def test_a_timeline_is_of_every_task(executable, step, tmp_path):
    timeline = executable.timeline(step[1], 3, path=tmp_path / "timeline.json")
    assert json.loads((tmp_path / "timeline.json").read_text()) == timeline
    spans = [event for event in timeline["traceEvents"] if event["ph"] == "X"]
    tasks = 2 if "--one-process-per-replica" in executable._compiled else 1
    assert {event["pid"] for event in spans} == set(range(tasks))
    assert {event["args"]["step"] for event in spans if "step" in event["args"]} >= {0, 1, 2}
    assert "<html" in executable.plan_page(tmp_path / "timeline.json")
