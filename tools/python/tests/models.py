"""Training steps of a few kinds, with data: each is a function of an optimizer that gives (step, state, data)."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

KEYS = jax.random.split(jax.random.key(0), 8)


def draw(number, *shape, scale=0.3):
    return scale * jax.random.normal(KEYS[number], shape)


def make_step(loss, optimizer, params):
    state = {"params": params, "opt": optimizer.init(params)}

    def step(state, batch):
        value, gradients = jax.value_and_grad(loss)(state["params"], batch)
        updates, opt = optimizer.update(gradients, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, value

    return step, state


def cross_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def mlp(optimizer):
    def loss(p, batch):
        hidden = jnp.tanh(batch["x"] @ p["w1"] + p["b1"])
        return cross_entropy(hidden @ p["w2"] + p["b2"], batch["y"])

    params = dict(w1=draw(0, 8, 16), b1=jnp.zeros(16), w2=draw(1, 16, 4), b2=jnp.zeros(4))
    random = np.random.RandomState(0)
    data = dict(x=random.randn(24, 8).astype("f"), y=random.randint(0, 4, 24).astype("i"))
    return *make_step(loss, optimizer, params), data


def convolutional(optimizer):
    def convolve(x, kernel, strides):
        return lax.conv_general_dilated(x, kernel, strides, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def loss(p, batch):
        h = jax.nn.relu(convolve(batch["x"], p["k1"], (1, 1)) + p["b1"])
        h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        h = jax.nn.relu(convolve(h, p["k2"], (2, 2)))
        h = lax.reduce_window(h, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME") / 4
        return cross_entropy(h.mean((1, 2)) @ p["w"], batch["y"])

    params = dict(k1=draw(0, 3, 3, 1, 4), b1=jnp.zeros(4), k2=draw(1, 3, 3, 4, 8), w=draw(2, 8, 10))
    random = np.random.RandomState(0)
    data = dict(x=random.randn(24, 8, 8, 1).astype("f"), y=random.randint(0, 10, 24).astype("i"))
    return *make_step(loss, optimizer, params), data


def transformer(optimizer):
    words, length, width, heads = 11, 6, 8, 2

    def normalize(x, scale):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / jnp.sqrt(variance + 1e-5) * scale

    def loss(p, batch):
        tokens = batch["tokens"]
        x = p["words"][tokens[:, :-1]] + p["places"]
        q, k, v = (part.reshape(-1, length, heads, width // heads).transpose(0, 2, 1, 3)
                   for part in jnp.split(normalize(x, p["scale1"]) @ p["qkv"], 3, -1))
        scores = jnp.einsum("bhtd,bhsd->bhts", q, k) / jnp.sqrt(width // heads)
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
        mixed = jnp.einsum("bhts,bhsd->bhtd", jax.nn.softmax(scores, -1), v)
        x = x + mixed.transpose(0, 2, 1, 3).reshape(-1, length, width) @ p["out"]
        x = x + jax.nn.gelu(normalize(x, p["scale2"]) @ p["up"]) @ p["down"]
        return cross_entropy(x @ p["words"].T, tokens[:, 1:])

    params = dict(words=draw(0, words, width), places=draw(1, length, width), scale1=jnp.ones(width),
                  scale2=jnp.ones(width), qkv=draw(2, width, 3 * width), out=draw(3, width, width),
                  up=draw(4, width, 4 * width), down=draw(5, 4 * width, width))
    data = dict(tokens=np.random.RandomState(0).randint(0, words, (24, length + 1)).astype("i"))
    return *make_step(loss, optimizer, params), data


def recurrent(optimizer):
    def loss(p, batch):
        def cell(h, x):
            h = jnp.tanh(x @ p["w"] + h @ p["u"])
            return h, h

        x = batch["x"]
        _, outputs = lax.scan(cell, jnp.zeros((x.shape[0], 4)), x.transpose(1, 0, 2))
        return ((outputs.sum(0) - batch["y"]) ** 2).mean()

    random = np.random.RandomState(0)
    data = dict(x=random.randn(24, 5, 3).astype("f"), y=random.randn(24, 4).astype("f"))
    return *make_step(loss, optimizer, dict(w=draw(0, 3, 4), u=draw(1, 4, 4))), data


def adamw():
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 5, 20)
    return optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(schedule))


def train_here(step, state, data, batch, steps):
    """What JAX computes itself: losses, and the last state."""
    compiled, losses = jax.jit(step), []
    count = len(next(iter(data.values())))
    for number in range(steps):
        begin = number * batch % count
        state, loss = compiled(state, {name: array[begin:begin + batch] for name, array in data.items()})
        losses.append(float(loss))
    return np.array(losses), state
