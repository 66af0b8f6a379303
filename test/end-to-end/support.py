"""What the end-to-end tests share. Each is a plain script: exit status 0 passed, 1 failed, 77 skipped (its last line says why).

Tests run side by side, so each works in folders of its own, on the models of test/models (MODELS), with the tools of
$DISTC_BIN (by default build/bin).
"""
import argparse
import gc
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import traceback

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "test" / "models"
BIN = pathlib.Path(os.environ.get("DISTC_BIN", ROOT / "build" / "bin")).absolute()
DISTC = BIN / "distc"
# Whether executables run on an emulated GPU: its runtime is built where the CUDA toolkit is.
HAS_EMULATED_GPU = (BIN.parent / "lib" / "drt-cuda-emulated.link").exists()
TRANSLATE = BIN / "distc-translate"
EXIT_SKIPPED = 77


def skip(reason):
    print("skipped:", reason)
    sys.exit(EXIT_SKIPPED)


def is_sanitized():
    """Whether the build has sanitizers: it is larger, and needs the sanitizers' own libraries, so nothing of it is packed or installed."""
    return not (BIN.parent / "lib" / "carried").is_dir()


def need_tools(*tools):
    """Fails the test where a tool is not built: a test that cannot find what it tests has not passed."""
    for tool in tools or (DISTC,):
        if not tool.exists():
            sys.exit(f"error: {tool} is not built; build it, or set DISTC_BIN to its folder")


def need_emulated_gpu():
    if not HAS_EMULATED_GPU:
        skip("the runtime for GPUs is not built: needs the headers of CUDA, cuDNN and NCCL (CUDA_HOME)")


def need_emulated_tensorflow():
    """TensorFlow's compat.v1, for graphs of resource variables that are compared with the emulated GPU; or skips."""
    tf, _ = need_tensorflow()
    tf.disable_eager_execution()
    tf.enable_resource_variables()
    need_tools(DISTC)
    need_emulated_gpu()
    return tf


def need_tensorflow():
    """TensorFlow's compat.v1 and the module, or skips."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # With oneDNN TensorFlow 2.21 computes a layer normalization with an epsilon of its own.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    # Its modules are 270,000 objects that never go: who collects garbage need not visit them.
    gc.disable()
    try:
        import tensorflow as tf
        gc.freeze()
        gc.enable()
    except ImportError:
        skip("needs TensorFlow: pip install tensorflow-cpu, and set DISTC_PYTHON to that python")
    return tf.compat.v1, tf


def write_graph(tf, path, train, init, loss, saver=None):
    """The default graph with its endpoints and a saver."""
    meta = tf.train.export_meta_graph(saver_def=(saver or tf.train.Saver()).saver_def)
    for key, node in (("train_op", train), ("init_op", init), ("losses", loss)):
        meta.collection_def[key].node_list.value[:] = [node.name]
    path.write_bytes(meta.SerializeToString(deterministic=True))


def read_by(*operations):
    """The names of the placeholders that TensorFlow's operations need: an array that nothing reads is an error."""
    seen, left = set(), list(operations)
    while left:
        operation = left.pop()
        if operation.name not in seen:
            seen.add(operation.name)
            left += [value.op for value in operation.inputs] + list(operation.control_inputs)
    return {operation.name for name in seen for operation in [operations[0].graph.get_operation_by_name(name)] if operation.type == "Placeholder"}


