"""Graphs with conditions, loops and tables in parts as --emit=graphdef writes them for two workers and two servers, trained by stock TensorFlow:
losses and variables are those of one device.

  graphdef_structures_tensorflow.py [CASE...]
"""
import sys

import numpy as np

import control_flow_tensorflow
from control_flow_tensorflow import BATCH, SIZE, STEPS, Inputs
from support import DISTC, Checks, Folder, must, need_tensorflow, need_tools, read_by, run, write_graph
from support import expect as expect_run
from tensorflow_runs import TWO_WORKERS_TWO_SERVERS, load_runner, make_apart

LOOPS = ("scan_over_trained_rows-v1", "dynamic_rnn_with_lengths-v1", "dynamic_rnn_with_lengths-v2", "condition_on_the_loss-v2")
# Of a slice's assignment beside another update no share can be taken.
STRATEGIES = ("AllReduce", "PartitionedPS")
REFUSED = {("slice_beside_another_update", strategy): "updates variable 'bank' by operation 'ResourceStridedSliceAssign'" for strategy in STRATEGIES}
REFUSED["reference_behind_its_update", "PartitionedPS"] = "behind an update of the same step"
# What reads of a server, or of a variable in parts, in a way of its own.
FURTHER = {"until_it_settles": ("PS",), "reference_behind_its_update": ("PartitionedAR",)}
CASES = {name: control_flow_tensorflow.CASES[name][:2] + (True,) for name in LOOPS}


def case(generation, resource=True):
    """The function gives the loss, and what makes the operations that run behind its minimization."""
    def add(function):
        CASES[f"{function.__name__}-v{generation}"] = (function, generation, resource)
        return function
    return add


def is_even(i):
    step = i.tf.train.get_or_create_global_step()
    return i.tf.equal(i.tf.cast(i.tf.identity(step), i.tf.int32) % 2, 0)


@case(2)
@case(1)
def target_copied_at_every_other_step(i):
    """The branch reads what the step has updated."""
    tf = i.tf
    target = tf.get_variable("target", initializer=np.eye(3, dtype=np.float32), trainable=False, use_resource=True)
    loss = i.loss_of(tf.matmul(i.x[:, 0], i.m) - tf.matmul(i.x[:, 1], target))
    return loss, lambda: [tf.cond(is_even(i), lambda: tf.group(target.assign(i.m)), lambda: tf.no_op())]


@case(2)
@case(1)
def either_assignment(i):
    """Both branches assign the same variable."""
    tf = i.tf
    count = tf.get_variable("count", initializer=np.float32(0), trainable=False, use_resource=True)
    return i.loss_of(i.x[:, 0]), lambda: [tf.cond(is_even(i), lambda: tf.assign_add(count, 1.0), lambda: tf.assign(count, count * 0.5))]


@case(1, resource=False)
def either_assignment_of_a_reference(i):
    """TensorFlow reads a reference's value at any time of a step, so that what chooses is a resource."""
    tf = i.tf
    count = tf.get_variable("count", initializer=np.float32(0), trainable=False, use_resource=False)
    steps = tf.get_variable("steps", initializer=0, trainable=False, use_resource=True)

    def assign_either():
        even = tf.equal(steps.assign_add(1).read_value() % 2, 0)
        return [tf.cond(even, lambda: tf.assign_add(count, 1.0), lambda: tf.assign(count, count * 0.5))]

    return i.loss_of(i.x[:, 0]), assign_either


@case(1, resource=False)
def loop_of_references(i):
    """Each iteration reads what the one before has updated, and behind its own update; one read waits only through a constant."""
    tf = i.tf
    total, copy = (tf.get_variable(name, initializer=np.float32(1), trainable=False, use_resource=False) for name in ("total", "copy"))
    loss = i.loss_of(i.x[:, 0])

    def body(k):
        with tf.control_dependencies([tf.assign_add(total, total * 0.5 + loss)]):
            copied = tf.assign_add(copy, total * 2.0)
        with tf.control_dependencies([copied]):
            return k + 1

    return loss, lambda: [tf.while_loop(lambda k: k < 2, body, [tf.constant(0)], parallel_iterations=1)]


