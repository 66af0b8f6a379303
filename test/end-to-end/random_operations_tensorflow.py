"""Random expressions, forward and gradients: what an executable computes is what TensorFlow computes, or the compiler refuses it with an error that names the
node; on the processor's cores, by one replica and by two, and on the emulated GPU.

  random_operations_tensorflow.py [--seed S] [--packs N] [--count N: expressions a pack] [--target cpu] [--replicas R] [--keep FOLDER] [--verbose]
"""
import argparse
import pathlib
import re
import sys

import numpy as np

from support import DISTC, HAS_EMULATED_GPU, ROOT, Checks, Folder, need_tensorflow, need_tools, run

sys.path.insert(0, str(ROOT / "test"))
from random_operations import Pack, differences  # noqa: E402

EMULATED = "cuda:emulated"
TIMEOUT_S = 300


def compile_pack(pack, folder, target, replicas, verbose):
    """Compiles what is not refused; returns sentences about refusals that name no expression."""
    while pack.expressions:
        fetches = [flag for expression in pack.expressions.values() for tensor, _ in expression.fetches for flag in ("--fetch", tensor.name)]
        done = run([DISTC, "compile", folder / "graph.meta", "--strategy", "AllReduce", "--replicas", replicas, "--train-op", "train", "--init-op", "init",
                    "--target", target, *fetches, "-o", folder / "program"], timeout=TIMEOUT_S)
        if done.returncode == 0:
            return []
        named = {scope for scope in re.findall(r"'(e\d+)/", done.out) if scope in pack.expressions}
        if done.returncode != 1 or not named:
            return [f"exit status {done.returncode}: {done.out[-800:]}"]
        for scope in named:
            if verbose:
                print("        refused:", next(line for line in done.out.splitlines() if f"'{scope}/" in line)[-250:], "|", pack.expressions[scope].steps)
            del pack.expressions[scope]
        pack.refused |= named
    return []


def check_pack(tf, flags, number, target, replicas):
    pack = Pack(tf, flags.seed, number, flags.count, gpu=target == EMULATED)
    pack.refused = set()
    with Folder() as folder:
        folder = flags.keep or folder
        pack.write(folder / "graph.meta")
        found = compile_pack(pack, folder, target, replicas, flags.verbose)
        if found or not pack.expressions:
            return found
        done = run([folder / "program", "--eval", "--export-npz", folder / "out.npz"], timeout=TIMEOUT_S)
        if done.returncode != 0:
            return [f"exit status {done.returncode} when it ran: {done.out[-800:]}"]
        with np.load(folder / "out.npz") as got:
            for scope, expression in pack.expressions.items():
                wrong = differences(expression, got)
                if wrong:
                    found.append(f"{scope} ({'; '.join(expression.steps)}): {'; '.join(wrong)}")
    print(f"        {len(pack.expressions)} expressions compared, {len(pack.refused)} refused by name")
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--first", type=int, default=0, help="number of the first pack")
    arguments.add_argument("--packs", type=int, default=3, help="by one replica; further ones are run by two, and on the emulated GPU")
    arguments.add_argument("--count", type=int, default=60)
    arguments.add_argument("--target", help="all packs on this one")
    arguments.add_argument("--replicas", type=int, help="all packs on so many")
    arguments.add_argument("--keep", type=pathlib.Path, help="leaves the last pack's files there")
    arguments.add_argument("--verbose", action="store_true", help="says what was refused")
    flags = arguments.parse_args()
    tf1, tf = need_tensorflow()
    tf1.disable_eager_execution()
    need_tools()
    places = [(flags.target or "cpu", flags.replicas or 1)] * flags.packs
    if not flags.target and not flags.replicas:
        places.append(("cpu", 2))
        if HAS_EMULATED_GPU:
            places.append((EMULATED, 1))
    checks = Checks(share=0.5)
    for number, (target, replicas) in enumerate(places, flags.first):
        checks.check(f"pack {number} of seed {flags.seed} on {target} x{replicas}", check_pack, tf, flags, number, target, replicas)
    checks.exit()


if __name__ == "__main__":
    main()
