import collections
import copy
import math
import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp
import numpy as np
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import distc
import distc.torch
import torch_models

BATCH, STEPS = 12, 20
optim = torch.optim
OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, 0.1),
    # Where many layers normalize by a small batch, rounding grows with larger steps.
    "slow": lambda p: optim.SGD(p, 1e-3),
    "momentum": lambda p: optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "dampening": lambda p: optim.SGD(p, 0.05, momentum=0.9, dampening=0.5),
    "adam": lambda p: optim.Adam(p, 1e-2, weight_decay=1e-3),
    "amsgrad": lambda p: optim.Adam(p, 1e-2, amsgrad=True),
    "adamw": lambda p: optim.AdamW(p, 1e-2),
    "rmsprop": lambda p: optim.RMSprop(p, 1e-2, momentum=0.9, centered=True),
    "adagrad": lambda p: optim.Adagrad(p, 1e-2, lr_decay=0.1),
    "nadam": lambda p: optim.NAdam(p, 1e-2, weight_decay=1e-2, decoupled_weight_decay=True),
    "radam": lambda p: optim.RAdam(p, 1e-2, weight_decay=1e-2),
    "adamax": lambda p: optim.Adamax(p, 1e-2),
    "adadelta": lambda p: optim.Adadelta(p, 1.0),
    "rprop": lambda p: optim.Rprop(p, 1e-2),
    "asgd": lambda p: optim.ASGD(p, 1e-2, t0=5),
    "adafactor": lambda p: optim.Adafactor(p, 1e-2, weight_decay=1e-2),
}
TWO = ("AllReduce", 2, False)
RUNS = ([("mlp", optimizer, *TWO) for optimizer in OPTIMIZERS] + [(model, "slow" if model == "resnet" else "momentum", *TWO) for model in torch_models.MODELS if model != "mlp"]
        + [("gpt", "adamw", *run) for run in (("AllReduce", 1, False), ("ShardedUpdate", 4, False), ("PartitionedAR", 2, False),
                                              ("PSLoadBalancing", 2, True))])


def get_example(data):
    return {name: tensor[:BATCH] for name, tensor in data.items()}


def to_numpy(data):
    return {name: tensor.numpy() for name, tensor in data.items()}


def expect_state(module, found, expected):
    distc.torch.load_state(module, found)
    for name, tensor in expected.state_dict().items():
        np.testing.assert_allclose(module.state_dict()[name], tensor, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("model,optimizer,strategy,replicas,processes", RUNS)
def test_training_is_pytorchs(tmp_path, model, optimizer, strategy, replicas, processes):
    make, loss, data = torch_models.MODELS[model]
    torch.manual_seed(0)
    module = make().train()
    step = distc.torch.export(module, loss, OPTIMIZERS[optimizer](module.parameters()), get_example(data), tmp_path / "step.mlir")
    theirs = copy.deepcopy(module)
    losses = torch_models.train_here(theirs, loss, OPTIMIZERS[optimizer](theirs.parameters()), data, BATCH, STEPS)
    executable = distc.compile(step, strategy=strategy, replicas=replicas, batch=BATCH, processes=processes)
    result = executable.train(to_numpy(data), STEPS)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
    expect_state(module, result.state, theirs)


def test_schedule_clipping_and_groups(tmp_path):
    make, loss, data = torch_models.MODELS["mlp"]
    module = make()

    def make_optimizer(module):
        return optim.AdamW([{"params": module[0].parameters(), "lr": 1e-2, "weight_decay": 0.1}, {"params": module[2].parameters()}], lr=1e-3)

    step = distc.torch.export(module, loss, make_optimizer(module), get_example(data), tmp_path / "step.mlir",
                              schedule=lambda step: jnp.minimum((step + 1) / 5, 1.0), max_norm=0.3)
    theirs = copy.deepcopy(module)
    optimizer = make_optimizer(theirs)
    losses = torch_models.train_here(theirs, loss, optimizer, data, BATCH, STEPS,
                                     optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / 5, 1.0)), 0.3)
    result = distc.compile(step, replicas=2, batch=BATCH).train(to_numpy(data), STEPS)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
    expect_state(module, result.state, theirs)


def test_an_optimizer_that_has_begun_goes_on(tmp_path):
    make, loss, data = torch_models.MODELS["mlp"]
    module = make()
    optimizer = optim.Adam(module.parameters(), 1e-2)
    torch_models.train_here(module, loss, optimizer, data, BATCH, 4)
    step = distc.torch.export(module, loss, optimizer, get_example(data), tmp_path / "step.mlir")
    losses = torch_models.train_here(module, loss, optimizer, data, BATCH, STEPS)
    np.testing.assert_allclose(distc.compile(step, batch=BATCH).train(to_numpy(data), STEPS).losses, losses, rtol=1e-5, atol=1e-5)


def test_an_optimizer_without_a_count_goes_on(tmp_path):
    make, loss, data = torch_models.MODELS["mlp"]
    module = make()
    optimizer = optim.SGD(module.parameters(), 0.05, momentum=0.9, dampening=0.5)
    torch_models.train_here(module, loss, optimizer, data, BATCH, 1)
    step = distc.torch.export(module, loss, optimizer, get_example(data), tmp_path / "step.mlir")
    data = {name: tensor.roll(1, 0) for name, tensor in data.items()}
    losses = torch_models.train_here(module, loss, optimizer, data, BATCH, STEPS)
    np.testing.assert_allclose(distc.compile(step, batch=BATCH).train(to_numpy(data), STEPS).losses, losses, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", torch_models.GRADIENTS)
def test_gradients_are_pytorchs(tmp_path, name):
    loss, data = torch_models.GRADIENTS[name], torch_models.MODELS["mlp"][2]
    torch.manual_seed(0)
    module = torch_models.WithSpares()
    theirs = copy.deepcopy(module)

    def make_optimizer(module):
        return optim.SGD(module.parameters(), 0.02, momentum=0.9, weight_decay=0.1)

    step = distc.torch.export(module, loss, make_optimizer(module), get_example(data), tmp_path / "step.mlir")
    losses = torch_models.train_here(theirs, loss, make_optimizer(theirs), data, BATCH, 6)
    result = distc.compile(step, replicas=2, batch=BATCH).train(to_numpy(data), 6)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
    expect_state(module, result.state, theirs)


F = torch.nn.functional
BY_INDEX = {
    "label": lambda m, b: F.cross_entropy(m(b["x"]), b["y"]),
    "label of a map": lambda m, b: F.cross_entropy(m(b["x"])[:, :, None].expand(-1, -1, 2), b["y"][:, None].expand(-1, 2)),
    "embedding": lambda m, b: F.embedding(b["y"], m.weight).square().mean(),
    "gather": lambda m, b: m(b["x"]).gather(1, b["y"][:, None]).mean(),
    "index": lambda m, b: m.weight[b["y"]].square().mean(),
    "index by one": lambda m, b: m.weight[b["y"][7]].square().mean() + 0 * m(b["x"]).mean(),
    "index_add": lambda m, b: torch.zeros(4, 4).index_add(0, b["y"], m(b["x"])).square().mean(),
    "scatter_add": lambda m, b: torch.zeros(4, 4).scatter_add(0, b["y"][:, None].expand(-1, 4), m(b["x"])).square().mean(),
    "scatter": lambda m, b: (torch.zeros_like(m(b["x"])).scatter(1, b["y"][:, None], 1.0) * m(b["x"])).mean(),
    "one_hot": lambda m, b: (F.one_hot(b["y"], 4) * m(b["x"])).mean(),
}


@pytest.mark.parametrize("name", BY_INDEX)
def test_indices_out_of_range_end_the_run(tmp_path, name):
    """As with PyTorch, whose -1 is the last of what brackets index. On two replicas, in a row of the second."""
    loss, module = BY_INDEX[name], torch.nn.Linear(8, 4)
    data = {"x": torch.randn(BATCH, 8), "y": torch.arange(BATCH) % 4}
    executable = distc.compile(distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir"), batch=BATCH, replicas=2)
    for value, is_right in ((3, True), (-1, name.startswith("index") and name != "index_add"), (-4, name.startswith("index") and name != "index_add"), (4, False), (-5, False)):
        data["y"][7] = value
        if is_right:
            np.testing.assert_allclose(executable.train(to_numpy(data), 1).losses, [loss(module, data).item()], rtol=1e-5)
            continue
        with pytest.raises((IndexError, RuntimeError)):
            loss(module, data)
        with pytest.raises(distc.RunError, match=f"has {value}, which is outside of .0, 4." if name == "index by one" else
                           f"the feed 'y' has {value} in row 7 of the batch of step 0, which is outside of .0, 4."):
            executable.train(to_numpy(data), 1)


def test_indices_that_need_no_check(tmp_path):
    """Labels that are passed over, those of a model's own table, and places that were found."""
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 4)
            self.register_buffer("order", torch.tensor([3, 1, 0, 2]))

    def loss(module, batch):
        logits = module.linear(batch["x"])[:, module.order]
        return F.cross_entropy(logits, batch["y"], ignore_index=-7) + logits.gather(1, logits.argmax(1, keepdim=True)).mean() + logits.topk(2)[0].mean()

    module, data = Model(), {"x": torch.randn(BATCH, 8), "y": torch.arange(BATCH) % 4}
    data["y"][[1, 7]] = -7
    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")
    assert step.path.read_text().count('"distc.index"') == 1
    result = distc.compile(step, batch=BATCH, replicas=2, flags=["--target=cuda:emulated"]).train(to_numpy(data), 1)
    np.testing.assert_allclose(result.losses, [loss(module, data).item()], rtol=1e-5)


@pytest.mark.parametrize("key", ["weight", "loss", "train", "init"])
def test_keys_of_the_batch_that_are_other_names(tmp_path, key):
    def loss(module, batch):
        return (F.cross_entropy(module(batch["x"]), batch["y"], reduction="none") * batch[key]).mean()

    module, data = torch.nn.Linear(8, 4), {"x": torch.randn(BATCH, 8), "y": torch.arange(BATCH) % 4, key: torch.rand(BATCH)}
    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")
    result = distc.compile(step, batch=BATCH, replicas=2).train(to_numpy(data), 1)
    np.testing.assert_allclose(result.losses, [loss(module, data).item()], rtol=1e-5)


def test_class_probabilities(tmp_path):
    """The loss divides by the batch's size inside of PyTorch, which keeps that number for the gradient."""
    def loss(module, batch):
        return F.cross_entropy(module(batch["x"]), batch["p"], label_smoothing=0.1) + torch.linalg.matrix_norm(module(batch["x"]))

    module, data = torch.nn.Linear(8, 4), {"x": torch.randn(BATCH, 8), "p": torch.randn(BATCH, 4).softmax(1)}
    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")
    theirs = copy.deepcopy(module)
    losses = torch_models.train_here(theirs, loss, optim.SGD(theirs.parameters(), 0.1), data, BATCH, 2)
    result = distc.compile(step, batch=BATCH, replicas=2).train(to_numpy(data), 2)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5)
    expect_state(module, result.state, theirs)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.bool])
