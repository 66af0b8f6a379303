#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test; the last lines are ctest's summary.
#
#   tools/test.sh [CTEST OPTIONS…]      for example: tools/test.sh -R lit
#
#   DISTC_PRESET=debug       another CMake preset than `release`
#   DISTC_SANITIZE=address   the tests in the preset `asan` (address and undefined)
#   DISTC_SANITIZE=thread    the tests in the preset `tsan`
#   DISTC_JOBS=N             build and test N at a time (default: the machine's processors)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${DISTC_SANITIZE:-}" in
  "") preset=${DISTC_PRESET:-release} ;;
  address* | undefined* | asan) preset=asan ;;
  thread | tsan) preset=tsan ;;
  *)
    echo "error: DISTC_SANITIZE is '$DISTC_SANITIZE'; it can be 'address' or 'thread'" >&2
    exit 2
    ;;
esac
case $preset in
  release) build=build ;;
  *) build=build-$preset ;;
esac
jobs=${DISTC_JOBS:-$(nproc)}

tools/install_dependencies.sh
# CMake runs again by itself, from the build, when one of its files has changed.
[[ -f $build/build.ninja ]] || cmake --preset "$preset"
cmake --build "$build" -j "$jobs"
exec ctest --test-dir "$build" --output-on-failure -j "$jobs" "$@" </dev/null
