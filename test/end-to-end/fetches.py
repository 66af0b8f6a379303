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


if __name__ == "__main__":
    need_tools()
    checks = Checks()
    for replicas in (1, 2, 4):
        checks.check(f"fetches x{replicas}", evaluates, replicas)
    checks.exit()
