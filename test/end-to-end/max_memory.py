"""`--max-memory`: a step that computes values again gives the bits of one that keeps them, in less memory, and what does not fit is refused.

`--plan --data` says what a process takes; the kernel says what it took.

  max_memory.py [NAME…]
"""
import pathlib
import re
import subprocess
import sys

from support import HAS_EMULATED_GPU, Checks, Folder, Model, must, need_tools, read_losses

MODELS = ("convnet-momentum", "mlp-dropout", "mlp-adam")


def memory(model, folder, *flags):
    """Bytes of a task's variables, and of an arena."""
    must(model.compile_command(folder / "plan.html", *flags, "--emit=html"))
    page = (folder / "plan.html").read_text()
    return max(map(int, re.findall(r'"variable_bytes": *(\d+)', page))), int(re.search(r'"arena_bytes": *(\d+)', page)[1])


def losses(model, program, folder):
    folder.mkdir()
    must(model.run_command(program, folder))
    return read_losses(folder / "log.jsonl")


def check(name, replicas, *flags):
    model = Model(name)
    with Folder() as folder:
        kept, less = folder / "kept", folder / "less"
        must(model.compile_command(kept, replicas, "AllReduce", *flags))
        variables, arena = memory(model, folder, replicas, "AllReduce", *flags)
        wanted = losses(model, kept, folder / "all")
        for part in (0.9, 0.8, 0.7, 0.6):
            command_flags = (replicas, "AllReduce", *flags, f"--max-memory={int(variables + part * replicas * arena)}")
            command = model.compile_command(less, *command_flags)
            compiled = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            if compiled.returncode != 0:
                break
            takes = memory(model, folder, *command_flags)[1]
            if takes > part * arena:
                return [f"an arena has {takes} bytes, wanted were {part} of {arena}"]
            if losses(model, less, folder / f'less-{part}') != wanted:
                return [f"other losses with {part} of the memory"]
        command = model.compile_command(less, replicas, "AllReduce", *flags, f"--max-memory={variables + replicas}")
        refused = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if refused.returncode == 0 or "is too little: a task has" not in refused.stderr:
            return [f"no memory for the step, and exit status {refused.returncode}: {refused.stderr}"]
    return []


def is_what_the_plan_says(name, replicas):
    """Small programs take some megabytes more or less, for threads, and as their library's code is not all needed."""
    model = Model(name)
    with Folder() as folder:
        must(model.compile_command(folder / "train", replicas, "AllReduce"))
        command = [str(word) for word in model.run_command(folder / "train", folder)]
        plan = must([*command, "--plan"]).stdout
        number, unit = re.search(r"in all +([0-9.]+) ([kMG]?B) at most\n", plan).groups()
        said = float(number) * {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
        with subprocess.Popen([*command, "--steps", "300"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            took = 0
            while process.poll() is None:
                took = max(took, peak(process.pid))
        if process.returncode != 0:
            return [f"exit status {process.returncode}"]
        return [] if abs(took - said) <= 0.05 * took + 5e6 else [f"the plan says {said:.3g} bytes, the process took {took}"]


def peak(process):
    """The most bytes that it had at once; 0 where it is ending."""
    found = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{process}/status").read_text())
    return int(found[1]) * 1024 if found else 0


if __name__ == "__main__":
    need_tools()
    checks = Checks()
    for name in sys.argv[1:] or MODELS:
        checks.check(f"{name} x1", check, name, 1)
        checks.check(f"{name} x2", check, name, 2)
        checks.check(f"what the plan of {name} says", is_what_the_plan_says, name, 2)
    if HAS_EMULATED_GPU:
        checks.check("on an emulated device", check, "convnet-momentum", 1, "--target=cuda:emulated")
    checks.exit()
