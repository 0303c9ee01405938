#!/usr/bin/env python3
"""Compiles a grid of instantiations of a skeleton in this folder and writes what ptxas says of each as CSV.

    compile_grid.py sm80 > simulator/measured/registers_sm80.csv      some 10 minutes on one core
    compile_grid.py sm90a > simulator/measured/registers_sm90a.csv    some 10 minutes: wgmma and setmaxnreg

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
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import wgmma_header

here = os.path.dirname(os.path.abspath(__file__))


@dataclass
class Grid:
    arch: str
    source: str
    macros: dict  # column of the CSV -> macro of the skeleton
    rows: list


def mma_rows(max_smem):
    for headdim, tile_m, tile_n, warps, stages, q, ctas in itertools.product(
            (32, 64, 96, 128, 192, 256), (64, 128), (32, 64, 128), (4, 8), (1, 2), (0, 1), (1, 2, 3, 4)):
        if tile_m % (16 * warps) != 0 or headdim * 2 * (tile_m + 2 * stages * tile_n) > max_smem:
            continue
        # limits of 255 everywhere; of 168 and 128 (4 warps) and 128 (8 warps) where the least and the most is asked for
        if ctas > 1 and ((ctas == 2) == (warps == 4) or ctas * warps > 16 or (stages == 2) != (q == 1)):
            continue
        yield headdim, tile_m, tile_n, warps, stages, q, ctas


def wgmma_rows(max_smem):
    for headdim, tile_m, tile_n, stages, p, causal in itertools.product(
            (64, 96, 128, 192, 256), (64, 128, 192), (32, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256), (1, 2),
            (0, 1), (0, 1)):
        smem = 2 * (headdim * (tile_m + 2 * stages * tile_n) + (tile_m * tile_n if p else 0)) + 1024
        if smem > max_smem or (stages == 1 and smem + 4 * headdim * tile_n <= max_smem):  # one slot where two do not fit
            continue
        yield headdim, tile_m, tile_n, stages, p, causal


mma_macros = {"headdim": "HEADDIM", "tile_m": "TILE_M", "tile_n": "TILE_N", "num_warps": "WARPS", "stages": "STAGES",
              "q_in_registers": "QUERY_IN_REGISTERS", "min_ctas": "MIN_CTAS"}
wgmma_macros = {"headdim": "HEADDIM", "tile_m": "TILE_M", "tile_n": "TILE_N", "stages": "STAGES",
                "p_in_smem": "P_IN_SMEM", "causal": "CAUSAL"}
grids = {"sm80": Grid("sm_80", "sm80_skeleton.cu", mma_macros, mma_rows(163 << 10)),
         "sm90": Grid("sm_90", "sm80_skeleton.cu", mma_macros, mma_rows(227 << 10)),
         "sm90a": Grid("sm_90a", "sm90_skeleton.cu", wgmma_macros, wgmma_rows(227 << 10))}


def flags(grid):
    return ["-std=c++20", f"-arch={grid.arch}", "-cubin", "-Xptxas", "-v"]


def compile_row(nvcc, grid, row, generated):
    command = [nvcc, *flags(grid), "-o", "/dev/null", f"-I{generated}",
               *(f"-D{k}={v}" for k, v in zip(grid.macros.values(), row)), os.path.join(here, grid.source)]
    result = subprocess.run(command, capture_output=True, text=True)
    said = result.stderr
    # one wgmma's operands alone do not fit what the launch leaves a thread, whatever setmaxnreg gives later
    if refused := re.search(r"C7602.*register target of (\d+) or higher", said):
        return [*row, 0, 0, 0, 0, 0, int(refused.group(1))]
    result.check_returncode()
    registers = int(re.search(r"Used (\d+) registers", said).group(1))
    stack, stores, loads = (int(x) for x in re.search(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", said).groups())
    # ptxas says where it had to let each wgmma end before the next instruction
    return [*row, registers, stack, stores, loads, *([int("serialized" in said), 0] if grid.arch == "sm_90a" else [])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", choices=grids)
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    grid = grids[args.grid]
    rows = sorted(grid.rows, key=lambda row: hashlib.sha256(repr(row).encode()).digest())
    version = re.search(r"release [\d.]+, (V[\d.]+)", subprocess.check_output([args.nvcc, "--version"], text=True)).group(1)
    print(f"# nvcc {version} {' '.join(flags(grid))}; {datetime.date.today()}; {os.path.basename(__file__)} {args.grid}")
    said = ["registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes",
            *(["serialized", "refused_below"] if grid.arch == "sm_90a" else [])]
    print(",".join([*grid.macros, *said]), flush=True)
    with tempfile.TemporaryDirectory() as generated, ThreadPoolExecutor(args.jobs) as pool:
        with open(os.path.join(generated, "wgmma.cuh"), "w", encoding="utf-8") as out:
            out.write(wgmma_header.header())
        results = pool.map(lambda row: compile_row(args.nvcc, grid, row, generated), rows)
        for n, row in enumerate(results, 1):
            print(",".join(str(x) for x in row), flush=True)
            if n % 20 == 0:
                print(f"{n} of {len(rows)}", file=sys.stderr)


if __name__ == "__main__":
    main()