def load_script(name, path):
    """A script of the project as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Folder(tempfile.TemporaryDirectory):
    """A folder that is gone at the end of the test; as a pathlib.Path in a `with`."""

    def __init__(self):
        super().__init__(prefix="distc-test-")

    def __enter__(self):
        return pathlib.Path(super().__enter__())


def run(command, timeout=120, **keywords):
    """Runs to the end; never raises for an exit status. stdout and stderr as text; out = both."""
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", timeout=timeout, **keywords)
    done.out = done.stdout + done.stderr
    return done


def must(command, **keywords):
    done = run(command, **keywords)
    if done.returncode != 0:
        raise AssertionError(f"exit status {done.returncode} from: {' '.join(map(str, command))}\n{done.out}")
    return done


def expect(done, status, *texts):
    """What is not as promised of a run that has ended."""
    found = [f"exit status {done.returncode}, not {status}:\n{done.out}"] if done.returncode != status else []
    return found + [f"'{text}' is not in:\n{done.out}" for text in texts if text not in done.out]


def model_names():
    return sorted(p.parent.name for p in MODELS.glob("*/case.json"))


class Model:
    """One folder of test/models: a graph, what it is fed, and what TensorFlow computed."""

    def __init__(self, name):
        self.name = name
        self.folder = MODELS / name
        self.case = json.loads((self.folder / "case.json").read_text())
        self.graph = self.folder / "graph.meta"
        self.feeds = self.folder / "feeds.npz"
        self.checkpoint = self.folder / "init.ckpt"

    def compile_command(self, out, replicas=1, strategy="AllReduce", *more):
        batch = ["--batch", self.case["batch"]] if self.case["batch"] else []
        return [DISTC, "compile", self.graph, "--strategy", strategy, "--replicas", replicas, *batch, "-o", out, *more]

    def compile(self, out, replicas=1, strategy="AllReduce", *more):
        must(self.compile_command(out, replicas, strategy, *more))
        return out

    def run_command(self, executable, folder, restore=True, *more):
        """Trains the case's steps; the log, the checkpoints and the final variables go to `folder`."""
        start = ["--restore", self.checkpoint] if restore else []
        return [executable, "--data", self.feeds, "--steps", self.case["steps"], "--log-json", folder / "log.jsonl",
                "--export-npz", folder / "final.npz", *start, *more]

    def differences(self, folder, replicas=1):
        """What a run left in `folder` against TensorFlow's numbers: a list of sentences, empty where all agree."""
        found = []
        expect = np.load(self.folder / "expect.npz")
        loss = np.array(read_losses(folder / "log.jsonl"))
        want = expect["loss"]
        if self.case["loss"] is None:
            pass
        elif len(loss) != len(want):
            found.append(f"{len(loss)} steps logged, {len(want)} expected")
        else:
            off = np.max(np.abs(loss - want) / np.maximum(np.abs(want), 1e-12))
            if not off <= self.case["loss_rtol"]:
                found.append(f"loss off by {off:.1e} (allowed {self.case['loss_rtol']:.0e}): got {loss}, want {want}")
        final = np.load(folder / "final.npz")
        for key in expect.files:
            if key.startswith("var/"):
                found += self.variable_differences(key[len("var/"):], final, expect[key])
        return found

    def variable_differences(self, name, final, want):
        if name not in final:
            return [f"variable {name} is missing; there are {sorted(final)}"]
        got = final[name]
        if got.shape != want.shape or got.dtype != want.dtype:
            return [f"variable {name} is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"]
        found = []
        # Where the rows of a variable belong to one operation each, the row tells which.
        rows = self.case.get("rows", {}).get(name)
        for i, row in enumerate(rows or [None]):
            g, w = (got, want) if row is None else (got[i], want[i])
            off = np.linalg.norm(g.astype(float) - w) / max(np.linalg.norm(w.astype(float)), 1e-6)
            if not off <= self.case["vars_rtol"]:
                found.append(f"variable {name}{'' if row is None else f' (operation {row})'} off by {off:.1e} "
                             f"(allowed {self.case['vars_rtol']:.0e})")
        return found


def saved_steps(folder):
    """Steps of the checkpoints in a folder; what a kill left of one is none."""
    return {int(step) for path in folder.glob("ckpt-*.index") if (step := path.stem.removeprefix("ckpt-")).isdigit()}


