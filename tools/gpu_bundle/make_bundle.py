#!/usr/bin/env python3
"""Makes a folder that checks distc's GPU executables on a machine that has a GPU and CUDA's libraries, but neither distc nor LLVM.

  make_bundle.py OUT --distc build/bin/distc --compare build/bin/compare_run [--target cuda:sm_90] [--case FOLDER]…

In it: an executable a case (and one for two ranks), the case's data and what TensorFlow computed on it, the same for a
benchmark, the shared libraries that the executables are linked with, and run.sh, which says what it does. A case is a folder like those of
test/models: graph.meta, feeds.npz, expect.npz, case.json and, to start from, init.ckpt. --target cuda:emulated makes a bundle for
trying run.sh without a GPU.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ["linreg-sgd", "mlp-momentum", "mlp-sgd-ref", "mlp-adam", "convnet-momentum", "mlp-dropout"]
TWO_RANKS = {"mlp-momentum", "mlp-adam", "convnet-momentum", "lenet-adam"}
MOST_BYTES = 40 << 20
BENCH_BATCH = 128
# Those that every machine with CUDA's libraries has, and that must be of one piece with them.
SYSTEM = re.compile(r"(linux-vdso|ld-linux|libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s)[.-]")


def compile_case(arguments, graph, batch, out, *flags):
    subprocess.run([arguments.distc, "compile", graph, "--strategy", "AllReduce", *(["--batch", str(batch)] if batch else []),
                    "--target", arguments.target, "-o", out, *flags], check=True)


def add_case(arguments, folder):
    """Returns the case's line of cases.txt."""
    case = json.loads((folder / "case.json").read_text())
    out = arguments.out / "cases" / folder.name
    out.mkdir(parents=True)
    for file in [folder / "feeds.npz", folder / "expect.npz", *folder.glob("init.ckpt.*")]:
        shutil.copy(file, out)
    compile_case(arguments, folder / "graph.meta", case["batch"], out / "train", "--replicas", "1")
    two = folder.name in TWO_RANKS
    if two:
        compile_case(arguments, folder / "graph.meta", case["batch"], out / "train-2", "--replicas", "2", "--one-process-per-replica")
    restores = (folder / "init.ckpt.index").exists()
    # Own initializers give the numbers of the checkpoint where they are seeded.
    own_init = case.get("own_init", True)
    return " ".join(map(str, [folder.name, case["steps"], case["loss_rtol"], case.get("vars_rtol", 2e-3), int(restores), int(own_init),
                              int(two)]))


def add_benchmark(arguments):
    import numpy as np

    out = arguments.out / "bench"
    out.mkdir()
    models = ROOT / "tools" / "bench_models"
    compile_case(arguments, models / "mlp.meta", BENCH_BATCH, out / "train", "--replicas", "1")
    shutil.copy(models / "gpu_models.py", out)
    random = np.random.RandomState(0)
    rows = 8 * BENCH_BATCH
    np.savez_compressed(out / "data.npz", image=random.randint(0, 256, (rows, 784)).astype(np.float32) / 255,
                        label=random.randint(0, 10, rows).astype(np.int32))


def add_libraries(arguments):
    """What the executables are linked with, but for the C library."""
    folder = arguments.out / "lib"
    folder.mkdir()
    for program in [arguments.out / "compare_run", *arguments.out.glob("cases/*/train")]:
        listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        for name, path in re.findall(r"(\S+) => (/\S+)", listed):
            if not SYSTEM.match(name) and not (folder / name).exists():
                shutil.copy(path, folder / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--distc", type=pathlib.Path, default=ROOT / "build/bin/distc")
    parser.add_argument("--compare", type=pathlib.Path, default=ROOT / "build/bin/compare_run")
    parser.add_argument("--target", default="cuda:sm_90", help="(default %(default)s)")
    parser.add_argument("--case", type=pathlib.Path, action="append", help="a case's folder; default: " + ", ".join(CASES))
    arguments = parser.parse_args()

    final = arguments.out
    arguments.out = final.with_name(final.name + ".unfinished")
    shutil.rmtree(arguments.out, ignore_errors=True)
    arguments.out.mkdir(parents=True)
    shutil.copy(arguments.compare, arguments.out / "compare_run")
    shutil.copy(pathlib.Path(__file__).parent / "run.sh", arguments.out)
    cases = arguments.case or [ROOT / "test" / "models" / name for name in CASES]
    lines = [add_case(arguments, case) for case in cases]
    (arguments.out / "cases.txt").write_text("\n".join(lines) + "\n")
    add_benchmark(arguments)
    add_libraries(arguments)
    size = sum(file.stat().st_size for file in arguments.out.rglob("*") if file.is_file())
    if size > MOST_BYTES:
        sys.exit(f"error: the bundle would have {size >> 20} MiB, more than {MOST_BYTES >> 20}: leave cases out")
    shutil.rmtree(final, ignore_errors=True)
    arguments.out.rename(final)
    print(f"{final}: {len(lines)} cases, {size / (1 << 20):.1f} MiB; copy it to a machine with a GPU and start run.sh there")


if __name__ == "__main__":
    main()
