#!/usr/bin/env bash
# on_gpu.sh COMMAND...: on the GPU that CTest has given this test, if it was started with --resource-spec-file.
if [[ ${CTEST_RESOURCE_GROUP_0_GPUS:-} =~ ^id:([^,]+),slots: ]]; then
  export CUDA_VISIBLE_DEVICES=${BASH_REMATCH[1]}
fi
exec "$@"
