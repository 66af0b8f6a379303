"""TensorFlow's graph of a recipe (training_recipes.py), and what TensorFlow computes on it. Every read and update of a variable is ordered,
by data or by control edges, so that the graph has one right result.

  training_graphs.py RECIPE.json FOLDER    writes the graph, its data and TensorFlow's numbers, as test/models has them
"""
import contextlib
import json
import pathlib
import sys

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
RATE = 0.05


class Unsuitable(Exception):
    """A recipe that has no graph."""


class Builder:
    def __init__(self, recipe):
        self.recipe = recipe
        self.numbers = np.random.RandomState(recipe["seed"])
        self.rows = recipe["batch"] * recipe["steps"]
        self.feeds, self.fed, self.trained, self.count = {}, {}, {}, 0
        self.constants, self.again = [], None
        self.by_batch = set()  # variables that see each batch by itself: they count batches where gradients are accumulated
        self.each_batch = {}  # of them those that wait for no other update: the updates of each
        self.moving = []  # variables that follow values of each batch
        self.ready = []  # what the next statement waits for
        self.step = None
        self.build()

    # ---- Parts -----------------------------------------------------------------------------------------

    def constant(self, *shape, scale=1.0):
        if self.again:
            value = self.constants[self.again["constants"]]
            self.again["constants"] += 1
        else:
            value = self.numbers.normal(0, scale, shape).astype(np.float32)
            self.constants.append(value)
        return tf.constant(value)

    def feed(self, name, make, batched=True):
        """What the function (or array) `make` gives, as a placeholder; of a model that is made again, what stands for it."""
        if self.again:
            return self.again["feeds"][name]
        value = self.fed[name] = self.placeholder(name, make() if callable(make) else make, batched)
        return value

    def placeholder(self, name, array, batched):
        if self.recipe["constant_data"]:
            return tf.constant(array[:self.recipe["batch"]] if batched else array)
        self.feeds[name] = array
        return tf1.placeholder(array.dtype, [None, *array.shape[1:]] if batched else array.shape, name=name)

    def variable(self, name, initial, trainable=False):
        return tf1.get_variable(name, initializer=np.asarray(initial), trainable=trainable, use_resource=True)

    def extra(self, kind, initial):
        self.count += 1
        return self.variable(f"{kind}{self.count}", initial)

    def weights(self, block, suffix, *shape, scale=None, mean=0.0):
        scale = scale or max(shape[0] if shape else 1, 1) ** -0.5
        name = f"{block['name']}/{suffix}"
        if self.again:
            return self.again["variables"].get(name, self.trained[name])
        initial = np.asarray(mean + self.numbers.normal(0, scale, shape), np.float32)
        variable = self.variable(name, initial, trainable=True)
        self.trained[variable.op.name] = variable
        if block.get("l2"):
            self.penalties.append(block["l2"] * tf.nn.l2_loss(variable))
        return variable

    def like(self, variable):
        return np.zeros(variable.shape, np.float32)

    # ---- The model -------------------------------------------------------------------------------------

    def build(self):
        recipe = self.recipe
        self.penalties = []
        if any(statement.get("rate") == "fed" for statement in recipe["statements"]):
            self.fed_rate = self.feed("lr", np.float32(RATE), batched=False)
        h = self.forward()
        if not self.trained:
            raise Unsuitable("no variable is trained")
        self.hidden = h
        loss = self.finish(h)
        self.batch_loss = loss
        if self.penalties:
            loss = tf.add_n([loss, *self.penalties])
        self.loss = tf.identity(loss, "loss")
        names = list(self.trained)
        gradients = tf1.gradients(self.loss, list(self.trained.values()))
        if any(gradient is None for gradient in gradients):
            raise Unsuitable("a variable has no gradient")
        self.gradients = dict(zip(names, gradients))
        self.run_statements()
        with tf1.control_dependencies(self.ready):
            self.ready += [variable.assign_sub(0.2 * (variable - value)).op for variable, value in self.moving]
        self.train = tf.group(*self.ready, name="train_all")
        self.init = tf1.variables_initializer(self.all_variables(), name="init")
        self.saver = tf1.train.Saver(self.all_variables())

    def all_variables(self):
        return tf1.global_variables() + tf1.local_variables()

    def forward(self):
        h = self.feed("x", lambda: self.numbers.normal(0, 1, (self.rows, self.recipe["features"])).astype(np.float32))
        self.tables = {}
        for block in self.recipe["blocks"]:
            h = getattr(self, "block_" + block["kind"])(block, h)
        return h

    def loss_again(self, feeds=None, variables=None):
        """The same model once more: its loss over the batch, with other values of what is fed or of variables."""
        self.again = {"constants": 0, "feeds": {**self.fed, **(feeds or {})}, "variables": variables or {}}
        tables = self.tables
        try:
            return self.finish(self.forward())
        finally:
            self.again, self.tables = None, tables

    def block_vector(self, block, h):
        v = self.weights(block, "w", block["size"], scale=0.7)
        return tf.tanh(tf.matmul(h, self.constant(h.shape[1], block["size"], scale=int(h.shape[1]) ** -0.5)) * v)

    def block_scalar(self, block, h):
        return h * self.weights(block, "w", scale=0.3, mean=1.0)

    def block_dense(self, block, h):
        def compute(value):
            return tf.cast(value, block["compute"]) if block.get("compute") else value

        y = tf.matmul(compute(h), compute(self.weights(block, "w", int(h.shape[1]), block["units"])))
        if block["bias"]:
            y = y + compute(self.weights(block, "b", block["units"], scale=0.3))
        activation = block["activation"]
        return tf.cast(getattr(tf.nn, activation)(y) if activation else y, tf.float32)

    def block_table(self, block, h):
        table = self.weights(block, "w", block["rows"], block["width"], scale=0.7)
        self.tables[block["name"]] = table
        found = []
        for lookup in range(block["lookups"]):
            shape = (self.rows, block["several"]) if block["several"] else (self.rows,)
            ids = self.feed(f"ids_{block['name']}_{lookup}", lambda: self.numbers.randint(0, block["rows"], shape).astype(np.int32))
            rows = tf.nn.embedding_lookup(table, ids)
            found.append(tf.reduce_mean(rows, 1) if block["several"] else rows)
        return tf.concat([h, *found], 1)

    def block_pair(self, block, h):
        """Rows of two tables are added up, so that the gradients of both are the same rows."""
        found = []
        for name, count in zip("ab", block["rows"]):
            table = self.weights(block, name, count, block["width"], scale=0.7)
            if not found or not block["same"]:
                ids = self.feed(f"ids_{block['name']}_{name}", lambda: self.numbers.randint(0, min(block["rows"]), self.rows).astype(np.int32))
            found.append(tf.nn.embedding_lookup(table, ids))
        if block["scaled"]:
            found[1] = 0.5 * found[1]
        return tf.concat([h, tf.tanh(tf.add_n(found))], 1)

    def block_along_batch(self, block, h):
        """Rows that see other rows."""
        what, width = block["what"], int(h.shape[1])
        mean, variance = tf.nn.moments(h, [0])
        count = tf.shape(h)[0]
        if what == "center":
            return h - mean
        if what == "softmax":
            return 4.0 * h * tf.nn.softmax(h, 0)
        if what == "cumsum":
            return 0.2 * tf.cumsum(h, 0)
        if what == "reverse":
            return h + 0.5 * tf.reverse(h, [0])
        if what == "roll":
            return h - 0.5 * tf.roll(h, 1, 0)
        if what == "shift":
            return h + 0.5 * tf.concat([tf.zeros_like(h[:1]), h[:-1]], 0)
        if what == "permute":
            return h + 0.5 * tf.gather(h, self.feed(f"{block['name']}_permutation", self.permutations))
        if what == "sort":
            return tf.sort(h, 0)
        if what == "maximum":
            return h - tf.reduce_max(h, 0)
        if what == "segments":
            numbers = self.feed(f"{block['name']}_segments", lambda: self.numbers.randint(0, 3, self.rows).astype(np.int32))
            return h + 0.5 * tf.gather(tf.math.unsorted_segment_mean(h, numbers, 3), numbers)
        if what == "attention":
            return h + tf.matmul(tf.nn.softmax(0.1 * tf.matmul(h, h, transpose_b=True)), h)
        if what == "halves":
            return h + 0.5 * tf.concat([h[count // 2:], h[:count // 2]], 0)
        if what == "first_row":
            return h + tf.tanh(h[0])
        if what == "strides":
            return tf.reshape(tf.stack([h[::2] + h[1::2], h[::2] - h[1::2]], 1), [-1, width])
        if what == "number":
            return h + 0.1 * tf.cast(tf.range(count), tf.float32)[:, None]
        if what == "condition":
            return tf1.cond(tf.reduce_mean(h) > 0.0, lambda: 1.5 * h, lambda: tf.tanh(h))
        if what == "chosen":
            chosen = self.feed(f"{block['name']}_chosen", lambda: self.numbers.rand(self.rows) < 0.7)
            return h + 0.3 * tf.reduce_sum(tf.boolean_mask(h, chosen), 0) / (1.0 + tf.reduce_sum(tf.cast(chosen, tf.float32)))
        if what == "fused_normalize":
            y, mean, variance = tf1.nn.fused_batch_norm(h[:, None, None, :], np.full(width, 0.9, np.float32), np.full(width, 0.1, np.float32),
                                                        epsilon=0.1)
            y = tf.reshape(y, [-1, width])
        else:
            y = (h - mean) * tf1.rsqrt(variance + 0.1)
        if what != "normalize" and not self.again:
            moving = [self.variable(f"{block['name']}/mean", np.zeros(width, np.float32)), self.variable(f"{block['name']}/variance", np.ones(width, np.float32))]
            self.moving += [(variable, value) for variable, value in zip(moving, (mean, variance))]
        return y

    def permutations(self):
        return np.concatenate([self.numbers.permutation(self.recipe["batch"]) for _ in range(self.recipe["steps"])]).astype(np.int32)

    def block_tied(self, block, h):
        table = self.tables.get(block["table"])
        if table is None:
            raise Unsuitable("no table to share")
        return tf.tanh(tf.matmul(tf.matmul(h, self.constant(h.shape[1], table.shape[1], scale=0.5)), table, transpose_b=True))

    def block_layer_norm(self, block, h):
        mean, variance = tf.nn.moments(h, [1], keepdims=True)
        return ((h - mean) * tf1.rsqrt(variance + 0.1) * self.weights(block, "gamma", int(h.shape[1]), scale=0.2, mean=1.0) +
                self.weights(block, "beta", int(h.shape[1]), scale=0.2))

    def finish(self, h):
        kind, width = self.recipe["loss"]["kind"], 3
        y = tf.matmul(h, self.constant(h.shape[1], width, scale=int(h.shape[1]) ** -0.5))
        if kind == "softmax":
            labels = self.feed("labels", lambda: self.numbers.randint(0, width, self.rows).astype(np.int32))
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=y)
        elif kind == "logistic":
            labels = self.feed("labels", lambda: self.numbers.randint(0, 2, (self.rows, width)).astype(np.float32))
            losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=y)
        elif kind == "l2":
            target = self.feed("y", lambda: self.numbers.normal(0, 1, (self.rows, width)).astype(np.float32))
            total = tf.nn.l2_loss(y - target)
            return total if self.recipe["loss"]["sum"] else total / tf.cast(tf.shape(y)[0], tf.float32)
        else:
            target = self.feed("y", lambda: self.numbers.normal(0, 1, (self.rows, width)).astype(np.float32))
            error = y - target
            losses = tf.square(error) if kind == "square" else tf.where(tf.abs(error) < 1.0, 0.5 * tf.square(error), tf.abs(error) - 0.5)
        return tf.reduce_sum(losses) * 0.1 if self.recipe["loss"]["sum"] else tf.reduce_mean(losses)

    # ---- What a step does with the gradients -----------------------------------------------------------

    def run_statements(self):
        gradients = [part for gradient in self.gradients.values()
                     for part in ([gradient.values, gradient.indices] if isinstance(gradient, tf.IndexedSlices) else [gradient])]
        self.ready = [part.op for part in gradients] + [self.loss.op]
        statements = [statement for statement in self.recipe["statements"] if self.members(statement)]
        if not any(statement["kind"] == "optimizer" for statement in statements) and not statements:
            raise Unsuitable("nothing is updated")
        with tf1.control_dependencies(self.ready):
            self.old = {name: variable.read_value() for name, variable in self.trained.items()
                        if any(s["kind"] in ("old", "delta", "norm_of_update") and name in s["of"] for s in statements)}
            early = []
            for statement in statements:
                early.append({name: self.gradients[name] for name in self.members(statement)})
                for transform in statement.get("transforms", []):
                    if not transform["early"] or transform["kind"] in ("smooth", "optimistic"):
                        break
                    self.transform(transform, early[-1])
        waits = list(self.ready) + [value.op for value in self.old.values()]
        for gradients in early:
            for gradient in gradients.values():
                waits.append(gradient.values.op if isinstance(gradient, tf.IndexedSlices) else gradient.op)
        self.ready = waits
        before, done = None, set()
        for number, (statement, gradients) in enumerate(zip(statements, early)):
            waits = before if statement.get("beside") and before is not None else self.ready
            before, known = list(waits), set(self.by_batch)
            with tf1.control_dependencies(waits), tf1.variable_scope(f"statement{number}"):
                updates = getattr(self, "do_" + statement["kind"])(statement, gradients)
            updates = [op for op in (u.op if isinstance(u, tf.Tensor) or hasattr(u, "op") else u for u in updates) if op is not None]
            if done.isdisjoint(waits):
                self.each_batch |= {name: updates for name in self.by_batch - known}
            done.update(updates)
            self.ready = updates + (list(self.ready) if waits is not self.ready else [])
            if not self.ready:
                self.ready = list(before)

    def members(self, statement):
        return [name for name in statement["of"] if name in self.trained]

    @contextlib.contextmanager
    def after(self, *operations):
        with tf1.control_dependencies(list(operations)):
            yield

    # ---- Gradients -------------------------------------------------------------------------------------

    def dense(self, gradient):
        return tf.convert_to_tensor(gradient)

    def transform(self, transform, gradients):
        kind = transform["kind"]
        if kind == "clip_by_global_norm":
            clipped, _ = tf.clip_by_global_norm(list(gradients.values()), 0.1)
            gradients.update(zip(gradients, clipped))
            return
        for name in gradients:
            gradients[name] = getattr(self, "transform_" + kind)(gradients[name], self.trained[name])

    def transform_clip_by_value(self, g, w):
        if isinstance(g, tf.IndexedSlices):  # each row's own value: what is left out of the sum of equal rows is another thing
            g = self.dense(g)
        return tf.clip_by_value(g, -0.02, 0.03)

    def transform_clip_by_norm(self, g, w):
        return tf.clip_by_norm(self.dense(g), 0.1)

    def transform_centralize(self, g, w):
        g = self.dense(g)
        return g - tf.reduce_mean(g, list(range(len(g.shape) - 1)) if len(g.shape) > 1 else None, keepdims=True) if len(g.shape) else g * 0.5

    def transform_decay(self, g, w):
        return self.dense(g) + 0.1 * w

    def transform_normalize(self, g, w):
        g = self.dense(g)
        return g / (tf.norm(g) + 0.1)

    def transform_scale(self, g, w):
        return tf.IndexedSlices(g.values * 0.5, g.indices, g.dense_shape) if isinstance(g, tf.IndexedSlices) else g * 0.5

    def transform_standardize(self, g, w):
        g = self.dense(g)
        return 0.1 * (g - tf.reduce_mean(g)) / (tf.math.reduce_std(g) + 0.1)

    def transform_adaptive_clip(self, g, w):
        g = self.dense(g)
        most = 0.02 * tf.maximum(tf.norm(w + 0.0), 1e-3)
        return g * tf.minimum(1.0, most / tf.maximum(tf.norm(g), 1e-6))

    def transform_smooth(self, g, w):
        average = self.extra("smooth", self.like(w))
        update = average.assign(0.9 * average + 0.1 * self.dense(g))
        with self.after(update):
            return average.read_value()

    def transform_optimistic(self, g, w):
        previous = self.extra("previous", self.like(w))
        g = self.dense(g)
        result = 2.0 * g - previous
        with self.after(result):
            update = previous.assign(g)
        with self.after(update):
            return tf.identity(result)

    def transform_symmetric(self, g, w):
        """A gradient beside its own linear function."""
        g = self.dense(g)
        return g + 0.1 * tf.reverse(g, [0]) if len(g.shape) else g + g

    def transform_maximum(self, g, w):
        g = self.dense(g)
        return g / (tf.reduce_max(tf.abs(g)) + 0.1)

    # ---- Optimizers ------------------------------------------------------------------------------------

    def rate(self, kind, value=RATE):
        """The learning rate; what moves on at the end of the statement is appended to self.moves."""
        if kind == "constant":
            return value
        if kind == "fed":
            return self.fed_rate
        if kind == "variable":
            rate = self.extra("rate", np.float32(value))
            result = rate.read_value()
            self.moves.append(lambda: rate.assign(rate * 0.9))
            return result
        step = self.extra("step", np.int64(0))
        self.moves.append(lambda: step.assign_add(1))
        count = step.read_value()
        if kind == "exponential":
            return value * tf.pow(0.9, tf.cast(count, tf.float32) / 2)
        if kind == "polynomial":
            return (value - 0.01) * (1 - tf.minimum(tf.cast(count, tf.float32), 4.0) / 4) ** 2 + 0.01
        if kind == "piecewise":
            return tf.where(count < 1, value, tf.where(count < 3, value / 2, value / 4))
        if kind == "cosine":
            return 0.5 * value * (1 + tf.cos(3.1415927 * tf.minimum(tf.cast(count, tf.float32), 10.0) / 10))
        if kind == "inverse_time":
            return value / (1 + 0.5 * tf.cast(count, tf.float32))
        return value * tf.minimum(1.0, tf.cast(count + 1, tf.float32) / 4)

    def do_optimizer(self, statement, gradients):
        gradients = dict(gradients)
        late = False
        for transform in statement["transforms"]:
            late = late or not transform["early"] or transform["kind"] in ("smooth", "optimistic")
            if late:
                self.transform(transform, gradients)
        if statement["dense"]:
            gradients = {name: self.dense(gradient) for name, gradient in gradients.items()}
        self.moves = []
        updates = getattr(self, "apply_" + statement["family"])(statement, gradients)
        for move in self.moves:
            with tf1.control_dependencies(updates):
                updates = [*updates, move().op]
        return updates

    def pairs(self, gradients):
        return [(gradient, self.trained[name]) for name, gradient in gradients.items()]

    def apply_tf1(self, statement, gradients):
        settings, steps = dict(statement["settings"]), None
        if statement["name"] == "AdagradDA":
            steps = settings["global_step"] = self.extra("step", np.int64(0))
        optimizer = getattr(tf1.train, statement["name"] + "Optimizer")(self.rate(statement["rate"]), **settings)
        return [optimizer.apply_gradients(self.pairs(gradients), steps, name="apply")]

    def apply_keras_legacy(self, statement, gradients):
        import tf_keras
        rate = self.rate(statement["rate"])
        optimizer = getattr(tf_keras.optimizers.legacy, statement["name"])(rate if isinstance(rate, float) else lambda: rate, **statement["settings"])
        return [optimizer.apply_gradients(self.pairs(gradients), experimental_aggregate_gradients=False)]

    def apply_keras(self, statement, gradients):
        """In a function, whose updates come one after another: outside, nothing orders them."""
        import tf_keras
        optimizer = getattr(tf_keras.optimizers, statement["name"])(RATE, jit_compile=False, **statement["settings"])
        variables = [self.trained[name] for name in gradients]
        with tf1.control_dependencies(None):
            optimizer.build(variables)

        @tf.function(autograph=False)
        def apply(gradients):
            optimizer.apply_gradients(list(zip(gradients, variables)), skip_gradients_aggregation=True)
            return tf.constant(0)
        return [apply([gradients[name] for name in gradients]).op]

    def apply_written(self, statement, gradients):
        """Spelled out, an update after another."""
        if statement["name"] == "scatter_sgd":
            rate = self.rate(statement["rate"])
            return [variable.scatter_sub(tf.IndexedSlices(rate * gradient.values, gradient.indices)).op
                    if isinstance(gradient, tf.IndexedSlices) else variable.assign_sub(rate * gradient).op
                    for gradient, variable in self.pairs(gradients)]
        rate = tf.convert_to_tensor(self.rate(statement["rate"]))
        write = getattr(self, "write_" + statement["name"])
        updates = []
        for name, gradient in gradients.items():
            variable, gradient = self.trained[name], self.dense(gradient)
            slots = []

            def slot(initial=None, variable=variable, slots=slots):
                slots.append(self.extra("slot", np.zeros(variable.shape, np.float32) if initial is None else np.asarray(initial, np.float32)))
                return slots[-1]
            if statement.get("function"):
                run = self.in_function(write, variable, slot)
                with tf1.control_dependencies(updates):
                    updates = [run(gradient, rate).op]
            else:
                # It assigns before it uses its gradient, which may have been made from the variable's value.
                before = [*updates, gradient] if statement["name"] == "adamw" else updates
                with tf1.control_dependencies(before):
                    updates = [self.in_sequence(write, gradient, variable, rate, slot)]
        return updates

    def in_sequence(self, write, gradient, variable, rate, slot):
        """Runs what a generator yields, one operation behind another; gradient and rate are known before."""
        contexts = contextlib.ExitStack()
        update = None
        for update in write(gradient, variable, rate, slot):
            contexts.enter_context(tf1.control_dependencies([update]))
        contexts.close()
        return update.op if hasattr(update, "op") else update

    def in_function(self, write, variable, slot):
        """The same as a tf.function, which orders its updates by itself."""
        with tf1.control_dependencies(None):
            slots = [slot(*arguments) for arguments in self.slots_of(write, variable)]

        @tf.function(autograph=False)
        def apply(gradient, rate):
            left = iter(slots)
            for _ in write(gradient, variable, rate, lambda *_: next(left)):
                pass
            return tf.constant(0)
        return apply

    def slots_of(self, write, variable):
        """The arguments of the slots that an optimizer asks for, before its first update."""
        asked = []

        class Asked(Exception):
            pass
        dummies = tf.Graph()
        with dummies.as_default():
            zero = tf.zeros(variable.shape)

            def slot(*arguments):
                asked.append(arguments)
                initial = np.zeros(variable.shape, np.float32) if not arguments else np.asarray(arguments[0], np.float32)
                return tf1.get_variable(f"s{len(asked)}", initializer=initial, use_resource=True)
            own = tf1.get_variable("own", initializer=np.zeros(variable.shape, np.float32), use_resource=True)
            for _ in write(zero, own, tf.constant(0.1), slot):
                pass
        return asked

    # Each yields its operations in order: between two yields nothing is updated.

    def write_sgd(self, g, w, rate, slot):
        yield w.assign_sub(rate * g)

    def write_sgd_assign(self, g, w, rate, slot):
        yield w.assign(w - rate * g)

    def write_momentum(self, g, w, rate, slot):
        m = slot()
        yield m.assign(0.9 * m + g)
        yield w.assign_sub(rate * m)

    def write_momentum_assign(self, g, w, rate, slot):
        m = slot()
        new = 0.9 * m + rate * g
        yield m.assign(new)
        yield w.assign(w - new)

    def write_nesterov(self, g, w, rate, slot):
        m = slot()
        yield m.assign_add(g - 0.1 * m)
        yield w.assign(w - rate * (g + 0.9 * m))

    def write_adam(self, g, w, rate, slot):
        m, v, t = slot(), slot(), slot(0.0)
        yield t.assign_add(1.0)
        yield m.assign_add((g - m) * 0.1)
        yield v.assign_add((tf.square(g) - v) * 0.01)
        scale = rate * tf.sqrt(1 - tf.pow(0.99, t)) / (1 - tf.pow(0.9, t))
        yield w.assign_sub(scale * m / (tf.sqrt(v) + 1e-2))

    def write_adamw(self, g, w, rate, slot):
        m, v = slot(), slot()
        yield w.assign(w * 0.99)
        yield m.assign(0.9 * m + 0.1 * g)
        yield v.assign(0.99 * v + 0.01 * g * g)
        yield w.assign(w - rate * m * tf1.rsqrt(v + 1e-3))

    def write_lion(self, g, w, rate, slot):
        m = slot()
        yield w.assign_sub(0.1 * rate * tf.tanh(100.0 * (0.9 * m + 0.1 * g)))
        yield m.assign(0.99 * m + 0.01 * g)

    def write_rmsprop(self, g, w, rate, slot):
        v = slot(np.ones(w.shape))
        yield v.assign(0.9 * v + 0.1 * tf.square(g))
        yield w.assign_sub(rate * g / (tf.sqrt(v) + 1e-3))

    def write_centered(self, g, w, rate, slot):
        v, mean = slot(np.ones(w.shape)), slot()
        yield mean.assign(0.9 * mean + 0.1 * g)
        yield v.assign(0.9 * v + 0.1 * tf.square(g))
        yield w.assign_sub(rate * g * tf1.rsqrt(v - tf.square(mean) + 1e-2))

    def write_adagrad(self, g, w, rate, slot):
        a = slot(np.full(w.shape, 0.1))
        yield a.assign_add(g * g)
        yield w.assign_sub(rate * g / tf.sqrt(a))

    def write_lars(self, g, w, rate, slot):
        m = slot()
        trust = 0.1 * tf.norm(w + 0.0) / (tf.norm(g) + 0.01 * tf.norm(w + 0.0) + 1e-3)
        yield m.assign(0.9 * m + rate * trust * g)
        yield w.assign_sub(m)

    def write_adafactor(self, g, w, rate, slot):
        if len(w.shape) < 2:
            yield from self.write_rmsprop(g, w, rate, slot)
            return
        rows, columns = slot(np.ones(w.shape[0])), slot(np.ones(w.shape[1]))
        square = tf.square(g) + 1e-3
        yield rows.assign(0.9 * rows + 0.1 * tf.reduce_mean(square, 1))
        yield columns.assign(0.9 * columns + 0.1 * tf.reduce_mean(square, 0))
        v = rows[:, None] * columns[None, :] / tf.reduce_mean(rows)
        u = g * tf1.rsqrt(v)
        u = u / tf.maximum(1.0, tf.sqrt(tf.reduce_mean(tf.square(u))))
        yield w.assign_sub(rate * u)

    def write_adadelta(self, g, w, rate, slot):
        a, d = slot(), slot()
        yield a.assign(0.9 * a + 0.1 * g * g)
        change = g * tf.sqrt(d + 1e-3) * tf1.rsqrt(a + 1e-3)
        yield w.assign_sub(rate * change)
        yield d.assign(0.9 * d + 0.1 * change * change)

    def write_heavy_ball(self, g, w, rate, slot):
        """Of two values of the variable itself."""
        previous = slot()
        old = w.read_value()
        new = old - rate * g + 0.1 * (old - previous)
        yield w.assign(new)
        yield previous.assign(old)

    def write_average_gradient(self, g, w, rate, slot):
        total, t = slot(), slot(0.0)
        yield total.assign_add(g)
        yield t.assign_add(1.0)
        yield w.assign_sub(rate * total / t)

    def write_lamb(self, g, w, rate, slot):
        m, v = slot(), slot()
        yield m.assign(0.9 * m + 0.1 * g)
        yield v.assign(0.95 * v + 0.05 * g * g)
        change = m / (tf.sqrt(v) + 0.05) + 0.01 * w
        yield w.assign_sub(0.5 * rate * change * tf.norm(w + 0.0) / (tf.norm(change) + 0.1))

    def write_yogi(self, g, w, rate, slot):
        m, v = slot(), slot(np.full(w.shape, 0.1))
        yield m.assign(0.9 * m + 0.1 * g)
        yield v.assign_sub(0.05 * tf.tanh(100.0 * (v - g * g)) * g * g)
        yield w.assign_sub(rate * m / (tf.sqrt(tf.abs(v)) + 1e-2))

    def write_adan(self, g, w, rate, slot):
        previous, m, d = slot(), slot(), slot()
        difference = g - previous
        yield m.assign(0.9 * m + 0.1 * g)
        yield d.assign(0.8 * d + 0.2 * difference)
        yield w.assign_sub(rate * (m + 0.5 * d))
        yield previous.assign(g)

    def write_rprop(self, g, w, rate, slot):
        step, previous = slot(np.full(w.shape, 0.01)), slot()
        agrees = tf.tanh(1e3 * g * previous)
        yield step.assign(tf.clip_by_value(step * (1.0 + 0.2 * agrees), 1e-4, 0.1))
        yield previous.assign(g)
        yield w.assign_sub(step * tf.tanh(100.0 * g))

    def write_quasi_hyperbolic(self, g, w, rate, slot):
        m = slot()
        yield m.assign_add(0.1 * (g - m))
        yield w.assign_sub(rate * (0.3 * g + 0.7 * m))

    def write_barzilai_borwein(self, g, w, rate, slot):
        """A step's length of what changed since the last one."""
        point, gradient = slot(), slot()
        change, of_gradient = w - point, g - gradient
        length = tf.clip_by_value(tf.abs(tf.reduce_sum(change * of_gradient)) / (tf.reduce_sum(of_gradient * of_gradient) + 0.1), 1e-3, 0.1)
        old = w.read_value()
        yield w.assign(old - length * g)
        yield point.assign(old)
        yield gradient.assign(g)

    # ---- Other updates ---------------------------------------------------------------------------------

    def target(self, statement):
        return self.trained[self.members(statement)[0]]

    def sequence(self, *updates):
        """Functions that make operations, one behind the other."""
        contexts, done = contextlib.ExitStack(), []
        for update in updates:
            done.append(update())
            contexts.enter_context(tf1.control_dependencies([done[-1]]))
        contexts.close()
        return done

    def do_old(self, statement, _):
        w = self.target(statement)
        kept = self.extra("old", self.like(w))
        return [kept.assign(self.old[w.op.name])]

    def do_new(self, statement, _):
        w = self.target(statement)
        kept = self.extra("new", self.like(w))
        return [kept.assign(w if statement["form"] % 2 else w.read_value() * 2.0)]

    def do_history(self, statement, _):
        w = self.target(statement)
        first, second = self.extra("history", self.like(w)), self.extra("history", self.like(w))
        if statement["form"] % 2:
            return self.sequence(lambda: second.assign(first), lambda: first.assign(w))
        new, old = w.read_value(), first.read_value()
        with self.after(new, old):
            return self.sequence(lambda: first.assign(new), lambda: second.assign(old))

    def do_swap(self, statement, _):
        w = self.target(statement)
        other = self.extra("other", np.full(w.shape, 0.5, np.float32))
        if statement["form"] % 2:
            third = self.extra("other", np.full(w.shape, 0.25, np.float32))
            a, b = other.read_value(), third.read_value()
            with self.after(a, b):
                return self.sequence(lambda: other.assign(b), lambda: third.assign(a))
        a, b = w.read_value(), other.read_value()
        with self.after(a, b):
            return self.sequence(lambda: w.assign(b), lambda: other.assign(a * 0.9))

    def do_decay(self, statement, _):
        w = self.target(statement)
        form = statement["form"]
        return [w.assign(w * 0.9) if form == 0 else w.assign_sub(0.1 * w) if form == 1 else w.assign(w - 0.05 * tf.sign(w) * tf.square(w))
                if form == 2 else w.assign(0.9 * w.read_value())]

    def do_project(self, statement, _):
        w = self.target(statement)
        form = statement["form"]
        if form == 0:
            return [w.assign(tf.clip_by_value(w, -0.8, 0.8))]
        if form == 1 or not w.shape.rank:
            return [w.assign(tf.clip_by_norm(w, 0.9))]
        if form == 2:
            return [w.assign(w / tf.maximum(tf.norm(w + 0.0), 1.0))]
        return [w.assign(w - tf.reduce_mean(w))]

    def do_ema(self, statement, _):
        variables = [self.trained[name] for name in self.members(statement)]
        return [tf1.train.ExponentialMovingAverage(0.9, zero_debias=statement["form"] == 3).apply(variables)]

    def do_ema_written(self, statement, _):
        w = self.target(statement)
        average = self.extra("average", self.like(w))
        return [average.assign_sub((average - w) * 0.1) if statement["form"] % 2 else average.assign(0.9 * average + 0.1 * w)]

    def do_polyak(self, statement, _):
        w = self.target(statement)
        average, t = self.extra("average", self.like(w)), self.extra("count", np.float32(0))
        return self.sequence(lambda: t.assign_add(1.0), lambda: average.assign_add((w - average) / t))

    def do_loss(self, statement, _):
        kept = self.extra("loss", np.float32(0))
        self.by_batch.add(kept.op.name)
        form = statement["form"]
        return [kept.assign(self.loss) if form == 0 else kept.assign(0.9 * kept + 0.1 * self.loss) if form == 1 else
                kept.assign_add(self.loss) if form == 2 else kept.assign(tf.maximum(kept, self.loss))]

    def do_norm(self, statement, gradients):
        kept = self.extra("norm", np.float32(0))
        g = [self.dense(gradient) for gradient in gradients.values()]
        form = statement["form"]
        value = (tf.linalg.global_norm(g) if form == 0 else tf.reduce_max(tf.abs(g[0])) if form == 1 else tf.reduce_mean(g[0]) if form == 2 else
                 tf.add_n([tf.nn.l2_loss(one) for one in g]))
        return [kept.assign(value)]

    def do_gradient(self, statement, gradients):
        w = self.target(statement)
        kept = self.extra("gradient", self.like(w))
        g = self.dense(gradients[w.op.name])
        form = statement["form"]
        return [kept.assign(g) if form == 0 else kept.assign_add(g) if form == 1 else kept.assign(2.0 * g - kept) if form == 2 else
                kept.assign(tf.square(g))]

    def do_lookahead(self, statement, _):
        w = self.target(statement)
        slow, t = self.extra("slow", self.like(w)), self.extra("count", np.int64(0))
        return self.sequence(lambda: t.assign_add(1),
                             lambda: slow.assign(tf.where(tf.equal(t % 2, 0), slow + 0.5 * (w - slow), slow)),
                             lambda: w.assign(tf.where(tf.equal(t % 2, 0), slow, w)))

    def do_scatter(self, statement, gradients):
        w = self.target(statement)
        if not w.shape.rank:
            return [w.assign_add(0.01)]
        form = statement["form"]
        own = gradients[w.op.name]
        if form == 3:  # counts how often rows are used
            if not isinstance(own, tf.IndexedSlices):
                form = 0
            else:
                kept = self.extra("uses", np.zeros(w.shape[0], np.float32))
                self.by_batch.add(kept.op.name)
                return [kept.scatter_add(tf.IndexedSlices(tf.ones_like(own.indices, tf.float32), own.indices)).op]
        rows = sorted({0, w.shape[0] // 2, w.shape[0] - 1})
        values = tf.gather(w, rows) * 0.5
        slices = tf.IndexedSlices(values, tf.constant(rows, tf.int32))
        return [(w.scatter_update if form == 0 else w.scatter_sub if form == 1 else w.scatter_add)(slices).op]

    def do_shadow(self, statement, gradients):
        """The rows of a sparse gradient update another table, too."""
        w = self.target(statement)
        g = gradients[w.op.name]
        if not isinstance(g, tf.IndexedSlices):
            g = tf.IndexedSlices(tf.reshape(self.dense(g), [1, -1]), tf.constant([1]))
        form = statement["form"]
        other = self.extra("shadow", np.zeros((11, *g.values.shape[1:]), np.float32))
        indices = (g.indices * 3 + 1) % 11
        block = next(block for block in self.recipe["blocks"] if w.op.name.startswith(block["name"] + "/"))
        if form != 0 and block["kind"] == "table" and block["lookups"] == 1 and isinstance(gradients[w.op.name], tf.IndexedSlices):
            shape = (self.rows, block["several"]) if block["several"] else (self.rows,)
            own = self.numbers.randint(0, 11, shape).astype(np.int32)
            with tf1.control_dependencies(None), tf1.name_scope(None):
                indices = tf.reshape(self.feed(f"ids_{other.op.name.replace('/', '_')}", own), [-1])
        slices = tf.IndexedSlices(0.5 * g.values if form == 1 else g.values, indices)
        return [(other.scatter_max if form == 3 else other.scatter_sub if form else other.scatter_add)(slices).op]

    def do_count(self, statement, _):
        count = self.extra("count", np.int64(3))
        return [count.assign_add(2)]

    def do_statistics(self, statement, _):
        moving = self.extra("moving", np.zeros(self.hidden.shape[1:], np.float32))
        self.by_batch.add(moving.op.name)
        return [moving.assign_sub((moving - tf.reduce_mean(self.hidden, 0)) * 0.1)]

    def do_delta(self, statement, _):
        w = self.target(statement)
        kept = self.extra("delta", self.like(w))
        return [kept.assign(w - self.old[w.op.name])]

    def do_norm_of_update(self, statement, _):
        w = self.target(statement)
        kept = self.extra("length", np.float32(0))
        return [kept.assign(tf.norm(w - self.old[w.op.name]))]

    def do_update_when(self, statement, gradients):
        """An update that a condition lets through."""
        w = self.target(statement)
        g = self.dense(gradients[w.op.name])
        norm = tf.norm(g)
        skipped = self.extra("skipped", np.float32(0))
        return self.sequence(lambda: w.assign(tf.where(norm > 0.05, w - 0.02 * g, w)),
                             lambda: skipped.assign_add(tf.where(norm > 0.05, 0.0, 1.0)))

    # ---- Conditions, loops, and the model once more ----------------------------------------------------

    def when(self, condition, *updates):
        """Updates, one behind another, where a condition holds."""
        def run():
            with self.after(*self.sequence(*updates)):
                return tf.constant(1)
        return tf1.cond(condition, run, lambda: tf.constant(0))

    def do_alternate(self, statement, gradients):
        w = self.target(statement)
        g = self.dense(gradients[w.op.name])
        count, average = self.extra("count", np.int64(0)), self.extra("average", self.like(w))
        period = 2 + statement["form"] % 2
        return self.sequence(lambda: self.when(tf.equal(count % period, 0), lambda: w.assign_sub(0.05 * g)),
                             lambda: self.when(tf.equal(count % period, 1), lambda: w.assign(0.95 * w), lambda: average.assign(w + average)),
                             lambda: count.assign_add(1))

    def do_accumulate(self, statement, gradients):
        """Gradients of several steps, in a variable."""
        w = self.target(statement)
        g = self.dense(gradients[w.op.name])
        total, count = self.extra("total", self.like(w)), self.extra("count", np.int64(0))
        updates = [lambda: total.assign_add(g), lambda: count.assign_add(1)]
        if statement["form"] % 2:
            last = lambda: tf.cast(tf.equal(count % 2, 0), tf.float32)  # noqa: E731
            return self.sequence(*updates, lambda: w.assign_sub(0.025 * last() * total), lambda: total.assign(total * (1.0 - last())))
        return self.sequence(*updates, lambda: self.when(tf.equal(count % 2, 0), lambda: w.assign_sub(0.025 * total),
                                                         lambda: total.assign(tf.zeros_like(total))))

    def do_sharpness(self, statement, gradients):
        """The gradient where the loss is larger (sharpness-aware minimization)."""
        w = self.target(statement)
        g = self.dense(gradients[w.op.name])
        change = 0.1 * g / (tf.norm(g) + 0.1)
        if statement["form"] % 2:
            value = w + change
            again, = tf1.gradients(self.loss_again(variables={w.op.name: value}), [value])
            return [w.assign_sub(0.05 * self.dense(again))]
        old = w.read_value()
        with self.after(change, old):
            moved = w.assign_add(change)
        with self.after(moved):
            again, = tf1.gradients(self.loss_again(), [w])
            again = self.dense(again)
        with self.after(again):
            return self.sequence(lambda: w.assign(old), lambda: w.assign_sub(0.05 * again))

    def do_steps_in_loop(self, statement, _):
        """Further steps on the same batch."""
        w = self.target(statement)
        if statement["form"] % 2:
            def step(number, value):
                gradient, = tf1.gradients(self.loss_again(variables={w.op.name: value}), [value])
                return number + 1, value - 0.03 * self.dense(gradient)
            _, value = tf1.while_loop(lambda number, _: number < 2, step, [tf.constant(0), w.read_value()], back_prop=False)
            return [w.assign(value)]

        def step(number):
            gradient, = tf1.gradients(self.loss_again(), [w])
            with self.after(w.assign_sub(0.03 * self.dense(gradient))):
                return number + 1
        return [tf1.while_loop(lambda number: number < 2, step, [tf.constant(0)], back_prop=False)]

    def do_parts(self, statement, _):
        """The gradients of halves of the batch, each clipped."""
        w = self.target(statement)
        clipped = []
        for part in range(2):
            def choose(value, part=part):
                half = tf.shape(value)[0] // 2
                return value[part::2] if statement["form"] % 2 else value[part * half:(part + 1) * half]
            feeds = {name: choose(value) for name, value in self.fed.items() if value.shape.rank}
            gradient, = tf1.gradients(self.loss_again(feeds), [w])
            clipped.append(tf.clip_by_norm(self.dense(gradient), 0.05))
        return [w.assign_sub(0.5 * tf.add_n(clipped))]

    def do_histogram(self, statement, _):
        hidden = self.hidden[:, 0]
        numbers = tf.cast(tf.abs(hidden) * 3.0, tf.int32) % 5
        form = statement["form"]
        kept = self.extra("histogram", np.zeros(5, np.int32 if form == 0 else np.float32))
        self.by_batch.add(kept.op.name)
        return [kept.assign_add(tf.reduce_sum(tf.one_hot(numbers, 5, dtype=tf.int32), 0)) if form == 0 else
                kept.assign(0.5 * kept + tf.math.unsorted_segment_sum(hidden, numbers, 5)) if form == 1 else
                kept.scatter_add(tf.IndexedSlices(hidden, numbers)) if form == 2 else
                kept.assign(tf.maximum(kept, tf.math.unsorted_segment_sum(tf.ones_like(hidden), numbers, 5)))]

    def do_queue(self, statement, _):
        """Rows of the last batches."""
        rows = self.recipe["batch"] * (1 + statement["form"] % 2)
        kept = self.extra("queue", np.zeros((rows, int(self.hidden.shape[1])), np.float32))
        self.by_batch.add(kept.op.name)
        return [kept.assign(tf.concat([self.hidden, kept], 0)[:rows] if statement["form"] else self.hidden)]

    def do_metric(self, statement, _):
        form = statement["form"]
        with tf1.variable_scope("metric" + str(self.count)):
            self.count += 1
            before = set(self.all_variables())
            _, update = (tf1.metrics.mean(self.hidden) if form == 0 else tf1.metrics.mean(self.loss) if form == 1 else
                         tf1.metrics.accuracy(self.hidden[:, 0] > 0.0, self.hidden[:, -1] > 0.1) if form == 2 else
                         tf1.metrics.mean_squared_error(self.hidden, tf.tanh(self.hidden)))
            self.by_batch |= {variable.op.name for variable in set(self.all_variables()) - before}
        return [update]

    def do_step_in_loop_of_updates(self, statement, _):
        w = self.target(statement)
        average = self.extra("average", self.like(w))

        def step(number):
            with self.after(*self.sequence(lambda: w.assign(0.98 * w), lambda: average.assign(0.5 * (average + w)))):
                return number + 1
        return [tf1.while_loop(lambda number: number < 3, step, [tf.constant(0)], back_prop=False)]

    def do_plateau(self, statement, gradients):
        """A rate that falls where the loss does not."""
        w = self.target(statement)
        g = self.dense(gradients[w.op.name])
        best, factor = self.extra("best", np.float32(1e3)), self.extra("factor", np.float32(1))
        return self.sequence(lambda: factor.assign(tf.where(self.loss < best, factor, 0.5 * factor)), lambda: best.assign(tf.minimum(best, self.loss)),
                             lambda: w.assign_sub(0.03 * factor * g))


def draws(graph):
    """Whether nodes draw numbers: others each time that they run."""
    return any(op.op_def.is_stateful and "seed2" in op.node_def.attr for op in graph.get_operations())


def write(recipe, folder):
    """Builds the recipe's graph, trains it in TensorFlow, and leaves graph.meta, feeds.npz, expect.npz and case.json in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    tf1.disable_eager_execution()
    if recipe.get("older_control_flow"):
        tf1.disable_control_flow_v2()
    else:
        tf1.enable_control_flow_v2()
    with tf.Graph().as_default() as graph:
        builder = Builder(recipe)
        meta = tf1.train.export_meta_graph(graph=graph, saver_def=builder.saver.saver_def)
        for key, value in (("train_op", builder.train.name), ("init_op", builder.init.name), ("losses", builder.loss.name)):
            del meta.collection_def[key].node_list.value[:]
            meta.collection_def[key].node_list.value.append(value)
        variables = {variable.op.name: variable for variable in builder.all_variables()}
        loads = {name: (tf1.placeholder(variable.dtype, variable.shape), variable) for name, variable in variables.items()}
        loads = {name: (value, variable.assign(value)) for name, (value, variable) in loads.items()}

        def train(session, change=None):
            session.run(builder.init)
            if change:
                start = session.run(variables)
                session.run([loads[name][1] for name in builder.trained], {loads[name][0]: change(start[name]) for name in builder.trained})
            losses = []
            for step in range(recipe["steps"]):
                rows = slice(step * recipe["batch"], (step + 1) * recipe["batch"])
                fed = {f"{name}:0": array[rows] if array.ndim else array for name, array in builder.feeds.items()}
                losses.append(session.run([builder.loss, builder.train], fed)[0])
            return losses, session.run(variables)

        def train_by_halves(session):
            """Variables that change with each batch, where a batch is two whose gradients are accumulated."""
            session.run(builder.init)
            of_halves = {name: variables[name] for name in builder.each_batch}
            load = lambda values: session.run([loads[name][1] for name in values], {loads[name][0]: value for name, value in values.items()})
            for step in range(recipe["steps"]):
                begin, half = step * recipe["batch"], recipe["batch"] // 2
                start = session.run(of_halves)
                feed = lambda first, last: {f"{name}:0": array[first:last] if array.ndim else array for name, array in builder.feeds.items()}
                for first in (begin, begin + half):
                    session.run(list(builder.each_batch.values()), feed(first, first + half))
                changed = session.run(of_halves)
                load(start)
                session.run(builder.train, feed(begin, begin + 2 * half))
                load(changed)
            return session.run(of_halves)

        with tf1.Session(graph=graph, config=tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)) as session:
            losses, final = train(session)
            halves = train_by_halves(session) if builder.each_batch and recipe["batch"] % 2 == 0 and not draws(graph) else {}
            # What rounding makes of it must be small: nothing can be compared otherwise.
            _, other = train(session, lambda value: value * (1 + 1e-6 * builder.numbers.choice([-1, 1], value.shape)).astype(np.float32))
    for name, value in final.items():
        if value.dtype.kind == "f" and not np.linalg.norm((value - other[name]).ravel()) <= 2e-4 * max(np.linalg.norm(value.ravel()), 1e-3):
            raise Unsuitable("ill-conditioned")
    (folder / "graph.meta").write_bytes(meta.SerializeToString(deterministic=True))
    np.savez(folder / "feeds.npz", **builder.feeds)
    np.savez(folder / "expect.npz", loss=np.array(losses), **{f"var/{name}": value for name, value in final.items()},
             **{f"halves/{name}": value for name, value in halves.items()})
    case = {"loss": "loss:0", "train_op": "train_all", "init_op": "init", "feeds": sorted(f"{name}:0" for name in builder.feeds),
            "steps": recipe["steps"], "batch": 0 if recipe["constant_data"] else recipe["batch"], "loss_is_sum": recipe["loss"]["sum"],
            "loss_rtol": 1e-4, "penalties": bool(builder.penalties), "trained": {name: v.shape.as_list() for name, v in builder.trained.items()},
            "by_batch": sorted(builder.by_batch),
            "whole_batches": recipe["along_batch"] or any(
                statement["kind"] in ("parts", "plateau") or (statement["kind"] == "queue" and not statement["form"]) for statement in recipe["statements"]),
            "recipe": recipe}
    (folder / "case.json").write_text(json.dumps(case, indent=1))


if __name__ == "__main__":
    write(json.loads(pathlib.Path(sys.argv[1]).read_text()), pathlib.Path(sys.argv[2]))
