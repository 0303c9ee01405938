#!/usr/bin/env bash
# libattest_sm80_shared.so with other tiles, so that versus_torch.py times both in one process:
#
#   bench/gpu/variant.sh BUILD OUTPUT.so EDIT [KERNEL...] > what ptxas says
#
# EDIT is a sed expression for gpu/plan's sm80_tiles.h. The host code that reads it is compiled again, and each
# gpu/sm80/KERNEL.cu; the rest is BUILD's, where attest_sm80_shared is built.
set -euo pipefail
if (($# < 3)); then
  echo "usage: bench/gpu/variant.sh BUILD OUTPUT.so EDIT [KERNEL...]" >&2
  exit 2
fi
build=$(realpath "$1") output=$(realpath "$2") edit=$3
shift 3
root=$(realpath "$(dirname "$0")/../..") header=include/attest/plan/sm80_tiles.h
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/include/attest/plan"
sed -E "$edit" "$root/gpu/plan/$header" > "$folder/$header"
if cmp -s "$root/gpu/plan/$header" "$folder/$header"; then
  echo "variant: the edit changes nothing" >&2
  exit 2
fi

objects=(gpu/sm80/CMakeFiles/attest_sm80_ablations.dir/sm80_ablation.cpp.o bench/gpu/CMakeFiles/attest_sm80_shared.dir/sm80_shared.cpp.o)
for source in params.cpp launch.cpp sm80_forward.cpp "${@/%/.cu}"; do objects+=("gpu/sm80/CMakeFiles/attest_sm80.dir/$source.o"); done
made=()
for object in "${objects[@]}"; do
  command=$(ninja -C "$build" -t commands "$object" | tail -1)
  new=$folder/$(basename "$object")
  made+=("$new")
  [[ $object == *.cu.o ]] && command=${command/ -x cu / -Xptxas -v -x cu }
  command=${command/ -I/ -I$folder/include -I}  # before the header's own folder
  (cd "$build" && bash -c "${command//$object/$new}")
done
link=$(ninja -C "$build" -t commands bench/gpu/libattest_sm80_shared.so | tail -1)
old=bench/gpu/CMakeFiles/attest_sm80_shared.dir/sm80_shared.cpp.o
link=${link/ $old / ${made[*]} }  # before the archives, of which nothing is then taken that is here
link=${link/-o bench\/gpu\/libattest_sm80_shared.so/-o $output}
(cd "$build" && bash -c "$link")
