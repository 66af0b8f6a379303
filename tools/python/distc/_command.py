"""Where the command `distc` is. It needs nothing but Python, as what a wheel installs under that name is `main`."""
from __future__ import annotations

import os
import pathlib
import shutil
import sys


def find_distc() -> str:
    """The command: $DISTC, that of the wheel which this package came in, one on the PATH, or that of the repository which it lies in."""
    named = os.environ.get("DISTC")
    if named:
        return named
    here = pathlib.Path(__file__).resolve()
    carried = here.parent / "_native" / "bin" / "distc"
    if carried.exists():
        return str(carried)
    # A wheel's script of that name would only look here again.
    found = shutil.which("distc", path=os.pathsep.join(
        each for each in os.environ.get("PATH", "").split(os.pathsep) if each != os.path.dirname(sys.executable)))
    built = here.parents[3] / "build" / "bin" / "distc" if len(here.parents) > 3 else here
    if found is None and not built.exists():
        raise FileNotFoundError("there is no command 'distc'; install it, or name it with the environment variable DISTC")
    return found or str(built)


def main() -> None:
    try:
        distc = find_distc()
    except FileNotFoundError as error:
        sys.exit(f"error: {error}")
    os.execv(distc, [distc, *sys.argv[1:]])
