"""Models compiled for NVIDIA's GPUs, without one: the PTX has every kernel that the plan launches, ptxas takes it, the executable carries an image for each
chip, and no kernel spills much or takes more of a chip than there is (test/kernel_table.py).

  cuda_images.py [NAME…]
"""
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

from support import BIN, ROOT, Checks, Folder, Model, must, need_tools, skip

sys.path.insert(0, str(ROOT / "test"))
from kernel_table import CHIPS, add_launches, reported  # noqa: E402

NAMES = ["convnet-momentum", "embedding-adam", "functions", "init-stateful", "linreg-sgd", "linreg-sgd-ref", "mlp-adagrad", "mlp-adam", "mlp-clip", "mlp-dropout",
         "mlp-momentum", "mlp-momentum-ref", "mlp-rmsprop", "mlp-sgd-ref", "ops-activations", "ops-binary", "ops-integers", "ops-reductions",
         "ops-scans", "ops-special", "ops-unary"]
REPLICAS = 2


def toolkit():
    """The folder of the CUDA toolkit, where distc looks for it; none: nothing can be compiled for GPUs here."""
    ptxas = shutil.which("ptxas")
    for folder in (os.environ.get("CUDA_HOME"), ptxas and os.path.dirname(os.path.dirname(ptxas)), "/usr/local/cuda"):
        if folder and os.path.exists(os.path.join(folder, "nvvm/libdevice/libdevice.10.bc")):
            return folder
    return None


def find_ptxas():
    path = os.path.join(toolkit(), "bin", "ptxas")
    return path if os.path.exists(path) else shutil.which("ptxas")


def kernels_of(plan):
    """The kernels that the schedule of --plan or of a report launches: "[kernel_3, 8 blocks of 256 threads]"."""
    return set(re.findall(r"\[(\w+), [0-9x]+ blocks? of [0-9x]+ threads?\]", plan))


def entries_of(ptx):
    return set(re.findall(r"\.visible \.entry (\w+)\(", ptx))


def check_ptx(name):
    """What --emit=ptx prints, for the newest of several chips, and whether ptxas assembles it."""
    model = Model(name)
    with Folder() as folder:
        model.compile(folder / "kernels.ptx", REPLICAS, "AllReduce", "--target=cuda:sm_90,sm_80", "--emit=ptx")
        ptx = (folder / "kernels.ptx").read_text()
        found = [] if re.search(r"^\.target sm_90$", ptx, re.M) else ["the PTX is not sm_90's"]
        if not entries_of(ptx):
            found.append("the PTX has no kernels")
        if ptxas := find_ptxas():
            must([ptxas, "-arch=sm_90", "-o", folder / "kernels.cubin", folder / "kernels.ptx"])
        return found


def check_executable(name):
    """The kernels of the plan are those of the PTX; there is an image for each chip."""
    model = Model(name)
    with Folder() as folder:
        target = "--target=cuda:" + ",".join(CHIPS)
        executable = folder / "train"
        report = must(model.compile_command(executable, REPLICAS, "AllReduce", target, "--verbose")).out
        plan = must([executable, "--plan=full"]).stdout
        model.compile(folder / "kernels.ptx", REPLICAS, "AllReduce", target, "--emit=ptx")
        launched, compiled = kernels_of(plan), entries_of((folder / "kernels.ptx").read_text())
        found = [] if launched == compiled else [f"launched and not compiled: {launched - compiled}; compiled and not launched: {compiled - launched}"]
        images = re.findall(r"^  ((?:sm|compute)_\d+) ", plan, re.M)
        want = (list(CHIPS) if find_ptxas() else []) + [CHIPS[-1].replace("sm", "compute")]
        if images != want:
            found.append(f"images {images}, want {want}\n{plan}")
        kernels = reported(report)
        add_launches(kernels, plan)
        if find_ptxas() and {(kernel.chip, kernel.name) for kernel in kernels if kernel.threads} != {(chip, name) for chip in CHIPS for name in launched}:
            found.append(f"ptxas reports {len(kernels)} kernels, not {len(launched)} for each chip")
        return found + [fault for kernel in kernels for fault in kernel.faults()]


def main():
    need_tools()
    if not toolkit():
        skip("needs NVIDIA's libdevice: install the CUDA toolkit, and set CUDA_HOME to its folder")
    with_runtime = (BIN.parent / "lib" / "drt-cuda.link").exists()
    checks = Checks()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in sys.argv[1:] or NAMES:
            pool.submit(checks.check, f"{name}: PTX", check_ptx, name)
            if with_runtime:
                pool.submit(checks.check, f"{name}: executable", check_executable, name)
    if not with_runtime:
        print("executables are left out: the runtime was built without CUDA's headers")
    checks.exit()


if __name__ == "__main__":
    main()
