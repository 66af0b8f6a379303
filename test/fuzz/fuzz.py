"""Damaged inputs give an error that names what is wrong: no signal, no exit status 70, no hang, little memory.

    tools/python.sh test/fuzz/fuzz.py [--kind graph ...] [--seed S] [--count N] [--first K] [--jobs J] [--keep FOLDER]

Each kind of input changes sound files of the repository. All follows from the seed: mutant K of a kind is the same each
time, so that `--first K --count 1` gives it again. What fails stays in the folder, with the command line that shows it.
"""
import argparse
import concurrent.futures
import gzip
import os
import pathlib
import random
import re
import resource
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "end-to-end")]
import corrupt
import graphs
import peer
import wire
from stops import TRAIN, command
from support import BIN, DISTC, MODELS, ROOT, TRANSLATE, Model, is_sanitized, load_script, must

OPT = BIN / "distc-opt"
TIMEOUT_S = 60
MEMORY = 1 << 30
# Backs up the above for a process that would take all: addresses, of which libraries and threads reserve some.
ADDRESSES = 6 << 30


class Kind:
    """Mutants of a kind of input. `prepare` makes what they have in common in `folder`; `make` writes mutant `index` into
    `folder` and gives a command and what was done."""

    def __init__(self, folder):
        self.folder = folder
        self.prepare()

    def prepare(self):
        pass

    def make(self, draw, folder):
        raise NotImplementedError


def compile_graph(graph, model, draw, emit="drt", extra=()):
    replicas = draw.choice([1, 1, 2])
    batch = ["--batch", model.case["batch"]] if model.case["batch"] else []
    return [DISTC, "compile", graph, "--replicas", replicas, *batch, "--emit", emit, "-o", os.devnull,
            *(extra or ["--strategy", draw.choice(["AllReduce", "AllReduce", "PartitionedAR", "Parallax"])]),
            *endpoints(model)]


def endpoints(model):
    options = []
    for option, key in (("--train-op", "train_op"), ("--loss", "loss"), ("--init-op", "init_op")):
        if model.case.get(key):
            options += [option, model.case[key]]
    return options


def draw_model(draw):
    names = sorted(path.parent.name for path in MODELS.glob("*/case.json"))
    return Model(draw.choice(names))


class GraphStructure(Kind):
    """Nodes, inputs, attributes, shapes, constants, functions."""

    def make(self, draw, folder):
        model = draw_model(draw)
        data, what = graphs.mutant(model.graph, draw)
        (folder / "graph.meta").write_bytes(data)
        return compile_graph(folder / "graph.meta", model, draw), f"{model.name}: {what}"


class GraphBytes(Kind):
    """The binary forms."""

    def make(self, draw, folder):
        model = draw_model(draw)
        data = model.graph.read_bytes()
        if draw.random() < 0.3:
            data = wire.encode(graphs.graph_of(graphs.load(model.graph)))
        (folder / "graph.pb").write_bytes(corrupt.corrupt_bytes(data, draw))
        return compile_graph(folder / "graph.pb", model, draw), model.name


class GraphText(Kind):
    """The text form."""

    MODELS = ["linreg-sgd", "mlp-sgd", "embedding-adam", "functions", "ops-scans"]

    def prepare(self):
        for name in self.MODELS:
            must([TRANSLATE, "--import-graphdef", "--export-graphdef", "--text", Model(name).graph, "-o", self.folder / f"{name}.pbtxt"])

    def make(self, draw, folder):
        name = draw.choice(self.MODELS)
        data = (self.folder / f"{name}.pbtxt").read_bytes()
        (folder / "graph.pbtxt").write_bytes(corrupt.corrupt_text(data, draw))
        return compile_graph(folder / "graph.pbtxt", Model(name), draw), name


class Strategies(Kind):
    """Strategies' text."""

    NAMES = ["AllReduce", "PS", "PSLoadBalancing", "PartitionedPS", "UnevenPartitionedPS", "PartitionedAR", "RandomAxisPartitionAR", "Parallax"]
    MODELS = ["mlp-adam", "embedding-adam"]

    def prepare(self):
        for name in self.NAMES:
            for model in self.MODELS:
                must([DISTC, "strategy", "build", name, Model(model).graph, "--replicas", 2, "-o", self.folder / f"{name}-{model}.pbtxt"])

    def make(self, draw, folder):
        name, model = draw.choice(self.NAMES), Model(draw.choice(self.MODELS))
        data = (self.folder / f"{name}-{model.name}.pbtxt").read_bytes()
        (folder / "strategy.pbtxt").write_bytes(corrupt.corrupt_text(data, draw))
        if draw.random() < 0.2:
            return [DISTC, "strategy", "show", folder / "strategy.pbtxt", model.graph, "--replicas", 2, *endpoints(model)], name
        return compile_graph(model.graph, model, draw, draw.choice(["dist", "drt"]), ["--strategy", folder / "strategy.pbtxt"]), name


