import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

os.environ.setdefault("KERAS_BACKEND", "jax")
keras = pytest.importorskip("keras")
if keras.backend.backend() != "jax":
    pytest.skip("Keras runs on another backend than JAX", allow_module_level=True)

import numpy as np
from keras import layers

import distc
import distc.keras

BATCH, STEPS = 12, 10
RANDOM = np.random.RandomState(0)
LABELS = RANDOM.randint(0, 4, 24).astype("i")


def convolutional():
    return keras.Sequential([keras.Input((8, 8, 1)), layers.Conv2D(4, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(),
                             layers.MaxPooling2D(), layers.Flatten(), layers.Dropout(0.3, seed=3),
                             layers.Dense(4, kernel_regularizer=keras.regularizers.L2(1e-2))])


def attending():
    tokens = keras.Input((6,), dtype="int32")
    x = layers.Embedding(11, 8)(tokens)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4, use_bias=False)(x, x, use_causal_mask=True))
    return keras.Model(tokens, layers.Dense(4)(layers.GlobalAveragePooling1D()(x)))


MODELS = {"convolutional": (convolutional, RANDOM.randn(24, 8, 8, 1).astype("f"), lambda: keras.optimizers.SGD(0.05, momentum=0.9)),
          "attending": (attending, RANDOM.randint(0, 11, (24, 6)).astype("i"),
                        lambda: keras.optimizers.AdamW(keras.optimizers.schedules.CosineDecay(1e-2, 20), clipnorm=1.0))}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("strategy,processes", [("AllReduce", False), ("ShardedUpdate", True)])
def test_training_is_kerass(tmp_path, name, strategy, processes):
    make, x, make_optimizer = MODELS[name]
    keras.utils.set_random_seed(0)
    model = make()
    model.compile(make_optimizer(), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    step = distc.keras.export(model, (x, LABELS), tmp_path / "step.mlir")
    result = distc.compile(step, strategy=strategy, replicas=2, batch=BATCH, processes=processes).train({"x": x, "y": LABELS}, STEPS)
    losses = []
    for number in range(STEPS):
        begin = number * BATCH % len(x)
        model.reset_metrics()
        losses.append(float(model.train_on_batch(x[begin:begin + BATCH], LABELS[begin:begin + BATCH])))
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
    expected = [np.array(variable) for variable in model.variables]
    distc.keras.load_state(model, result.state)
    for variable, value in zip(model.variables, expected):
        np.testing.assert_allclose(variable, value, rtol=1e-5, atol=1e-5, err_msg=variable.path)


def test_what_is_no_training_step_is_refused(tmp_path):
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
    with pytest.raises(ValueError, match="model.compile"):
        distc.keras.export(model, (np.ones((4, 3)), np.ones((4, 1))), tmp_path / "step.mlir")
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="sample_weight"):
        distc.keras.export(model, np.ones((4, 3)), tmp_path / "step.mlir")


ON_ANOTHER = """
import sys
import keras
import numpy as np
from keras import layers
import distc
import distc.keras

keras.utils.set_random_seed(0)
x, y = np.random.RandomState(0).randn(24, 8, 8, 1).astype("f"), np.random.RandomState(1).randint(0, 4, 24).astype("i")
model = keras.Sequential([keras.Input((8, 8, 1)), layers.Conv2D(4, 3, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU(),
                          layers.MaxPooling2D(), layers.Flatten(), layers.Dense(4, kernel_regularizer=keras.regularizers.L2(1e-2))])
model.compile(keras.optimizers.Adam(1e-2, epsilon=1e-3, clipnorm=1.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
result = distc.compile(distc.keras.export(model, (x, y), sys.argv[1]), replicas=2, batch=12).train({"x": x, "y": y}, 10)
losses = []
for number in range(10):
    begin = number * 12 % 24
    model.reset_metrics()
    losses.append(float(model.train_on_batch(x[begin:begin + 12], y[begin:begin + 12])))
np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
variables = model.variables
expected = [np.array(keras.ops.convert_to_numpy(variable)) for variable in variables]
distc.keras.load_state(model, result.state)
for variable, value in zip(variables, expected):
    np.testing.assert_allclose(keras.ops.convert_to_numpy(variable), value, rtol=1e-5, atol=1e-5, err_msg=variable.path)

# The generator of a dropout without a seed of its own draws from where set_random_seed puts it.
drawing = keras.Sequential([keras.Input((6,)), layers.Dropout(0.5), layers.Dense(4)])
drawing.compile("sgd", "mse")
step = distc.keras.export(drawing, (np.ones((4, 6), "f"), np.ones((4, 4), "f")), sys.argv[1])
with np.load(step.path.with_suffix(".npz")) as state:
    for variable in drawing.variables:
        np.testing.assert_array_equal(state[variable.path], keras.ops.convert_to_numpy(variable), err_msg=variable.path)

# On JAX Keras drops what the layer assigns to its kernel.
normalized = keras.Sequential([keras.Input((6,)), layers.SpectralNormalization(layers.Dense(4))])
normalized.compile("sgd", "mse")
try:
    distc.keras.export(normalized, (np.ones((4, 6), "f"), np.ones((4, 4), "f")), sys.argv[1])
    raise AssertionError("it was exported")
except ValueError as error:
    assert "assigns the trained variable" in str(error), error
"""


@pytest.mark.parametrize("backend", ["tensorflow", "torch"])
def test_models_on_other_backends(tmp_path, backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"needs {backend}")
    packages = [str(pathlib.Path(distc.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run([sys.executable, "-c", ON_ANOTHER, str(tmp_path / "step.mlir")], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": os.pathsep.join(packages)})
    assert done.returncode == 0, done.stderr[-2000:]
