"""What devices have no code for runs on the host, in the order of a device's work: linear algebra, CTC losses, candidate sampling, assertions. On the
emulated GPU, beside TensorFlow's numbers; and what an assertion says where it does not hold."""
import json
import os

import numpy as np

from support import DISTC, Checks, Folder, must, need_emulated_gpu, need_tensorflow, need_tools, run

BATCH, STEPS = 8, 4
TARGET = "--target=cuda:emulated"
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Graph:
    """Feeds x [b, 4] and y [b]; a loss is the mean square of what each example gives, less y."""

    def __init__(self, tf, tf2):
        self.tf, self.tf2 = tf, tf2
        self.x, self.y = tf.placeholder(tf.float32, [None, 4], "x"), tf.placeholder(tf.float32, [None], "y")

    def variable(self, name, *shape):
        return self.tf.get_variable(name, initializer=np.linspace(-1, 1, int(np.prod(shape))).reshape(shape).astype(np.float32))

    def layer(self, x):
        return self.tf.squeeze(self.tf.matmul(x, self.variable("w", 4, 1)), 1)

    def matrices(self):
        """Positive definite ones."""
        return self.tf.eye(4)[None] * 3.0 + 0.1 * self.x[:, :, None] * self.x[:, None, :]


@case
def linear_algebra(g):
    linalg = g.tf2.linalg
    factors, inverses = linalg.cholesky(g.matrices()), linalg.inv(g.matrices())
    return g.layer(g.x) * linalg.trace(factors) + g.tf.reduce_sum(inverses, [1, 2]) * linalg.slogdet(g.matrices())[1]


@case
def temporal_classification(g):
    logits = g.tf.reshape(g.tf.matmul(g.x, g.variable("kernel", 4, 30)), [-1, 6, 5])
    labels = g.tf.minimum(g.tf.cast(g.tf.abs(g.x[:, :2]), g.tf.int32), 3)
    rows = g.tf.shape(g.x)[0]
    return g.layer(g.x) + g.tf.nn.ctc_loss_v2(labels, logits, g.tf.fill([rows], 2), g.tf.fill([rows], 6), logits_time_major=False, blank_index=4)


@case
def sampled_classes(g):
    labels = g.tf.cast(g.tf.abs(g.x[:, :1]) * 7, g.tf.int64)
    return g.layer(g.x) + g.tf.nn.sampled_softmax_loss(g.variable("table", 50, 4), g.variable("bias", 50), labels, g.x, 6, 50, seed=3)


@case
def what_holds(g):
    tf = g.tf
    with tf.control_dependencies([tf.Assert(tf.reduce_all(g.x < 100.0), ["x was", g.x], summarize=3)]):
        return g.layer(tf.debugging.check_numerics(tf.identity(g.x) / (200.0 - g.x), "quotients"))


def make(tf, tf2, name, folder):
    """The graph, its data, and TensorFlow's losses."""
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        g = Graph(tf, tf2)
        loss = tf.identity(tf.reduce_mean(tf.square(CASES[name](g) - g.y)), "loss")
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, name="train")
        tf.global_variables_initializer()
        tf.train.export_meta_graph(str(folder / "graph.meta"))
        numbers = np.random.default_rng(11)
        data = {"x": numbers.normal(size=(BATCH * STEPS, 4)).astype(np.float32), "y": numbers.normal(size=BATCH * STEPS).astype(np.float32)}
        np.savez(folder / "data.npz", **data)
        # Of the third step a feature is no more what the assertion asks for; of the second it makes a quotient infinite.
        for step, value in ((2, 150.0), (1, 200.0)):
            x = data["x"].copy()
            x[step * BATCH, 2] = value
            np.savez(folder / f"wrong{value:.0f}.npz", **data | {"x": x})
        with tf.Session() as session:
            session.run("init")
            return [session.run([loss, train], {f"{key}:0": array[k * BATCH:(k + 1) * BATCH] for key, array in data.items()})[0] for k in range(STEPS)]


def compile_for(folder, replicas, *flags):
    must([DISTC, "compile", folder / "graph.meta", "--replicas", replicas, "--batch", BATCH, "--loss", "loss:0", "--train-op", "train", "--init-op", "init", "-o",
          folder / "train", TARGET, *flags])


def check(folder, want, replicas, *flags):
    compile_for(folder, replicas, *flags)
    must([folder / "train", "--data", folder / "data.npz", "--steps", STEPS, "--log-json", folder / "log.jsonl"],
         env=dict(os.environ, DRT_EMULATED_SEED=str(replicas)))
    got = [record["loss"] for record in map(json.loads, open(folder / "log.jsonl")) if "loss" in record]
    return [] if np.allclose(got, want, rtol=1e-4) else [f"losses are {got}, TensorFlow's {want}"]


def check_broken(folder, replicas, value, words, *flags):
    """The run ends with the words, and its last checkpoint is of the step before."""
    compile_for(folder, replicas, *flags)
    step = 2 if value == 150 else 1
    done = run([folder / "train", "--data", folder / f"wrong{value}.npz", "--steps", STEPS, "--log-json", folder / "log.jsonl"])
    if f"failed in step {step} " not in done.stderr:
        return [f"it did not fail in step {step}: {done.out}"]
    done = run([folder / "train", "--data", folder / f"wrong{value}.npz", "--steps", STEPS, "--checkpoint-dir", folder / "ckpt", "--save-every", 1,
                "--overwrite"])
    saved = sorted(path.stem for path in (folder / "ckpt").glob("*.index"))
    found = [] if done.returncode == 1 and words in done.stderr else [f"exit status {done.returncode}, expected 1 and: {words}\n{done.out}"]
    return found + ([] if saved and saved[-1] == f"ckpt-{step}" else [f"checkpoints are {saved}"])


def main():
    need_tools()
    need_emulated_gpu()
    tf, tf2 = need_tensorflow()
    tf.disable_eager_execution()
    checks = Checks()
    for name in CASES:
        with Folder() as folder:
            want = make(tf, tf2, name, folder)
            for replicas in (1, 2):
                checks.check(f"{name} x{replicas}", check, folder, want, replicas)
            if name == "what_holds":
                checks.check("an assertion", check_broken, folder, 1, 150, "assertion failed: [x was] [")
                checks.check("an assertion, two processes", check_broken, folder, 2, 150, "assertion failed", "--one-process-per-replica")
                checks.check("a check for numbers, without assertions", check_broken, folder, 2, 200, "quotients : Tensor had NaN or Inf values", "--no-asserts")
    checks.exit()


if __name__ == "__main__":
    main()
