"""Training graphs with conditions, loops, lists and recurrent layers, of both generations of TensorFlow's control flow: losses and variables
are TensorFlow's, with one replica and with several.

  control_flow_tensorflow.py [CASE...] [--seed S] [--random N]
"""
import argparse
import itertools
import random

import numpy as np

from support import DISTC, HAS_EMULATED_GPU, Checks, Folder, need_tensorflow, need_tools, read_by, run, trained

BATCH, STEPS, TIME, SIZE = 8, 3, 5, 3
CASES = {}


def case(*generations, replicas=(1, 2), refused=None, targets=("cpu",), flags=()):
    """`generations`: 2 is If and While, 1 is Switch and Merge. `refused`: what the error says, where it is one. `flags`: further ones of the compiler."""
    def add(function):
        for generation in generations:
            CASES[f"{function.__name__}-v{generation}"] = (function, generation, replicas, refused, targets, flags)
        return function
    return add


EVERYWHERE = ("cpu", *(["cuda:emulated"] * HAS_EMULATED_GPU))


class Inputs:
    """Feeds x [b, TIME, SIZE], y [b], n [b] (lengths, 1 to TIME), scalar p; variables v [SIZE], m [SIZE, SIZE]."""

    def __init__(self, tf, tf2, seed):
        self.tf, self.tf2 = tf, tf2
        numbers = np.random.default_rng(seed)
        self.x = tf.placeholder(tf.float32, [None, TIME, SIZE], "x")
        self.y = tf.placeholder(tf.float32, [None], "y")
        self.n = tf.placeholder(tf.int32, [None], "n")
        self.p = tf.placeholder(tf.float32, [], "p")
        make = lambda name, *shape: tf.get_variable(name, initializer=numbers.normal(size=shape).astype(np.float32) * 0.5, use_resource=True)
        self.v, self.m = make("v", SIZE), make("m", SIZE, SIZE)
        self.seed = seed
        # Of these the training step uses nothing; it waits for them.
        self.waited_for = []

    def loss_of(self, rows):
        """The mean over examples of what rows [b, SIZE] are worth."""
        return self.tf.reduce_mean(self.tf.square(self.tf.reduce_sum(rows * self.v, -1) - self.y))

    def data(self):
        numbers = np.random.default_rng(self.seed + 1)
        rows = BATCH * STEPS
        return {"x": numbers.normal(size=(rows, TIME, SIZE)).astype(np.float32), "y": numbers.normal(size=rows).astype(np.float32),
                "n": numbers.integers(1, TIME, rows).astype(np.int32)}, [np.float32(value) for value in (1.5, -0.5, 0.25)]


# ---- Known when it is compiled --------------------------------------------------------------------------------------


@case(1, 2)
def loop_of_constant_length(i):
    tf = i.tf
    _, h = tf.while_loop(lambda k, h: k < 3, lambda k, h: (k + 1, tf.tanh(tf.matmul(h, i.m))), [tf.constant(0), i.x[:, 0]])
    return i.loss_of(h)


@case(1, 2)
def loop_over_time_with_arrays(i):
    tf = i.tf
    steps = tf.shape(i.x)[1]
    inputs = tf.TensorArray(tf.float32, steps).unstack(tf.transpose(i.x, [1, 0, 2]))
    outputs = tf.TensorArray(tf.float32, steps)

    def body(k, h, out):
        h = tf.tanh(tf.matmul(h, i.m) + inputs.read(k))
        return k + 1, h, out.write(k, h)
    _, _, outputs = tf.while_loop(lambda k, h, out: k < steps, body, [0, tf.zeros_like(i.x[:, 0]), outputs])
    return i.loss_of(tf.reduce_mean(outputs.stack(), 0))


@case(1, 2)
def nested_loops(i):
    tf = i.tf

    def outer(k, h):
        _, g = tf.while_loop(lambda j, g: j < 2, lambda j, g: (j + 1, tf.tanh(tf.matmul(g, i.m)) + i.v), [tf.constant(0), h])
        return k + 1, g + i.x[:, 1]
    _, h = tf.while_loop(lambda k, h: k < 3, outer, [tf.constant(0), i.x[:, 0]])
    return i.loss_of(h)


@case(1, 2)
def condition_on_a_counter(i):
    tf = i.tf

    def body(k, h):
        return k + 1, tf.cond(tf.equal(k % 2, 0), lambda: tf.tanh(tf.matmul(h, i.m)), lambda: h * i.v)
    _, h = tf.while_loop(lambda k, h: tf.logical_and(k < 4, k < 10), body, [tf.constant(0), i.x[:, 0]])
    return i.loss_of(h)


@case(1, 2)
def scan(i):
    tf = i.tf
    states = tf.scan(lambda h, x: tf.tanh(tf.matmul(h, i.m) + x), tf.transpose(i.x, [1, 0, 2]), initializer=tf.zeros_like(i.x[:, 0]))
    return i.loss_of(states[-1] + states[2])


@case(1, 2)
def scan_over_trained_rows(i):
    """Elements that the loop reads have a gradient."""
    tf = i.tf
    states = tf.scan(lambda h, x: tf.tanh(tf.matmul(h, i.m) + x), tf.transpose(i.x * i.v, [1, 0, 2]))
    return i.loss_of(states[-1])


@case(1, 2)
def map_over_time(i):
    tf = i.tf
    return i.loss_of(tf.reduce_sum(tf.map_fn(lambda x: tf.matmul(x, i.m) * i.v, tf.transpose(i.x, [1, 0, 2])), 0))


@case(1, 2)
def map_over_the_batch(i):
    return i.loss_of(i.tf.map_fn(lambda x: x[0] * i.v, i.x))


@case(2)
def switch_case(i):
    tf = i.tf
    return i.loss_of(tf.switch_case(tf.constant(1), [lambda: i.x[:, 0], lambda: tf.matmul(i.x[:, 1], i.m), lambda: i.x[:, 2]]))