@case(1)
def branch_whose_last_update_adds_a_constant(i):
    """The constant alone says that the update before it must run."""
    tf = i.tf
    total, count = (tf.get_variable(name, initializer=np.float32(1), trainable=False, use_resource=True) for name in ("total", "count"))
    loss = i.loss_of(i.x[:, 0])

    def added():
        with tf.control_dependencies([total.assign_add(loss)]):
            return tf.group(count.assign_add(2.0).op)
    return loss, lambda: [tf.cond(loss > 0, added, tf.no_op)]


@case(2)
@case(1)
def loop_of_conditions_that_update(i):
    """What waits for a condition's update in an iteration waits for a constant behind it."""
    tf = i.tf
    total, copy = (tf.get_variable(name, initializer=np.float32(1), trainable=False, use_resource=True) for name in ("total", "copy"))
    loss = i.loss_of(i.x[:, 0])

    def added():
        with tf.control_dependencies([total.assign_add(copy)]):
            return tf.constant(2.0)

    def body(k):
        known = tf.cond(loss > 0, added, lambda: tf.constant(2.0))
        with tf.control_dependencies([known]):
            updated = copy.assign(total * 0.5)
        with tf.control_dependencies([updated]):
            return k + 1

    return loss, lambda: [tf.while_loop(lambda k: k < 2, body, [tf.constant(0)], parallel_iterations=1)]


@case(2)
def wide_and_deep_of_tables_in_parts(i):
    """Rows that are looked up in parts meet the replica's own."""
    tf = i.tf
    deep = tf.get_variable("deep", [8, 2], initializer=tf.random_uniform_initializer(-1, 1, seed=3), partitioner=tf.fixed_size_partitioner(2))
    rows = tf.concat([tf.nn.embedding_lookup(deep, i.n, "div"), i.x[:, 0]], 1)
    return i.loss_of(tf.matmul(rows, tf.get_variable("mixed", initializer=np.full((5, 3), 0.1, np.float32))))


@case(2)
def interactions_of_features(i):
    """A triangle that is known chooses among products of an example's rows."""
    tf = i.tf
    h = tf.einsum("btd,de->bte", i.x, i.m)
    products = tf.matmul(h, h, transpose_b=True)
    chosen = tf.boolean_mask(products, np.tril(np.ones((5, 5), bool), -1), axis=1)
    return i.loss_of(tf.matmul(chosen, tf.get_variable("mixed", initializer=np.full((10, 3), 0.1, np.float32))))


@case(2)
def rows_of_a_bank_and_slices(i):
    """Rows of a variable by coordinates, and a slice of another that is assigned, behind the update."""
    tf = i.tf
    bank, means = (tf.get_variable(name, initializer=np.ones((6, 3), np.float32), trainable=False, use_resource=True) for name in ("bank", "means"))
    h = tf.matmul(i.x[:, 0], i.m)
    return i.loss_of(h), lambda: [tf.scatter_nd_add(bank, i.n[:, None], tf.stop_gradient(h)), means[0, 1:].assign(tf.reduce_mean(h, 0)[:2])]


@case(2)
def slice_beside_another_update(i):
    """In TensorFlow neither waits for the other, and each changes what is its own."""
    tf = i.tf
    bank = tf.get_variable("bank", initializer=np.ones((6, 3), np.float32), trainable=False, use_resource=True)
    h = tf.matmul(i.x[:, 0], i.m)
    return i.loss_of(h), lambda: [tf.scatter_nd_add(bank, i.n[:, None], tf.stop_gradient(h)), bank[0, 1:].assign(tf.reduce_mean(h, 0)[:2])]


@case(1, resource=False)
def slice_of_a_reference(i):
    """What the slice leaves is read before it is assigned."""
    tf = i.tf
    means = tf.get_variable("means", initializer=np.ones((6, 3), np.float32), trainable=False)
    h = tf.matmul(i.x[:, 0], i.m)
    return i.loss_of(h), lambda: [means[2, :].assign(tf.reduce_mean(h, 0))]


