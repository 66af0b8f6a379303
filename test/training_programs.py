"""Training steps as TensorFlow's users write them, each a function of tensors of one batch: what no generator draws. `write` leaves one as
training_graphs.py leaves a recipe's graph. Most are bodies of a tf.function, which orders its reads and updates."""
import json

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
BATCH, STEPS, FEATURES, IDS, CLASSES, WORDS = 8, 5, 6, 11, 3, 5

PROGRAMS, SUMS, ROWS = {}, set(), set()
# A variable has a row for each example, so that constants of the graph have the batch's size: workers of TensorFlow with shares do not take it.
FIXED_BATCH = {"scanned"}
# Feeds that are no examples: they go whole to every replica.
WHOLE = {"importance"}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def program_of_sum(function):
    """Whose loss is a sum over the batch: each replica's share of it is a part."""
    SUMS.add(function.__name__)
    return program(function)


def program_of_rows(function):
    """Whose loss is a mean of the examples' own, so that two halves of a batch, of which one update is made, are the batch."""
    ROWS.add(function.__name__)
    return program(function)


class Makers:
    """Makes variables and feeds of a program, all from one seed. `size`: the feeds' rows, where the graph fixes them."""

    def __init__(self, size=None):
        self.size = size
        self.numbers = np.random.RandomState(7)
        draw, rows = self.numbers, BATCH * STEPS
        self.data = {"x": draw.normal(0, 1, (rows, FEATURES)).astype(np.float32), "y": draw.normal(0, 1, rows).astype(np.float32),
                     "ids": draw.randint(0, IDS, rows).astype(np.int32), "labels": draw.randint(0, CLASSES, rows).astype(np.int32),
                     "flags": draw.rand(rows) < 0.6,
                     "keys": np.concatenate([draw.permutation(IDS)[:BATCH] for _ in range(STEPS)]).astype(np.int32)}
        draw = np.random.RandomState(11)
        self.data |= {"words": draw.randint(0, IDS, (rows, WORDS)).astype(np.int32), "hidden": draw.rand(rows, WORDS) < 0.4,
                      "lengths": draw.randint(1, WORDS + 1, rows).astype(np.int32), "importance": np.linspace(0.5, 2, CLASSES, dtype=np.float32)}
        self.fed = {}

    def __getattr__(self, name):
        """A feed, made when a program first asks for it."""
        if name not in self.data:
            raise AttributeError(name)
        if name not in self.fed:
            array = self.data[name]
            self.fed[name] = tf1.placeholder(array.dtype, array.shape if name in WHOLE else [self.size, *array.shape[1:]], name=name)
        return self.fed[name]

    def weights(self, name, *shape, scale=None):
        scale = scale or max(shape[0] if shape else 1, 1) ** -0.5
        return self.state(name, self.numbers.normal(0, scale, shape).astype(np.float32), trainable=True)

    def state(self, name, initial, trainable=False):
        return tf1.get_variable(name, initializer=np.asarray(initial), trainable=trainable, use_resource=True)

    def step(self, function):
        """Loss and train op of a step that is a tf.function of (x, y, ids, labels, flags, keys)."""
        function = tf.function(function, autograph=False)
        loss = function(self.x, self.y, self.ids, self.labels, self.flags, self.keys)
        return loss, loss.op


def predict(w, v, x):
    return tf.linalg.matvec(tf.tanh(x @ w), v)


def mean_square(w, v, x, y):
    return tf.reduce_mean(tf.square(predict(w, v, x) - y))


def descend(tape, loss, variables, rate=0.1):
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(rate * tf.convert_to_tensor(gradient))


def wide_means(make, join, rate=0.1):
    """A mean for each example of as many values as there are examples."""
    w = make.weights("w", FEATURES, BATCH)
    loss = join(tf.reduce_mean(tf.square(tf.tanh(make.x @ w) - 0.3), 1))
    return loss, tf1.train.GradientDescentOptimizer(rate).minimize(loss, var_list=[w])


@program
def mean_of_wide_means(make):
    return wide_means(make, tf.reduce_mean)


@program
def shares_of_wide_means(make):
    return wide_means(make, lambda losses: tf.reduce_sum(losses / tf.cast(tf.shape(losses)[0], losses.dtype)))


@program_of_sum
def sum_of_wide_means(make):
    return wide_means(make, tf.reduce_sum, rate=0.01)


@program
def sharpness_aware(make):
    w, v = make.weights("w", FEATURES, 5), make.weights("v", 5)

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            loss = mean_square(w, v, x, y)
        gradients = tape.gradient(loss, [w, v])
        scale = 0.1 / (tf.linalg.global_norm(gradients) + 1e-3)
        moves = [scale * gradient for gradient in gradients]
        for variable, move in zip((w, v), moves):
            variable.assign_add(move)
        with tf.GradientTape() as tape:
            again = mean_square(w, v, x, y)
        for variable, move, gradient in zip((w, v), moves, tape.gradient(again, [w, v])):
            variable.assign_sub(move)
            variable.assign_sub(0.1 * gradient)
        return loss
    return make.step(step)


@program
def lookahead(make):
    w, v, count = make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("count", np.int64(0))
    slow = [make.state(f"slow{number}", np.zeros(variable.shape, np.float32)) for number, variable in enumerate((w, v))]

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            loss = mean_square(w, v, x, y)
        descend(tape, loss, [w, v])
        count.assign_add(1)

        def meet():
            for variable, other in zip((w, v), slow):
                other.assign_add(0.5 * (variable - other))
                variable.assign(other)
            return tf.constant(0)
        tf.cond(tf.equal(count % 2, 0), meet, lambda: tf.constant(0))
        return loss
    return make.step(step)


@program
def accumulated_gradients(make):
    import tf_keras
    w, v, count = make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("count", np.int32(0))
    totals = [make.state(f"total{number}", np.zeros(variable.shape, np.float32)) for number, variable in enumerate((w, v))]
    optimizer = tf_keras.optimizers.Adam(0.05, epsilon=1e-3, jit_compile=False)
    optimizer.build([w, v])

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            loss = mean_square(w, v, x, y)
        for total, gradient in zip(totals, tape.gradient(loss, [w, v])):
            total.assign_add(gradient / 2)
        count.assign_add(1)

        def apply():
            optimizer.apply_gradients(zip([total + 0.0 for total in totals], [w, v]), skip_gradients_aggregation=True)
            for total in totals:
                total.assign(tf.zeros_like(total))
            return tf.constant(0)
        tf.cond(tf.equal(count % 2, 0), apply, lambda: tf.constant(0))
        return loss
    return make.step(step)


@program
def adversaries(make):
    """A generator and a discriminator share a table; each has its turn."""
    import tf_keras
    table, w, v, count = make.weights("table", IDS, 5), make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("count", np.int64(0))
    optimizers = [tf_keras.optimizers.Adam(0.05, epsilon=1e-3, jit_compile=False), tf_keras.optimizers.RMSprop(0.01, epsilon=1e-3, jit_compile=False)]
    groups = [[table, w], [v, table]]
    for optimizer, group in zip(optimizers, groups):
        optimizer.build(group)

    def step(x, y, ids, *_):
        def score(rows):
            return tf.linalg.matvec(rows, v)

        def turn(number):
            def run():
                with tf.GradientTape() as tape:
                    made, real = score(tf.tanh(x @ w)), score(tf.gather(table, ids))
                    loss = tf.reduce_mean(tf.nn.softplus(-made)) if number == 0 else tf.reduce_mean(tf.nn.softplus(made) + tf.nn.softplus(-real))
                    loss += 0.01 * tf.nn.l2_loss(table)
                optimizers[number].apply_gradients(zip(tape.gradient(loss, groups[number]), groups[number]), skip_gradients_aggregation=True)
                return loss
            return run
        loss = tf.cond(tf.equal(count % 2, 0), turn(0), turn(1))
        count.assign_add(1)
        return loss
    return make.step(step)


@program
def generator(make):
    """A generator makes examples of noise that meets no real one; the discriminator is updated first, and judges them again."""
    g, offset = make.weights("g", FEATURES, FEATURES), make.state("offset", np.zeros(FEATURES, np.float32), trainable=True)
    d, v = make.weights("d", FEATURES, 5), make.weights("v", 5)
    noise = tf.random.normal([tf.shape(make.x)[0], FEATURES], seed=5)

    def judge(rows):
        return tf.linalg.matvec(tf.nn.leaky_relu(rows @ d.read_value()), v.read_value())

    made = tf.tanh(noise @ g + offset)
    judging = tf.reduce_mean(tf.nn.softplus(-judge(make.x))) + tf.reduce_mean(tf.nn.softplus(judge(made)))
    first, second = (tf1.train.AdamOptimizer(rate, 0.5, epsilon=1e-3) for rate in (0.01, 0.02))
    with tf1.control_dependencies([judging, first.minimize(judging, var_list=[d, v])]):
        making = tf.reduce_mean(tf.nn.softplus(-judge(made)))
    return judging + making, second.minimize(making, var_list=[g, offset])


@program
def target_network(make):
    """Values of actions, a target that follows hard at every third step and one that follows softly."""
    w, v = make.weights("w", FEATURES, CLASSES), make.state("count", np.int64(0))
    hard, soft = make.state("hard", np.zeros((FEATURES, CLASSES), np.float32)), make.state("soft", np.zeros((FEATURES, CLASSES), np.float32))

    def step(x, y, ids, labels, flags, keys):
        goal = y + 0.9 * tf.where(flags, tf.reduce_max(x @ hard, 1), tf.reduce_min(x @ soft, 1))
        with tf.GradientTape() as tape:
            error = tf.gather(x @ w, labels, batch_dims=1) - tf.stop_gradient(goal)
            loss = tf.reduce_mean(tf.where(tf.abs(error) < 1.0, 0.5 * tf.square(error), tf.abs(error) - 0.5))
        w.assign_sub(0.1 * tape.gradient(loss, w))
        v.assign_add(1)
        hard.assign(tf.where(tf.equal(v % 3, 0), w, hard))
        soft.assign(0.9 * soft + 0.1 * w)
        return loss
    return make.step(step)


