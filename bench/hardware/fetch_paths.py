#!/usr/bin/env python3
"""What copy_paths.py has of the loops of `fetch` and `jumps` (gpu/hardware/fetch.cu), off their machine code.

    cuobjdump -sass build/cuda/bin/sm_probe | bench/hardware/fetch_paths.py > docs/results/h200-sm/fetch_paths.csv

One line a loop: lines of 128 bytes that a turn executes, and cycles of a turn that a warp walks alone.
"""

import re
import sys

import copy_paths

LOOP = re.compile(r"probe_(fetch)ILi(\d+)ELb(\d)E|probe_(jumps)ILi(\d+)ELi(\d+)ELi(\d+)E.*JumpE(\d)E")
JUMPS = ["straight", "uniform", "reconverging"]


class Kernel(copy_paths.Kernel):
    def __init__(self, code: list[copy_paths.Instruction]) -> None:
        self.code = code
        self.find_targets()
        loops = [(to, i) for i, to in enumerate(self.targets) if to is not None and to < i]
        self.loop = max(loops, key=lambda x: self.products(*x))

    def products(self, first: int, last: int) -> int:
        return sum("FFMA" in text for _, text, _ in self.code[first:last])

    def turn(self) -> list[int]:
        """Each branch over products is taken."""
        way = [self.loop[0]]
        while way[-1] != self.loop[1]:
            i = way[-1]
            to = self.targets[i]
            way.append(to if to is not None and to > i and self.products(i, to) > 0 else i + 1)
        return way


def main() -> int:
    print("benchmark,block,skipped,blocks,jump,lines,cycles")
    for name, code in copy_paths.read(sys.stdin.readlines()).items():
        if not (found := LOOP.search(name)):
            continue
        k = Kernel(code)
        way = k.turn()
        less, more = (k.cycles(way * turns, copy_paths.Near()) for turns in (2, 5))
        lines = len({k.code[i][0] // copy_paths.Near.line for i in way})
        fetch, instructions, skips, jumps, block, skipped, blocks, kind = found.groups()
        loop = [fetch, instructions, skips, "", ""] if fetch else [jumps, block, skipped, blocks, JUMPS[int(kind)]]
        print(*loop, lines, round((more - less) / 3), sep=",")
    return 0


if __name__ == "__main__":
    sys.exit(main())