def test_sums_and_products_of_small_integers_are_wide(tmp_path, dtype):
    def loss(module, batch):
        n = batch["n"]
        return (module(batch["x"]) * (n.cumsum(1) + n.cumprod(1) + n.sum(1, keepdim=True) + n.prod(1, keepdim=True) + n.cumsum(1, dtype=torch.float64))).square().mean()

    module = torch.nn.Linear(4, 4).double()
    data = {"x": torch.randn(BATCH, 4, dtype=torch.double), "n": (torch.arange(4 * BATCH).reshape(BATCH, 4) + (2 * 10**9 if dtype == torch.int32 else 80)).to(dtype)}
    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")
    np.testing.assert_allclose(distc.compile(step, batch=BATCH, replicas=2).train(to_numpy(data), 1).losses, [loss(module, data).item()], rtol=1e-9)


@pytest.mark.parametrize("changed,error,says", [
    ({"loss": lambda m, b: m(b["x"])}, TypeError, "one number"),
    ({"loss": lambda m, b: (m(b["x"]).mean(), m(b["x"]))}, TypeError, "a dictionary of further values"),
    ({"loss": lambda m, b: {"loss": m(b["x"]).mean()}}, TypeError, "one number"),
    ({"optimizer": torch.optim.SGD}, TypeError, "one of torch.optim that was made"),
    ({"batch": {"x": torch.ones(BATCH, 8), "w": torch.ones(4)}}, ValueError, "'x' of the batch has 12 examples, and 'w' 4"),
])
def test_arguments_are_what_they_should_be(tmp_path, changed, error, says):
    module = torch.nn.Linear(8, 4)
    given = {"loss": lambda m, b: m(b["x"]).mean(), "optimizer": optim.SGD(module.parameters(), 0.1), "batch": {"x": torch.ones(BATCH, 8)}} | changed
    with pytest.raises(error, match=says):
        distc.torch.export(module, path=tmp_path / "step.mlir", **given)


def expect_refusal(tmp_path, match, module, loss=torch_models.classify, optimizer=None, error=NotImplementedError):
    data = torch_models.MODELS["mlp"][2]
    with pytest.raises(error, match=match):
        distc.torch.export(module, loss, optimizer or optim.SGD(module.parameters(), 0.1), get_example(data), tmp_path / "step.mlir")


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.mul_(2)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Halves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x[:, :2].clone(), x[:, 2:].clone()

    @staticmethod
    def backward(ctx, left, right):
        return torch.cat([left, right], 1)


class Keeping(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, seen):
        ctx.seen = seen
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.seen.copy_(gradient.sum(0))
        return gradient, None


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.factor * gradient, None


class Rounded(torch.autograd.Function):
    """Written in the newer form, with a gradient that PyTorch would not find."""

    @staticmethod
    def forward(x, weight):
        return torch.round(x * weight)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        x, weight, output = ctx.saved_tensors
        of_x = gradient.clone()
        of_x[x.abs() > 1] = 0
        return (of_x * weight).clamp(-0.02, 0.02), (gradient * output).sum(0) if ctx.needs_input_grad[1] else None


def test_gradients_that_functions_define(tmp_path):
    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last, self.scale, self.fixed = torch.nn.Linear(8, 6), torch.nn.Linear(6, 4), torch.nn.Parameter(torch.linspace(1, 3, 6)), torch.nn.Parameter(torch.ones(6))

        def forward(self, x):
            y = Reversed.apply(self.first(x), 0.3)
            with torch.no_grad():
                y = y + Rounded.apply(y, self.fixed)
            return self.last(Rounded.apply(y + torch.tanh(self.first(x)), self.scale) + Rounded.apply(torch.sin(self.first(x)), self.fixed.detach()))

    torch.manual_seed(0)
    module, data = Both(), torch_models.MODELS["mlp"][2]
    make = lambda module: optim.AdamW(module.parameters(), 1e-2, weight_decay=0.1)
    step = distc.torch.export(module, torch_models.classify, make(module), get_example(data), tmp_path / "step.mlir")
    theirs = copy.deepcopy(module)
    losses = torch_models.train_here(theirs, torch_models.classify, make(theirs), data, BATCH, STEPS)
    for strategy, replicas in (("AllReduce", 2), ("ShardedUpdate", 4)):
        result = distc.compile(step, strategy=strategy, replicas=replicas, batch=BATCH).train(to_numpy(data), STEPS)
        np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
        expect_state(copy.deepcopy(module), result.state, theirs)


def test_gradients_that_torch_export_would_not_write_are_refused(tmp_path):
    def inference(module, batch):
        with torch.inference_mode():
            target = module(batch["x"])
        return torch.nn.functional.mse_loss(module(batch["x"]), target)

    def inside_autocast(without_gradients):
        def loss(module, batch):
            with torch.autocast("cpu", dtype=torch.bfloat16), without_gradients():
                target = module(batch["x"])
            return torch.nn.functional.mse_loss(module(batch["x"]), target)
        return loss

    def hooked(module, batch):
        logits = module(batch["x"])
        logits.register_hook(lambda gradient: -gradient)
        return torch.nn.functional.cross_entropy(logits, batch["y"])

    expect_refusal(tmp_path, "InPlace.* changes its input in place", torch_models.mlp(), lambda module, batch: InPlace.apply(module(batch["x"])).mean())
    expect_refusal(tmp_path, "Halves.* more than one result", torch_models.mlp(), lambda module, batch: Halves.apply(module(batch["x"]))[0].mean())
    module = torch_models.mlp()
    module.register_buffer("seen", torch.zeros(4))
    expect_refusal(tmp_path, "keeps what it computes", module, lambda module, batch: Keeping.apply(module[:3](batch["x"]), module.seen).mean())
    expect_refusal(tmp_path, "converts the tensors of Linear", torch_models.mlp(), lambda module, batch: module[0].double()(batch["x"].double()).mean())
    expect_refusal(tmp_path, "inference_mode", torch_models.mlp(), inference)
    for without_gradients in (torch.no_grad, lambda: torch.set_grad_enabled(False)):
        expect_refusal(tmp_path, "inside of torch.autocast", torch_models.mlp(), inside_autocast(without_gradients))
    expect_refusal(tmp_path, "register_hook", torch_models.mlp(), hooked)
    module = torch_models.mlp()
    module[2].bias.register_hook(lambda gradient: -gradient)
    expect_refusal(tmp_path, "'2.bias' has a hook", module)
    module = torch_models.mlp()
    module[2].bias.register_post_accumulate_grad_hook(lambda parameter: None)
    expect_refusal(tmp_path, "'2.bias' has a hook", module)
    module = torch_models.mlp()
    module[0].register_full_backward_hook(lambda *_: None)
    expect_refusal(tmp_path, r"'0' \(Linear\) has a hook", module)
    expect_refusal(tmp_path, "no parameter", torch_models.mlp(), lambda module, batch: batch["x"].mean(), error=ValueError)
    expect_refusal(tmp_path, "mask", torch_models.mlp(), lambda module, batch: module(batch["x"])[batch["y"] > 0].cumsum(0).mean())


class Checkpointed(torch.nn.Module):
    """A layer that is computed again for its gradient, as a module."""

    def __init__(self, layer, **options):
        super().__init__()
        self.first, self.layer, self.last, self.options = torch.nn.Linear(8, 8), layer, torch.nn.Linear(8, 4), options

    def forward(self, x):
        x = self.first(x) if self.options.get("with_gradient", True) else x
        return self.last(torch.utils.checkpoint.checkpoint(self.layer, x, use_reentrant=self.options["use_reentrant"]))