@case(2)
@case(1)
def bands_of_a_product(i):
    """TensorFlow's import does not know the product's sizes, which are computed, if the graph does not note them, and refuses a band of unknown width."""
    tf = i.tf
    return i.loss_of(tf.reduce_sum(tf.linalg.diag(tf.tensordot(i.x[:, :3], i.m, 1), k=(-1, 1)), 1))


@case(2)
@case(1)
def moving_averages(i):
    """Of new values that servers hold; their initial values ask whether the variables have any."""
    averages = i.tf.train.ExponentialMovingAverage(0.9, i.tf.train.get_or_create_global_step())
    return i.loss_of(i.tf.matmul(i.x[:, 0], i.m)), lambda: [averages.apply(i.tf.trainable_variables())]


@case(1, resource=False)
def moving_averages_of_references(i):
    """What is read of a reference is its memory: the averages are of new values, whenever they were read."""
    kernel = i.tf.get_variable("kernel", initializer=np.full((3, 3), 0.1, np.float32))
    averages = i.tf.train.ExponentialMovingAverage(0.9, i.tf.train.get_or_create_global_step())
    return i.loss_of(i.tf.matmul(i.x[:, 0], kernel)), lambda: [averages.apply([kernel])]


@case(2)
def clipped_weights(i):
    """A variable's new value, from all of its shards, is assigned to it again."""
    tf = i.tf
    return i.loss_of(tf.matmul(i.x[:, 0], i.m)), lambda: [i.m.assign(tf.clip_by_value(i.m, -0.3, 0.3))]


@case(2)
@case(1)
def updates_at_every_other_step(i):
    """An optimizer's update in a branch, of what no other trains; a count beside it."""
    tf = i.tf
    rates = tf.get_variable("rates", initializer=np.ones((3, 2), np.float32), use_resource=True)
    count = tf.get_variable("count", initializer=np.float32(0), trainable=False, use_resource=True)
    other = tf.reduce_mean(tf.square(tf.matmul(i.x[:, 0], rates) - 1.0))
    adam = tf.train.AdamOptimizer(0.05, epsilon=1e-3)

    def train_rates():
        gradients = adam.compute_gradients(other, [rates])
        return [tf.cond(is_even(i), lambda: tf.group(adam.apply_gradients(gradients), count.assign_add(1.0)), lambda: tf.no_op())]

    return i.loss_of(tf.matmul(i.x[:, 0], i.m)), train_rates


@case(2)
@case(1)
def training_is_fed(i):
    """Normalization and dropout in conditions on a scalar that is fed."""
    tf = i.tf
    training = tf.placeholder_with_default(True, [], "training")
    h = tf.matmul(i.x[:, 0], i.m)
    mean = tf.cond(training, lambda: tf.reduce_mean(h, 0), lambda: tf.zeros([3]))
    return i.loss_of(tf.cond(training, lambda: tf.nn.dropout(h - mean, rate=0.4, seed=5), lambda: h))


@case(2)
def elements_by_coordinates(i):
    """Of a variable whose shards they may all be in."""
    tf = i.tf
    scores = tf.gather_nd(i.m, tf.stack([i.n % 3, (i.n + 1) % 3], 1))
    return i.loss_of(tf.matmul(i.x[:, 0], i.m) * scores[:, None])


@case(2)
def sums_of_distinct_rows(i):
    """As many numbers are reduced as the batch has distinct rows, in each step others."""
    tf = i.tf
    table = tf.get_variable("table", initializer=np.ones((8, 3), np.float32), use_resource=True)
    largest = tf.get_variable("largest", initializer=np.zeros((8, 3), np.float32), trainable=False, use_resource=True)
    rows = tf.nn.embedding_lookup(table, i.n)
    loss = i.loss_of(rows * i.x[:, 0])

    def note_largest():
        slices = tf.gradients(loss, table)[0]
        distinct, places = tf.unique(slices.indices)
        sums = tf.unsorted_segment_sum(slices.values, places, tf.shape(distinct)[0])
        return [tf.scatter_update(largest, distinct, tf.maximum(tf.gather(largest, distinct) * 0.9, tf.abs(sums)))]

    return loss, note_largest


