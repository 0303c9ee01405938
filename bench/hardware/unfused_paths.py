#!/usr/bin/env python3
"""What a warp of gpu/unfused's kernels executes, off its machine code, for whole tiles without masks, in bf16.

    cuobjdump -sass build/cuda/gpu/unfused/libattest_unfused.a | bench/hardware/unfused_paths.py

One line a kernel and part, each the shortest way through it: warp instructions, those of the pipe of comparisons, shifts
and packing and of that of sums and products, cycles that the warp takes alone (copy_paths.py; a load under a predicate
is not waited for), and how often it waits for operands or local memory, which is not in the cycles. A step of a product
copies a 32-element slice of both operands and multiplies it; it holds one turn of each loop that copies. Results leave in
turns of four elements a lane, of which each round holds one.
"""

import re
import sys

import copy_paths
from copy_paths import operation, read

ALU = {"ISETP", "FSETP", "PLOP3", "LOP3", "SHF", "LEA", "PRMT", "VIADD", "IADD3", "FMNMX", "SEL", "FSEL", "F2FP", "IABS", "I2FP"}
copy_paths.LATENCIES["LD"] = 29  # most are of shared memory (h200.json)
FMA = {"FFMA", "FMUL", "FADD", "IMAD"}
COPY = [r"LEA R\d+, P\d", r"LDG.E.128", r"STS.128"]  # of a row that exists
SEEN = r"SEL R\d+, RZ, 0x1"  # a key that no mask takes away


class Kernel(copy_paths.Kernel):
    def __init__(self, code: list[copy_paths.Instruction]) -> None:
        self.code = code
        self.find_targets()
        self.loops = [(first, last) for last, first in enumerate(self.targets) if first is not None and first < last]

    def latency(self, text: str) -> float:
        if text.startswith("@"):
            return 0
        if operation(text) == "S2UR":
            return copy_paths.LATENCIES["S2R"]
        wide = "LDG.E.128" if "LDG.E.128" in text else "LD" if operation(text) in ("LDG", "LDS") else operation(text)
        return copy_paths.LATENCIES.get(wide, 0)

    def count(self, loop: tuple[int, int], what: str) -> int:
        return sum(re.search(what, text) is not None for _, text, _ in self.code[loop[0]:loop[1] + 1])

    def holding(self, *what: str) -> list[tuple[int, int]]:
        return sorted((x for x in self.loops if all(self.count(x, w) for w in what)), key=lambda x: x[1] - x[0])

    def line(self, first: int, last: int, through: list[str]) -> str:
        way = self.path(first, last, through)
        names = [operation(self.code[i][1]) for i in way]
        alone = []
        for latency in (0, 10000):
            copy_paths.LATENCIES.update({"LDL": latency, "LDG.E.128": latency})
            alone.append(self.cycles(way))
        waits = round((alone[1] - alone[0]) / 10000)
        return f"{len(way)},{sum(n in ALU for n in names)},{sum(n in FMA for n in names)},{round(alone[0])},{waits}"


def product(k: Kernel, result: list[str]) -> dict[str, tuple[int, int, list[str]]]:
    step, *_ = k.holding("HMMA", "BAR")
    copies = [x for x in k.holding(*COPY) if step[0] <= x[0] and x[1] < step[1]][:2]
    results = k.holding("LDL", "STG")[0]
    turn = [x for x in k.holding("STG") if results[0] <= x[0] and x[1] < results[1]][0]
    return {"start": (0, step[0] - 1, []), "step": (*step, COPY * 2 + ["HMMA"] * k.count(step, "HMMA")),
            **{f"copy {operand}": (*x, COPY) for operand, x in zip("AB", sorted(copies))},
            "between": (step[1] + 1, results[0] - 1, []),
            "results": (*results, result * k.count(results, "STG")), "turn": (*turn, result * k.count(turn, "STG"))}


def softmax(k: Kernel) -> dict[str, tuple[int, int, list[str]]]:
    first, last = sorted(k.holding(r"LDG.E.128"))[:2]
    end = next(i for i in range(last[1], len(k.code)) if "EXIT" in k.code[i][1] and "@" not in k.code[i][1])
    return {"start": (0, first[0] - 1, []), "maximum": (*first, [r"LDG.E.128"] + [SEEN, "FMNMX"] * 8),
            "between": (first[1] + 1, last[0] - 1, ["SHFL"] * 5),
            "exponentials": (*last, [r"LDG.E.128"] + [SEEN, r"MUFU.EX2"] * 8 + [r"STG.E.128"]),
            "end": (last[1] + 1, end, ["SHFL"] * 5 + ["STG", "FSEL", "STG"])}


def main() -> int:
    print("kernel,part,instructions,alu,fma,cycles,waits")
    for name, code in read(sys.stdin.readlines()).items():
        kernel = next((x for x in ("scores", "softmax", "output") if f"{len(x)}{x}I" in name and "bfloat16" in name), None)
        if kernel is None:
            continue
        k = Kernel(code)
        # O is divided by its row's sum
        parts = softmax(k) if kernel == "softmax" else product(k, ["MUFU.RCP"] * (kernel == "output") + ["STG"])
        for part, (first, last, through) in parts.items():
            print(kernel, f'"{part}"', k.line(first, last, through), sep=",")
    return 0


if __name__ == "__main__":
    sys.exit(main())
