#!/usr/bin/env bash
# The suite against the right CPU kernel: how many of its cases are accused, by which property;
# docs/numerics.md quotes it.
#
#   bench/fuzz/false_alarms.sh [CASES] [SEED] [BUILD_DIR]     default 100000 0 build/cpu
#
# Exits with attest fuzz's own code: 0 where nothing was accused. Leaves false_alarms.json in the build directory.
set -euo pipefail
cases=${1:-100000} seed=${2:-0} build=${3:-build/cpu}
[[ $cases =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ ]] || { echo "usage: false_alarms.sh [CASES] [SEED] [BUILD_DIR]" >&2; exit 2; }
report=$build/false_alarms.json
echo "$(date -u +%F), $(nproc) CPUs of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1): attest fuzz --kernel cpu --cases $cases --seed $seed"
status=0
"$build/bin/attest" fuzz --kernel cpu --cases "$cases" --seed "$seed" --json "$report" || status=$?
echo "report: $report"
exit $status
