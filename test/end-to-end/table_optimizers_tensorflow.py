"""Tables on servers under TensorFlow's optimizers, of tf1 and of tf_keras: a process a replica, each with its shards alone. Losses and last variables are TensorFlow's of one
device, and the plan says that no task holds a table or a slot of it whole, and that rows of several tables come at once.

  table_optimizers_tensorflow.py [NAME…]
"""
import re
import sys

import numpy as np

from support import DISTC, Checks, Folder, must, need_tensorflow, need_tools, read_losses, skip

ROWS, WIDTH, BATCH, STEPS = 40, 3, 8, 5
# Rules that read rows of a slot: every task has all of it.
WHOLE = ()
# Replicas' own values; and servers that serve on their own, whose updates are of all replicas' gradients.
OWN_VALUES = ("AllReduce:coupling=replica", "PS:replicas_to_aggregate=2")


def optimizers(tf1, keras):
    legacy = keras.optimizers.legacy
    return {
        "tf1 SGD": lambda: tf1.train.GradientDescentOptimizer(0.1),
        "tf1 Momentum": lambda: tf1.train.MomentumOptimizer(0.1, 0.9),
        "tf1 Nesterov": lambda: tf1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        "tf1 Adagrad": lambda: tf1.train.AdagradOptimizer(0.1),
        "tf1 Adadelta": lambda: tf1.train.AdadeltaOptimizer(0.5),
        "tf1 RMSProp": lambda: tf1.train.RMSPropOptimizer(0.05, momentum=0.5, centered=True),
        "tf1 Ftrl": lambda: tf1.train.FtrlOptimizer(0.1),
        "tf1 Adam": lambda: tf1.train.AdamOptimizer(0.05),
        "tf1 lazy Adam": lambda: lazy_adam(tf1),
        "keras SGD": lambda: legacy.SGD(0.1, momentum=0.9),
        "keras Adagrad": lambda: legacy.Adagrad(0.1),
        "keras Adam": lambda: legacy.Adam(0.05, epsilon=1e-3),
        "keras Adam, amsgrad": lambda: legacy.Adam(0.05, epsilon=1e-3, amsgrad=True),
        "keras RMSprop": lambda: legacy.RMSprop(0.05, epsilon=1e-3),
        "keras RMSprop, momentum": lambda: legacy.RMSprop(0.05, momentum=0.5, centered=True, epsilon=1e-3),
        "keras Adamax": lambda: legacy.Adamax(0.05, epsilon=1e-3),
        "keras Nadam": lambda: legacy.Nadam(0.05, epsilon=1e-3),
        "keras Ftrl": lambda: legacy.Ftrl(0.1),
    }


def build(tf1, make):
    """A table and a dense layer; what is fed for all steps."""
    rng = np.random.default_rng(3)
    tf1.reset_default_graph()
    tf1.set_random_seed(1)
    ids = tf1.placeholder(tf1.int32, [None, 2], "ids")
    y = tf1.placeholder(tf1.float32, [None], "y")
    table = tf1.get_variable("table", [ROWS, WIDTH], initializer=tf1.random_uniform_initializer(-1, 1, seed=5), use_resource=True)
    kernel = tf1.get_variable("kernel", [2 * WIDTH, 1], initializer=tf1.random_uniform_initializer(-1, 1, seed=6), use_resource=True)
    rows = tf1.reshape(tf1.nn.embedding_lookup(table, ids), [-1, 2 * WIDTH])
    loss = tf1.reduce_mean(tf1.square(tf1.reshape(rows @ kernel, [-1]) - y), name="loss")
    optimizer = make()
    if hasattr(optimizer, "minimize") and "tf_keras" not in type(optimizer).__module__ and "keras" not in type(optimizer).__module__:
        train = optimizer.minimize(loss, global_step=tf1.train.get_or_create_global_step())
    else:
        train = optimizer.get_updates(loss, [table, kernel])
        train = tf1.group(*train)
    train = tf1.group(train, name="train")
    feeds = {"ids": rng.integers(0, ROWS, (STEPS * BATCH, 2)).astype(np.int32), "y": rng.standard_normal(STEPS * BATCH).astype(np.float32)}
    return loss, train, {"ids": ids, "y": y}, feeds


