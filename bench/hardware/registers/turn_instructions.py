#!/usr/bin/env python3
"""What a key tile of compiled attention kernels executes whatever is asked for, from SASS, and what of it is spill.

    turn_instructions.py FILE.cubin... [--nvdisasm PATH] > simulator/measured/turn_instructions.csv

One line for each loop over key tiles, of what runs in every turn, as spill_places.py has it: warp instructions, those
that store and load local memory, the words that a thread stores, and moves from register to register.
"""
import spill_places
from compile_gpu_sm80 import plan_of
from sass import read_arguments


def main():
    args = read_arguments(__doc__)
    print("arch,plan,loop,instructions,stores,loads,words_stored,moves")
    for arch, name, kernel, loops in spill_places.kernels_by_loops(args):
        for what, loop in loops.items():
            texts = kernel.texts(spill_places.blocks_of_every_turn(kernel, *loop))
            parts = [spill_places.parts(text) for text in texts]
            named = [sum(part[0] == x for part in parts) for x in (spill_places.STORE, spill_places.LOAD)]
            words = sum(spill_places.spilled(text, spill_places.STORE) for text in texts)
            moves = sum("MOV" in part[:2] for part in parts)
            print(arch, plan_of(name), what, len(texts), *named, words, moves, sep=",")


if __name__ == "__main__":
    main()
