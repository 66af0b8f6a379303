"""Operations and types that code has no word for and that are written in others (unsigned integers, assignments of slices, counters, operations that are
functions), and candidates that are sampled: losses and variables are TensorFlow's, by one replica and by several.

  rewritten_operations_tensorflow.py [CASE...]
"""
import sys

import numpy as np

from support import DISTC, Checks, Folder, differences, expect as expect_run, must, need_tensorflow, need_tools, read_by, run, trained

BATCH, STEPS, RATE, CLASSES = 8, 3, 0.1, 30
CASES = {}


def case(resource=True, ends=None):
    """The function gives the loss, and what makes the operations that run behind its minimization. `ends`: what the run says when it ends."""
    def add(function):
        CASES[function.__name__] = (function, resource, ends)
        return function
    return add


class Graph:
    """Feeds x [b, 4], image [b, 6] of bytes, i [b] and ids [b, 1] of classes, place [b] of other numbers in each row of a batch."""

    def __init__(self, tf, tf2):
        self.tf, self.tf2 = tf, tf2
        self.x = tf.placeholder(tf.float32, [None, 4], "x")
        self.image = tf.placeholder(tf.uint8, [None, 6], "image")
        self.i = tf.placeholder(tf.int32, [None], "i")
        self.place = tf.placeholder(tf.int32, [None], "place")
        self.ids = tf.placeholder(tf.int64, [None, 1], "ids")

    def variable(self, name, *shape, seed=1):
        return self.tf.get_variable(name, shape, initializer=self.tf.random_uniform_initializer(-0.5, 0.5, seed=seed))

    def loss_of(self, rows):
        return self.tf.reduce_mean(self.tf.square(rows))


# ---- Unsigned integers ---------------------------------------------------------------------------------------------------------


@case()
def bytes_that_are_fed(g):
    tf = g.tf
    pixels = tf.cast(g.image, tf.float32) / 255.0 + tf.image.convert_image_dtype(tf.reshape(g.image, [-1, 6]), tf.float32)
    return g.loss_of(tf.matmul(pixels, g.variable("w", 6, 3)))


@case
def bytes_that_are_arranged(g):
    tf = g.tf
    square = tf.pad(tf.reshape(g.image, [-1, 2, 3, 1]), [[0, 0], [1, 1], [2, 0], [0, 0]], constant_values=7)
    chosen = tf.where(square > 99, square, tf.cast(255, tf.uint8) - square)
    parts = (tf.image.resize(square, [3, 4]), tf.image.resize(chosen, [2, 2], "nearest"), tf.reduce_sum(chosen, 2), tf.argmax(square, 1),
             tf.sort(chosen, 2), tf.roll(tf.gather(square, [2, 0], axis=1), 1, 2))
    return g.loss_of(tf.concat([tf.reshape(tf.cast(part, tf.float32), [tf.shape(g.image)[0], -1]) for part in parts], 1) / 100)


