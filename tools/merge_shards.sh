#!/usr/bin/env bash
# Joins the shards that there are: merge_shards.sh ATTEST OUT. Ends as attest merge does, so the job is red where a shard was.
set -uo pipefail
attest=$1 out=$2
folders=()
for history in "$out"/shard-*/history.sqlite; do [[ -f $history ]] && folders+=("$(dirname "$history")"); done
((${#folders[@]} > 0)) || { echo "merge: no shard in '$out' has a history" >&2; exit 3; }
"$attest" merge "${folders[@]}" --json "$out/merged.json" | tee "$out/merged.txt"
