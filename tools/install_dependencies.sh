#!/usr/bin/env bash
# Installs the distribution's packages that distc is built and tested with, those that are missing only.
#
#   tools/install_dependencies.sh           installs; says nothing where nothing is missing
#   tools/install_dependencies.sh --list    prints the packages and installs nothing
#
# Needs root or sudo, and only where something is missing. Debian 12 has all of them.
set -euo pipefail

packages=(
  # the build
  cmake ninja-build clang-22 libclang-rt-22-dev g++ ccache
  # the compiler: LLVM and MLIR, their tools (mlir-tblgen, FileCheck, lit) and the linker, as a program and as a library
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools lld-22 liblld-22-dev libpolly-22-dev
  libzstd-dev
  # what executables are linked with, and what reads graphs, strategies and checkpoints
  protobuf-compiler libprotobuf-dev libgloo-dev libdnnl-dev libleveldb-dev libsnappy-dev libyaml-cpp-dev
  libeigen3-dev libcli11-dev libspdlog-dev nlohmann-json3-dev libsodium-dev libssl-dev zlib1g-dev
  # the tests
  catch2 python3 python3-numpy iproute2 openssl
)

if [[ "${1:-}" == --list ]]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

# One query for all of them: those that dpkg does not call installed are missing.
installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null |
  sed -n 's/^installed //p' || true)
missing=()
for package in "${packages[@]}"; do
  grep -qxF "$package" <<<"$installed" || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $EUID -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "error: these packages are missing, and installing them needs root or sudo: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null
