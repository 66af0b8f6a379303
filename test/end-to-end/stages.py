"""Every model goes on from every stage that `distc compile --emit` prints, as text or as bytecode, to the same object.

    tools/python.sh test/end-to-end/stages.py [--model NAME ...] [--seed S] [--all]

Without --all each model takes one way of compiling (strategy, replicas, target) and each of its stages one form, which follow from the seed; without
arguments the commit draws half of the models.
"""
import argparse
import random
import sys

from support import BIN, DISTC, Checks, Folder, Model, model_names, must, need_tools, run

OPT = BIN / "distc-opt"
# The stages from which a compilation goes on, in their order.
STAGES = ("dfg", "dist", "drt")
# How graphs are compiled: what a command line says, which the printed stages have to keep.
WAYS = {
    "one": ["--replicas", 1],
    "all-reduce": ["--replicas", 2],
    "parts": ["--replicas", 2, "--strategy", "PartitionedAR"],
    "tasks": ["--replicas", 2, "--one-process-per-replica"],
    "sharded": ["--replicas", 2, "--strategy", "ShardedUpdate"],
    "servers": ["--replicas", 2, "--strategy", "PSLoadBalancing", "--ps", 2, "--one-process-per-replica"],
    "parallax": ["--replicas", 2, "--strategy", "Parallax", "--ps", 1],
    "device": ["--replicas", 2, "--target", "cuda:emulated"],
    "cores": ["--replicas", 1, "--cores-per-replica", 2],
}


def emit(stage, graph, out, *flags):
    """What a graph, or a stage of it, becomes at a stage; and why it does not."""
    done = run([DISTC, "compile", graph, *flags, "--emit", stage, "-o", out])
    if done.returncode not in (0, 1):
        raise AssertionError(f"exit status {done.returncode}:\n{done.out}")
    return (out.read_bytes(), "") if done.returncode == 0 else (None, done.stderr.split("error: ", 1)[-1])


def problems_of(model, way, draw, folder):
    """Stages from which the graph goes on to something else: to another plan, or from the plan to other code. draw: of forms; None takes both."""
    flags = [*WAYS[way], *(["--batch", model.case["batch"]] if model.case["batch"] else [])]
    want = {stage: emit(stage, model.graph, folder / f"whole.{stage}", *flags) for stage in ("drt", "llvm")}
    found = []
    for stage in STAGES:
        printed, bytecode = folder / f"{stage}.mlir", folder / f"{stage}.mlirbc"
        if emit(stage, model.graph, printed, *flags)[0] is None:
            # What is refused is refused from some stage on; the stages before it can be printed.
            if want["llvm"][0] is not None:
                found.append(f"is compiled, but {stage} is not printed")
            break
        to = "llvm" if stage == "drt" else "drt"
        for form in (printed, bytecode) if draw is None else [draw.choice((printed, bytecode))]:
            if form == bytecode:
                must([OPT, printed, "-emit-bytecode", "-o", bytecode])
            got = emit(to, form, folder / "got")
            if got != want[to]:
                found.append(f"{form.name} goes on to something else: {got[1] or 'other ' + to}")
    return found, want["llvm"][0] is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="+", default=model_names())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    need_tools(DISTC, OPT)
    draw = random.Random(arguments.seed)
    cases = [(name, way) for name in arguments.model for way in (WAYS if arguments.all else [draw.choice(sorted(WAYS))])]
    cases = Checks().draw(cases, 0.5)
    failed, compiled = 0, 0
    for name, way in cases:
        with Folder() as folder:
            found, is_compiled = problems_of(Model(name), way, None if arguments.all else draw, folder)
        compiled += is_compiled
        for problem in found:
            failed += 1
            print(f"error: {name}, {way}: {problem}", flush=True)
    print(f"{len(cases)} graphs, of which {compiled} compile; {failed} stages go on to something else")
    return 1 if failed or not compiled else 0


if __name__ == "__main__":
    sys.exit(main())