@case(1, 2)
def gradient_of_a_gradient(i):
    tf = i.tf
    _, h = tf.while_loop(lambda k, h: k < 3, lambda k, h: (k + 1, tf.tanh(h * i.v)), [tf.constant(0), i.x[:, 0]])
    loss = i.loss_of(h)
    if i.generation == 1:
        return loss
    return loss + tf.reduce_sum(tf.square(tf.gradients(tf.reduce_sum(i.v * i.v * i.v), i.v)[0]))


# ---- Layers ---------------------------------------------------------------------------------------------------------


def keras():
    import tf_keras
    return tf_keras


def recurrent(i, layer, **options):
    made = getattr(keras().layers, layer)(SIZE, kernel_initializer=keras().initializers.GlorotUniform(3), recurrent_initializer=keras().initializers.
                                          GlorotUniform(5), **options)
    return made


@case(2)
def keras_lstm(i):
    return i.loss_of(recurrent(i, "LSTM")(i.x))


@case(2)
def keras_gru(i):
    return i.loss_of(recurrent(i, "GRU")(i.x))


@case(2)
def keras_gru_of_version_1(i):
    return i.loss_of(i.tf.reduce_mean(recurrent(i, "GRU", reset_after=False, return_sequences=True)(i.x), 1))


@case(2)
def keras_simple_rnn_unrolled(i):
    return i.loss_of(recurrent(i, "SimpleRNN", unroll=True)(i.x))


@case(2)
def keras_lstm_with_mask(i):
    return i.loss_of(recurrent(i, "LSTM")(i.x, mask=i.tf.sequence_mask(i.n, TIME)))


@case(2)
def keras_gru_backwards_with_mask(i):
    return i.loss_of(recurrent(i, "GRU", go_backwards=True)(i.x, mask=i.tf.sequence_mask(i.n, TIME)))


@case(2)
def keras_bidirectional(i):
    layer = keras().layers.Bidirectional(recurrent(i, "LSTM"), merge_mode="sum")
    return i.loss_of(layer(i.x))


@case(1, 2)
def dynamic_rnn(i):
    tf = i.tf
    cell = keras().layers.SimpleRNNCell(SIZE, kernel_initializer=keras().initializers.GlorotUniform(3), recurrent_initializer=keras().initializers.
                                        GlorotUniform(5))
    outputs, _ = tf.nn.dynamic_rnn(cell, i.x, dtype=tf.float32)
    return i.loss_of(tf.reduce_mean(outputs, 1))


@case(1, 2, replicas=(1,))
def dynamic_rnn_with_lengths(i):
    tf = i.tf
    cell = keras().layers.SimpleRNNCell(SIZE, kernel_initializer=keras().initializers.GlorotUniform(3), recurrent_initializer=keras().initializers.
                                        GlorotUniform(5))
    outputs, state = tf.nn.dynamic_rnn(cell, i.x, sequence_length=i.n, dtype=tf.float32)
    return i.loss_of(tf.reduce_mean(outputs, 1) + (state[0] if isinstance(state, (list, tuple)) else state))


@case(1, 2)
def raw_rnn_of_a_known_length(i):
    """A decoder that is fed its own outputs: all examples end in the same step, and finished ones are looked for among all."""
    tf = i.tf
    cell = keras().layers.SimpleRNNCell(SIZE, kernel_initializer=keras().initializers.GlorotUniform(3), recurrent_initializer=keras().initializers.
                                        GlorotUniform(5))
    rows = tf.shape(i.x)[0]

    def step(time, output, state, _):
        if output is None:
            return tf.zeros([rows], tf.bool), i.x[:, 0], tf.tanh(i.x[:, 1]), i.v, None
        return tf.fill([rows], time >= 3), tf.matmul(output, i.m), state, output * i.v, None
    outputs, state, _ = tf.nn.raw_rnn(cell, step)
    return i.loss_of(tf.reduce_mean(outputs.stack(), 0) + (state[0] if isinstance(state, (list, tuple)) else state))


@case(1, 2)
def raw_rnn_with_lengths(i):
    """As TensorFlow's documentation has it: the next element is taken where not all sequences have ended."""
    tf = i.tf
    cell = keras().layers.SimpleRNNCell(SIZE, kernel_initializer=keras().initializers.GlorotUniform(3), recurrent_initializer=keras().initializers.
                                        GlorotUniform(5))
    elements = tf.TensorArray(tf.float32, TIME).unstack(tf.transpose(i.x, [1, 0, 2]))

    def step(time, output, state, _):
        ended = time >= i.n
        read = tf.cond(tf.reduce_all(ended), lambda: tf.zeros_like(i.x[:, 0]), lambda: elements.read(time))
        return ended, read, tf.tanh(i.x[:, 1]) if output is None else state, i.v if output is None else output * i.v, None
    _, state, _ = tf.nn.raw_rnn(cell, step)
    return i.loss_of(state[0] if isinstance(state, (list, tuple)) else state)


@case(1, 2)
def raw_rnn_over_trained_elements(i):
    """Which element a step's gradient is added to data say: the step may not have run."""
    tf = i.tf
    cell = keras().layers.SimpleRNNCell(SIZE, kernel_initializer=keras().initializers.GlorotUniform(3), recurrent_initializer=keras().initializers.
                                        GlorotUniform(5))
    elements = tf.TensorArray(tf.float32, TIME).unstack(tf.transpose(i.x * i.v, [1, 0, 2]))

    def step(time, output, state, _):
        ended = time >= i.n
        read = tf.cond(tf.reduce_all(ended), lambda: tf.zeros_like(i.x[:, 0]), lambda: elements.read(time))
        return ended, read, tf.tanh(i.x[:, 1]) if output is None else state, i.v if output is None else output * i.v, None
    _, state, _ = tf.nn.raw_rnn(cell, step)
    return i.loss_of(state[0] if isinstance(state, (list, tuple)) else state)


