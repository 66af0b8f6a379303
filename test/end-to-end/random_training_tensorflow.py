"""Random training graphs that TensorFlow wrote, with the optimizers of tf1 and tf_keras and updates that are spelled out, through random
strategies and placements: losses and last variables are TensorFlow's, and runs of one program give the same bits whatever the delays.

  random_training_tensorflow.py [--seed S] [--count N] [--first K] [--configurations C] [--runs R] [--keep FOLDER] [--reduce]

--keep leaves the graphs that fail in a folder, each with its configuration; --reduce makes them as small as still fail.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

from support import BIN, DISTC, ROOT, TRANSLATE, Folder, need_tensorflow, need_tools, read_losses

sys.path.insert(0, str(ROOT / "test"))
import training_recipes  # noqa: E402

OPT = BIN / "distc-opt"
TOLERANCE = 2e-3  # of the norm of a variable
LOSS_TOLERANCE = 2e-4
TIMEOUT_S = 40
STRATEGIES = ("AllReduce", "AllReduce", "AllReduce", "AllReduce:chunk_size=1", "AllReduce:chunk_size=2", "AllReduce:bucket_mb=1", "PartitionedAR",
              "RandomAxisPartitionAR:seed=3", "ShardedUpdate:stage=1", "ShardedUpdate:stage=2", "ShardedUpdate:stage=2,chunk_size=1",
              "AllReduce:accumulate_steps=2", "AllReduce:accumulate_steps=2,chunk_size=1", "ShardedUpdate:accumulate_steps=2",
              "ShardedUpdate:stage=1,accumulate_steps=2", "AllReduce:variable_averages=0.9")
HOSTS = ("127.0.0.1", "localhost")  # two names of this machine
KINDS = ("executable", "hosts", "unrolled", "export")
SERVERS = ("PS", "PSLoadBalancing", "PartitionedPS", "UnevenPartitionedPS", "Parallax", "RoundRobinPS", "PSLoadBalancing:local_proxy_variable=true",
           "PSLoadBalancing:accumulate_steps=2", "PartitionedPS:variable_averages=0.9")
# Servers that serve on their own: of one replica they make what a device makes.
SERVED = ("PS:sync=false", "PSLoadBalancing:sync=false", "PartitionedPS:sync=false", "PS:replicas_to_aggregate=1", "PS:staleness=2")
# And where an update takes a gradient of each.
SERVED_TOGETHER = ("PS:replicas_to_aggregate={}", "PSLoadBalancing:replicas_to_aggregate={}", "PartitionedPS:replicas_to_aggregate={}")
DEVICE_STRATEGIES = (*STRATEGIES, "Parallax", "PSLoadBalancing", "PartitionedPS", "PSLoadBalancing:variable_averages=0.9")


class Failure(Exception):
    """A configuration that does not do what it should: a class and what was seen."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


def execute(command, timeout, **environment):
    """Exit status and output; all processes that it started end with it."""
    process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True, env={**os.environ, **environment})
    try:
        out, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return process.returncode, out


def free_port():
    with socket.create_server((HOSTS[0], 0)) as server:
        return server.getsockname()[1]


def in_child(function, *arguments):
    """Runs in a process of its own: a session starts threads, and what was made is gone with it."""
    here, there = multiprocessing.Pipe()
    child = os.fork()
    if child == 0:
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 2)
            there.send((None, function(*arguments)))
        except BaseException as error:  # whoever asked tells of it
            there.send((type(error).__name__, str(error)))
        finally:
            os._exit(0)
    there.close()
    try:
        failed, result = here.recv()
    except EOFError:
        failed, result = "EOFError", "the process ended"
    finally:
        os.waitpid(child, 0)
        here.close()
    return failed, result


def build(recipe, folder):
    """Writes the case; why not where there is none."""
    import training_graphs
    failed, text = in_child(training_graphs.write, recipe, folder)
    if failed:
        return f"{failed}: {text}".split("\n")[0]
    with np.load(folder / "expect.npz") as expect:
        if not all(np.all(np.isfinite(expect[name])) for name in expect.files if expect[name].dtype.kind == "f"):
            return "numbers are not finite"
    return None


