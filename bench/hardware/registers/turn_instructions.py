#!/usr/bin/env python3
"""What a key tile of compiled attention kernels executes whatever is asked for, from SASS, and what of it is spill.

    turn_instructions.py FILE.cubin... [--nvdisasm PATH] > simulator/measured/turn_instructions.csv

One line for each loop over key tiles, of what runs in every turn, as spill_places.py has it: warp instructions, those
that store and load local memory, the words that a thread stores, and moves from register to register.
"""
import re

import spill_places
from compile_gpu_sm80 import plan_of
from sass import read_arguments


def main():
    args = read_arguments(__doc__)
    print("arch,plan,loop,instructions,stores,loads,words_stored,moves")
    for path in args.files:
        arch = re.search(r"sm_(\d+)", path)[1]
        for name, kernel in spill_places.kernels(args.nvdisasm, path):
            loops = kernel.key_loops()
            for what, (head, latch) in zip(("masked", "whole")[-len(loops):], loops):
                always = [block for block in range(head, latch + 1) if spill_places.runs_in_turn(kernel, {block}, head, latch)]
                texts = kernel.texts(always)
                parts = [spill_places.parts(text) for text in texts]
                named = [sum(part[0] == x for part in parts) for x in (spill_places.STORE, spill_places.LOAD)]
                words = sum(spill_places.spilled(text, spill_places.STORE) for text in texts)
                moves = sum("MOV" in part[:2] for part in parts)
                print(arch, plan_of(name), what, len(texts), *named, words, moves, sep=",")


if __name__ == "__main__":
    main()
