"""A few damaged inputs of each kind end in an error, never in a signal, a hang or too much memory (test/fuzz/fuzz.py makes more)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fuzz"))
import fuzz
from support import DISTC, TRANSLATE, need_tools

SEED = 7
COUNTS = {"graph": 60, "graph-bytes": 20, "graph-text": 20, "strategy": 20, "resources": 20, "checkpoint": 30, "data": 30, "records": 30, "ir": 30, "stage": 20,
          "stablehlo": 40, "page": 30, "task": 20}


def main():
    need_tools(DISTC, TRANSLATE, fuzz.OPT, fuzz.TRAIN)
    found = [problem for kind, count in COUNTS.items() for problem in fuzz.run([kind], SEED, 0, count, jobs=2, keep=None)]
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
