"""The guide's three ways to a training graph: what its Python writes, distc compiles for one and two replicas, and the losses of the first steps
are TensorFlow's; checkpoints go both ways. Keras 3 and tf_keras are tested where they are installed."""
import importlib.util
import os
import re
import sys

import numpy as np

from support import DISTC, ROOT, Checks, Folder, must, need_tensorflow, need_tools, read_losses
from tensorflow_runs import load_runner

STEPS, BATCH = 4, 60
# Behind the guide's code, in its process: trains it in TensorFlow, and restores what distc saves.
TRAIN = """
import sys, numpy as np
data = np.load("data.npz")
batches = [{name[len("train_"):]: data[name][k * BATCH:(k + 1) * BATCH] for name in data.files} for k in range(STEPS)]
if "graph" in globals():
    with tf1.Session(graph=graph) as session:
        session.run(init)
        losses = [session.run([loss, train], {image: batch["image"], label: batch["label"]})[0] for batch in batches]
else:
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    started = checkpoint.write("started")
    losses = [float(train(tf.constant(batch["image"]), tf.constant(batch["label"]))["loss"]) for batch in batches]
    values = [np.asarray(v) for v in model.variables]
    if sys.argv[1:]:
        checkpoint.read(sys.argv[1]).expect_partial()
        for variable, value in zip(model.variables, values):
            np.testing.assert_allclose(np.asarray(variable), value, rtol=1e-3, atol=1e-5)
np.save("losses.npy", losses)
"""


def read_blocks():
    """The guide's code by the heading above it."""
    text = (ROOT / "docs" / "guide.md").read_text()
    return dict(re.findall(r"^### ([^\n]+)\n(?:(?!^###).)*?^```python\n(.*?)^```", text, re.M | re.S))


def check_way(code):
    with Folder() as folder:
        script = code + TRAIN.replace("BATCH", str(BATCH)).replace("STEPS", str(STEPS))
        # Each run of the script begins with the same weights.
        is_graph = "graph.meta" in code
        keras = "tf_keras" if "import tf_keras" in code else "keras"
        seed = "" if is_graph else f'import os\nos.environ["KERAS_BACKEND"] = "tensorflow"\nimport {keras}\n{keras}.utils.set_random_seed(3)\n'
        (folder / "way.py").write_text(seed + script.replace('name[len("train_"):]', "name" if is_graph else 'name[len("train_"):]'))
        with np.load(ROOT / "examples" / "digits" / "train.npz") as data:
            np.savez(folder / "data.npz", **{("" if is_graph else "train_") + name: data[name] for name in data.files})

        def run_way(*arguments):
            must([sys.executable, "way.py", *arguments], cwd=folder, timeout=400, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
            return np.load(folder / "losses.npy")

        want = run_way()
        for replicas in (1, 2):
            program, log = folder / f"train{replicas}", folder / f"{replicas}.jsonl"
            must([DISTC, "compile", folder / ("graph.meta" if is_graph else "saved"), "--replicas", replicas, "--batch", BATCH, "-o", program])
            # The values that were saved, and the same as a checkpoint of other objects.
            for start in ([],) if is_graph else (["--restore", folder / "saved"], ["--restore", folder / "started"]):
                must([program, "--quiet", "--data", folder / "data.npz", "--steps", STEPS, "--log-json", log, "--checkpoint-dir",
                      folder / f"checkpoints{replicas}", "--overwrite", *start])
                np.testing.assert_allclose(read_losses(log), want, rtol=1e-4)
                log.unlink()
        if not is_graph:
            run_way(folder / "checkpoints2" / f"ckpt-{STEPS}")
            check_export(folder, want)
            run_way(folder / "exported")


def check_export(folder, want):
    """What a SavedModel becomes for TensorFlow: it begins with the values that were saved, and saves a checkpoint of the objects."""
    runner = load_runner()
    must([DISTC, "compile", folder / "saved", "--strategy", "PartitionedPS", "--replicas", 2, "--ps", 2, "--one-process-per-replica", "--batch", BATCH,
          "--emit=graphdef", "-o", folder / "graphs"])
    losses = runner.train(folder / "graphs", folder / "data.npz", STEPS, restore=folder / "saved" / "variables" / "variables",
                          save=folder / "exported", timeout=120)
    np.testing.assert_allclose(losses, want, rtol=1e-4)
    try:
        runner.train(folder / "graphs", folder / "data.npz", 1, timeout=120)
    except runner.TaskError as error:
        assert "nothing initializes" in str(error), error
    else:
        raise AssertionError("it trained without initial values")


def main():
    need_tools()
    need_tensorflow()
    checks = Checks()
    blocks = read_blocks()
    for heading, module in (("TensorFlow 1, or `tf.compat.v1` of TensorFlow 2", None), ("Keras 3", "keras"), ("tf_keras", "tf_keras")):
        if module and not importlib.util.find_spec(module):
            print(f"skipped: {heading}: it is not installed")
        else:
            checks.check(heading, check_way, blocks[heading])
    checks.exit()


if __name__ == "__main__":
    main()
