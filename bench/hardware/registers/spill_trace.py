#!/usr/bin/env python3
"""In which order compiled attention kernels store and load what they spill in a key tile, from SASS.

    spill_trace.py FILE.cubin... [--nvdisasm PATH] > simulator/measured/spill_traces.csv

One line for each loop over key tiles of each kernel that spills: cycles of a turn, and its accesses in order as cycle,
kind and word of the frame, of loads also the cycle in which the first instruction waits for them. Then what a loop does
besides where it rescales O: that branch's cycles @ the cycle in which the turn goes on behind it, and its accesses from
its begin on. What it does besides where it masks a window's left end, adds ALiBi or copies without a call, in the cycle
in which its turn goes on behind that. And what a CTA with rows stores before its loops (`begin`), on the way into any of
them (`run`) and into that over whole tiles alone (`enter`), and loads behind them (`end`), without cycles. Kinds:
s stores, l loads, u loads for the last time before the word is stored again (LDL.LU), c calls of the function. Of what
runs in every turn, as spill_places.py has it, and of calls all. Cycles are those of a warp alone by control words, as
copy_paths.py has them, where every load hits L1 and calls take none.
"""
import pathlib
import re
import sys

import spill_places
from compile_gpu_sm80 import plan_of
from sass import read_arguments

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import copy_paths  # noqa: E402

BRANCHES = ("window", "alibi", "copy")
COPY = re.compile(r"CALL.*copy_general")
SLOT = re.compile(r"\[R1(?:\+0x([0-9a-f]+))?\]")
LATENCIES = copy_paths.LATENCIES | dict.fromkeys(("LDL", "LDS", "LDSM", "SHFL"), 29)


def clock(names, controls, turns=2):
    """Of each instruction the cycle in which it issues, and in which the first one waits for what it brings; the end.
    Where they are a loop's, with what the next turn waits for."""
    now, ready, users = 0, [0] * 6, [[] for _ in range(6)]
    issues, waited = [], [None] * len(names)
    for at, (name, control) in enumerate(zip(names * turns, controls * turns)):
        for b in range(6):
            if control >> 11 >> b & 1:
                now = max(now, ready[b])
        issues.append(now)
        for b in range(6):
            if control >> 11 >> b & 1:
                for user in users[b]:
                    waited[user] = now
                users[b] = []
        barrier = control >> 5 & 7
        if barrier != copy_paths.NO_BARRIER:
            ready[barrier] = max(ready[barrier], now + LATENCIES.get(name, 0))
            if at < len(names):
                users[barrier].append(at)
        now += max(1, control & 15)
    return issues[:len(names)], waited, (issues + [now])[len(names)]


def clock_blocks(kernel, blocks, turns=2):
    """Their instructions, and clock() of these."""
    texts = kernel.texts(blocks)
    spans = [kernel.blocks[block] for block in blocks]
    controls = [control for first, last in spans for control in kernel.controls[first:last + 1]]
    return texts, *clock([spill_places.parts(text)[0] for text in texts], controls, turns)


class Turn:
    """Of a loop, of what runs in every turn: instructions, when they issue and are waited for, and its cycles."""

    def __init__(self, kernel, head, latch):
        always = spill_places.blocks_of_every_turn(kernel, head, latch)
        self.texts, self.issues, self.waited, self.cycles = clock_blocks(kernel, always)
        self.begins, first = {}, 0  # of its blocks, when they do
        for block in always:
            self.begins[block], first = round(self.issues[first]), first + len(kernel.texts([block]))

    def goes_on(self, block):
        """When it does, in that block or behind it."""
        return next(at for b, at in self.begins.items() if b >= block)


def trace(kernel, head, latch):
    """Cycles of a turn and its (cycle, kind, word, cycle waited for); calls come before the block that always follows."""
    turn = Turn(kernel, head, latch)
    accesses = []
    for block in range(head, latch + 1):
        calls = sum(COPY.search(text) is not None for text in kernel.texts([block]))
        accesses += [(turn.goes_on(block), "c", 0, None)] * calls
    for at, text in enumerate(turn.texts):
        if not text.startswith("@"):
            accesses += [(round(turn.issues[at]), kind, word, None if kind == "s" else round(turn.waited[at]))
                         for kind, word in accesses_of(text)]
    return round(turn.cycles), sorted(accesses, key=lambda access: access[0])


def accesses_of(text):
    """(kind, word) of each word that an instruction stores or loads."""
    name = spill_places.parts(text)
    if name[0] not in (spill_places.STORE, spill_places.LOAD):
        return []
    kind = "s" if name[0] == spill_places.STORE else "u" if "LU" in name else "l"
    first = int(SLOT.search(text)[1] or "0", 16) // 4
    return [(kind, first + i) for i in range(spill_places.spilled(text, name[0]))]