@program
def actor_and_critic(make):
    import tf_keras
    body, policy, value = make.weights("body", FEATURES, 5), make.weights("policy", 5, CLASSES), make.weights("value", 5)
    first, second = tf_keras.optimizers.SGD(0.1, momentum=0.9, jit_compile=False), tf_keras.optimizers.Adam(0.02, epsilon=1e-3, jit_compile=False)
    first.build([body, policy])
    second.build([body, value])

    def step(x, y, ids, labels, *_):
        with tf.GradientTape(persistent=True) as tape:
            h = tf.tanh(x @ body)
            advantage = y - tf.linalg.matvec(h, value)
            scaled = tf.stop_gradient((advantage - tf.reduce_mean(advantage)) / (tf.math.reduce_std(advantage) + 0.1))
            likelihood = tf.gather(tf.nn.log_softmax(h @ policy), labels, batch_dims=1)
            probabilities = tf.nn.softmax(h @ policy)
            act = -tf.reduce_mean(likelihood * scaled) + 0.01 * tf.reduce_mean(tf.reduce_sum(probabilities * tf.math.log(probabilities), 1))
            judge = tf.reduce_mean(tf.square(advantage))
        acting, judging = tape.gradient(act, [body, policy]), tape.gradient(judge, [body, value])
        first.apply_gradients(zip(acting, [body, policy]), skip_gradients_aggregation=True)
        second.apply_gradients(zip(tf.clip_by_global_norm(judging, 0.3)[0], [body, value]), skip_gradients_aggregation=True)
        return act + 0.5 * judge
    return make.step(step)


@program
def loss_scale(make):
    w, v = make.weights("w", FEATURES, 5), make.weights("v", 5)
    scale, good = make.state("scale", np.float32(64)), make.state("good", np.int32(0))

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            loss = mean_square(w, v, x, y)
            scaled = loss * scale
        gradients = [gradient / scale for gradient in tape.gradient(scaled, [w, v])]
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(gradient)) for gradient in gradients])

        def apply():
            for variable, gradient in zip((w, v), gradients):
                variable.assign_sub(0.1 * gradient)
            good.assign_add(1)
            scale.assign(tf.where(tf.equal(good % 2, 0), scale * 2.0, scale))
            return tf.constant(0)

        def skip():
            good.assign(0)
            scale.assign(scale / 2.0)
            return tf.constant(0)
        tf.cond(finite, apply, skip)
        return loss
    return make.step(step)


@program
def meta_learning(make):
    """The loss of half the batch where a step on the other half leads."""
    w, v, rate = make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("rate", np.float32(0.1), trainable=True)

    def step(x, y, *_):
        half = tf.shape(x)[0] // 2
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                adapted = mean_square(w, v, x[:half], y[:half])
            changed = [variable - rate * gradient for variable, gradient in zip((w, v), inner.gradient(adapted, [w, v]))]
            loss = mean_square(*changed, x[half:], y[half:])
        for variable, gradient in zip((w, v, rate), outer.gradient(loss, [w, v, rate])):
            variable.assign_sub(0.1 * gradient)
        return loss
    return make.step(step)


@program
def gradient_penalty(make):
    w, v = make.weights("w", FEATURES, 5), make.weights("v", 5)

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(x)
                output = predict(w, v, x)
            slopes = tf.sqrt(tf.reduce_sum(tf.square(inner.gradient(output, x)), 1) + 1e-3)
            loss = tf.reduce_mean(tf.square(output - y)) + tf.reduce_mean(tf.square(slopes - 1.0))
        descend(tape, loss, [w, v])
        return loss
    return make.step(step)


@program
def unused_arguments(make):
    """A function takes what an update is behind, and does not use it: a call of it, and its result, wait for the update all the same."""
    w, count = make.weights("w", FEATURES), make.state("count", np.float32(0))

    @tf.function(autograph=False)
    def log(value, after):
        count.assign_add(1.)
        return value * value

    loss = tf.reduce_mean(tf.square(tf.linalg.matvec(make.x, w) - make.y))
    step = tf1.train.GradientDescentOptimizer(.1).minimize(loss)
    with tf.control_dependencies([step]):
        after = tf.constant(0.)
    return loss, tf.group(log(loss, after))


@program
def momentum_contrast(make):
    """A second encoder follows; its rows enter a queue at a pointer."""
    w, follower = make.weights("w", FEATURES, 4), make.weights("follower", FEATURES, 4)
    queue, pointer = make.weights("queue", 2 * BATCH, 4, scale=0.5), make.state("pointer", np.int32(0))

    def step(x, y, *_):
        key = tf.stop_gradient(tf.nn.l2_normalize(tf.reverse(x, [1]) @ follower, 1, 1e-2))
        with tf.GradientTape() as tape:
            query = tf.nn.l2_normalize(x @ w, 1, 1e-2)
            logits = tf.concat([tf.reduce_sum(query * key, 1, keepdims=True), tf.matmul(query, queue, transpose_b=True)], 1)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.zeros_like(logits[:, 0], tf.int32), logits=logits))
        w.assign_sub(0.5 * tape.gradient(loss, w))
        follower.assign(0.9 * follower + 0.1 * w)
        places = (pointer + tf.range(tf.shape(x)[0])) % (2 * BATCH)
        queue.assign(tf.tensor_scatter_nd_update(queue, places[:, None], key))
        pointer.assign((pointer + tf.shape(x)[0]) % (2 * BATCH))
        return loss
    return make.step(step)


@program
def codebook(make):
    """Vector quantization; codes follow the rows that chose them."""
    w, v = make.weights("w", FEATURES, 4), make.weights("v", 4)
    codes, counts = make.weights("codes", 5, 4), make.state("counts", np.ones(5, np.float32))

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            z = x @ w
            distances = tf.reduce_sum(tf.square(z[:, None] - codes), 2)
            chosen = tf.argmin(distances, 1, output_type=tf.int32)
            near = tf.gather(codes, chosen)
            loss = (tf.reduce_mean(tf.square(tf.linalg.matvec(z + tf.stop_gradient(near - z), v) - y)) +
                    0.25 * tf.reduce_mean(tf.square(z - tf.stop_gradient(near))))
        gradients = tape.gradient(loss, [w, v])
        counts.assign(0.9 * counts + 0.1 * tf.math.unsorted_segment_sum(tf.ones_like(y), chosen, 5))
        codes.assign(0.9 * codes + 0.1 * tf.math.unsorted_segment_sum(z, chosen, 5) / (counts[:, None] + 1e-2))
        for variable, gradient in zip((w, v), gradients):
            variable.assign_sub(0.1 * gradient)
        return loss
    return make.step(step)


@program
def class_centers(make):
    w, v, centers = make.weights("w", FEATURES, 4), make.weights("v", 4, CLASSES), make.state("centers", np.zeros((CLASSES, 4), np.float32))

    def step(x, y, ids, labels, *_):
        with tf.GradientTape() as tape:
            h = tf.tanh(x @ w)
            apart = h - tf.gather(centers, labels)
            loss = (tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=h @ v)) + 0.1 * tf.reduce_mean(tf.reduce_sum(apart * apart, 1)))
        gradients = tape.gradient(loss, [w, v])
        seen = tf.gather(tf.math.unsorted_segment_sum(tf.ones_like(y), labels, CLASSES), labels)
        centers.scatter_add(tf.IndexedSlices(0.5 * apart / (1.0 + seen[:, None]), labels))
        for variable, gradient in zip((w, v), gradients):
            variable.assign_sub(0.1 * gradient)
        return loss
    return make.step(step)


@program
def factorization(make):
    """Two tables, their biases, and the mean of what was seen."""
    users, items = make.weights("users", IDS, 4), make.weights("items", CLASSES, 4)
    biases, mean = make.state("biases", np.zeros(IDS, np.float32), trainable=True), make.state("mean", np.float32(0))
    train = tf1.train.AdagradOptimizer(0.2)
    scores = tf.reduce_sum(tf.nn.embedding_lookup(users, make.ids) * tf.nn.embedding_lookup(items, make.labels), 1)
    loss = tf.reduce_mean(tf.square(scores + tf.nn.embedding_lookup(biases, make.ids) + mean.read_value() - make.y), name="mean_loss")
    gradients = train.compute_gradients(loss, [users, items, biases])
    with tf1.control_dependencies([loss, *[gradient.values for gradient, _ in gradients]]):
        follow = mean.assign_add(0.1 * (tf.reduce_mean(make.y) - mean))
        with tf1.control_dependencies([follow]):
            return loss, train.apply_gradients(gradients)


@program_of_sum
def rows_of_losses(make):
    """The last loss of each example, by its key, weighs it."""
    w, v, last = make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("last", np.ones(IDS, np.float32))

    def step(x, y, ids, labels, flags, keys):
        weights = tf.gather(last, keys)
        weights = weights / tf.reduce_sum(weights)
        with tf.GradientTape() as tape:
            losses = tf.square(predict(w, v, x) - y)
            loss = tf.reduce_sum(weights * losses)
        gradients = tape.gradient(loss, [w, v])
        last.scatter_update(tf.IndexedSlices(0.5 * tf.gather(last, keys) + 0.5 * losses, keys))
        for variable, gradient in zip((w, v), gradients):
            variable.assign_sub(0.1 * gradient)
        return loss
    return make.step(step)


@program
def weighted_classes(make):
    """Weights of the classes are fed whole, and are the graph's first feed; the loss is a sum, and so are the counts of what was seen."""
    importance = make.importance
    logits = tf.matmul(make.x, make.weights("w", FEATURES, CLASSES))
    seen, total = make.state("seen", np.zeros(CLASSES, np.int32)), make.state("total", np.float32(0))
    loss = tf.reduce_sum(tf.gather(importance, make.labels) * tf.nn.sparse_softmax_cross_entropy_with_logits(labels=make.labels, logits=logits))
    counts = tf.math.bincount(make.labels, minlength=CLASSES, maxlength=CLASSES)
    train = tf1.train.GradientDescentOptimizer(0.05).minimize(loss, var_list=tf1.trainable_variables())
    return loss, tf.group(train, seen.assign_add(counts), total.assign_add(tf.reduce_sum(make.y)))


@program
def histories(make):
    """Reference variables: what was read between two updates is memory, and has the second one's value behind that."""
    w, v, previous = (tf1.get_variable(name, initializer=make.numbers.normal(0, 0.4, shape).astype(np.float32), trainable=name != "previous", use_resource=False)
                      for name, shape in (("w", (FEATURES, 5)), ("v", (5,)), ("previous", (FEATURES, 5))))
    loss = mean_square(w, v, make.x, make.y)
    by_w, by_v = tf1.gradients(loss, [w, v])
    with tf1.control_dependencies([loss, by_w, by_v]):
        first = v.assign_sub(0.1 * by_v)
    with tf1.control_dependencies([first]):
        old = w.read_value()
        new = old - 0.1 * by_w + 0.2 * (old - previous)
    with tf1.control_dependencies([old, new]):
        second = w.assign(new)
    with tf1.control_dependencies([second]):
        return loss, previous.assign(old)