@pytest.mark.parametrize("options", [{"use_reentrant": False}, {"use_reentrant": True}, {"use_reentrant": True, "with_gradient": False}])
def test_layers_that_are_computed_again(tmp_path, options):
    """The reentrant kind has no gradients of the layer where its input has none."""
    torch.manual_seed(0)
    module, data = Checkpointed(torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()), torch.nn.Linear(8, 8)), **options), torch_models.MODELS["mlp"][2]
    step = distc.torch.export(module, torch_models.classify, optim.AdamW(module.parameters(), 1e-2), get_example(data), tmp_path / "step.mlir")
    theirs = copy.deepcopy(module)
    losses = torch_models.train_here(theirs, torch_models.classify, optim.AdamW(theirs.parameters(), 1e-2), data, BATCH, 4)
    result = distc.compile(step, replicas=2, batch=BATCH).train(to_numpy(data), 4)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
    expect_state(module, result.state, theirs)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_statistics_that_are_updated_again_are_refused(tmp_path, use_reentrant):
    layers = (torch.nn.BatchNorm1d(8), torch.nn.Sequential(torch.nn.Unflatten(1, (2, 4)), torch.nn.InstanceNorm1d(2, track_running_stats=True), torch.nn.Flatten()))
    for layer in layers:
        expect_refusal(tmp_path, "torch.utils.checkpoint", Checkpointed(layer, use_reentrant=use_reentrant))
    distc.torch.export(*(lambda module: (module, torch_models.classify, optim.SGD(module.parameters(), 0.1)))(Checkpointed(layers[0].eval(), use_reentrant=use_reentrant)),
                       get_example(torch_models.MODELS["mlp"][2]), tmp_path / "step.mlir")


def test_numbers_of_the_batchs_size(tmp_path):
    def loss(module, batch):
        n = batch["x"].shape[0]
        rows = torch.nn.functional.cross_entropy(module(batch["x"]), batch["y"], reduction="none")
        powers = n**0.5 + 0.9**n + 60 / n**2 + math.sqrt(n) + math.exp(-n / 8)
        whole = math.ceil(n / 5) + math.floor(n / 7) + round(n * 0.3) + abs(n - 20) + max(n, 9) - min(n, 9) + (n & 3) + (n >> 1)
        logarithms = math.log(n) + math.log2(n) + math.log(n, 3) + math.log10(n) + math.log1p(n)
        return rows.mean() * powers / whole + module(batch["x"]).square().mean() * logarithms + (n / 3 if n**0.5 > 1.5 else 0)

    torch.manual_seed(0)
    module, data = torch.nn.Linear(8, 4), torch_models.MODELS["mlp"][2]
    # Of other examples than the batch that is trained.
    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.01), {name: tensor[:5] for name, tensor in data.items()}, tmp_path / "step.mlir")
    theirs = copy.deepcopy(module)
    losses = torch_models.train_here(theirs, loss, optim.SGD(theirs.parameters(), 0.01), data, BATCH, 4)
    result = distc.compile(step, replicas=2, batch=BATCH).train(to_numpy(data), 4)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
    expect_state(module, result.state, theirs)


@pytest.mark.parametrize("number", [lambda n: int(0.3 * n), lambda n: 2.0 if n**0.5 > 3.5 else 1.0])
def test_numbers_that_would_be_the_examples_are_refused(tmp_path, number):
    """torch.export asserts nothing of a number that is not whole."""
    expect_refusal(tmp_path, "size does not stay open", torch_models.mlp(), lambda module, batch: torch_models.classify(module, batch) * number(batch["x"].shape[0]))


def test_what_changes_an_optimizers_steps_is_refused(tmp_path):
    module = torch_models.mlp()
    optimizer = optim.SGD(module.parameters(), 0.1)
    optimizer.register_step_pre_hook(lambda *_: None)
    expect_refusal(tmp_path, "hooks around its steps", module, optimizer=optimizer)
    optimizer = optim.SGD(module.parameters(), 0.1)
    optim.lr_scheduler.LinearLR(optimizer, 0.1)
    expect_refusal(tmp_path, "'schedule'", module, optimizer=optimizer, error=ValueError)
    optimizer = optim.SGD(module.parameters(), 0.1, momentum=0.9)
    optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)
    with pytest.raises(ValueError, match="cycle_momentum"):
        distc.torch.export(module, torch_models.classify, optimizer, get_example(torch_models.MODELS["mlp"][2]), tmp_path / "step.mlir", schedule=lambda step: 1.0)


def test_a_schedule_is_of_the_rate_that_a_scheduler_began_with(tmp_path):
    make, loss, data = torch_models.MODELS["mlp"]
    module = make()
    optimizer = optim.SGD(module.parameters(), 0.1)
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 2))
    step = distc.torch.export(module, loss, optimizer, get_example(data), tmp_path / "step.mlir", schedule=lambda step: 1 / (step + 2))
    losses = torch_models.train_here(module, loss, optimizer, data, BATCH, 6, scheduler)
    np.testing.assert_allclose(distc.compile(step, batch=BATCH).train(to_numpy(data), 6).losses, losses, rtol=1e-5, atol=1e-5)


rates = optim.lr_scheduler
# Of each: the optimizer, the scheduler, after how many steps it makes one.
SCHEDULERS = {
    "one cycle": ("momentum", lambda o: rates.OneCycleLR(o, 0.2, total_steps=8), 1),
    "one cycle of adam": ("adamw", lambda o: rates.OneCycleLR(o, 0.02, total_steps=8), 1),
    "cycles of a rate": ("rmsprop", lambda o: rates.CyclicLR(o, 1e-3, 1e-2, 3), 1),
    "a lambda": ("radam", lambda o: rates.LambdaLR(o, lambda step: float(step) / 3 if step < 3 else max(0.0, (8 - step) / 5)), 1),
    "one behind another": ("adamax", lambda o: rates.SequentialLR(o, [rates.LinearLR(o, 0.1, total_iters=3), rates.CosineAnnealingLR(o, 5)], [3]), 1),
    "epochs": ("nadam", lambda o: rates.ChainedScheduler([rates.MultiStepLR(o, [1, 2], 0.5), rates.ExponentialLR(o, 0.8)]), 3),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_of_pytorch(tmp_path, name):
    """One that has begun, over two groups."""
    make, loss, data = torch_models.MODELS["mlp"]
    torch.manual_seed(0)
    module = make().double()
    data = {"x": data["x"].double(), "y": data["y"]}
    kind, make_scheduler, every = SCHEDULERS[name]
    optimizer = OPTIMIZERS[kind]([{"params": module[0].parameters()}, {"params": module[2].parameters(), "lr": 0.01}])
    scheduler = make_scheduler(optimizer)
    torch_models.train_here(module, loss, optimizer, data, BATCH, 1, scheduler)
    before = copy.deepcopy([scheduler.state_dict(), [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]])
    step = distc.torch.export(module, loss, optimizer, get_example(data), tmp_path / "step.mlir", schedule=scheduler, schedule_steps=7, schedule_every=every)
    assert str(before) == str([scheduler.state_dict(), [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]])
    executable = distc.compile(step, replicas=2, batch=BATCH)
    losses = []
    for number in range(7):
        part = {key: value[BATCH * (number % 2):][:BATCH] for key, value in data.items()}
        losses += list(torch_models.train_here(module, loss, optimizer, part, BATCH, 1, scheduler if (number + 1) % every == 0 and number < 6 else None))
    result = executable.train(to_numpy(data), 7)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-9)
    for parameter, value in module.named_parameters():
        np.testing.assert_allclose(result.state[parameter], value.detach(), rtol=1e-8, atol=1e-10)
    if every == 1:
        with pytest.raises(distc.RunError, match="schedule_steps.* has 7, which is outside"):  # The table ends.
            executable.train(to_numpy(data), 8)


def test_schedulers_that_no_table_holds_are_refused(tmp_path):
    module, data = torch_models.mlp(), get_example(torch_models.MODELS["mlp"][2])
    optimizer = optim.SGD(module.parameters(), 0.1)
    for scheduler, options, error, way in ((rates.ReduceLROnPlateau(optimizer), {"schedule_steps": 9}, NotImplementedError, "looks at the losses"),
                                           (rates.StepLR(optimizer, 2), {}, ValueError, "'schedule_steps' says how many"),
                                           (rates.OneCycleLR(optimizer, 0.1, total_steps=4, cycle_momentum=False), {"schedule_steps": 9}, ValueError, "makes no 9 steps"),
                                           (rates.StepLR(optim.SGD(module.parameters(), 0.1), 2), {"schedule_steps": 9}, ValueError, "is not of the optimizer")):
        with pytest.raises(error, match=way):
            distc.torch.export(module, torch_models.classify, optimizer, data, tmp_path / "step.mlir", schedule=scheduler, **options)


