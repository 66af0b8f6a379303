#!/usr/bin/env bash
# Runs a script of the project with a Python that has numpy: $DISTC_PYTHON where it is set, else the first that has it.
set -euo pipefail
candidates=("${DISTC_PYTHON:-}" python3 /usr/bin/python3)
for python in "${candidates[@]}"; do
  [[ -n $python ]] || continue
  if "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("numpy") is None)' 2>/dev/null; then
    exec "$python" "$@"
  elif [[ $python == "${DISTC_PYTHON:-}" ]]; then
    echo "error: DISTC_PYTHON is '$python', which cannot import numpy; unset it, or install numpy there" >&2
    exit 1
  fi
done
echo "error: no python3 has numpy; tools/install_dependencies.sh installs one, or set DISTC_PYTHON" >&2
exit 1
