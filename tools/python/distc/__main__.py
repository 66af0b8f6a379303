"""python -m distc convert FILE STEP.mlir: StableHLO in another form (the portable artifact, text for people) as distc reads it."""
from __future__ import annotations

import argparse
import sys


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m distc", description="What of distc's package is no command of distc itself")
    commands = parser.add_subparsers(dest="command", required=True)
    convert = commands.add_parser("convert", help="write a module of StableHLO in the generic form that distc reads",
                                  description="FILE is a portable artifact (bytecode) or text of MLIR. The signature of a step, FILE.json, "
                                              "and its initial state, FILE.npz, stay what they are: lay them beside STEP.mlir.")
    convert.add_argument("file", metavar="FILE")
    convert.add_argument("output", metavar="STEP.mlir")
    arguments = parser.parse_args()
    try:
        from distc.jax import convert as run
    except ImportError as error:
        print(f"error: {error}; converting needs JAX: pip install 'jax[cpu]'", file=sys.stderr)
        return 1
    try:
        run(arguments.file, arguments.output)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
