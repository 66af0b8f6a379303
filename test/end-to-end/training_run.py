"""What a user does with an executable beside plain training: going on, evaluating, logging, stopping early."""
import pathlib
import re
import struct

import numpy as np

from hosts import Process
from support import DISTC, HAS_EMULATED_GPU, Checks, Folder, Model, expect, must, need_tools, read_log, run

GRAPH = pathlib.Path(__file__).resolve().parents[1] / "tools" / "distc" / "Inputs" / "summaries.pbtxt"
WRONG_COMMAND = 2
BATCH, EXAMPLES = 16, 64


def make_data(folder):
    random = np.random.default_rng(0)
    x = random.standard_normal((EXAMPLES, 4)).astype(np.float32)
    np.savez(folder / "data.npz", x=x, y=x @ np.array([1, 2, -1, 0.5], np.float32))
    return folder / "data.npz"


class Run:
    """An executable of the graph and its data, in a folder."""

    def __init__(self, folder, *flags):
        self.folder, self.data, self.train = folder, make_data(folder), folder / "train"
        must([DISTC, "compile", GRAPH, "--batch", BATCH, "--fetch", "error:0", "--fetch", "learning_rate:0", "-o", self.train, *flags])

    def command(self, steps, *flags):
        return [self.train, "--data", self.data, "--steps", steps, *flags]

    def __call__(self, steps, *flags):
        return must(self.command(steps, *flags))

    def log(self):
        return read_log(self.folder / "log")

    def losses(self):
        return [line["loss"] for line in self.log() if "loss" in line]


def goes_on_or_starts_again():
    """A folder that holds checkpoints is never trained into by accident; resumed, it is one run."""
    with Folder() as folder:
        train = Run(folder)
        kept = ["--checkpoint-dir", folder / "kept", "--log-json", folder / "log"]
        train(9, "--log-json", folder / "log")
        whole = train.losses()
        train(4, *kept)
        found = expect(run(train.command(4, *kept)), WRONG_COMMAND, "--resume", "--overwrite", "ckpt-4")
        train(9, *kept, "--resume")
        if train.losses() != whole:
            found.append(f"resumed, the losses are {train.losses()}, not {whole}")
        # An earlier checkpoint is none to go on from by accident; the newest, by its folder, is.
        train(3, *kept, "--restore", folder / "kept")
        if [line["step"] for line in train.log() if "loss" in line] != [9, 10, 11]:
            found.append("--restore FOLDER does not go on from the newest checkpoint")
        before = sorted((folder / "kept").iterdir())
        found += expect(run([train.train, "--data", folder / "absent.npz", "--steps", 2, *kept, "--overwrite"]), 1, "absent.npz")
        if sorted((folder / "kept").iterdir()) != before:
            found.append("--overwrite removed checkpoints though the run did not begin")
        train(2, *kept, "--overwrite")
        if [p.name for p in sorted((folder / "kept").glob("*.index"))] != ["ckpt-2.index"] or train.losses() != whole[:2]:
            found.append(f"after --overwrite there are {sorted((folder / 'kept').iterdir())}")
        train(9, "--checkpoint-dir", folder / "new", "--resume", "--log-json", folder / "log")  # nothing to resume from: begins
        if train.losses() != whole:
            found.append("--resume in an empty folder is not a whole run")
        found += expect(run(train.command(2, "--restore", folder)), 1, "no complete checkpoint")
        return found


def random_operations_go_on(strategy, *flags):
    """Dropout's masks are those that an undisturbed run would draw: behind the checkpoint's, not from the first on."""
    model = Model("mlp-dropout")
    with Folder() as folder:
        executable = model.compile(folder / "train", 2, strategy, *flags)

        def train(steps, name, *more):
            must([executable, "--data", model.feeds, "--steps", steps, "--seed", 3, "--export-npz", folder / f"{name}.npz", *more])
            return dict(np.load(folder / f"{name}.npz"))
        whole = train(6, "whole")
        kept = ["--checkpoint-dir", folder / "kept", "--resume"]
        for steps in (1, 3, 3, 6):  # once with nothing left to do
            parts = train(steps, "parts", *kept)
        return [f"'{name}' of a run in parts is off by {np.abs(parts[name] - value).max()}" for name, value in whole.items()
                if not np.array_equal(parts[name], value)]