def test_a_schedule_of_a_power_of_the_step(tmp_path):
    """Which JAX makes a number of float64."""
    make, loss, data = torch_models.MODELS["mlp"]
    module = make()
    optimizer = optim.SGD(module.parameters(), 0.1)
    step = distc.torch.export(module, loss, optimizer, get_example(data), tmp_path / "step.mlir", schedule=lambda step: 0.5 ** (step // 2))
    losses = torch_models.train_here(module, loss, optimizer, data, BATCH, 6, optim.lr_scheduler.StepLR(optimizer, 2, 0.5))
    np.testing.assert_allclose(distc.compile(step, batch=BATCH).train(to_numpy(data), 6).losses, losses, rtol=1e-5, atol=1e-5)


def test_optimizers_of_optax_and_fetches(tmp_path):
    make, _, data = torch_models.MODELS["mlp"]

    def loss(module, batch):
        logits = module(batch["x"])
        return torch.nn.functional.cross_entropy(logits, batch["y"]), {"largest": logits.max()}

    step = distc.torch.export(make(), loss, optax.adam(1e-2), get_example(data), tmp_path / "step.mlir")
    result = distc.compile(step, replicas=2, batch=BATCH).train(to_numpy(data), 5)
    assert result.losses[-1] < result.losses[0] and len(result.fetches["largest"]) == 5


@pytest.mark.parametrize("shape", [lambda x, y: (x, y), lambda x, y: {"y": y, "a": [x]}])
def test_data_are_given_as_the_batch_is(tmp_path, shape):
    """A tuple, and a dictionary whose keys are not in their order."""
    module, (x, y) = torch.nn.Linear(6, 4), (torch.randn(8, 6), torch.randint(0, 4, (8,)))
    batch = shape(x, y)
    loss = lambda module, batch: torch.nn.functional.cross_entropy(module(batch[0] if isinstance(batch, tuple) else batch["a"][0]),
                                                                   batch[1] if isinstance(batch, tuple) else batch["y"])
    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), batch, tmp_path / "step.mlir")
    first = distc.compile(step, replicas=2, batch=8).train(batch, 1).losses[0]
    np.testing.assert_allclose(first, loss(module, batch).item(), rtol=1e-5)


def test_tensors_that_the_loss_knows_are_taken_by_labels(tmp_path):
    module, weights, (x, y) = torch.nn.Linear(6, 4), torch.tensor([1.0, 2.0, 0.5, 3.0]), (torch.randn(8, 6), torch.randint(0, 4, (8,)))
    loss = lambda module, batch: (torch.nn.functional.cross_entropy(module(batch["x"]), batch["y"], reduction="none") * weights[batch["y"]]).mean()
    batch = {"x": x, "y": y}
    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), batch, tmp_path / "step.mlir")
    np.testing.assert_allclose(distc.compile(step, replicas=2, batch=8).train(batch, 1).losses[0], loss(module, batch).item(), rtol=1e-5)


class Average(torch.nn.Module):
    """A moving average of what it gives, which it assigns anew."""

    def __init__(self, is_buffer):
        super().__init__()
        self.linear, self.last = torch.nn.Linear(6, 4), torch.zeros(4)
        if is_buffer:
            self.register_buffer("mean", torch.zeros(4))
            self.register_buffer("count", torch.tensor(0))
        else:
            self.mean, self.count = torch.zeros(4), torch.tensor(0)

    def forward(self, x):
        y = self.linear(x)
        old = self.mean
        self.mean = 0.9 * self.mean + 0.1 * y.detach().mean(0)
        self.count = self.count + 1
        self.last = y.detach().sum(0)  # which nothing reads
        return y - self.mean / (1 - 0.9**self.count) + old


def test_buffers_that_are_assigned_anew_change(tmp_path):
    module, data = Average(True), {"x": torch.randn(24, 6), "y": torch.randint(0, 4, (24,))}
    loss = lambda module, batch: torch.nn.functional.cross_entropy(module(batch["x"]), batch["y"])
    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), get_example(data), tmp_path / "step.mlir")
    results = [distc.compile(step, replicas=replicas, batch=8).train(to_numpy(data), 3) for replicas in (1, 2)]
    losses = torch_models.train_here(module, loss, optim.SGD(module.parameters(), 0.1), data, 8, 3)
    for result in results:
        np.testing.assert_allclose(result.losses, losses, rtol=1e-5)
        np.testing.assert_allclose(result.state["mean"], module.mean, rtol=1e-5, atol=1e-6)
        assert result.state["count"] == 3


class Taught(torch.nn.Module):
    """A student and the average of its weights, whose parameters no optimizer trains."""

    def __init__(self):
        super().__init__()
        self.student, self.teacher = torch.nn.Linear(6, 4), torch.nn.Linear(6, 4).requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            for target, source in zip(self.teacher.parameters(), self.student.parameters()):
                target.lerp_(source, 0.1)
        return self.student(x) - 0.5 * self.teacher(x)


def test_buffers_that_are_in_no_state_dict_change(tmp_path):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 4)
            self.register_buffer("average", torch.zeros(()), persistent=False)

        def forward(self, x):
            self.average.mul_(0.5).add_(x.mean())
            return self.linear(x) * (1 + self.average)

    torch.manual_seed(0)
    module, data = Model(), torch_models.MODELS["mlp"][2]
    theirs = copy.deepcopy(module)
    step = distc.torch.export(module, torch_models.classify, optim.SGD(module.parameters(), 0.1), get_example(data), tmp_path / "step.mlir")
    losses = torch_models.train_here(theirs, torch_models.classify, optim.SGD(theirs.parameters(), 0.1), data, BATCH, 3)
    result = distc.compile(step, replicas=2, batch=BATCH).train(to_numpy(data), 3)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5)
    np.testing.assert_allclose(result.state["average"], theirs.average, rtol=1e-5)


def test_parameters_that_the_step_changes(tmp_path):
    module, data = Taught(), {"x": torch.randn(24, 6), "y": torch.randint(0, 4, (24,))}
    loss = lambda module, batch: torch.nn.functional.cross_entropy(module(batch["x"]), batch["y"])
    step = distc.torch.export(module, loss, optim.SGD(module.student.parameters(), 0.1), get_example(data), tmp_path / "step.mlir")
    results = [distc.compile(step, replicas=replicas, batch=8).train(to_numpy(data), 3) for replicas in (1, 2)]
    losses = torch_models.train_here(module, loss, optim.SGD(module.student.parameters(), 0.1), data, 8, 3)
    for result in results:
        np.testing.assert_allclose(result.losses, losses, rtol=1e-5)
        np.testing.assert_allclose(result.state["teacher.weight"], module.teacher.weight, rtol=1e-5, atol=1e-6)


class Momentum(Taught):
    """The same by way of .data, as is published, with a codebook that is averaged in place; the student is found under two names."""

    def __init__(self):
        super().__init__()
        self.student = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4))
        self.teacher = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4)).requires_grad_(False)
        self.online = self.student
        self.register_buffer("codebook", torch.randn(4, 4))

    def forward(self, x):
        with torch.no_grad():
            for target, source in zip(self.teacher.parameters(), self.student.parameters()):
                target.data = target.data * 0.9 + source.data * 0.1
        self.teacher[0].weight.data = self.teacher[0].weight.data  # moved to where it is
        logits = self.online(x)
        self.codebook.data.mul_(0.9).add_(logits.detach().mean(0)[None], alpha=0.1)
        return logits - 0.5 * self.teacher(x).data + self.codebook.data[0]


def test_data_of_tensors_is_their_memory(tmp_path):
    torch.manual_seed(0)
    module, data = Momentum(), {"x": torch.randn(24, 6), "y": torch.randint(0, 4, (24,))}
    loss = lambda module, batch: torch.nn.functional.cross_entropy(module(batch["x"]), batch["y"])
    step = distc.torch.export(module, loss, optim.SGD(module.student.parameters(), 0.1), get_example(data), tmp_path / "step.mlir")
    results = [distc.compile(step, replicas=replicas, batch=8).train(to_numpy(data), 3) for replicas in (1, 2)]
    losses = torch_models.train_here(module, loss, optim.SGD(module.student.parameters(), 0.1), data, 8, 3)
    for result in results:
        np.testing.assert_allclose(result.losses, losses, rtol=1e-5)
        for name in ("codebook", "teacher.0.weight", "teacher.1.running_mean", "student.1.running_var"):
            np.testing.assert_allclose(result.state[name], module.state_dict()[name], rtol=1e-5, atol=1e-6, err_msg=name)