@program
def slices(make):
    """Parts of variables are assigned."""
    w, v, history = make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("history", np.zeros((4, 5), np.float32))
    count = make.state("count", np.int32(0))

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            loss = mean_square(w, v, x, y)
        gradients = tape.gradient(loss, [w, v])
        w[:3].assign(w[:3] - 0.1 * gradients[0][:3])
        w[3:, 1:4].assign(w[3:, 1:4] - 0.05 * gradients[0][3:, 1:4])
        v.scatter_nd_sub([[0], [3]], 0.1 * tf.gather(gradients[1], [0, 3]))
        history.scatter_nd_update([[count % 4]], v[None])
        count.assign_add(1)
        return loss
    return make.step(step)


@program
def two_tasks(make):
    """Gradients of two losses; each gives up what is against the other (PCGrad). Uncertainties weigh them."""
    w, v, u, logs = make.weights("w", FEATURES, 5), make.weights("v", 5), make.weights("u", 5, CLASSES), make.state("logs", np.zeros(2, np.float32), trainable=True)

    def step(x, y, ids, labels, *_):
        with tf.GradientTape(persistent=True) as tape:
            h = tf.tanh(x @ w)
            first = tf.reduce_mean(tf.square(tf.linalg.matvec(h, v) - y)) * tf.exp(-logs[0]) + logs[0]
            second = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=h @ u)) * tf.exp(-logs[1]) + logs[1]
        a, b = tape.gradient(first, w), tape.gradient(second, w)
        inner = tf.minimum(tf.reduce_sum(a * b), 0.0)
        w.assign_sub(0.1 * (a - inner * b / (tf.reduce_sum(b * b) + 1e-3) + b - inner * a / (tf.reduce_sum(a * a) + 1e-3)))
        v.assign_sub(0.1 * tape.gradient(first, v))
        u.assign_sub(0.1 * tape.gradient(second, u))
        logs.assign_sub(0.1 * (tf.convert_to_tensor(tape.gradient(first, logs)) + tf.convert_to_tensor(tape.gradient(second, logs))))
        return first + second
    return make.step(step)


@program
def dual_ascent(make):
    """A constraint on the batch's mean has a multiplier."""
    w, v, multiplier = make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("multiplier", np.float32(0.1))

    def step(x, y, ids, labels, flags, keys):
        with tf.GradientTape() as tape:
            output = predict(w, v, x)
            group = tf.cast(flags, tf.float32)
            gap = tf.reduce_sum(output * group) / tf.reduce_sum(group + 1e-3) - tf.reduce_mean(output)
            loss = tf.reduce_mean(tf.square(output - y)) + multiplier * tf.square(gap)
        gradients = tape.gradient(loss, [w, v])
        multiplier.assign(tf.clip_by_value(multiplier + 0.5 * (tf.square(gap) - 0.01), 0.0, 2.0))
        for variable, gradient in zip((w, v), gradients):
            variable.assign_sub(0.1 * gradient)
        return loss
    return make.step(step)


@program
def initialized_by_data(make):
    """The first batch says what scale and offset are."""
    w, v, seen = make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("seen", False)
    offset, scale = make.state("offset", np.zeros(5, np.float32)), make.state("scale", np.ones(5, np.float32))

    def step(x, y, *_):
        def initialize():
            mean, variance = tf.nn.moments(x @ w, [0])
            offset.assign(-mean)
            scale.assign(tf.math.rsqrt(variance + 0.1))
            seen.assign(True)
            return tf.constant(0)
        tf.cond(seen, lambda: tf.constant(0), initialize)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.tanh((x @ w + offset) * scale), v) - y))
        descend(tape, loss, [w, v])
        return loss
    return make.step(step)


@program
def warm_restarts(make):
    """Momentum is forgotten and the rate starts again at every third step."""
    w, v, count = make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("count", np.int64(0))
    slots = [make.state(f"slot{number}", np.zeros(variable.shape, np.float32)) for number, variable in enumerate((w, v))]

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            loss = mean_square(w, v, x, y)
        gradients = tape.gradient(loss, [w, v])
        inside = tf.cast(count % 3, tf.float32)
        rate = 0.1 * 0.5 * (1.0 + tf.cos(3.1415927 * inside / 3.0))
        for variable, slot, gradient in zip((w, v), slots, gradients):
            slot.assign(tf.where(tf.equal(count % 3, 0), gradient, 0.9 * slot + gradient))
            variable.assign_sub(rate * slot)
        count.assign_add(1)
        return loss
    return make.step(step)


@program
def curriculum(make):
    """The easiest examples first, more of them with every step."""
    w, v, count = make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("count", np.int32(2))

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            losses = tf.square(predict(w, v, x) - y)
            order = tf.argsort(tf.stop_gradient(losses))
            kept = tf.sequence_mask(tf.minimum(count, tf.shape(x)[0]), tf.shape(x)[0], tf.float32)
            loss = tf.reduce_sum(tf.gather(losses, order) * kept) / tf.reduce_sum(kept)
        gradients = tape.gradient(loss, [w, v])
        for variable, gradient in zip((w, v), gradients):
            variable.assign_sub(0.1 * gradient)
        count.assign_add(1)
        return loss
    return make.step(step)


@program
def hard_examples(make):
    w, v = make.weights("w", FEATURES, 5), make.weights("v", 5)

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            hardest, _ = tf.math.top_k(tf.square(predict(w, v, x) - y), 3)
            loss = tf.reduce_mean(hardest)
        descend(tape, loss, [w, v])
        return loss
    return make.step(step)


@program
def scanned(make):
    """A recurrence over the features, whose last state starts the next step."""
    w, v, state = make.weights("w", 4, 4), make.weights("v", 4), make.state("state", np.zeros((BATCH, 4), np.float32))

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            states = tf.scan(lambda h, column: tf.tanh(h @ w + column[:, None]), tf.transpose(x), initializer=state.read_value())
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(states[-1], v) - y))
        gradients = tape.gradient(loss, [w, v])
        state.assign(0.5 * states[-1])
        for variable, gradient in zip((w, v), gradients):
            variable.assign_sub(0.1 * gradient)
        return loss
    return make.step(step)


@program
def weighted_by_place(make):
    """The last examples weigh most, and gradients are taken behind an update of the rate, which the loss makes."""
    w, rate = make.weights("w", FEATURES), make.state("rate", np.float32(0.1))
    size = tf.shape(make.x)[0]
    weights = tf.exp(-0.1 * tf.cast(tf.range(size - 1, -1, -1), tf.float32))
    errors = tf.square(tf.tanh(tf.linalg.matvec(make.x, w)) - make.y)
    loss = tf.reduce_sum(errors * weights) / tf.reduce_sum(weights)
    with tf1.control_dependencies([rate.assign(0.1 / (1.0 + loss))]):
        return loss, tf1.train.GradientDescentOptimizer(rate.read_value()).minimize(loss)


@program
def measured(make):
    """Metrics beside an optimizer with batch normalization, as tf1 has them."""
    w, v = make.weights("w", FEATURES, 5), make.weights("v", 5, CLASSES)
    mean, variance = tf.nn.moments(make.x @ w, [0])
    moving = [make.state("mean", np.zeros(5, np.float32)), make.state("variance", np.ones(5, np.float32))]
    updates = [variable.assign_sub(0.2 * (variable - value)) for variable, value in zip(moving, (mean, variance))]
    logits = tf.nn.relu((make.x @ w - mean) * tf1.rsqrt(variance + 0.1)) @ v
    loss = tf1.losses.sparse_softmax_cross_entropy(make.labels, logits)
    _, accuracy = tf1.metrics.accuracy(make.labels, tf.argmax(logits, 1))
    _, average = tf1.metrics.mean(loss)
    _, recall = tf1.metrics.recall(make.flags, logits[:, 0] > 0.0)
    with tf1.control_dependencies([*updates, accuracy, average, recall]):
        return loss, tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)


@program
def moving_averages(make):
    """Averages whose decay follows the step, and a penalty for leaving them."""
    w, v = make.weights("w", FEATURES, 5), make.weights("v", 5)
    count = make.state("count", np.int64(0))
    averages = tf1.train.ExponentialMovingAverage(0.99, num_updates=count)
    predicted = predict(w, v, make.x)
    with tf1.control_dependencies(None):
        shadow = make.state("shadow", np.zeros((FEATURES, 5), np.float32))
    loss = tf.reduce_mean(tf.square(predicted - make.y)) + 0.1 * tf.nn.l2_loss(w - tf.stop_gradient(shadow.read_value()))
    optimizer = tf1.train.AdamOptimizer(0.05, epsilon=1e-3)
    with tf1.control_dependencies([optimizer.minimize(loss, var_list=[w, v], global_step=count)]):
        with tf1.control_dependencies([shadow.assign(0.8 * shadow + 0.2 * w)]):
            return loss, averages.apply([w, v])


@program
def clusters(make):
    """Online k-means beside a model of the distances."""
    centers, counts, v = make.weights("centers", 4, FEATURES, scale=1.0), make.state("counts", np.ones(4, np.float32)), make.weights("v", 4)

    def step(x, y, *_):
        distances = tf.reduce_sum(tf.square(x[:, None] - centers), 2)
        nearest = tf.argmin(distances, 1, output_type=tf.int32)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.exp(-0.1 * distances), v) - y))
        gradient = tape.gradient(loss, v)
        counts.scatter_add(tf.IndexedSlices(tf.ones_like(y), nearest))
        centers.scatter_add(tf.IndexedSlices((x - tf.gather(centers, nearest)) / tf.gather(counts, nearest)[:, None], nearest))
        v.assign_sub(0.1 * gradient)
        return loss
    return make.step(step)


