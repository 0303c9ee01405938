#!/usr/bin/env python3
"""Which copies of gpu/sm80's kernels hang on the predicate P0, which the hardware's counters of wavefronts and sectors
take for false (docs/results/h200-banks.md), off their machine code.

    cuobjdump -arch sm_90a -sass build/cuda/gpu/sm80/libattest_sm80.a | bench/hardware/unseen_copies.py

One line a kernel, operand and place, which is before the loops over key tiles or one of them: the copies of 16 bytes
that a thread makes there (in a turn), and how many of them the counters take to copy nothing (under @P0), zeros alone
(they read where P0 is true) and whole (where it is false). With one slot a turn copies its V before its first product
and the next K behind it, with two the next K and V before, alike; before the loops Q is copied, then K, with two slots
V. Places in which all are seen as they are are left out. `arch` is the listing's own; one that has code for none or for
several is refused.
"""

import re
import sys

import copy_paths
import kernel_paths

Code = list[str]


def taken_for(copies: Code) -> tuple[int, int, int, int]:
    """How many there are, and of these nothing, zeros and whole."""
    nothing = [t.startswith("@P0 ") for t in copies]
    hang = [re.search(r", (!?)P0$", t.rstrip()) for t in copies]
    zeros = sum(h is not None and not n and h[1] == "" for h, n in zip(hang, nothing))
    whole = sum(h is not None and not n and h[1] == "!" for h, n in zip(hang, nothing))
    return len(copies), sum(nothing), zeros, whole


def copies_of(kernel: kernel_paths.Kernel) -> dict[tuple[str, str], tuple[int, int, int, int]]:
    def of(first: int, last: int) -> Code:
        return [text for _, text, _ in kernel.code[first:last] if ".128 " in text and "LDGSTS" in text]

    found = {}
    for place, (first, last) in (("masked", kernel.masked), ("whole", kernel.whole)):
        products = next(i for i in range(first, last) if copy_paths.operation(kernel.code[i][1]) == "HMMA")
        before, behind = of(first, products), of(products, last + 1)
        if two_slots := not behind:
            before, behind = before[len(before) // 2 :], before[: len(before) // 2]
        found["v", place], found["k", place] = taken_for(before), taken_for(behind)
    keys, values = found["k", "whole"][0], found["v", "whole"][0] if two_slots else 0
    first = of(0, kernel.first)
    queries = len(first) - keys - values
    found["q", "before"] = taken_for(first[:queries])
    found["k", "before"] = taken_for(first[queries : queries + keys])
    if two_slots:
        found["v", "before"] = taken_for(first[queries + keys :])
    return found


def main() -> int:
    lines = sys.stdin.readlines()
    arch = copy_paths.arch_of(lines)
    print("arch,tile,kind,plan,operand,place,copies,nothing,zeros,whole")
    for name, code in copy_paths.read(lines).items():
        bf16 = re.search(r"forward_kernel.*DtypeE1E.*Sm80TileE(\d)E.*Sm80KindE(\d)E", name)
        if not bf16:
            continue
        for (operand, place), copies in copies_of(kernel_paths.Kernel(code)).items():
            if any(copies[1:]):
                print(arch, *bf16.groups(), "attest", operand, place, *copies, sep=",")
    return 0


if __name__ == "__main__":
    sys.exit(main())
