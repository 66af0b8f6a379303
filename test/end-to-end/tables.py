"""Tables that no task holds whole: with servers in processes of their own each task has its shards, with their slots, and is given the rows of a batch. What each
holds is what `--plan` says and what a process takes at its peak: at the start, in training, while checkpoints are written and restored. Initial values are one
device's, whatever the number of servers."""
import contextlib
import pathlib
import re
import socket
import subprocess
import time

import numpy as np

from support import DISTC, Checks, Folder, must, need_tools, read_losses

ROWS, WIDTH, BATCH, STEPS = 200_000, 64, 64, 6
WHOLE = 2 * 4 * ROWS * WIDTH  # the table and its slot
# What a program takes beside its variables is a tenth of that; to have another's part as well would be a third at least.
BESIDE = 0.25

GRAPH = f"""
dfg.variable @table : tensor<{ROWS}x{WIDTH}xf32> {{trainable}}
dfg.variable @slot : tensor<{ROWS}x{WIDTH}xf32>
dfg.variable @w : tensor<{WIDTH}xf32> {{trainable}}
dfg.graph attributes {{init_op = "init", train_op = "train", loss = "loss:0"}} {{
  %ids = dfg.placeholder {{shape = #dfg.shape<[?]>}} : () -> tensor<?xi32> loc("ids")
  %y = dfg.placeholder {{shape = #dfg.shape<[?]>}} : () -> tensor<?xf32> loc("y")
  %rate = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("rate")
  %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("half")
  %axis = dfg.const dense<[1]> : tensor<1xi32> : tensor<1xi32> loc("axis")
  %rows = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("rows")
  %last = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("last")
  %shape = dfg.const dense<[{ROWS}, {WIDTH}]> : tensor<2xi32> : tensor<2xi32> loc("shape")
  %begin = dfg.const dense<0.1> : tensor<{ROWS}x{WIDTH}xf32> : tensor<{ROWS}x{WIDTH}xf32> loc("begin")
  %one = dfg.const dense<0.5> : tensor<{WIDTH}xf32> : tensor<{WIDTH}xf32> loc("one")
  %table = dfg.var_handle @table : !dfg.ref<tensor<{ROWS}x{WIDTH}xf32>> loc("table")
  %slot = dfg.var_handle @slot : !dfg.ref<tensor<{ROWS}x{WIDTH}xf32>> loc("slot")
  %w = dfg.var_handle @w : !dfg.ref<tensor<{WIDTH}xf32>> loc("w")
  %random = dfg.random_uniform %shape {{seed = 3 : i64, seed2 = 4 : i64}} : (tensor<2xi32>) -> tensor<{ROWS}x{WIDTH}xf32> loc("random")
  %initial = dfg.sub %random, %rate : (tensor<{ROWS}x{WIDTH}xf32>, tensor<f32>) -> tensor<{ROWS}x{WIDTH}xf32> loc("initial")
  dfg.assign %table, %initial : (!dfg.ref<tensor<{ROWS}x{WIDTH}xf32>>, tensor<{ROWS}x{WIDTH}xf32>) -> () loc("table/Assign")
  dfg.assign %slot, %begin : (!dfg.ref<tensor<{ROWS}x{WIDTH}xf32>>, tensor<{ROWS}x{WIDTH}xf32>) -> () loc("slot/Assign")
  dfg.assign %w, %one : (!dfg.ref<tensor<{WIDTH}xf32>>, tensor<{WIDTH}xf32>) -> () loc("w/Assign")
  dfg.group {{control = ["table/Assign", "slot/Assign", "w/Assign"]}} : () -> () loc("init")
  %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<{ROWS}x{WIDTH}xf32>>, tensor<?xi32>) -> tensor<?x{WIDTH}xf32> loc("x")
  %weights = dfg.read_variable %w : (!dfg.ref<tensor<{WIDTH}xf32>>) -> tensor<{WIDTH}xf32> loc("weights")
  %scaled = dfg.mul %x, %weights : (tensor<?x{WIDTH}xf32>, tensor<{WIDTH}xf32>) -> tensor<?x{WIDTH}xf32> loc("scaled")
  %sum = dfg.sum %scaled, %axis : (tensor<?x{WIDTH}xf32>, tensor<1xi32>) -> tensor<?xf32> loc("sum")
  %error = dfg.sub %sum, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> loc("error")
  %square = dfg.square %error : (tensor<?xf32>) -> tensor<?xf32> loc("square")
  %loss = dfg.mean %square, %rows : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  %batch = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("batch")
  %count = dfg.cast %batch : (tensor<i32>) -> tensor<f32> loc("count")
  %mean = dfg.real_div %error, %count : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32> loc("mean")
  %column = dfg.expand_dims %mean, %last : (tensor<?xf32>, tensor<i32>) -> tensor<?x1xf32> loc("column")
  %gx = dfg.mul %column, %weights : (tensor<?x1xf32>, tensor<{WIDTH}xf32>) -> tensor<?x{WIDTH}xf32> loc("gx")
  %each = dfg.mul %column, %x : (tensor<?x1xf32>, tensor<?x{WIDTH}xf32>) -> tensor<?x{WIDTH}xf32> loc("each")
  %gw = dfg.sum %each, %rows : (tensor<?x{WIDTH}xf32>, tensor<1xi32>) -> tensor<{WIDTH}xf32> loc("gw")
  dfg.apply_gradient_descent %w, %rate, %gw : (!dfg.ref<tensor<{WIDTH}xf32>>, tensor<f32>, tensor<{WIDTH}xf32>) -> () loc("w/update")
@RULE@
  dfg.group {{control = ["w/update", "table/update"]}} : () -> () loc("train")
}}
"""
TYPE = f"tensor<{ROWS}x{WIDTH}xf32>"
RULES = {
    "Adagrad": f"""
  dfg.sparse_apply_adagrad %table, %slot, %rate, %gx, %ids : (!dfg.ref<{TYPE}>, !dfg.ref<{TYPE}>, tensor<f32>, tensor<?x{WIDTH}xf32>, tensor<?xi32>) -> () loc("table/update")
""",
    # As TensorFlow spells Adam out: the slot decays as a whole, rows are added to it, the whole table changes.
    "a rule that is spelled out": f"""
  %before = dfg.read_variable %slot : (!dfg.ref<{TYPE}>) -> {TYPE} loc("before")
  %decayed = dfg.mul %before, %half : ({TYPE}, tensor<f32>) -> {TYPE} loc("decayed")
  dfg.assign %slot, %decayed : (!dfg.ref<{TYPE}>, {TYPE}) -> () loc("slot/decay")
  dfg.scatter_add %slot, %ids, %gx {{control = ["slot/decay"]}} : (!dfg.ref<{TYPE}>, tensor<?xi32>, tensor<?x{WIDTH}xf32>) -> () loc("slot/add")
  %now = dfg.read_variable %slot {{control = ["slot/add"]}} : (!dfg.ref<{TYPE}>) -> {TYPE} loc("now")
  %step = dfg.mul %now, %rate : ({TYPE}, tensor<f32>) -> {TYPE} loc("step")
  dfg.assign_sub %table, %step : (!dfg.ref<{TYPE}>, {TYPE}) -> () loc("table/update")
""",
}


