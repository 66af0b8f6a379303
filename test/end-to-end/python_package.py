#!/usr/bin/env python3
"""The Python package (tools/python) against JAX: what its own tests say, where JAX, optax and pytest are there."""
import importlib.util
import os
import subprocess
import sys

from support import DISTC, ROOT, need_tools, skip

for module in ("jax", "optax", "pytest"):
    if importlib.util.find_spec(module) is None:
        skip(f"needs {module}: pip install 'jax[cpu]' optax pytest, and set DISTC_PYTHON to that python")
need_tools(DISTC)
package = ROOT / "tools" / "python"
environment = dict(os.environ, DISTC=str(DISTC), PYTHONPATH=f"{package}{os.pathsep}{package / 'tests'}")
# Each file in a process of its own: two frameworks' copies of LLVM do not bear each other.
failed = [path.name for path in sorted((package / "tests").glob("test_*.py"))
          if subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)], env=environment).returncode]
sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
