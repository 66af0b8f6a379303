"""`--max-memory`: a step that computes values again gives the bits of one that keeps them, in less memory, and what does not fit is refused.

  max_memory.py [NAME…]
"""
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


if __name__ == "__main__":
    need_tools()
    checks = Checks()
    for name in sys.argv[1:] or MODELS:
        checks.check(f"{name} x1", check, name, 1)
        checks.check(f"{name} x2", check, name, 2)
    if HAS_EMULATED_GPU:
        checks.check("on an emulated device", check, "convnet-momentum", 1, "--target=cuda:emulated")
    checks.exit()
