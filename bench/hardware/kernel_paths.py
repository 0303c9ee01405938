#!/usr/bin/env python3
"""What a warp of gpu/sm80's kernels executes once a CTA, and what a general kind's key tile executes beside the fast
kind's for each thing that a case asks for, off their machine code.

    cuobjdump -sass build/cuda/gpu/sm80/libattest_sm80.a | bench/hardware/kernel_paths.py

One line a kernel and part: `before` and `after` the loops over key tiles; of a general kind's loops `scaled` (scores
that are multiplied by the scale), `softcap`, `alibi`, `bias` and `mask` (a prefix or documents), each less a key tile
without them; `alike` is the rest of such a key tile. Warp instructions, cycles as copy_paths.py has them, and branches
that are taken, which go to code that has not been fetched with what is before it.
"""

import re
import sys

import copy_paths

Code = list[copy_paths.Instruction]
PARTS = {"softcap": r"MUFU.TANH", "alibi": r"I2FP", "bias": r"LDG\."}


class Kernel(copy_paths.Kernel):
    """Its loops over key tiles instead of those of the copies' function."""

    jump = meeting = 0  # code beyond the nearest cache, whose jumps are counted

    def __init__(self, code: Code) -> None:
        self.code = code
        self.find_targets()
        loops = [(to, i) for i, to in enumerate(self.targets) if to is not None and to < i and self.multiplies(to, i)]
        inner = [x for x in loops if not any(y != x and x[0] <= y[0] and y[1] <= x[1] for y in loops)]
        # masks compare; the loop of whole tiles is the shorter
        self.whole, self.masked = sorted(inner, key=lambda x: x[1] - x[0])
        self.first, self.last = min(x[0] for x in inner), max(x[1] for x in inner)

    def count(self, what: str, first: int, last: int) -> int:
        return sum(re.search(what, text) is not None for _, text, _ in self.code[first : last + 1])

    def multiplies(self, first: int, last: int) -> bool:
        return self.count("HMMA", first, last) > 0 and self.count("MUFU", first, last) > 8

    def costs(self, way: list[int]) -> tuple[int, int, int]:
        jumps = sum(j != i + 1 for i, j in zip(way, way[1:]))
        return len(way), round(self.cycles(way)), jumps

    def tile(self, loop: tuple[int, int], *through: str) -> tuple[int, int, int]:
        """A turn of a loop, which copies and does not rescale O."""
        return self.costs(self.path(*loop, ["LDGSTS"] * 2 + ["HMMA", *through, "FMNMX", "HMMA"]))

    def before(self) -> tuple[int, int, int]:
        return self.costs(self.path(0, self.first, ["LDGSTS"] * self.count("LDGSTS", 0, self.first)))

    def after(self) -> tuple[int, int, int]:
        """O by way of shared memory, in stores of 16 bytes."""
        ends = [i for i in range(self.last, len(self.code)) if "EXIT" in self.code[i][1]]
        ways = []
        for end in ends:
            try:
                ways.append(self.path(self.last + 1, end, ["STS"] + ["STG.E.128"] * 2))
            except SystemExit:  # the end of something else
                continue
        return self.costs(min(ways, key=len))


def main() -> int:
    print("kernel,part,instructions,cycles,jumps")
    for name, code in copy_paths.read(sys.stdin.readlines()).items():
        if "forward_kernel" not in name or "Ablation" in name:
            continue
        k = Kernel(code)
        parts = {"before": k.before(), "after": k.after()}
        if k.count("MUFU.TANH", *k.whole) > 0:
            alike = k.tile(k.whole)
            parts["alike"] = alike
            less = lambda x, y: tuple(i - j for i, j in zip(x, y))
            parts["scaled"] = less(k.tile(k.whole, *["FMUL"] * 32), alike)
            for part, what in PARTS.items():
                parts[part] = less(k.tile(k.whole, *[what] * 3), alike)
            parts["mask"] = less(k.tile(k.masked, *["PRMT"] * 32), alike)
            parts["causal"] = less(k.tile(k.masked), alike)
        for part, costs in parts.items():
            print(name, part, *costs, sep=",")
    return 0


if __name__ == "__main__":
    sys.exit(main())
