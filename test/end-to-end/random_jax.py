#!/usr/bin/env python3
"""Random training steps of JAX (expressions, scans, conditionals, vmap, random numbers, optimizers), trained by distc with random
strategies, against jax.jit. By hand: --seed 2 --count 200; --only K runs program K alone and prints it."""
import importlib.util
import os
import sys

from support import DISTC, ROOT, check_programs, need_tools, skip

for module in ("jax", "optax"):
    if importlib.util.find_spec(module) is None:
        skip(f"needs {module}: pip install 'jax[cpu]' optax, and set DISTC_PYTHON to that python")
need_tools(DISTC)
sys.path.insert(0, str(ROOT / "tools" / "python"))
os.environ["DISTC"] = str(DISTC)

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

import distc

BATCH, STEPS, ROWS, WIDTH = 8, 5, 16, 4
RUNS = [("AllReduce", 1, False), ("AllReduce", 2, False), ("AllReduce", 4, False), ("ShardedUpdate", 2, False), ("ShardedUpdate", 2, True),
        ("PartitionedAR", 2, False), ("PSLoadBalancing", 2, True), ("AllReduce", 2, True)]
# Smooth and bounded: what differs by rounding must not grow.
UNARY = {"tanh": jnp.tanh, "sin": jnp.sin, "sigmoid": jax.nn.sigmoid, "softplus": jax.nn.softplus, "relu": jax.nn.relu, "gelu": jax.nn.gelu,
         "abs": jnp.abs, "square": lambda x: jnp.square(jnp.tanh(x)), "erf": lax.erf, "log1p": lambda x: jnp.log1p(jnp.abs(x)),
         "rsqrt": lambda x: lax.rsqrt(1 + x * x), "clip": lambda x: jnp.clip(x, -1, 1), "expm1": lambda x: jnp.expm1(jnp.minimum(x, 1)),
         "floor": lambda x: x - lax.stop_gradient(jnp.floor(x)), "cast": lambda x: x * x.astype(jnp.int32).astype(jnp.float32) / 8}
# Of x [.., WIDTH], row by row.
ROWWISE = {"softmax": lambda x: jax.nn.softmax(x, -1), "normalize": lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 0.1),
           "cumsum": lambda x: jnp.cumsum(x, -1) / WIDTH, "reverse": lambda x: x[..., ::-1], "roll": lambda x: jnp.roll(x, 1, -1),
           "sort": lambda x: jnp.sort(x, -1), "top_k": lambda x: jnp.concatenate([lax.top_k(x, 2)[0]] * 2, -1), "max": lambda x: x - x.max(-1, keepdims=True),
           "argmax": lambda x: x * jax.nn.one_hot(x.argmax(-1), WIDTH), "cummax": lambda x: lax.cummax(x, axis=x.ndim - 1),
           "filtered": lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * jnp.exp(1j * jnp.arange(WIDTH // 2 + 1)), n=WIDTH), "transformed": lambda x: (jnp.fft.fft(x).real + jnp.fft.ifft(x * 1j).imag) / WIDTH,
           "argsort": lambda x: jnp.take_along_axis(x, jnp.argsort(-x, -1), -1), "pad": lambda x: jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 0)])[..., :-1],
           "repeat": lambda x: jnp.repeat(x[..., :2], 2, -1), "window": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1,) * (x.ndim - 1) + (2,), (1,) * x.ndim, "SAME")}


def grouped(x, group):
    """The mean of the rows of each row's group."""
    sums, counts = jax.ops.segment_sum(x, group, WIDTH), jax.ops.segment_sum(jnp.ones_like(x[:, :1]), group, WIDTH)
    return (sums / jnp.maximum(counts, 1))[group]


def views(x):
    """Two views of the examples, normalized as one."""
    both = jnp.concatenate([x, jnp.sin(x)])
    both = (both - both.mean(0)) * lax.rsqrt(both.var(0) + 0.1)
    return both[:x.shape[0]] + 0.5 * both[x.shape[0]:]


def microbatches(x):
    """Parts of the batch one after the other."""
    size = x.shape[0] // 2
    part = lambda i: lax.dynamic_slice_in_dim(x, i * size, size)
    return x - lax.scan(lambda total, i: (total + jnp.tanh(part(i)).std(0) * (i + 1), None), jnp.zeros(WIDTH), jnp.arange(2))[0] / 4


