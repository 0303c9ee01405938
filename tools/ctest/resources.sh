#!/usr/bin/env bash
# The GPUs of this machine as CTest's resource specification:
#
#   tools/ctest/resources.sh > gpus.json
#   ctest --preset cuda --label-regex gpu --resource-spec-file gpus.json -j "$(nvidia-smi -L | wc -l)"
#
# One slot a GPU. CTest gives every test of label `gpu` one of its own, which tools/ctest/on_gpu.sh puts in CUDA_VISIBLE_DEVICES.
set -euo pipefail
command -v nvidia-smi > /dev/null || { echo "resources: no nvidia-smi in PATH" >&2; exit 3; }
indices=$(nvidia-smi --query-gpu=index --format=csv,noheader)
[[ -n $indices ]] || { echo "resources: nvidia-smi lists no GPU" >&2; exit 3; }
gpus=$(sed 's/.*/        { "id": "&", "slots": 1 }/; $!s/$/,/' <<< "$indices")
cat << END
{
  "version": { "major": 1, "minor": 0 },
  "local": [
    {
      "gpus": [
$gpus
      ]
    }
  ]
}
END
