#!/usr/bin/env bash
# Prints a Python that has TensorFlow, for DISTC_PYTHON; tests that need TensorFlow are skipped without.
#
#   export DISTC_PYTHON=$(tools/install_tensorflow.sh)
#
# $DISTC_PYTHON or python3 where these have it, else a virtual environment, build/tensorflow, made from the package index when it is
# not there yet. Exit status 1, and a line on stderr, where it cannot be installed (no network, no python3-venv).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

has_tensorflow() { "$1" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("tensorflow") is None)' 2>/dev/null; }

folder=$PWD/build/tensorflow
for python in "${DISTC_PYTHON:-}" python3 "$folder/bin/python"; do
  if [[ -n $python ]] && has_tensorflow "$python"; then
    command -v "$python"
    exit 0
  fi
done

fail() {
  echo "TensorFlow is not installed: $1; tests that need it are skipped" >&2
  rm -rf "$folder"
  exit 1
}
if ! python3 -c 'import ensurepip' 2>/dev/null; then
  [[ $EUID -eq 0 ]] || fail "python3-venv is missing, and installing it needs root"
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv; } </dev/null >&2 ||
    fail "python3-venv is missing and cannot be installed"
fi
mkdir -p build
rm -rf "$folder"
python3 -m venv "$folder" >&2 || fail "no virtual environment can be made in $folder"
timeout 600 "$folder/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 20 'tensorflow-cpu>=2.16' >&2 ||
  fail "pip could not install tensorflow-cpu"
has_tensorflow "$folder/bin/python" || fail "the package has no module tensorflow"
# Its optimizers, for the random training graphs; alone, as it asks for the package tensorflow, which is the same again.
version=$("$folder/bin/python" -c 'from importlib.metadata import version; print(".".join(version("tensorflow-cpu").split(".")[:2]))')
timeout 120 "$folder/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 20 --no-deps "tf-keras==$version.*" >&2 ||
  echo "tf-keras $version is not installed; tests that need it are skipped" >&2
echo "$folder/bin/python"
