#!/usr/bin/env bash
# Installs what is missing, builds and runs every test; needs no GPU. `./test.sh asan` does it under AddressSanitizer
# and UBSan. The last lines are CTest's summary. `./test.sh --slurm` runs tools/slurm on a Slurm of this host alone instead.
set -euo pipefail
cd "$(dirname "$0")"
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
if [[ ${1:-} == --slurm ]]; then
  tools/setup.sh slurm
  cmake --preset cpu
  cmake --build --preset cpu --target attest
  exec tests/slurm/slurm_test.sh build/cpu/bin/attest
fi
preset=${1:-cpu}

tools/setup.sh test
echo "==> Building preset $preset in build/$preset"
cmake --preset "$preset"
cmake --build --preset "$preset"
echo "==> Testing"
ctest --preset "$preset" --output-on-failure -j2
