#!/usr/bin/env bash
# Checks every case of this bundle on this machine's GPU, against what TensorFlow computed; closes with lines like ctest's.
#
#   ./run.sh [--only REGEX] [--no-bench]
#
# Needs a GPU, its driver and CUDA's libraries (cuBLASLt, cuDNN, NCCL: found as executables find them, see their errors). Runs compute-sanitizer
# where it is found, and a benchmark beside PyTorch where a python3 with PyTorch and a GPU is found. Exit status 0 where nothing failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1

only=. bench=1
while [[ $# -gt 0 ]]; do
  case $1 in
    --only) only=${2:?--only needs a regular expression}; shift 2 ;;
    --no-bench) bench=0; shift ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done

export LC_ALL=C # numbers with points, for sort and awk
export LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

now() { echo "${EPOCHREALTIME/[.,]/}"; } # microseconds
seconds_since() { local us=$(($(now) - $1)); printf '%d.%02d' $((us / 1000000)) $((us % 1000000 / 10000)); }

longest=900 # seconds of a run: one that hangs is a failure

# ---- tests: each prints what it has to say, and gives 0, 77 (skipped; the last line says why) or another status ------------
# train FOLDER CASE STEPS COMMAND…: runs a case's executable, results to FOLDER
train() {
  local folder=$1 case=$2 steps=$3
  shift 3
  mkdir -p "$folder"
  timeout -k 10 "$longest" "$@" --data "cases/$case/feeds.npz" --steps "$steps" --log-json "$folder/log.jsonl" --export-npz "$folder/final.npz" --quiet
}

# compare FOLDER CASE
compare() {
  local loss_rtol vars_rtol
  read -r _ _ loss_rtol vars_rtol _ < <(grep "^$2 " cases.txt)
  ./compare_run "cases/$2/expect.npz" "$1/log.jsonl" "$1/final.npz" "$loss_rtol" "$vars_rtol"
}

test_checkpoint() { train "$work/$1/c" "$1" "$2" "cases/$1/train" --restore "cases/$1/init.ckpt" && compare "$work/$1/c" "$1"; }
test_initializers() { train "$work/$1/i" "$1" "$2" "cases/$1/train" && compare "$work/$1/i" "$1"; }

# Two processes, a rank each; with one GPU they share it. NCCL refuses two ranks of one host on one GPU, so each says that it is
# a host of its own, and they speak over sockets, whatever network the machine has.
test_two_ranks() {
  local folder=$work/$1/2 rank port=$((20000 + RANDOM % 20000)) status=0 restore=()
  [[ -e cases/$1/init.ckpt.index ]] && restore=(--restore "cases/$1/init.ckpt")
  mkdir -p "$folder"
  local pids=()
  for rank in 1 0; do
    NCCL_HOSTID=rank$rank NCCL_NET=Socket NCCL_SOCKET_IFNAME=lo train "$folder" "$1" "$2" "cases/$1/train-2" "${restore[@]}" \
      --share-devices --task "worker:$rank" --rendezvous "127.0.0.1:$port" >"$folder/rank$rank.out" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
  cat "$folder"/rank*.out
  [[ $status -eq 0 ]] && compare "$folder" "$1"
}

sanitizer() { command -v compute-sanitizer || ls "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" 2>/dev/null; }

test_sanitizer() { # CASE TOOL
  local program
  program=$(sanitizer) || { echo "compute-sanitizer is not found: not in PATH, nor in ${CUDA_HOME:-/usr/local/cuda}/bin"; return 77; }
  train "$work/$1/$2" "$1" 3 "$program" --tool "$2" --error-exitcode 9 "cases/$1/train"
}