class Case:
    def __init__(self, folder):
        self.folder = folder
        self.graph, self.data = folder / "graph.meta", folder / "feeds.npz"
        self.facts = json.loads((folder / "case.json").read_text())
        with np.load(folder / "expect.npz") as expect:
            self.losses = expect["loss"].astype(np.float64)
            self.variables = {name[len("var/"):]: expect[name] for name in expect.files if name.startswith("var/")}
            # Of those that change with each batch, where one is two whose gradients are accumulated.
            self.of_halves = {name[len("halves/"):]: expect[name] for name in expect.files if name.startswith("halves/")}

    def configuration(self, rng, kinds):
        """A random one: how it runs, strategy, replicas, flags."""
        sites = [[], [], ["--one-process-per-replica"]]
        kind = rng.choice([kind for kind, weight in (("executable", 12), ("hosts", 4), ("emulated", 1), ("unrolled", 1), ("export", 2)) if kind in kinds
                           for _ in range(weight)])
        replicas = rng.choice([1, 2, 2, 4, 4])
        if kind == "export":
            replicas = 2
            strategy = rng.choice(SERVERS)
            flags = rng.choice(sites) + ["--ps", str(rng.randint(1, 2))]
        elif kind == "unrolled":
            replicas, strategy, flags = 2, rng.choice(["AllReduce", "AllReduce:chunk_size=1"]), []
        elif kind == "hosts":
            strategy, flags = rng.choice(STRATEGIES + SERVERS), []
            replicas = rng.choice([2, 4, 4])
        elif kind == "emulated":
            strategy, flags = rng.choice(DEVICE_STRATEGIES), ["--target", "cuda:emulated"]
            replicas = rng.choice([1, 2, 2, 4])
        else:
            strategy, flags = rng.choice(STRATEGIES), rng.choice(sites)
            if rng.random() < 0.4:
                strategy, flags = rng.choice(SERVERS), flags + rng.choice([[], ["--ps", str(rng.randint(1, 3))]])
            if rng.random() < 0.1:
                strategy, flags, replicas = rng.choice(SERVED), rng.choice([[], ["--ps", "2"]]), 1
            elif rng.random() < 0.1:
                strategy = rng.choice(SERVED_TOGETHER)
            elif rng.random() < 0.25:
                flags = flags + ["--cores-per-replica", str(rng.randint(2, 3))]
        if self.facts.get("whole_batches"):  # those of parts of a batch are other numbers
            strategy = re.sub(r"[:,]accumulate_steps=2", lambda found: found.group()[0] if strategy[found.end():] else "", strategy).replace(":,", ":")
        parts = 2 if "accumulate_steps" in strategy else 1
        if self.facts["batch"] % (replicas * parts):
            replicas = 2
        strategy = strategy.format(replicas)
        return {"kind": kind, "strategy": strategy, "replicas": replicas, "flags": flags}

    def compile(self, configuration, out, *more):
        batch = self.facts["batch"] // (2 if "accumulate_steps" in configuration["strategy"] else 1)
        replicas = ["--resources", out.parent / "resources.yml"] if configuration["kind"] == "hosts" else ["--replicas", configuration["replicas"]]
        command = [DISTC, "compile", self.graph, "--strategy", configuration["strategy"], *replicas,
                   *(["--batch", batch] if batch else []), "-o", out, *configuration["flags"], *more]
        try:
            status, text = execute(command, 120)
        except subprocess.TimeoutExpired:
            raise Failure("compiler hangs", "")
        if status not in (0, 1):
            raise Failure("compiler crashes", f"status {status}: {text[-600:]}")
        if status == 1:
            raise Failure("refused", text[-1500:])

    def check(self, configuration, runs, rng):
        """Raises what is wrong."""
        with Folder() as folder:
            getattr(self, "check_" + configuration["kind"])(configuration, runs, rng, folder)

    def check_executable(self, configuration, runs, rng, folder):
        self.compile(configuration, folder / "train")
        parts = 2 if "accumulate_steps" in configuration["strategy"] else 1
        first = None
        for number in range(runs):
            seed = str(rng.randrange(1, 10 ** 9)) if number else "0"
            results = self.run(folder, parts, seed)
            if first is None:
                first = results
            problems = self.differences(configuration, parts, *results)
            if problems:
                raise Failure("wrong" if number == 0 else "wrong in some runs", f"run {number}, DRT_DELAYS={seed}: " + "; ".join(problems))
            if not np.array_equal(first[0], results[0]) or any(not np.array_equal(first[1][name], results[1][name]) for name in first[1]):
                names = [name for name in first[1] if not np.array_equal(first[1][name], results[1][name])]
                raise Failure("other bits in some runs", f"run {number}, DRT_DELAYS={seed}: losses {first[0]} {results[0]}, variables {names}")

    check_emulated = check_executable

    def check_hosts(self, configuration, runs, rng, folder):
        """Two hosts, each a task with half of the replicas."""
        nodes = "".join(f"  - address: {host}\n    cpus: {list(range(configuration['replicas'] // 2))}\n" + "    chief: true\n" * (host == HOSTS[0])
                        for host in HOSTS)
        (folder / "resources.yml").write_text("nodes:\n" + nodes)
        self.check_executable(configuration, runs, rng, folder)

    def run(self, folder, parts, seed):
        for leftover in ("log.jsonl", "final.npz"):
            (folder / leftover).unlink(missing_ok=True)
        command = [folder / "train", "--data", self.data, "--steps", self.facts["steps"] * parts, "--log-json", folder / "log.jsonl",
                   "--export-npz", folder / "final.npz", "--quiet"]
        if (folder / "resources.yml").exists():
            command = ["sh", "-c", '"$@" --task worker:1 --rendezvous $0 & "$@" --task worker:0 --rendezvous $0; status=$?; wait $! && exit $status',
                       f"{HOSTS[0]}:{free_port()}", *command]
        try:
            status, text = execute(command, TIMEOUT_S, **({} if seed == "0" else {"DRT_DELAYS": seed}))
        except subprocess.TimeoutExpired:
            raise Failure("hangs", f"DRT_DELAYS={seed}")
        if status:
            raise Failure("run fails", f"DRT_DELAYS={seed}: status {status}: {text[-400:]}")
        losses = np.array(read_losses(folder / "log.jsonl"), np.float64)
        if len(losses) == self.facts["steps"]:
            parts = 1  # a loss that an update needs is the whole batch's, known when the update runs
        if len(losses) % parts:
            raise Failure("wrong", f"{len(losses)} batches logged, {self.facts['steps'] * parts} asked for")
        with np.load(folder / "final.npz") as final:
            return losses.reshape([-1, parts]).mean(1), {name: final[name] for name in final.files}

    def differences(self, configuration, parts, losses, variables):
        found = []
        want = self.losses
        replicas = configuration["replicas"]
        scales = [1.0]
        check_losses = True
        if self.facts["loss_is_sum"]:
            scales = [1.0, 1.0 / parts, 1.0 / (replicas * parts), 1.0 / replicas]
            check_losses = not self.facts["penalties"] or replicas * parts == 1
        if len(losses) != len(want):
            found.append(f"losses of {len(losses)} updates, not {len(want)}")
        elif check_losses:
            off = [float(np.max(np.abs(losses - scale * want) / (np.abs(scale * want) + 1e-5))) for scale in scales]
            if not min(off) <= LOSS_TOLERANCE:
                found.append(f"losses off by {min(off):.1e}: {losses.tolist()}, not {want.tolist()}")
        for name, value in self.variables.items():
            if parts > 1 and name in self.facts["by_batch"]:
                if name not in self.of_halves:
                    continue
                value = self.of_halves[name]
            got = variables.get(name)
            if got is None:
                found.append(f"variable {name} is missing")
            elif got.shape != value.shape or got.dtype != value.dtype:
                found.append(f"variable {name} is {got.dtype}{list(got.shape)}, not {value.dtype}{list(value.shape)}")
            else:
                off = np.linalg.norm((got.astype(np.float64) - value).ravel()) / max(np.linalg.norm(value.astype(np.float64).ravel()), 1e-4)
                if not off <= TOLERANCE:
                    found.append(f"variable {name} off by {off:.1e}")
        return found

    # ---- Other ways to run ---------------------------------------------------------------------------------

    def check_unrolled(self, configuration, runs, rng, folder):
        (folder / "graph.mlir").write_text(must([TRANSLATE, "--import-graphdef", self.graph]))
        status, text = execute([OPT, folder / "graph.mlir", "--dfg-inline-calls", "--dfg-infer-shapes", "--dfg-divide-convolutions",
                                "--dfg-write-out-control-flow", f"--distribute=strategy={configuration['strategy']} replicas={configuration['replicas']} unrolled=true", "--mlir-print-debuginfo", "-o", folder / "unrolled.mlir"], 120)
        if status:
            raise Failure("refused" if status == 1 else "compiler crashes", text[-600:])
        must([TRANSLATE, "--export-graphdef", folder / "unrolled.mlir", "-o", folder / "unrolled.meta"])
        # A mean over the batch may be divided by the whole batch's size in each replica: its shares then make a sum.
        join = re.search(r'dist\.joins = {[^}]*"loss:0" = "(\w+)', (folder / "unrolled.mlir").read_text())
        joined = np.sum if join and join[1] == "sum" else np.mean
        failed, result = in_child(train_unrolled, folder / "unrolled.meta", self, configuration["replicas"], joined)
        if failed:
            raise Failure("run fails", f"{failed}: {result}"[:600])
        self.raise_differences(configuration, 1, *result)

    def check_export(self, configuration, runs, rng, folder):
        self.compile(configuration, folder / "tasks", "--emit=graphdef")
        parts = 2 if "accumulate_steps" in configuration["strategy"] else 1
        for number in range(min(runs, 2)):
            failed, result = in_child(train_tasks, folder / "tasks", self, parts)
            if failed:
                raise Failure("hangs" if "said nothing" in result else "run fails", f"{failed}: {result}"[:600])
            losses, saved = result
            variables = {name: saved.get(name, value) for name, value in self.variables.items()}
            self.raise_differences(configuration, parts, losses, variables)

    def raise_differences(self, configuration, parts, losses, variables):
        problems = self.differences(configuration, parts, np.asarray(losses), variables)
        if problems:
            raise Failure("wrong", "; ".join(problems))


