"""Random training graphs through random strategies: the losses and the last variables do not depend on the strategy, the number of
replicas, or where they run, to the rounding of float32; and one executable gives the same bits whatever its threads' pace.

  random_graphs.py [--seed S] [--count N]
"""
import argparse
import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from support import DISTC, ROOT, TRANSLATE, Checks, Folder, must, need_tools, read_losses

sys.path.insert(0, str(ROOT / "test"))
from random_training import Graph, make_meta_graph, random_strategy  # noqa: E402

STEPS = 4
ACCUMULATED = 3
BATCH = 4 * ACCUMULATED  # of every number of replicas and of batches an update
TOLERANCE = 2e-4
STRATEGIES = ("AllReduce", "AllReduce:chunk_size=1", "AllReduce:bucket_mb=1", "PartitionedAR", "RandomAxisPartitionAR:seed=3",
              "ShardedUpdate:stage=1", "ShardedUpdate:stage=2", f"AllReduce:accumulate_steps={ACCUMULATED}",
              f"ShardedUpdate:accumulate_steps={ACCUMULATED}", "PSLoadBalancing", "UnevenPartitionedPS", "Parallax", "a file", "a file", "a file")
RUNS = 3
TYPES = {"f32": np.float32, "i32": np.int32}


class Trained:
    """What a run left: the loss of each update, and the variables."""

    def __init__(self, losses, variables):
        self.losses, self.variables = np.array(losses), variables

    def has_bits_of(self, other):
        return np.array_equal(self.losses, other.losses, equal_nan=True) and self.variables.keys() == other.variables.keys() and all(
            value.tobytes() == other.variables[name].tobytes() for name, value in self.variables.items())

    def differences(self, other):
        found = []
        if not np.all(np.isfinite(self.losses)):
            found.append(f"losses {self.losses}")
        if not np.allclose(self.losses, other.losses, rtol=TOLERANCE, atol=TOLERANCE):
            found.append(f"losses {other.losses}, not {self.losses}")
        for name, want in self.variables.items():
            got = other.variables.get(name)
            if got is None:
                found.append(f"no variable {name}; there are {sorted(other.variables)}")
                continue
            if want.shape != got.shape or want.dtype != got.dtype:
                found.append(f"variable {name} is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}")
            elif not np.allclose(want, got, rtol=TOLERANCE, atol=TOLERANCE):
                found.append(f"variable {name} off by {np.max(np.abs(want - got)):.1e}: got\n{got}, not\n{want}")
        return found


class Case:
    """A random graph in a folder: graph.mlir, graph.pb (GraphDef), graph.meta (with collections) and feeds.npz."""

    def __init__(self, folder, seed, number):
        self.folder = folder
        self.rng = random.Random(f"{seed} {number}")
        self.graph = Graph(self.rng)
        (folder / "graph.mlir").write_text(self.graph.print())
        must([TRANSLATE, "--export-graphdef", folder / "graph.mlir", "-o", folder / "graph.pb"])
        text = must([TRANSLATE, "--export-graphdef", "--text", folder / "graph.mlir"]).stdout
        (folder / "graph.meta").write_text(make_meta_graph(self.graph, text))
        self.feeds = {name: np.array(rows, TYPES[element]) for name, (element, rows) in self.graph.make_feeds(STEPS * BATCH).items()}
        np.savez(folder / "feeds.npz", **self.feeds)

    def compile(self, out, strategy, replicas, *flags, parts=1):
        must([DISTC, "compile", self.folder / "graph.meta", "--strategy", strategy, "--replicas", replicas, "--batch", BATCH // parts,
              "-o", out, *flags])

    def train(self, strategy, replicas, *flags):
        """By the executable."""
        parts = ACCUMULATED if "accumulate_steps" in strategy else 1
        with Folder() as folder:
            self.compile(folder / "train", strategy, replicas, *flags, parts=parts)
            trained = self.run(folder / "train", STEPS * parts)
            if replicas > 1:
                seed = self.rng.randrange(1 << 30)
                delayed = self.run(folder / "train", STEPS * parts, DRT_DELAYS=str(seed))
                if not trained.has_bits_of(delayed):
                    raise AssertionError(f"{strategy} x{replicas} {' '.join(flags)}: with DRT_DELAYS={seed} other numbers: "
                                         f"{'; '.join(trained.differences(delayed)) or 'in the last bits'}")
            losses = trained.losses.reshape([-1, parts]).mean(axis=1)
            if self.graph.loss_is_sum:  # of all batches of an update
                losses = losses * parts
            return Trained(losses, trained.variables)

    def run(self, program, steps, **environment):
        with Folder() as folder:
            must([program, "--data", self.folder / "feeds.npz", "--steps", steps, "--log-json", folder / "log.jsonl",
                  "--export-npz", folder / "final.npz"], env={**os.environ, **environment})
            losses = np.array(read_losses(folder / "log.jsonl"))
            with np.load(folder / "final.npz") as final:
                return Trained(losses, {name: final[name] for name in final.files})

    def random_run(self, number):
        """A strategy, replicas, flags."""
        strategy = self.rng.choice(STRATEGIES)
        if strategy == "a file":
            path = self.folder / f"strategy{number}.pbtxt"
            path.write_text(random_strategy(self.rng, self.graph, servers=2, synchronous=True))
            strategy = str(path)
        flags = self.rng.choice([[], [], ["--one-process-per-replica"]])
        if "PS" in strategy or strategy.endswith(".pbtxt"):
            flags = flags + ["--ps", "2"]
        return strategy, self.rng.choice([1, 2, 2, 4]), flags


def check_graph(seed, number):
    with Folder() as folder:
        case = Case(folder, seed, number)
        found = []
        runs = [case.random_run(run) for run in range(RUNS)]
        alone = case.train("AllReduce", 1)
        for strategy, replicas, flags in runs:
            expect = Trained(alone.losses, dict(alone.variables))
            if "accumulate_steps" in strategy:
                expect.variables.pop("moving", None)  # a statistic's average counts batches, not updates
            differences = expect.differences(case.train(strategy, replicas, *flags))
            if differences and os.path.exists(strategy):
                differences.append(open(strategy).read())
            found += [f"{strategy} x{replicas} {' '.join(flags)}: {d}" for d in differences]
        return found


def read_arguments(description, count):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--first", type=int, default=0, help="number of the first graph")
    arguments = parser.parse_args()
    return arguments.seed, range(arguments.first, arguments.first + arguments.count)


def main():
    seed, numbers = read_arguments(__doc__, 30)
    need_tools(DISTC, TRANSLATE)
    checks = Checks(share=0.6)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number in numbers:
            pool.submit(checks.check, f"graph {number} of seed {seed}", check_graph, seed, number)
    checks.exit()


if __name__ == "__main__":
    main()
