#!/usr/bin/env python3
"""What gpu/sm80's function for copies of odd granules and of pages executes, off its machine code.

    cuobjdump -sass build/cuda/gpu/sm80/libattest_sm80.a | bench/hardware/copy_paths.py

One line a kernel and part: a call beside its passes over rows, a pass, and a granule, by its bytes, where it lies and
whether it exists, its row or column is past the end, or the columns of some lanes are. Warp instructions, and cycles
that a warp takes alone: each instruction stalls for as long as its control word says, waits for what it needs of a load
from L1 or a conversion (LATENCIES), after a product of 64 bits (OF_PRODUCT), for where it jumps to and for code that is not near (Near). A granule of 2 bytes is
waited for as well, which is not in the cycles.
"""

import heapq
import re
import sys

Instruction = tuple[int, str, int]  # address, text, control word
CODE = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?);\s+/\* 0x[0-9a-f]+ \*/")
CONTROL = re.compile(r"\s+/\* (0x[0-9a-f]{16}) \*/")
CALL = re.compile(r"CALL\S*\s+(0x[0-9a-f]+)")
BRANCH = re.compile(r"BRA\S*\s+(?:!?U?P\d+,\s*)?(0x[0-9a-f]+)")
GUARD = re.compile(r"@(!?)(U?P\d)\b")
SET = re.compile(r"\bU?P\d\b")  # among an instruction's first two operands
NO_BARRIER = 7
ADDRESS_OF = re.compile(r"^(?:@!?P\d\s+)?LD\.E\S* R\d+, desc\[UR\d+\]\[(R\d+)\.64(?:\+0x([0-9a-f]+))?\]")
PARAMS = 0x210  # where ForwardParams begins among the constants, and so in their copy in memory
MISS = 279  # of a load that L1 does not have (docs/results/h200-sm.md, local)
LATENCIES = {"LD": 34, "S2R": 29, "I2F": 17.4, "F2I": 17.4, "MUFU": 17.4}  # `latencies`; h200.json; `pipes` of 2026-11-21 (17.0 since chains are longer)
PRODUCT = re.compile(r"IMAD\.(HI|WIDE)")
OF_PRODUCT = 3  # cycles of one of 64 bits beyond its control word (docs/results/h200-sm/latencies.csv)

# What a path goes through, in this order: the ways through the function, by what each alone has.
LAST = {2: r"STS.U16", 4: r"LDGSTS.E \[", 8: r"LDGSTS.E.64", 16: r"LDGSTS.E.BYPASS"}
ADDRESS, IS_KEY = r"LEA.HI.X.SX32", r"ISETP.NE.AND.EX"
OF_PAGE = [IS_KEY, r"LD.E R", ADDRESS]
OF_PACKED_HEADS = [r"ISETP.NE.AND P\d, PT, R\d+, 0x1, PT", r"BSYNC B2", ADDRESS]
# The arguments, by their offsets in ForwardParams: the page table, Q, K or V, and a page's size.
TABLE, Q, K, PAGE_SIZE = r"\+0xa0\]", r"\+0x88\]", r"\+0x90\]", r"\+0xb0\]"


def operation(text: str) -> str:
    return re.sub(r"^@!?U?P\w+\s+", "", text).split()[0].split(".")[0]


def arch_of(lines: list[str]) -> int:
    """The one compute capability that a listing has code for, without its letter."""
    found = sorted({int(x) for line in lines for x in re.findall(r"^\s*code for sm_(\d+)", line)})
    if len(found) != 1:
        raise SystemExit(f"a listing of code for {found or 'nothing'} is not one of one architecture: -arch sm_NN")
    return found[0]


def read(lines: list[str]) -> dict[str, list[Instruction]]:
    kernels: dict[str, list[Instruction]] = {}
    code: list[Instruction] = []
    for line in lines:
        if "Function : " in line:
            code = kernels.setdefault(line.split("Function : ")[1].strip(), [])
        elif found := CODE.match(line):
            code.append((int(found[1], 16), found[2].strip(), 0))
        elif (found := CONTROL.match(line)) and code and code[-1][2] == 0:
            code[-1] = (*code[-1][:2], int(found[1], 16) >> 41)
    return kernels


