#!/usr/bin/env bash
# From nothing to a trained model: installs what is missing, builds distc, compiles examples/digits for two replicas that
# average their gradients, trains it on handwritten digits, and shows the accuracy on images that were held back.
#
#   tools/quickstart.sh [EXECUTABLE'S OPTIONS…]       for example: tools/quickstart.sh --epochs 5
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build
out=$build/quickstart
digits=examples/digits
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "1. What is missing"
tools/install_dependencies.sh

say "2. Building distc"
[[ -f $build/build.ninja ]] || cmake --preset release
cmake --build $build --target distc

say "3. Compiling $digits/graph.meta for two replicas"
mkdir -p $out
compile=($build/bin/distc compile $digits/graph.meta --strategy AllReduce --replicas 2 --batch 60 --target cpu:native
  --fetch accuracy:0 -o $out/train)
echo "${compile[*]}"
"${compile[@]}"

say "4. Training"
rm -rf $out/checkpoints
train=($out/train --data $digits/train.npz --epochs 20 --shuffle --seed 1 --checkpoint-dir $out/checkpoints
  --log-json $out/log.jsonl "$@")
echo "${train[*]}"
"${train[@]}"
losses=$(sed -n 's/.*"loss": *\([-+.0-9e]*\).*/\1/p' $out/log.jsonl)
printf 'The loss fell from %.3g to %.3g.\n' "$(head -n 1 <<<"$losses")" "$(tail -n 1 <<<"$losses")"

say "5. Accuracy on the 300 images of $digits/test.npz, which were held back"
evaluate=($out/train --eval --fetch accuracy:0 --data $digits/test.npz --restore $out/checkpoints)
echo "${evaluate[*]}"
accuracy=$("${evaluate[@]}" | sed -n 's/^accuracy:0 = //p')
awk -v accuracy="$accuracy" 'BEGIN { printf "%.0f of the 300 images that were held back are recognized: an accuracy of %.1f %%.\n", 300 * accuracy, 100 * accuracy }'
