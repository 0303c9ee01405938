#!/usr/bin/env bash
# Installs what is missing, builds and runs every test; needs no GPU. `./test.sh asan` does it under AddressSanitizer
# and UBSan. The last lines are CTest's summary.
set -euo pipefail
cd "$(dirname "$0")"
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
preset=${1:-cpu}

tools/setup.sh test
echo "==> Building preset $preset in build/$preset"
cmake --preset "$preset"
cmake --build --preset "$preset"
echo "==> Testing"
ctest --preset "$preset" --output-on-failure -j2
