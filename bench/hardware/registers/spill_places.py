#!/usr/bin/env python3
"""Where compiled attention kernels store and load what they spill: 32-bit words a thread, from SASS.

    spill_places.py FILE.cubin... [--nvdisasm PATH]

Needs an nvdisasm of the compiler's own release or later. The loops over key tiles are the innermost ones that multiply:
one for masked tiles, one for whole ones (the last). A word counts

    early     on every path to the kernel's first end, that of CTAs without rows; of `once`, not beside it
    once      outside the loops, on every path that runs one of them to the kernel's end, and there where a comparison
              of order does not pass over them, as of the ends of a range (nothing is in one whose ends are both set to
              zero right before); and under other branches in the loop around them, which hang on the number of its turn
    turn      in each turn of that loop, which has a turn for each run of masked or whole tiles
    enters    in a turn of it that enters the loop over whole tiles
    masked,   in a turn of the loop, whatever is asked for
    whole
    ..._copy     under the branch that copies plain tiles, without a call
    ..._window   under the branch that masks a second time, for a window's left end
    ..._rescale  under the branch that rescales O (it takes exponentials and multiplies nothing)
    ..._alibi    under the branch that turns distances into floating point
    other     under any other branch, in the loops over key tiles or outside, and outside under any predicate

so that the words of a call are those of its branches. Each as words stored/loaded, and instructions that do.
"""
import collections
import re
import subprocess

from sass import LABEL, TEXT, constants_of, read_arguments

INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?);")
CONTROL = re.compile(r"\s+/\* (0x[0-9a-f]{16}) \*/")
SLOT = re.compile(r"\[[^\]]*\]")
TARGET = re.compile(r"\((\.L_x_\d+)\)")
BRANCHES = ("copy", "window", "rescale", "alibi")
PLACES = ("early", "once", "turn", "enters", *(f"{loop}{branch}" for loop in ("masked", "whole")
                                              for branch in ("", *(f"_{branch}" for branch in BRANCHES))), "other")
STORE, LOAD = "STL", "LDL"
UNLESS = re.compile(r"@!(U?P\d)\s+BRA")
COPIED = re.compile(r"PLOP3\.LUT P\d, PT, PT, PT, (UP\d), 0x80")
ORDERED = re.compile(r"U?ISETP\.(?:GT|LT)\.AND U?P\d, U?PT, (U?R\d+), (U?R\d+),")
ZERO = re.compile(r"U?MOV U?R\d+, U?RZ")


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

    def loop_around(self, loops):
        """(head, latch) of the innermost loop around all of those; None where there is none."""
        around = [(head, latch) for latch, following in enumerate(self.follow) for head in following
                  if all(head < loop[0] and loop[1] < latch for loop in loops)]
        return min(around, key=lambda x: x[1] - x[0], default=None)

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


def runs_early(kernel, blocks):
    """Whether every path to the first end meets one of the blocks."""
    return min(kernel.exits) not in kernel.reach(0, blocks)


def definition(kernel, at, name):
    """Where a register is written last before an instruction, on the way that jumps nowhere; None."""
    writes = re.compile(rf"(?:@!?U?P\d\s+)?[A-Z0-9.]+\s+{name},")
    ends = {last: following for (_, last), following in zip(kernel.blocks, kernel.follow)}
    firsts = {block: first for block, (first, _) in enumerate(kernel.blocks)}
    for i in range(at - 1, -1, -1):
        if i in ends and i + 1 not in (firsts[block] for block in ends[i]):
            return None
        if writes.match(kernel.code[i]):
            return i
    return None


def holds_a_range(kernel, block):
    """Whether the block before passes over this one unless a range has something in it, which it may have."""
    fork = block - 1
    at = kernel.blocks[fork][1] if fork >= 0 else 0
    unless = UNLESS.match(kernel.code[at])
    if fork < 0 or not unless or sorted(kernel.follow[fork]) != [block, block + 1]:
        return False
    name = unless[1]
    while (at := definition(kernel, at, name)) is not None and (copied := COPIED.match(kernel.code[at])):
        name = copied[1]
    compared = at is not None and ORDERED.match(kernel.code[at])
    if not compared:
        return False
    ends = [definition(kernel, at, end) for end in compared.groups()]
    return not all(end is not None and ZERO.match(kernel.code[end]) for end in ends)