def get_lengths(i):
    """Shorter ones from step to step."""
    tf = i.tf
    return tf.minimum(i.n, tf.maximum(3 - tf.cast(tf.identity(tf.train.get_or_create_global_step()), tf.int32), 1))


@case(2)
@case(1)
def until_it_settles(i):
    """A loop that nothing bounds reads a variable by its handle, of a server or in parts."""
    tf = i.tf
    start = i.x[:, 0]
    weights = tf.get_variable("weights", initializer=np.full((3, 3), 0.1, np.float32), use_resource=True)

    def go_on(moved, state):
        further = tf.tanh(tf.matmul(state, weights) + start)
        return tf.stop_gradient(tf.reduce_max(tf.abs(further - state))), further
    settled = tf.while_loop(lambda moved, state: moved > 1e-3, go_on, [tf.constant(1.0), tf.zeros_like(start)], back_prop=False)[1]
    state = tf.tanh(tf.matmul(tf.stop_gradient(settled), weights) + start)
    return i.loss_of(tf.matmul(state, i.m)), lambda: []


@case(1, False)
def reference_behind_its_update(i):
    """The branch takes the reference as the step has updated it."""
    tf = i.tf
    target = tf.get_variable("target", initializer=np.eye(4, 3, dtype=np.float32), trainable=False)
    source = tf.get_variable("source", initializer=np.full((4, 3), 0.3, np.float32))
    padded = tf.pad(i.x[:, 0], [[0, 0], [0, 1]], constant_values=1.0)
    loss = i.loss_of(tf.matmul(padded, source) - tf.matmul(padded, target))

    def copy():
        # Of a reference that is not read anew no edge says when it is read.
        even = tf.equal(tf.train.get_or_create_global_step().read_value() % 2, 0)
        return [tf.cond(even, lambda: tf.assign(target, source.read_value()), lambda: tf.assign(target, target * 0.9))]
    return loss, copy


@case(2)
def as_long_as_the_longest(i):
    """What workers gather is as long as the longest sequence of the batch, in each step another."""
    tf, lengths = i.tf, get_lengths(i)
    longest = tf.reduce_max(lengths)
    mask = tf.sequence_mask(lengths, longest, dtype=tf.float32)
    values = tf.reduce_sum(i.x[:, :longest] * i.v, -1)
    return tf.reduce_sum(tf.square(values - i.y[:, None]) * mask) / tf.reduce_sum(mask), lambda: []


@case(2)
def masked_by_the_longest(i):
    tf, lengths = i.tf, get_lengths(i)
    longest = tf.reduce_max(lengths)
    values = tf.square(tf.reduce_sum(i.x[:, :longest] * i.v, -1) - i.y[:, None])
    return tf.reduce_mean(tf.boolean_mask(values, tf.sequence_mask(lengths, longest))), lambda: []


@case(1)
def loops_both_ways(i):
    """Gradients of loops have exits that nothing takes."""
    tf = i.tf
    start = tf.zeros_like(i.x[:, 0])

    def run_over(x):
        rows = tf.unstack(x, axis=1)
        stacked = tf.stack(rows)
        return tf.while_loop(lambda k, h: k < len(rows), lambda k, h: (k + 1, tf.tanh(tf.matmul(h + stacked[k], i.m))), [0, start])[1]

    return i.loss_of(run_over(i.x) + run_over(tf.reverse(i.x, [1])))


@case(2)
def labels_of_sequences(i):
    """Connectionist temporal classification: loops whose conditions are functions."""
    tf = i.tf
    labels = tf.stack([i.n % 2 + 1, tf.ones_like(i.n)], 1)
    logits = tf.einsum("btd,de->bte", i.x, i.m)
    batch = tf.shape(i.n)[0]
    return tf.reduce_mean(i.tf2.nn.ctc_loss(labels, logits, tf.fill([batch], 2), tf.fill([batch], 5), logits_time_major=False, blank_index=0))


