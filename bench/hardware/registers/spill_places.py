#!/usr/bin/env python3
"""Where compiled attention kernels store and load what they spill: 32-bit words a thread, from SASS.

    spill_places.py FILE.cubin... [--nvdisasm PATH]

Needs an nvdisasm of the compiler's own release or later. The loops over key tiles are the innermost ones that multiply:
one for masked tiles, one for whole ones (the last). A word counts

    once      outside those loops, on every path that runs one of them to the kernel's end
    masked,   in a turn of the loop, whatever is asked for
    whole
    rescale   in a whole tile's turn, under the branch that rescales O (it takes exponentials and multiplies nothing)
    alibi     in a whole tile's turn, under the branch that turns distances into floating point
    other     under any other branch or predicate, in the loops or outside

so that the words of a call are those of its branches. Each as stored/loaded.
"""
import collections
import re
import subprocess

from sass import LABEL, TEXT, constants_of, read_arguments

INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?);")
CONTROL = re.compile(r"\s+/\* (0x[0-9a-f]{16}) \*/")
SLOT = re.compile(r"\[[^\]]*\]")
TARGET = re.compile(r"\((\.L_x_\d+)\)")
PLACES = ("once", "masked", "whole", "rescale", "alibi", "other")
STORE, LOAD = "STL", "LDL"


def parts(text):
    """An instruction's name and suffixes, without its predicate."""
    return re.sub(r"^@!?U?P\w+\s+", "", text).split()[0].split(".")


def spilled(text, name):
    suffixes = parts(text)
    return 0 if suffixes[0] != name else 4 if "128" in suffixes else 2 if "64" in suffixes else 1


class Kernel:
    """Basic blocks: instructions [first, last], and the blocks that may follow. Control words: one an instruction."""

    def __init__(self, code, labels, controls):
        self.code, self.controls = code, controls
        jumps = {i: labels[target[1]] for i, text in enumerate(code)
                 if parts(text)[0] == "BRA" and (target := TARGET.search(text)) and target[1] in labels}
        ends = [i for i, text in enumerate(code) if i in jumps or parts(text)[0] in ("EXIT", "RET")]
        firsts = sorted({0, *labels.values(), *(i + 1 for i in ends)} - {len(code)})
        self.blocks = [(first, then - 1) for first, then in zip(firsts, firsts[1:] + [len(code)])]
        at = {first: block for block, (first, _) in enumerate(self.blocks)}
        self.follow = []
        for _, last in self.blocks:
            text = code[last]
            falls = parts(text)[0] not in ("BRA", "EXIT", "RET") or text.startswith("@") or re.search(
                r"BRA\S*\s+!?U?P\d|BRA\.DIV", text)
            following = [at[jumps[last]]] if last in jumps else []
            self.follow.append(following + ([at[last + 1]] if falls and last + 1 in at else []))
        self.exits = {block for block, (_, last) in enumerate(self.blocks) if parts(code[last])[0] == "EXIT"}

    def reach(self, start, without=(), inside=None):
        """Blocks that can run from `start` on, its own among them."""
        seen, left = {start} - set(without), [start] if start not in without else []
        while left:
            for block in self.follow[left.pop()]:
                if block not in seen and block not in without and (inside is None or block in inside):
                    seen.add(block)
                    left.append(block)
        return seen

    def texts(self, blocks):
        return [text for block in blocks for text in self.code[self.blocks[block][0]:self.blocks[block][1] + 1]]

    def key_loops(self):
        """(head, latch) of the innermost loops that multiply."""
        loops = []
        for latch, following in enumerate(self.follow):
            for head in following:
                multiplied = sum(parts(text)[0] in ("HMMA", "HGMMA") for text in self.texts(range(head, latch + 1)))
                if head <= latch and multiplied > 4:
                    loops.append((head, latch))
        return [x for x in loops if not any(y != x and x[0] <= y[0] and y[1] <= x[1] for y in loops)]

    def branch_over(self, block, head, latch):
        """Names of the instructions that run only where the nearest branch that decides on `block` goes its way."""
        inside = set(range(head, latch + 1))
        for fork in sorted(inside, reverse=True):
            sides = [side for side in self.follow[fork] if side in inside]
            ways = [side for side in sides if side == block or latch not in self.reach(side, {block}, inside)]
            if fork < block and len(sides) == 2 and len(ways) == 1:
                ahead = inside - {head}
                taken, other = (self.reach(side, (), ahead) for side in (ways[0], *(set(sides) - set(ways))))
                return collections.Counter(".".join(parts(text)[:2]) for text in self.texts(taken - other))
        return collections.Counter()


