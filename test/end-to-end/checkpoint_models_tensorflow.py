"""Checkpoints of a compiled program restore into TensorFlow's own graph, and TensorFlow's into the program, bit for bit;
those of split variables as well.

  checkpoint_models_tensorflow.py [NAME…]
"""
import sys

import numpy as np

from support import Checks, Folder, Model, must, need_tensorflow, need_tools

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


def main():
    tf1, tf = need_tensorflow()
    need_tools()
    checks = Checks()
    for name in sys.argv[1:] or MODELS:
        checks.check(name, crosses, tf, tf1, name, "AllReduce")
    for name in sys.argv[1:] or SPLIT_MODELS:
        checks.check(f"{name}, split", crosses, tf, tf1, name, "RandomAxisPartitionAR:seed=5")
    checks.exit()


if __name__ == "__main__":
    main()
