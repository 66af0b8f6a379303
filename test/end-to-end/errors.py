"""What is wrong in the input gives one error line that names it, the promised exit status, and no file.

  errors.py [WORD…]       only the checks whose titles contain one of the words
"""
import resource
import shutil
import signal
import subprocess
import sys

import numpy as np

from support import DISTC, Checks, Folder, Model, must, need_tools, run

WRONG_INPUT, WRONG_COMMAND = 1, 2
LINREG, MLP, EMBEDDING = Model("linreg-sgd"), Model("mlp-momentum"), Model("embedding-sgd")


def listing(folder):
    return {p.relative_to(folder): p.stat().st_size for p in folder.rglob("*")}


def refused(command, words, status=WRONG_INPUT, folder=None, **keywords):
    """Runs; returns what is not as promised. `words` are all in the one error line."""
    before = listing(folder) if folder else {}
    done = run(command, **keywords)
    found = []
    if done.returncode != status:
        found.append(f"exit status {done.returncode}, not {status}")
    errors = [line for line in done.stderr.splitlines() if "error:" in line.lower()]
    if len(errors) != 1:
        found.append(f"{len(errors)} error lines, not one")
    elif missing := [word for word in words if str(word).lower() not in errors[0].lower()]:
        found.append(f"the error does not say {', '.join(map(repr, map(str, missing)))}")
    if folder and listing(folder) != before:
        found.append(f"files were left or changed: {sorted(map(str, set(listing(folder).items()) ^ set(before.items())))}")
    return [f"{f}\nfrom: {' '.join(map(str, command))}\n{done.out}" for f in found]