@case(1, 2)
def array_that_a_branch_reads(i):
    """Its elements have a gradient; of the branch that is not taken it is zeros as large as what stands for the array."""
    tf = i.tf
    elements = tf.TensorArray(tf.float32, TIME, clear_after_read=False).unstack(tf.transpose(i.x * i.v, [1, 0, 2]))
    read = tf.cond(tf.reduce_any(i.n > 2), lambda: elements.read(0) + elements.read(2), lambda: tf.zeros_like(i.x[:, 0]))
    return i.loss_of(read)


@case(1, 2)
def dropout_with_a_seed_in_a_loop(i):
    """A node's generator goes on from iteration to iteration, and from step to step."""
    tf = i.tf
    masks = lambda rows: tf.cast(tf.random_uniform(tf.shape(rows), seed=7) < 0.7, tf.float32)
    _, h = tf.while_loop(lambda t, h: t < TIME, lambda t, h: (t + 1, tf.tanh(tf.matmul(h, i.m) + i.x[:, t]) * masks(h)),
                         [0, tf.zeros_like(i.x[:, 0])], parallel_iterations=1)
    return i.loss_of(h)


@case(1, 2)
def dropout_with_a_seed_in_a_loop_that_data_end(i):
    """Data say that it runs as often as it can."""
    tf = i.tf
    masks = lambda rows: tf.cast(tf.random_uniform(tf.shape(rows), seed=7) < 0.7, tf.float32)
    _, h = tf.while_loop(lambda t, h: t < tf.minimum(TIME, tf.reduce_max(i.n) + TIME - 1), lambda t, h: (t + 1, tf.tanh(tf.matmul(h, i.m)) * masks(h)),
                         (0, i.x[:, 0]), maximum_iterations=TIME, parallel_iterations=1)
    return i.loss_of(h)


@case(1, 2, refused="draws random numbers with a seed in a loop")
def dropout_with_a_seed_under_a_condition_in_a_loop(i):
    tf = i.tf
    noise = lambda h: tf.cond(tf.reduce_sum(h) > 0, lambda: h + tf.random_uniform(tf.shape(h), seed=7), lambda: h)
    _, h = tf.while_loop(lambda t, h: t < TIME, lambda t, h: (t + 1, tf.tanh(tf.matmul(noise(h), i.m))), [0, i.x[:, 0]], parallel_iterations=1)
    return i.loss_of(h)


@case(1, 2, refused="draws random numbers with a seed in a loop")
def classes_with_a_seed_in_a_loop(i):
    tf = i.tf
    picked = lambda h: tf.cast(tf.multinomial(h, 1, seed=7), tf.float32)
    _, h = tf.while_loop(lambda t, h: t < TIME, lambda t, h: (t + 1, tf.tanh(tf.matmul(h, i.m)) + picked(h)), [0, i.x[:, 0]])
    return i.loss_of(h)


@case(1, 2, replicas=(1, 2, 4), targets=EVERYWHERE)
def scan_over_examples(i):
    """Each example's state is made of the one before it: every replica runs the whole scan, and takes its rows."""
    tf = i.tf
    states = tf.scan(lambda h, x: tf.tanh(tf.linalg.matvec(i.m, h) + x), i.x[:, 0], initializer=tf.zeros([SIZE]))
    return i.loss_of(states)


@case(1, 2, replicas=(1, 2, 4))
def scans_over_examples_of_two_states(i):
    """A mean that moves along the batch, and how many of its examples lie above it; what is left behind the last."""
    tf = i.tf
    rows = tf.tanh(tf.matmul(i.x[:, 0], i.m))

    def step(state, row):
        mean = 0.8 * state[0] + 0.2 * row
        return mean, state[1] + tf.cast(row > mean, tf.float32)
    means, counts = tf.scan(step, rows, initializer=(tf.zeros([SIZE]), tf.zeros([SIZE])))
    return i.loss_of(rows - means) + tf.reduce_mean(counts[-1] * tf.square(means[-1]))


@case(1, 2, replicas=(1, 2, 4))
def fold_over_examples(i):
    tf = i.tf
    folded = tf.foldl(lambda h, x: tf.tanh(0.5 * h + x * i.v), i.x[:, 0], initializer=tf.zeros([SIZE]))
    return i.loss_of(i.x[:, 1]) + tf.reduce_sum(tf.square(folded))


@case(1, 2, replicas=(1, 2, 4))
def array_of_examples_that_see_the_one_before(i):
    """Elements by their numbers, the last ones first; nothing is taken of the states but rows of a batch."""
    tf = i.tf
    count = tf.shape(i.x)[0]

    def body(k, h, out):
        h = 0.5 * h + i.x[count - 1 - k, 0] * i.v
        return k + 1, h, out.write(count - 1 - k, h)
    out = tf.TensorArray(tf.float32, count, element_shape=[SIZE])
    _, _, out = tf.while_loop(lambda k, h, out: k < count, body, [0, tf.zeros([SIZE]), out])
    return i.loss_of(out.stack())


@case(1, 2)
def dynamic_rnn_with_lengths_of_computed_rows(i):
    """The gradient of what the loop reads is a list, which is zero where the loop need not run."""
    tf = i.tf
    cell = keras().layers.SimpleRNNCell(SIZE, kernel_initializer=keras().initializers.GlorotUniform(3), recurrent_initializer=keras().initializers.
                                        GlorotUniform(5))
    _, state = tf.nn.dynamic_rnn(cell, tf.tensordot(i.x, i.m, 1), sequence_length=i.n, dtype=tf.float32)
    return i.loss_of(state[0] if isinstance(state, (list, tuple)) else state)