def lazy_adam(tf1):
    """Adam that changes the rows of a step alone, as extensions of TensorFlow write it."""

    class LazyAdam(tf1.train.AdamOptimizer):
        def _resource_apply_sparse(self, grad, var, indices):
            powers = self._get_beta_accumulators()
            rate = self._lr_t * tf1.sqrt(1 - powers[1]) / (1 - powers[0])
            m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
            new_m = self._beta1_t * tf1.gather(m, indices) + (1 - self._beta1_t) * grad
            new_v = self._beta2_t * tf1.gather(v, indices) + (1 - self._beta2_t) * tf1.square(grad)
            change = rate * new_m / (tf1.sqrt(new_v) + self._epsilon_t)
            return tf1.group(m.scatter_update(tf1.IndexedSlices(new_m, indices)), v.scatter_update(tf1.IndexedSlices(new_v, indices)),
                             var.scatter_sub(tf1.IndexedSlices(change, indices)))

    return LazyAdam(0.05, epsilon=1e-3)


def train_in_tensorflow(tf1, session, built, folder):
    """Losses and last variables; graph, data and first variables are left in the folder."""
    loss, train, placeholders, feeds = built
    session.run(tf1.global_variables_initializer())
    saver = tf1.train.Saver()
    saver.save(session, str(folder / "init.ckpt"))
    tf1.train.export_meta_graph(str(folder / "graph.meta"), saver_def=saver.as_saver_def())
    np.savez(folder / "feeds.npz", **feeds)
    losses = [session.run([loss, train], {placeholders[name]: array[i * BATCH:(i + 1) * BATCH] for name, array in feeds.items()})[0] for i in range(STEPS)]
    variables = {variable.op.name: session.run(variable) for variable in tf1.global_variables()}
    return losses, variables


def compare(folder, losses, variables):
    got = read_losses(folder / "log.jsonl")
    found = [] if np.allclose(got, losses, rtol=1e-4) else [f"losses {got}, not {losses}"]
    with np.load(folder / "final.npz") as file:
        return found + [f"variable {name} is {np.max(np.abs(file[name] - want)):.1e} off" for name, want in variables.items()
                        if name in file and not np.allclose(file[name], want, rtol=1e-4, atol=1e-5)]


def has_own_values(tf1, built, strategy, replicas=2):
    """Where replicas use values of their own, a loss that has none that depends on several examples is trained as by one device: rows are all replicas'."""
    loss = built[0]
    with Folder() as folder, tf1.Session() as session:
        want = train_in_tensorflow(tf1, session, built, folder)
        must([DISTC, "compile", folder / "graph.meta", "--train-op", "train", "--loss", loss.name, "--no-init", "--strategy", strategy, "--ps", 2, "--replicas", replicas,
              "--batch", BATCH, "-o", folder / "train"])
        must([folder / "train", "--data", folder / "feeds.npz", "--steps", STEPS, "--restore", folder / "init.ckpt", "--log-json", folder / "log.jsonl",
              "--export-npz", folder / "final.npz"])
        return compare(folder, *want)


