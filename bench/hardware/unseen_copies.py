#!/usr/bin/env python3
"""Which copies of gpu/sm80's key tiles stand under the predicate P0, where the hardware's counters of wavefronts do not
see them (docs/results/h200-banks.md), off their machine code.

    cuobjdump -arch sm_90a -sass build/cuda/gpu/sm80/libattest_sm80.a | bench/hardware/unseen_copies.py

One line a kernel, loop over key tiles and operand: the copies of 16 bytes that a thread makes in a turn, and how many
of them are not seen. With one slot a turn copies its V before its first product and the next K behind it, with two the
next K and V before, alike. Loops in which all are seen are left out. `arch` is the listing's own; one that has code for
none or for several is refused.
"""

import re
import sys

import copy_paths
import kernel_paths


def unseen_of(kernel: kernel_paths.Kernel, loop: tuple[int, int]) -> dict[str, tuple[int, int]]:
    body = [text for _, text, _ in kernel.code[loop[0] : loop[1] + 1]]
    products = next(i for i, text in enumerate(body) if copy_paths.operation(text) == "HMMA")
    parts = [[t for t in part if ".128 " in t and "LDGSTS" in t] for part in (body[:products], body[products:])]
    before, behind = [(len(part), sum(t.startswith("@P0 ") for t in part)) for part in parts]
    if behind[0] > 0:
        return {"v": before, "k": behind}
    return {x: (before[0] // 2, before[1] // 2) for x in "kv"}


def main() -> int:
    lines = sys.stdin.readlines()
    arch = copy_paths.arch_of(lines)
    print("arch,tile,kind,plan,loop,operand,copies,unseen")
    for name, code in copy_paths.read(lines).items():
        bf16 = re.search(r"forward_kernel.*DtypeE1E.*Sm80TileE(\d)E.*Sm80KindE(\d)E", name)
        if not bf16:
            continue
        kernel = kernel_paths.Kernel(code)
        for loop, place in (("masked", kernel.masked), ("whole", kernel.whole)):
            for operand, (copies, unseen) in unseen_of(kernel, place).items():
                if unseen > 0:
                    print(arch, *bf16.groups(), "attest", loop, operand, copies, unseen, sep=",")
    return 0


if __name__ == "__main__":
    sys.exit(main())