class Resources(Kind):
    """Resource files."""

    TEXT = b"""nodes:
  - address: 10.0.0.1
    cpus: [0, 1]
    chief: true
    ssh_config: main
    network_bandwidth: 100
  - address: 10.0.0.2
    cpus: [0]
    gpus: [0, 1]
    ssh_config: main
ssh:
  main:
    username: someone
    key_file: /home/someone/.ssh/id_rsa
    port: 22
    python_venv: source /venv/bin/activate
    shared_envs:
      LD_LIBRARY_PATH: $LD_LIBRARY_PATH:/usr/local/lib
"""

    def make(self, draw, folder):
        (folder / "resources.yml").write_bytes(corrupt.corrupt_text(self.TEXT, draw))
        model = Model("linreg-sgd")
        return [DISTC, "strategy", "build", draw.choice(Strategies.NAMES), model.graph, "--resources", folder / "resources.yml",
                "-o", os.devnull], ""


class Trained(Kind):
    """What needs an executable: one of threads, small."""

    MODEL = "linreg-sgd"

    def prepare(self):
        self.model = Model(self.MODEL)
        self.model.compile(self.folder / "train", 2)

    def train(self, data, *more):
        return [self.folder / "train", "--data", data, "--steps", 2, *more]


class Checkpoints(Trained):
    """Checkpoints: the index and the data."""

    def make(self, draw, folder):
        files = {suffix: pathlib.Path(str(self.model.checkpoint) + suffix).read_bytes() for suffix in (".index", ".data-00000-of-00001")}
        damaged = draw.choice([".index", ".index", ".index", ".data-00000-of-00001"])
        files[damaged] = corrupt.corrupt_bytes(files[damaged], draw)
        for suffix, data in files.items():
            (folder / ("ckpt" + suffix)).write_bytes(data)
        command = draw.choice(["list", "export", "restore"])
        if command == "restore":
            return self.train(self.model.feeds, "--restore", folder / "ckpt"), damaged
        more = [folder / "out.npz"] if command == "export" else []
        return [DISTC, "checkpoint", command, folder / "ckpt", *more], damaged


class Arrays(Trained):
    """Data: .npz, and a folder of .npy."""

    def make(self, draw, folder):
        data = self.model.feeds.read_bytes()
        if draw.random() < 0.4:
            (folder / "data.npz").write_bytes(corrupt.corrupt_bytes(data, draw))
            return self.train(folder / "data.npz"), "npz"
        import numpy
        (folder / "data").mkdir(exist_ok=True)
        arrays = numpy.load(self.model.feeds)
        damaged = draw.choice(sorted(arrays.files))
        for name in arrays.files:
            path = folder / "data" / f"{name}.npy"
            numpy.save(path, arrays[name])
            if name == damaged:
                head, rest = path.read_bytes()[:128], path.read_bytes()[128:]
                head = corrupt.corrupt_text(head, draw) if draw.random() < 0.5 else corrupt.corrupt_bytes(head, draw)
                path.write_bytes(head + rest)
        return self.train(folder / "data"), "npy"


class Records(Trained):
    """Data: TFRecords. Half of them have right checksums, so that it is the example which is damaged."""

    def make(self, draw, folder):
        import numpy
        convert = load_script("convert_data", ROOT / "tools" / "convert_data.py")
        records = list(convert.serialize(dict(numpy.load(self.model.feeds))))
        inside, packed = draw.random() < 0.5, draw.random() < 0.3
        if inside:
            k = draw.randrange(len(records))
            records[k] = corrupt.corrupt_bytes(records[k], draw)
        data = b"".join(convert.frame(records))
        if not inside and not packed:
            data = corrupt.corrupt_bytes(data, draw)
        if packed:
            data = draw.choice([gzip.compress, zlib.compress])(data)
            data = data if inside else corrupt.corrupt_bytes(data, draw)
        path = folder / "data.tfrecord"
        path.write_bytes(data)
        return self.train(path, *draw.choice([[], ["--shuffle-window", 5]])), f"records{' inside' * inside}{' packed' * packed}"


