#!/usr/bin/env python3
"""Writes the registers and stack bytes of gpu/sm80's forwards, as compiled, as CSV.

    gpu_sm80.py build/cpu/gpu/sm80/CMakeFiles/attest_sm80.dir > simulator/measured/registers_gpu_sm80.csv

Needs cuobjdump in PATH, and objects for every architecture that the file is to have.
"""
import datetime
import pathlib
import re
import subprocess
import sys

KERNEL = re.compile(r"forward_kernelI.*?5DtypeE(\d+)E.*?8Sm80TileE(\d+)E.*?8Sm80KindE(\d+)E")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rows = {}  # by arch, tile, kind: what each dtype takes
    for file in sorted(pathlib.Path(sys.argv[1]).glob("forward_d*.o")):
        dump = subprocess.run(["cuobjdump", "--dump-resource-usage", file], check=True, capture_output=True, text=True)
        arch = name = None
        for line in dump.stdout.splitlines():
            if found := re.match(r"arch = sm_(\d+)", line):
                arch = int(found[1])
            elif found := KERNEL.search(line):
                name = tuple(int(x) for x in found.groups()[1:])
            elif name and (found := re.search(r"REG:(\d+) STACK:(\d+)", line)):
                rows.setdefault((arch, *name), set()).add((int(found[1]), int(found[2])))
                name = None
    differ = [key for key, values in rows.items() if len(values) != 1]
    if differ or not rows:
        sys.exit(f"dtypes differ at {differ}" if differ else "no kernels found")
    release = re.search(r"V([\d.]+)", subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout)[1]
    print(f"# gpu/sm80's forwards as nvcc {release} compiled them, {datetime.date.today()}: bench/hardware/registers/gpu_sm80.py;")
    print("# both dtypes alike. tile and kind as in gpu/plan's sm80_tiles.h, by number.")
    print("arch,tile,kind,registers,stack_bytes")
    for key in sorted(rows):
        print(*key, *next(iter(rows[key])), sep=",")


if __name__ == "__main__":
    main()