def read_log(path):
    """The lines of --log-json."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_losses(path):
    """The losses of --log-json, in order; NaN where one is no number."""
    return [np.nan if line["loss"] is None else line["loss"] for line in read_log(path) if "loss" in line]


def trained(program, data, steps):
    """What an executable makes of the first steps: its losses, and the variables at the end by name."""
    log, final = program.with_suffix(".jsonl"), program.with_suffix(".npz")
    log.unlink(missing_ok=True)
    must([program, "--quiet", "--data", data, "--steps", steps, "--log-json", log, "--export-npz", final])
    with np.load(final) as variables:
        return read_losses(log), dict(variables)


def differences(got, want):
    """What is wrong with the losses and variables that `trained` gave: they agree with TensorFlow's to the rounding of a few steps in float32."""
    (losses, variables), (want_losses, want_variables) = got, want
    found = []
    if not np.allclose(losses, want_losses, rtol=2e-4, atol=1e-5):
        found.append(f"losses {losses}, not {want_losses}")
    for name, value in want_variables.items():
        if not np.allclose(variables[name], value, rtol=1e-3, atol=2e-4):
            found.append(f"variable {name} is\n{variables[name]}, not\n{value}")
    return found


def check_programs(check, make_program, count):
    """The command line of random programs: --count of them from --seed on, or --only one, which is printed. check(number, folder) gives what is wrong,
    or nothing, and the program; make_program(number) the program alone, and its `text` is lines. Does not return."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--only", type=int)
    arguments = parser.parse_args()
    failed = 0
    first = arguments.seed * 100000
    for number in range(first, first + arguments.count) if arguments.only is None else [arguments.only]:
        with Folder() as folder:
            try:
                wrong, program = check(number, folder)
            except Exception:
                wrong, program = traceback.format_exc(), make_program(number)
        if wrong or arguments.only is not None:
            print(f"program {number}:", *program.text, sep="\n  ")
        if wrong:
            failed += 1
            print(f"error: {wrong}", flush=True)
    print(f"{failed} programs failed")
    sys.exit(failed > 0)


def commit():
    """The last commit that changed more than documentation, or nothing where this is no repository."""
    try:
        return run(["git", "-C", ROOT, "log", "-1", "--format=%H", "--", ".", ":!docs", ":!*.md"]).stdout.strip()
    except OSError:
        return ""


class Checks:
    """Runs checks one after another, says how each went, and makes the exit status of it.

    Of a long table a run takes a share, which the commit draws: the same one whenever a commit is tested, another with the next commit. A script that
    is run with arguments takes all, and so do all scripts with DISTC_TEST_SHARE=1."""

    def __init__(self, share=1.0):
        """share: of the checks. Where what comes before a check takes long, draw from its table instead."""
        self.failed = 0
        self.left_out = 0
        self.share = share
        self.commit = None

    def takes(self, name, share):
        """Whether this run has what has this name, of a table of which it takes a share."""
        share = 1.0 if len(sys.argv) > 1 else max(share, float(os.environ.get("DISTC_TEST_SHARE", 0)))
        if share >= 1:
            return True
        if self.commit is None:
            self.commit = commit()
        taken = random.Random(f"{self.commit} {pathlib.Path(sys.argv[0]).name} {name}").random() < share
        self.left_out += not taken
        return taken

    def draw(self, names, share):
        return [name for name in names if self.takes(name, share)]

    def check(self, name, function, *arguments):
        if self.takes(name, self.share):
            self.run(name, function, arguments)

    def run(self, name, function, arguments):
        started = time.time()
        try:
            problems = function(*arguments) or []
        except (AssertionError, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            problems = [f"{type(error).__name__}: {error}"]
        print(f"{'FAILED' if problems else 'ok    '} {name} ({time.time() - started:.1f} s)", flush=True)
        for problem in problems:
            print("       ", str(problem).replace("\n", "\n         "), flush=True)
        self.failed += bool(problems)

    def exit(self):
        if self.left_out:
            print(f"{self.left_out} that this commit does not draw are left out; DISTC_TEST_SHARE=1 takes all")
        if self.failed:
            print(f"{self.failed} failed")
        sys.exit(1 if self.failed else 0)
