"""Rows that data choose: masks, parts of a table, sparse tensors made of dense ones. Losses and variables are TensorFlow's, by one replica and by several, in
threads and in processes; what has no rule is refused at its node.

  chosen_rows_tensorflow.py [--only NAME,...] [--target T] [--replicas 1,4]
"""
import argparse

import numpy as np

from support import DISTC, Checks, Folder, differences, must, need_tensorflow, need_tools, read_by, run, trained

BATCH, STEPS, RATE, ROWS = 8, 3, 0.1, 12
PROCESSES = ("wide_and_deep", "cross_entropy_of_chosen_rows", "rows_without_ids")
CASES = {}


def case(optimizer="GradientDescent", resource=True, refused=None):
    """`refused`: what the error says, where it is one."""
    def add(function):
        CASES[function.__name__] = (function, optimizer, resource, refused)
        return function
    return add


class Graph:
    """Feeds x [b, 6], y [b], w [b], i [b] of 0 to 11, and ids [b, 3] of -1 to 11, the first of each row no -1."""

    def __init__(self, tf, resource):
        self.tf, self.resource, self.numbers = tf, resource, np.random.default_rng(7)
        self.x = tf.placeholder(tf.float32, [None, 6], "x")
        self.y = tf.placeholder(tf.float32, [None], "y")
        self.w = tf.placeholder(tf.float32, [None], "w")
        self.i = tf.placeholder(tf.int32, [None], "i")
        self.ids = tf.placeholder(tf.int32, [None, 3], "ids")

    def variable(self, name, *shape):
        value = self.numbers.normal(size=shape).astype(np.float32) * 0.5
        return self.tf.get_variable(name, initializer=value, use_resource=self.resource)

    def tables(self, count):
        return [self.variable(f"table{k}", ROWS // count, 4) for k in range(count)]

    def partitioned(self, name, columns, count, rows=ROWS):
        tf = self.tf
        return tf.get_variable(name, [rows, columns], initializer=tf.random_uniform_initializer(-1, 1, seed=3), use_resource=self.resource,
                               partitioner=tf.fixed_size_partitioner(count))

    def encoded(self, size=4, name="encoder"):
        return self.tf.matmul(self.x, self.variable(name, 6, size))

    def loss_of(self, rows):
        """A mean over the examples of what [b, ...] is worth."""
        tf = self.tf
        return tf.reduce_mean(tf.square(tf.reduce_sum(tf.reshape(rows, [tf.shape(self.y)[0], -1]), 1) - self.y))

    def chosen_ids(self):
        """The ids that are no -1."""
        tf = self.tf
        at = tf.where(self.ids >= 0)
        return tf.SparseTensor(at, tf.cast(tf.gather_nd(self.ids, at), tf.int64), tf.cast(tf.shape(self.ids), tf.int64))


# ---- Tables that the graph itself splits -------------------------------------------------------------------------------


@case()
def table_in_parts_by_remainder(g):
    return g.loss_of(g.tf.nn.embedding_lookup(g.tables(2), g.i, partition_strategy="mod"))


@case("Adam")
def table_in_parts_by_ranges(g):
    return g.loss_of(g.tf.nn.embedding_lookup(g.tables(3), g.tf.maximum(g.ids, 0), partition_strategy="div"))


@case("Adagrad", resource=False)
def table_of_reference_variables(g):
    return g.loss_of(g.tf.nn.embedding_lookup(g.tables(3), g.i, partition_strategy="mod"))


@case()
def table_of_rows_of_bounded_norm(g):
    return g.loss_of(g.tf.nn.embedding_lookup(g.tables(2), g.i, max_norm=0.5))


@case("Momentum")
def partitioned_variable(g):
    return g.loss_of(g.tf.nn.embedding_lookup(g.partitioned("table", 4, 3, rows=13), g.i, partition_strategy="div"))


@case("Adam")
def wide_and_deep(g):
    tf, ids = g.tf, g.tf.maximum(g.ids, 0)
    deep = tf.reshape(tf.nn.embedding_lookup(g.partitioned("deep", 4, 2), ids, "div"), [-1, 12])
    hidden = tf.nn.relu(tf.matmul(tf.concat([deep, g.x], 1), g.variable("hidden", 18, 8)))
    wide = tf.reduce_sum(tf.nn.embedding_lookup(g.partitioned("wide", 1, 2), ids, "div"), 1)
    return g.loss_of(tf.matmul(hidden, g.variable("out", 8, 1)) + wide)


@case("Adagrad")
def table_that_is_looked_up_twice(g):
    tables = g.tables(2)
    return g.loss_of(g.tf.nn.embedding_lookup(tables, g.i) * g.tf.nn.embedding_lookup(tables, (g.i + 1) % ROWS))


@case("Adam")
def sampled_candidates_of_partitioned_weights(g):
    """The batch's classes and sampled ones are looked up together: rows that are no multiple of the batch's."""
    tf = g.tf
    return tf.reduce_mean(tf.nn.sampled_softmax_loss(g.partitioned("weights", 4, 3), tf.reshape(g.partitioned("biases", 1, 2), [-1]), tf.cast(
        g.i, tf.int64)[:, None], g.encoded(), 5, ROWS, partition_strategy="div", seed=9))


@case("Adagrad", resource=False)
def noise_contrast_of_partitioned_weights(g):
    tf, classes = g.tf, g.tf.cast(g.i, g.tf.int64)[:, None]
    sampled = tf.random.log_uniform_candidate_sampler(classes, 1, 5, True, ROWS, seed=9)
    return tf.reduce_mean(tf.nn.nce_loss(g.partitioned("weights", 4, 2), g.variable("biases", ROWS), classes, g.encoded(), 5, ROWS, sampled_values=sampled))


# ---- Partitions --------------------------------------------------------------------------------------------------------------


@case()
def mixture_of_experts(g):
    tf, part, h = g.tf, g.i % 2, g.encoded()
    at = tf.dynamic_partition(tf.range(tf.shape(h)[0]), part, 2)
    rows = [tf.nn.relu(tf.matmul(rows, g.variable(f"expert{k}", 4, 4))) for k, rows in enumerate(tf.dynamic_partition(h, part, 2))]
    return g.loss_of(tf.dynamic_stitch(at, rows))


@case()
def sums_of_parts(g):
    tf = g.tf
    first, second = tf.dynamic_partition(g.encoded(), g.i % 2, 2)
    return tf.reduce_sum(tf.square(first)) + 2 * tf.reduce_sum(tf.abs(second))


@case()
def sums_of_parts_of_classes_and_candidates(g):
    tf = g.tf
    ids = tf.concat([g.i, [3, 0, 7]], 0)
    first, second = tf.dynamic_partition(ids, ids % 2, 2)
    first, second = tf.gather(g.variable("first", ROWS, 4), first), tf.gather(g.variable("second", ROWS, 4), second)
    return tf.reduce_mean(tf.square(first * 2.0 - 1.0)) + tf.reduce_sum(tf.reduce_sum(tf.tanh(second), 1)) / 16.0


@case(refused="it does not work row by row")
def products_of_parts_of_classes_and_candidates(g):
    tf = g.tf
    ids = tf.concat([g.i, [3, 0, 7]], 0)
    rows = tf.gather(g.variable("table", ROWS, 4), tf.dynamic_partition(ids, ids % 2, 2)[0])
    return tf.reduce_sum(tf.matmul(g.encoded(), rows, transpose_b=True))


@case()
def products_below_the_diagonal(g):
    """What constants choose is no rows of the batch (the interactions of DLRM)."""
    tf = g.tf
    rows = tf.reshape(g.encoded(12), [-1, 3, 4])
    products = tf.boolean_mask(tf.matmul(rows, rows, transpose_b=True), np.tril(np.ones((3, 3), bool), -1), axis=1)
    return g.loss_of(tf.reshape(products, [-1, 3]))


def chosen_rows_of_a_table(g):
    """Their optimizers read slots by the rows that they update."""
    tf, mask = g.tf, g.ids >= 0
    rows = tf.gather(g.variable("table", ROWS, 4), tf.boolean_mask(g.ids, mask))
    sums = tf.math.unsorted_segment_sum(tf.tanh(rows), tf.cast(tf.where(mask)[:, 0], tf.int32), tf.shape(g.y)[0])
    return g.loss_of(sums)


@case("keras.Nadam")
def chosen_rows_with_nadam(g):
    return chosen_rows_of_a_table(g)


@case("keras.Adamax")
def chosen_rows_with_adamax(g):
    return chosen_rows_of_a_table(g)


@case("keras.RMSprop")
def chosen_rows_with_rmsprop(g):
    return chosen_rows_of_a_table(g)


# ---- Masks --------------------------------------------------------------------------------------------------------------------


@case()
def mean_of_chosen_rows(g):
    return g.tf.reduce_mean(g.tf.square(g.tf.boolean_mask(g.encoded(), g.w > 1)))


@case()
def cross_entropy_of_chosen_rows(g):
    tf, mask = g.tf, g.w > 1
    logits, labels = tf.boolean_mask(g.encoded(ROWS), mask), tf.boolean_mask(g.i, mask)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


@case()
def rows_left_out_for_what_they_hold(g):
    """Labels that are no class, divisors of 0, ids of no row and what is no number, in rows that are not there."""
    tf, known, divides = g.tf, g.ids[:, 1] >= 0, g.i > 0
    labels, logits = tf.boolean_mask(g.ids[:, 1], known), tf.boolean_mask(g.encoded(ROWS), known)
    inverse = tf.cast(tf.boolean_mask(g.ids[:, 0] * 7, divides) // tf.boolean_mask(g.i, divides), tf.float32)
    size = tf.debugging.check_numerics(tf.math.log(tf.cast(tf.boolean_mask(g.i, divides), tf.float32)), "log")
    return (tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)) +
            tf.reduce_mean(inverse * size * tf.square(tf.boolean_mask(g.encoded(1, "sizes")[:, 0], divides))) * 0.01)


@case()
def columns_of_chosen_rows(g):
    """The gradient of a column has the shape of the rows, whose number data decide."""
    tf, mask = g.tf, g.w > 1
    rows = tf.boolean_mask(tf.tanh(g.encoded(4)), mask)
    parts = tf.dynamic_partition(g.encoded(3, "parts"), tf.cast(mask, tf.int32), 2)
    return (tf.reduce_mean(tf.square(rows[:, 0] - tf.boolean_mask(g.y, mask))) + tf.reduce_mean(rows[:, 1:3] ** 2) +
            tf.add_n([tf.reduce_sum(tf.sin(part[:, k])) for k, part in enumerate(parts)]) * 0.1)


@case()
def rows_of_others_by_coordinate(g):
    """A coordinate is the number of a row, and not the number of the element, whatever it is reshaped to."""
    tf = g.tf
    rows = tf.reshape(g.encoded(12), [-1, 4])
    at = tf.where(g.ids >= 0)
    return tf.reduce_mean(tf.square(tf.gather(rows, tf.reshape(at[:, 0], [-1])) - 0.1 * tf.gather_nd(tf.reshape(rows, [-1, 3, 4]), at)))


@case()
def mean_of_chosen_elements(g):
    return g.tf.reduce_mean(g.tf.square(g.tf.boolean_mask(g.encoded(6), g.x > 0)))


@case("Momentum")
def layer_on_chosen_rows(g):
    tf = g.tf
    h = tf.nn.relu(tf.nn.bias_add(tf.matmul(tf.boolean_mask(g.encoded(6), g.w > 1), g.variable("kernel", 6, 5)), g.variable("bias", 5)))
    return tf.reduce_sum(tf.square(h)) / tf.cast(tf.shape(h)[0], tf.float32)


@case()
def number_of_chosen_rows(g):
    return g.loss_of(g.encoded()) * g.tf.cast(g.tf.size(g.tf.where(g.w > 1)) + 1, g.tf.float32)


@case()
def chosen_rows_put_back(g):
    tf = g.tf
    at = tf.where(g.w > 1)
    rows = tf.square(tf.gather_nd(g.encoded(), at))
    return g.loss_of(tf.scatter_nd(at, rows, tf.cast(tf.stack([tf.shape(g.x)[0], 4]), tf.int64)))


# ---- Sparse tensors ---------------------------------------------------------------------------------------------------------------


@case()
def segments_of_chosen_ids(g):
    ids = g.chosen_ids()
    return g.loss_of(g.tf.math.segment_sum(g.tf.gather(g.variable("table", ROWS, 4), ids.values), ids.indices[:, 0]))


@case("Adam")
def weighted_mean_of_chosen_ids(g):
    tf, ids = g.tf, g.chosen_ids()
    weights = tf.SparseTensor(ids.indices, tf.gather_nd(tf.abs(g.x[:, :3]) + 0.1, ids.indices), ids.dense_shape)
    return g.loss_of(tf.nn.embedding_lookup_sparse(g.variable("table", ROWS, 4), ids, weights, combiner="mean"))


@case("Adagrad")
def mean_of_chosen_ids(g):
    return g.loss_of(g.tf.nn.embedding_lookup_sparse(g.variable("table", ROWS, 4), g.chosen_ids(), None, combiner="mean"))


@case("Adam")
def chosen_ids_of_a_table_in_parts(g):
    return g.loss_of(g.tf.nn.embedding_lookup_sparse(g.tables(3), g.chosen_ids(), None, combiner="sqrtn"))


@case("Adagrad")
def rows_without_ids(g):
    return g.loss_of(g.tf.nn.safe_embedding_lookup_sparse(g.variable("table", ROWS, 4), g.chosen_ids(), combiner="mean"))


@case("Adagrad")
def rows_without_ids_of_bounded_norm(g):
    """What is too long is made shorter, each distinct row once: a choice, with the gradients of all places that named it."""
    return g.loss_of(g.tf.nn.safe_embedding_lookup_sparse(g.variable("table", ROWS, 4), g.chosen_ids(), combiner="sqrtn", max_norm=0.7))


@case("Adam", resource=False)
def chosen_ids_of_bounded_norm_of_a_table_in_parts(g):
    return g.loss_of(g.tf.nn.embedding_lookup_sparse(g.tables(3), g.chosen_ids(), None, combiner="mean", max_norm=0.7))


@case("Adagrad")
def chosen_ids_and_all_ids_of_one_table(g):
    """Of its gradient one example has rows of both, of different numbers."""
    tf, table, ids = g.tf, g.variable("table", ROWS, 4), g.chosen_ids()
    chosen = tf.nn.safe_embedding_lookup_sparse(table, ids, combiner="mean")
    return g.loss_of(chosen + tf.gather(table, tf.cast(tf.sparse.to_dense(ids)[:, 0], tf.int32)))


def all_ids(g, places=lambda rows, columns: (rows, columns)):
    """As a bucketized column has its elements: ids of all places, of which a lookup takes those that are no -1."""
    tf = g.tf
    batch = tf.shape(g.ids)[0]
    rows, columns = places(tf.range(batch), tf.range(3))
    at = tf.transpose(tf.stack((tf.reshape(tf.tile(tf.expand_dims(rows, 1), [1, 3]), [-1]), tf.tile(columns, [batch]))))
    ids = tf.SparseTensor(tf.cast(at, tf.int64), tf.cast(tf.reshape(g.ids, [-1]), tf.int64), tf.cast(tf.stack([batch, 3]), tf.int64))
    return tf.sparse.reshape(ids, tf.cast(tf.stack([batch, -1]), tf.int64))


@case("Adagrad")
def ids_of_all_places(g):
    tf = g.tf
    return g.loss_of(tf.nn.safe_embedding_lookup_sparse(g.variable("table", ROWS, 4), all_ids(g), combiner="sqrtn") +
                     tf.nn.safe_embedding_lookup_sparse(g.tables(2), all_ids(g), combiner="sum"))


@case(refused="its elements are not chosen from those of a matrix")
def ids_of_places_in_another_order(g):
    return g.loss_of(g.tf.nn.safe_embedding_lookup_sparse(g.variable("table", ROWS, 4), all_ids(g, lambda rows, columns: (rows // 2, columns)), combiner="sum"))


@case(refused="its shape has other rows than the matrix")
def ids_of_more_rows_than_there_are(g):
    tf = g.tf
    ids = all_ids(g)
    more = tf.SparseTensor(ids.indices, ids.values, ids.dense_shape + [1, 0])
    return g.loss_of(tf.nn.safe_embedding_lookup_sparse(g.variable("table", ROWS, 4), more, combiner="sum")[:-1])


@case("Momentum")
def rows_without_ids_of_a_table_in_parts(g):
    return g.loss_of(g.tf.nn.safe_embedding_lookup_sparse(g.tables(2), g.chosen_ids(), combiner="sum"))


@case()
def sparse_to_dense(g):
    tf = g.tf
    return g.loss_of(tf.gather(g.variable("table", ROWS, 4), tf.cast(tf.sparse.to_dense(g.chosen_ids()), tf.int32)))


@case()
def sparse_times_dense(g):
    tf, ids = g.tf, g.chosen_ids()
    values = tf.SparseTensor(ids.indices, tf.gather_nd(g.x[:, :3], ids.indices), ids.dense_shape)
    return g.loss_of(tf.sparse.sparse_dense_matmul(values, g.variable("kernel", 3, 4)))


@case()
def losses_with_weights(g):
    return g.tf.losses.mean_squared_error(g.y, g.encoded(1)[:, 0], weights=g.w)


@case()
def losses_with_weights_of_rows(g):
    return g.tf.losses.absolute_difference(g.x[:, :4], g.encoded(4), weights=g.tf.expand_dims(g.w, 1))


@case()
def columns_of_each_row(g):
    """The gradient of a gather with batch_dims."""
    return g.loss_of(g.tf.gather(g.encoded(6), g.tf.maximum(g.ids, 0) % 6, batch_dims=1))


@case()
def sum_over_the_rows_before(g):
    return g.tf.reduce_mean(g.tf.square(g.tf.cumsum(g.tf.boolean_mask(g.encoded(), g.w > 1)) * 0.2))


@case()
def shares_of_chosen_rows(g):
    tf, chosen = g.tf, g.tf.boolean_mask(g.encoded(), g.w > 1)
    return tf.reduce_sum(tf.nn.softmax(chosen[:, 0]) * tf.math.cumprod(1.1 - 0.1 * tf.sigmoid(chosen[:, 1]), exclusive=True))


# ---- What is refused ----------------------------------------------------------------------------------------------------------------


@case(refused="it does not work row by row")
def rows_in_reverse(g):
    return g.tf.reduce_sum(g.tf.square(g.tf.reverse(g.tf.boolean_mask(g.encoded(), g.w > 1), [0]) + 1))


@case(refused="rows of two choices meet")
def rows_of_two_choices(g):
    tf, h = g.tf, g.encoded()
    return tf.reduce_sum(tf.boolean_mask(h, g.w > 1) * tf.boolean_mask(h, g.y > 0))


@case(refused="random numbers are drawn")
def noise_on_chosen_rows(g):
    tf = g.tf
    return tf.reduce_sum(tf.nn.dropout(tf.boolean_mask(g.encoded(), g.w > 1), rate=0.5))


def make(tf, name, folder):
    """The graph, its data, and what TensorFlow makes of them: losses and variables."""
    function, optimizer, resource, refused = CASES[name]
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        graph = Graph(tf, resource)
        loss = tf.identity(function(graph), "loss")
        if optimizer.startswith("keras."):
            import tf_keras
            variables = tf.trainable_variables()
            made = getattr(tf_keras.optimizers.legacy, optimizer.removeprefix("keras."))(RATE, epsilon=1e-2)
            tf.group(made.apply_gradients(zip(tf.gradients(loss, variables), variables)), name="train")
        else:
            made = getattr(tf.train, f"{optimizer}Optimizer")(RATE, **({"momentum": 0.9} if optimizer == "Momentum" else {}))
            made.minimize(loss, name="train")
        tf.global_variables_initializer()
        tf.train.export_meta_graph(str(folder / "graph.meta"))
        rows, numbers = BATCH * STEPS, np.random.default_rng(11)
        ids = numbers.integers(-1, ROWS, (rows, 3)).astype(np.int32)
        ids[:, 0] = np.abs(ids[:, 0])
        if name.startswith("rows_without_ids"):
            ids[[3, 6, 7, 12]] = -1
        data = {"x": numbers.normal(size=(rows, 6)).astype(np.float32), "y": numbers.normal(size=rows).astype(np.float32),
                "w": numbers.uniform(0.1, 2, rows).astype(np.float32), "i": numbers.integers(0, ROWS, rows).astype(np.int32), "ids": ids}
        read = read_by(loss.op)
        data = {name: array for name, array in data.items() if name in read}
        np.savez(folder / "data.npz", **data)
        if refused:
            return None
        with tf.Session() as session:
            session.run("init")
            losses = []
            for k in range(STEPS):
                feed = {f"{key}:0": array[k * BATCH:(k + 1) * BATCH] for key, array in data.items()}
                losses.append(session.run(["loss:0", "train"], feed)[0])
            return losses, {v.op.name: session.run(v) for v in tf.global_variables()}


def compile_command(folder, program, replicas, flags):
    return [DISTC, "compile", folder / "graph.meta", "--strategy", "AllReduce", "--replicas", replicas, "--batch", BATCH, "--train-op", "train", "--loss",
            "loss:0", "--init-op", "init", "-o", program, *flags]


def check(folder, want, replicas, flags):
    program = folder / f"train-{replicas}-{len(flags)}"
    must(compile_command(folder, program, replicas, flags))
    return differences(trained(program, folder / "data.npz", STEPS), want)


def check_refused(folder, text, flags):
    done = run(compile_command(folder, folder / "train", 1, flags))
    return [] if done.returncode == 1 and text in done.out else [f"exit status {done.returncode}: {done.out}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names, with commas between")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--replicas", default="1,4")
    arguments = parser.parse_args()
    need_tools(DISTC)
    tf, _ = need_tensorflow()
    tf.disable_eager_execution()
    checks = Checks()
    flags = [f"--target={arguments.target}"]
    for name in checks.draw(CASES, 0.5):
        if arguments.only and name not in arguments.only.split(","):
            continue
        with Folder() as folder:
            want = make(tf, name, folder)
            if want is None:
                checks.check(f"{name}, refused", check_refused, folder, CASES[name][3], flags)
                continue
            for replicas in map(int, arguments.replicas.split(",")):
                checks.check(f"{name}, {replicas} replicas", check, folder, want, replicas, flags)
            if name in PROCESSES:
                checks.check(f"{name}, 2 processes", check, folder, want, 2, [*flags, "--one-process-per-replica"])
    checks.exit()


if __name__ == "__main__":
    main()