class Ir(Kind):
    """Printed IR of each stage, and the passes that follow it."""

    BATCH = 12
    # From the stage before to each one.
    MAKES = {"dist": ["--dfg-inline-calls", "--dfg-infer-shapes", "--distribute=replicas=2"],
             "drt": [f"--lower-to-runtime=replica-batch={BATCH // 2}"]}
    PASSES = {"dfg": [MAKES["dist"], [f"--dfg-infer-shapes=batch={BATCH}", "--dfg-fold"], ["--canonicalize", "--cse"]],
              "dist": [MAKES["drt"], ["--dist-verify-collectives"]],
              "drt": [["--lower-kernels", "--convert-drt-to-llvm"], ["--drt-fuse-elementwise", "--drt-outline-kernels", "--drt-plan-memory"]]}
    MODELS = ["linreg-sgd", "mlp-adam", "embedding-adam", "ops-scans", "convnet-momentum"]

    def prepare(self):
        for name in self.MODELS:
            last = self.folder / f"{name}-dfg.mlir"
            must([TRANSLATE, "--import-graphdef", Model(name).graph, "-o", last])
            for stage, passes in self.MAKES.items():
                this = self.folder / f"{name}-{stage}.mlir"
                must([OPT, last, *passes, "--mlir-print-debuginfo", "-o", this])
                last = this

    def make(self, draw, folder):
        name, stage = draw.choice(self.MODELS), draw.choice(sorted(self.PASSES))
        data = (self.folder / f"{name}-{stage}.mlir").read_bytes()
        (folder / "graph.mlir").write_bytes(corrupt.corrupt_text(data, draw))
        return [OPT, folder / "graph.mlir", *draw.choice(self.PASSES[stage]), "-o", os.devnull], f"{name} {stage}"


class Stages(Kind):
    """What `distc compile --emit` printed of each stage, given to it again."""

    WAYS = {"linreg-sgd": ["--replicas", 2, "--target", "cuda:emulated"], "mlp-adam": ["--replicas", 2, "--strategy", "PartitionedAR"],
            "embedding-adam": ["--replicas", 2, "--strategy", "Parallax", "--ps", 1], "ops-scans": ["--replicas", 1],
            "convnet-momentum": ["--replicas", 2, "--one-process-per-replica"]}
    GOES_ON_TO = {"dfg": "drt", "dist": "drt", "drt": "llvm"}

    def prepare(self):
        for name, flags in self.WAYS.items():
            model = Model(name)
            batch = ["--batch", model.case["batch"]] if model.case["batch"] else []
            for stage in self.GOES_ON_TO:
                must([DISTC, "compile", model.graph, *flags, *batch, "--emit", stage, "-o", self.folder / f"{name}-{stage}.mlir"])

    def make(self, draw, folder):
        name, stage = draw.choice(sorted(self.WAYS)), draw.choice(sorted(self.GOES_ON_TO))
        data = (self.folder / f"{name}-{stage}.mlir").read_bytes()
        (folder / "graph.mlir").write_bytes(corrupt.corrupt_text(data, draw))
        return [DISTC, "compile", folder / "graph.mlir", "--emit", self.GOES_ON_TO[stage], "-o", os.devnull], f"{name} {stage}"


class StableHlo(Kind):
    """Training steps of JAX, and their signatures."""

    INPUTS = ROOT / "test" / "dialects" / "dfg" / "stablehlo" / "Inputs"

    def make(self, draw, folder):
        name, damaged = draw.choice(["linear", "many", "many"]), draw.choice([".mlir"] * 4 + [".json"])
        for suffix in (".mlir", ".json"):
            data = (self.INPUTS / (name + suffix)).read_bytes()
            # Without initial values there is nothing but the step.
            data = re.sub(rb',\s*"initial": "[^"]*"', b"", data)
            (folder / ("step" + suffix)).write_bytes(corrupt.corrupt_text(data, draw) if suffix == damaged else data)
        return [DISTC, "compile", folder / "step.mlir", "--replicas", draw.choice([1, 2]), "--batch", 12, "--no-init", "--emit", "drt",
                "--strategy", draw.choice(["AllReduce", "PartitionedAR", "ShardedUpdate"]), "-o", os.devnull], f"{name}{damaged}"


class Pages(Trained):
    """Pages of plans: a plan that was printed, and what a run measured."""

    def prepare(self):
        super().prepare()
        must(self.train(self.model.feeds, "--quiet", "--timeline", self.folder / "timeline.json"))
        for name, flags in (("plan", []), ("device", ["--target=cuda:emulated"]), ("servers", ["--strategy=PS", "--ps=1", "--one-process-per-replica"])):
            must([DISTC, "compile", self.model.graph, "--replicas", 2, "--batch", self.model.case["batch"], *flags, "--emit", "drt",
                  "-o", self.folder / f"{name}.mlir"])

    def make(self, draw, folder):
        if draw.random() < 0.4:
            name = draw.choice(["device", "servers"])
            (folder / "plan.mlir").write_bytes(corrupt.corrupt_text((self.folder / f"{name}.mlir").read_bytes(), draw))
            return [DISTC, "compile", folder / "plan.mlir", "--emit", "html", "-o", os.devnull], name
        damaged = draw.choice(["plan.mlir", "timeline.json"])
        for name in ("plan.mlir", "timeline.json"):
            data = (self.folder / name).read_bytes()
            (folder / name).write_bytes(corrupt.corrupt_text(data, draw) if name == damaged else data)
        return [DISTC, "compile", folder / "plan.mlir", "--emit", "html", "--timeline", folder / "timeline.json", "-o", os.devnull], damaged