class Penalized(torch.nn.Module):
    """Parameters that the loss reaches by a list, by the module's names, and without their gradient."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = torch.nn.Linear(8, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 4)
        self.layers = torch.nn.ModuleList([self.first, self.norm, self.norm, self.last])
        self.kept = [self.first.weight]
        self.held = self.last.weight.data

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * (1 + self.held.mean()) + 0.1 * self.kept[0].pow(2).sum()


def test_parameters_reached_in_other_ways(tmp_path):
    torch.manual_seed(0)
    module, data = Penalized(), torch_models.MODELS["mlp"][2]

    def make_loss(module):
        weights = list(module.parameters())
        return lambda module, batch: (torch_models.classify(module, batch) + 0.01 * sum(p.pow(2).sum() for p in weights)
                                      + 0.1 * sum(p.abs().sum() for name, p in module.named_parameters() if name.startswith("last")))

    step = distc.torch.export(module, make_loss(module), optim.SGD(module.parameters(), 0.1), get_example(data), tmp_path / "step.mlir")
    executable = distc.compile(step, replicas=2, batch=BATCH)
    initial = copy.deepcopy(module.state_dict())
    losses = torch_models.train_here(module, make_loss(module), optim.SGD(module.parameters(), 0.1), data, BATCH, 6)
    trained = copy.deepcopy(module.state_dict())
    module.load_state_dict(initial)
    result = executable.train(to_numpy(data), 6)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5)
    distc.torch.load_state(module, result.state)
    for name, tensor in trained.items():
        np.testing.assert_allclose(module.state_dict()[name], tensor, rtol=1e-4, atol=1e-5, err_msg=name)


def test_memory_that_is_written_behind_gradients_is_refused(tmp_path):
    class Scaled(torch.nn.Linear):
        def __init__(self):
            super().__init__(8, 4)
            self.register_buffer("scale", torch.ones(4))

    def set_intermediate(module, batch):
        y = module(batch["x"])
        y.data = y.data.round()
        return y.mean()

    def write_intermediate(module, batch):
        y = module(batch["x"]) * 2
        y.detach().mul_(3)
        return y.mean()

    def change_what_was_used(module, batch):
        y = module(batch["x"]) / module.scale
        module.scale.data.mul_(0.5)
        return y.mean()

    def keep_what_it_was(module, batch):
        old = module.scale[:2]
        module.scale.data = module.scale * 0.9
        return module(batch["x"]).mean() + old.sum()

    def alias(module, batch):
        module.scale.data = module.bias.data
        return (module(batch["x"]) * module.scale).mean()

    def clamp_without_gradient(module, batch):
        y = module(batch["x"])
        with torch.no_grad():
            y.clamp_(-1, 1)
        return y.mean()

    def write_rows_without_gradient(module, batch):
        y = module(batch["x"])
        with torch.no_grad():
            y[:, 0] = 0
        return y.mean()

    def detach_in_place(module, batch):
        y = module(batch["x"])
        z = y * 2
        y.detach_()
        return (y * z).mean()

    def write_a_view(module, batch):
        y = module(batch["x"])
        y[:, :2].data.mul_(2)
        return y.mean()

    def write_a_view_without_gradient(module, batch):
        y = module(batch["x"])
        with torch.no_grad():
            y.view(-1).mul_(2)
        return y.mean()

    def activate_without_gradient(module, batch):
        y = module(batch["x"])
        with torch.no_grad():
            torch.nn.functional.relu(y, inplace=True)
        return y.mean()

    for loss, why in ((write_a_view, "behind its gradient's back"), (write_a_view_without_gradient, "behind its gradient's back"),
                      (activate_without_gradient, "behind its gradient's back"), (clamp_without_gradient, r"changes a tensor that it has computed \(clamp_\)"), (write_rows_without_gradient, "__setitem__"),
                      (detach_in_place, r"write x = x.detach\(\)"), (set_intermediate, "assigns to .data of a tensor that it has computed"), (write_intermediate, "behind its gradient's back"),
                      (change_what_was_used, "after DivBackward0 has used it"), (keep_what_it_was, "keeps what it was"), (alias, "so that later both change")):
        expect_refusal(tmp_path, why, Scaled(), loss)
    module = Scaled()
    module.register_buffer("same", module.weight.detach())
    expect_refusal(tmp_path, "'weight' of the module changes with the steps, and 'same', which shares its memory", module,
                   lambda module, batch: (module(batch["x"]) * module.same.mean()).mean())
    module = Scaled()
    module.part = module.scale[:2]

    def write_to_both(module, batch):
        with torch.no_grad():
            module.scale.mul_(0.9)
        return (module(batch["x"])[:, :2] * module.part).mean()
    expect_refusal(tmp_path, "share", module, write_to_both)


class Remembering(torch.nn.Module):
    """Two buffers, of which `change` makes others."""

    def __init__(self, change):
        super().__init__()
        self.linear, self.change = torch.nn.Linear(8, 4), change
        self.register_buffer("now", torch.ones(4))
        self.register_buffer("then", torch.full((4,), 0.5))

    def average(self, y):
        return 0.9 * self.now + 0.1 * y.detach().mean(0)

    def forward(self, x):
        y = self.linear(x)
        return self.change(self, y)


def assign_and_write_in_place(self, y):
    value = self.average(y)
    self.now.data = value
    self.now.mul_(2)
    return y * value


def assign_what_gradients_need(self, y):
    value = self.average(y)
    z = y * value
    self.now.data = value
    self.now.mul_(2)
    return z


def assign_a_part(self, y):
    value = torch.stack([self.average(y), self.now])
    self.now.data = value[0]
    self.now.mul_(2)
    return y * value.sum(0)


def write_what_was_assigned(self, y):
    value = self.average(y)
    self.now.data = value
    value.mul_(2)
    return y * self.now


def assign_both(self, y):
    self.now.data = self.then.data = self.average(y)
    return y * self.now


def register_both(self, y):
    self.now = self.then = self.average(y)
    return y * self.now


def keep_and_write(self, y):
    self.then = self.now
    self.now.mul_(0.9)
    return y * self.then


def set_memory(self, y):
    self.now.set_(self.then)
    return y * self.now


def swap(self, y):
    torch.utils.swap_tensors(self.now, self.then)
    return y * self.now


def write_to_storage(self, y):
    self.now.untyped_storage().fill_(0)
    return y * self.now


def shorten(self, y):
    self.now = self.average(y)[:2]
    return y * self.now.mean()


@pytest.mark.parametrize("change,why", [
    (assign_and_write_in_place, "which has changed as well"), (assign_what_gradients_need, "which has changed as well"), (assign_a_part, "which has changed as well"),
    (write_what_was_assigned, "changes a tensor that it has assigned"), (assign_both, "'now' and 'then' of the module one memory"),
    (register_both, "'now' and 'then' of the module one memory"), (keep_and_write, "'then' and 'now' of the module one memory"), (set_memory, "set_"),
    (swap, "swap_tensors"), (write_to_storage, "untyped_storage"), (shorten, r"'now' of Remembering, which is \[4\] .* one \[2\]")])
def test_memory_that_two_tensors_share_is_refused(tmp_path, change, why):
    expect_refusal(tmp_path, why, Remembering(change))


def read_what_was_assigned(self, y):
    value = self.average(y)
    self.now.data = value
    return y * value + self.now


def exchange(self, y):
    self.now, self.then = self.then, self.now
    return y * self.now + 0.1 * self.then


def shift(self, y):
    self.then = self.now
    self.now = self.average(y)
    return y * self.now + 0.1 * self.then


def write_what_it_was(self, y):
    old, self.now = self.now, self.average(y)
    old.add_(1)
    return y * self.now + 0.1 * old


@pytest.mark.parametrize("change", [read_what_was_assigned, exchange, shift, write_what_it_was])
def test_tensors_that_change_places(tmp_path, change):
    torch.manual_seed(0)
    module, data = Remembering(change), torch_models.MODELS["mlp"][2]
    step = distc.torch.export(module, torch_models.classify, optim.SGD(module.parameters(), 0.1), get_example(data), tmp_path / "step.mlir")
    theirs = copy.deepcopy(module)
    losses = torch_models.train_here(theirs, torch_models.classify, optim.SGD(theirs.parameters(), 0.1), data, BATCH, 5)
    result = distc.compile(step, replicas=2, batch=BATCH).train(to_numpy(data), 5)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5)
    expect_state(module, result.state, theirs)


def test_norms_of_complex_numbers(tmp_path):
    loss = lambda module, batch: sum(torch.linalg.vector_norm(torch.fft.rfft(module(batch["x"])), order, dim=1).mean() for order in (1, 2, math.inf))
    module, data = torch.nn.Linear(8, 4), torch_models.MODELS["mlp"][2]
    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.01), get_example(data), tmp_path / "step.mlir")
    losses = torch_models.train_here(module, loss, optim.SGD(module.parameters(), 0.01), data, BATCH, 3)
    np.testing.assert_allclose(distc.compile(step, replicas=2, batch=BATCH).train(to_numpy(data), 3).losses, losses, rtol=1e-4)


def test_a_refused_step_leaves_the_module_as_it_was(tmp_path):
    class Cached(torch.nn.Linear):
        def forward(self, x):
            if not hasattr(self, "table"):
                self.register_buffer("table", torch.arange(4.0), persistent=False)
            return super().forward(x) + self.table

    module = Cached(8, 4)
    expect_refusal(tmp_path, "makes 'table' of the module another tensor", module)
    assert not hasattr(module, "table")
    assert type(module(torch.randn(2, 8))) is torch.Tensor


def of_similarities(module, batch):
    """What SimCLR and SupCon are made of: a matrix of examples by examples, twice, without those of an example with itself."""
    y = torch.nn.functional.normalize(module(batch["x"]), dim=1)
    both = torch.cat([y, y + 0.1 * batch["x"][:, :4]])
    same = (batch["y"][:, None] == batch["y"]).float().repeat(2, 2).fill_diagonal_(0.0)
    logits = (both @ both.T).fill_diagonal_(-1e4)
    return -(same * logits.log_softmax(1)).sum() / same.sum()


PUBLISHED = {
    "split by keyword": lambda module, batch: (lambda a, b: a.mean() * b.sum(1).mean())(*module(batch["x"]).split(split_size=[1, 3], dim=-1)),
    "chunk by keyword": lambda module, batch: (lambda a, b: (a * b).mean())(*torch.chunk(input=module(batch["x"]), chunks=2, dim=1)),
    "einsum of three": lambda module, batch: torch.einsum("bl,bn,bl->bln", module(batch["x"]), batch["x"], module(batch["x"])).mean(),
    "written diagonal": lambda module, batch: (lambda c: torch.diagonal(c).add_(-1).pow_(2).sum() + c.pow(2).sum())(module(batch["x"]).T @ batch["x"][:, :4] / batch["x"].shape[0]),
    "similarities": of_similarities,
}


def test_who_may_look_at_nothing_sees_zeros(tmp_path):
    """An empty sequence, by masks of booleans and of -inf."""
    torch.manual_seed(0)
    module, data = torch.nn.MultiheadAttention(8, 2, batch_first=True), {"x": torch.randn(24, 3, 8), "n": torch.arange(24) % 4}

    def loss(module, batch):
        x, pad = batch["x"], torch.arange(3) >= batch["n"][:, None]
        added = torch.zeros(()).expand(pad.shape).masked_fill(pad, float("-inf"))
        seen = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=~pad[:, None, :].expand(-1, 3, -1))
        return sum((module(seen, x, x, key_padding_mask=mask, need_weights=False)[0] - 0.1 * x).square().mean() for mask in (pad, added))

    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), get_example(data), tmp_path / "step.mlir")
    theirs = copy.deepcopy(module)
    losses = torch_models.train_here(theirs, loss, optim.SGD(theirs.parameters(), 0.1), data, BATCH, 4)
    assert np.isfinite(losses).all()
    result = distc.compile(step, replicas=2, batch=BATCH).train(to_numpy(data), 4)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5)
    expect_state(module, result.state, theirs)


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_published(tmp_path, name):
    torch.manual_seed(0)
    module, data = torch.nn.Linear(8, 4), torch_models.MODELS["mlp"][2]
    step = distc.torch.export(module, PUBLISHED[name], optim.SGD(module.parameters(), 0.1), get_example(data), tmp_path / "step.mlir")
    theirs = copy.deepcopy(module)
    losses = torch_models.train_here(theirs, PUBLISHED[name], optim.SGD(theirs.parameters(), 0.1), data, BATCH, 4)
    for replicas in (1, 2):
        result = distc.compile(step, replicas=replicas, batch=BATCH).train(to_numpy(data), 4)
        np.testing.assert_allclose(result.losses, losses, rtol=1e-5, atol=1e-5)
        expect_state(copy.deepcopy(module), result.state, theirs)


def test_gradients_within_a_loss_are_refused(tmp_path):
    module, data = torch.nn.Linear(6, 4), {"x": torch.randn(8, 6), "y": torch.randint(0, 4, (8,))}

    def loss(module, batch):
        x = batch["x"].clone().requires_grad_(True)
        return torch.autograd.grad(module(x).sum(), x, create_graph=True)[0].square().mean()
    with pytest.raises(NotImplementedError, match="no form for gradients within the loss"):
        distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")


@pytest.mark.parametrize("loss,line,why", [
    (lambda module, batch: module(batch["x"]).mean() if batch["x"].sum() > 0 else 0.0, "if batch", "Python looks at what a tensor holds"),
    (lambda module, batch: module(batch["x"]).mean() * batch["x"].numpy().sum(), "numpy", "takes a tensor out of PyTorch"),
    (lambda module, batch: module(torch.from_dlpack(batch["x"])).mean(), "from_dlpack", "takes a tensor out of PyTorch")])
def test_a_refusal_names_the_line(tmp_path, loss, line, why):
    expect_refusal(tmp_path, rf"test_torch.py:\d+: .*{line}.*{why}", torch.nn.Linear(8, 4), loss)


def test_what_would_stay_as_it_was_exported_is_refused(tmp_path):
    data = {"x": torch.randn(8, 6), "y": torch.randint(0, 4, (8,))}
    loss = lambda module, batch: torch.nn.functional.cross_entropy(module(batch["x"]), batch["y"])
    module = Average(False)
    with pytest.raises(NotImplementedError, match="'mean' of Average .*register_buffer"):
        distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")

    class Annealed(torch.nn.Linear):
        temperature = 1.0

        def __init__(self):
            super().__init__(6, 4)
            self.temperature = 1.0

        def forward(self, x):
            self.temperature *= 0.5
            return super().forward(x) / self.temperature

    module = Annealed()
    with pytest.raises(NotImplementedError, match="the number 'temperature' of Annealed"):
        distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")


def test_python_that_a_loss_changes_is_refused(tmp_path):
    module, data = torch.nn.Linear(6, 4), {"x": torch.randn(8, 6), "y": torch.randint(0, 4, (8,))}
    calls, kept, rows = 0, {"mean": torch.zeros(())}, []
    entropy = lambda batch: torch.nn.functional.cross_entropy(module(batch["x"]), batch["y"])

    def count(_, batch):
        nonlocal calls
        calls += 1
        return entropy(batch) * min(calls / 4, 1)

    def keep_mean(_, batch):
        value = entropy(batch)
        result = value * (1 + kept["mean"])
        kept["mean"] = (0.9 * kept["mean"] + 0.1 * value).detach()
        return result

    def grow(_, batch):
        rows.append(0.5)
        return entropy(batch) * sum(rows)

    def mix(_, batch):
        return torch.nn.functional.cross_entropy(module(batch["x"] * np.random.beta(2, 2)), batch["y"])

    def skip(_, batch):
        return entropy(batch) * (0.0 if random.random() < 0.5 else 1.0)

    refused = ((count, "changes 'calls'"), (keep_mean, r"changes 'kept\['mean'\]'"), (grow, r"changes 'len\(rows\)'"),
               (mix, "'numpy.random'"), (skip, "'random'"))
    for loss, message in refused:
        with pytest.raises(NotImplementedError, match=message):
            distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")

    # Tensors of the module that are others afterwards, and such as are trained in a part of the loss alone.
    module.register_buffer("centre", torch.zeros(4))
    module.codes = torch.nn.Parameter(torch.zeros(4), requires_grad=False)

    def assign_data(_, batch):
        module.centre.data = (module.centre * 0.9).double()
        return entropy(batch) + module.centre.sum()

    def make_parameter(_, batch):
        module.codes = torch.nn.Parameter(module.codes.detach() * 0.9, requires_grad=False)
        return entropy(batch) + module.codes.sum()

    def make_buffer(_, batch):
        module.register_buffer("centre", module.centre * 0.9)
        return entropy(batch) + module.centre.sum()

    def freeze(_, batch):
        module.weight.requires_grad_(False)
        value = entropy(batch)
        module.weight.requires_grad_(True)
        return value

    class Criterion(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, _, batch):
            return entropy(batch) * self.scale

    for loss, message in ((assign_data, r"assigns a tensor \[4\] of torch.float64 to \.data"), (make_parameter, "makes 'codes' of the module another tensor"),
                          (make_buffer, "makes 'centre' of the module another tensor"), (freeze, "changes requires_grad"),
                          (Criterion(), "Criterion.* has parameters or buffers of its own")):
        with pytest.raises(NotImplementedError, match=message):
            distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")

    # What nothing reads may change.
    shapes = []

    def log(_, batch):
        shapes.append(tuple(batch["x"].shape[1:]))
        return entropy(batch)

    distc.torch.export(module, log, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")


def test_dropout_differs_from_step_to_step(tmp_path):
    module = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(8, 4))
    _, loss, data = torch_models.MODELS["mlp"]
    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.0), get_example(data), tmp_path / "step.mlir")
    losses = [distc.compile(step, replicas=replicas, batch=BATCH).train(to_numpy(data), 4).losses for replicas in (1, 2)]
    assert len(set(losses[0])) == 4
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


def test_frozen_parameters_stay(tmp_path):
    make, loss, data = torch_models.MODELS["mlp"]
    module = make()
    module[0].weight.requires_grad_(False)
    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), get_example(data), tmp_path / "step.mlir")
    state = distc.compile(step, batch=BATCH).train(to_numpy(data), 3).state
    np.testing.assert_array_equal(state["0.weight"], module[0].weight)
    assert not np.array_equal(state["2.weight"], module[2].weight.detach())


def test_what_there_is_no_code_for_is_listed(tmp_path):
    data = torch_models.MODELS["mlp"][2]

    def loss(module, batch):
        return torch.linalg.eigvals(module[2].weight[:4, :4]).abs().mean() + torch.linalg.ldl_factor(module[2].weight[:4, :4])[0].sum()

    module = torch_models.mlp()
    with pytest.raises(distc.torch.UnknownOperations, match=r"linalg_eig.*linalg_ldl_factor"):
        distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), get_example(data), tmp_path / "step.mlir")
    with pytest.raises(NotImplementedError, match="LBFGS"):
        distc.torch.export(module, torch_models.classify, optim.LBFGS(module.parameters()), get_example(data), tmp_path / "step.mlir")


class Windows(torch.nn.Module):
    """As Swin's layers: numbers that each call sets to the same; and a copy of many examples, as diffusers' networks have it."""

    def __init__(self):
        super().__init__()
        self.linear, self.shift, self.factor = torch.nn.Linear(4, 4), 3, 5
        self.recent = collections.deque([1, 2], maxlen=2)

    def forward(self, x):
        if x.shape[1] <= 7:
            self.shift = 0
        if x.shape[0] >= 64:
            x = x.contiguous()
        self.factor = 1
        for _ in range(2):
            self.factor *= 2
            x = self.linear(x) * self.factor
        return x.roll(self.shift, 1) if self.shift else x


class Once(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.begun = torch.nn.Linear(4, 4), False

    def forward(self, x):
        factor, self.begun = 1 if self.begun else 2, True
        return self.linear(x) * factor


class After(torch.nn.Module):
    """Uses what the call before it has left."""

    def __init__(self, name, first, use, then):
        super().__init__()
        self.linear, self.name, self.use, self.then = torch.nn.Linear(4, 4), name, use, then
        setattr(self, name, first)

    def forward(self, x):
        result = self.use(self.linear(x), getattr(self, self.name))
        setattr(self, self.name, self.then(getattr(self, self.name), x))
        return result


AFTER = {"alternates": (0, lambda y, k: y * (1 + k), lambda k, x: 1 - k), "flag": (False, lambda y, k: y * 2 if k else y, lambda k, x: not k),
         "size": (1, lambda y, k: y / k, lambda k, x: x.shape[0]), "mode": ("a", lambda y, k: y * 2 if k == "a" else y, lambda k, x: "b"),
         "missing": (None, lambda y, k: y * 2 if k is None else y, lambda k, x: 1.0), "function": (torch.tanh, lambda y, k: k(y), lambda k, x: torch.relu),
         "table": ({}, lambda y, k: y * (1 + len(k)), lambda k, x: {**k, "a": 1})}


@pytest.mark.parametrize("name", AFTER)
def test_what_the_next_call_reads_is_refused(tmp_path, name):
    first, use, then = AFTER[name]
    data = {"x": torch.randn(8, 4, generator=torch.Generator().manual_seed(3))}
    for module in (After(name, first, use, then), torch.nn.Sequential(After(name, first, use, then))):
        with pytest.raises(NotImplementedError, match=f"the loss changes .*{name}"):
            distc.torch.export(module, lambda m, b: m(b["x"]).square().mean(), optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")


class Cached(torch.nn.Module):
    """A tensor that the first call makes is the same in every call; so is a size that is taken before it is used."""

    def __init__(self):
        super().__init__()
        self.linear, self.positions, self.examples, self.norm = torch.nn.Linear(4, 4), None, 0, torch.nn.BatchNorm1d(4)

    def forward(self, x):
        self.examples = x.shape[0]
        if self.positions is None:
            self.positions = torch.arange(4.0)
        return self.norm(self.linear(x)).sum(0, keepdim=True) * self.positions / self.examples


def test_what_every_call_makes_alike(tmp_path):
    data = {"x": torch.randn(8, 4, generator=torch.Generator().manual_seed(3))}
    module = Cached()

    def loss(m, batch):
        return (m(batch["x"]) - batch["x"]).square().mean()

    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")
    assert (module.positions, module.examples) == (None, 0) and all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    result = distc.compile(step, replicas=2, batch=8).train(to_numpy(data), 3)
    np.testing.assert_allclose(result.losses, torch_models.train_here(module, loss, optim.SGD(module.parameters(), 0.1), data, 8, 3), rtol=1e-5)


class More(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x * 2 if x.shape[0] >= 64 else x)


def test_numbers_that_settle(tmp_path):
    data = {"x": torch.randn(8, 4, generator=torch.Generator().manual_seed(3))}

    def loss(module, batch):
        return module(batch["x"]).square().mean()

    def export(module):
        return distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")

    module = Windows()
    step = export(module)
    assert (module.shift, module.factor, list(module.recent)) == (3, 5, [1, 2])
    result = distc.compile(step, replicas=2, batch=8).train(to_numpy(data), 3)
    losses = torch_models.train_here(module, loss, optim.SGD(module.parameters(), 0.1), data, 8, 3)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-5)
    with pytest.raises(NotImplementedError, match="'begun'"):
        export(Once())
    with pytest.raises(NotImplementedError, match="batch's size does not stay open"):
        export(More())


DRAWS = (lambda x: torch.randint(0, 5, (x.shape[0], 1)), lambda x: torch.randint(3, (x.shape[0], 4)) + torch.randint_like(x, 1, 4),
         lambda x: torch.normal(0.5, 0.1, x.shape) + torch.normal(x, 0.1), lambda x: torch.empty_like(x).uniform_(-1, 2) * torch.empty_like(x).exponential_(2.0),
         lambda x: torch.multinomial(torch.softmax(x, 1), 2).repeat(1, 2), lambda x: torch.multinomial(torch.softmax(x, 1), 4, replacement=True),
         lambda x: torch.nn.functional.gumbel_softmax(x, hard=True))


def test_replicas_draw_what_one_draws(tmp_path):
    data = {"x": torch.randn(8, 4, generator=torch.Generator().manual_seed(3))}
    module = torch.nn.Linear(4, 4)

    def loss(m, batch):
        found = {f"draw_{i}": (m(batch["x"]) * draw(batch["x"])).square().mean() for i, draw in enumerate(DRAWS)}
        return sum(found.values()), found

    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.01), data, tmp_path / "step.mlir")
    one, two = (distc.compile(step, replicas=replicas, batch=8).train(to_numpy(data), 4) for replicas in (1, 2))
    for name, values in one.fetches.items():
        np.testing.assert_allclose(two.fetches[name], values, rtol=1e-5, err_msg=name)
        assert len(set(np.ravel(values))) == 4, name


def test_draws_have_their_distribution(tmp_path):
    """What a step fetches of 4,096 examples: means, and how often each of some classes was drawn."""
    module = torch.nn.Linear(1, 1)
    data = {"x": torch.zeros(4096, 1)}
    weights = torch.tensor([0.1, 0.2, 0.7])

    def loss(m, batch):
        rows = batch["x"]
        classes = torch.multinomial(weights.expand(rows.shape[0], 3), 1)
        found = {"integers": torch.randint(2, 7, rows.shape).float(), "uniform": torch.empty_like(rows).uniform_(-1, 2),
                 "exponential": torch.empty_like(rows).exponential_(4.0), "normal": torch.normal(0.5, 2.0, rows.shape), "first": (classes == 0).float(),
                 "last": (classes == 2).float()}
        return m(rows).square().mean(), {name: value.mean() for name, value in found.items()}

    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.01), data, tmp_path / "step.mlir")
    fetches = distc.compile(step, replicas=2, batch=4096).train(to_numpy(data), 1).fetches
    for name, mean, deviation in (("integers", 4, 1.5), ("uniform", 0.5, 0.9), ("exponential", 0.25, 0.25), ("normal", 0.5, 2), ("first", 0.1, 0.3), ("last", 0.7, 0.46)):
        assert abs(float(np.ravel(fetches[name])[0]) - mean) < 5 * deviation / 64, name


def invert(order):
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(order.shape[0])
    return inverse


RESTORE = (lambda rows, order: rows[invert(order)], lambda rows, order: rows[torch.zeros_like(order).scatter(0, order, torch.arange(order.shape[0]))],
           lambda rows, order: torch.zeros_like(rows).index_put((order,), rows),
           lambda rows, order: torch.ones_like(rows).index_put((order,), rows, accumulate=True))


def test_rows_go_back_to_where_they_were(tmp_path):
    """As transformers' experts sort tokens: what is written by an order of all rows is read by its inverse."""
    data = {"x": torch.randn(8, 4, generator=torch.Generator().manual_seed(3))}
    module = torch.nn.Linear(4, 4)

    def loss(m, batch):
        order = torch.argsort(batch["x"][:, 0])
        rows = m(batch["x"][order])
        return sum((restore(rows * (i + 1), order) * batch["x"]).sum(1).square().mean() for i, restore in enumerate(RESTORE))

    step = distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")
    results = [distc.compile(step, replicas=replicas, batch=8).train(to_numpy(data), 3) for replicas in (1, 2)]
    losses = torch_models.train_here(module, loss, optim.SGD(module.parameters(), 0.1), data, 8, 3)
    for result in results:
        np.testing.assert_allclose(result.losses, losses, rtol=1e-5)