def runs_outside(kernel, blocks, loops):
    """Whether every path that runs a loop and ends meets one of the blocks, which lie outside the loops."""
    before = kernel.reach(0, blocks)
    if not any(head in before for head, _ in loops):
        return True
    return not any(kernel.reach(latch, blocks) & kernel.exits for _, latch in loops)


def runs_in_turn(kernel, blocks, head, latch):
    return bool({head, latch} & blocks) or latch not in kernel.reach(head, blocks, set(range(head, latch + 1)))


def branch_of(kernel, block, loop):
    names = kernel.branch_over(block, *loop)
    roots = {name.split(".")[0] for name in names}
    if roots & {"HMMA", "CALL"}:
        return "other"
    if roots & {"I2F", "I2FP"}:
        return "alibi"
    return "rescale" if "MUFU.EX2" in names else "other"


def places(kernel):
    """place -> [words stored, words loaded]; None where no loop multiplies."""
    loops = kernel.key_loops()
    if not loops:
        return None
    found = {place: [0, 0] for place in PLACES}
    slots = collections.defaultdict(list)  # (loop, store or load, its place on the stack) -> (block, words)
    for block in range(len(kernel.blocks)):
        loop = next((loop for loop in loops if loop[0] <= block <= loop[1]), None)
        for text in kernel.texts([block]):
            for what, name in enumerate((STORE, LOAD)):
                words = spilled(text, name)
                if words and text.startswith("@"):
                    found["other"][what] += words
                elif words:
                    slots[loop, what, SLOT.search(text)[0]].append((block, words))
    for (loop, what, _), accesses in slots.items():
        def always(blocks):
            return runs_in_turn(kernel, blocks, *loop) if loop else runs_outside(kernel, blocks, loops)
        place = "once" if loop is None else "whole" if loop == loops[-1] else "masked"
        alone = [x for x in accesses if always({x[0]})]
        found[place][what] += sum(words for _, words in alone)
        rest = [x for x in accesses if x not in alone]
        if rest and not alone and always({block for block, _ in rest}):  # in each side of a branch
            found[place][what] += rest[0][1]
            continue
        for block, words in rest:
            found[branch_of(kernel, block, loop) if place == "whole" else "other"][what] += words
    return found


def kernels(nvdisasm, path):
    """(name, Kernel) of each function; those that a kernel calls are apart."""
    found = []
    for line in subprocess.run([nvdisasm, "-c", "-hex", path], capture_output=True, text=True, check=True).stdout.splitlines():
        if text := TEXT.match(line):
            found.append((text[1], [], {}, []))
        elif line.startswith("$") and found:
            found.append((line.rstrip(":"), [], {}, []))
        elif found and (label := LABEL.match(line)):
            found[-1][2][label[1]] = len(found[-1][1])
        elif found and (instruction := INSTRUCTION.match(line)):
            found[-1][1].append(instruction[1].strip())
        elif found and (control := CONTROL.match(line)):
            found[-1][3].append(int(control[1], 16) >> 41)
    return [(name, Kernel(code, labels, controls)) for name, code, labels, controls in found if code]


def main():
    args = read_arguments(__doc__)
    for path in args.files:
        for name, kernel in kernels(args.nvdisasm, path):
            if found := places(kernel):
                print(f"{constants_of(name)}: " + ", ".join(f"{place} {stored}/{loaded}" for place, (stored, loaded) in found.items()))


if __name__ == "__main__":
    main()