class Near:
    """Code that a scheduler has near: the lines used last, and who executes asks for those ahead. Others come from a
    cache of 32 KB. What fetch_paths.py has of loops within those 32 KB is held to `jumps` and `fetch`."""

    line, lines, ahead, miss = 128, 48, 192, 9.5  # bytes, lines, bytes, cycles

    def __init__(self) -> None:
        self.arrives: dict[int, float] = {}  # by line, those used last at the end

    def ask(self, address: int, now: float) -> float:
        """When it is there."""
        line = address // self.line
        self.arrives[line] = there = self.arrives.pop(line, now + self.miss)
        if len(self.arrives) > self.lines:
            del self.arrives[next(iter(self.arrives))]
        return there

    def execute(self, address: int, now: float) -> float:
        there = max(now, self.ask(address, now))
        self.ask(address + self.ahead, there)
        return there


class Kernel:
    # Cycles beyond control words (docs/results/h200-sm/jumps.csv): of a branch that is taken, and where lanes meet.
    jump, meeting = 4.7, 8.6

    def __init__(self, code: list[Instruction]) -> None:
        self.code = code
        at = self.find_targets()
        loops = [(g, i) for i, g in enumerate(self.targets) if g is not None and g < i]
        holding = [x for x in loops if any(re.search(LAST[8], code[i][1]) for i in range(x[0], x[1]))]
        self.granule = min(holding, key=lambda x: x[1] - x[0])
        around = [x for x in holding if x[0] < self.granule[0]]
        self.tile_pass = min(around, key=lambda x: x[1] - x[0])
        calls = {at[int(found[1], 16)] for _, text, _ in code if (found := CALL.search(text))}
        self.entry = max(i for i in calls if i < self.granule[0])

    def find_targets(self) -> dict[int, int]:
        at = {address: i for i, (address, _, _) in enumerate(self.code)}
        branches = [BRANCH.search(text) for _, text, _ in self.code]
        self.targets = [at.get(int(b[1], 16)) if b else None for b in branches]
        return at

    def path(self, first: int, last: int, through: list[str]) -> list[int]:
        """The shortest from one instruction to another, both included, on which no predicate is taken both ways."""
        queue = [(0, first, 0, (), [])]
        seen = set()
        while queue:
            steps, i, met, known, before = heapq.heappop(queue)
            if (i, met, known) in seen:
                continue
            seen.add((i, met, known))
            text = self.code[i][1]
            if operation(text) == "CALL":  # of a division in 64 bits
                continue
            met += met < len(through) and re.search(through[met], text) is not None
            way = [*before, i]
            if i == last:
                if met == len(through):
                    return way
                continue
            for j, then_known in self.onward(i, dict(known)):
                if first <= j <= last:
                    heapq.heappush(queue, (steps + 1, j, met, then_known, way))
        raise SystemExit("copy_paths: no such path")

    def onward(self, i: int, known: dict[str, bool]) -> list[tuple[int, tuple]]:
        """Where an instruction leads to, and what its branch then says of predicates that no instruction has set since."""
        text, target = self.code[i][1], self.targets[i]
        guard = GUARD.match(text)
        if target is None:
            for written in SET.findall(" ".join(re.sub(r"^@!?U?P\w+\s+", "", text).split(",")[:2])):
                known.pop(written, None)
            return [(i + 1, tuple(sorted(known.items())))]
        if not guard:
            return [(target, tuple(sorted(known.items())))]
        ways = [(target, guard[1] == ""), (i + 1, guard[1] != "")]
        return [(j, tuple(sorted({**known, guard[2]: p}.items()))) for j, p in ways if known.get(guard[2], p) == p]

    def cycles(self, way: list[int], near: Near | None = None, first_load: float = LATENCIES["LD"]) -> float:
        """`near`: what is there before; without, all is. `first_load`: the latency of the first load of each sector."""
        now, ready = 0.0, [0.0] * 6
        arrives: dict[tuple, float] = {}  # by sector
        for i, after in zip(way, [*way[1:], None]):
            address, text, control = self.code[i]
            meets = operation(text) == "BSYNC"
            fetched = near.execute(address, now) if near else now
            now = max([now if meets else fetched, *(ready[b] for b in range(6) if control >> 11 >> b & 1)])
            barrier = control >> 5 & 7
            if barrier != NO_BARRIER:
                there = now + LATENCIES.get(operation(text), 0)
                if address := ADDRESS_OF.search(text):
                    sector = address[1], (PARAMS + int(address[2] or "0", 16)) // 32
                    there = max(there, arrives.setdefault(sector, now + first_load))
                ready[barrier] = max(ready[barrier], there)
            now += max(1, control & 15) + OF_PRODUCT * (PRODUCT.search(text) is not None)
            leads = self.targets[i] is not None or meets  # where some lanes have gone ahead, back to the others
            goes = operation(text) in ("CALL", "RET") or (leads and after not in (i + 1, None))
            now += self.jump * goes + meets * max(self.meeting, fetched - now)
        return now