@program
def coordinates(make):
    """Coordinate descent: columns one after another, in a loop, each with the others' new values."""
    w = make.state("w", np.zeros(FEATURES, np.float32), trainable=True)

    def step(x, y, *_):
        def one(number, _):
            column = tf.gather(x, number, axis=1)
            rest = y - tf.linalg.matvec(x, w) + column * tf.gather(w, number)
            best = tf.reduce_mean(column * rest) / (tf.reduce_mean(column * column) + 0.1)
            w.scatter_nd_update([[number]], [0.5 * best])
            return number + 1, tf.reduce_mean(tf.square(rest))
        _, loss = tf.while_loop(lambda number, _: number < FEATURES, one, [tf.constant(0), tf.constant(0.0)])
        return loss
    return make.step(step)


@program
def several_steps(make):
    """Each step of a loop is on its own part of the batch."""
    w, v = make.weights("w", FEATURES, 4), make.weights("v", 4)

    def step(x, y, *_):
        part = tf.shape(x)[0] // 2

        def one(number, total):
            with tf.GradientTape() as tape:
                loss = mean_square(w, v, x[number * part:(number + 1) * part], y[number * part:(number + 1) * part])
            descend(tape, loss, [w, v])
            return number + 1, total + loss
        _, total = tf.while_loop(lambda number, _: number < 2, one, [tf.constant(0), tf.constant(0.0)])
        return total / 2.0
    return make.step(step)


@program
def noise_by_step(make):
    """Noise that the number of the step draws, on gradients and features."""
    w, v, count = make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("count", np.int32(0))

    def step(x, y, *_):
        noise = tf.random.stateless_normal([FEATURES], tf.stack([3, count]))
        with tf.GradientTape() as tape:
            loss = mean_square(w, v, x + 0.1 * noise, y)
        for number, (variable, gradient) in enumerate(zip((w, v), tape.gradient(loss, [w, v]))):
            variable.assign_sub(0.1 * (gradient + 0.01 * tf.random.stateless_normal(variable.shape, tf.stack([number, count]))))
        count.assign_add(1)
        return loss
    return make.step(step)


@program_of_rows
def noise_on_gradients(make):
    """Gradients are clipped by their norm, and get noise that is drawn in each step."""
    w, v, m = make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("m", np.zeros([FEATURES, 5], np.float32))

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            loss = mean_square(w, v, x, y)
        (of_w, of_v), norm = tf.clip_by_global_norm(tape.gradient(loss, [w, v]), 0.5)
        of_w += 0.1 * norm * tf.random.normal([FEATURES, 5], seed=3)
        m.assign(0.9 * m + of_w)
        w.assign_sub(0.1 * m)
        v.assign_sub(0.1 * (of_v + 0.05 * tf.random.uniform([5], seed=4)))
        return loss
    return make.step(step)


@program
def chosen_rows(make):
    """Only some examples count; the largest of their losses is followed."""
    w, v, level = make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("level", np.float32(0))

    def step(x, y, ids, labels, flags, keys):
        with tf.GradientTape() as tape:
            losses = tf.boolean_mask(tf.square(predict(w, v, x) - y), flags)
            loss = tf.reduce_sum(losses) / (1.0 + tf.cast(tf.size(losses), tf.float32))
        gradients = tape.gradient(loss, [w, v])
        level.assign(0.5 * level + 0.5 * tf.reduce_max(losses))
        for variable, gradient in zip((w, v), gradients):
            variable.assign_sub(0.1 * gradient)
        return loss
    return make.step(step)


@program
def distillation(make):
    """A teacher that is an average of the student, over classes that a table embeds."""
    table, w, teacher = make.weights("table", IDS, 4), make.weights("w", 4, CLASSES), make.state("teacher", np.zeros((4, CLASSES), np.float32))
    import tf_keras
    optimizer = tf_keras.optimizers.Adam(0.05, epsilon=1e-3, global_clipnorm=0.5, jit_compile=False)
    optimizer.build([table, w])

    def step(x, y, ids, labels, *_):
        with tf.GradientTape() as tape:
            h = tf.gather(table, ids)
            logits = h @ w
            soft = tf.stop_gradient(tf.nn.softmax(h @ teacher))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits) -
                                  0.3 * tf.reduce_sum(soft * tf.nn.log_softmax(logits), 1))
        optimizer.apply_gradients(zip(tape.gradient(loss, [table, w]), [table, w]), skip_gradients_aggregation=True)
        teacher.assign(0.9 * teacher + 0.1 * w)
        return loss
    return make.step(step)


@program
def private_gradients(make):
    """Differentially private training: each example's gradient is cut to a norm. The examples are those of a vectorized map, which takes them by number."""
    w, v = make.weights("w", FEATURES, CLASSES), make.state("v", np.zeros((FEATURES, CLASSES), np.float32))

    def losses(x, labels):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(x, w))

    def of_one(example):
        x, label = example
        gradient = tf.gradients(losses(x[None], label[None]), w)[0]
        return gradient * tf.minimum(1., .5 / tf.norm(gradient))

    gradient = tf.reduce_mean(tf.vectorized_map(of_one, (make.x, make.labels)), 0)
    loss = tf.reduce_mean(losses(make.x, make.labels))
    with tf.control_dependencies([loss, v.assign(.9 * v + gradient)]):
        train = w.assign_sub(.1 * v.read_value())
    return loss, train


@program
def mixed_examples(make):
    """mixup: each example and its label are mixed with those of another one, which a permutation names."""
    w, v = make.weights("w", FEATURES, 5), make.weights("v", 5)

    def step(x, y, *_):
        order = tf.random.shuffle(tf.range(tf.shape(x)[0]), seed=7)
        share = tf.random.uniform([tf.shape(x)[0]], seed=8)
        x = share[:, None] * x + (1 - share[:, None]) * tf.gather(x, order)
        y = share * y + (1 - share) * tf.gather(y, order)
        with tf.GradientTape() as tape:
            loss = mean_square(w, v, x, y)
        descend(tape, loss, [w, v])
        return loss
    return make.step(step)


@program
def grouped_convolutions(make):
    """Two channels a group, then one: functions that XLA compiles, without which TensorFlow has no such gradients on processors."""
    filters, each, v = make.weights("filters", 3, 3, 2, 6), make.weights("each", 3, 3, 1, 6), make.weights("v", 6)
    convolve = tf.function(lambda images, filters: tf.nn.conv2d(images, filters, 1, "SAME"), jit_compile=True)

    def step(x, y, *_):
        images = tf.stack([tf.sin(x[:, :, None] + number * x[:, None, :]) for number in range(4)], 3)
        with tf.GradientTape() as tape:
            maps = convolve(tf.nn.relu(convolve(images, filters)), each)
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.reduce_mean(maps, [1, 2]), v) - y))
        descend(tape, loss, [filters, each, v])
        return loss
    return make.step(step)


@program
def near_ties(make):
    """A small slope leaves what is not positive so close to the largest of its window that TensorFlow's gradient takes it for as large."""
    filters, slope, v = make.weights("filters", 2, 3, 3, 1, 3), make.state("slope", np.float32(2e-6), trainable=True), make.weights("v", 24)

    def step(x, y, *_):
        volumes = tf.stack([tf.sin(x[:, :, None] + number * x[:, None, :]) for number in range(5)], 1)[..., None]
        with tf.GradientTape() as tape:
            maps = tf.nn.conv3d(volumes, filters, [1] * 5, "VALID")
            mean, variance = tf.nn.moments(maps, [0, 1, 2, 3])
            maps = tf.nn.batch_normalization(maps, mean + .8, variance, None, None, 1e-3)
            pooled = tf.nn.max_pool3d(tf.nn.relu(maps) - slope * tf.nn.relu(-maps), 2, 2, "VALID")
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.reshape(pooled, [-1, 24]), v) - y))
        descend(tape, loss, [filters, slope, v])
        return loss
    return make.step(step)


@program
def conditions_of_version_1(make):
    """tf.cond by the batch and tf.case by the step's number, of Switch and Merge."""
    tf1.disable_control_flow_v2()
    w, other, count = make.weights("w", FEATURES, CLASSES), make.weights("other", FEATURES, CLASSES), tf1.train.get_or_create_global_step()
    logits = tf1.cond(tf.reduce_mean(make.x) > 0, lambda: make.x @ w, lambda: make.x @ other * 2.)
    decay = tf1.case([(count < 2, lambda: tf.nn.l2_loss(w)), (count < 3, lambda: tf.nn.l2_loss(other))], default=lambda: 0.)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=make.labels, logits=logits)) + .01 * decay
    return loss, tf1.train.AdamOptimizer(.01).minimize(loss, count)


@program
def shuffled_examples(make):
    """What is negative is another row of the batch; a row of a table that is shuffled whole is added to each."""
    w, v, table = make.weights("w", FEATURES, 5), make.weights("v", 5), make.weights("table", IDS, 5)

    def step(x, y, ids, *_):
        others = tf.random.shuffle(x, seed=3)
        rows = tf.random.shuffle(tf.range(IDS), seed=5)
        with tf.GradientTape() as tape:
            near, far = tf.tanh(x @ w) + tf.gather(table, tf.gather(rows, ids)), tf.tanh(others @ w)
            loss = mean_square(w, v, x, y) + tf.reduce_mean(tf.nn.relu(1.0 - tf.reduce_sum(near * (near - far), 1)))
        descend(tape, loss, [w, v, table])
        return loss
    return make.step(step)


@program
def policy_gradient(make):
    """REINFORCE: actions that the policy draws, three an example; some of the same by a seed of the step's number."""
    w, count = make.weights("w", FEATURES, CLASSES), make.state("count", np.int32(0))

    def step(x, y, ids, labels, *_):
        with tf.GradientTape() as tape:
            logits = x @ w
            actions = tf.random.categorical(logits, 3, seed=4)
            others = tf.random.stateless_categorical(tf.stop_gradient(logits), 1, tf.stack([5, count]), dtype=tf.int32)
            reward = tf.cast(tf.equal(tf.cast(actions, tf.int32), labels[:, None]), tf.float32) - 0.3
            reward += 0.2 * tf.cast(tf.equal(others, labels[:, None]), tf.float32)
            log = tf.gather(tf.nn.log_softmax(logits), actions, axis=1, batch_dims=1)
            loss = -tf.reduce_mean(log * reward)
        w.assign_sub(0.5 * tape.gradient(loss, w))
        count.assign_add(1)
        return loss
    return make.step(step)


