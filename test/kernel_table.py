"""What each kernel of a model takes of a chip, and moves: registers, spills, shared memory and constants as ptxas reports them, how many blocks and threads
are launched, and bytes as the roofline counts them. No GPU is needed, but the toolkit's ptxas.

  kernel_table.py                            all models of test/models
  kernel_table.py NAME… --chips sm_90        some of them
  kernel_table.py --case FOLDER --batch 64   another graph (FOLDER/graph.meta)

Further flags of distc compile stand behind --.

What a chip does not launch, or what spills, is marked with *, and makes the exit status 1.
"""
import argparse
import json
import pathlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "end-to-end"))
from support import DISTC, Folder, Model, model_names, must  # noqa: E402

CHIPS = ("sm_80", "sm_90", "sm_100")
# ptxas itself spills a few bytes of a thread where that lets more blocks be on a multiprocessor (float32's normal numbers on sm_80). More is a schedule that
# holds too much.
MOST_SPILLED = 32
# Of all chips: a block's registers, static shared memory, a module's constants, a kernel's parameters and what else is in their bank.
MOST_REGISTERS, MOST_SHARED, MOST_CONSTANTS, MOST_PARAMETERS = 65536, 48 << 10, 64 << 10, 5 << 10


@dataclass
class Kernel:
    chip: str
    name: str
    registers: int = 0
    spilled: int = 0  # bytes, stores and loads
    stack: int = 0
    shared: int = 0
    constants: int = 0
    parameters: int = 0
    blocks: int = 0
    threads: int = 0
    moves: int = 0
    must_move: int = 0

    def faults(self):
        """What the chip does not launch, or what is slower than it need be."""
        found = []
        if self.spilled > MOST_SPILLED:
            found.append(f"{self.spilled} bytes are spilled")
        # A warp's registers are given out in units of 8 a thread.
        if -(-self.registers // 8) * 8 * self.threads > MOST_REGISTERS:
            found.append(f"{self.registers} registers in each of {self.threads} threads")
        for what, bytes_, most in (("shared memory", self.shared, MOST_SHARED), ("constants", self.constants, MOST_CONSTANTS),
                                   ("parameters", self.parameters, MOST_PARAMETERS)):
            if bytes_ > most:
                found.append(f"{bytes_} bytes of {what}, of {most}")
        return [f"{self.name} on {self.chip}: {fault}" for fault in found]


def reported(text):
    """The kernels of ptxas' report (distc compile --verbose)."""
    kernels = []
    constants = 0
    for line in text.splitlines():
        if match := re.search(r"gmem, (\d+) bytes cmem\[3\]", line):
            constants = int(match[1])
        elif match := re.search(r"Compiling entry function '(\w+)' for '(\w+)'", line):
            kernels.append(Kernel(match[2], match[1], constants=constants))
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            kernels[-1].stack, kernels[-1].spilled = int(match[1]), int(match[2]) + int(match[3])
        elif match := re.search(r"Used (\d+) registers", line):
            kernels[-1].registers = int(match[1])
            for key, pattern in (("shared", r"(\d+) bytes smem"), ("parameters", r"(\d+) bytes cmem\[0\]")):
                if found := re.search(pattern, line):
                    setattr(kernels[-1], key, int(found[1]))
    return kernels


def add_launches(kernels, plan):
    """Blocks and threads as the schedule of --plan=full has them."""
    launches = {}
    for name, blocks, threads in re.findall(r"\[(\w+), ([0-9x]+) blocks? of ([0-9x]+) threads?\]", plan):
        product = 1
        for extent in threads.split("x"):
            product *= int(extent)
        launches[name] = (blocks, product)
    for kernel in kernels:
        if kernel.name in launches:
            kernel.blocks, kernel.threads = launches[kernel.name]


def add_bytes(kernels, roofline):
    moved = {}
    for entry in roofline["chips"][0]["entries"]:
        for row in entry["operations"]:
            if row.get("kernel"):
                moved[row["kernel"]] = (row["moves"], row["must_move"])
    for kernel in kernels:
        kernel.moves, kernel.must_move = moved.get(kernel.name, (0, 0))


def table(command, folder, chips):
    """Of `distc compile …` up to its --target: the kernels of each chip."""
    done = must([*command, "-o", folder / "train", "--target=cuda:" + ",".join(chips), "--verbose"], timeout=600)
    kernels = reported(done.out)
    add_launches(kernels, must([folder / "train", "--plan=full"]).stdout)
    must([*command, "-o", folder / "roofline.json", "--target=cuda:" + chips[0], "--emit=roofline"], timeout=600)
    add_bytes(kernels, json.loads((folder / "roofline.json").read_text()))
    return kernels


def print_table(title, kernels):
    print(f"\n{title}\n{'kernel':<18}{'chip':<8}{'blocks':>10}{'threads':>8}{'regs':>6}{'spills':>8}{'stack':>7}{'shared':>8}{'const':>7}{'moves':>12}{'of must':>9}")
    for kernel in sorted(kernels, key=lambda kernel: (kernel.name.rsplit("_", 1)[0], int(kernel.name.rsplit("_", 1)[-1]) if kernel.name[-1].isdigit() else 0)):
        ratio = kernel.moves / kernel.must_move if kernel.must_move else 1
        print(f"{kernel.name:<18}{kernel.chip:<8}{kernel.blocks:>10}{kernel.threads:>8}{kernel.registers:>6}{kernel.spilled:>8}{kernel.stack:>7}"
              f"{kernel.shared:>8}{kernel.constants:>7}{kernel.moves:>12}{ratio:>9.2f}{' *' if kernel.faults() else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--chips", default=",".join(CHIPS))
    parser.add_argument("--case", type=pathlib.Path)
    parser.add_argument("--batch", type=int, default=0)
    argv, flags = sys.argv[1:], []
    if "--" in argv:
        argv, flags = argv[:argv.index("--")], argv[argv.index("--") + 1:]
    arguments = parser.parse_args(argv)
    chips = arguments.chips.split(",")

    def one(name):
        with Folder() as folder:
            if arguments.case:
                batch = ["--batch", arguments.batch] if arguments.batch else []
                command = [DISTC, "compile", arguments.case / "graph.meta", *batch, *flags]
            else:
                model = Model(name)
                command = [DISTC, "compile", model.graph, "--replicas", 2, *(["--batch", model.case["batch"]] if model.case["batch"] else []), *flags]
            return name, table(command, folder, chips)

    faults = []
    with ThreadPoolExecutor(2) as pool:
        for name, kernels in pool.map(one, [str(arguments.case)] if arguments.case else arguments.names or model_names()):
            print_table(name, kernels)
            faults += [f"{name}: {fault}" for kernel in kernels for fault in kernel.faults()]
    print(*faults, sep="\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