def must(command):
    status, text = execute(command, 120)
    if status:
        raise Failure("compiler crashes" if status != 1 else "refused", text[-600:])
    return text


def train_unrolled(path, case, replicas, joined):
    import tensorflow as tf
    tf1 = tf.compat.v1
    tf1.disable_eager_execution()
    graph = tf.Graph()
    with graph.as_default(), np.load(case.data) as feeds:
        definition = tf1.MetaGraphDef()
        definition.ParseFromString(path.read_bytes())
        tf1.import_graph_def(definition.graph_def, name="")
        operations = graph.get_operations()
        losses = [op.outputs[0] for op in operations if re.fullmatch(r"(replica_\d+/)?loss", op.name)]
        reads = {op.name: tf.raw_ops.ReadVariableOp(resource=op.outputs[0], dtype=op.get_attr("dtype"))
                 for op in operations if op.type == "VarHandleOp"} | {op.name: op.outputs[0] for op in operations if op.type == "VariableV2"}
        data = {name: feeds[name] for name in feeds.files}
        rows = case.facts["batch"] // replicas
        got = []
        with tf1.Session(graph=graph) as session:
            session.run("init")
            for step in range(case.facts["steps"]):
                fed = {}
                for op in operations:
                    if op.type == "Placeholder":
                        scope, _, name = op.name.rpartition("/")
                        first = step * case.facts["batch"] + (int(scope.rsplit("_")[-1]) * rows if scope else 0)
                        fed[op.outputs[0]] = data[name][first:first + rows] if op.outputs[0].shape.rank and op.outputs[0].shape[0] is None else data[name]
                got.append(joined(session.run([losses, "train_all"], fed)[0]))
            return got, session.run(reads)