class Function(Kernel):
    """The one that copies a tile."""

    def __init__(self, code: list[Instruction]) -> None:
        super().__init__(code)
        begin, end = self.granule
        self.before = range(self.tile_pass[0], begin)
        self.behind = range(end + 1, self.tile_pass[1] + 1)
        returns = next(i for i in range(self.tile_pass[1], len(code)) if operation(code[i][1]) == "RET")
        self.leaves = range(self.tile_pass[1] + 1, returns + 1)
        self.plain = self.granule_path(8, IS_KEY, ADDRESS)

    def granule_path(self, size: int, *through: str) -> list[int]:
        return self.path(*self.granule, [*through, LAST[size]])

    def parted(self, size: int) -> list[int]:
        """Some lanes' columns are past the end: each time they go ahead to where lanes meet, and the others follow."""
        way, past = self.granule_path(size, IS_KEY, ADDRESS), self.granule_path(size)
        out: list[int] = []
        for i in way:
            out.append(i)
            if i in past and past[-1] != i and (ahead := past[past.index(i) + 1]) != way[way.index(i) + 1]:
                out.append(ahead)
        return out

    def costs(self, begin: list[int], granule: list[int], passes: int, granules: int, load: float) -> tuple[int, float]:
        rows = [*self.before, *(granule * granules), *self.behind]
        way = [*begin, *(rows * passes), *self.leaves]
        return len(way), self.cycles(way, Near(), load)

    def parts(self, begin: list[int], granule: list[int], load: float = LATENCIES["LD"]) -> list[tuple[float, float]]:
        """Of a call, a pass and a granule: what one more of these takes in a tile, and the rest."""
        less, longer, wider = (self.costs(begin, granule, *n, load) for n in ((2, 2), (3, 2), (2, 3)))
        a_granule = [(x - y) / 2 for x, y in zip(wider, less)]
        a_pass = [x - y - 2 * g for x, y, g in zip(longer, less, a_granule)]
        a_call = [x - 2 * p - 4 * g for x, p, g in zip(less, a_pass, a_granule)]
        return [a_call, a_pass, a_granule]


def main() -> int:
    print("kernel,part,instructions,cycles,missing")
    for name, code in read(sys.stdin.readlines()).items():
        if not any(re.search(LAST[8], text) for _, text, _ in code):
            continue
        k = Function(code)

        def show(part: str, instructions: float, cycles: float, missing: float) -> None:
            print(name, f'"{part}"', round(instructions), round(cycles), round(missing), sep=",")

        first = k.tile_pass[0] - 1
        calls = {"call": [TABLE, K], "call, pages": [TABLE, PAGE_SIZE], "call, Q": [Q]}
        begins = {part: k.path(k.entry, first, through) for part, through in calls.items()}
        for part, begin in begins.items():
            show(part, *k.parts(begin, k.plain)[0], k.parts(begin, k.plain, MISS)[0][1])
        begin = begins["call"]
        show("pass", *(of_pass := k.parts(begin, k.plain)[1]), of_pass[1])
        granules = {}
        for size in LAST:
            granules[f"{size} bytes"] = k.granule_path(size, IS_KEY, ADDRESS)
            granules[f"{size} bytes, past the end"] = k.granule_path(size)
            granules[f"{size} bytes, parted"] = k.parted(size)
        granules["16 bytes of a page"] = k.granule_path(16, *OF_PAGE)
        granules["16 bytes of packed heads"] = k.granule_path(16, *OF_PACKED_HEADS)
        for part, way in granules.items():
            show(part, *(of_granule := k.parts(begin, way)[2]), of_granule[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