class Recurrent(torch.nn.Module):
    """Networks of sequences of several lengths."""

    def __init__(self):
        super().__init__()
        self.both, self.projected = torch.nn.LSTM(4, 3, 2, bidirectional=True, batch_first=True), torch.nn.LSTM(4, 5, proj_size=2)
        self.gru, self.rnn = torch.nn.GRU(4, 3, bidirectional=True, bias=False, batch_first=True), torch.nn.RNN(4, 3, nonlinearity="relu", batch_first=True)

    def forward(self, batch):
        x, lengths = batch["x"], batch["lengths"]
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        both, (h, c) = self.both(packed)
        both, found = pad_packed_sequence(both, batch_first=True, padding_value=0.5, total_length=6)
        projected, _ = pad_packed_sequence(self.projected(pack_padded_sequence(x.transpose(0, 1), lengths, enforce_sorted=False))[0], total_length=7)
        begin = x[:, 0, :3].expand(2, -1, -1).contiguous()
        gru, last = self.gru(packed, begin)
        rnn = pad_packed_sequence(self.rnn(packed)[0], True, total_length=6)[0]
        gru = pad_packed_sequence(gru, True, total_length=6)[0]
        return sum(each.square().flatten(1).sum(1) for each in (both, h.transpose(0, 1), c.transpose(0, 1), last.transpose(0, 1), rnn, gru)) / found + projected[:, :, 0].sum(0)