@program
def cropped_boxes(make):
    """Boxes that a layer finds are cut out of feature maps, and both are trained; one lies outside in part."""
    kernel, corners, v = make.weights("kernel", 3, 3, 1, 2), make.weights("corners", FEATURES, 4), make.weights("v", 8)
    nearest = make.weights("nearest", 6)

    def step(x, y, *_):
        rows = tf.shape(x)[0]
        images = tf.reshape(tf.tile(x, [1, FEATURES]) * 0.5, [rows, FEATURES, FEATURES, 1])
        with tf.GradientTape() as tape:
            maps = tf.nn.conv2d(images, kernel, 1, "SAME")
            boxes = tf.constant([-0.1, 0.1, 0.8, 0.9]) + 0.2 * tf.tanh(x @ corners)
            crops = tf.image.crop_and_resize(maps, boxes, tf.range(rows), [2, 2], extrapolation_value=0.25)
            lines = tf.image.crop_and_resize(maps, tf.stop_gradient(boxes), tf.range(rows), [1, 3], method="nearest")
            found = tf.linalg.matvec(tf.reshape(crops, [rows, 8]), v) + tf.linalg.matvec(tf.reshape(lines, [rows, 6]), nearest)
            loss = tf.reduce_mean(tf.square(found - y))
        variables = [kernel, corners, v, nearest]
        descend(tape, loss, variables)
        return loss
    return make.step(step)


@program
def turned_images(make):
    """Images are turned, each by its own angle, and enlarged with a filter, as augmentation does; the second time what a layer makes of them."""
    kernel, v = make.weights("kernel", 3, 3, 1, 2), make.weights("v", 32)

    def step(x, y, *_):
        rows = tf.shape(x)[0]
        images = tf.reshape(tf.tile(x, [1, FEATURES]) * 0.5, [rows, FEATURES, FEATURES, 1])
        sine, cosine, none, middle = tf.sin(y), tf.cos(y), tf.zeros_like(y), (FEATURES - 1) / 2
        transforms = tf.stack([cosine, -sine, middle * (1 - cosine + sine), sine, cosine, middle * (1 - sine - cosine), none, none], 1)
        turned = tf.raw_ops.ImageProjectiveTransformV3(images=images, transforms=transforms, output_shape=[FEATURES, FEATURES], fill_value=0.25,
                                                       interpolation="BILINEAR", fill_mode="REFLECT")
        with tf.GradientTape() as tape:
            maps = tf.image.resize(tf.nn.conv2d(turned, kernel, 1, "SAME"), [4, 4], "lanczos3", antialias=True)
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.reshape(maps, [rows, 32]), v) - y))
        descend(tape, loss, [kernel, v])
        return loss
    return make.step(step)


@program
def messages(make):
    """A graph's nodes are the examples: each hears the mean of those that send to it, and is pooled with those of its class."""
    w, between, v = make.weights("w", FEATURES, 5), make.weights("between", 5, 5), make.weights("v", 5)

    def step(x, y, ids, labels, *_):
        count = tf.shape(x)[0]
        receivers = tf.math.floormod(3 * tf.range(count) + 1, count)
        with tf.GradientTape() as tape:
            h = tf.tanh(x @ w)
            h = tf.tanh(h + tf.math.unsorted_segment_mean(h @ between, receivers, count))
            pooled = tf.math.unsorted_segment_sum(h, labels, CLASSES)
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.gather(pooled, labels), v) - y))
        descend(tape, loss, [w, between, v], 0.01)
        return loss
    return make.step(step)


@program
def hidden_words(make):
    """A masked language model: words that a mask hides are guessed. The mask is written in three ways, once as labels that are to be left out."""
    words, hidden = make.words, make.hidden
    table, w, out = make.weights("table", IDS, 4), make.weights("w", 4, 4), make.weights("out", 4, IDS)
    labels = tf.where(hidden, words, -100)
    seen = tf.where(hidden, tf.zeros_like(words), words)
    h = tf.tanh(tf.tensordot(tf.gather(table, seen), w, 1))
    h += tf.reduce_mean(h, 1, keepdims=True)
    at = tf.where(tf.not_equal(labels, -100))
    first = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.boolean_mask(labels, tf.not_equal(labels, -100)),
                                                           logits=tf.gather_nd(h, at) @ out)
    flat = tf.boolean_mask(tf.reshape(h, [-1, 4]), tf.reshape(tf.cast(hidden, tf.float32) > 0.5, [-1]))
    again = tf.gather(tf.reshape(h, [-1, 4]), tf.reshape(tf.where(tf.reshape(hidden, [-1])), [-1]))
    chosen = tf.dynamic_partition(words, tf.cast(hidden, tf.int32), 2)[1]
    second = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=chosen, logits=(flat + again) @ out)
    loss = tf.reduce_mean(first) + 0.5 * tf.reduce_sum(second) / (1.0 + tf.cast(tf.shape(at)[0], tf.float32))
    return loss, tf1.train.AdamOptimizer(0.05).minimize(loss)


@program_of_rows
def bags_of_words(make):
    """Sparse bags of ids, looked up without a value for empty ones: sums, means and roots, with weights that are trained too."""
    words, lengths = make.words, make.lengths
    table, other, weight, v = make.weights("table", IDS, 4), make.weights("other", IDS, 4), make.weights("weight", IDS), make.weights("v", 4)
    there = tf.sequence_mask(lengths, WORDS)
    bags = tf.sparse.from_dense(tf.where(there, 1 + words % (IDS - 1), 0))
    weights = tf.SparseTensor(bags.indices, tf.exp(tf.gather(weight, bags.values)), bags.dense_shape)
    pooled = tf.nn.embedding_lookup_sparse(table, bags, None, combiner="sqrtn") + tf.nn.embedding_lookup_sparse(other, bags, weights, combiner="mean")
    loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.tanh(pooled), v) - make.y))
    return loss, tf1.train.AdagradOptimizer(0.1).minimize(loss)


@program
def quantized(make):
    """Training that knows of quantization: weights a range a channel, activations one that follows a moving average, and one that is trained."""
    w, v = make.weights("w", FEATURES, 5), make.weights("v", 5)
    low, high = make.state("low", np.full(5, -0.6, np.float32), trainable=True), make.state("high", np.full(5, 0.5, np.float32), trainable=True)
    top, seen = make.state("top", np.float32(2), trainable=True), make.state("seen", np.float32(1))

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            x = tf.quantization.fake_quant_with_min_max_args(x, -2.5, 2.4, num_bits=6)
            h = tf.nn.relu(x @ tf.quantization.fake_quant_with_min_max_vars_per_channel(w, low, high, num_bits=4, narrow_range=True))
            seen.assign(0.8 * seen + 0.2 * tf.reduce_max(h))
            h = tf.quantization.fake_quant_with_min_max_vars(h, tf.zeros([]), seen)
            found = tf.linalg.matvec(h, v)
            found = tf.quantization.fake_quant_with_min_max_vars(found, -top, top)
            loss = tf.reduce_mean(tf.square(found - y))
        descend(tape, loss, [w, v, low, high, top])
        return loss
    return make.step(step)


@program
def spectra(make):
    """A loss on a spectrogram of windows that overlap, a filter in the frequency domain, a transform of two axes, and a complex layer."""
    kernel, gains, v = make.weights("kernel", FEATURES, 24), make.weights("gains", 13), make.weights("v", 5)
    real, imaginary = make.weights("real", 13, 5), make.weights("imaginary", 13, 5)

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            sound = tf.sin(x @ kernel)
            frames = tf.signal.stft(sound, 8, 4, fft_length=8)
            bins = tf.signal.rfft(sound)
            filtered = tf.signal.irfft(bins * tf.cast(gains, tf.complex64))
            layer = tf.matmul(bins, tf.complex(real, imaginary))
            waves = tf.math.real(tf.signal.fft2d(tf.cast(tf.reshape(sound, [-1, 4, 6]), tf.complex64)))
            found = tf.linalg.matvec(tf.abs(layer), v) + tf.reduce_mean(filtered * sound, 1)
            loss = tf.reduce_mean(tf.square(0.1 * found - y)) + 0.1 * tf.reduce_mean(tf.math.log(tf.abs(frames) + 0.1)) + 0.01 * tf.reduce_mean(tf.square(waves))
        descend(tape, loss, [kernel, gains, v, real, imaginary], 0.03)
        return loss
    return make.step(step)


@program
def ragged_words(make):
    """Sentences of other lengths, as ragged tensors: means, sums and maxima of their words, and attention by their rows' numbers."""
    words, lengths = make.words, make.lengths
    table, query, v = make.weights("table", IDS, 4), make.weights("query", 4), make.weights("v", 4)
    sentences = tf.RaggedTensor.from_tensor(words, lengths=lengths)
    found = tf.gather(table, sentences)
    scores = sentences.with_values(tf.exp(tf.linalg.matvec(tf.gather(table, sentences.values), query)))
    shares = scores.values / tf.gather(tf.reduce_sum(scores, 1), sentences.value_rowids())
    attended = tf.reduce_sum(sentences.with_values(shares[:, None] * tf.gather(table, sentences.values)), 1)
    values = tf.boolean_mask(tf.gather(table, words), tf.sequence_mask(lengths, WORDS))
    again = tf.reduce_sum(tf.RaggedTensor.from_row_lengths(tf.tanh(values), lengths), 1)
    pooled = tf.reduce_mean(found, 1) + tf.reduce_max(found, 1) + attended + 0.3 * again
    loss = tf.reduce_mean(tf.square(tf.linalg.matvec(pooled, v) - make.y))
    return loss, tf1.train.MomentumOptimizer(0.05, 0.8).minimize(loss)


@program
def transcripts(make):
    """Connectionist temporal classification: words of other lengths, and labels that are dense."""
    table, out = make.weights("table", IDS, 4), make.weights("out", 4, CLASSES + 1)
    logits = tf.tensordot(tf.tanh(tf.gather(table, make.words)), out, 1)
    labels = 1 + tf.stack([make.labels, (make.labels + 1) % CLASSES], 1)
    losses = tf.nn.ctc_loss(labels, logits, label_length=1 + tf.cast(make.flags, tf.int32), logit_length=tf.maximum(make.lengths, 3),
                            logits_time_major=False, blank_index=0)
    loss = tf.reduce_mean(losses)
    return loss, tf1.train.GradientDescentOptimizer(0.2).minimize(loss)


