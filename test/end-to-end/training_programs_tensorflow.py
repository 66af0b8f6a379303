"""Training steps as TensorFlow's users write them (test/training_programs.py), and every update operation of TensorFlow in all its forms
(test/update_forms.py; without names, a few of them), through random strategies and placements: losses and last variables are TensorFlow's, and
runs with other delays give the same bits.

  training_programs_tensorflow.py [--seed S] [--configurations C] [--kinds KINDS] [--keep FOLDER] [--forms N] [NAME...]
"""
import argparse
import pathlib
import random
import sys

from random_training_tensorflow import KINDS, Case, Failure, in_child
from support import DISTC, ROOT, TRANSLATE, Checks, Folder, expect, need_tensorflow, need_tools, run, skip

sys.path.insert(0, str(ROOT / "test"))
SHARES = 2
# Its class weights are a feed of another size, so that no size is the batch's.
NOT_FIXED = {"weighted_classes"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--configurations", type=int, default=1)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--kinds", default=",".join((*KINDS, "emulated")))
    parser.add_argument("--forms", type=int, default=4, help="programs of update operations, where no names are given")
    parser.add_argument("--fixed", type=int, default=6, help="programs whose batch is a number as well, where no names are given; with names all of them")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the graphs")
    arguments = parser.parse_args()
    need_tensorflow()
    try:
        import tf_keras  # noqa: F401  before processes fork
    except ImportError:
        skip("needs tf-keras: pip install tf-keras")
    need_tools(DISTC, TRANSLATE)
    import training_programs
    import update_forms
    forms = dict(update_forms.programs())
    chosen = [*training_programs.PROGRAMS, *random.Random(arguments.seed).sample(sorted(forms), min(arguments.forms, len(forms)))]
    training_programs.PROGRAMS.update(forms)
    checks = Checks(share=0.3)
    for name in arguments.names or chosen:
        kinds = ["executable", "emulated"] if name in training_programs.FIXED_BATCH else arguments.kinds.split(",")
        checks.check(name, check_program, arguments, name, kinds, training_programs.write)
    # What a batch of another size or another feed would need is no program of these.
    of_numbers = [name for name in arguments.names or random.Random(f"fixed {arguments.seed}").sample(
        sorted(training_programs.PROGRAMS), min(arguments.fixed, len(training_programs.PROGRAMS))) if name not in NOT_FIXED | training_programs.FIXED_BATCH]
    for name in of_numbers if arguments.fixed else []:
        checks.check(f"{name}, whose batch is a number", check_fixed, arguments, name, training_programs.write, SHARES)
        checks.check(f"{name}, in parts of its number", check_fixed, arguments, name, training_programs.write, 1)
    checks.exit()


def is_served(strategy):
    return any(word in strategy for word in ("sync=false", "replicas_to_aggregate", "staleness"))


def check_fixed(arguments, name, write, shares):
    """Feeds of a share's size as a number, or of the whole batch's (one share): two replicas are what TensorFlow computes of feeds of the batch's,
    or it is refused."""
    with Folder() as scratch:
        folder = arguments.keep / f"{name}-fixed" if arguments.keep else scratch / name
        failed, text = in_child(write, name, folder, shares)
        if failed:
            return [f"{failed}: {text}"[:600]]
        case, rng = Case(folder), random.Random(f"{arguments.seed} {name} fixed")
        kinds = [kind for kind in ("executable", "emulated") if kind in arguments.kinds]
        configuration = case.configuration(rng, kinds)
        while is_served(configuration["strategy"]):  # What these make depends on the number of replicas that was drawn.
            configuration = case.configuration(rng, kinds)
        configuration["replicas"] = SHARES
        configuration["strategy"] = configuration["strategy"].replace("coupling=replica", "coupling=auto")
        try:
            case.check(configuration, 1, rng)
        except Failure as failure:
            if failure.kind != "refused":
                return [f"{configuration['kind']} {configuration['strategy']}: {failure}"[:900]]
            print(f"refused {name}: {failure.text[-300:]}")
        return []


def check_program(arguments, name, kinds, write):
    with Folder() as scratch:
        folder = arguments.keep / name if arguments.keep else scratch / name
        failed, text = in_child(write, name, folder)
        if failed:
            return [f"{failed}: {text}"[:600]]
        case = Case(folder)
        rng = random.Random(f"{arguments.seed} {name}")
        problems = []
        configurations = [case.configuration(rng, [kind for kind in kinds if kind in arguments.kinds]) for _ in range(arguments.configurations)]
        if "unrolled" in kinds and all(configuration["kind"] != "unrolled" for configuration in configurations):
            configurations.append(case.configuration(rng, ["unrolled"]))  # the graph as it is, functions put in
        for configuration in configurations:
            what = f"{configuration['kind']} {configuration['strategy']} x{configuration['replicas']} {' '.join(configuration['flags'])}"
            try:
                case.check(configuration, arguments.runs, rng)
            except Failure as failure:
                if failure.kind == "refused":
                    print(f"refused {name}: {what}: {failure.text[-400:]}")
                else:
                    problems.append(f"{what}: {failure}"[:900])
        if "export" not in kinds and "export" in arguments.kinds:
            command = [DISTC, "compile", case.graph, "--replicas", 2, "--batch", case.facts["batch"], "--emit=graphdef", "-o", scratch / "tasks"]
            problems += expect(run(command), 1, "the graph has the batch's size as a number")
        return problems


if __name__ == "__main__":
    main()