class Tasks(Kind):
    """What a task hears of another one over the control connection: a sound run of two, in which one end says something else. Without a secret, so that
    whatever it says is looked at."""

    def prepare(self):
        self.command = [str(c) for c in command("2 2 4", self.folder, "--steps", 3, "--failure-timeout", 2, "--arrival-timeout", 2)]
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = peer.free_port()
            tasks = [subprocess.Popen([*self.command, "--task", f"worker:{rank}", "--rendezvous", f"127.0.0.1:{at}", "--arrival-timeout", "30"],
                                      stdout=subprocess.DEVNULL)
                     for rank, at in enumerate((port, listener.getsockname()[1]))]
            said = peer.relayed(listener, port)
            for task in tasks:
                if task.wait(60) != 0:
                    raise AssertionError("a sound run of two tasks failed")
        self.said = {"connect": said[0], "listen": said[1]}

    def make(self, draw, folder):
        how = draw.choice(sorted(self.said))
        (folder / "said").write_bytes(peer.changed(self.said[how], draw, corrupt.corrupt_bytes))
        task = "worker:0" if how == "connect" else "worker:1"
        return [sys.executable, peer.__file__, how, folder / "said", *self.command, "--task", task], f"to {task}"


KINDS = {"graph": GraphStructure, "graph-bytes": GraphBytes, "graph-text": GraphText, "strategy": Strategies,
         "resources": Resources, "checkpoint": Checkpoints, "data": Arrays, "records": Records, "ir": Ir, "stage": Stages,
         "stablehlo": StableHlo, "page": Pages, "task": Tasks}


# ---- Running ------------------------------------------------------------------------------


def limit():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not is_sanitized():
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))


def execute(command, folder):
    """What is wrong with how `command` ends, empty where nothing is; what it says; and its exit status."""
    with open(folder / "output", "wb") as output:
        process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   preexec_fn=limit, cwd=folder)
        timer = threading.Timer(TIMEOUT_S, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        hung = not timer.is_alive()
        timer.cancel()
        process.returncode = status = os.waitstatus_to_exitcode(status)
    said = (folder / "output").read_text(errors="replace")
    if hung:
        return f"not done after {TIMEOUT_S} s", said, status
    if status < 0:
        return f"signal {-status}", said, status
    if status not in (0, 1):
        return f"exit status {status}", said, status
    if status == 1 and not said.strip():
        return "exit status 1 without a word", said, status
    if usage.ru_maxrss * 1024 > MEMORY and not is_sanitized():
        return f"{usage.ru_maxrss >> 10} MiB of memory", said, status
    return "", said, status


def run_one(name, kind, seed, index, folder, keep):
    draw = random.Random(f"{seed}/{name}/{index}")
    work = folder / f"{name}-{index}"
    work.mkdir(exist_ok=True)
    command, what = kind.make(draw, work)
    problem, said, status = execute(command, work)
    if problem and keep:
        place = keep / f"{name}-{seed}-{index}"
        shutil.copytree(work, place, dirs_exist_ok=True)
        line = shlex.join(str(c) for c in command).replace(str(work), str(place))
        (place / "command").write_text(line + "\n")
        problem += f"\n    {line}"
    shutil.rmtree(work)
    return problem and f"{name} {index} ({what}): {problem}\n    {said.strip()[:300]}", status


def run(names, seed, first, count, jobs, keep):
    """The problems that were found, as texts."""
    found = []
    with tempfile.TemporaryDirectory(prefix="distc-fuzz-") as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for name in names:
            started = time.time()
            place = pathlib.Path(folder) / name
            place.mkdir()
            kind = KINDS[name](place)
            results = pool.map(lambda index: run_one(name, kind, seed, index, place, keep), range(first, first + count))
            problems, accepted = [], 0
            for problem, status in results:
                accepted += status == 0
                if problem:
                    problems.append(problem)
                    print("FAILED", problem, flush=True)
            print(f"{name}: {count} mutants, {accepted} accepted, {len(problems)} problems, {time.time() - started:.0f} s", flush=True)
            found += problems
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="+", choices=sorted(KINDS), default=sorted(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", type=pathlib.Path, help="where failing mutants stay", default=None)
    arguments = parser.parse_args()
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        arguments.keep = arguments.keep.resolve()
    return 1 if run(arguments.kind, arguments.seed, arguments.first, arguments.count, arguments.jobs, arguments.keep) else 0


if __name__ == "__main__":
    sys.exit(main())