def up_to_the_longest(i, take):
    """A loop that the batch ends, whose bound is what it takes a time step of in each iteration."""
    tf = i.tf

    def step(t, h):
        there = tf.expand_dims(tf.cast(t < i.n, tf.float32), 1)
        return t + 1, there * tf.tanh(tf.matmul(h, i.m) + take(t)) + (1.0 - there) * h
    _, h = tf.while_loop(lambda t, _: t < tf.reduce_max(i.n), step, [tf.constant(0), tf.zeros_like(i.x[:, 0])])
    return i.loss_of(h)


@case(1, 2)
def loop_up_to_the_longest(i):
    return up_to_the_longest(i, lambda t: i.x[:, t])


@case(1, 2)
def loop_up_to_the_longest_over_time_steps(i):
    steps = i.tf.transpose(i.tf.tensordot(i.x, i.m, 1), [1, 0, 2])
    return up_to_the_longest(i, lambda t: steps[t])


@case(1, 2)
def loop_up_to_the_longest_over_gathered_steps(i):
    return up_to_the_longest(i, lambda t: i.tf.gather(i.x, t, axis=1) * i.v)


@case(1, 2)
def loop_up_to_the_longest_over_an_array(i):
    steps = i.tf.TensorArray(i.tf.float32, size=TIME, clear_after_read=False).unstack(i.tf.transpose(i.x, [1, 0, 2]))
    return up_to_the_longest(i, steps.read)


@case(2)
def autograph_up_to_the_longest(i):
    tf = i.tf

    @i.tf2.function
    def encode(x, n, m):
        h = tf.zeros_like(x[:, 0])
        for t in tf.range(tf.reduce_max(n)):
            h = i.tf2.where(tf.expand_dims(t < n, 1), tf.tanh(tf.matmul(h, m) + x[:, t]), h)
        return h
    return i.loss_of(encode(i.x, i.n, i.m))


@case(1, 2, refused="is a loop that distc knows no bound for")
def loop_up_to_the_longest_of_nothing(i):
    return up_to_the_longest(i, lambda t: i.v)


@case(1, 2)
def learning_phase(i):
    tf = i.tf
    training = tf.placeholder_with_default(True, [], "training")
    h = tf.cond(training, lambda: tf.matmul(i.x[:, 0], i.m), lambda: i.x[:, 1])
    return i.loss_of(tf.cond(tf.logical_not(training), lambda: h * 2.0, lambda: h * i.v))


# ---- Known when it runs ---------------------------------------------------------------------------------------------


@case(1, 2)
def condition_on_a_feed(i):
    tf = i.tf
    h = tf.cond(i.p > 0, lambda: tf.tanh(tf.matmul(i.x[:, 0], i.m)), lambda: i.x[:, 1] * i.v)
    return i.loss_of(h)