# Along the batch.
BATCHWISE = {"batch norm": lambda x: (x - x.mean(0)) * lax.rsqrt(x.var(0) + 0.1), "centered": lambda x: x - x.max(0), "share": lambda x: x / (1 + jnp.abs(x).sum(0)),
             "sorted": lambda x: x + jnp.sort(x, 0), "median": lambda x: x - jnp.quantile(x, 0.5, axis=0), "ranks": lambda x: x * jnp.argsort(jnp.argsort(x, 0), 0) / BATCH,
             "neighbours": lambda x: x - 0.5 * x[(jnp.arange(x.shape[0]) - 1) % x.shape[0]], "differences": lambda x: x + (jnp.diff(x, axis=0) ** 2).mean(0), "reversed": lambda x: x * x[::-1], "attention": lambda x: jax.nn.softmax(x @ x.T) @ x,
             "whitened": lambda x: x @ jnp.tanh(x.T @ x / x.shape[0]), "largest": lambda x: x - x[jnp.argmax(x[:, 0])], "first": lambda x: x + x[0],
             "log mean exp": lambda x: x - jnp.log(jnp.exp(x - x.max()).mean()), "groups": lambda x: x - grouped(x, jnp.argmax(x, -1)),
             "largest of groups": lambda x: x - 0.5 * jax.ops.segment_max(x, jnp.argmax(x, -1), WIDTH)[jnp.argmax(x, -1)],
             "distances": lambda x: x * jnp.exp(-((x[:, None] - x[None]) ** 2).sum(-1)).mean(1, keepdims=True), "views": views,
             "moved round": lambda x: x - 0.5 * jnp.roll(x, 3, 0), "moved back": lambda x: x * jnp.tanh(jnp.roll(x, -1, 0)), "mapped": lambda x: lax.map(lambda row: row * jnp.tanh(row).sum(), x),
             "mean by name": lambda x: jax.vmap(lambda row: (row - lax.pmean(row, "i")) * lax.rsqrt(0.1 + lax.pmean(row * row, "i")), axis_name="i")(x),
             "gathered by name": lambda x: jax.vmap(lambda row: row * jnp.tanh(lax.all_gather(row, "i") @ row).mean() + lax.psum(row, "i") / lax.axis_size("i"), axis_name="i")(x),
             "summed": lambda x: x - lax.scan(lambda total, row: (total + row * row[0], None), jnp.zeros(WIDTH), x)[0] / BATCH, "microbatches": microbatches,
             "parts": lambda x: (lambda z: (z - z.mean(1, keepdims=True)).reshape(x.shape) + 0.1 * x)(x.reshape(2, -1, WIDTH)), "pairs": lambda x: (lambda z: (z[:, ::-1] * z).reshape(x.shape))(x.reshape(-1, 2, WIDTH)),
             "halves": lambda x: (lambda a, b: jnp.concatenate([jnp.tanh(a) * b, a - b]))(*jnp.split(x, 2)), "every other": lambda x: jnp.concatenate([x[::2] * x[1::2], x[1::2]]),
             "first half": lambda x: x.at[:x.shape[0] // 2].multiply(0.5), "shuffled": lambda x: x * jnp.tanh(x[jax.random.permutation(jax.random.key(1), x.shape[0])]),
             "permuted": lambda x: 0.7 * x + 0.3 * x[jnp.argsort(x[:, 0])], "sums so far": lambda x: x + jnp.cumsum(x, 0) / BATCH, "logarithms of sums so far": lambda x: x - 0.5 * lax.cumlogsumexp(x, 0, reverse=True)}


@jax.custom_vjp
def clipped(x):
    return jnp.sin(x)


clipped.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.clip(jnp.cos(x), -0.5, 0.5),))