# ---- which ----------------------------------------------------------------------------------------------------------------
tests=()
while read -r case steps _ _ restores own_init two; do
  [[ $restores -eq 1 ]] && tests+=("$case/checkpoint test_checkpoint $case $steps")
  [[ $own_init -eq 1 ]] && tests+=("$case/initializers test_initializers $case $steps")
  [[ $two -eq 1 ]] && tests+=("$case/two-ranks test_two_ranks $case $steps")
  for tool in memcheck initcheck racecheck synccheck; do
    tests+=("$case/$tool test_sanitizer $case $tool")
  done
done <cases.txt
selected=()
for test in "${tests[@]}"; do
  [[ ${test%% *} =~ $only ]] && selected+=("$test")
done

# ---- run them -------------------------------------------------------------------------------------------------------------
command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
failed=() skipped=() number=0 bench_failed=0 began=$(now)
for test in "${selected[@]}"; do
  read -r name function arguments <<<"$test"
  start=$(now)
  # shellcheck disable=SC2086
  "$function" $arguments >"$work/output" 2>&1
  status=$?
  case $status in
    0) verdict=Passed ;;
    77) verdict=Skipped; skipped+=("$name") ;;
    *) verdict="***Failed"; failed+=("$name") ;;
  esac
  printf '%3d/%d Test %4s: %s %s %9s %8s sec\n' $((++number)) ${#selected[@]} "#$number" "$name" \
    "$(printf '%*s' $((36 - ${#name})) '' | tr ' ' .)" "$verdict" "$(seconds_since "$start")"
  if [[ $verdict == "***Failed" ]]; then sed 's/^/      /' "$work/output"; else tail -n 1 "$work/output" | sed 's/^/      /'; fi
done

# ---- a small benchmark --------------------------------------------------------------------------------------------------------
mean() { awk '{ sum += $1 } END { if (NR) printf "%.4f", sum / NR }'; }

if [[ $bench -eq 1 ]]; then
  echo
  echo "784-2048-2048-10, momentum, batch 128, float32: milliseconds a step, in each of three rounds"
  echo "PyTorch: compile is torch.compile, graphs its CUDA graphs, whole a CUDA graph of the whole step"
  peers=()
  if python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    peers=(compile graphs whole)
  else
    echo "PyTorch with a GPU is not found: only distc is measured"
  fi
  for round in 1 2 3; do
    line="round $round: distc "
    if timeout -k 10 "$longest" bench/train --data bench/data.npz --steps 2000 --log-json "$work/bench.jsonl" --quiet >"$work/output" 2>&1; then
      line+=$(sed -n 's/.*"step_ms": *\([0-9.e+-]*\).*/\1/p' "$work/bench.jsonl" | tail -n +101 | mean)
    else
      line+="failed"
      [[ $round -eq 1 ]] && { bench_failed=1; sed 's/^/      /' "$work/output"; }
    fi
    for peer in "${peers[@]}"; do
      line+=", $peer $(timeout -k 10 "$longest" python3 bench/gpu_models.py classifier "$peer" fp32 2000 1 2>/dev/null | tail -n 1)"
    done
    echo "$line"
  done
  bench/train --plan | sed -n '/^Memory/,$p' | head -60
fi

# ---- closing lines ------------------------------------------------------------------------------------------------------------
total=${#selected[@]}
echo
printf '%d%% tests passed, %d tests failed out of %d\n' $((total ? 100 * (total - ${#failed[@]}) / total : 0)) ${#failed[@]} "$total"
printf '\nTotal Test time (real) = %s sec\n' "$(seconds_since "$began")"
[[ ${#skipped[@]} -gt 0 ]] && { printf '\nThe following tests did not run:\n'; printf '\t%s (Skipped)\n' "${skipped[@]}"; }
[[ ${#failed[@]} -gt 0 ]] && { printf '\nThe following tests FAILED:\n'; printf '\t%s (Failed)\n' "${failed[@]}"; }
[[ $bench_failed -eq 1 ]] && printf '\nThe benchmark failed.\n'
[[ ${#failed[@]} -eq 0 && $bench_failed -eq 0 ]]
