#!/usr/bin/env bash
# compute-sanitizer over a panel of shapes and masks, on a machine with a GPU:
#
#   tools/sanitize.sh ATTEST KERNEL... > report
#
# Every tool on every case of every kernel, each in a process of its own, 8 at a time. Tensors lie in allocations of
# exactly their size, so that memcheck sees a read past one, and initcheck one of a workspace that nothing wrote. Prints a
# line for each that is not clean, with the repro, and one line in all; exits 1 if there is any. With
# ATTEST_SANITIZE_SECONDS=N nothing begins after N seconds; what is left out gets a line too.
set -euo pipefail
if (($# < 2)); then
  echo "usage: tools/sanitize.sh ATTEST KERNEL..." >&2
  exit 2
fi
attest=$1
shift
command -v compute-sanitizer > /dev/null || { echo "sanitize: no compute-sanitizer in PATH" >&2; exit 3; }
export ATTEST_DEVICE_MEMORY=exact
export deadline=$((EPOCHSECONDS + ${ATTEST_SANITIZE_SECONDS:-1000000}))

panel=(
  "--seqlen-q 129 --seqlen-k 257 --headdim 64 --nheads 2"
  "--seqlen-q 200 --seqlen-k 300 --headdim 128 --causal --nheads 4 --nheads-k 2 --dtype fp16"
  "--seqlen-q 64 --seqlen-k 190 --headdim 96 --causal=top-left --batch 2"
  "--seqlen-q 150 --seqlen-k 150 --headdim 72 --nheads 3"
  "--seqlen-q 70 --seqlen-k 150 --headdim 168 --nheads 2"
  "--seqlen-q 1 --seqlen-k 1000 --headdim 128 --nheads 8 --nheads-k 1"
  "--seqlen-q 5 --seqlen-k 700 --headdim 64 --num-splits 4 --causal"
  "--seqlen-q 5 --seqlen-k 700 --headdim 64 --nheads 8 --nheads-k 2 --num-splits 4 --causal"
  "--varlen-q 1,9,0,4 --varlen-k 70,65,5,300 --nheads 6 --nheads-k 2 --headdim 128 --causal"
  "--seqlen-q 3 --seqlen-k 500 --headdim 128 --batch 2 --nheads 4 --nheads-k 1 --page-size 32 --num-splits 3 --causal"
  "--seqlen-q 150 --seqlen-k 150 --headdim 192 --headdim-v 128 --causal"
  "--seqlen-q 130 --seqlen-k 140 --headdim 256 --window 64,16"
  "--seqlen-q 70 --seqlen-k 90 --headdim 40 --layout bhsd,row_gap=3,seq_gap=1 --base-offset 1"
  "--seqlen-q 70 --seqlen-k 90 --headdim 33 --headdim-v 17 --prefix 20 --causal"
  "--varlen-q 3,65,0,20 --varlen-k 70,65,5,130 --nheads 2 --headdim 64 --causal"
  "--seqlen-q 130 --seqlen-k 200 --headdim 64 --seqused-k 199,0,64 --batch 3 --page-size 16"
  "--seqlen-q 100 --seqlen-k 180 --headdim 64 --softcap 30 --alibi --sink --bias bhqk --documents 90,90"
)

one() {  # TOOL KERNEL CASE
  local output status=0
  ((EPOCHSECONDS < deadline)) || { echo "left $2 $3 $4"; return; }
  # shellcheck disable=SC2086
  output=$(compute-sanitizer --tool "$2" --error-exitcode 99 "$1" check $4 --kernel "$3" --property reference --in-process 2>&1) || status=$?
  if ((status == 77)); then
    echo "refused $2 $3 $4"
  elif ((status == 0)) && grep -qE 'ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards' <<< "$output"; then
    echo "clean $2 $3 $4"
  else
    echo "FAILED (exit $status) ATTEST_DEVICE_MEMORY=exact compute-sanitizer --tool $2 $1 check $4 --kernel $3 --property reference --in-process"
    grep -E '^=========' <<< "$output" | head -12
  fi
}
export -f one

lines=$(for tool in memcheck racecheck initcheck synccheck; do
  for kernel in "$@"; do
    for case in "${panel[@]}"; do printf '%s\0%s\0%s\0%s\0' "$attest" "$tool" "$kernel" "$case"; done
  done
done | xargs -0 -n 4 -P 8 bash -c 'one "$@"' _)
grep -v '^clean\|^refused' <<< "$lines" || true
clean=$(grep -c '^clean' <<< "$lines" || true) refused=$(grep -c '^refused' <<< "$lines" || true)
failed=$(grep -c '^FAILED' <<< "$lines" || true) left=$(grep -c '^left' <<< "$lines" || true)
echo "compute-sanitizer: $clean clean, $failed not, $refused refused by the kernel, $left left out for time, of ${#panel[@]} cases x 4 tools x $# kernels"
((failed == 0 && clean > 0))
