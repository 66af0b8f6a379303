"""Compiling a step, and training with what came of it."""
from __future__ import annotations

import dataclasses
import html
import itertools
import json
import os
import pathlib
import select
import signal
import subprocess
import tempfile
import time
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from distc._command import find_distc
from distc._signature import Step


class CompileError(Exception):
    """What `distc compile` said."""


class RunError(Exception):
    """What the executable said."""


@dataclasses.dataclass
class Result:
    """What a training gave: a loss a step, the state behind the last one as a tree of numpy arrays, and values of
    fetches a step, by name: of those of one number. `Executable.evaluate` gives others."""

    losses: np.ndarray
    state: Any
    fetches: dict[str, np.ndarray]


@dataclasses.dataclass
class StepRecord:
    """What a step gave, for who looks on: its number from 0, loss, fetches of one number, and how long it took."""

    step: int
    loss: float
    fetches: dict[str, float]
    milliseconds: float


_OWN_FLAGS = ("--data", "--steps", "--log-json", "--export-npz", "--restore")
# What a run that an exception ends may take for its last step.
_MOST_SECONDS_TO_END = 10

# Called behind each step; what is true ends the training there.
OnStep = Callable[[StepRecord], Any]


def _run(command: Sequence[str], error: type[Exception]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise error(done.stderr.strip() or f"'{command[0]}' ended with status {done.returncode}")
    return done.stdout


def _read_record(line: str, fetches: Sequence[str]) -> StepRecord | None:
    """What a line of the log says of a step; None of one that says something else."""
    read = json.loads(line)
    if "step" not in read or "loss" not in read:
        return None
    loss = read["loss"] if read["loss"] is not None else {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}[read["loss_is"]]
    values = {fetch: read["fetches"][f"{fetch}:0"] for fetch in fetches}
    return StepRecord(read["step"], loss, {name: np.nan if value is None else value for name, value in values.items()},
                      read["step_ms"])


def _read_pipe(pipe: int, process: subprocess.Popen[str]) -> Iterator[str]:
    """Lines as they come, until the process that writes them has ended."""
    rest = b""
    while True:
        ended = process.poll() is not None
        # Of a pipe that nobody has opened yet, and of one that all have closed, nothing comes.
        ready = select.select([pipe], [], [], 0 if ended else 0.05)[0]
        read = os.read(pipe, 1 << 16) if ready else b""
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            yield line.decode()
        if not read:
            if ended:
                return
            if ready:
                time.sleep(0.05)


class Executable:
    """A training program. The file at `path` stands alone; one that this object made goes with it."""

    def __init__(self, path: pathlib.Path, step: Step, folder: tempfile.TemporaryDirectory | None = None,
                 compiled: Sequence[str] = ()):
        self.path = path
        self.step = step
        self._folder = folder
        self._compiled = list(compiled)
        self._page: str | None = None

    def plan(self) -> str:
        """What it carries, as text: tasks, variables, buckets, memory."""
        return _run([str(self.path), "--plan"], RunError)

    def plan_page(self, *timelines: str | os.PathLike[str]) -> str:
        """The plan as one HTML page for a browser: tasks, variables, the schedule, memory, messages. `timelines`: files
        that `--timeline` of the executable wrote, whose times are shown beside the estimates."""
        if not self._compiled:
            raise CompileError("only an executable that distc.compile gave knows what it was compiled of")
        measured = [f"--timeline={os.fspath(timeline)}" for timeline in timelines]
        return _run([*self._compiled, "--emit=html", "-o", "-", *measured], CompileError)

    def _repr_html_(self) -> str | None:
        """What a notebook shows: the page of the plan, in a frame of its own."""
        if not self._compiled:
            return None
        if self._page is None:
            self._page = self.plan_page()
        return (f'<iframe sandbox="allow-scripts" title="Plan" srcdoc="{html.escape(self._page)}" '
                'style="width: 100%; height: 720px; border: 1px solid #8884; border-radius: 6px"></iframe>')

    def train(self, data: Any, steps: int, state: Any = None, *, on_step: OnStep | None = None,
              flags: Sequence[str] = ()) -> Result:
        """Trains `steps` steps on `data`: arrays of examples, a tree as the step's batch or by name, in order, past their
        end from their beginning; an iterator of such trees, a batch each, of which `steps` are taken; or the path of a
        file that executables read. From `state`, a tree as the step's; without it from the one that was exported.
        `on_step` is called with each step's record, up to a second behind it; where it gives what is true (or raises an
        exception), the training ends, and the result is that of the steps until then. `flags` are further ones of the
        executable (docs/executable.md)."""
        own = [*_OWN_FLAGS, *(["--checkpoint-dir"] if on_step else [])]
        if taken := [flag for flag in flags if flag.partition("=")[0] in own]:
            raise ValueError(f"'{taken[0]}' is a flag that train gives itself")
        if on_step is not None and not callable(on_step):
            raise TypeError(f"on_step is called with each step's record, but it is {on_step!r}")
        with tempfile.TemporaryDirectory(prefix="distc-") as name:
            folder = pathlib.Path(name)
            log, last = folder / "log", folder / "state.npz"
            command = [*self._command(folder, data, state, steps), "--steps", str(steps), "--quiet", "--log-json", str(log),
                       "--export-npz", str(last), *flags]
            for fetch in self.step.fetches:
                command += ["--fetch", f"{fetch}:0"]
            if on_step is None:
                _run(command, RunError)
                read = (_read_record(line, self.step.fetches) for line in log.read_text().splitlines())
                records = [record for record in read if record]
            else:
                records, ended = self._watch(command, log, folder / "last", on_step)
                if ended:
                    newest = max((folder / "last").glob("ckpt-*.index"), key=lambda index: int(index.stem.removeprefix("ckpt-")))
                    _run([find_distc(), "checkpoint", "export", str(newest.with_suffix("")), str(last)], RunError)
            fetches = {fetch: np.array([record.fetches[fetch] for record in records], float) for fetch in self.step.fetches}
            with np.load(last) as arrays:
                return Result(np.array([record.loss for record in records]), self.step.unflatten_state(arrays), fetches)

    def evaluate(self, data: Any, state: Any = None) -> dict[str, np.ndarray]:
        """What the loss and the step's fetches are over all of `data`, by name, with the variables of `state` (a tree as
        the step's; without it the one that was exported), which stay as they are: numbers are the mean of what batches
        give, each as heavy as it has examples; what has a row for each example has those of all."""
        with tempfile.TemporaryDirectory(prefix="distc-") as name:
            folder = pathlib.Path(name)
            _run([*self._command(folder, data, state), "--eval", "--export-npz", str(folder / "values.npz")], RunError)
            with np.load(folder / "values.npz") as arrays:
                values = {fetch.removesuffix(":0"): arrays[fetch] for fetch in arrays.files}
        return {"loss": values.pop(self.step.loss), **values} if self.step.loss in values else values

    def timeline(self, data: Any, steps: int = 10, state: Any = None,
                 path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """When each kernel, copy and collective ran in so many steps of every task, as events of Chrome's trace format,
        all on one clock ("otherData" says to within what); written to `path` too, a file for Perfetto, chrome://tracing
        and `plan_page`."""
        with tempfile.TemporaryDirectory(prefix="distc-") as name:
            folder = pathlib.Path(name)
            _run([*self._command(folder, data, state, steps), "--steps", str(steps), "--quiet", "--timeline",
                  str(folder / "timeline.json")], RunError)
            text = (folder / "timeline.json").read_text()
        if path is not None:
            pathlib.Path(path).write_text(text)
        return json.loads(text)

    def _command(self, folder: pathlib.Path, data: Any, state: Any, steps: int = 0) -> list[str]:
        """The executable, what it reads, and where it begins; files that are made lie in the folder."""
        if isinstance(data, (str, os.PathLike)):
            file = os.fspath(data)
        else:
            file = str(folder / "data.npz")
            np.savez(file, **self._read(data, steps))
        command = [str(self.path), "--data", file]
        state = self.step.initial if state is None else state
        if state is not None:
            np.savez(folder / "initial.npz", **self.step.flatten(self.step.state, self.step.state_tree, state))
            _run([find_distc(), "checkpoint", "import", str(folder / "initial.npz"), str(folder / "ckpt-0")], RunError)
            command += ["--restore", str(folder / "ckpt-0")]
        return command

    def _read(self, data: Any, steps: int) -> Mapping[str, np.ndarray]:
        if not hasattr(data, "__next__"):
            return self.step.flatten(self.step.batch, self.step.batch_tree, data)
        batches = [self.step.flatten(self.step.batch, self.step.batch_tree, batch)
                   for batch in itertools.islice(data, steps or None)]
        if len(batches) < max(steps, 1):
            raise ValueError(f"the iterator gives {len(batches)} batches, but {max(steps, 1)} are needed")
        if len(sizes := {len(array) for batch in batches for array in batch.values()}) > 1:
            raise ValueError(f"the iterator gives batches of {' and '.join(map(str, sorted(sizes)))} examples; give it equal ones")
        return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}

    def _watch(self, command: Sequence[str], log: pathlib.Path, last: pathlib.Path,
               on_step: OnStep) -> tuple[list[StepRecord], bool]:
        """The records of a run that is looked on at, and whether that has ended it: then its state is the checkpoint
        in the folder `last`."""
        os.mkfifo(log)
        pipe = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
        records: list[StepRecord] = []
        ends = False
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen([*command, "--checkpoint-dir", str(last)], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=said, text=True)
            try:
                for line in _read_pipe(pipe, process):
                    record = _read_record(line, self.step.fetches)
                    if record:
                        records.append(record)
                        if not ends and on_step(record):
                            ends = True
                            process.terminate()
            finally:
                # Nobody reads any more, where an exception came: what writes to a full pipe would not end.
                os.close(pipe)
                process.terminate()
                try:
                    process.wait(_MOST_SECONDS_TO_END)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            if process.returncode == 0 or (ends and process.returncode == 128 + signal.SIGTERM):
                return records, process.returncode != 0
            said.seek(0)
            raise RunError(said.read().strip() or f"'{command[0]}' ended with status {process.returncode}")


def compile(step: Step | str | os.PathLike[str], *, batch: int, strategy: str = "AllReduce", replicas: int = 1,
            processes: bool = False, servers: int = 0, output: str | os.PathLike[str] | None = None,
            flags: Sequence[str] = ()) -> Executable:
    """An executable that trains `step` (what `distc.jax.export` or another framework's gave, or the path that it wrote) with `replicas`
    replicas, each on its share of `batch` examples. `processes`: each replica is one. `strategy` is a name with
    parameters ("PartitionedAR", "AllReduce:chunk_size=4"), or a file. `flags` are further ones of `distc compile`."""
    if not isinstance(step, Step):
        step = Step.read(os.fspath(step))
    folder = None
    if output is None:
        folder = tempfile.TemporaryDirectory(prefix="distc-")
        output = pathlib.Path(folder.name) / "train"
    command = [find_distc(), "compile", str(step.path), "--strategy", strategy, "--replicas", str(replicas),
               "--batch", str(batch), *step.flags, *flags]
    if processes:
        command.append("--one-process-per-replica")
    if servers:
        command += ["--ps", str(servers)]
    _run([*command, "-o", str(output)], CompileError)
    return Executable(pathlib.Path(output).resolve(), step, folder, command)