def train_tasks(folder, case, parts):
    """What --emit=graphdef wrote; the variables by their names in the original graph, from a checkpoint."""
    import tensorflow as tf

    from tensorflow_runs import load_runner
    runner = load_runner()
    data = runner.read_data(case.data)
    with Folder() as checkpoints:
        losses = runner.train(folder, data, case.facts["steps"] * parts, save=checkpoints / "last.ckpt", timeout=TIMEOUT_S)
        reader = tf.train.load_checkpoint(str(checkpoints / "last.ckpt"))
        variables = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    return np.reshape(losses, [-1, parts]).mean(1), variables


# ---- Many of them --------------------------------------------------------------------------------------------


def check_recipe(recipe, configurations, runs, seed, kinds=KINDS):
    """[(configuration, failure)]; None where the recipe has no graph."""
    rng = random.Random(seed)
    with Folder() as folder:
        unsuitable = build(recipe, folder)
        if unsuitable:
            return unsuitable
        case = Case(folder)
        found = []
        if isinstance(configurations, int):
            configurations = [case.configuration(rng, kinds) for _ in range(configurations)]
        for configuration in configurations:
            try:
                case.check(configuration, runs, rng)
                found.append((configuration, None, None))
            except Failure as failure:
                found.append((configuration, failure.kind, failure.text))
        return found


def reduce(recipe, configuration, kind, runs, limit_s):
    """The smallest recipe that was found to fail in the same way."""
    end = time.time() + limit_s
    alike = ("wrong", "wrong in some runs", "other bits in some runs", "hangs")
    again = True
    while again and time.time() < end:
        again = False
        for smaller in training_recipes.reductions(recipe):
            if time.time() > end:
                break
            found = check_recipe(smaller, [configuration], runs, 1)
            if isinstance(found, list) and (found[0][1] == kind or kind in alike and found[0][1] in alike):
                recipe, again = smaller, True
                break
    return recipe