@program
def each_example(make):
    """tf.map_fn over the batch: a condition, a loop and a product in each example, one that looks at all others, and a sum of them."""
    table, w, v = make.weights("table", IDS, 4), make.weights("w", 4, 4), make.weights("v", 4)

    def one(example):
        words, length, flag = example
        rows = tf.gather(table, words) @ w
        _, state = tf.while_loop(lambda t, _: t < WORDS, lambda t, state: (t + 1, tf.tanh(0.5 * state + rows[t])), (0, tf.zeros([4])))
        mean = tf.reduce_sum(rows * tf.sequence_mask(length, WORDS, tf.float32)[:, None], 0) / tf.cast(length, tf.float32)
        return tf.cond(flag, lambda: tf.tanh(mean), lambda: tf.linalg.matvec(w, state))
    found = tf.map_fn(one, (make.words, make.lengths, make.flags), fn_output_signature=tf.float32)
    nearest = tf.map_fn(lambda row: tf.reduce_logsumexp(tf.linalg.matvec(found, row)), found)
    errors = tf.square(tf.linalg.matvec(found, v) - make.y) + 0.1 * nearest
    loss = tf.foldl(lambda total, error: total + error, errors, tf.constant(0.0)) / tf.cast(tf.shape(errors)[0], tf.float32)
    return loss, tf1.train.GradientDescentOptimizer(0.1).minimize(loss)


@program
def cropped_images(make):
    """Images that a stateless operation crops, each step elsewhere."""
    kernel, v, step = make.weights("kernel", 3, 3, 1, 4), make.weights("v", 4), tf1.train.get_or_create_global_step()
    seed = tf.stack([tf.cast(step, tf.int32), 7])
    images = tf.reshape(tf.sin(make.x[:, :, None] * make.x[:, None, :]), [-1, FEATURES, FEATURES, 1])
    padded = tf.pad(images, [[0, 0], [2, 2], [2, 2], [0, 0]])
    cropped = tf.image.stateless_random_crop(padded, tf.stack([tf.shape(images)[0], FEATURES, FEATURES, 1]), seed)
    found = tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(cropped, kernel, 1, "SAME")), [1, 2])
    loss = tf.reduce_mean(tf.square(tf.linalg.matvec(found, v) - make.y))
    return loss, tf1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)


def build(name, size=None):
    """The program in a graph of its own: its meta graph, and what trains it."""
    with tf.Graph().as_default() as graph:
        make = Makers(size)
        loss, train = PROGRAMS[name](make)
        loss, train = tf.identity(loss, "loss"), tf.group(train, name="train_all")
        variables = tf1.global_variables() + tf1.local_variables()
        init = tf1.variables_initializer(variables, name="init")
        saver = tf1.train.Saver(variables)
        meta = tf1.train.export_meta_graph(graph=graph, saver_def=saver.saver_def)
    for key, value in (("train_op", train.name), ("init_op", init.name), ("losses", loss.name)):
        del meta.collection_def[key].node_list.value[:]
        meta.collection_def[key].node_list.value.append(value)
    return meta, make, loss, train, init, variables


def write(name, folder, shares=None):
    """Builds the program's graph, trains it in TensorFlow, and leaves graph.meta, feeds.npz, expect.npz and case.json in `folder`. With `shares`
    the feeds' sizes are numbers: those of a share of the batch in graph.meta, those of the batch where TensorFlow trains."""
    folder.mkdir(parents=True, exist_ok=True)
    tf1.disable_eager_execution()
    meta, make, loss, train, init, variables = build(name, BATCH if shares else None)
    feeds = {name: make.data[name] for name in make.fed}
    with tf1.Session(graph=loss.graph, config=tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)) as session:
        session.run(init)
        losses = [session.run([loss, train], {f"{name}:0": array if name in WHOLE else array[step * BATCH:(step + 1) * BATCH] for name, array in feeds.items()})[0]
                  for step in range(STEPS)]
        final = session.run({variable.op.name: variable for variable in variables})
    if shares:
        meta = build(name, BATCH // shares)[0]
    (folder / "graph.meta").write_bytes(meta.SerializeToString(deterministic=True))
    np.savez(folder / "feeds.npz", **feeds)
    np.savez(folder / "expect.npz", loss=np.array(losses), **{f"var/{name}": value for name, value in final.items()})
    case = {"loss": "loss:0", "train_op": "train_all", "init_op": "init", "feeds": sorted(f"{name}:0" for name in feeds), "steps": STEPS, "batch": BATCH,
            "loss_is_sum": name in SUMS, "loss_rtol": 1e-4, "penalties": False, "by_batch": [], "whole_batches": name not in ROWS}
    (folder / "case.json").write_text(json.dumps(case, indent=1))


@program
def quotients_of_rows(make):
    """Adadelta on rows as Keras 3 divides them: where a divisor is 0, rows that no example names are quotients as well."""
    table, w = make.weights("table", IDS, 5, scale=0.5), make.weights("w", 5)
    squares, moves = make.state("squares", np.full((IDS, 5), 0.1, np.float32)), make.state("moves", np.full((IDS, 5), 0.1, np.float32))

    def divide(rows, by):
        none = tf.reduce_any(tf.logical_or(tf.equal(by, 0), tf.math.is_nan(by)), axis=1)

        def with_others():
            named = tf.scatter_nd(tf.expand_dims(rows.indices, 1), tf.ones(tf.shape(rows.indices), tf.bool), [IDS])
            indices = tf.squeeze(tf.where(tf.logical_or(named, none)), -1)
            values = tf.gather(tf.math.unsorted_segment_sum(rows.values, rows.indices, IDS), indices)
            return values / tf.gather(by, indices), tf.cast(indices, tf.int32)
        values, indices = tf.cond(tf.reduce_any(none), with_others, lambda: (rows.values / tf.gather(by, rows.indices), rows.indices))
        return tf.IndexedSlices(values, indices)

    def step(x, y, ids, *_):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.tanh(tf.gather(table, ids)), w) - y))
        rows, gradient = tape.gradient(loss, [table, w])
        squares.assign(0.9 * squares + 0.1 * tf.math.unsorted_segment_sum(tf.square(rows.values), rows.indices, IDS))
        scaled = tf.IndexedSlices(rows.values * tf.gather(tf.sqrt(moves + 1e-3), rows.indices), rows.indices)
        move = divide(scaled, tf.sqrt(squares + 1e-3))
        moves.assign(0.9 * moves + 0.1 * tf.math.unsorted_segment_sum(tf.square(move.values), move.indices, IDS))
        table.scatter_sub(tf.IndexedSlices(0.5 * move.values, move.indices))
        w.assign_sub(0.1 * gradient)
        return loss
    return make.step(step)


@program
def hashed_buckets(make):
    """Integers hashed as Keras' Hashing and feature columns do, of one digit to nineteen and a sign."""
    table, w = make.weights("table", 7, 5, scale=0.5), make.weights("w", 5)

    def bucket(ids):
        return tf.strings.to_hash_bucket_fast(tf.strings.as_string(ids), 7)

    def step(x, y, ids, *_):
        powers = tf.constant([0, 1, -37, 12345, -98765432, 100000000007, -31415926535897932, 838861313035456567], tf.int64)
        with tf.GradientTape() as tape:
            near = tf.reduce_mean(tf.gather(table, bucket(powers * tf.cast(ids, tf.int64)[:, None])), 1)
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.tanh(near + tf.gather(table, bucket(ids - 5))), w) - y))
        for variable, gradient in zip((table, w), tape.gradient(loss, [table, w])):
            variable.assign_sub(0.5 * tf.convert_to_tensor(gradient))
        return loss
    return make.step(step)


@program
def keyed_buckets(make):
    """Integers hashed with a key, as Hashing has them with a salt, and crossed with others, as HashedCrossing has them."""
    table, w = make.weights("table", 7, 5, scale=0.5), make.weights("w", 5)

    def step(x, y, ids, labels, *_):
        powers = tf.constant([0, 1, -37, 1234567, -12345678, 98765432, 100000000007, -31415926535897932, 838861313035456567], tf.int64)
        wide = powers * tf.cast(ids, tf.int64)[:, None]
        with tf.GradientTape() as tape:
            near = tf.reduce_mean(tf.gather(table, tf.strings.to_hash_bucket_strong(tf.strings.as_string(wide), 7, [133, -137])), 1)
            one = tf.gather(table, tf.strings.to_hash_bucket_strong(tf.strings.as_string(ids - 5), 7, [42, 42]))
            crossed = tf.sparse.cross_hashed([ids[:, None], labels[:, None], wide[:, 8:]], 7)
            both = tf.gather(table, tf.reshape(tf.sparse.to_dense(crossed), [-1]))
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.tanh(near + one + both), w) - y))
        for variable, gradient in zip((table, w), tape.gradient(loss, [table, w])):
            variable.assign_sub(0.5 * tf.convert_to_tensor(gradient))
        return loss
    return make.step(step)


@program
def rows_by_their_slots(make):
    """Adagrad on rows as tf_keras spells it out: distinct rows, divided by what their slots are then."""
    table, w = make.weights("table", IDS + 1, 4, scale=0.5), make.weights("w", 4)
    squares = make.state("squares", np.full((IDS + 1, 4), 0.1, np.float32))

    def step(x, y, ids, *_):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.tanh(tf.gather(table, ids)), w) - y))
        rows, gradient = tape.gradient(loss, [table, w])
        distinct, places = tf.unique(rows.indices)
        values = tf.math.unsorted_segment_sum(rows.values, places, tf.shape(distinct)[0])
        squares.scatter_add(tf.IndexedSlices(tf.square(values), distinct))
        table.scatter_add(tf.IndexedSlices(-0.1 * values / tf.sqrt(tf.gather(squares, distinct) + 1e-7), distinct))
        w.assign_sub(0.1 * gradient)
        return loss
    return make.step(step)


@program
def rows_in_turn(make):
    """The batch is a sequence: a state goes over its rows, in a loop that reads a variable."""
    w, u, v = make.weights("w", FEATURES, 5), make.weights("u", 5, 5), make.weights("v", 5)

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            rows = x @ w
            last = tf.while_loop(lambda i, state: i < tf.shape(rows)[0], lambda i, state: (i + 1, tf.tanh(tf.linalg.matvec(u, state) + rows[i])), [0, tf.zeros(5)])[1]
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(rows, v * last) - y))
        descend(tape, loss, [w, u, v])
        return loss
    return make.step(step)