def make_case(folder, rule):
    (folder / "graph.mlir").write_text(GRAPH.replace("@RULE@", RULES[rule]))
    rng = np.random.default_rng(1)
    # No row twice in a batch, which Adagrad's rule would see in an order.
    ids = np.concatenate([rng.choice(ROWS, BATCH, replace=False) for _ in range(STEPS)]).astype(np.int32)
    np.savez(folder / "feeds.npz", ids=ids, y=rng.standard_normal(len(ids)).astype(np.float32))


def compiled(folder, name, strategy, *flags):
    must([DISTC, "compile", folder / "graph.mlir", "--train-op", "train", "--loss", "loss:0", "--init-op", "init", "--fetch", "loss:0", "--strategy", strategy,
          "--batch", BATCH, "-o", folder / name, *flags])
    return folder / name


def train(program, folder, name, *flags, tasks=2):
    """The losses, and the peak of each task in bytes. Tasks are started by hand, so that each is a child of this script."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        rendezvous = f"127.0.0.1:{port.getsockname()[1]}"
    command = [program, "--data", folder / "feeds.npz", "--log-json", folder / f"{name}.jsonl", "--collectives=network", "--quiet", *flags]
    children = [subprocess.Popen([str(part) for part in [*command, "--task", f"worker:{i}", "--rendezvous", rendezvous]], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True) for i in range(tasks)]
    # What wait4 says of a child is no less than what this process has.
    peaks = [0] * tasks
    while any(child.poll() is None for child in children):
        for i, child in enumerate(children):
            with contextlib.suppress(OSError, TypeError):
                peaks[i] = 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", pathlib.Path(f"/proc/{child.pid}/status").read_text())[1])
        time.sleep(0.005)
    for child in children:
        if child.returncode != 0:
            raise AssertionError(f"a task ended with {child.returncode}: {child.stderr.read()}")
    return read_losses(folder / f"{name}.jsonl"), peaks


def too_much(what, peaks, most):
    return [f"{what}: task {i} took {peak / WHOLE:.2f} of the table and its slot" for i, peak in enumerate(peaks) if peak > most * WHOLE]


def held(folder, reference, strategy, servers, share):
    """`share`: of the table, what the task holds that holds most."""
    most = share + BESIDE
    flags = ("--ps", servers, "--replicas", 2, "--one-process-per-replica")
    program = compiled(folder, "held", strategy, *flags)
    plan = must([program, "--plan", "--collectives=network"]).stdout
    figures = re.findall(r"variables +([\d.]+) MB", plan)
    found = [] if figures and all(float(figure) * 1e6 < (share + 0.01) * WHOLE for figure in figures) else [f"the plan says: {plan}"]
    found += [f"'{text}' is not in the plan: {plan}" for text in ("rows pulled from worker:0", "rows pushed to worker:0, worker:1", "in worker:1 alone") if text not in plan]
    checkpoints = folder / f"checkpoints-{servers}"
    half, peaks = train(program, folder, "first", "--steps", STEPS // 2, "--checkpoint-dir", checkpoints, "--overwrite",
                        "--eval-data", folder / "feeds.npz", "--eval-every", STEPS // 2)
    found += too_much("from the start to a checkpoint", peaks, most)
    rest, peaks = train(program, folder, "second", "--steps", STEPS, "--resume", "--checkpoint-dir", checkpoints)
    found += too_much("from a checkpoint to another", peaks, most)
    if [*half, *rest] != reference["losses"]:
        found.append(f"losses {half}, {rest}, not {reference['losses']}")
    evaluated = re.search(r'"eval".*?"loss:0": ?([-\d.e]+)', (folder / "first.jsonl").read_text())
    if not evaluated or not np.isclose(float(evaluated[1]), reference["evaluated"], rtol=1e-5):
        found.append(f"evaluated {evaluated and evaluated[1]}, not {reference['evaluated']}")
    # One process, which has all tables.
    text = must([program, "--eval", "--fetch", "loss:0", "--data", folder / "feeds.npz", "--restore", checkpoints / f"ckpt-{STEPS // 2}"]).stdout
    alone = re.search(r"loss:0 = (\S+)", text)
    if not alone or not np.isclose(float(alone[1]), reference["evaluated"], rtol=1e-5):
        found.append(f"evaluated alone {text}, not {reference['evaluated']}")
    must([DISTC, "checkpoint", "export", checkpoints / f"ckpt-{STEPS}", folder / "final.npz"])
    with np.load(folder / "final.npz") as file:
        found += [f"variable {name} differs" for name, want in reference["variables"].items() if not np.array_equal(file[name], want)]
    return found


def main():
    need_tools()
    checks = Checks()
    for rule, strategies in (("Adagrad", (("PartitionedPS", 2, 0.5), ("fixed_size:shards=5", 3, 0.6))), ("a rule that is spelled out", (("PartitionedPS", 2, 0.5),))):
        with Folder() as folder:
            make_case(folder, rule)
            # Every task has all of it: the numbers to compare with.
            program = compiled(folder, "whole", "AllReduce", "--replicas", 2, "--one-process-per-replica")
            losses, peaks = train(program, folder, "whole", "--steps", STEPS, "--export-npz", folder / "whole.npz", "--eval-data", folder / "feeds.npz",
                                  "--eval-every", STEPS // 2)
            evaluated = re.search(r'"eval".*?"loss:0": ?([-\d.e]+)', (folder / "whole.jsonl").read_text())
            with np.load(folder / "whole.npz") as file:
                reference = {"losses": losses, "evaluated": float(evaluated[1]), "variables": {name: file[name] for name in file.files}}
            checks.check(f"{rule}: the measure sees a whole table", lambda: [] if min(peaks) > WHOLE else [f"peaks {peaks}"])
            for strategy, servers, share in strategies:
                checks.check(f"{rule}: {strategy}, {servers} servers", held, folder, reference, strategy, servers, share)
    checks.exit()


if __name__ == "__main__":
    main()