@case(1, 2)
def condition_that_spares_errors(i):
    tf = i.tf
    index = tf.cast(i.p * 2.0, tf.int32)  # -1 and a division by zero where p is not positive
    h = tf.cond(i.p > 0, lambda: tf.gather(i.x, index, axis=1) * tf.cast(7 // (index + 1), tf.float32), lambda: i.x[:, 1] * i.v)
    return i.loss_of(h)


@case(1, 2)
def conditions_in_conditions(i):
    tf = i.tf
    h = tf.cond(i.p > 0, lambda: tf.cond(i.p > 1, lambda: tf.tanh(tf.matmul(i.x[:, 0], i.m)), lambda: i.x[:, 2]), lambda: i.x[:, 1] * i.v)
    return i.loss_of(h)


@case(1, 2)
def condition_with_an_assignment(i):
    tf = i.tf
    count = tf.get_variable("count", initializer=np.float32(0), use_resource=True)
    total = tf.get_variable("total", initializer=np.float32(0), use_resource=True)

    def counted():
        with tf.control_dependencies([count.assign_add(2.0), total.assign(i.p * 3.0)]):
            return tf.identity(i.x[:, 0] * 2.0)
    return i.loss_of(tf.cond(i.p > 0, counted, lambda: i.x[:, 1] * i.v))


@case(1, 2)
def condition_with_an_update(i):
    tf = i.tf
    weight = tf.get_variable("weight", initializer=np.float32(1), use_resource=True)
    slot = tf.get_variable("slot", initializer=np.float32(0), use_resource=True)

    def updated():
        with tf.control_dependencies([tf.raw_ops.ResourceApplyMomentum(var=weight.handle, accum=slot.handle, lr=0.1, grad=i.p, momentum=0.9)]):
            return tf.identity(i.x[:, 0] * 2.0)
    return i.loss_of(tf.cond(i.p > 0, updated, lambda: i.x[:, 1] * i.v))


@case(1, 2)
def batch_normalization_in_a_phase(i):
    """Each branch leaves the other's gradient nothing but zeros."""
    tf = i.tf
    image = tf.reshape(i.x, [-1, TIME, SIZE, 1]) * tf.ones([2])
    scale, offset = (tf.get_variable(name, initializer=np.float32([1.0, 0.5]), use_resource=True) for name in ("scale", "offset"))
    normalized = lambda **statistics: tf.nn.fused_batch_norm(image, scale, offset, epsilon=1e-2, **statistics)[0]
    h = tf.cond(i.p > 0, lambda: normalized(is_training=True),
                lambda: normalized(mean=tf.zeros([2]), variance=tf.ones([2]), is_training=False))
    return i.loss_of(tf.reduce_mean(tf.tanh(h), [1, 3]))


@case(2)
def case_on_a_feed(i):
    tf = i.tf
    index = tf.cast(tf.round(i.p * 2.0), tf.int32)
    return i.loss_of(tf.switch_case(index, [lambda: i.x[:, 0] * i.v, lambda: tf.matmul(i.x[:, 1], i.m), lambda: i.x[:, 2]]))


@case(1, 2)
def loop_that_a_feed_ends(i):
    tf = i.tf

    def body(k, h):
        return k + 1, tf.tanh(tf.matmul(h, i.m)) + i.x[:, 0]
    count, h = tf.while_loop(lambda k, h: tf.logical_and(k < 4, tf.cast(k, tf.float32) < i.p * 2.0), body, [tf.constant(0), i.x[:, 1]])
    return i.loss_of(h) + 0.0 * tf.cast(count, tf.float32)


@case(1, 2)
def loop_with_maximum_iterations(i):
    tf = i.tf
    _, h = tf.while_loop(lambda s, h: s > 0.3, lambda s, h: [s * 0.5, tf.tanh(h * i.v) + i.x[:, 0]], [i.p, i.x[:, 1]], maximum_iterations=6)
    return i.loss_of(h)


@case(2)
def loop_of_a_function_to_the_longest(i):
    """The gradient is that of a call: the number of iterations comes back from it."""
    tf, tf2 = i.tf, i.tf2

    @tf2.function(autograph=False)
    def run(x, n):
        longest = tf.reduce_max(n)
        _, h = tf.while_loop(lambda k, h: k < longest, lambda k, h: (k + 1, tf2.where((k < n)[:, None], tf.tanh(tf.matmul(h, i.m) + x[:, k]), h)),
                             [0, tf.zeros_like(x[:, 0])])
        return h
    return i.loss_of(run(i.x * i.v, i.n))


@case(1, 2)
def loop_to_the_longest_by_steps_of_two(i):
    tf = i.tf
    longest, first = tf.reduce_max(i.n), tf.reduce_min(i.n)
    inputs = tf.transpose(i.x, [1, 0, 2])
    _, _, h = tf.while_loop(lambda k, j, h: tf.logical_and(k < longest, j >= 0),
                            lambda k, j, h: (k + 2, j + first, tf.tanh(tf.matmul(h, i.m) + tf.gather(inputs, k))), [0, 0, tf.zeros_like(i.x[:, 0])])
    return i.loss_of(h)


@case(2)
def loop_by_python_conditions(i):
    """`a and b` of AutoGraph is a condition that gives a where that is false."""
    tf = i.tf

    def goes_on(k, h):
        far = tf.reduce_mean(tf.square(h)) > 0.05
        return tf.cond(far, lambda: k < 4, lambda: far)
    _, h = tf.while_loop(goes_on, lambda k, h: (k + 1, 0.8 * tf.tanh(tf.matmul(h, i.m))), [tf.constant(0), i.x[:, 0]])
    return i.loss_of(h)


@case(2)
def loop_that_a_feed_ends_with_arrays(i):
    tf = i.tf
    outputs = tf.TensorArray(tf.float32, TIME)

    def body(k, h, out):
        h = tf.tanh(tf.matmul(h, i.m)) + i.x[:, 0]
        return k + 1, h, out.write(k, h)
    most = tf.minimum(tf.maximum(tf.cast(i.p * 2.0, tf.int32), 0) + 1, TIME)
    _, h, outputs = tf.while_loop(lambda k, h, out: k < most, body, [0, i.x[:, 1], outputs])
    return i.loss_of(h + outputs.read(0) * tf.cast(most > 0, tf.float32))


@case(2)
def condition_in_a_loop_on_a_feed(i):
    tf = i.tf

    def body(k, h):
        return k + 1, tf.cond(i.p * tf.cast(k, tf.float32) > 1.0, lambda: tf.tanh(tf.matmul(h, i.m)), lambda: h * i.v + i.x[:, 0])
    _, h = tf.while_loop(lambda k, h: k < 3, body, [tf.constant(0), i.x[:, 1]])
    return i.loss_of(h)


@case(1, 2, replicas=(1,), refused="knows no bound for")
def loop_without_a_bound(i):
    tf = i.tf
    _, h = tf.while_loop(lambda s, h: s > 0.3, lambda s, h: (s * 0.5, tf.tanh(h * i.v)), [i.p, i.x[:, 1]])
    return i.loss_of(h)


@case(1, 2, replicas=(1, 2, 4), targets=EVERYWHERE)
def loop_that_data_end_behind_some_iterations(i):
    """At least three iterations, and then as many as data say."""
    tf = i.tf
    h = tf.stop_gradient(tf.matmul(i.x[:, 0], i.m))
    small, turns = tf.while_loop(lambda h, k: tf.logical_or(tf.reduce_mean(h * h) > 0.1, k < 3), lambda h, k: (h * 0.9, k + 1), [h, tf.constant(0)])
    return i.loss_of(tf.matmul(i.x[:, 1], i.m) - tf.stop_gradient(small) + 0.01 * tf.cast(turns, tf.float32))


@case(2, replicas=(1,), refused="knows no bound for")
def gradient_of_a_loop_that_data_end_behind_some_iterations(i):
    tf = i.tf
    _, _, h = tf.while_loop(lambda s, k, h: tf.logical_or(s > 0.3, k < 2), lambda s, k, h: (s * 0.5, k + 1, tf.tanh(h * i.v)), [i.p, tf.constant(0), i.x[:, 1]])
    return i.loss_of(h)


@case(1, 2, flags=("--max-iterations", 4))
def gradient_of_a_bounded_loop_that_data_end_behind_some_iterations(i):
    tf = i.tf
    _, _, h = tf.while_loop(lambda s, k, h: tf.logical_or(s > 0.3, k < 2), lambda s, k, h: (s * 0.5, k + 1, tf.tanh(h * i.v)), [i.p, tf.constant(0), i.x[:, 1]])
    return i.loss_of(h)


@case(1, 2, flags=("--max-iterations", 4))
def gradient_of_a_loop_that_the_command_bounds(i):
    tf = i.tf
    _, h = tf.while_loop(lambda s, h: s > 0.3, lambda s, h: (s * 0.5, tf.tanh(h * i.v)), [i.p, i.x[:, 1]])
    return i.loss_of(h)


@case(1, 2, replicas=(1, 2, 4), targets=EVERYWHERE)
def root_by_newton(i):
    """A loop that data end: nothing bounds it, and no gradient goes through it."""
    tf = i.tf
    square = 1.0 + tf.reduce_sum(tf.square(i.v))
    root = tf.while_loop(lambda z: tf.abs(z * z - square) > 1e-3, lambda z: 0.5 * (z + square / z), [tf.ones([])])
    return i.loss_of(tf.matmul(i.x[:, 0], i.m) * tf.stop_gradient(root))


@case(1, 2, replicas=(1, 2, 4), targets=EVERYWHERE)
def power_iteration(i):
    """Gradients could go through it, so that TensorFlow has it keep what each iteration computed; none does."""
    tf = i.tf
    a = tf.matmul(tf.stop_gradient(i.m), i.m, transpose_b=True) + tf.eye(SIZE)

    def body(v, norm, _):
        u = tf.matmul(a, v)
        return u / tf.norm(u), tf.norm(u), norm
    _, norm, _ = tf.while_loop(lambda v, norm, last: tf.abs(norm - last) > 1e-2, body, [tf.ones([SIZE, 1]), tf.ones([]), tf.zeros([])])
    return i.loss_of(tf.matmul(i.x[:, 0], i.m) / tf.stop_gradient(norm))


@case(1, 2, replicas=(1, 2, 4), targets=EVERYWHERE)
def until_the_whole_batch_is_small(i):
    """The condition is on all examples: they are gathered before."""
    tf = i.tf
    h = tf.stop_gradient(tf.matmul(i.x[:, 0], i.m)) * 3.0
    small, turns = tf.while_loop(lambda h, k: tf.reduce_mean(h * h) > 0.5, lambda h, k: (h * 0.9, k + 1.0), [h, tf.zeros([])])
    return i.loss_of(tf.matmul(i.x[:, 1], i.m) - tf.stop_gradient(small) + 0.01 * tf.stop_gradient(turns))


@case(2, replicas=(1, 2), targets=EVERYWHERE)
def loops_that_data_end_in_each_other(i):
    tf = i.tf

    def body(z, k):
        inner = tf.while_loop(lambda t: tf.reduce_max(t) > 1.0, lambda t: t * 0.7, [z * 3.0])
        return inner[0] if isinstance(inner, (list, tuple)) else inner, k + 1.0
    z, k = tf.while_loop(lambda z, k: 10.0 / (k + 1.0) + 0.0 * tf.reduce_sum(z) > 1.5, body, [tf.abs(tf.stop_gradient(i.v)), tf.zeros([])])
    return i.loss_of(tf.matmul(i.x[:, 0], i.m) * tf.stop_gradient(z) + 0.01 * tf.stop_gradient(k))


@case(2, replicas=(1, 2), targets=EVERYWHERE)
def loop_that_data_end_in_a_branch(i):
    """Where the branch is not taken it must not run for ever."""
    tf = i.tf
    grown = lambda: tf.while_loop(lambda z: z < 50.0, lambda z: z * (1.0 + tf.nn.relu(i.p)) + tf.nn.relu(i.p), [tf.ones([])])
    z = tf.cond(i.p > 0.0, lambda: tf.reduce_sum(grown()), lambda: 0.5 * tf.ones([]))
    return i.loss_of(tf.matmul(i.x[:, 0], i.m) * 0.1 * tf.stop_gradient(z))


@case(1, 2, replicas=(1,))
def condition_on_the_loss(i):
    tf = i.tf
    loss = i.loss_of(tf.matmul(i.x[:, 0], i.m))
    return tf.cond(loss > 1.0, lambda: loss * 0.5, lambda: tf.square(loss))


@case(1, 2)
def loop_behind_an_update(i):
    """Only the loop's counter waits for the update."""
    tf = i.tf
    count = tf.get_variable("count", initializer=0.0, trainable=False, use_resource=True)
    with tf.control_dependencies([count.assign_add(tf.reduce_mean(i.x))]):
        _, h = tf.while_loop(lambda k, h: k < 2, lambda k, h: (k + 1, tf.tanh(tf.matmul(h, i.m))), [tf.constant(0), i.x[:, 0]])
    return i.loss_of(h)


@case(1, 2)
def condition_behind_an_update(i):
    tf = i.tf
    count = tf.get_variable("count", initializer=0.0, trainable=False, use_resource=True)
    with tf.control_dependencies([count.assign_add(tf.reduce_mean(i.x))]):
        h = tf.cond(tf.constant(True), lambda: i.x[:, 0] * 2.0, lambda: i.x[:, 1])
    return i.loss_of(h)


@case(1)
def update_in_a_loop_that_nothing_needs(i):
    tf = i.tf
    count = tf.get_variable("count", initializer=0.0, trainable=False, use_resource=True)

    def body(k, h):
        count.assign_add(tf.reduce_mean(h))
        return k + 1, tf.tanh(tf.matmul(h, i.m))

    _, h = tf.while_loop(lambda k, h: k < 2, body, [tf.constant(0), i.x[:, 0]])
    return i.loss_of(h)


@case(1, 2)
def function_behind_updates_in_a_loop(i):
    """The call waits for the loop's result, and all that its body reads does."""
    tf = i.tf
    count = tf.get_variable("count", initializer=0.0, trainable=False, use_resource=True)

    def body(k, h):
        with tf.control_dependencies([count.assign_add(tf.reduce_mean(h))]):
            return k + 1, tf.tanh(tf.matmul(h, i.m))

    _, h = tf.while_loop(lambda k, h: k < 2, body, [tf.constant(0), i.x[:, 0]])
    with tf.control_dependencies([h]):
        counted = tf.function(lambda: count.read_value() * 0.5, autograph=False)()
    return i.loss_of(h * counted)


@case(1, 2)
def condition_that_is_waited_for(i):
    """Both branches give the same, after an assignment each; nothing takes it. The loss couples the examples of a batch."""
    tf = i.tf
    count = tf.get_variable("count", initializer=np.float32(0), use_resource=True)

    def counted(change):
        with tf.control_dependencies([count.assign_add(change)]):
            return tf.constant(0.0)
    h = tf.matmul(i.x[:, 0], i.m)
    loss = i.loss_of(h - tf.reduce_mean(h, 0))
    with tf.control_dependencies([loss]):
        i.waited_for.append(tf.cond(i.p > 0, lambda: counted(2.0), lambda: counted(-3.0)))
    return loss


@case(1)
def loop_that_copies_a_reference_variable(i):
    """An Identity of one is a read, in each iteration, also where an assignment takes it, or a condition gives one of two."""
    tf = i.tf
    count, copy, sum_ = (tf.get_variable(name, initializer=np.float32(1), use_resource=False, trainable=False) for name in ("count", "copy", "sum"))
    loss = i.loss_of(tf.matmul(i.x[:, 0], i.m))

    def body(k, total):
        with tf.control_dependencies([tf.assign(copy, count.read_value())]):
            added = tf.assign_add(count, 1.0)
        with tf.control_dependencies([added]):
            return k + 1, total + tf.cond(i.p * loss > 0, count.read_value, lambda: copy.read_value() * 2.0)
    _, total = tf.while_loop(lambda k, _: k < 3, body, [tf.constant(0), tf.constant(0.0)], parallel_iterations=1)
    i.waited_for.append(tf.assign(sum_, total))
    return loss


@case(1)
def loop_that_updates_what_it_reads(i):
    """Steps of gradient descent on a reference variable in a loop: what was read of it in front of the loop is its memory in each iteration."""
    tf = i.tf
    inner = tf.get_variable("inner", initializer=np.float32([0.5, -1, 2]), use_resource=False, trainable=False)
    seen = tf.get_variable("seen", initializer=np.float32(0), use_resource=False, trainable=False)
    rows = i.x[:, 1]

    def body(k):
        error = tf.reduce_sum(rows * inner, 1) - i.y
        with tf.control_dependencies([tf.assign_sub(inner, 0.1 * tf.reduce_mean(error[:, None] * rows, 0))]):
            counted = tf.assign_add(seen, tf.reduce_sum(inner * inner))
        with tf.control_dependencies([counted]):
            return k + 1
    i.waited_for.append(tf.while_loop(lambda k: tf.logical_and(k < 4, inner[2] > 0), body, [tf.constant(0)], parallel_iterations=1, maximum_iterations=4))
    return i.loss_of(tf.matmul(i.x[:, 0], i.m))


@case(1)
def condition_that_reads_behind_its_update(i):
    tf = i.tf
    count, copy = (tf.get_variable(name, initializer=np.float32(1), use_resource=False, trainable=False) for name in ("count", "copy"))
    loss = i.loss_of(tf.matmul(i.x[:, 0], i.m))

    def counted():
        with tf.control_dependencies([tf.assign_add(count, count * 0.5 + loss)]):
            return tf.group(tf.assign(copy, count * 2.0))
    i.waited_for.append(tf.cond(i.p > 0, counted, tf.no_op))
    return loss


@case(1)
def reads_behind_conditions_that_update(i):
    """What is read of a reference variable behind conditions that update it, in a second condition's predicate and as a value that was read in front of them."""
    tf = i.tf
    count, scale = (tf.get_variable(name, initializer=np.float32(1), use_resource=False, trainable=False) for name in ("count", "scale"))
    loss = i.loss_of(tf.matmul(i.x[:, 0], i.m))
    with tf.control_dependencies([loss]):
        before = tf.identity(scale)
        first = tf.cond(i.p > 0, lambda: tf.group(tf.assign_add(count, 1.0)), lambda: tf.group(tf.assign_add(scale, 0.5)))
    with tf.control_dependencies([first]):
        odd = tf.equal(tf.floormod(tf.identity(count), 2.0), 0.0)
        second = tf.cond(odd, lambda: tf.group(tf.assign(scale, before * 0.7 + tf.tanh(loss))), tf.no_op)
    with tf.control_dependencies([second]):
        i.waited_for.append(tf.assign_add(count, before * 0.1))
    return loss


@case(1, 2)
def conditions_in_conditions_that_are_waited_for(i):
    """Dynamic loss scaling: branches give nothing, so that the inner condition's result is its predicate."""
    tf = i.tf
    scale = tf.get_variable("scale", initializer=np.float32(8), use_resource=True)
    good = tf.get_variable("good", initializer=np.float32(0), use_resource=True)
    loss = i.loss_of(tf.matmul(i.x[:, 0], i.m))

    def grown():
        with tf.control_dependencies([good.assign_add(1.0)]):
            return tf.cond(good > 1.0, lambda: tf.group(scale.assign(scale * 2.0), good.assign(0.0)), tf.no_op)
    i.waited_for.append(tf.cond(i.p * loss > 0, grown, lambda: tf.group(scale.assign(scale / 2.0), good.assign(0.0))))
    return loss


@case(2)
def metric_that_is_waited_for(i):
    """What is computed of an update's new value."""
    tf = i.tf
    h = tf.matmul(i.x[:, 0], i.m)
    loss = i.loss_of(h - tf.reduce_max(h, 0))
    i.waited_for.append(tf.metrics.mean(tf.reduce_sum(h, 1))[1])
    return loss


# ---- At random ------------------------------------------------------------------------------------------------------


def random_rows(i, rng, depth):
    """Of each example a vector of SIZE."""
    tf = i.tf
    if depth == 0:
        return rng.choice([lambda: i.x[:, rng.randrange(TIME)], lambda: tf.matmul(i.x[:, rng.randrange(TIME)], i.m), lambda: i.x[:, 0] * i.v])()
    make = lambda: random_rows(i, rng, depth - 1)
    function = rng.choice([lambda h: tf.tanh(tf.matmul(h, i.m)), lambda h: h * i.v, lambda h: tf.nn.relu(h) + i.x[:, rng.randrange(TIME)],
                           lambda h: tf.sigmoid(h + i.v)])
    kind = rng.choice(["static", "cond", "while", "while-dynamic", "scan"] if i.generation == 2 else ["static", "cond", "while", "scan"])
    if kind == "static":
        return tf.cond(tf.constant(rng.random() < 0.5), make, make)
    if kind == "cond":
        return tf.cond(i.p > rng.choice([-1.0, 0.0, 1.0]), make, make)
    start, count = make(), rng.randrange(1, 4)
    if kind == "scan":
        return tf.scan(lambda h, x: function(h) + x, tf.transpose(i.x, [1, 0, 2]), initializer=start)[rng.choice([-1, 1])]
    if kind == "while":
        return tf.while_loop(lambda k, h: k < count, lambda k, h: (k + 1, function(h)), [tf.constant(0), start])[1]
    return tf.while_loop(lambda k, h: tf.logical_and(k < count, tf.cast(k, tf.float32) < i.p * 2.0), lambda k, h: (k + 1, function(h)),
                         [tf.constant(0), start])[1]


# ---- The comparison -------------------------------------------------------------------------------------------------


def check(tf, tf2, function, generation, counts, refused, targets, flags, seed):
    (tf.enable_control_flow_v2 if generation == 2 else tf.disable_control_flow_v2)()
    with Folder() as folder, tf.Graph().as_default():
        tf.set_random_seed(seed)
        inputs = Inputs(tf, tf2, seed)
        inputs.generation = generation
        loss = tf.identity(function(inputs), "loss")
        optimizer = tf.train.AdamOptimizer(0.05) if seed % 2 else tf.train.GradientDescentOptimizer(0.1)
        gradients = [(g, v) for g, v in optimizer.compute_gradients(loss) if g is not None]
        train = tf.group(optimizer.apply_gradients(gradients, name="minimized"), *inputs.waited_for, name="train")
        all_variables = [*tf.global_variables(), *tf.local_variables()]
        init = tf.variables_initializer(all_variables, name="init_all")
        tf.train.export_meta_graph(str(folder / "graph.meta"))
        data, scalars = inputs.data()
        read = read_by(train.op if hasattr(train, "op") else train, loss.op)
        read |= {name for name in ("x", "y", "n", "p") if tf.get_default_graph().get_operation_by_name(name).outputs[0].consumers()}
        arrays = {name: array for name, array in data.items() if name in read}
        if "p" in read:
            arrays["p"] = np.array(scalars[0])
        commands = [DISTC, "compile", folder / "graph.meta", "--strategy", "AllReduce", "--batch", BATCH, "--train-op", "train", "--loss", "loss:0",
                    "--init-op", init.name, *flags, "-o", folder / "train"]
        found = []
        if refused:
            compiled = run([*commands, "--replicas", 1])
            return [] if compiled.returncode == 1 and refused in compiled.out else [f"exit status {compiled.returncode}: {compiled.out}"]
        # A scalar feed is one for all steps: each of its values is a run of its own.
        with tf.Session() as session:
            for scalar in scalars if "p" in read else scalars[:1]:
                session.run(init)
                initial = {v.op.name: session.run(v) for v in all_variables}
                want = []
                for step in range(STEPS):
                    feed = {f"{name}:0": array[step * BATCH:(step + 1) * BATCH] for name, array in data.items()}
                    feed["p:0"] = scalar
                    want.append(session.run([loss, train], feed)[0])
                variables = {v.op.name: session.run(v) for v in all_variables}
                if "p" in arrays:
                    arrays["p"] = np.array(scalar)
                np.savez(folder / "data.npz", **arrays)
                for replicas, target in itertools.product(counts, targets):
                    program = folder / f"train{replicas}-{target.partition(':')[0]}"
                    if not program.exists():
                        compiled = run([*commands[:-1], program, "--replicas", replicas, "--target", target])
                        if compiled.returncode != 0:
                            return [*found, f"{replicas} replicas, {target}: {compiled.out}"]
                    run_one(program, folder, initial, want, variables, f"{replicas} replicas, {target}, p {scalar}", found)
        return found


def run_one(program, folder, initial, want, variables, what, found):
    losses, final = trained(program, folder / "data.npz", STEPS)
    if not np.allclose(losses, want, rtol=1e-4, atol=1e-5):
        found.append(f"{what}: losses {losses}, not {want}")
    for name, value in variables.items():
        if name in final and not np.allclose(final[name], value, rtol=1e-3, atol=1e-4):
            found.append(f"{what}: variable {name} is\n{final[name]}, not\n{value}")
        if name not in final and not np.array_equal(initial[name], value):
            found.append(f"{what}: variable {name} is not there")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="names, or beginnings of names, of cases; random: graphs at random (all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first random graph")
    parser.add_argument("--target", help="of all cases (each one's own)")
    parser.add_argument("--random", type=int, default=6, help="how many random graphs")
    arguments = parser.parse_args()
    need_tools(DISTC)
    tf, tf2 = need_tensorflow()
    tf.disable_eager_execution()
    checks = Checks(share=0.3)
    given = (arguments.target,) if arguments.target else None
    for number, (name, (function, generation, replicas, refused, targets, flags)) in enumerate(CASES.items()):
        if not arguments.cases or any(name.startswith(wanted) for wanted in arguments.cases):
            checks.check(name, check, tf, tf2, function, generation, replicas, refused, given or targets, flags, number)
    for number in range(arguments.first, arguments.first + (arguments.random if not arguments.cases or "random" in arguments.cases else 0)):
        rng = random.Random(f"{arguments.seed} {number}")
        checks.check(f"random graph {number} of seed {arguments.seed}", check, tf, tf2,
                     lambda i: i.loss_of(random_rows(i, rng, 2)), 1 + number % 2, (1, 2), None, given or ("cpu",), (), number)
    checks.exit()


if __name__ == "__main__":
    main()
