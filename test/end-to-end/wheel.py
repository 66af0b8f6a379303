#!/usr/bin/env python3
"""The wheel (tools/make_wheel.py), installed alone in an environment of its own, compiles and trains: with the libraries that came in it."""
import importlib.util
import shutil
import subprocess
import sys

from support import BIN, ROOT, Checks, Folder, Model, expect, is_sanitized, must, need_tools, run, skip

MODEL, CONVOLUTIONS = Model("mlp-momentum"), Model("convnet-momentum")


def in_an_environment_of_its_own():
    with Folder() as folder:
        must([sys.executable, ROOT / "tools" / "make_wheel.py", "--build", BIN.parent, "--output", folder, "--level", "1"], timeout=900)
        (wheel,) = folder.glob("distc-*.whl")
        must([sys.executable, "-m", "venv", folder / "env"], timeout=300)
        python = folder / "env" / "bin" / "python"
        must([python, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", wheel], timeout=300)
        distc = folder / "env" / "bin" / "distc"
        # Nothing of the machine, neither a compiler nor a linker.
        nothing = {"PATH": str(folder / "env" / "bin")}
        found = []
        for model in (MODEL, CONVOLUTIONS):
            must([distc, "compile", model.graph, "--replicas", 2, "--batch", model.case["batch"], "-o", folder / "train"], env=nothing)
            found += expect(run([folder / "train", "--data", model.feeds, "--steps", 3]), 0, "done after 3 steps")
        (native,) = (folder / "env").glob("lib/python*/site-packages/distc/_native/bin/distc")
        loaded = subprocess.run(["ldd", native], stdout=subprocess.PIPE, text=True, check=True).stdout
        for line in loaded.splitlines():
            if "libprotobuf" in line and str(folder) not in line:
                found.append(f"protobuf is not the wheel's: {line}")
            if "libMLIR" in line or "libLLVM" in line:
                found.append(f"what distc has in it is loaded: {line}")
        return found


if __name__ == "__main__":
    need_tools()
    if not (BIN.parent / "pages" / "distc.1").exists():
        skip("the build has no pages; build all of it")
    if is_sanitized():
        skip("a build with sanitizers is not packed")
    if sys.version_info < (3, 11) or not shutil.which("ldd"):
        skip("needs Python 3.11 and ldd")
    if importlib.util.find_spec("ensurepip") is None:
        skip("needs python3-venv")
    checks = Checks()
    checks.check("an environment of its own", in_an_environment_of_its_own)
    checks.exit()
