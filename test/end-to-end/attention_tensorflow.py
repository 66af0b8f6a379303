"""Attentions in one operation (drt-fuse-attention), of bfloat16 on the emulated GPU and of float32 on processors: their losses and gradients are TensorFlow's, on GPUs to
bfloat16's rounding, for any number of tokens, size of heads and mask; and what reads probabilities elsewhere has no such operation, and the same numbers.

  attention_tensorflow.py [NAME...]
"""
import re
import sys

import numpy as np

from support import DISTC, Checks, Folder, must, need_emulated_tensorflow, trained, write_graph

# Name: batch, queries, keys, heads, size of a head, mask; of the step and of the evaluation, attentions and their gradients on a GPU, and on a processor.
CASES = {
    "one tile": (2, 64, 64, 2, 32, None, (3, 1), (2, 1)),
    "fewer tokens than a warp has": (3, 5, 5, 1, 16, None, (3, 1), (2, 1)),
    "a tile and a part": (1, 70, 70, 2, 64, None, (3, 1), (2, 1)),
    "more keys than queries": (2, 18, 130, 1, 48, None, (3, 1), (2, 1)),
    "heads of 128": (1, 33, 80, 1, 128, None, (3, 1), (2, 1)),
    "keys that a mask leaves out": (3, 20, 70, 2, 16, "keys", (3, 1), (2, 1)),
    "an example that a mask leaves out": (3, 20, 70, 2, 16, "example", (3, 1), (2, 1)),
    "a mask of all": (2, 70, 70, 1, 16, "all", (3, 1), (2, 1)),
    "later tokens left out": (2, 40, 40, 2, 16, "later", (3, 1), (2, 1)),
    "a sum that is learned": (2, 24, 24, 1, 16, "learned", (0, 1), (0, 1)),
    "heads of 24": (2, 20, 20, 1, 24, None, (0, 0), (2, 1)),
    "probabilities that the loss reads": (2, 20, 20, 2, 16, "read", (0, 0), (0, 0)),
}
# On processors alone: several blocks of queries.
LONG = (1, 300, 900, 2, 32, "keys", (0, 0), (2, 1))
FLOAT32 = 1e-4  # of gradients
BF16 = 8e-3  # of gradients: what is left of some roundings to 8 bits, where queries, keys and values need none


def build(tf, batch, queries, keys, heads, size, mask):
    rng = np.random.RandomState(3)
    width = 24
    x, y = tf.placeholder(tf.float32, [None, queries, width], "x"), tf.placeholder(tf.float32, [None, keys, width], "y")
    want = tf.placeholder(tf.float32, [None, queries, heads * size], "want")
    grid = lambda *sizes: rng.randint(-12, 13, sizes) / 8  # noqa: E731
    data = {"x": grid(batch, queries, width), "y": grid(batch, keys, width), "want": rng.randn(batch, queries, heads * size)}

    def project(of, tokens, name, scale):
        # Of one column each: exact in bfloat16.
        kernel = np.zeros([width, heads * size], np.float32)
        kernel[rng.randint(0, width, heads * size), np.arange(heads * size)] = scale
        kernel = tf.get_variable(name, initializer=kernel)
        flat = tf.matmul(tf.reshape(of, [-1, width]), kernel)
        return tf.transpose(tf.reshape(flat, [-1, tokens, heads, size]), [0, 2, 1, 3])

    # Scores of some units: probabilities are far from equal.
    query, key, value = project(x, queries, "query", 2), project(y, keys, "key", 1), project(y, keys, "value", 1)
    scores = tf.matmul(query, key, transpose_b=True) * size**-0.5
    if mask in ("keys", "example"):
        kept = tf.placeholder(tf.float32, [None, keys], "kept")
        data["kept"] = (np.arange(keys) < rng.randint(1, keys, [batch, 1])).astype(np.float32)
        if mask == "example":  # Softmax of equal numbers: beside them the logarithm of their sum is less than a rounding.
            data["kept"][0] = 0
        scores += (1 - kept[:, None, None, :]) * -1e9
    elif mask == "all":
        scores += tf.placeholder(tf.float32, [None, heads, queries, keys], "added")
        data["added"] = rng.randn(batch, heads, queries, keys) * 3
    elif mask == "later":
        scores += np.triu(np.full([queries, keys], -np.inf, np.float32), 1)
    elif mask == "learned":
        scores += tf.get_variable("bias", initializer=rng.randn(heads, queries, keys).astype(np.float32))
    probabilities = tf.nn.softmax(scores)
    mixed = tf.reshape(tf.transpose(tf.matmul(probabilities, value), [0, 2, 1, 3]), [-1, queries, heads * size])
    out = tf.get_variable("out", initializer=(rng.randn(heads * size, heads * size) * 0.3).astype(np.float32))
    mixed = tf.reshape(tf.matmul(tf.reshape(mixed, [-1, heads * size]), out), [-1, queries, heads * size])
    loss = tf.reduce_mean((mixed - want) ** 2)
    if mask == "read":
        loss += tf.reduce_mean(probabilities**2)
    return loss, {name: array.astype(np.float32) for name, array in data.items()}