def of_every_path(accesses, runs):
    """Of accesses (block, what) to one slot those in blocks that run, or the first one of several sides of a branch."""
    alone = [x for x in accesses if runs({x[0]})]
    return alone or (accesses[:1] if accesses and runs({x[0] for x in accesses}) else [])


def runs_in_turn(kernel, blocks, head, latch):
    return bool({head, latch} & blocks) or latch not in kernel.reach(head, blocks, set(range(head, latch + 1)))


def blocks_of_every_turn(kernel, head, latch):
    return [block for block in range(head, latch + 1) if runs_in_turn(kernel, {block}, head, latch)]


def runs_to_enter(kernel, blocks, turn, loop):
    return loop[0] not in kernel.reach(turn[0], blocks, set(range(turn[0], turn[1] + 1)))


def branch_of(kernel, block, loop):
    names = kernel.branch_over(block, *loop)
    roots = {name.split(".")[0] for name in names}
    if "HMMA" in roots:
        return None
    if "LDGSTS" in roots:
        return "copy"
    if "CALL" in roots:
        return None
    if roots & {"I2F", "I2FP"}:
        return "alibi"
    return "rescale" if "MUFU.EX2" in names else "window" if "FSEL" in roots else None


def places(kernel):
    """place -> [words stored, words loaded, stores, loads]; None where no loop multiplies."""
    loops = kernel.key_loops()
    if not loops:
        return None
    turn = kernel.loop_around(loops)
    found = {place: [0] * 4 for place in PLACES}
    slots = collections.defaultdict(list)  # (loop, store or load, its place on the stack) -> (block, words, a predicate)
    for block in range(len(kernel.blocks)):
        loop = next((loop for loop in (*loops, turn) if loop and loop[0] <= block <= loop[1]), None)
        for text in kernel.texts([block]):
            for what, name in enumerate((STORE, LOAD)):
                if words := spilled(text, name):
                    slots[loop, what, SLOT.search(text)[0]].append((block, words, text.startswith("@")))

    def add(place, what, accesses):
        found[place][what] += sum(x[1] for x in accesses)
        found[place][what + 2] += len(accesses)

    for (loop, what, _), accesses in slots.items():
        def count(place, runs):
            """Of accesses those in blocks that run there, or the first one of several sides of a branch; the rest."""
            sure = [x for x in accesses if not x[2]]
            alone = of_every_path(sure, runs)
            add(place, what, alone)
            sides = alone and not runs({alone[0][0]})  # those of the other sides are none besides
            return [x for x in accesses if x not in (sure if sides else alone)]

        if loop is None:
            count("early", lambda blocks: runs_early(kernel, blocks))
            accesses = count("once", lambda blocks: runs_outside(kernel, blocks, loops))
            rest = [x for x in accesses if x[2] or not holds_a_range(kernel, x[0])]
            add("once", what, [x for x in accesses if x not in rest])
        elif loop == turn:
            accesses = count("turn", lambda blocks: runs_in_turn(kernel, blocks, *turn))
            accesses = count("enters", lambda blocks: runs_to_enter(kernel, blocks, turn, loops[-1]))
            add("once", what, [x for x in accesses if not x[2]])
            rest = [x for x in accesses if x[2]]
        else:
            name = "whole" if loop == loops[-1] else "masked"
            rest = []
            for access in count(name, lambda blocks: runs_in_turn(kernel, blocks, *loop)):
                if branch := branch_of(kernel, access[0], loop):
                    add(f"{name}_{branch}", what, [access])
                else:
                    rest.append(access)
        add("other", what, rest)
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


def kernels_by_loops(args):
    """(architecture, name, Kernel, {"masked" or "whole": (head, latch)}) of each function of each file."""
    for path in args.files:
        arch = re.search(r"sm_(\d+)", path)[1]
        for name, kernel in kernels(args.nvdisasm, path):
            loops = kernel.key_loops()
            yield arch, name, kernel, dict(zip(("masked", "whole")[-len(loops):], loops))


def main():
    args = read_arguments(__doc__)
    for path in args.files:
        for name, kernel in kernels(args.nvdisasm, path):
            if found := places(kernel):
                print(f"{constants_of(name)}: " + ", ".join(f"{place} {stored}/{loaded} in {stores}/{loads}" for place, (stored, loaded, stores, loads) in found.items()))


if __name__ == "__main__":
    main()
