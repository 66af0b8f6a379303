"""Checkpoints of a compiled program restore into TensorFlow's own graph, and TensorFlow's into the program, bit for bit;
those of split variables as well. What a SavedModel's objects own besides the step's variables goes along.

  checkpoint_models_tensorflow.py [NAME…]
"""
import sys

import numpy as np

from support import DISTC, Checks, Folder, Model, must, need_tensorflow, need_tools

# Resource and reference variables, slots, float64, a model whose random initializers have names of Keras.
MODELS = ("linreg-sgd", "linreg-sgd-ref", "mlp-momentum", "mlp-momentum-ref", "mlp-adam", "mlp-adam-ref", "mlp-float64",
          "mlp-rmsprop-centered", "convnet-momentum", "init-keras", "embedding-in-parts")
SPLIT_MODELS = ("embedding-in-parts", "mlp-momentum-ref", "mlp-adam", "mlp-float64", "convnet-momentum")


def other_bits(got, want):
    found = [f"only one side has {name}" for name in set(got) ^ set(want)]
    return found + [f"{name}: other bits" for name in set(got) & set(want)
                    if got[name].dtype != want[name].dtype or got[name].shape != want[name].shape
                    or got[name].tobytes() != want[name].tobytes()]


def crosses(tf, tf1, name, strategy):
    model = Model(name)
    with Folder() as folder:
        train = model.compile(folder / "train", 2, strategy)
        must(model.run_command(train, folder, True, "--checkpoint-dir", folder / "ours"))
        ours = dict(np.load(folder / "final.npz"))
        with tf.Graph().as_default(), tf1.Session() as session:
            saver = tf1.train.import_meta_graph(str(model.graph))
            saver.restore(session, tf1.train.latest_checkpoint(str(folder / "ours")))
            variables = {v.op.name: v for v in tf1.global_variables()}
            read = session.run(variables)
            found = [f"distc to TensorFlow: {d}" for d in other_bits(read, ours)]
            # Other values than those that either has seen, of any bits but those of no number.
            random = np.random.default_rng(1)
            theirs = {v: np.asarray(random.standard_normal(a.shape) * 100).astype(a.dtype) for v, a in read.items()}
            for v, variable in variables.items():
                variable.load(theirs[v], session)
            saver.save(session, str(folder / "theirs"), write_meta_graph=False)
        must([train, "--data", model.feeds, "--steps", 0, "--restore", folder / "theirs", "--export-npz", folder / "back.npz"])
        return found + [f"TensorFlow to distc: {d}" for d in other_bits(dict(np.load(folder / "back.npz")), theirs)]


def check_carried(tf):
    """Variables of a SavedModel that its step does not capture: they are in checkpoints with the values that were restored, and none need be."""
    class Step(tf.Module):
        def __init__(self):
            self.w, self.other, self.places = tf.Variable([1.0, 2.0]), tf.Variable([[5.0, 6.0]]), [tf.Variable(7, dtype=tf.int64), tf.Variable("seven")]

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
        def train(self, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, self.w) - 1.0))
            self.w.assign_sub(0.1 * tape.gradient(loss, self.w))
            return {"loss": loss}

    found = []
    with Folder() as folder:
        step = Step()
        tf.saved_model.save(step, str(folder / "saved"), signatures={"train": step.train})
        tf.train.Checkpoint(w=step.w).write(str(folder / "alone"))
        np.savez(folder / "data.npz", train_x=np.ones((8, 2), np.float32))
        must([DISTC, "compile", folder / "saved", "--replicas", 2, "--batch", 4, "-o", folder / "train"])
        command = [folder / "train", "--data", folder / "data.npz", "--quiet"]
        must([*command, "--steps", 1, "--restore", folder / "saved", "--checkpoint-dir", folder / "ours"])
        must([*command, "--steps", 2, "--resume", "--checkpoint-dir", folder / "ours"])
        trained = Step()
        trained.other.assign([[0.0, 0.0]]), trained.places[0].assign(0)
        tf.train.Checkpoint(trained).read(str(folder / "ours" / "ckpt-2"))
        values = [trained.other.numpy().tolist(), int(trained.places[0])]
        if values != [[[5.0, 6.0]], 7] or np.allclose(trained.w.numpy(), [1, 2]):
            found.append(f"the checkpoint has {values} beside w = {trained.w.numpy()}")
        must([*command, "--steps", 1, "--restore", folder / "alone", "--checkpoint-dir", folder / "less"])
        names = tf.train.load_checkpoint(str(folder / "less" / "ckpt-1")).get_variable_to_shape_map()
        if any("other" in name or "places" in name for name in names):
            found.append(f"variables that were not restored are in the checkpoint: {sorted(names)}")
    return found


def check_parts_of_objects(tf):
    """Servers write what they hold of a SavedModel's variables, task 0 the graph of the objects: it restores into those, with what no step captured."""
    class Step(tf.Module):
        def __init__(self):
            self.w, self.m, self.other = tf.Variable(tf.reshape(tf.range(12.0), [6, 2])), tf.Variable(tf.zeros([6, 2])), tf.Variable([5.0])

        @tf.function(input_signature=[tf.TensorSpec([None, 6], tf.float32, "x")])
        def train(self, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.matmul(x, self.w) - 1.0))
            tf.raw_ops.ResourceApplyMomentum(var=self.w.handle, accum=self.m.handle, lr=0.01, grad=tape.gradient(loss, self.w), momentum=0.9)
            return {"loss": loss}

    found = []
    with Folder() as folder:
        step = Step()
        tf.saved_model.save(step, str(folder / "saved"), signatures={"train": step.train})
        x = np.random.default_rng(3).standard_normal((8, 6)).astype(np.float32)
        np.savez(folder / "data.npz", train_x=x)
        for strategy in ("PSLoadBalancing", "PartitionedPS"):
            must([DISTC, "compile", folder / "saved", "--replicas", 2, "--batch", 8, "--strategy", strategy, "--ps", 2, "--one-process-per-replica", "-o", folder / "train"])
            must([folder / "train", "--data", folder / "data.npz", "--quiet", "--steps", 3, "--save-every", 1, "--restore", folder / "saved", "--checkpoint-dir", folder / strategy,
                  "--collectives=network"])
            if strategy == "PartitionedPS" and not (folder / strategy / "ckpt-3.data-00001-of-00002").exists():
                found.append(f"{strategy}: not in parts: {sorted(file.name for file in (folder / strategy).iterdir())}")
            want, got = Step(), Step()
            for _ in range(3):
                want.train(tf.constant(x))
            got.other.assign([0.0])
            tf.train.Checkpoint(got).read(str(folder / strategy / "ckpt-3")).assert_consumed()
            for name in ("w", "m", "other"):
                if not np.allclose(getattr(got, name).numpy(), getattr(want, name).numpy(), rtol=1e-5, atol=1e-6):
                    found.append(f"{strategy}: {name} is {getattr(got, name).numpy()}, not {getattr(want, name).numpy()}")
    return found


def main():
    tf1, tf = need_tensorflow()
    need_tools()
    checks = Checks()
    for name in sys.argv[1:] or MODELS:
        checks.check(name, crosses, tf, tf1, name, "AllReduce")
    for name in sys.argv[1:] or SPLIT_MODELS:
        checks.check(f"{name}, split", crosses, tf, tf1, name, "RandomAxisPartitionAR:seed=5")
    if not sys.argv[1:]:
        checks.check("what a step does not capture", check_carried, tf)
        checks.check("parts of a SavedModel's objects", check_parts_of_objects, tf)
    checks.exit()


if __name__ == "__main__":
    main()
