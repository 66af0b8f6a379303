"""Executables need nothing but glibc: they train in a root that holds nothing else, not even /proc."""
import os
import pathlib
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


def stands_alone(graph, data, compiling, training, absent):
    with Folder() as folder:
        root = make_root(folder)
        must([DISTC, "compile", graph, "-o", root / "train", *compiling])
        shutil.copy(data, root / "data.npz")
        found = expect(run(in_root(root, "/train", "--data", "/data.npz", "--checkpoint-dir", "/kept", *training)), 0, "done after")
        if not (root / "kept" / "checkpoint").exists():
            found.append("there is no checkpoint")
        carried = (root / "train").read_bytes()
        return found + [f"it holds {name}, which its plan does not need" for name in absent if name.encode() in carried]


if __name__ == "__main__":
    need_tools()
    check_can_enter()
    checks = Checks()
    mlp, linreg, digits = Model("mlp-momentum"), Model("linreg-sgd"), DIGITS / "graph.meta"
    checks.check("digits: convolutions, replicas that are threads", stands_alone, digits, DIGITS / "train.npz",
                 ["--replicas", 2, "--batch", 60], ["--epochs", 1], ["libgloo.so.0"])
    checks.check("two tasks", stands_alone, mlp.graph, mlp.feeds,
                 ["--replicas", 2, "--batch", mlp.case["batch"], "--one-process-per-replica"], ["--steps", 3], ["libdnnl.so.2"])
    checks.check("small matmuls", stands_alone, mlp.graph, mlp.feeds, ["--replicas", 2, "--batch", mlp.case["batch"]], ["--steps", 3],
                 ["libgloo.so.0", "libdnnl.so.2", "libstdc++.so.6"])
    checks.check("no library at all", stands_alone, linreg.graph, linreg.feeds, ["--batch", linreg.case["batch"]], ["--steps", 3],
                 ["libgloo.so.0", "libdnnl.so.2", "libstdc++.so.6"])
    checks.exit()