def test_sequences_of_several_lengths(tmp_path):
    torch.manual_seed(0)
    module = Recurrent().double()
    data = {"x": torch.randn(BATCH, 6, 4, dtype=torch.double), "lengths": torch.tensor([5, 2, 1, 4, 5, 3, 2, 5, 6, 1, 1, 2])}
    data["x"][2, 3:] = math.nan  # behind an end
    theirs = copy.deepcopy(module)

    def loss(module, batch):
        return module({**batch, "x": batch["x"]}).mean()

    losses = torch_models.train_here(theirs, loss, optim.SGD(theirs.parameters(), 0.1), data, BATCH, 3)
    executable = distc.compile(distc.torch.export(module, loss, optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir"), replicas=2, batch=BATCH)
    result = executable.train(to_numpy(data), 3)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-9)
    expect_state(module, result.state, theirs)
    data["lengths"][7] = 7
    with pytest.raises(distc.RunError, match="the feed 'lengths' has 7 in row 7 of the batch of step 0, which is outside of .0, 7."):
        executable.train(to_numpy(data), 1)


@pytest.mark.parametrize("read,way", [
    (lambda packed, rnn: pad_packed_sequence(rnn(packed)[0], batch_first=True)[0].mean(), "total_length"),
    (lambda packed, rnn: pad_packed_sequence(rnn(packed)[0], batch_first=True, total_length=5)[0].mean(), "pack the first 5"),
    (lambda packed, rnn: rnn(packed)[0].data.mean(), "'data' of a PackedSequence"),
    (lambda packed, rnn: rnn(torch.nn.utils.rnn.pack_sequence([rnn.weight_hh_l0]))[1].mean(), "pack_sequence"),
])
def test_packed_sequences_that_are_refused(tmp_path, read, way):
    module, data = torch.nn.GRU(4, 4, batch_first=True), {"x": torch.randn(4, 6, 4), "lengths": torch.tensor([1, 2, 3, 6])}
    with pytest.raises(NotImplementedError, match=way):
        distc.torch.export(module, lambda m, b: read(pack_padded_sequence(b["x"], b["lengths"], True, False), m), optim.SGD(module.parameters(), 0.1), data, tmp_path / "step.mlir")
    packed = pack_padded_sequence(data["x"], data["lengths"].flip(0), batch_first=True)  # PyTorch's own again
    assert packed.data.shape == (12, 4) and module(packed)[1].shape == (1, 4, 4)


class Adversaries(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.maker = torch.nn.Sequential(torch.nn.Linear(3, 6), torch.nn.BatchNorm1d(6, eps=0.1), torch.nn.Tanh(), torch.nn.Linear(6, 4))
        self.judge = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.LeakyReLU(0.2), torch.nn.Linear(6, 1))


def judge(module, batch):
    real, made = module.judge(batch["x"]), module.judge(module.maker(batch["z"]).detach())
    return F.binary_cross_entropy_with_logits(real, torch.ones_like(real)) + F.softplus(made).mean(), {"real": real.mean()}


def judge_again(module, batch):
    return judge(module, {name: tensor.flip(0) for name, tensor in batch.items()})[0]


def deceive(module, batch):
    return F.softplus(-module.judge(module.maker(batch["z"]))).mean()


@pytest.mark.parametrize("strategy,replicas,processes", [("AllReduce", 2, False), ("ShardedUpdate", 2, False), ("PSLoadBalancing", 2, True)])
def test_losses_take_turns(tmp_path, strategy, replicas, processes):
    """As those of generative adversaries: each optimizer's new parameters are those that the next loss sees; one has two turns."""
    torch.manual_seed(0)
    module = Adversaries().double()
    losses = {"judge": judge, "again": judge_again, "maker": deceive}

    def make_optimizers(module):
        first = optim.SGD(module.judge.parameters(), 0.05, momentum=0.9)
        return {"judge": first, "again": first, "maker": optim.Adam(module.maker.parameters(), 0.02, eps=1e-3)}

    theirs, data = copy.deepcopy(module), {"x": torch.randn(2 * BATCH, 4).double(), "z": torch.randn(2 * BATCH, 3).double()}
    optimizers, expected = make_optimizers(theirs), []
    decay = optim.lr_scheduler.StepLR(optimizers["maker"], 2, 0.5)
    for step in range(4):
        begin = step % 2 * BATCH
        for name, loss in losses.items():
            optimizers[name].zero_grad()
            value = loss(theirs, {each: tensor[begin:begin + BATCH] for each, tensor in data.items()})
            value = value[0] if isinstance(value, tuple) else value
            value.backward()
            torch.nn.utils.clip_grad_norm_((theirs.maker if name == "maker" else theirs.judge).parameters(), 0.3)
            optimizers[name].step()
            expected.append(value.item())
        decay.step()
    optimizers = make_optimizers(module)
    step = distc.torch.export(module, losses, optimizers, get_example(data), tmp_path / "step.mlir", max_norm=0.3, schedule={"maker": optim.lr_scheduler.StepLR(optimizers["maker"], 2, 0.5)},
                              schedule_steps=4)
    result = distc.compile(step, strategy=strategy, replicas=replicas, batch=BATCH, processes=processes).train(to_numpy(data), 4)
    np.testing.assert_allclose(np.stack([result.fetches[name] for name in losses], 1).ravel(), expected, rtol=1e-9)
    np.testing.assert_allclose(result.losses, np.reshape(expected, (4, 3)).sum(1), rtol=1e-9)
    assert "real" in result.fetches
    expect_state(module, result.state, theirs)


@pytest.mark.parametrize("optimizer,error,says", [
    (lambda m: optim.SGD(m.parameters(), 0.1), TypeError, "each has an optimizer"),
    (lambda m: {"judge": optim.SGD(m.parameters(), 0.1)}, TypeError, "each has an optimizer"),
    (lambda m: {"judge": optim.SGD(m.judge.parameters(), 0.1), "maker": optax.sgd(0.1)}, NotImplementedError, "of torch.optim"),
    (lambda m: {"judge": optim.SGD(m.maker.parameters(), 0.1), "maker": optim.SGD(m.maker.parameters(), 0.1)}, ValueError, "'judge' depends on no parameter"),
    (lambda m: dict.fromkeys(["judge", "maker"], optim.SGD(m.parameters(), 0.1)), NotImplementedError, "one optimizer, but depend on different"),
])
def test_turns_that_are_refused(tmp_path, optimizer, error, says):
    module, data = Adversaries(), {"x": torch.randn(BATCH, 4), "z": torch.randn(BATCH, 3)}
    with pytest.raises(error, match=says):
        distc.torch.export(module, {"judge": judge, "maker": deceive}, optimizer(module), data, tmp_path / "step.mlir")


def in_parts(module, batch):
    """A batch that is taken apart: halves, quarters, pairs, every other example."""
    x, y, n = batch["x"], batch["y"], len(batch["x"])
    first, second = x.chunk(2)
    z = module(x)
    pairs, rows = z.view(-1, 2, 4), z.reshape(4, -1, 4)
    parts = sum(F.cross_entropy(module(part), labels) for part, labels in zip(x.chunk(4), y.chunk(4)))
    ghosts = torch.cat([F.batch_norm(part, None, None, training=True, eps=0.1) for part in z.split(n // 2)])
    spread = (rows - rows.mean(0)).square().mean(0).add(0.01).sqrt().mean(1, keepdim=True)
    return (F.mse_loss(module(first), module(second).tanh()) + parts + F.mse_loss(module(x[:n // 2]), module(x[n // 2:])) + (pairs.mean(1) - pairs[:, 0] * 0.3).square().mean()
            + F.smooth_l1_loss(z[::2], z[1::2]) + (ghosts * torch.cat([z, spread.repeat(4, 1)], 1)[:, 1:]).mean())


def test_batches_that_are_taken_apart(tmp_path):
    torch.manual_seed(0)
    # What comes first the loss does not look at.
    module, data = torch.nn.Linear(8, 4).double(), {"unread": torch.zeros(32), "x": torch.randn(32, 8).double(), "y": torch.randint(0, 4, (32,))}
    step = distc.torch.export(module, in_parts, optim.SGD(module.parameters(), 0.05), {name: tensor[:8] for name, tensor in data.items()}, tmp_path / "step.mlir")
    theirs = copy.deepcopy(module)
    losses = torch_models.train_here(theirs, in_parts, optim.SGD(theirs.parameters(), 0.05), data, 16, 3)
    for replicas, processes in ((2, False), (4, True)):
        result = distc.compile(step, replicas=replicas, batch=16, processes=processes).train(to_numpy(data), 3)
        np.testing.assert_allclose(result.losses, losses, rtol=1e-9)
        expect_state(module, result.state, theirs)
    with pytest.raises(distc.CompileError, match="multiple of 4"):
        distc.compile(step, replicas=4, batch=8)
    with pytest.raises(NotImplementedError, match="batch_multiple"):
        distc.torch.export(module, lambda m, b: sum(m(x).mean() for x in b["x"].chunk(2)), optim.SGD(module.parameters(), 0.05), {"x": data["x"][:7]}, tmp_path / "step.mlir")
