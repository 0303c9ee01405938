#!/usr/bin/env bash
# One shard of submit.sh's array: shard.sh ATTEST OUT SHARDS SEED TIME FLAGS...
# exec: Slurm's signals reach attest itself, which saves what it has at SIGTERM.
attest=$1 out=$2 shards=$3 seed=$4 time=$5
shift 5
exec "$attest" nightly --out "$out/shard-$SLURM_ARRAY_TASK_ID" --shard "$SLURM_ARRAY_TASK_ID/$shards" --seed "$seed" \
  --time "$time" --steps fuzz "$@"