@case(2)
def sparse_lookups_of_features(i):
    """What a column of features is looked up by: a sparse tensor of ids, of which a row may have none."""
    tf = i.tf
    ids = tf.stack([i.n, i.n * 2 % 5 - 1], 1)
    at = tf.where(ids >= 0)
    sparse = tf.SparseTensor(at, tf.cast(tf.gather_nd(ids, at), tf.int64), tf.shape(ids, out_type=tf.int64))
    table = tf.get_variable("table", [8, 2], initializer=tf.random_uniform_initializer(-1, 1, seed=3), partitioner=tf.fixed_size_partitioner(2))
    rows = tf.concat([tf.nn.safe_embedding_lookup_sparse(table, sparse, combiner="mean"), i.x[:, 0]], 1)
    return i.loss_of(tf.matmul(rows, tf.get_variable("mixed", initializer=np.full((5, 3), 0.1, np.float32))))


@case(2)
def rate_by_the_loss(i):
    """Polyak's step size: an update needs the loss, of which every worker is asked."""
    tf = i.tf
    loss = i.loss_of(tf.matmul(i.x[:, 0], i.m)) + 0.1 * tf.nn.l2_loss(i.m)
    gradient = tf.gradients(loss, i.m)[0]
    return loss, lambda: [i.m.assign_sub(gradient * tf.minimum(0.1, loss / (tf.reduce_sum(tf.square(gradient)) + 1e-3)), read_value=False)]


@case(2)
def root_of_a_mean_in_an_update(i):
    """A loss that is a function of a mean, and kept in a variable that a server has."""
    tf = i.tf
    kept = tf.get_variable("kept", initializer=np.float32(0), trainable=False, use_resource=True)
    loss = tf.sqrt(i.loss_of(tf.matmul(i.x[:, 0], i.m)))
    return loss, lambda: [kept.assign(0.9 * kept + 0.1 * loss), i.m.assign_add(tf.fill([3, 3], 0.01 * loss))]


def loop_that_draws(i, seeds, **options):
    """The loop stays: variables end it. What iterations draw needs nothing of the ones before."""
    tf = i.tf
    steps = tf.identity(tf.train.get_or_create_global_step())
    noise = lambda k: tf.cast(k + 1, tf.float32) * tf.raw_ops.RandomUniform(shape=[SIZE], dtype=np.float32, **seeds)
    _, h, sum = tf.while_loop(lambda k, h, sum: k < 3 + tf.cast(steps, tf.int32) % 2, lambda k, h, sum: (k + 1, tf.tanh(h), sum + noise(k)),
                              [0, i.x[:, 0], tf.zeros([SIZE])], **options)
    return i.loss_of(h * (1 + sum))


@case(2)
@case(1)
def noise_with_a_seed_in_a_loop(i):
    return loop_that_draws(i, {"seed": 7, "seed2": 8}, parallel_iterations=1)


@case(1)
def noise_in_any_order(i):
    """Workers draw alike although TensorFlow's iterations take from the generator in any order."""
    return loop_that_draws(i, {"seed": 7, "seed2": 8})


@case(1)
def noise_without_a_seed_in_a_loop(i):
    return loop_that_draws(i, {})


# What a run of the original gives is one of many.
OF_MANY = ("noise_in_any_order", "noise_without_a_seed_in_a_loop")