class Program:
    """A loss of params and a batch, as a list of steps that are described by text."""

    def __init__(self, seed):
        self.random = np.random.RandomState(seed)
        self.params, self.text, self.stages = {}, [], []
        self.draws = False
        for _ in range(self.random.randint(2, 6)):
            self.add_stage()
        self.reduction = self.choose(["mean", "sum", "huber"])
        self.optimizer, made = self.make_optimizer()
        self.run = RUNS[self.random.randint(len(RUNS))]
        self.text += [f"loss: {self.reduction}", f"optimizer: {made}", f"run: {self.run}"]

    def choose(self, options):
        return list(options)[self.random.randint(len(options))]

    def param(self, *shape, scale=0.5):
        name = f"p{len(self.params)}"
        self.params[name] = jnp.asarray(self.random.randn(*shape) * scale, jnp.float32)
        return name

    def add(self, text, stage):
        self.text.append(text)
        self.stages.append(stage)

    def add_stage(self):
        kind = self.choose(["dense", "dense", "unary", "unary", "rowwise", "rowwise", "scale", "batchwise", "scan", "cond", "vmap", "dropout",
                            "embedding", "remat", "fori", "switch", "einsum", "scatter", "convolution", "associative", "experts", "gru", "nested", "custom", "microscan", "types"])
        if kind == "dense":
            w, b = self.param(WIDTH, WIDTH), self.param(WIDTH)
            self.add(f"x @ {w} + {b}", lambda p, x, k, t: x @ p[w] + p[b])
        elif kind in ("unary", "rowwise", "batchwise"):
            table = {"unary": UNARY, "rowwise": ROWWISE, "batchwise": BATCHWISE}[kind]
            name = self.choose(table)
            self.add(name, lambda p, x, k, t: table[name](x))
        elif kind == "scale":
            g = self.param(WIDTH)
            self.add(f"x * {g}", lambda p, x, k, t: x * p[g] + jnp.where(x > p[g], x, 0.5 * p[g]))
        elif kind == "scan":
            w, f, count = self.param(WIDTH, WIDTH), self.choose(UNARY), int(self.random.randint(2, 4))
            self.add(f"scan {count} of {f}(h @ {w} + x)",
                     lambda p, x, k, t: lax.scan(lambda h, s: (jnp.tanh(UNARY[f](h @ p[w] + x) * s), h.sum(-1)), jnp.zeros_like(x),
                                                 jnp.linspace(0.5, 1, count))[0])
        elif kind == "cond":
            w, f, g = self.param(WIDTH), self.choose(UNARY), self.choose(ROWWISE)
            self.add(f"cond sum({w}) > 0: {f}, {g}",
                     lambda p, x, k, t: lax.cond(p[w].sum() > 0, lambda x: UNARY[f](x) * p[w], lambda x: ROWWISE[g](x) + p[w], x))
        elif kind == "switch":
            w, names = self.param(3), [self.choose(UNARY) for _ in range(3)]
            self.add(f"switch argmax({w}) of {names}", lambda p, x, k, t: lax.switch(jnp.argmax(p[w]), [UNARY[name] for name in names], x) * p[w].sum())
        elif kind == "vmap":
            w, f = self.param(WIDTH), self.choose(ROWWISE)
            self.add(f"vmap of {f}(row * {w})", lambda p, x, k, t: jax.vmap(lambda row: ROWWISE[f](row[None] * p[w])[0] + jnp.dot(row, p[w]))(x))
        elif kind == "dropout":
            self.draws = True
            number = len(self.stages)
            self.add("dropout", lambda p, x, k, t: jnp.where(jax.random.bernoulli(jax.random.fold_in(k, number), 0.7, x.shape), x / 0.7, 0))
        elif kind == "embedding":
            w = self.param(6, WIDTH)
            self.add(f"x + {w}[tokens]", lambda p, x, k, t: x + p[w][t].mean(1))
        elif kind == "remat":
            w = self.param(WIDTH, WIDTH)
            self.add(f"remat of sin(x @ {w})", lambda p, x, k, t: jax.checkpoint(lambda x, w: jnp.sin(jnp.sin(x @ w)))(x, p[w]))
        elif kind == "fori":
            w = self.param(WIDTH)
            self.add(f"fori of tanh(x + i * {w})", lambda p, x, k, t: lax.fori_loop(0, 3, lambda i, x: jnp.tanh(x + i * p[w]), x))
        elif kind == "einsum":
            w = self.param(2, WIDTH, 2)
            self.add(f"einsum of {w}", lambda p, x, k, t: jnp.einsum("bhi,hji,bk->bk", x.reshape(-1, 2, 2), p[w], x) / WIDTH)
        elif kind == "convolution":
            w = self.param(3, 1, 2)
            self.add(f"convolution with {w}", lambda p, x, k, t: lax.conv_general_dilated(x[..., None], p[w], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")).mean(-1))
        elif kind == "associative":
            w = self.param(WIDTH)
            self.add(f"associative scan of sigmoid({w})", lambda p, x, k, t: lax.associative_scan(
                lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (jnp.broadcast_to(jax.nn.sigmoid(p[w]), x.shape), x), axis=1)[1])
        elif kind == "experts":
            g, w = self.param(WIDTH, 3), self.param(3, WIDTH, WIDTH)

            def experts(p, x, k, t):
                values, chosen = lax.top_k(x @ p[g], 2)
                each = jnp.take_along_axis(jnp.einsum("bi,eij->bej", x, p[w]), chosen[..., None], 1)
                return (jnp.tanh(each) * jax.nn.softmax(values)[..., None]).sum(1)
            self.add(f"2 of 3 experts {w} by {g}", experts)
        elif kind == "gru":
            w, u = self.param(WIDTH, 2 * WIDTH), self.param(WIDTH, 2 * WIDTH)

            def cell(p, h, x):
                gates = jax.nn.sigmoid(x @ p[w] + h @ p[u])
                h = gates[:, :WIDTH] * h + (1 - gates[:, :WIDTH]) * jnp.tanh(gates[:, WIDTH:] * x)
                return h, h
            self.add(f"gru of {w}, {u} backwards", lambda p, x, k, t: lax.scan(lambda h, s: cell(p, h, s), x, jnp.stack([x, x[:, ::-1], 0.5 * x]), reverse=True)[1].mean(0))
        elif kind == "nested":
            w, f, g = self.param(WIDTH), self.choose(ROWWISE), self.choose(UNARY)
            self.add(f"remat of a scan of a cond of {f}, {g} by {w}", lambda p, x, k, t: jax.checkpoint(lambda x, w: lax.scan(
                lambda h, s: (lax.cond(s > 0.5, lambda h: jnp.tanh(ROWWISE[f](h) * w), lambda h: jnp.tanh(UNARY[g](h) + w), h), None), x,
                jnp.array([0.2, 0.9, 0.4]))[0])(x, p[w]))
        elif kind == "custom":
            w = self.param(WIDTH)
            self.add(f"custom gradient of x * {w}", lambda p, x, k, t: clipped(x * p[w]))
        elif kind == "microscan":
            w = self.param(WIDTH, WIDTH)
            self.add(f"vmap of a scan over rows of {w}", lambda p, x, k, t: jax.vmap(lambda row: lax.scan(lambda h, v: (jnp.sin(h * v + row), h.sum()), row, p[w])[0])(x))
        elif kind == "types":
            w = self.param(WIDTH)
            self.add(f"integers, booleans and float16 by {w}", lambda p, x, k, t: x * p[w] + jnp.where((t.sum(1, keepdims=True) % 3 == 1) & (x > 0), x, 0)
                     + 0.1 * (t.astype(jnp.int8) << 1).max(1, keepdims=True).astype(jnp.float32) * lax.stop_gradient((x > p[w]).astype(jnp.float16)).astype(jnp.float32))
        else:
            w = self.param(WIDTH)
            self.add(f"scatter {w}", lambda p, x, k, t: x.at[:, jnp.array([0, 2])].add(p[w][:2]).at[:, 1].set(x[:, 3] * p[w][3]))

    def make_optimizer(self):
        rate = optax.exponential_decay(0.05, 3, 0.9) if self.random.randint(2) else 0.05
        options = {"sgd": optax.sgd(rate), "momentum": optax.sgd(rate, momentum=0.9), "nesterov": optax.sgd(rate, momentum=0.9, nesterov=True),
                   "adam": optax.adam(rate, eps=1e-2), "adamw": optax.adamw(rate, eps=1e-2), "adagrad": optax.adagrad(rate), "lion-like": optax.rmsprop(rate, eps=1e-2),
                   "lamb": optax.lamb(rate, eps=1e-2), "ema": optax.chain(optax.ema(0.9), optax.sgd(rate)),
                   "multi": optax.MultiSteps(optax.adam(rate, eps=1e-2), 2), "nadam": optax.nadam(rate, eps=1e-2), "adabelief": optax.adabelief(rate, eps=1e-2),
                   "adamax": optax.adamax(rate, eps=1e-2), "radam": optax.radam(rate, eps=1e-2), "yogi": optax.yogi(rate, eps=1e-2),
                   "novograd": optax.novograd(rate, eps=1e-2), "lars": optax.lars(rate), "adafactor": optax.adafactor(rate, min_dim_size_to_factor=2),
                   "centralized": optax.chain(optax.centralize(), optax.adam(rate, eps=1e-2)), "noisy": optax.chain(optax.add_noise(0.01, 0.5, 7), optax.sgd(rate)),
                   "trace": optax.chain(optax.trace(0.8), optax.add_decayed_weights(0.05), optax.scale_by_learning_rate(rate))}
        name = self.choose(options)
        optimizer = options[name]
        if self.random.randint(3) == 0:
            name, optimizer = "clipped " + name, optax.chain(optax.clip_by_global_norm(0.5), optimizer)
            optimizer = optax.GradientTransformation(optimizer.init, optimizer.update)
        return optimizer, name + ("" if rate == 0.05 else " with a schedule")

    def loss(self, params, batch, key):
        x = batch["x"]
        for stage in self.stages:
            x = stage(params, x, key, batch["t"])
        # No mean, which is zero, up to rounding, where rows are centered.
        difference = x @ jnp.array([0.4, -0.3, 0.5, 0.2]) - batch["y"]
        if self.reduction == "sum":
            return jnp.sum(difference**2) / 8
        return jnp.mean(optax.huber_loss(difference) if self.reduction == "huber" else difference**2)

    def make_step(self):
        def step(state, batch):
            key, following = jax.random.split(state["key"]) if self.draws else (None, None)
            value, gradients = jax.value_and_grad(self.loss)(state["params"], batch, key)
            updates, opt = self.optimizer.update(gradients, state["opt"], state["params"])
            new = {"params": optax.apply_updates(state["params"], updates), "opt": opt}
            return ({**new, "key": following} if self.draws else new), value

        params = self.params or {"p0": jnp.zeros(WIDTH)}
        state = {"params": params, "opt": self.optimizer.init(params)}
        return step, {**state, "key": jax.random.key(3)} if self.draws else state


def check(seed, folder):
    """What is wrong, and the program as text."""
    program = Program(seed)
    if not program.params:
        program.add_stage()
    if not program.params:
        return "", program
    step, state = program.make_step()
    random = np.random.RandomState(seed)
    data = {"x": random.randn(ROWS, WIDTH).astype("f"), "y": random.randn(ROWS).astype("f"), "t": random.randint(0, 6, (ROWS, 3)).astype("i")}
    compiled, expected, losses = jax.jit(step), state, []
    for number in range(STEPS):
        begin = number * BATCH % ROWS
        expected, value = compiled(expected, {name: array[begin:begin + BATCH] for name, array in data.items()})
        losses.append(float(value))
    if not np.isfinite(losses).all() or np.abs(losses).max() > 1e3:
        return "", program
    strategy, replicas, processes = program.run
    try:
        exported = distc.jax.export(step, state, data, folder / "step.mlir")
        result = distc.compile(exported, strategy=strategy, replicas=replicas, batch=BATCH, processes=processes).train(data, STEPS)
    except (distc.CompileError, distc.RunError) as error:
        return str(error), program
    if not np.allclose(result.losses, losses, rtol=1e-4, atol=1e-4):
        return f"losses {result.losses}, not {losses}", program
    for name, value in result.state["params"].items():
        if not np.allclose(value, expected["params"][name], rtol=1e-3, atol=1e-3):
            return f"'{name}' is {value}, not {expected['params'][name]}", program
    return "", program


if __name__ == "__main__":
    check_programs(check, Program, count=6)