def branch(kernel, head, latch, name):
    """As trace(), of the blocks under that branch (spill_places.branch_of)."""
    turn = Turn(kernel, head, latch)
    accesses = []
    for block in range(head, latch + 1):
        if block in turn.begins or spill_places.branch_of(kernel, block, (head, latch)) != name:
            continue
        at = turn.goes_on(block)
        accesses += [(at, kind, word, None if kind == "s" else at) for text in kernel.texts([block])
                     for kind, word in accesses_of(text)]
    return round(turn.cycles), accesses


def rescale(kernel, head, latch):
    """Of the branch that rescales O: its cycles @ the cycle in which the turn goes on behind it, and its accesses from its
    begin on."""
    turn = Turn(kernel, head, latch)
    blocks = [block for block in range(head, latch + 1)
              if block not in turn.begins and spill_places.branch_of(kernel, block, (head, latch)) == "rescale"]
    if not blocks:
        return 0, []
    texts, issues, waited, cycles = clock_blocks(kernel, blocks, turns=1)  # all of it, as branch()
    return f"{round(cycles)}@{turn.goes_on(blocks[0])}", [
        (round(issue), kind, word, None if kind == "s" else round(cycles if wait is None else wait))
        for text, issue, wait in zip(texts, issues, waited) for kind, word in accesses_of(text)]


def outside(kernel, loops):
    """As trace(), of what every path that runs a loop stores before them, and loads behind."""
    around = kernel.loop_around(loops) or (min(head for head, _ in loops), max(latch for _, latch in loops))
    slots = {}
    for block in (*range(around[0]), *range(around[1] + 1, len(kernel.blocks))):
        for text in kernel.texts([block]):
            if not text.startswith("@") and accesses_of(text):
                slots.setdefault((block < around[0], SLOT.search(text)[0]), []).append((block, text))
    begin, end = [], []
    for (before, _), accesses in slots.items():
        stores = [x for x in accesses if accesses_of(x[1])[0][0] == "s"]
        chosen = stores if before else [x for x in accesses if x not in stores]
        sure = spill_places.of_every_path(chosen, lambda blocks: spill_places.runs_outside(kernel, blocks, loops))
        (begin if before else end).extend((0, kind, word, None if before else 0) for _, text in sure for kind, word in accesses_of(text))
    turn, run, enter = kernel.loop_around(loops), [], []
    for block in range(turn[0], turn[1] + 1) if turn else ():
        if any(head <= block <= latch for head, latch in loops):
            continue
        stores = [(0, kind, word, None) for text in kernel.texts([block]) if not text.startswith("@")
                  for kind, word in accesses_of(text) if kind == "s"]
        if spill_places.runs_in_turn(kernel, {block}, *turn):
            run += stores
        elif spill_places.runs_to_enter(kernel, {block}, turn, loops[-1]):
            enter += stores
    return {"begin": (0, begin), "run": (0, run), "enter": (0, enter), "end": (0, end)}


def shown(at, kind, word, until):
    return f"{at}{kind}" + ("" if kind == "c" else f"{word}") + ("" if until is None else f":{until}")


def main():
    args = read_arguments(__doc__)
    print("arch,tile,kind,plan,loop,cycles,accesses")
    written = {}
    for arch, name, kernel, loops in spill_places.kernels_by_loops(args):
        traces = {what: trace(kernel, *loop) for what, loop in loops.items()}
        traces |= {f"{what}_{of}": branch(kernel, *loop, of) for what, loop in loops.items() for of in BRANCHES}
        traces |= {f"{what}_rescale": rescale(kernel, *loop) for what, loop in loops.items()}
        traces |= outside(kernel, list(loops.values())) if loops else {}
        if all(kind == "c" for _, accesses in traces.values() for _, kind, *_ in accesses):
            continue
        tile, of_kind = (re.search(rf"Sm80{what}E(\d)", name) for what in ("Tile", "Kind"))
        place = (tile[1], of_kind[1]) if tile and of_kind else (2, 0)  # ablations are of the tile of 128 columns
        for what, (cycles, accesses) in traces.items():
            key, line = (arch, *place, plan_of(name), what), f"{cycles},{' '.join(shown(*x) for x in accesses)}"
            if key not in written and (accesses or what in loops):
                print(*key, line, sep=",")
            if written.setdefault(key, line) != line:  # bf16 and fp16 are alike
                raise SystemExit(f"{key}: two kernels differ")


if __name__ == "__main__":
    main()