@case()
def arithmetic_of_bytes(g):
    """It wraps around, and what is compared is above 0."""
    tf = g.tf
    dark = tf.cast(g.image < 200, tf.uint8)
    number = tf.concat([g.image * 3, g.image[:, ::-1] - 7, tf.maximum(g.image, dark * 90), g.image // 3], 1)
    return g.loss_of(tf.matmul(tf.cast(number, tf.float32) / 64.0, g.variable("w", 24, 2)))


@case()
def numbers_that_become_unsigned(g):
    tf = g.tf
    small = tf.cast(tf.abs(g.x) * 100.0, tf.uint16) * tf.cast(1000, tf.uint16)
    wide = tf.cast(g.i, tf.uint32) * tf.constant(4000000007 % 2**32, tf.uint32)
    rows = tf.concat([tf.cast(small, tf.float32) / 65536.0, tf.cast(wide, tf.float32)[:, None] / 4e9], 1)
    return g.loss_of(tf.matmul(rows, g.variable("w", 5, 2)))


# ---- Convolutions that are products ------------------------------------------------------------------------------------------------


@case()
def convolutions_of_few_windows(g):
    """Strided and padded; pixels that no window reads, and windows that lie over each other."""
    tf = g.tf
    image = tf.reshape(tf.matmul(g.x, g.variable("w", 4, 400)), [-1, 5, 5, 16])
    strided = tf.nn.relu(tf.nn.conv2d(image, g.variable("strided", 3, 3, 16, 256), 2, "SAME"))
    whole = tf.nn.conv2d(strided, g.variable("whole", 2, 2, 256, 128) / 10, 1, "VALID")
    sparse = tf.nn.conv2d(image, g.variable("sparse", 1, 2, 16, 1024), [1, 4, 3, 1], "VALID")
    return g.loss_of(whole) + g.loss_of(tf.reduce_max(sparse, [1, 2]))


# ---- Assignments -----------------------------------------------------------------------------------------------------------------


def assigns_a_row(g):
    tf = g.tf
    h = tf.matmul(g.x, g.variable("w", 4, 3))
    history = tf.get_variable("history", initializer=np.arange(18, dtype=np.float32).reshape(6, 3), trainable=False)
    mean = tf.reduce_mean(h, 0)
    return g.loss_of(h), lambda: [history[2, :].assign(mean), history[3::2, 1:].assign(tf.stack([mean[:2], mean[1:]]))]


@case()
def slices_that_are_assigned(g):
    return assigns_a_row(g)


@case(resource=False)
def slices_of_a_reference_that_are_assigned(g):
    return assigns_a_row(g)


@case()
def rows_of_a_bank_behind_the_update(g):
    """Indices as well as rows are made behind the update of the step."""
    tf = g.tf
    h = tf.matmul(g.x, g.variable("w", 4, 3))
    bank = tf.get_variable("bank", initializer=np.ones((BATCH, 3), np.float32), trainable=False)
    return g.loss_of(h - tf.gather(bank, g.place)), lambda: [tf.scatter_nd_update(bank, g.place[:, None], tf.stop_gradient(h))]


def counts(g, limit):
    tf = g.tf
    count = tf.get_variable("count", initializer=np.int32(0), trainable=False)
    return g.loss_of(tf.matmul(g.x, g.variable("w", 4, 3))), lambda: [tf.count_up_to(count, limit)]


@case()
def counter_below_its_limit(g):
    return counts(g, 10)


@case(resource=False)
def counter_of_a_reference(g):
    return counts(g, 10)


@case(ends="assertion failed")
def counter_that_reaches_its_limit(g):
    return counts(g, 2)


# ---- Generators ----------------------------------------------------------------------------------------------------------------


@case()
def numbers_of_a_generator(g):
    """tf.random.Generator: its state is a variable, which each draw moves on."""
    tf, generator = g.tf, g.tf2.random.Generator.from_seed(2**62 + 5, alg="auto_select")
    dropped = tf.cast(generator.uniform(tf.shape(g.x)) > 0.3, tf.float32) * g.x
    with tf.control_dependencies([dropped]):  # nothing else orders the draws
        bias = 0.1 * generator.normal([3])
    return g.loss_of(tf.matmul(dropped, g.variable("w", 4, 3)) + bias)


@case()
def numbers_of_a_generator_whose_counter_wraps(g):
    """The sum of the counter's lower half carries to its upper half."""
    tf, generator = g.tf, g.tf2.random.Generator.from_state([-300, 5, 9], alg="philox")
    kept = generator.uniform(tf.shape(g.x), 0, 3, dtype=tf.int32)
    return g.loss_of(tf.matmul(g.x * tf.cast(kept, tf.float32), g.variable("w", 4, 3)))


@case()
def numbers_of_a_generator_s_child(g):
    """Seeds that a generator makes, and integers of any size."""
    tf, generator = g.tf, g.tf2.random.Generator.from_seed(3)
    seed = generator.make_seeds(2)[:, 1]
    noise = g.tf2.random.stateless_normal(tf.shape(g.x), seed)
    bits = g.tf2.random.stateless_uniform(tf.shape(g.x), seed + 1, None, None, dtype=tf.int32)
    return g.loss_of(tf.matmul(g.x + noise + tf.cast(bits, tf.float32) / 2.0**31, g.variable("w", 4, 3)))


@case()
def numbers_of_a_generator_if_images_are_large(g):
    """As tf_keras' RandomCrop: whether it draws is known by the images' size."""
    tf, generator = g.tf, g.tf2.random.Generator.from_seed(3)

    @g.tf2.function
    def crop(rows):
        spare = tf.shape(rows)[1] - 3

        def part():
            begin = generator.uniform([2], 0, tf.int32.max, tf.int32)[1] % (spare + 1)
            return rows[:, begin:begin + 3]
        return tf.cond(tf.reduce_all([True, spare >= 0]), part, lambda: tf.zeros([tf.shape(rows)[0], 3]))
    rows = crop(g.x)
    rows.set_shape([None, 3])
    return g.loss_of(tf.matmul(rows, g.variable("w", 3, 3)))


@case()
def numbers_of_a_generator_each_second_step(g):
    tf, generator = g.tf, g.tf2.random.Generator.from_seed(3)
    step = tf.get_variable("step", initializer=0, trainable=False)

    @g.tf2.function
    def scale():
        return tf.cond(tf.equal(step % 2, 0), lambda: generator.uniform([4], 0.5, 1.5), lambda: tf.ones([4]))
    loss = g.loss_of(tf.matmul(g.x * scale(), g.variable("w", 4, 3)))
    with tf.control_dependencies([loss]), tf.control_dependencies([tf.assign_add(step, 1)]):
        return tf.identity(loss)


# ---- Distinct rows ---------------------------------------------------------------------------------------------------------------


@case()
def rows_that_are_looked_up_once(g):
    """Each row of a table is read once, and its gradients are summed before the optimizer's own sums."""
    tf = g.tf
    u, k = tf.unique(tf.reshape(g.ids, [-1]))
    rows = tf.gather(tf.gather(g.variable("table", CLASSES, 4), u), tf.reshape(k, tf.shape(g.ids)))
    return g.loss_of(tf.squeeze(rows, [1]) * g.x) + g.loss_of(tf.gather(tf.gather(g.variable("other", CLASSES, 3), u), k) - 1)


# ---- Slices ----------------------------------------------------------------------------------------------------------------------


@case()
def slices_at_places_that_are_computed(g):
    """What is taken is known, and its gradient lies between zeros."""
    tf, step = g.tf, g.tf.get_variable("step", initializer=0, trainable=False)
    h = tf.reshape(tf.matmul(g.x, g.variable("w", 4, 12)), [-1, 3, 4])
    with tf.control_dependencies([step.assign_add(1)]):
        begin = step.read_value() % 3
    columns = h[:, :, begin:begin + 2]
    row = h[:, begin - 3, tf.newaxis]
    part = tf.slice(h, tf.stack([0, begin // 2, 1]), [-1, 2, 3])
    return g.loss_of(columns) + g.loss_of(row) * 2 + g.loss_of(part) * 3


# ---- Functions -------------------------------------------------------------------------------------------------------------------


@case()
def loop_whose_condition_is_a_function(g):
    """An operation that is called like a function of the library is a call of it."""
    from tensorflow.python.framework import function
    from tensorflow.python.ops import functional_ops
    tf = g.tf

    @function.Defun(tf.int32, tf.float32, func_name="goes_on")
    def goes_on(k, h):
        return k < 3

    @function.Defun(tf.int32, tf.float32, func_name="doubles")
    def doubles(k, h):
        return k + 1, h * 2

    x = functional_ops.While([tf.constant(0), g.x], goes_on, doubles)[1]
    x.set_shape([None, 4])
    return g.loss_of(tf.matmul(x, g.variable("w", 4, 3)))


# ---- Sequences -----------------------------------------------------------------------------------------------------------------


def ctc(g, keep, **settings):
    """Five classes in six steps, of three labels an example those that `keep` says."""
    tf = g.tf
    logits = tf.reshape(tf.matmul(g.x, g.variable("w", 4, 30)), [-1, 6, 5]) * 4.0
    rows = tf.stack([g.i % 4, g.place % 4, tf.cast(g.ids[:, 0], tf.int32) % 4], 1)
    where = tf.where(keep(rows))
    labels = tf.SparseTensor(where, tf.gather_nd(rows, where), tf.cast(tf.shape(rows), tf.int64))
    return tf.reduce_mean(tf.nn.ctc_loss(labels, logits, 4 + g.place % 3, time_major=False, **settings))


@case()
def ctc_of_labels_in_front(g):
    tf = g.tf
    return ctc(g, lambda rows: tf.sequence_mask(1 + g.place % 3, 3))


@case()
def ctc_of_repeated_labels_that_are_one(g):
    tf = g.tf
    return ctc(g, lambda rows: tf.ones_like(rows, tf.bool), preprocess_collapse_repeated=True)


@case()
def ctc_of_labels_as_keras_takes_them(g):
    """Their coordinates are two vectors that a mask chooses, joined and made a matrix."""
    tf = g.tf
    logits = tf.reshape(tf.matmul(g.x, g.variable("w", 4, 30)), [-1, 6, 5]) * 4.0
    rows = tf.stack([g.i % 4, g.place % 4, tf.cast(g.ids[:, 0], tf.int32) % 4], 1)
    sizes = tf.shape(rows)
    mask = tf.sequence_mask(1 + g.place % 3, sizes[1])
    column = tf.boolean_mask(tf.reshape(tf.tile(tf.range(sizes[1]), sizes[:1]), sizes), mask)
    row = tf.boolean_mask(tf.transpose(tf.reshape(tf.tile(tf.range(sizes[0]), sizes[1:]), tf.reverse(sizes, [0]))), mask)
    where = tf.transpose(tf.reshape(tf.concat([row, column], 0), [2, -1]))
    labels = tf.SparseTensor(tf.cast(where, tf.int64), tf.gather_nd(rows, where), tf.cast(sizes, tf.int64))
    return tf.reduce_mean(tf.nn.ctc_loss(labels, tf.transpose(logits, [1, 0, 2]), 4 + g.place % 3))


@case()
def ctc_whose_outputs_are_not_merged(g):
    tf = g.tf
    return ctc(g, lambda rows: tf.sequence_mask(1 + g.place % 3, 3), ctc_merge_repeated=False)


@case()
def ctc_of_too_many_labels(g):
    """Such examples count as none, and their gradients are zeros."""
    tf = g.tf
    logits = tf.reshape(tf.matmul(g.x, g.variable("w", 4, 12)), [-1, 3, 4])
    rows = tf.stack([g.i % 3] * 4, 1) + tf.constant([[0, 1, 0, 1]])
    where = tf.where(tf.sequence_mask(1 + g.place % 4, 4))
    labels = tf.SparseTensor(where, tf.gather_nd(rows % 3, where), tf.cast(tf.shape(rows), tf.int64))
    return tf.reduce_mean(tf.nn.ctc_loss(labels, logits, tf.zeros_like(g.i) + 3, time_major=False, ignore_longer_outputs_than_inputs=True))


@case()
def ctc_of_too_many_labels_that_are_repeated(g):
    """As many as are given count, whatever they are collapsed to."""
    tf = g.tf
    logits = tf.reshape(tf.matmul(g.x, g.variable("w", 4, 12)), [-1, 3, 4])
    rows = tf.stack([g.i % 3] * 4, 1)
    where = tf.where(tf.sequence_mask(1 + g.place % 4, 4))
    labels = tf.SparseTensor(where, tf.gather_nd(rows, where), tf.cast(tf.shape(rows), tf.int64))
    return tf.reduce_mean(tf.nn.ctc_loss(labels, logits, g.place % 4, time_major=False, preprocess_collapse_repeated=True, ignore_longer_outputs_than_inputs=True))


@case(ends="a sequence of a CTC loss has 3 steps for 4 labels or more")
def ctc_of_labels_that_do_not_fit(g):
    tf = g.tf
    logits = tf.reshape(tf.matmul(g.x, g.variable("w", 4, 12)), [-1, 3, 4])
    rows = tf.stack([g.i % 3] * 4, 1)
    where = tf.where(rows >= 0)
    labels = tf.SparseTensor(where, tf.gather_nd(rows, where), tf.cast(tf.shape(rows), tf.int64))
    return tf.reduce_mean(tf.nn.ctc_loss(labels, logits, tf.zeros_like(g.i) + 3, time_major=False))


# ---- Candidates ----------------------------------------------------------------------------------------------------------------


def sampled_softmax(g, sampler, **settings):
    tf = g.tf
    rows = tf.nn.embedding_lookup(g.variable("table", CLASSES, 4, seed=2), g.i)
    sampled = sampler(g.ids, 1, 5, range_max=CLASSES, seed=3, **settings)
    return tf.reduce_mean(tf.nn.sampled_softmax_loss(g.variable("w", CLASSES, 4), tf.zeros([CLASSES]), g.ids, rows, 5, CLASSES, sampled_values=sampled,
                                                     remove_accidental_hits=False))


@case()
def candidates_without_repetition(g):
    return sampled_softmax(g, g.tf.random.log_uniform_candidate_sampler, unique=True)


@case()
def candidates_with_repetition(g):
    return sampled_softmax(g, g.tf.random.log_uniform_candidate_sampler, unique=False)


@case()
def uniform_candidates(g):
    return sampled_softmax(g, g.tf.random.uniform_candidate_sampler, unique=True)


@case()
def word_embeddings(g):
    """word2vec: the sampler's seeds follow from the graph's."""
    tf = g.tf
    rows = tf.nn.embedding_lookup(g.variable("table", CLASSES, 4, seed=2), g.i)
    return tf.reduce_mean(tf.nn.nce_loss(g.variable("w", CLASSES, 4), g.variable("b", CLASSES), g.ids, rows, 6, CLASSES))


def make(tf, tf2, name, folder):
    """The graph, its data, and what TensorFlow makes of them: losses and variables."""
    function, resource, ends = CASES[name]
    (tf.enable_resource_variables if resource else tf.disable_resource_variables)()
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        made = function(Graph(tf, tf2))
        loss, behind = made if isinstance(made, tuple) else (made, lambda: [])
        loss = tf.identity(loss, "loss")
        minimized = tf.train.GradientDescentOptimizer(RATE).minimize(loss)
        with tf.control_dependencies([minimized]):
            train = tf.group(minimized, *behind(), name="train")
        tf.global_variables_initializer()
        tf.train.export_meta_graph(str(folder / "graph.meta"))
        rows, numbers = BATCH * STEPS, np.random.default_rng(11)
        data = {"x": numbers.normal(size=(rows, 4)).astype(np.float32), "image": numbers.integers(0, 256, (rows, 6)).astype(np.uint8),
                "i": numbers.integers(0, CLASSES, rows).astype(np.int32), "ids": numbers.integers(0, CLASSES, (rows, 1)), "place": np.concatenate([numbers.permutation(BATCH) for _ in range(STEPS)]).astype(np.int32)}
        read = read_by(train, loss.op)
        data = {key: array for key, array in data.items() if key in read}
        np.savez(folder / "data.npz", **data)
        if ends:
            return None
        with tf.Session() as session:
            session.run("init")
            losses = []
            for k in range(STEPS):
                feed = {f"{key}:0": array[k * BATCH:(k + 1) * BATCH] for key, array in data.items()}
                losses.append(session.run(["loss:0", "train"], feed)[0])
            return losses, {v.op.name: session.run(v) for v in tf.global_variables()}


def check(name):
    tf, tf2 = need_tensorflow()
    with Folder() as folder:
        want, ends = make(tf, tf2, name, folder), CASES[name][2]
        found = []
        for replicas in (1, 2, 4):
            program = folder / f"train{replicas}"
            must([DISTC, "compile", folder / "graph.meta", "--replicas", replicas, "--batch", BATCH, "--train-op", "train", "--loss", "loss:0",
                  "--init-op", "init", "-o", program])
            if ends:
                found += expect_run(run([program, "--quiet", "--data", folder / "data.npz", "--steps", STEPS]), 1, ends)
            else:
                found += [f"{replicas} replicas: {problem}" for problem in differences(trained(program, folder / "data.npz", STEPS), want)]
        return found


def main():
    tf, _ = need_tensorflow()
    need_tools()
    tf.disable_eager_execution()
    checks = Checks(share=0.5)
    for name in sys.argv[1:] or CASES:
        checks.check(name, check, name)
    checks.exit()


if __name__ == "__main__":
    main()