def check(tf, target, flags, replicas, batch, queries, keys, heads, size, mask, on_gpu, on_processor):
    batch *= replicas
    with Folder() as folder, tf.Graph().as_default():
        loss, data = build(tf, batch, queries, keys, heads, size, mask)
        train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
        init = tf.global_variables_initializer()
        write_graph(tf, folder / "graph.meta", train, init, loss)
        with tf.Session() as session:
            session.run(init)
            names = [variable.op.name for variable in tf.global_variables()]
            before = session.run(tf.global_variables())
            want_loss, _ = session.run([loss, train], {name + ":0": array for name, array in data.items()})
            after = session.run(tf.global_variables())
        np.savez(folder / "data.npz", **data)
        command = [DISTC, "compile", folder / "graph.meta", "--batch", batch, "--replicas", replicas, *flags, "--target"]
        plan = must([*command, target, "--emit=drt", "-o", "-"]).stdout
        in_step, in_eval = on_processor if target == "cpu" else on_gpu if "bf16" in flags else (0, 0)
        found = []
        for entry, expected in (("step", in_step), ("eval", in_eval)):
            body = plan[plan.index(f'drt.entry "{entry}"'):]
            count = len(re.findall(r"= drt\.attention", body[:body.index("\n  }")]))
            if count != expected:
                found.append(f"{count} attentions and gradients of it in {entry}")
        for chips, expected in (("sm_75,sm_90", False), ("sm_80", True)) if "bf16" in flags and queries == 64 else ():
            other = must([*command, f"cuda:{chips}", "--emit=drt", "-o", "-"]).stdout
            if ("= drt.attention" in other) != expected:
                found.append(f"for {chips} attentions are {'not ' * expected}there")
        must([*command, target, "-o", folder / "train"])
        (got_loss,), variables = trained(folder / "train", folder / "data.npz", 1)
        most = BF16 if "bf16" in flags else FLOAT32
        if not abs(got_loss - want_loss) <= most * abs(want_loss):
            found.append(f"the loss is {got_loss}, not {want_loss}")
        for name, old, new in zip(names, before, after):
            apart = np.linalg.norm(variables[name] - new) / np.linalg.norm(new - old)
            if "-v" in sys.argv:
                print(name, apart)
            if not apart <= most:
                found.append(f"the gradient of {name} is {apart:.1e} apart")
        return found


def main():
    tf = need_emulated_tensorflow()
    checks = Checks()
    wanted = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    for number, (name, case) in enumerate(CASES.items()):
        if not wanted or name in wanted:
            checks.check(name, check, tf, "cuda:emulated", ["--precision", "bf16"], 1 + number % 2, *case)
            checks.check(f"{name}, on a processor", check, tf, "cpu", ["--cores-per-replica", 1 + number % 3], 1 + number % 2, *case)
    if not wanted:
        checks.check("float32", check, tf, "cuda:emulated", ["--precision", "fp32"], 1, *CASES["one tile"])
        checks.check("several blocks of queries, on a processor", check, tf, "cpu", [], 1, *LONG)
    checks.exit()


if __name__ == "__main__":
    main()
