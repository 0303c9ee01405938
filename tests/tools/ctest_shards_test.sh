#!/usr/bin/env bash
# ctest_shards_test.sh ATTEST: tools/ctest on two GPUs that are none, with the CPU kernel: each shard gets one of its own,
# and the merge has every case once.
set -euo pipefail
attest=$1
source=$(cd "$(dirname "$0")/../../tools/ctest" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > nvidia-smi << 'END'
#!/bin/sh
printf '3\n5\n'
END
chmod +x nvidia-smi
PATH=$PWD:$PATH "$source/resources.sh" > gpus.json
python3 -c 'import json; assert [g["id"] for g in json.load(open("gpus.json"))["local"][0]["gpus"]] == ["3", "5"]'

cmake -G Ninja -S "$source" -B nights -DATTEST="$attest" -DSHARDS=2 -DTIME=2s -DSEED=7 \
  -DFLAGS='--kernel;cpu;--threads;1' > /dev/null
ctest --test-dir nights --resource-spec-file "$PWD/gpus.json" -j 2 -V > ctest.log || { cat ctest.log; exit 1; }
grep -q '3/3 Test .*merge .*Passed' ctest.log || { cat ctest.log; exit 1; }
python3 - << 'END'
import json
[campaign] = json.load(open("nights/merged.json"))["campaigns"]
assert campaign["prefix"] > 0 and campaign["twice"] == 0 and campaign["missing_shards"] == [], campaign
END
for group in 3 5; do
  CTEST_RESOURCE_GROUP_0_GPUS="id:$group,slots:1" "$source/on_gpu.sh" sh -c '[ "$CUDA_VISIBLE_DEVICES" = '$group' ]'
done
