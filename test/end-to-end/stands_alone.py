"""Executables need nothing but glibc: they train in a root that holds nothing else, not even /proc; and are as large as docs/executable.md says."""
import os
import pathlib
import re
import shutil

from support import BIN, DISTC, ROOT, Checks, Folder, Model, expect, is_sanitized, must, need_tools, run, skip

DIGITS = ROOT / "examples" / "digits"
LOADER = pathlib.Path("/lib64/ld-linux-x86-64.so.2")
GLIBC = ["libc.so.6", "libm.so.6"]


def make_root(folder):
    """A root with the dynamic linker and glibc; all else that tests need is put there."""
    root = folder / "root"
    libraries = [next(p for p in (pathlib.Path(d) / name for d in ("/lib/x86_64-linux-gnu", "/lib64", "/usr/lib")) if p.exists())
                 for name in GLIBC]
    for file in (LOADER, *libraries):
        there = root / file.relative_to("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, there)
    return root


def said_size(plan):
    """What the table "What it needs" says of such a plan's executable, in bytes."""
    row = next(line for line in (ROOT / "docs" / "executable.md").read_text().splitlines() if line.startswith(f"| {plan}"))
    return 1e6 * float(re.search(r"\| ([0-9.]+) MB \|", row)[1])


def in_root(root, *command):
    enter = ["chroot", root] if os.geteuid() == 0 else ["unshare", "--map-root-user", "chroot", root]
    return [*enter, *command]


def check_can_enter():
    if not LOADER.exists():
        skip("needs glibc of x86-64")
    if is_sanitized():
        skip("executables of a build with sanitizers need the machine's libraries")
    with Folder() as folder:
        root = make_root(folder)
        if run(in_root(root, "/lib64/ld-linux-x86-64.so.2", "--version")).returncode != 0:
            skip("needs to be root, or namespaces of users, to enter an empty root")


def stands_alone(graph, data, compiling, training, absent, plan):
    with Folder() as folder:
        root = make_root(folder)
        must([DISTC, "compile", graph, "-o", root / "train", *compiling])
        shutil.copy(data, root / "data.npz")
        found = expect(run(in_root(root, "/train", "--data", "/data.npz", "--checkpoint-dir", "/kept", *training)), 0, "done after")
        if not (root / "kept" / "checkpoint").exists():
            found.append("there is no checkpoint")
        carried = (root / "train").read_bytes()
        if not 0.8 < len(carried) / said_size(plan) < 1.15:
            found.append(f"it has {len(carried) / 1e6:.1f} MB, and docs/executable.md says {said_size(plan) / 1e6:.1f} MB of '{plan}'")
        return found + [f"it holds {name}, which its plan does not need" for name in absent if name.encode() in carried]


if __name__ == "__main__":
    need_tools()
    check_can_enter()
    checks = Checks()
    mlp, linreg, digits = Model("mlp-momentum"), Model("linreg-sgd"), DIGITS / "graph.meta"
    checks.check("digits: convolutions, replicas that are threads", stands_alone, digits, DIGITS / "train.npz",
                 ["--replicas", 2, "--batch", 60], ["--epochs", 1], ["libgloo.so.0"], "convolutions")
    checks.check("two tasks", stands_alone, mlp.graph, mlp.feeds,
                 ["--replicas", 2, "--batch", mlp.case["batch"], "--one-process-per-replica"], ["--steps", 3], ["libdnnl.so.2"], "several tasks")
    checks.check("small matmuls", stands_alone, mlp.graph, mlp.feeds, ["--replicas", 2, "--batch", mlp.case["batch"]], ["--steps", 3],
                 ["libgloo.so.0", "libdnnl.so.2", "libstdc++.so.6"], "one task")
    checks.check("no library at all", stands_alone, linreg.graph, linreg.feeds, ["--batch", linreg.case["batch"]], ["--steps", 3],
                 ["libgloo.so.0", "libdnnl.so.2", "libstdc++.so.6"], "one task")
    checks.exit()