@program
def hardest_examples(make):
    """As many of a batch's losses as a float says of its size: 0.3 of a share's rows is less than 0.3 of the batch's."""
    w, v = make.weights("w", FEATURES, 5), make.weights("v", 5)

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            losses = tf.square(predict(w, v, x) - y)
            count = tf.cast(0.3 * tf.cast(tf.shape(losses)[0], tf.float32), tf.int32)
            loss = tf.reduce_mean(tf.math.top_k(losses, count).values)
        descend(tape, loss, [w, v])
        return loss
    return make.step(step)


@program
def rate_by_batch_size(make):
    """A sum over the batch and a penalty as often as there are examples, with a rate that is divided by their number."""
    w, v = make.weights("w", FEATURES, 5), make.weights("v", 5)
    size = tf.cast(tf.shape(make.x)[0], tf.float32)
    loss = tf.reduce_sum(tf.square(predict(w, v, make.x) - make.y)) + size * 0.01 * (tf.nn.l2_loss(w) + tf.nn.l2_loss(v))
    return loss / size, tf1.train.GradientDescentOptimizer(0.1 / size).minimize(loss)


@program
def halves_in_turn(make):
    """A step on the first half of the batch, then one on the other."""
    w, v = make.weights("w", FEATURES, 5), make.weights("v", 5)

    def step(x, y, *_):
        half, total = tf.shape(x)[0] // 2, 0.0
        for part in (slice(None, half), slice(half, None)):
            with tf.GradientTape() as tape:
                loss = mean_square(w, v, x[part], y[part])
            descend(tape, loss, [w, v])
            total += loss
        return total / 2.0
    return make.step(step)


@program
def micro_batches(make):
    """Gradients of two examples after the other, added up by a loop that only the batch's size ends."""
    w, v = make.weights("w", FEATURES, 5), make.weights("v", 5)

    def step(x, y, *_):
        count = tf.shape(x)[0] // 2

        def body(i, by_w, by_v, total):
            part = slice(2 * i, 2 * (i + 1))
            with tf.GradientTape() as tape:
                loss = mean_square(w, v, x[part], y[part])
            more = tape.gradient(loss, [w, v])
            return i + 1, by_w + more[0], by_v + more[1], total + loss
        sums = tf.while_loop(lambda i, *_: i < count, body, (0, tf.zeros_like(w), tf.zeros_like(v), 0.0))[1:]
        by_w, by_v, loss = (total / tf.cast(count, tf.float32) for total in sums)
        w.assign_sub(0.1 * by_w)
        v.assign_sub(0.1 * by_v)
        return loss
    return make.step(step)


@program
def graph_attention(make):
    """Nodes of one graph attend to those they have an edge to, which a sparse matrix has; the batch asks for some of them."""
    table, near, far, v = make.weights("table", IDS, 4), make.weights("near", 4), make.weights("far", 4), make.weights("v", 4)
    edges = np.array([(i, j) for i in range(IDS) for j in range(IDS) if i == j or (3 * i + 5 * j) % 4 == 0], np.int64)
    adjacency = tf.SparseTensor(edges, np.linspace(0.5, 1, len(edges), dtype=np.float32), [IDS, IDS])

    def step(x, y, ids, *_):
        with tf.GradientTape() as tape:
            scores = adjacency * tf.linalg.matvec(table, near)[:, None]
            scores = scores.with_values(tf.nn.leaky_relu(scores.values + tf.gather(tf.linalg.matvec(table, far), edges[:, 1])))
            attended = tf.sparse.sparse_dense_matmul(tf.sparse.softmax(scores), table)
            heard = tf.sparse.sparse_dense_matmul(tf.sparse.transpose(scores), table)
            total = tf.sparse.reduce_sum(tf.sparse.concat(1, [scores, scores]), 1, keepdims=True)
            states = tf.tanh(attended + 0.1 * heard + 0.1 * total + tf.reduce_sum(tf.sparse.add(scores, tf.eye(IDS)), 1, keepdims=True))
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.gather(states, ids), v) - y))
        descend(tape, loss, [table, near, far, v])
        return loss
    return make.step(step)


@program
def penalty_through_pools(make):
    """The critic of a Wasserstein GAN: its gradient with respect to the images is to have the norm 1, behind a max pool."""
    kernel, v = make.weights("kernel", 3, 3, 1, 4), make.weights("v", 36)

    def step(x, y, *_):
        images = tf.sin(x[:, :, None] * x[:, None, :])[..., None]
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(images)
                pooled = tf.nn.max_pool2d(tf.nn.elu(tf.nn.conv2d(images, kernel, 1, "SAME")), 2, 2, "SAME")
                scores = tf.linalg.matvec(tf.reshape(pooled, [-1, 36]), v)
            gradient = inner.gradient(scores, images)
            norms = tf.sqrt(tf.reduce_sum(tf.square(gradient), [1, 2, 3]) + 1e-6)
            loss = tf.reduce_mean(tf.square(scores - y)) + 0.5 * tf.reduce_mean(tf.square(norms - 1))
        descend(tape, loss, [kernel, v])
        return loss
    return make.step(step)


@program
def proposals(make):
    """The best of boxes that do not overlap, and the features that they name."""
    corners, scores = make.weights("corners", IDS, 4, scale=1), make.weights("scores", IDS)
    table, w = make.weights("table", IDS, 5), make.weights("w", FEATURES, 5)

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            chosen, count = tf.raw_ops.NonMaxSuppressionV4(boxes=corners, scores=scores, max_output_size=4, iou_threshold=0.2, score_threshold=-10.0,
                                                           pad_to_max_output_size=True)
            kept = tf.sequence_mask(count, 4, tf.float32) * tf.sigmoid(tf.gather(scores, chosen))
            features = tf.linalg.matvec(tf.gather(table, chosen), kept, transpose_a=True)
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.tanh(x @ w), features) - y))
        descend(tape, loss, [scores, table, w])
        return loss
    return make.step(step)


@program
def smoothed_sequences(make):
    """Each example's values are smoothed by a system of three diagonals of its own."""
    w, v = make.weights("w", FEATURES, FEATURES), make.weights("v", FEATURES)

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            pull = tf.sigmoid(x @ w)
            diagonals = tf.stack([-pull, 1.0 + 2 * pull + 0.1 * tf.square(x), -tf.reverse(pull, [1])], 1)
            smooth = tf.linalg.tridiagonal_solve(diagonals, x[..., None])
            rough = tf.linalg.tridiagonal_matmul(diagonals, tf.tanh(smooth))
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(smooth[..., 0] + 0.2 * rough[..., 0], v) - y))
        descend(tape, loss, [w, v], 0.05)
        return loss
    return make.step(step)


@program
def layers_of_one_operation(make):
    """An LSTM as tf.contrib's fused cell makes it, with as many steps as the longest of all examples has."""
    table, w, b, v = make.weights("table", IDS, 4), make.weights("w", 7, 12), make.weights("b", 12), make.weights("v", 3)
    sentences, lengths = make.words, make.lengths
    peepholes = [make.weights(f"peephole{number}", 3) for number in range(3)]

    def step(x, y, *_):
        rows = tf.shape(x)[0]
        with tf.GradientTape() as tape:
            words = tf.transpose(tf.gather(table, sentences), [1, 0, 2])
            longest = tf.cast(tf.reduce_max(lengths), tf.int64)
            zeros = tf.zeros([rows, 3])
            parts = tf.raw_ops.BlockLSTM(seq_len_max=longest, x=words, cs_prev=zeros, h_prev=zeros, w=w, wci=peepholes[0], wcf=peepholes[1],
                                         wco=peepholes[2], b=b, use_peephole=True)
            states = tf.transpose(parts[6], [1, 0, 2])
            last = tf.gather(states, lengths - 1, batch_dims=1)
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(last, v) - y))
        descend(tape, loss, [table, w, b, v, *peepholes])
        return loss
    return make.step(step)


@program
def fixed_unigrams(make):
    """word2vec: negatives drawn by how often words are, which the graph has, and all of them as a check."""
    table, weights, biases = make.weights("table", IDS, 4), make.weights("weights", IDS, 4), make.weights("biases", IDS)

    def step(x, y, ids, labels, *_):
        with tf.GradientTape() as tape:
            true = tf.cast(labels, tf.int64)[:, None]
            drawn = tf.random.fixed_unigram_candidate_sampler(true, 1, 4, True, IDS, distortion=0.75,
                                                              unigrams=[float(3 + number % 4) for number in range(IDS)], seed=9)
            states = tf.gather(table, ids)
            loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(weights, biases, true, states, 4, IDS, sampled_values=drawn))
            every = tf.random.all_candidate_sampler(true, 1, IDS, True, seed=1)
            loss += 0.1 * tf.reduce_mean(tf.nn.nce_loss(weights, biases, true, states, IDS, IDS, sampled_values=every))
        descend(tape, loss, [table, weights, biases])
        return loss
    return make.step(step)


@program
def pools_of_drawn_windows(make):
    """Fractional max pooling (Graham, 2014), and the mean of such windows: with a seed TensorFlow draws them once."""
    kernel, v, u = make.weights("kernel", 3, 3, 1, 4), make.weights("v", 64), make.weights("u", 64)

    def step(x, y, *_):
        images = tf.sin(x[:, :, None] * x[:, None, :])[..., None]
        with tf.GradientTape() as tape:
            features = tf.nn.elu(tf.nn.conv2d(images, kernel, 1, "SAME"))
            largest = tf.raw_ops.FractionalMaxPool(value=features, pooling_ratio=[1, 1.44, 1.44, 1], deterministic=True, pseudo_random=True,
                                                   overlapping=True, seed=3, seed2=4)[0]
            # TensorFlow differentiates it where the batch is a number alone.
            average = tf.raw_ops.FractionalAvgPool(value=tf.stop_gradient(features), pooling_ratio=[1, 1.44, 1.44, 1], deterministic=True, seed=5, seed2=6)[0]
            scores = tf.linalg.matvec(tf.reshape(largest, [-1, 64]), v) + tf.linalg.matvec(tf.reshape(average, [-1, 64]), u)
            loss = tf.reduce_mean(tf.square(scores - y))
        descend(tape, loss, [kernel, v, u], 0.05)
        return loss
    return make.step(step)


