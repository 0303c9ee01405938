#!/usr/bin/env python3
"""In which order compiled attention kernels store and load what they spill in a key tile, from SASS.

    spill_trace.py FILE.cubin... [--nvdisasm PATH] > simulator/measured/spill_traces.csv

One line for each loop over key tiles of each kernel whose frame is larger than FRAME_WORDS, beyond which it may not fit
L1: instructions of a turn, and its accesses in order as position, kind and word of the frame. Kinds: s stores, l loads,
u loads for the last time before the word is stored again (LDL.LU). Of what runs in every turn, as spill_places.py has
it.
"""
import re

import spill_places
from compile_gpu_sm80 import plan_of
from sass import read_arguments

FRAME_WORDS = 60  # 256 threads of it are 60 KiB
SLOT = re.compile(r"\[R1(?:\+0x([0-9a-f]+))?\]")


def trace(kernel, head, latch):
    """Instructions of a turn and its (position, kind, word)."""
    always = [block for block in range(head, latch + 1) if spill_places.runs_in_turn(kernel, {block}, head, latch)]
    texts = kernel.texts(always)
    accesses = []
    for at, text in enumerate(texts):
        name = spill_places.parts(text)
        if text.startswith("@") or name[0] not in (spill_places.STORE, spill_places.LOAD):
            continue
        kind = "s" if name[0] == spill_places.STORE else "u" if "LU" in name else "l"
        first = int(SLOT.search(text)[1] or "0", 16) // 4
        accesses += [(at, kind, first + i) for i in range(spill_places.spilled(text, name[0]))]
    return len(texts), accesses


def main():
    args = read_arguments(__doc__)
    print("arch,plan,loop,instructions,accesses")
    for path in args.files:
        arch = re.search(r"sm_(\d+)", path)[1]
        for name, kernel in spill_places.kernels(args.nvdisasm, path):
            loops = kernel.key_loops()
            traces = [trace(kernel, *loop) for loop in loops]
            if max((word for _, accesses in traces for *_, word in accesses), default=0) < FRAME_WORDS:
                continue
            for loop, (instructions, accesses) in zip(("masked", "whole")[-len(loops):], traces):
                print(arch, plan_of(name), loop, instructions, " ".join(f"{at}{kind}{word}" for at, kind, word in accesses), sep=",")


if __name__ == "__main__":
    main()
