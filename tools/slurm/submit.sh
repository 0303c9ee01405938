#!/usr/bin/env bash
# A fuzz campaign as a Slurm job array, and a job that joins its shards whatever happened to them:
#
#   tools/slurm/submit.sh --out DIR --shards N --time T [--seed S] [--attest PROGRAM] [--sbatch OPTION]... [-- FLAGS...]
#
# Shard I is `attest nightly --steps fuzz --shard I/N` in DIR/shard-I with a time of its own, 30m or 8h; FLAGS go to it, such as
# --kernel sm80 --threads 8. A shard that is killed and requeued goes on where its history ends. DIR must be on a file
# system that all nodes see; --sbatch --gres=gpu:1 asks for a GPU a shard. Prints the ids of the array and of the merge,
# which writes DIR/merged.json and DIR/merged.txt.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out='' shards='' time='' seed=$(date -u +%Y%m%d) attest=attest options=() flags=()
usage() {
  echo "submit: $1; usage: submit.sh --out DIR --shards N --time T [--seed S] [--attest PROGRAM] [--sbatch OPTION]... [-- FLAGS...]" >&2
  exit 2
}
while (($# > 0)); do
  case $1 in
    --out | --shards | --time | --seed | --attest | --sbatch)
      (($# > 1)) || usage "$1 takes a value"
      if [[ $1 == --sbatch ]]; then options+=("$2"); else declare "${1#--}=$2"; fi
      shift 2
      ;;
    --) shift && flags=("$@") && break ;;
    *) usage "'$1' is no flag" ;;
  esac
done
[[ -n $out ]] || usage "--out is missing"
[[ $shards =~ ^[1-9][0-9]{0,4}$ ]] || usage "--shards '$shards' is no integer from 1 to 99999"
[[ $time =~ ^([1-9][0-9]{0,4})([smh])$ ]] || usage "--time '$time' is not like 90s, 30m or 8h"
declare -A seconds_of=([s]=1 [m]=60 [h]=3600)
minutes=$(((BASH_REMATCH[1] * seconds_of[${BASH_REMATCH[2]}] + 59) / 60))
[[ $seed =~ ^[0-9]{1,19}$ ]] || usage "--seed '$seed' is no integer from 0"
attest=$(command -v "$attest") || usage "no attest is at '$attest'"
mkdir -p "$out" && out=$(cd "$out" && pwd)

# Slurm's own limit lies beyond attest's: starting, shrinking and the reports are not in the latter.
array=$(sbatch --parsable --requeue --open-mode=append --job-name=attest-fuzz --array="0-$((shards - 1))" \
  --time=$((minutes + 10)) --output="$out/shard-%a.log" "${options[@]}" \
  "$here/shard.sh" "$attest" "$out" "$shards" "$seed" "$time" "${flags[@]}")
merge=$(sbatch --parsable --job-name=attest-merge --dependency="afterany:$array" --time=60 --output="$out/merge.log" \
  "$here/../merge_shards.sh" "$attest" "$out")
echo "$array $merge"
