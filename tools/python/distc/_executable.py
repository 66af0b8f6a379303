"""Compiling a step, and training with what came of it."""
from __future__ import annotations

import dataclasses
import html
import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any, Sequence

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
    fetches a step, by name: of those of one number. `--eval` of the executable gives others."""

    losses: np.ndarray
    state: Any
    fetches: dict[str, np.ndarray]


def _run(command: Sequence[str], error: type[Exception]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise error(done.stderr.strip() or f"'{command[0]}' ended with status {done.returncode}")
    return done.stdout


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

    def train(self, data: Any, steps: int, state: Any = None) -> Result:
        """Trains `steps` steps on `data`: arrays of examples, a tree as the step's batch or by name, in order, past their
        end from their beginning. From `state`, a tree as the step's; without it from the one that was exported."""
        with tempfile.TemporaryDirectory(prefix="distc-") as name:
            folder = pathlib.Path(name)
            np.savez(folder / "data.npz", **self.step.flatten(self.step.batch, self.step.batch_tree, data))
            command = [str(self.path), "--data", str(folder / "data.npz"), "--steps", str(steps), "--quiet",
                       "--log-json", str(folder / "log"), "--export-npz", str(folder / "state.npz")]
            for fetch in self.step.fetches:
                command += ["--fetch", f"{fetch}:0"]
            if state is not None:
                np.savez(folder / "initial.npz", **self.step.flatten(self.step.state, self.step.state_tree, state))
                _run([find_distc(), "checkpoint", "import", str(folder / "initial.npz"), str(folder / "ckpt-0")], RunError)
                command += ["--restore", str(folder / "ckpt-0")]
            _run(command, RunError)
            lines = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
            logged = [line for line in lines if "loss" in line and "step" in line]
            not_finite = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
            losses = [not_finite[line["loss_is"]] if line["loss"] is None else line["loss"] for line in logged]
            fetches = {fetch: np.array([line["fetches"][f"{fetch}:0"] for line in logged], float) for fetch in self.step.fetches}
            with np.load(folder / "state.npz") as arrays:
                return Result(np.array(losses), self.step.unflatten_state(arrays), fetches)


def compile(step: Step | str | os.PathLike[str], *, batch: int, strategy: str = "AllReduce", replicas: int = 1,
            processes: bool = False, servers: int = 0, output: str | os.PathLike[str] | None = None,
            flags: Sequence[str] = ()) -> Executable:
    """An executable that trains `step` (what `distc.jax.export` gave, or the path that it wrote) with `replicas`
    replicas, each on its share of `batch` examples. `processes`: each replica is one. `strategy` is a name with
    parameters ("PartitionedAR", "AllReduce:chunk_size=4"), or a file. `flags` are further ones of `distc compile`."""
    if not isinstance(step, Step):
        step = Step.read(os.fspath(step))
    folder = None
    if output is None:
        folder = tempfile.TemporaryDirectory(prefix="distc-")
        output = pathlib.Path(folder.name) / "train"
    command = [find_distc(), "compile", str(step.path), "--strategy", strategy, "--replicas", str(replicas),
               "--batch", str(batch), *flags]
    if processes:
        command.append("--one-process-per-replica")
    if servers:
        command += ["--ps", str(servers)]
    _run([*command, "-o", str(output)], CompileError)
    return Executable(pathlib.Path(output).resolve(), step, folder, command)
