#!/usr/bin/env python3
"""Which copies of FlashAttention 2's forward kernels in a wheel of PyTorch run unless the predicate P0, which the
hardware's counters of wavefronts take for false (docs/results/h200-banks.md). simulator/measured/unseen_copies_fa2.csv:

    unseen_in_torch.py WHEEL libtorch_cuda.*.cubin [--nvdisasm PATH] [--cuobjdump PATH]

One line a kernel that tests columns, operand and place, as flash_in_torch.py has places: how many of the copies of 16
bytes that a thread makes there, on every path, P0 stops. Counters take all of its lanes to read: from where they would,
or, of `stale` ones, whose addresses hang on P0 too, from anywhere. A turn of the loop has what it copies of the next
one's K, and so "enters" what the first one's copies are more than that. Places without any are left out. Which copies
they are hangs on the kernel alone; that counters do this was seen on compute capability 9.0.
"""
import re

from flash_in_torch import CASE, forward_kernels, places_of
from sass import read_arguments
from spill_places import parts

TO = re.compile(r"\[R\d+(?:\+(0x[0-9a-f]+))?\]")
FROM = re.compile(r"desc\[\w+\]\[(R\d+)\.64")
SETS = re.compile(r"(?:@!?U?P\d\s+)?\w\S*\s+(?:U?P\w+, )?(R\d+)\b")
STOPPED = re.compile(r"@!P0\s")
OTHERWISE = re.compile(r"@P0\s|, !?P0$")


def operand_of(case, text):
    """By where in shared memory it goes: Q, then K, then V lie there from each thread's first place on."""
    _, headdim, tile_m, tile_n, *_ = case
    at = int(TO.search(text)[1] or "0", 16) // (2 * headdim)
    return "q" if at < tile_m else "k" if at < tile_m + tile_n else "v"


def copies_of(case):
    def count(kernel, blocks):
        counts = {}
        sets_address = {}  # a register, of a pair the low one -> the last text that sets it
        for text in kernel.texts(blocks):
            if parts(text)[0] != "LDGSTS":
                if target := SETS.match(text):
                    sets_address[target[1]] = text
                continue
            if OTHERWISE.search(text):
                raise ValueError(f"P0 does other than stop this copy: {text}")
            if STOPPED.match(text):
                operand = operand_of(case, text)
                counts[operand] = counts.get(operand, 0) + 1
                if STOPPED.match(sets_address.get(FROM.search(text)[1], "")):
                    counts[operand + " stale"] = counts.get(operand + " stale", 0) + 1
        return counts

    return count


def main():
    args = read_arguments(__doc__, "--cuobjdump", "wheel")
    lines = {}
    for case, kernel, _ in forward_kernels(args):
        if dict(zip(CASE, case))["even_k"]:
            continue
        places = places_of(kernel, copies_of(case))[0]
        rows = [(operand, place, found[operand], found[operand + " stale"])
                for place, found in places.items() for operand in "qkv" if place != "other" and found[operand]]
        if lines.setdefault(case, rows) != rows:
            raise SystemExit(f"{case}: float16 and bfloat16 differ\n{rows}\n{lines[case]}")
    print(f"# {args.wheel}; unseen_in_torch.py")
    print(",".join((*CASE, "operand", "place", "copies", "stale")))
    for case in sorted(lines):
        for row in lines[case]:
            print(",".join(map(str, (*case, *row))))


if __name__ == "__main__":
    main()
