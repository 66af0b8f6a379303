"""The bundle for machines with a GPU, made for the emulated one: its run.sh passes on what TensorFlow computed, and says so where a
number is wrong."""
import os
import shutil

import numpy as np

from support import BIN, MODELS, ROOT, Checks, Folder, is_sanitized, must, need_emulated_gpu, need_tools, run, skip

LIBRARY = BIN.parent / "lib"
COMPARE = BIN / "compare_run"
CASES = ["linreg-sgd", "mlp-adam"]


def make(folder):
    cases = [f"--case={MODELS / name}" for name in CASES]
    must([ROOT / "tools" / "python.sh", ROOT / "tools" / "gpu_bundle" / "make_bundle.py", folder / "bundle", "--compare", COMPARE,
          "--distc", BIN / "distc", "--target", "cuda:emulated", *cases])
    return folder / "bundle"


def script(bundle, *flags):
    # Two ranks share a machine's only device.
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_HOME"} | {"DRT_EMULATED_DEVICES": "1"}
    return run([bundle / "run.sh", "--no-bench", *flags], env=environment)


def passes(bundle):
    done = script(bundle)
    wanted = ["mlp-adam/two-ranks", "losses within", "100% tests passed, 0 tests failed", "Total Test time (real) ="]
    missing = [f"no '{text}' in its output" for text in wanted if text not in done.out]
    return missing + [f"exit status {done.returncode}:\n{done.out}"] * (done.returncode != 0 or bool(missing))


def fails_where_numbers_are_wrong(bundle):
    expected = bundle / "cases" / "mlp-adam" / "expect.npz"
    arrays = dict(np.load(expected))
    name = next(name for name in arrays if name.endswith("kernel"))
    arrays[name] = arrays[name] * 1.01
    np.savez(expected, **arrays)
    done = script(bundle, "--only", "mlp-adam/checkpoint")
    wanted = ["***Failed", name[len("var/"):] + " is off by", "0% tests passed, 1 tests failed out of 1", "mlp-adam/checkpoint (Failed)"]
    missing = [f"no '{text}' in its output" for text in wanted if text not in done.out]
    return missing + ["exit status 0"] * (done.returncode == 0) + [done.out] * bool(missing)


def says_what_is_missing(bundle):
    shutil.rmtree(bundle / "cases" / "linreg-sgd")
    done = script(bundle, "--only", "linreg-sgd/initializers")
    return [] if done.returncode == 1 and "linreg-sgd/train" in done.out else [f"exit status {done.returncode}:\n{done.out}"]


def main():
    need_tools()
    need_emulated_gpu()
    need_tools(COMPARE)
    if is_sanitized():
        skip("executables with sanitizers are larger than a bundle may be")
    checks = Checks()
    with Folder() as folder:
        bundle = make(folder)
        checks.check("passes", passes, bundle)
        checks.check("fails where numbers are wrong", fails_where_numbers_are_wrong, bundle)
        checks.check("says what is missing", says_what_is_missing, bundle)
    checks.exit()


if __name__ == "__main__":
    main()