def saves_beside_the_steps(*flags):
    """A checkpoint that is written while the training goes on is that of a run which ends there, byte by byte."""
    model, steps = Model("mlp-adam"), 9
    with Folder() as folder:
        must(model.compile_command(folder / "train", 2, "AllReduce", *flags))

        def train(steps, checkpoints, *more):
            return [folder / "train", "--data", model.feeds, "--steps", steps, "--restore", model.checkpoint, "--checkpoint-dir", checkpoints, *more]

        must(train(steps, folder / "all", "--save-every", 1, "--keep", 0))
        found = []
        for step in range(1, steps + 1):
            must(train(step, folder / f"{step}"))
            for kind in ("index", "data-00000-of-00001"):
                if (folder / "all" / f"ckpt-{step}.{kind}").read_bytes() != (folder / f"{step}" / f"ckpt-{step}.{kind}").read_bytes():
                    found.append(f"ckpt-{step}.{kind} is not that of a run of {step} steps")
        # What the thread that writes cannot write ends the run.
        in_the_way = folder / "kept" / "ckpt-5.data-00000-of-00001" / "file"
        in_the_way.parent.mkdir(parents=True)
        in_the_way.touch()
        found += expect(run([str(word) for word in train(10**7, folder / "kept", "--save-every", 5)]), 1, str(in_the_way.parent))
        if left := sorted(path.name for path in (folder / "kept").iterdir() if path != in_the_way.parent):
            found.append(f"{', '.join(left)} left behind")
        return found


def evaluates_and_stops(*flags):
    """Threads and processes log the same values, and stop at the same step."""
    with Folder() as folder:
        train = Run(folder, "--replicas", 2, *flags)
        watched = ["--fetch", "error:0", "--fetch", "learning_rate", "--fetch-every", 3, "--log-json", folder / "log"]
        train(8, *watched, "--eval-data", train.data, "--eval-every", 4, "--checkpoint-dir", folder / "kept", "--save-every", 4)
        lines = train.log()
        found = []
        if [line["step"] for line in lines if "fetches" in line] != [2, 5]:
            found.append("--fetch-every 3 of 8 steps logs other steps than 2 and 5")
        rates = [line["fetches"]["learning_rate:0"] for line in lines if "fetches" in line]
        if not np.allclose(rates, [0.05, 0.025]):
            found.append(f"the learning rate of steps 2 and 5 is logged as {rates}")
        evaluated = [(line["step"], line["eval"]["error:0"]) for line in lines if "eval" in line]
        if [step for step, _ in evaluated] != [3, 7]:
            found.append(f"--eval-every 4 of 8 steps evaluates after {evaluated}")
        out = must([train.train, "--eval", "--fetch", "error:0", "--data", train.data, "--restore", folder / "kept" / "ckpt-4"]).stdout
        if not np.isclose(float(out.split("=")[1]), evaluated[0][1], rtol=1e-5):
            found.append(f"evaluation gives {evaluated[0][1]} in training, and {out} of the checkpoint")
        losses = [line["loss"] for line in lines if "loss" in line]
        bound = (losses[3] + losses[4]) / 2  # the data's loss falls from step 3 on
        out = train(100, "--log-json", folder / "log", "--stop-when", f"loss < {bound}", "--checkpoint-dir", folder / "stopped")
        stopped = next(k for k, loss in enumerate(losses) if loss < bound)
        if len(train.losses()) != stopped + 1 or "stopped, as loss" not in out.stdout or "stopped_when" not in train.log()[-1]:
            found.append(f"stopped after {len(train.losses())} steps, not {stopped + 1}")
        if not (folder / "stopped" / f"ckpt-{stopped + 1}.index").exists():
            found.append("the last step has no checkpoint")
        train(100, "--log-json", folder / "log", "--eval-data", train.data, "--eval-every", 4, "--stop-when", f"error:0 <= {evaluated[1][1]}")
        if len(train.losses()) != 8:
            found.append(f"stopped by an evaluation after {len(train.losses())} steps, not 8")
        return found


def evaluates_sums(*flags):
    """A sum over the batch is that of the compiled batch, though the first of several tasks evaluates its own replicas' shares of it alone."""
    model = Model("mlp-sum")
    with Folder() as folder:
        train = model.compile(folder / "train", 2, "AllReduce", *flags)
        must([train, "--data", model.feeds, "--steps", 3, "--eval-data", model.feeds, "--eval-every", 3, "--log-json", folder / "log",
              "--checkpoint-dir", folder / "kept"])
        [evaluated] = [value for line in read_log(folder / "log") if "eval" in line for value in line["eval"].values()]
        out = must([train, "--eval", "--data", model.feeds, "--restore", folder / "kept"]).stdout
        return [] if np.isclose(float(out.split("=")[1]), evaluated, rtol=1e-5) else [f"evaluation gives {evaluated} in training, and {out} of the checkpoint"]


