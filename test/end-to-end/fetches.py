"""What --eval --fetch gives over several replicas: a batched tensor's rows in the data's order and as many as the data has,
the mean of a scalar."""
import numpy as np

from support import DISTC, Checks, Folder, Model, must, need_tools

ROWS = 31  # in batches of 12: the last one is not full


def evaluates(replicas):
    model = Model("linreg-sgd")
    x = np.linspace(-3, 5, ROWS, dtype=np.float32)
    y = np.full(ROWS, 0.5, np.float32)
    with Folder() as folder:
        np.savez(folder / "data.npz", x=x, y=y)
        executable = model.compile(folder / "train", replicas, "AllReduce", "--fetch", "add")
        must([DISTC, "checkpoint", "export", model.checkpoint, folder / "variables.npz"])
        variables = np.load(folder / "variables.npz")
        evaluate = [executable, "--eval", "--data", folder / "data.npz", "--restore", model.checkpoint]
        out = must([*evaluate, "--fetch", "add", "--fetch", "loss", "--export-npz", folder / "out.npz"]).stdout
        got = np.load(folder / "out.npz")
    want = variables["w"] * x + variables["b"]
    found = []
    if got["add:0"].shape != want.shape or not np.allclose(got["add:0"], want, rtol=1e-6):
        found.append(f"add:0 is {got['add:0']}, not {want}")
    loss = np.mean(np.square(want - y))
    if not np.allclose(got["loss:0"], loss, rtol=1e-5):
        found.append(f"loss:0 is {got['loss:0']}, not {loss}")
    if f"add:0: float32 ({ROWS},)" not in out or "loss:0 = " not in out:
        found.append(f"printed:\n{out}")
    return found


GRAPH = """
dfg.graph attributes {loss = "loss:0", fetches = ["largest:0", "any:0"]} {
  %x = dfg.placeholder : () -> tensor<?xf64> loc("x")
  %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
  %limit = dfg.const dense<4.0> : tensor<f64> : tensor<f64> loc("limit")
  %loss = dfg.mean %x, %zero : (tensor<?xf64>, tensor<1xi32>) -> tensor<f64> loc("loss")
  %largest = dfg.max %x, %zero : (tensor<?xf64>, tensor<1xi32>) -> tensor<f64> loc("largest")
  %beyond = dfg.greater %x, %limit : (tensor<?xf64>, tensor<f64>) -> tensor<?xi1> loc("beyond")
  %any = dfg.any %beyond, %zero : (tensor<?xi1>, tensor<1xi32>) -> tensor<i1> loc("any")
}
"""


def largest(replicas):
    """What replicas have alike is what each of them has, to the last bit."""
    found = []
    with Folder() as folder:
        (folder / "graph.mlir").write_text(GRAPH)
        must([DISTC, "compile", folder / "graph.mlir", "--replicas", replicas, "--batch", 3 * replicas, "-o", folder / "train"])
        for seed in range(20):
            x = np.random.default_rng(seed).normal(size=3 * replicas) * 3
            np.savez(folder / "data.npz", x=x)
            must([folder / "train", "--eval", "--data", folder / "data.npz", "--export-npz", folder / "out.npz"])
            got = np.load(folder / "out.npz")
            if got["largest:0"] != x.max() or got["any:0"] != (x > 4).any():
                found.append(f"{got['largest:0']!r} and {got['any:0']}, not {x.max()!r} and {(x > 4).any()}")
    return found


if __name__ == "__main__":
    need_tools()
    checks = Checks()
    for replicas in (1, 2, 4):
        checks.check(f"fetches x{replicas}", evaluates, replicas)
    for replicas in (3, 7):
        checks.check(f"a maximum of {replicas} replicas", largest, replicas)
    checks.exit()