def write(folder, name):
    """The graph, its data, and what TensorFlow makes of them on one device."""
    function, generation, resource = CASES[name]
    tf, tf2 = need_tensorflow()
    tf.disable_eager_execution()
    (tf.enable_control_flow_v2 if generation == 2 else tf.disable_control_flow_v2)()
    (tf.enable_resource_variables if resource else tf.disable_resource_variables)()
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        inputs = Inputs(tf, tf2, 1)
        inputs.generation = generation
        made = function(inputs)
        loss, behind = made if isinstance(made, tuple) else (made, lambda: [])
        loss = tf.identity(loss, "loss")
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.MomentumOptimizer(0.05, 0.9)
        minimized = optimizer.apply_gradients([(g, v) for g, v in optimizer.compute_gradients(loss) if g is not None], global_step=step)
        with tf.control_dependencies([minimized]):
            train = tf.group(minimized, *behind(), name="train")
        init = tf.global_variables_initializer()
        saver = tf.train.Saver()
        write_graph(tf, folder / "graph.meta", train, init, loss, saver)
        data, scalars = inputs.data()
        read = read_by(train, loss.op)
        data = {name: array for name, array in data.items() if name in read}
        if "p" in read:
            data["p"] = np.array(scalars[0])
        np.savez(folder / "data.npz", **data)
        with tf.Session() as session:
            session.run(init)
            saver.save(session, str(folder / "first.ckpt"), write_meta_graph=False, write_state=False)
            losses = [session.run([loss, train], {f"{name}:0": array[k * BATCH:(k + 1) * BATCH] if array.ndim else array
                                                  for name, array in data.items()})[0] for k in range(STEPS)]
            parts = {}
            for variable in tf.global_variables():
                # As checkpoints have it: parts under the name of the whole.
                part = variable._get_save_slice_info()
                parts.setdefault(part.full_name if part else variable.op.name, []).append(session.run(variable))
            variables = {"var/" + name: np.concatenate(values) if len(values) > 1 else values[0] for name, values in parts.items()}
        np.savez(folder / "expect.npz", loss=losses, **variables)


def check(runner, folder, name, strategy):
    """`folder` has the graph, and what it gives on one device."""
    _, tf = need_tensorflow()
    with Folder() as outputs:
        command = [DISTC, "compile", folder / "graph.meta", "--strategy", strategy, *TWO_WORKERS_TWO_SERVERS[1], "--batch", BATCH,
                   "--emit=graphdef", "-o", outputs / "graphs"]
        if refused := REFUSED.get((name.rpartition("-")[0], strategy)):
            return expect_run(run(command), 1, refused)
        must(command)
        try:
            with runner.Cluster(outputs / "graphs", runner.read_data(folder / "data.npz"), 60) as cluster:
                cluster.do("initialize")
                cluster.do("restore", str(folder / "first.ckpt"))
                losses = list(cluster.train(STEPS))
                for worker in range(2):
                    cluster.ask(worker, "save", str(outputs / f"last-{worker}.ckpt"))
        except runner.TaskError as error:
            return [error]
        last, others = (tf.train.load_checkpoint(str(outputs / f"last-{worker}.ckpt")) for worker in range(2))
        found = [f"worker 1 has another value of '{key}'" for key in last.get_variable_to_shape_map()
                 if not np.allclose(last.get_tensor(key), others.get_tensor(key), rtol=1e-6, atol=0)]
        if name.rpartition("-")[0] in OF_MANY:
            return found
        expect = np.load(folder / "expect.npz")
        if not np.allclose(losses, expect["loss"], rtol=1e-4, atol=1e-5):
            found.append(f"losses {losses}, not {expect['loss']}")
        for key in expect.files:
            if key.startswith("var/") and not np.allclose(last.get_tensor(key[len("var/"):]), expect[key], rtol=1e-3, atol=1e-4):
                found.append(f"variable {key} is\n{last.get_tensor(key[len('var/'):])}, not\n{expect[key]}")
        return found


def main():
    need_tensorflow()
    need_tools()
    runner = load_runner()
    checks = Checks()
    for name in sys.argv[1:] or checks.draw(CASES, 0.4):
        with Folder() as folder:
            if not make_apart(write, folder, name):
                checks.check(name, lambda: ["the graph could not be made"])
                continue
            for strategy in STRATEGIES + FURTHER.get(name.rpartition("-")[0], ()):
                checks.check(f"{name}, {strategy}", check, runner, folder, name, strategy)
    checks.exit()


if __name__ == "__main__":
    main()