def read_events(path):
    """(tag, step) -> value of an event file, by the fields that there are (runtime/launch/event.proto)."""
    data, values = path.read_bytes(), {}
    while data:
        length, = struct.unpack("<Q", data[:8])
        event, data = data[12:12 + length], data[16 + length:]
        if match := re.fullmatch(rb"\x09.{8}\x10(.)\x2a.\x0a.\x0a.(.*)\x15(.{4})", event, re.S):
            values[match[2].decode(), match[1][0]] = struct.unpack("<f", match[3])[0]
    return values


def writes_the_graphs_own_summaries():
    with Folder() as folder:
        train = Run(folder, "--summaries", "--replicas", 1)
        train(5, "--summary-dir", folder / "events", "--log-json", folder / "log", "--fetch", "error:0", "--fetch-every", 2,
              "--eval-data", train.data, "--eval-every", 5)
        values = read_events(next((folder / "events").iterdir()))
        found = []
        for step, loss in enumerate(train.losses(), 1):
            for tag, want in {"training/loss": loss, "loss:0": loss, "training/rate": 0.1 * 0.5 ** ((step - 1) // 2)}.items():
                if not np.isclose(values.get((tag, step), np.nan), want):
                    found.append(f"{tag} in step {step} is {values.get((tag, step))}, not {want}")
        if ("largest", 1) not in values or ("error:0", 4) not in values or ("error:0", 3) in values or ("eval/error:0", 5) not in values:
            found.append(f"there are {sorted(values)}")
        return found


def starts_without_initializers():
    with Folder() as folder:
        whole, train = Run(folder), None
        whole(4, "--checkpoint-dir", folder / "kept")
        train = Run(folder, "--no-init")
        found = expect(run(train.command(2)), 1, "--restore")
        found += expect(run([train.train, "--eval", "--data", train.data]), 1, "--restore")
        train(2, "--restore", folder / "kept")
        return found


def says_who_is_awaited():
    with Folder() as folder:
        train = Run(folder, "--replicas", 2, "--one-process-per-replica")
        member = lambda k, *flags: train.command(2, "--task", f"worker:{k}", "--rendezvous", "127.0.0.1:0" if k == 0 else flags[0])
        found = expect(run(train.command(2, "--task", "worker:1")), WRONG_COMMAND, "--rendezvous", "worker:0")
        first = Process(member(0))
        first.wait_for_text("waiting for worker:1 (localhost) at ", 20)
        address = re.search(r"127\.0\.0\.1:\d+", first.out)[0]
        must(member(1, address))
        if first.wait() != 0:
            found.append(first.out)
        late = run([*member(1, address), "--arrival-timeout", 3])
        found += expect(late, 1, f"waiting for worker:0 (localhost) at {address}")
        return found


if __name__ == "__main__":
    need_tools()
    checks = Checks()
    checks.check("resume, overwrite, restore", goes_on_or_starts_again)
    checks.check("random operations go on, threads", random_operations_go_on, "AllReduce")
    checks.check("random operations go on, processes", random_operations_go_on, "AllReduce", "--one-process-per-replica")
    # Their replicas draw ahead of the update that is saved.
    checks.check("random operations go on, counted gradients", random_operations_go_on, "PS:replicas_to_aggregate=2")
    checks.check("random operations go on, counted gradients of processes", random_operations_go_on, "PS:replicas_to_aggregate=2", "--one-process-per-replica")
    checks.check("random operations go on, two batches an update", random_operations_go_on, "AllReduce:accumulate_steps=2")
    checks.check("checkpoints beside the steps, threads", saves_beside_the_steps)
    checks.check("checkpoints beside the steps, processes", saves_beside_the_steps, "--one-process-per-replica")
    if HAS_EMULATED_GPU:
        checks.check("checkpoints beside the steps, emulated devices", saves_beside_the_steps, "--target=cuda:emulated")
    checks.check("evaluation and stops, threads", evaluates_and_stops)
    checks.check("evaluation and stops, processes", evaluates_and_stops, "--one-process-per-replica")
    checks.check("evaluation of a sum, threads", evaluates_sums)
    checks.check("evaluation of a sum, processes", evaluates_sums, "--one-process-per-replica")
    checks.check("summaries", writes_the_graphs_own_summaries)
    checks.check("--no-init", starts_without_initializers)
    checks.check("waiting for tasks", says_who_is_awaited)
    checks.exit()