def build_several(tf1, make):
    """Tables of several sizes, one of them read twice, and one by what another one's rows say."""
    rng = np.random.default_rng(4)
    tf1.reset_default_graph()
    users, items, y = (tf1.placeholder(type, [None], name) for name, type in (("users", tf1.int32), ("items", tf1.int32), ("y", tf1.float32)))
    variable = lambda name, shape, seed: tf1.get_variable(name, shape, initializer=tf1.random_uniform_initializer(-1, 1, seed=seed), use_resource=True)
    user, item, word = variable("user", [ROWS, WIDTH], 1), variable("item", [27, WIDTH], 2), variable("word", [10, WIDTH], 3)
    said = tf1.nn.embedding_lookup(user, users)
    words = tf1.cast(tf1.stop_gradient(tf1.floor(tf1.abs(said[:, 0]) * 9.0)), tf1.int32)
    rows = tf1.concat([said, tf1.nn.embedding_lookup(item, items), tf1.nn.embedding_lookup(item, tf1.math.floormod(items + users, 27)),
                       tf1.nn.embedding_lookup(word, words)], 1)
    kernel = variable("kernel", [4 * WIDTH, 1], 4)
    loss = tf1.reduce_mean(tf1.square(tf1.reshape(tf1.tanh(rows) @ kernel, [-1]) - y), name="loss")
    train = tf1.group(make().minimize(loss), name="train")
    feeds = {"users": rng.integers(0, ROWS, STEPS * BATCH).astype(np.int32), "items": rng.integers(0, 27, STEPS * BATCH).astype(np.int32),
             "y": rng.standard_normal(STEPS * BATCH).astype(np.float32)}
    return loss, train, {"users": users, "items": items, "y": y}, feeds


def trains(tf1, built, strategy, servers, is_whole, pulls=None):
    """pulls: how often a replica waits for rows of tables, where that is to be looked at."""
    loss = built[0]
    with Folder() as folder, tf1.Session() as session:
        want = train_in_tensorflow(tf1, session, built, folder)
        must([DISTC, "compile", folder / "graph.meta", "--train-op", "train", "--loss", loss.name, "--no-init", "--strategy", strategy, "--ps", servers, "--replicas", 2,
              "--one-process-per-replica", "--batch", BATCH, "-o", folder / "train"])
        must([folder / "train", "--data", folder / "feeds.npz", "--steps", STEPS, "--restore", folder / "init.ckpt", "--log-json", folder / "log.jsonl",
              "--export-npz", folder / "final.npz", "--collectives=network"])
        plan = must([folder / "train", "--plan", "--collectives=network"]).stdout
        found = compare(folder, *want)
        # What has the table's shape, or a shard's, is in one task.
        held = [line for line in plan.splitlines() if re.search(rf"\((\d+), {WIDTH}\) ", line) and "alone" not in line]
        step = plan.partition("Synchronized in step")[2].partition("Synchronized in")[0]
        if pulls and (step.count("rows pulled from") != pulls or step.count("rows pushed to") != 1):
            found.append(f"not {pulls} pulls and a push: {step}")
        if bool(held) != is_whole:
            found.append("whole in every task: " + "; ".join(held) if held else "no task holds all of it")
        return found


def main():
    need_tools()
    tf1, tf = need_tensorflow()
    try:
        import tf_keras as keras
    except ImportError:
        skip("needs tf-keras: pip install tf-keras")
    tf1.disable_eager_execution()
    checks = Checks(share=0.5)
    for i, (name, make) in enumerate(optimizers(tf1, keras).items()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        strategy, servers = (("PartitionedPS", 2), ("PSLoadBalancing", 2), ("UnevenPartitionedPS", 3))[i % 3]
        checks.check(f"{name}, {strategy}", trains, tf1, build(tf1, make), strategy, servers, name in WHOLE)
        for strategy in OWN_VALUES:
            checks.check(f"{name}, {strategy}", has_own_values, tf1, build(tf1, make), strategy)
        # Of one replica servers that take gradients as they come make what a device makes.
        checks.check(f"{name}, PS:sync=false", has_own_values, tf1, build(tf1, make), "PS:sync=false", 1)
    for name, make in (("Adagrad", lambda: tf1.train.AdagradOptimizer(0.1)), ("Momentum", lambda: tf1.train.MomentumOptimizer(0.1, 0.9))):
        for strategy, servers in (("PartitionedPS", 2), ("PSLoadBalancing", 2)):
            if not sys.argv[1:]:
                checks.check(f"several tables, {name}, {strategy}", trains, tf1, build_several(tf1, make), strategy, servers, False, 2)
    checks.exit()


if __name__ == "__main__":
    main()
