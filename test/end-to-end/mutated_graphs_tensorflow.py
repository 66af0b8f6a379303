"""Mutants of training graphs (test/graph_mutations.py) through random strategies and placements: what one device makes of the whole batch,
or a refusal.

  mutated_graphs_tensorflow.py [--seed S] [--count N] [--mutations M] [--configurations C] [--keep FOLDER] [--cases FOLDER...]

The graphs are those of random recipes (test/training_recipes.py), or of the folders of --cases, each as test/models has them; --keep leaves those
that fail, each with what was changed, and `random_training_tensorflow.py --again` runs them again.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

import numpy as np

from random_training_tensorflow import Case, Failure, in_child
from support import DISTC, ROOT, Folder, need_tensorflow, need_tools, skip

sys.path.insert(0, str(ROOT / "test"))
import training_recipes  # noqa: E402

NOISE = 30  # times what a millionth of the variables makes


class MutatedCase(Case):
    """Its numbers have bounds of their own: what rounding makes of a mutant is measured."""

    def __init__(self, folder):
        super().__init__(folder)
        with np.load(folder / "expect.npz") as expect:
            self.noise = {name: expect[name] for name in expect.files if name.startswith("noise/")}

    def differences(self, configuration, parts, losses, variables):
        found = []
        bound = 3e-4 * np.abs(self.losses) + NOISE * self.noise["noise/loss"] + 1e-5
        if len(losses) != len(self.losses) or not np.all(np.abs(losses - self.losses) <= bound):
            found.append(f"losses {losses.tolist()}, not {self.losses.tolist()} +- {bound.tolist()}")
        for name, value in self.variables.items():
            if name not in variables:
                found.append(f"variable {name} is missing")
                continue
            off = np.linalg.norm((variables[name].astype(np.float64) - value).ravel())
            bound = 2e-4 * np.linalg.norm(value.astype(np.float64).ravel()) + NOISE * self.noise["noise/" + name] + 1e-6
            if not off <= bound:
                found.append(f"variable {name} off by {off:.1e}, more than {bound:.1e}")
        return found


def train(meta, data, facts, change):
    """What TensorFlow computes: losses and variables. `change`: of the first values of what is trained."""
    import tensorflow as tf
    tf1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(meta.graph_def, name="")
        op = lambda key: meta.collection_def[key].node_list.value[0]
        variables, loads = {}, {}
        for node in graph.get_operations():
            if node.type in ("VarHandleOp", "VariableV2"):
                kind = tf.as_dtype(node.get_attr("dtype"))
                fed = tf1.placeholder(kind, node.get_attr("shape"))
                by_handle = node.type == "VarHandleOp"
                variables[node.name] = tf.raw_ops.ReadVariableOp(resource=node.outputs[0], dtype=kind) if by_handle else node.outputs[0]
                loads[node.name] = fed, tf.raw_ops.AssignVariableOp(resource=node.outputs[0], value=fed) if by_handle else tf1.assign(node.outputs[0], fed)
        config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        with tf1.Session(graph=graph, config=config) as session:
            session.run(op("init_op"))
            if change is not None:
                for name, value in session.run(variables).items():
                    if value.dtype == np.float32:
                        session.run(loads[name][1], {loads[name][0]: value * (1 + 1e-6 * change.choice([-1, 1], value.shape)).astype(np.float32)})
            losses = []
            for step in range(facts["steps"]):
                rows = slice(step * facts["batch"], (step + 1) * facts["batch"])
                fed = {f"{name}:0": array[rows] if array.ndim and graph.get_tensor_by_name(f"{name}:0").shape[0] is None else array
                       for name, array in data.items()}
                loss, _ = session.run([op("losses"), op("train_op")], fed)
                losses.append(loss)
            return np.array(losses, np.float64), session.run(variables)


def write(source, folder, seed, count):
    """The mutant of a case in a folder; what was changed, or why there is none."""
    import tensorflow as tf
    import graph_mutations
    tf.compat.v1.disable_eager_execution()
    facts = json.loads((source / "case.json").read_text())
    meta = tf.compat.v1.MetaGraphDef.FromString((source / "graph.meta").read_bytes())
    changed = graph_mutations.mutate(meta, random.Random(seed), count)
    if len(changed) < count:
        return "nothing to change"
    with np.load(source / "feeds.npz") as feeds:
        data = {name: feeds[name] for name in feeds.files}
    losses, final = train(meta, data, facts, None)
    if losses.ndim != 1:
        return "the loss is no number"
    noisy_losses, noise = np.zeros(losses.shape), {name: np.zeros(()) for name in final}
    for number in range(2):
        others, other = train(meta, data, facts, np.random.RandomState(number))
        noisy_losses = np.maximum(noisy_losses, np.abs(others - losses))
        for name, value in final.items():
            if value.dtype.kind == "f":
                noise[name] = np.maximum(noise[name], np.linalg.norm((value.astype(np.float64) - other[name].astype(np.float64)).ravel()))
    if not np.all(np.isfinite(losses)) or not all(np.all(np.isfinite(value)) for value in final.values() if value.dtype.kind == "f"):
        return "numbers are not finite"
    size = lambda value: np.linalg.norm(value.astype(np.float64).ravel()) + 1e-3
    if np.any(noisy_losses > 1e-3 * (np.abs(losses) + 1e-2)) or any(noise[name] > 1e-3 * size(value) for name, value in final.items() if value.dtype.kind == "f"):
        return "ill-conditioned"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.meta").write_bytes(meta.SerializeToString(deterministic=True))
    shutil.copyfile(source / "feeds.npz", folder / "feeds.npz")
    np.savez(folder / "expect.npz", loss=losses, **{f"var/{name}": value for name, value in final.items() if value.dtype.kind in "fiub"},
             **{"noise/loss": noisy_losses}, **{f"noise/{name}": value for name, value in noise.items()})
    facts |= {"loss_is_sum": False, "whole_batches": True, "by_batch": [], "penalties": False, "changed": changed}
    (folder / "case.json").write_text(json.dumps(facts, indent=1))
    return changed


def source_of(arguments, rng, folder):
    """A case to change; a sentence where there is none."""
    if arguments.cases:
        return rng.choice(arguments.cases)
    import training_graphs
    recipe = training_recipes.draw(rng)
    if recipe["constant_data"]:
        return "no feeds"
    failed, text = in_child(training_graphs.write, recipe, folder / "source")
    return f"{failed}: {text}".split("\n")[0] if failed else folder / "source"


def check_number(arguments, number):
    started = time.time()
    rng = random.Random(f"{arguments.seed} {number}")
    with Folder() as scratch:
        source = source_of(arguments, rng, scratch)
        if isinstance(source, str):
            return number, source, [], time.time() - started
        failed, changed = in_child(write, source, scratch / "case", rng.random(), rng.choice(arguments.mutations))
        if failed or isinstance(changed, str):
            return number, f"{failed}: {changed}".split("\n")[0][:150] if failed else changed, [], time.time() - started
        case, found = MutatedCase(scratch / "case"), []
        for _ in range(arguments.configurations):
            configuration = case.configuration(rng, arguments.kinds.split(","))
            try:
                case.check(configuration, 1, rng)
                found.append((configuration, None, None))
            except Failure as failure:
                found.append((configuration, failure.kind, failure.text))
        bad = [(configuration, kind, text) for configuration, kind, text in found if kind not in (None, "refused")]
        if bad and arguments.keep:
            configuration, kind, text = bad[0]
            folder = arguments.keep / f"{arguments.seed}-{number}-{kind.replace(' ', '-')}"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(scratch / "case", folder)
            (folder / "failure.json").write_text(json.dumps({"configuration": configuration, "kind": kind, "seen": text, "source": str(source),
                                                             "changed": changed}, indent=1))
        return number, changed, found, time.time() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--mutations", type=int, nargs="+", default=[1, 1, 2], help="changes of a graph: one of these numbers")
    parser.add_argument("--configurations", type=int, default=2, help="strategies and placements of each mutant")
    parser.add_argument("--kinds", default="executable", help="how they run, as in random_training_tensorflow.py")
    parser.add_argument("--cases", type=pathlib.Path, nargs="+", help="folders of cases to change")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the mutants that fail")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    tf1, tf = need_tensorflow()
    try:
        import tf_keras  # noqa: F401  before the processes fork
    except ImportError:
        skip("needs tf-keras: pip install tf-keras")
    tf.get_logger().setLevel("ERROR")
    need_tools(DISTC)
    failed, total, counts, refusals = 0, 0, {}, {}
    with ProcessPoolExecutor(arguments.jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        jobs = [pool.submit(check_number, arguments, number) for number in range(arguments.first, arguments.first + arguments.count)]
        for job in as_completed(jobs):
            number, changed, found, seconds = job.result()
            if not found:
                counts[changed] = counts.get(changed, 0) + 1
                continue
            bad = [f for f in found if f[1] not in (None, "refused")]
            failed += bool(bad)
            total += len(found)
            if bad or arguments.verbose:
                print(f"{'FAILED' if bad else 'ok    '} mutant {number} of seed {arguments.seed} ({seconds:.1f} s): {'; '.join(changed)}", flush=True)
            for configuration, kind, text in found:
                if kind == "refused":
                    reason = re.sub(r"'[^']*'|\S*/\S*", "_", (re.findall(r"error: (.*)", text) or [text.replace("\n", " ")])[-1])[:160]
                    refusals[reason] = refusals.get(reason, 0) + 1
                elif kind:
                    counts[kind] = counts.get(kind, 0) + 1
                    print(f"        {kind}: {configuration['kind']} {configuration['strategy']} x{configuration['replicas']} "
                          f"{' '.join(configuration['flags'])}: {text[:600]}".replace("\n", "\n          "), flush=True)
    print(f"{arguments.count} mutants, {total} configurations, {failed} mutants with failures: {counts}")
    for reason, count in sorted(refusals.items(), key=lambda item: -item[1]):
        print(f"  refused {count} times: {reason}")
    sys.exit(1 if failed or sum(refusals.values()) * 2 > total else 0)


if __name__ == "__main__":
    main()