def check_number(arguments, number):
    started = time.time()
    rng = random.Random(f"{arguments.seed} {number}")
    recipe = training_recipes.draw(rng)
    seed = f"{arguments.seed} {number} runs"
    found = check_recipe(recipe, arguments.configurations, arguments.runs, seed, arguments.kinds.split(","))
    if isinstance(found, str):
        return number, found, time.time() - started
    kinds = set()
    for configuration, kind, text in found:
        if kind in (None, "refused") or not arguments.keep or kind in kinds or arguments.ignore and re.search(arguments.ignore, f"{kind}: {text}"):
            continue
        kinds.add(kind)
        smaller = reduce(recipe, configuration, kind, max(arguments.runs, 4), 60) if arguments.reduce else recipe
        folder = arguments.keep / f"{arguments.seed}-{number}-{kind.replace(' ', '-')}"
        shutil.rmtree(folder, ignore_errors=True)
        build(smaller, folder)
        (folder / "failure.json").write_text(json.dumps({"configuration": configuration, "kind": kind, "seen": text, "seed": arguments.seed,
                                                         "number": number, "before": recipe}, indent=1))
    return number, found, time.time() - started


def check_again(arguments):
    failed = 0
    for folder in arguments.again:
        configuration = json.loads((folder / "failure.json").read_text())["configuration"]
        configuration.update(json.loads(arguments.instead or "{}"))
        try:
            Case(folder).check(configuration, arguments.runs, random.Random(arguments.seed))
            print(f"ok     {folder.name}", flush=True)
        except Failure as failure:
            failed += 1
            print(f"FAILED {folder.name}: {failure}"[:800], flush=True)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="number of the first graph")
    parser.add_argument("--configurations", type=int, default=3, help="strategies and placements of each graph")
    parser.add_argument("--runs", type=int, default=2, help="of each configuration, with other delays")
    parser.add_argument("--kinds", default=",".join(KINDS), help="how graphs run; emulated: on the emulated GPU (default %(default)s)")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the graphs that fail")
    parser.add_argument("--reduce", action="store_true")
    parser.add_argument("--again", type=pathlib.Path, nargs="+", help="instead, what --keep left: whether it still fails")
    parser.add_argument("--with", dest="instead", help="of --again: another configuration, JSON that changes the one that failed")
    parser.add_argument("--ignore", help="failures not to keep, a regular expression")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    tf1, tf = need_tensorflow()
    try:
        import tf_keras  # noqa: F401  before the processes fork
    except ImportError:
        from support import skip
        skip("needs tf-keras: pip install tf-keras")
    tf.get_logger().setLevel("ERROR")
    need_tools(DISTC, TRANSLATE, OPT)
    if arguments.again:
        sys.exit(check_again(arguments))
    failed, counts, total, refusals = 0, {}, 0, {}
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(arguments.jobs, mp_context=context) as pool:
        jobs = [pool.submit(check_number, arguments, number) for number in range(arguments.first, arguments.first + arguments.count)]
        for job in as_completed(jobs):
            number, found, seconds = job.result()
            if isinstance(found, str):
                counts[found] = counts.get(found, 0) + 1
                if arguments.verbose:
                    print(f"none    graph {number} of seed {arguments.seed}: {found}", flush=True)
                continue
            for configuration, kind, text in found:
                if kind == "refused":
                    reason = re.sub(r"'[^']*'|\S*/\S*", "_", (re.findall(r"error: (.*)", text) or [text.replace("\n", " ")])[-1])[:160]
                    refusals[reason] = refusals.get(reason, 0) + 1
            bad = [f for f in found if f[1] not in (None, "refused")]
            failed += bool(bad)
            total += len(found)
            if bad or arguments.verbose:
                print(f"{'FAILED' if bad else 'ok    '} graph {number} of seed {arguments.seed} ({seconds:.1f} s)", flush=True)
            for configuration, kind, text in bad:
                counts[kind] = counts.get(kind, 0) + 1
                print(f"        {kind}: {configuration['kind']} {configuration['strategy']} x{configuration['replicas']} "
                      f"{' '.join(configuration['flags'])}: {text[:700]}".replace("\n", "\n          "), flush=True)
    print(f"{arguments.count} graphs, {total} configurations, {failed} graphs with failures: {counts}")
    for reason, count in sorted(refusals.items(), key=lambda item: -item[1]):
        print(f"  refused {count} times: {reason}")
    # What is refused is not wrong, but a test of nothing but refusals tests nothing.
    sys.exit(1 if failed or sum(refusals.values()) * 2 > total else 0)


if __name__ == "__main__":
    main()