class Compiling:
    """What distc compile refuses. Every method is a check; `folder` holds what it wrote, and afterwards nothing more."""

    @staticmethod
    def _changed_graph(folder, change, model=LINREG):
        path = folder / "changed.meta"
        path.write_bytes(change(model.graph.read_bytes()))
        return path

    @staticmethod
    def _compile(graph, folder, *flags, replicas=2, batch=12, strategy="AllReduce"):
        return [DISTC, "compile", graph, "--strategy", strategy, "--replicas", replicas, "--batch", batch, "-o", folder / "train", *flags]

    def truncated_graph(self, folder):
        graph = self._changed_graph(folder, lambda data: data[: len(data) // 2])
        return refused(self._compile(graph, folder), ["changed.meta"], folder=folder)

    def empty_graph(self, folder):
        graph = self._changed_graph(folder, lambda data: b"")
        return refused(self._compile(graph, folder), ["changed.meta"], folder=folder)

    def full_standard_output(self, folder):
        with open("/dev/full", "w") as full:
            done = subprocess.run(list(map(str, [DISTC, "inspect", LINREG.graph])), stdout=full, stderr=subprocess.PIPE, text=True)
        return [] if done.returncode == 1 and "cannot write to standard output" in done.stderr else [f"exit status {done.returncode}: {done.stderr}"]

    def no_such_graph(self, folder):
        return refused(self._compile(folder / "absent.meta", folder), ["absent.meta"], folder=folder)

    def graph_that_is_something_else(self, folder):
        graph = self._changed_graph(folder, lambda data: b"PK\3\4 not a graph at all" * 20)
        return refused(self._compile(graph, folder), ["changed.meta"], folder=folder)

    def unknown_operation_that_must_run(self, folder):
        # The same length, so that the protobuf stays whole. Node and operation have this name.
        graph = self._changed_graph(folder, lambda data: data.replace(b"Square", b"Sqware"))
        return refused(self._compile(graph, folder), ["Sqware"], folder=folder)

    def batch_that_does_not_divide(self, folder):
        return refused(self._compile(LINREG.graph, folder, replicas=5), ["12", "5"], folder=folder)

    def feed_of_a_shape_that_does_not_fit(self, folder):
        return refused(self._compile(LINREG.graph, folder, "--feed", "x=6x3"), ["'sub'", "[6, 3]"], folder=folder)

    def feed_that_is_not_there(self, folder):
        return refused(self._compile(LINREG.graph, folder, "--feed", "z=6"), ["'z'", "x, y"], folder=folder)

    def no_batch(self, folder):
        command = [DISTC, "compile", LINREG.graph, "--strategy", "AllReduce", "--replicas", 1, "-o", folder / "train"]
        return refused(command, ["--batch"], folder=folder)

    def strategy_that_names_an_unknown_variable(self, folder):
        (folder / "s.pbtxt").write_text('node_config { var_name: "no/such/kernel:0" AllReduceSynchronizer { group: 0 } }\n'
                                        'graph_config { replicas: "localhost:CPU:0" replicas: "localhost:CPU:1" }\n')
        return refused(self._compile(LINREG.graph, folder, strategy=folder / "s.pbtxt"), ["no/such/kernel"], folder=folder)

    def strategy_that_is_not_one(self, folder):
        (folder / "s.pbtxt").write_text("node_config { var_naem: 1 }\n")
        return refused(self._compile(LINREG.graph, folder, strategy=folder / "s.pbtxt"), ["s.pbtxt"], folder=folder)

    def unknown_strategy(self, folder):
        # The candidates are in the message.
        return refused(self._compile(LINREG.graph, folder, strategy="AllReduse"), ["AllReduse", "AllReduce"], folder=folder)

    def unknown_train_op(self, folder):
        return refused(self._compile(LINREG.graph, folder, "--train-op", "trian"), ["trian"], folder=folder)

    def unknown_loss(self, folder):
        return refused(self._compile(LINREG.graph, folder, "--loss", "lsos:0"), ["lsos"], folder=folder)

    def unknown_fetch(self, folder):
        return refused(self._compile(LINREG.graph, folder, "--fetch", "prediciton:0"), ["prediciton"], folder=folder)

    def output_folder_that_is_not_there(self, folder):
        command = [DISTC, "compile", LINREG.graph, "--strategy", "AllReduce", "--replicas", 2, "--batch", 12,
                   "-o", folder / "absent" / "train"]
        return refused(command, ["absent"], folder=folder)

    def output_that_is_a_folder(self, folder):
        (folder / "train").mkdir()
        return refused(self._compile(LINREG.graph, folder), ["train"], folder=folder)

    def resources_that_are_not_yaml(self, folder):
        (folder / "r.yml").write_text("nodes: [ {address: localhost\n")
        command = [DISTC, "compile", LINREG.graph, "--strategy", "AllReduce", "--resources", folder / "r.yml", "--batch", 12,
                   "-o", folder / "train"]
        return refused(command, ["r.yml"], folder=folder)

    def what_is_not_supported_yet(self, folder):
        found = []
        for strategy in ("PS:sync=false", "PS:replicas_to_aggregate=1"):
            command = self._compile(LINREG.graph, folder, "--target", "cuda:emulated", strategy=strategy)
            found += refused(command, ["servers that serve on their own", "not supported yet on devices", "--emit=graphdef"], folder=folder)
        return found

    def export_of_a_plan_for_executables(self, folder):
        flags = ["--ps", 2, "--one-process-per-replica", "--emit", "dist"]
        must(self._compile(MLP.graph, folder, *flags, strategy="PSLoadBalancing", batch=MLP.case["batch"]))
        (folder / "train").rename(folder / "dist.mlir")
        return refused([DISTC, "compile", folder / "dist.mlir", "--emit=graphdef", "-o", folder / "export"], ["in the place of servers", "export the graph itself"],
                       folder=folder)

    def runtime_without_gpus(self, folder):
        (folder / "lib").mkdir()
        (folder / "lib" / "drt.link").write_text("")
        command = self._compile(LINREG.graph, folder, "--target", "cuda:emulated", "--runtime", folder / "lib")
        return refused(command, ["drt-cuda-emulated.link", "CUDA toolkit"], folder=folder)

    def disk_full_while_writing_the_executable(self, folder):
        return refused(self._compile(LINREG.graph, folder), ["train"], folder=folder, preexec_fn=small_files(20_000))

    def disk_full_while_writing_a_page(self, folder):
        command = [DISTC, "compile", LINREG.graph, "--batch", 12, "--emit=html", "-o", folder / "plan.html"]
        return refused(command, ["plan.html", "File too large"], folder=folder, preexec_fn=small_files(20_000))


class CommandLines:
    """What both programs refuse with status 2."""

    def of_distc(self, folder):
        graph, out = LINREG.graph, folder / "train"
        lines = {
            "no command": ([], []),
            "unknown command": (["comiple", graph], ["comiple"]),
            "unknown flag": (["compile", graph, "--stratgey", "AllReduce", "--replicas", 2, "--batch", 12, "-o", out], ["--stratgey", "'--strategy'"]),
            "no graph": (["compile", "--strategy", "AllReduce", "--replicas", 2, "--batch", 12, "-o", out], ["graph"]),
            "replicas no number": (["compile", graph, "--strategy", "AllReduce", "--replicas", "two", "--batch", 12, "-o", out], ["--replicas"]),
            "too many replicas": (["compile", graph, "--strategy", "AllReduce", "--replicas", 2000000000, "--batch", 12, "-o", out],
                                  ["--replicas", "at most 4096"]),
            "a batch too large to count": (["compile", graph, "--strategy", "AllReduce", "--replicas", 2, "--batch", "99999999999999999999",
                                            "-o", out], ["--batch", "too large: at most"]),
            "a batch of nothing": (["compile", graph, "--batch", 0, "-o", out], ["--batch", "must be positive"]),
            "resources twice": (["compile", graph, "--replicas", 2, "--resources", "r.yml", "-o", out], ["--resources", "--replicas"]),
            "no replica": (["compile", graph, "--strategy", "AllReduce", "--replicas", 0, "--batch", 12, "-o", out], ["--replicas"]),
            "unknown target": (["compile", graph, "--strategy", "AllReduce", "--replicas", 2, "--batch", 12, "-o", out, "--target", "tpu"], ["tpu"]),
            "unknown chip": (["compile", graph, "--strategy", "AllReduce", "--replicas", 2, "--batch", 12, "-o", out, "--target", "cuda:sm_9"],
                             ["sm_9", "sm_90"]),
            "PTX of a CPU": (["compile", graph, "--strategy", "AllReduce", "--replicas", 2, "--batch", 12, "-o", out, "--emit", "ptx"],
                             ["--target=cuda:sm_90"]),
            "unknown emit": (["compile", graph, "--strategy", "AllReduce", "--replicas", 2, "--batch", 12, "-o", out, "--emit", "elf"], ["elf"]),
        }
        return [f"{title}: {p}" for title, (flags, words) in lines.items()
                for p in refused([DISTC, *flags], words, WRONG_COMMAND, folder)]

    def of_the_executable(self, folder):
        train = LINREG.compile(folder / "train", 2)
        lines = {
            "unknown flag": (["--data", LINREG.feeds, "--stpes", 3], ["--stpes", "'--steps'"]),
            "steps no number": (["--data", LINREG.feeds, "--steps", "three"], ["--steps"]),
            "too many steps to count": (["--data", LINREG.feeds, "--steps", "99999999999999999999"], ["--steps", "too large: at most"]),
            "too many epochs to count": (["--data", LINREG.feeds, "--epochs", 2 ** 63 - 1], ["--epochs", "too large: at most"]),
            "seed below zero": (["--data", LINREG.feeds, "--steps", 3, "--seed", -1], ["--seed"]),
            "timeout without end": (["--data", LINREG.feeds, "--steps", 3, "--failure-timeout", "1e300"], ["--failure-timeout", "at most"]),
            "timeout that is no number": (["--data", LINREG.feeds, "--steps", 3, "--failure-timeout", "nan"], ["--failure-timeout"]),
            "no data": (["--steps", 3], ["--data"]),
            "another batch": (["--data", LINREG.feeds, "--steps", 3, "--batch", 24], ["24", "12"]),
            "fetch that is not compiled in": (["--fetch", "b:0", "--data", LINREG.feeds, "--steps", 3], ["--fetch b:0", "loss:0"]),
            "fetch never": (["--fetch-every", 2, "--data", LINREG.feeds, "--steps", 3], ["--fetch TENSOR"]),
            "evaluation without data": (["--eval-every", 2, "--data", LINREG.feeds, "--steps", 3], ["--eval-data"]),
            "no condition": (["--stop-when", "loss:0", "--data", LINREG.feeds, "--steps", 3], ["--stop-when", "NAME > NUMBER"]),
            "condition on nothing": (["--stop-when", "b:0 < 1", "--data", LINREG.feeds, "--steps", 3], ["'b:0'", "loss:0"]),
            "resume from nowhere": (["--resume", "--data", LINREG.feeds, "--steps", 3], ["--checkpoint-dir"]),
            "resume and overwrite": (["--resume", "--overwrite", "--checkpoint-dir", folder / "c", "--data", LINREG.feeds, "--steps", 3],
                                     ["--resume", "--overwrite"]),
            "log in the place of the data": (["--data", LINREG.feeds, "--steps", 3, "--log-json", LINREG.feeds], ["--log-json", "--data reads"]),
            "two outputs in one file": (["--data", LINREG.feeds, "--steps", 3, "--log-json", folder / "o", "--export-npz", folder / "o"],
                                        ["--export-npz and --log-json"]),
            "log of an evaluation": (["--eval", "--data", LINREG.feeds, "--log-json", folder / "o"], ["--log-json", "--eval"]),
            "no such plan": (["--plan=half"], ["--plan"]),
        }
        return [f"{title}: {p}" for title, (flags, words) in lines.items()
                for p in refused([train, *flags], words, WRONG_COMMAND, folder)]


def small_files(limit):
    """For a child process: files grow to `limit` bytes, then writing fails as on a full disk."""
    def set_limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return set_limit


class Running:
    """What the executable refuses."""

    def __init__(self, folder):
        self.linreg = LINREG.compile(folder / "linreg", 2)
        self.mlp = MLP.compile(folder / "mlp", 2)
        self.embedding = EMBEDDING.compile(folder / "embedding", 2)
        self.unchecked = EMBEDDING.compile(folder / "unchecked", 2, "AllReduce", "--no-asserts")

    def _run_linreg(self, folder, *flags):
        """Without what is carried: the limit on files is one on files in memory as well."""
        return [self.linreg, "--data", LINREG.feeds, "--steps", 3, *flags]

    def outputs_without_a_place(self, folder):
        """Before the first step: a training that cannot be kept would be lost."""
        missing = folder / "missing"
        return [f"{flag}: {found}" for flag, target in (("--export-npz", missing / "final.npz"), ("--timeline", missing / "t.json"),
                                                        ("--export-npz", folder), ("--checkpoint-dir", LINREG.feeds))
                for found in refused([self.linreg, "--data", LINREG.feeds, "--steps", 10 ** 12, flag, target], [flag, target], folder=folder, timeout=60)]

    def libraries_without_a_place(self, folder):
        """They go to files in memory, which the limit on files is for, too: an error and not a signal."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
        several = MLP.compile(folder / "several", 2, "AllReduce", "--one-process-per-replica")  # carries what collectives need
        return refused([several, "--plan"], ["which the program carries", "ulimit -f"], folder=folder, preexec_fn=limit)

    def data_that_are_not_there(self, folder):
        """The error names the flag that named them."""
        missing, empty = folder / "none.npz", folder / "empty"
        empty.mkdir()
        return [f"{flag}: {found}" for flag, others in (("--data", []), ("--eval-data", ["--data", LINREG.feeds, "--eval-every", 2]))
                for path, words in ((missing, f"{flag} takes an .npz file"), (empty, f"{flag} takes a folder"), (f"{folder}/no*.npz", f"{flag} takes"))
                for found in refused([self.linreg, *others, flag, path, "--steps", 3], [path, words], folder=folder)]

    def _run_mlp(self, folder, *flags, data=None):
        return [self.mlp, "--data", data or MLP.feeds, "--steps", 3, *flags]

    def _data_with(self, folder, **changes):
        arrays = dict(np.load(MLP.feeds))
        for name, array in changes.items():
            if array is None:
                del arrays[name]
            else:
                arrays[name] = array
        np.savez(folder / "changed.npz", **arrays)
        return folder / "changed.npz"

    def _refused_data(self, folder, words, **changes):
        data = self._data_with(folder, **changes)
        return refused(self._run_mlp(folder, "--checkpoint-dir", folder / "ckpt", data=data), words, folder=folder)

    def _refused_rows(self, folder, words, name, row, value):
        arrays = dict(np.load(EMBEDDING.feeds))
        arrays[name][row] = value
        np.savez(folder / "changed.npz", **arrays)
        return refused([self.embedding, "--data", folder / "changed.npz", "--steps", 3], words, folder=folder)

    def index_below_zero(self, folder):
        return self._refused_rows(folder, ["the feed 'ids'", "-1 in row 7 of the batch of step 2", "[0, 9)"], "ids", (31, 1), -1)

    def index_past_the_end(self, folder):
        return self._refused_rows(folder, ["the feed 'ids'", "9 in row 0 of the batch of step 1", "[0, 9)"], "ids", (12, 0), 9)

    def label_out_of_range(self, folder):
        found = self._refused_rows(folder, ["the feed 'y'", "3 in row 11 of the batch of step 0", "[0, 3)"], "y", 11, 3)
        unchecked = run([self.unchecked, "--data", folder / "changed.npz", "--steps", 3])
        return found + ([f"with --no-asserts: {unchecked.out}"] if unchecked.returncode != 0 else [])

    def array_that_nothing_reads(self, folder):
        return self._refused_data(folder, ["'yy'", "did you mean 'y'"], yy=np.zeros(36, np.int32))

    def data_folder_with_a_shifted_array(self, folder):
        (folder / "data").mkdir()
        for name, array in np.load(MLP.feeds).items():
            np.save(folder / "data" / f"{name}.npy", array)
        whole = (folder / "data" / "x.npy").read_bytes()
        at = whole.index(b"}") + 10
        (folder / "data" / "x.npy").write_bytes(whole[:at] + bytes(3) + whole[at:])
        return refused(self._run_mlp(folder, data=folder / "data"), ["x.npy", "header"], folder=folder)

    def missing_feed(self, folder):
        return self._refused_data(folder, ["'y'", "changed.npz"], y=None)

    def feed_of_another_type(self, folder):
        return self._refused_data(folder, ["'x'", "float64", "float32"], x=np.zeros((36, 6), np.float64))

    def feed_of_another_shape(self, folder):
        return self._refused_data(folder, ["'x'", "7", "6"], x=np.zeros((36, 7), np.float32))

    def feed_of_another_rank(self, folder):
        return self._refused_data(folder, ["'x'"], x=np.zeros((36, 6, 1), np.float32))

    def feeds_of_different_lengths(self, folder):
        return self._refused_data(folder, ["35", "36"], y=np.zeros(35, np.int32))

    def fewer_examples_than_a_batch(self, folder):
        return self._refused_data(folder, ["5", "12"], x=np.zeros((5, 6), np.float32), y=np.zeros(5, np.int32))

    def data_that_end_early(self, folder):
        whole = self._data_with(folder).read_bytes()
        (folder / "changed.npz").write_bytes(whole[: len(whole) * 2 // 3])
        return refused(self._run_mlp(folder, data=folder / "changed.npz"), ["changed.npz"], folder=folder)

    def data_folder_with_an_array_that_ends_early(self, folder):
        (folder / "data").mkdir()
        for name, array in np.load(MLP.feeds).items():
            np.save(folder / "data" / f"{name}.npy", array)
        whole = (folder / "data" / "x.npy").read_bytes()
        (folder / "data" / "x.npy").write_bytes(whole[:-100])
        return refused(self._run_mlp(folder, data=folder / "data"), ["x.npy"], folder=folder)

    def no_such_data(self, folder):
        return refused(self._run_mlp(folder, data=folder / "absent.npz"), ["absent.npz"], folder=folder)

    def _copied_checkpoint(self, folder):
        for path in MLP.folder.glob("init.ckpt.*"):
            shutil.copy(path, folder)
        return folder / "init.ckpt"

    def checkpoint_with_a_wrong_checksum(self, folder):
        prefix = self._copied_checkpoint(folder)
        path = folder / "init.ckpt.data-00000-of-00001"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x40
        path.write_bytes(data)
        return refused(self._run_mlp(folder, "--restore", prefix), ["init.ckpt", "checksum"], folder=folder)

    def checkpoint_with_a_torn_index(self, folder):
        prefix = self._copied_checkpoint(folder)
        path = folder / "init.ckpt.index"
        path.write_bytes(path.read_bytes()[:-60])
        return refused(self._run_mlp(folder, "--restore", prefix), ["init.ckpt.index"], folder=folder)

    def checkpoint_without_its_data(self, folder):
        prefix = self._copied_checkpoint(folder)
        (folder / "init.ckpt.data-00000-of-00001").unlink()
        return refused(self._run_mlp(folder, "--restore", prefix), ["init.ckpt.data-00000-of-00001"], folder=folder)

    def checkpoint_without_a_variable(self, folder):
        # The whole checkpoint is another model's; the error names the first variable that is missing.
        return refused(self._run_mlp(folder, "--restore", LINREG.checkpoint), ["init.ckpt", "hidden/"], folder=folder)

    def no_such_checkpoint(self, folder):
        return refused(self._run_mlp(folder, "--restore", folder / "absent"), ["absent"], folder=folder)

    def unknown_fetch(self, folder):
        command = [self.mlp, "--eval", "--fetch", "prediciton:0", "--data", MLP.feeds]
        return refused(command, ["prediciton"], folder=folder)

    def disk_full_while_saving(self, folder):
        (folder / "ckpt").mkdir()
        command = self._run_linreg(folder, "--checkpoint-dir", folder / "ckpt", "--save-every", 1)
        return refused(command, ["ckpt"], folder=folder, preexec_fn=small_files(60))

    def disk_full_while_exporting(self, folder):
        command = self._run_linreg(folder, "--export-npz", folder / "final.npz")
        return refused(command, ["final.npz"], folder=folder, preexec_fn=small_files(60))

    def disk_full_while_saving_again_leaves_the_last_checkpoint(self, folder):
        """The earlier checkpoint is still whole, and what names it still does."""
        must(self._run_linreg(folder, "--checkpoint-dir", folder / "ckpt"))
        return self._disk_full_with_checkpoints(folder)

    def _disk_full_with_checkpoints(self, folder):
        before = {p: p.read_bytes() for p in (folder / "ckpt").iterdir()}
        newest = max(p for p in before if p.suffix == ".index").with_suffix("")
        found = refused(self._run_linreg(folder, "--checkpoint-dir", folder / "ckpt", "--restore", newest), ["ckpt"],
                        preexec_fn=small_files(60))
        after = {p: p.read_bytes() for p in (folder / "ckpt").iterdir()}
        return found + ([] if after == before else [f"the folder changed: {sorted(set(after) ^ set(before))}"])


def checks_of(instance):
    """Every method is one, but for helpers."""
    return [name for name in vars(type(instance)) if not name.startswith("_")]


def main():
    need_tools()
    words, checks = sys.argv[1:], Checks()
    with Folder() as executables:
        groups = [Compiling(), CommandLines()]
        try:
            groups.append(Running(executables))
        except AssertionError as error:
            checks.check("compiles what is to be run", lambda: [error])
        for group in groups:
            for name in checks_of(group):
                title = f"{type(group).__name__}: {name.replace('_', ' ')}"
                if words and not any(word in title for word in words):
                    continue
                with Folder() as folder:
                    checks.check(title, getattr(group, name), folder)
    checks.exit()


if __name__ == "__main__":
    main()
