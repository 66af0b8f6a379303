"""Random expressions with gradients (test/random_expressions.py) on an emulated GPU, or two of them: losses and trained variables are
those of the same graph on a CPU, to the rounding of float32.

  random_expressions.py [--seed S] [--count N] [--first K] [--keep FOLDER]
"""
import argparse
import os
import pathlib
import random
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from support import DISTC, ROOT, TRANSLATE, Checks, Folder, must, need_emulated_gpu, need_tools

sys.path.insert(0, str(ROOT / "test"))
from random_expressions import Expressions  # noqa: E402
from random_training import make_meta_graph  # noqa: E402

STEPS = 2
BATCHES = (1, 2, 4, 7, 8, 33)
EXPRESSIONS = 20  # of a graph
TOLERANCE = 1e-3  # of the largest element
LEAST = {"v": 1e-2, "loss": 2.0}  # that it is taken for: terms of a sum may be of this size, and cancel
TIMEOUT = 500  # seconds, of a command; a few on an idle machine
TYPES = {"f32": np.float32, "i32": np.int32}


class Case:
    """A graph of random expressions in a folder, with its feeds."""

    def __init__(self, folder, seed, number):
        self.folder = folder
        rng = random.Random(f"{seed} {number}")
        self.devices = 1 + number % 2
        self.batch = rng.choice(BATCHES) * self.devices
        self.graph = Expressions(rng, EXPRESSIONS, coupled=self.devices == 1)
        (folder / "graph.mlir").write_text(self.graph.print())
        text = must([TRANSLATE, "--export-graphdef", "--text", folder / "graph.mlir"]).stdout
        (folder / "graph.meta").write_text(make_meta_graph(self.graph, text))
        np.savez(folder / "feeds.npz", **{name: np.array(rows, TYPES[element]) for name, (element, rows) in
                                          self.graph.make_feeds(STEPS * self.batch).items()})

    def train(self, name, replicas, *flags, seed=0):
        """The variables behind the last step."""
        executable, final = self.folder / name, self.folder / f"{name}.npz"
        must([DISTC, "compile", self.folder / "graph.meta", "--strategy", "AllReduce", "--replicas", replicas, "--batch", self.batch,
              "-o", executable, *flags], timeout=TIMEOUT)
        must([executable, "--data", self.folder / "feeds.npz", "--steps", STEPS, "--export-npz", final],
             env=dict(os.environ, DRT_EMULATED_SEED=str(seed)), timeout=TIMEOUT)
        with np.load(final) as variables:
            return {name: variables[name] for name in variables.files}

    def differences(self, want, got):
        found = []
        for number, text in self.graph.texts.items():
            for kind, least in LEAST.items():
                name = f"{kind}{number}"
                w, g = want[name].astype(float), got[name].astype(float)
                with np.errstate(invalid="ignore"):
                    off = np.abs(w - g) / max(np.max(np.abs(w), initial=0), least)
                if not np.all((off <= TOLERANCE) | (np.isnan(w) & np.isnan(g)) | (w == g)):
                    found.append("\n".join([f"{name} is\n{g}, not\n{w}, batch {self.batch}, devices {self.devices}, of:", *text]))
        return found


def check_graph(seed, number, keep):
    with Folder() as folder:
        if keep:
            folder = pathlib.Path(keep) / f"{seed}-{number}"
            folder.mkdir(parents=True, exist_ok=True)
        case = Case(folder, seed, number)
        on_devices = case.train("cuda", case.devices, "--target=cuda:emulated", seed=number)
        return case.differences(case.train("cpu", 1), on_devices)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=8, help=f"graphs, of {EXPRESSIONS} expressions each")
    parser.add_argument("--first", type=int, default=0, help="number of the first graph")
    parser.add_argument("--keep", help="folder for graphs and executables")
    arguments = parser.parse_args()
    need_tools(DISTC, TRANSLATE)
    need_emulated_gpu()
    checks = Checks(share=0.5)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number in range(arguments.first, arguments.first + arguments.count):
            pool.submit(checks.check, f"graph {number} of seed {arguments.seed}", check_graph, arguments.seed, number, arguments.keep)
    checks.exit()


if __name__ == "__main__":
    main()
