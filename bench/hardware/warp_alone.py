#!/usr/bin/env python3
"""What a key tile takes a warp of gpu/sm80's kernels that has its scheduler to itself, off their machine code for
Hopper.

    cuobjdump -arch sm_90a -sass build/cuda/gpu/sm80/libattest_sm80.a | bench/hardware/warp_alone.py

One line a kernel and phase of a turn of its loop over whole key tiles that copies, from one barrier to the next: a
kernel with one slot for K and one for V copies V at the first and the next K at the second, one with two slots copies
both at its one. `cycles` is what a phase takes where its copies have landed, `copied` when they are issued, on average,
from the phase's begin; `fragments` and `copies` how many instructions load the one and issue the other. The warp issues in order: an instruction stalls for as long as its control word says and waits
for the scoreboards that it names (LATENCIES). A product holds the scheduler for HELD cycles (`beside_mma`), beside
which a fragment of the next one is loaded and copies go on (docs/results/h100.md, "A CTA alone"). Not in it: other warps; O rescaled, which is seldom; ragged rows.
"""

import re
import sys

import copy_paths
import kernel_paths

# An m16n8k16 at mma_sync_fma_per_clock_16bit, a copy (`in_step`), an exponential (exp_per_clock); of four wavefronts
# the last is there three cycles after the first (smem_latency_cycles).
HELD, COPY, EXP = 2048 / (1359 / 4), 6.0, 8.0
LATENCIES = {**copy_paths.LATENCIES, "LDSM": 32, "LDS": 29, "LDL": 29, "SHFL": 29}
BESIDE = ("LDSM", "LDGSTS")


def turn_of(kernel: kernel_paths.Kernel) -> list[int]:
    """From a barrier to the one before it in the next turn: of whole tiles, all of whose copies are made."""
    way = kernel.path(*kernel.whole, ["LDGSTS"] * kernel.count("LDGSTS", *kernel.whole) + ["HMMA"])
    first = next(n for n, i in enumerate(way) if copy_paths.operation(kernel.code[i][1]) == "BAR")
    return way[first:] + way[:first]


def phases(code: list[copy_paths.Instruction], turn: list[int]) -> list[tuple[float, float, int, int]]:
    """Of each, in a turn behind others: its cycles, when its copies are issued on average, loads of fragments, copies."""
    now = held = exp = copy = 0.0
    ready = [0.0] * 6
    for _ in range(3):
        begins: list[float] = []
        copies: list[list[float]] = []
        fragments: list[int] = []
        for i in turn:
            _, text, control = code[i]
            what = copy_paths.operation(text)
            free = {"LDGSTS": copy, "MUFU": max(held, exp), "LDSM": 0}.get(what, held)
            now = max([now, free, *(ready[b] for b in range(6) if control >> 11 >> b & 1)])
            if what == "LDSM":
                fragments[-1] += 1
            elif what == "HMMA":
                held = now + HELD
            elif what == "MUFU":
                exp = now + EXP
            elif what == "LDGSTS":
                copy = now + COPY
                copies[-1].append(now - begins[-1])
            elif what == "BAR":
                begins.append(now)
                copies.append([])
                fragments.append(0)
            written, read = control >> 5 & 7, control >> 8 & 7
            if written != copy_paths.NO_BARRIER:
                ready[written] = max(ready[written], now + LATENCIES.get(what, COPY))
            if read != copy_paths.NO_BARRIER:
                ready[read] = max(ready[read], now + COPY)
            now += max(1, control & 15)
    ends = [*begins[1:], now]
    return [(end - begin, sum(c) / len(c), f, len(c)) for begin, end, c, f in zip(begins, ends, copies, fragments)]


def main() -> int:
    lines = sys.stdin.readlines()
    if (arch := copy_paths.arch_of(lines)) // 10 != 9:
        raise SystemExit(f"how sm_{arch} issues products is not known; -arch sm_90a")
    print("arch,tile,kind,plan,phase,cycles,copied,fragments,copies")
    for name, code in copy_paths.read(lines).items():
        if "forward_kernel" not in name or "Ablation" in name or "DtypeE1" not in name:
            continue
        tile, kind = re.search(r"Sm80TileE(\d+).*Sm80KindE(\d+)", name).groups()
        kernel = kernel_paths.Kernel(code)
        for number, phase in enumerate(phases(code, turn_of(kernel))):
            print(arch, tile, kind, "attest", number, *map(round, phase), sep=",")
    return 0


if __name__ == "__main__":
    sys.exit(main())
