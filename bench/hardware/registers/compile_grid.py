#!/usr/bin/env python3
"""Compiles a grid of instantiations of a skeleton in this folder and writes what ptxas says of each as CSV.

    compile_grid.py sm80 > simulator/measured/registers_sm80.csv      some 10 minutes on one core

Rows whose shared memory no device of that architecture has are left out.
"""
import argparse
import datetime
import hashlib
import itertools
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

here = os.path.dirname(os.path.abspath(__file__))
columns = ["headdim", "tile_m", "tile_n", "num_warps", "stages", "q_in_registers", "min_ctas"]


def mma_grid(max_smem):
    for headdim, tile_m, tile_n, warps, stages, q, ctas in itertools.product(
            (32, 64, 96, 128, 192, 256), (64, 128), (32, 64, 128), (4, 8), (1, 2), (0, 1), (1, 2, 3, 4)):
        if tile_m % (16 * warps) != 0 or headdim * 2 * (tile_m + 2 * stages * tile_n) > max_smem:
            continue
        # limits of 255 everywhere; of 168 and 128 (4 warps) and 128 (8 warps) where the least and the most is asked for
        if ctas > 1 and ((ctas == 2) == (warps == 4) or ctas * warps > 16 or (stages == 2) != (q == 1)):
            continue
        yield headdim, tile_m, tile_n, warps, stages, q, ctas


grids = {"sm80": ("sm_80", mma_grid(163 << 10)), "sm90": ("sm_90", mma_grid(227 << 10))}


def compile_row(nvcc, arch, row):
    macros = dict(zip(["HEADDIM", "TILE_M", "TILE_N", "WARPS", "STAGES", "QUERY_IN_REGISTERS", "MIN_CTAS"], row))
    command = [nvcc, *flags(arch), "-o", "/dev/null", *(f"-D{k}={v}" for k, v in macros.items()),
               os.path.join(here, "sm80_skeleton.cu")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    registers = int(re.search(r"Used (\d+) registers", said).group(1))
    stack, stores, loads = (int(x) for x in re.search(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", said).groups())
    return [*row, registers, stack, stores, loads]


def flags(arch):
    return ["-std=c++20", f"-arch={arch}", "-cubin", "-Xptxas", "-v"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", choices=grids)
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    arch, grid = grids[args.grid]
    rows = sorted(grid, key=lambda row: hashlib.sha256(repr(row).encode()).digest())
    version = re.search(r"release [\d.]+, (V[\d.]+)", subprocess.check_output([args.nvcc, "--version"], text=True)).group(1)
    print(f"# nvcc {version} {' '.join(flags(arch))}; {datetime.date.today()}; {os.path.basename(__file__)} {args.grid}")
    print(",".join([*columns, "registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes"]), flush=True)
    with ThreadPoolExecutor(args.jobs) as pool:
        for n, row in enumerate(pool.map(lambda row: compile_row(args.nvcc, arch, row), rows), 1):
            print(",".join(str(x) for x in row), flush=True)
            if n % 20 == 0:
                print(f"{n} of {len(rows)}", file=sys.stderr)


if __name__ == "__main__":
    main()
