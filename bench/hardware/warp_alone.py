#!/usr/bin/env python3
"""What a key tile takes a warp of gpu/sm80's kernels that has its scheduler to itself, off their machine code for
Hopper; of bf16.

    for a in sm80 sm80_ablations; do cuobjdump -arch sm_90a -sass build/cuda/gpu/sm80/libattest_$a.a; done |
        bench/hardware/warp_alone.py

One line a kernel and phase of a turn of its loop over whole key tiles that copies, from one barrier to the next: a
kernel with one slot for K and one for V copies V at the first and the next K at the second, one with two slots copies
both at its one. `cycles` is what a phase takes where its copies have landed, `copied` when they are issued, on average,
from the phase's begin; `fragments` and `copies` how many instructions load the one and issue the other. The warp issues
in order: an instruction stalls for as long as its control word says and waits for the scoreboards that it names
(LATENCIES). A product holds the scheduler for HELD cycles (`beside_mma`), beside which a fragment of the next one is
loaded and copies go on: of that, and of either alone, this is nearest to what key tiles take (docs/results/h100.md, "A
CTA alone"). Not in it: other warps; O rescaled, which is seldom; ragged rows; spilled words that L1 does not have; how
long pipes other than those of products, exponentials and copies are busy.
"""

import pathlib
import re
import sys

import copy_paths
import kernel_paths

sys.path.append(str(pathlib.Path(__file__).parent / "registers"))
from compile_gpu_sm80 import plan_of

# An m16n8k16 at mma_sync_fma_per_clock_16bit, a copy (`in_step`), an exponential (exp_per_clock); of four wavefronts
# the last is there three cycles after the first (smem_latency_cycles, which LDL and SHFL are taken to have). What else
# sets a scoreboard, and who reads its operands late, takes as long as a copy's issue.
HELD, COPY, EXP = 2048 / (1359 / 4), 6.0, 8.0
LATENCIES = {**copy_paths.LATENCIES, "LDSM": 32, "LDS": 29, "LDL": 29, "SHFL": 29}


def turn_of(kernel: kernel_paths.Kernel) -> list[int]:
    """From a barrier to the one before it in the next turn: of whole tiles, all of whose copies are made."""
    way = kernel.path(*kernel.whole, ["LDGSTS"] * kernel.count("LDGSTS", *kernel.whole) + ["HMMA"])
    first = next(n for n, i in enumerate(way) if copy_paths.operation(kernel.code[i][1]) == "BAR")
    return way[first:] + way[:first]


class Phase:
    def __init__(self, begin: float) -> None:
        self.begin = begin
        self.copies: list[float] = []  # when each is issued, from the begin
        self.fragments = 0


def phases(code: list[copy_paths.Instruction], turn: list[int]) -> list[tuple[float, float, int, int]]:
    """Of each, in a turn behind others: its cycles, when its copies are issued on average, loads of fragments, copies."""
    now = held = exp = copy = 0.0
    ready = [0.0] * 6
    passed: list[Phase] = []
    for i in [*turn * 3, turn[0]]:
        _, text, control = code[i]
        what = copy_paths.operation(text)
        free = {"LDGSTS": copy, "MUFU": max(held, exp), "LDSM": 0}.get(what, held)
        now = max([now, free, *(ready[b] for b in range(6) if control >> 11 >> b & 1)])
        if what == "LDSM":
            passed[-1].fragments += 1
        elif what == "HMMA":
            held = now + HELD
        elif what == "MUFU":
            exp = now + EXP
        elif what == "LDGSTS":
            copy = now + COPY
            passed[-1].copies.append(now - passed[-1].begin)
        elif what == "BAR":
            passed.append(Phase(now))
        written, read = control >> 5 & 7, control >> 8 & 7
        if written != copy_paths.NO_BARRIER:
            ready[written] = max(ready[written], now + LATENCIES.get(what, COPY))
        if read != copy_paths.NO_BARRIER:
            ready[read] = max(ready[read], now + COPY)
        now += max(1, control & 15)
    last = passed[-(len(passed) // 3) - 1 :]
    return [
        (after.begin - p.begin, sum(p.copies) / len(p.copies), p.fragments, len(p.copies))
        for p, after in zip(last, last[1:])
    ]


def main() -> int:
    lines = sys.stdin.readlines()
    if (arch := copy_paths.arch_of(lines)) // 10 != 9:
        raise SystemExit(f"how sm_{arch} issues products is not known; -arch sm_90a")
    rows = []
    for name, code in copy_paths.read(lines).items():
        ablation = "Ablation" in name  # of bf16 and the tile of 128 columns
        instance = re.search(r"DtypeE1.*Sm80TileE(\d+).*Sm80KindE(\d+)", name)
        if "forward_kernel" not in name or not (ablation or instance):
            continue
        try:
            kernel = kernel_paths.Kernel(code)
            if kernel.count("LDGSTS", *kernel.whole) == 0:  # copies go through registers, in phases of their own
                continue
            turn = turn_of(kernel)
        except (ValueError, StopIteration):
            raise SystemExit(f"warp_alone: {name} has no two loops over key tiles with a barrier: cut off?") from None
        tile, kind = (2, 0) if ablation else instance.groups()
        for number, phase in enumerate(phases(code, turn)):
            rows.append([arch, tile, kind, plan_of(name), number, *map(round, phase)])
    if not rows:
        raise SystemExit("warp_alone: the listing has none of gpu/sm80's kernels of bf16")
    print("arch,tile,kind,plan,phase,cycles,copied,fragments,copies")
    for row in rows:
        print(*row, sep=",")
    return 0


if __name__ == "__main__":
    sys.exit(main())
