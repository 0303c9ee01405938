#!/usr/bin/env python3
"""What a warp of gpu/sm80's combine() executes for its row, off its machine code.

    cuobjdump -sass build/cuda/gpu/sm80/libattest_sm80.a | bench/hardware/combine_path.py

One line a kernel and part: `row`, all but `turn`, which adds four splits' O, and `weights` of the splits that 32 turns
of one add. Warp instructions, cycles as copy_paths.py has them where every load hits L1, how often loads are waited for
one after the other, and lines of 64 bytes of the kernel's arguments.
"""

import re
import sys

import copy_paths

L1, FAR = 34, 1034  # cycles of a load; any that is far makes waits of what it takes beyond
SHUFFLE = 29  # as a load from shared memory (h200.json)


ARGUMENT = re.compile(r"c\[0x0\]\[0x([0-9a-f]+)\]")


def waits(k: copy_paths.Kernel, way: list[int]) -> tuple[int, float, float, int]:
    def cycles(load: float) -> float:
        copy_paths.LATENCIES["LDG"] = load
        return k.cycles(way)

    near = cycles(L1)
    lines = {int(at, 16) // 64 for i in way for at in ARGUMENT.findall(k.code[i][1])}
    return len(way), near, (cycles(FAR) - near) / (FAR - L1), len(lines)


def main() -> int:
    copy_paths.LATENCIES.update(SHFL=SHUFFLE, LDC=SHUFFLE, S2UR=SHUFFLE)
    print("kernel,part,instructions,cycles,waits,argument_lines")
    for name, code in copy_paths.read(sys.stdin.readlines()).items():
        if "combine_kernel" not in name:
            continue
        k = copy_paths.Kernel.__new__(copy_paths.Kernel)
        k.code = code
        k.find_targets()
        text = [t for _, t, _ in code]
        loops = [(to, i) for i, to in enumerate(k.targets) if to is not None and to < i]
        adds = [x for x in loops if any("SHFL.IDX" in t for t in text[x[0] : x[1]])]
        first, last = max(adds, key=lambda x: sum("SHFL.IDX" in t for t in text[x[0] : x[1]]))
        end = max(i for i, t in enumerate(text) if re.match(r"(@!?P\d )?EXIT", t) and i > last)
        row = k.path(0, first, ["SHFL.BFLY", r"MUFU.EX2", r"STG.E"]) + k.path(adds[-1][1] + 1, end, ["STG.E.U16"])
        with_weights, without = k.path(first, last, ["MUFU.EX2"]), k.path(first, last, ["SHFL.IDX"])
        parts = {"row": waits(k, row), "turn": waits(k, without)}
        parts["weights"] = tuple(a - b for a, b in zip(waits(k, with_weights), parts["turn"]))
        for part, numbers in parts.items():
            print(name, part, *(round(x, 1) for x in numbers), sep=",")
    return 0


if __name__ == "__main__":
    sys.exit(main())