@program
def ragged_categories(make):
    """Each item has several categories, whose vectors are one of several lengths: a ragged tensor that the graph has."""
    vectors, w, v = make.weights("vectors", CLASSES + 2, 4), make.weights("w", FEATURES, 4), make.weights("v", 4)
    categories = [[(item + number) % (CLASSES + 2) for number in range(1 + item % 3)] for item in range(IDS)]

    def step(x, y, ids, *_):
        with tf.GradientTape() as tape:
            of_items = tf.ragged.constant(categories, dtype=tf.int32)
            rows = of_items.with_flat_values(tf.gather(vectors, of_items.flat_values))
            dense = rows.to_tensor(shape=[None, 3, None])
            bags = tf.reduce_sum(tf.gather(dense, ids), 1) / tf.cast(tf.gather(of_items.row_lengths(), ids), tf.float32)[:, None]
            some = tf.reduce_sum(tf.gather(rows, [2, 0, 5]).flat_values, 0)
            offsets = tf.cast(tf.ragged.range([1, 3, 2]).flat_values, tf.float32)
            pairs = tf.sparse.reduce_sum(of_items.with_flat_values(tf.linalg.matvec(rows.flat_values, v)).to_sparse(), 1)
            scores = tf.linalg.matvec(tf.tanh(x @ w) + bags + 0.1 * some, v) + 0.1 * tf.gather(pairs, ids) + 0.01 * tf.reduce_sum(offsets)
            loss = tf.reduce_mean(tf.square(scores - y))
        descend(tape, loss, [vectors, w, v])
        return loss
    return make.step(step)


@program
def blocks_of_a_sparse_matrix(make):
    """A graph's edges within a block, and between two halves of its nodes."""
    table, v = make.weights("table", IDS, 4), make.weights("v", 4)
    edges = np.array([(i, j) for i in range(IDS) for j in range(IDS) if (3 * i + 5 * j) % 4 == 0], np.int64)
    strengths = make.weights("strengths", len(edges))
    moved = make.state("edges", edges)

    def step(x, y, ids, *_):
        with tf.GradientTape() as tape:
            known = tf.SparseTensor(edges, strengths, [IDS, IDS])
            within = tf.sparse.slice(known, [2, 1], [6, 9])
            # Places that are a variable's: how many are in the block is seen when it runs.
            found = tf.sparse.slice(tf.SparseTensor(moved.read_value(), strengths, [IDS, IDS]), [0, 3], [IDS, 20])
            # It is not differentiated.
            first, _ = tf.sparse.split(known.with_values(tf.stop_gradient(strengths)), num_split=2, axis=1)
            states = tf.pad(tf.sparse.sparse_dense_matmul(within, table[:9]), [[2, 3], [0, 0]]) + tf.sparse.sparse_dense_matmul(found, table[3:])
            states += tf.sparse.sparse_dense_matmul(first, table[:6])
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.tanh(tf.gather(states, ids)), v) - y))
        descend(tape, loss, [table, strengths, v])
        return loss
    return make.step(step)


@program
def mined_negatives(make):
    """Three times as many of the hardest negatives of the batch as it has positives (Liu et al., SSD, 2016), and what their examples' features cost."""
    w, v = make.weights("w", FEATURES, WORDS), make.weights("v", FEATURES)
    x, hidden = make.x, make.hidden

    def step(*_):
        with tf.GradientTape() as tape:
            positive = tf.cast(hidden, tf.float32)
            losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=positive, logits=x @ w)
            count = tf.reduce_sum(tf.cast(hidden, tf.int32))
            negatives = tf.reshape(losses * (1.0 - positive), [-1])
            hardest, at = tf.math.top_k(negatives, tf.minimum(3 * count, tf.size(hidden) - count))
            loss = (tf.reduce_sum(losses * positive) + tf.reduce_sum(hardest)) / tf.cast(count, tf.float32)
            loss += 0.1 * tf.reduce_mean(tf.square(tf.linalg.matvec(tf.gather(x, at // WORDS), v)))
        descend(tape, loss, [w, v])
        return loss
    return make.step(step)


@program
def called_as_kernels(make):
    """Variables whose names the compiler would give to functions: the second `kernel` of Keras' cells is `kernel_1`."""
    layers = [make.weights(f"{name}_{number}", FEATURES, FEATURES) for name in ("kernel", "constant", "update_step", "update_group", "accumulator") for number in (0, 1)]
    scale = tf.constant(make.numbers.normal(1, 0.1, FEATURES).astype(np.float32))

    hidden = make.x
    for layer in layers:
        hidden = tf.tanh(hidden @ layer) * scale
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(hidden, 1) - make.y))
    return loss, tf1.train.AdamOptimizer(0.01).minimize(loss, var_list=layers)


@program
def equilibrium(make):
    """A layer's state is its own input until no example's moves (Bai et al., Deep equilibrium models, 2019)."""
    w, v, inward = make.weights("w", 4, 4, scale=0.2), make.weights("v", 4), make.weights("inward", FEATURES, 4)

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            features = x @ inward
            state, moved = tf.zeros_like(features), tf.constant(1.0)
            state, _ = tf.while_loop(lambda state, moved: moved > 1e-2, lambda state, moved: step_of(state, features), [state, moved], maximum_iterations=12)
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(state, v) - y))
        descend(tape, loss, [w, v, inward])
        return loss

    def step_of(state, features):
        after = tf.tanh(state @ w + features)
        return after, tf.reduce_max(tf.abs(after - state))
    return make.step(step)


@program
def soft_ranks(make):
    """Scores of each example are ranked by isotonic regression (Blondel et al., Fast differentiable sorting and ranking, 2020)."""
    w, v = make.weights("w", FEATURES, FEATURES), make.weights("v", FEATURES)

    @tf.custom_gradient
    def regress(scores):
        nearest, pieces = tf.nn.isotonic_regression(scores, decreasing=True, axis=-1)
        same = tf.cast(tf.equal(pieces[:, :, None], pieces[:, None, :]), tf.float32)
        return nearest, lambda gradient: tf.linalg.matvec(same, gradient) / tf.reduce_sum(same, -1)

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            scores = x @ w
            order = tf.argsort(scores, direction="DESCENDING")
            ordered = tf.gather(scores, order, batch_dims=1) - tf.range(FEATURES, 0, -1, tf.float32)
            ranks = tf.gather(ordered - regress(ordered), tf.argsort(order), batch_dims=1)
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(ranks, v) - y))
        descend(tape, loss, [w, v], 0.02)
        return loss
    return make.step(step)


@program
def scores_of_best_paths(make):
    """A speech model's loss with the score of each example's best path beside it."""
    w, table = make.weights("w", 4, CLASSES + 1), make.weights("table", IDS, 4)
    sentences, lengths = make.words, make.lengths

    def step(x, y, ids, labels, *_):
        with tf.GradientTape() as tape:
            logits = tf.transpose(tf.gather(table, sentences) @ w, [1, 0, 2])
            _, path = tf.nn.ctc_greedy_decoder(logits, lengths)
            own = tf.nn.log_softmax(tf.gather(tf.transpose(logits, [1, 0, 2]), lengths - 1, batch_dims=1))
            loss = -tf.reduce_mean(tf.gather(own, labels, batch_dims=1) * (1.0 + 0.1 * tf.sigmoid(path[:, 0])))
        descend(tape, loss, [w, table])
        return loss
    return make.step(step)


@program
def detections(make):
    """The best boxes of each example, selected a class at a time, weigh what it says of the others."""
    w, v = make.weights("w", FEATURES, 3 * CLASSES), make.weights("v", CLASSES)

    def step(x, y, *_):
        boxes = tf.stack([x[:, :3], x[:, 1:4], x[:, :3] + 1.0, x[:, 1:4] + tf.abs(x[:, 2:5])], -1)[:, :, None]
        with tf.GradientTape() as tape:
            scores = tf.sigmoid(tf.reshape(x @ w, [-1, 3, CLASSES]))
            found = tf.image.combined_non_max_suppression(boxes, tf.stop_gradient(scores), 2, 4, iou_threshold=0.3, score_threshold=0.2, clip_boxes=False)
            weights = tf.reduce_mean(found.nmsed_scores, 1) + 0.1 * tf.cast(found.valid_detections, tf.float32)
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(tf.reduce_sum(scores, 1), v) * weights - y))
        descend(tape, loss, [w, v])
        return loss
    return make.step(step)


@program
def updated_slices(make):
    """Part of each example's features, and rows of a table, are others; they come in an order that a seed gives."""
    w, table, v = make.weights("w", FEATURES, 2), make.weights("table", IDS, FEATURES), make.weights("v", FEATURES)

    def step(x, y, ids, *_):
        with tf.GradientTape() as tape:
            changed = tf.raw_ops.TensorStridedSliceUpdate(input=x, begin=[0, 1], end=[0, 3], strides=[1, 1], value=tf.tanh(x @ w), begin_mask=1, end_mask=1)
            rows = tf.raw_ops.InplaceUpdate(x=table + 0.0, i=[1, 4], v=tf.zeros([2, FEATURES]))
            shuffled = tf.random.experimental.stateless_shuffle(tf.range(FEATURES), [3, 4])
            features = tf.gather(changed + tf.gather(tf.stop_gradient(rows), ids), shuffled, axis=1)
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(features, v) - y))
        descend(tape, loss, [w, v])
        return loss
    return make.step(step)


@program_of_rows
def rates_by_layer(make):
    """LAMB. As of each tf.function, its loss waits for all updates."""
    w, v, count = make.weights("w", FEATURES, 5), make.weights("v", 5), make.state("count", np.int32(0))
    slots = [(variable, make.state(f"m{number}", np.zeros(variable.shape, np.float32)), make.state(f"s{number}", np.zeros(variable.shape, np.float32)))
             for number, variable in enumerate((w, v))]

    def step(x, y, *_):
        with tf.GradientTape() as tape:
            loss = mean_square(w, v, x, y)
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, [w, v]), 1.0)
        steps = tf.cast(count.assign_add(1), tf.float32)
        for (variable, mean, square), gradient in zip(slots, gradients):
            mean.assign(0.9 * mean + 0.1 * gradient)
            square.assign(0.99 * square + 0.01 * tf.square(gradient))
            move = mean / (1 - 0.9**steps) / (tf.sqrt(square / (1 - 0.99**steps)) + 1e-3) + 0.01 * variable
            variable.assign_sub(0.1 * tf.clip_by_value(tf.math.divide_no_nan(tf.norm(variable), tf.norm(move)), 0.1, 10.0) * move)
        return loss
    return make.step(step)
