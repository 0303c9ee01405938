#!/usr/bin/env python3
"""Profiles attention calls of a kernel that is not ours, and writes the columns of simulator/measured/h200_third_party.csv.

    bench/hardware/third_party.py OUT.csv KERNEL CALLS.csv COMMAND...

COMMAND makes one call for each row of CALLS.csv (batch,nheads,nheads_k,seqlen,headdim,causal,layout), in its order.
"""

import csv
import pathlib
import sys

from run import profile

KERNEL_NAMES = {"fa2": "flash_fwd", "fa3": "device_kernel", "cudnn": "cudnn.*fprop"}
COLUMNS_OF = pathlib.Path(__file__).parents[2] / "simulator/measured/h200_third_party.csv"
CASE = ["batch", "nheads", "nheads_k", "seqlen", "headdim", "causal", "layout"]


def main() -> int:
    out, kernel, calls_file, command = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
    with open(COLUMNS_OF, newline="") as columns_file:
        metrics = next(csv.reader(columns_file))[6:]
    with open(calls_file, newline="") as f:
        calls = list(csv.DictReader(f))
    counters = profile(command, KERNEL_NAMES[kernel], metrics, out.with_suffix(".ncu.csv"))
    if len(counters) != len(calls):
        raise SystemExit(f"{len(calls)} calls, {len(counters)} profiled")
    with open(out, "w", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(["kernel", *CASE, *metrics])
        writer.writerows([kernel, *(call[c] for c in CASE), *row] for call, row in zip(calls, counters))
    return 0


if __name__ == "__main__":
    sys.exit(main())
