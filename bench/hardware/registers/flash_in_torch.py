#!/usr/bin/env python3
"""What FlashAttention 2's forward kernels do that a wheel of PyTorch carries: registers, code, and the 32-bit words a
thread spills, by key tile. simulator/measured/registers_fa2_torch.csv:

    cuobjdump -xelf sm_80.cubin,sm_86.cubin,sm_90.cubin,sm_100.cubin,sm_120.cubin libtorch_cuda.so
    flash_in_torch.py WHEEL libtorch_cuda.*.cubin [--nvdisasm PATH] [--cuobjdump PATH]

Of kernels in 16 bits without dropout and ALiBi; those for bfloat16 and float16 must agree. A kernel has the code of its
first key tiles, which may be masked, once for each of them, and then a loop. A row's words are those on every path of

    early    a CTA without key tiles
    first    one with a key tile; what stands before and behind all key tiles is among them
    second   and so on: one with a key tile more, as far as there is code for it
    enters   one with a key tile more, that of the loop's first turn, besides those of a turn
    whole    a turn of the loop
    other    some path and not every one of its kind: under a branch, or loaded under a predicate

each as instructions, words stored/loaded and instructions that do. A path copies the next key tile if there is one, and
takes branches that have no other side: before its key tiles those that copy, and behind them all, since rows are there. `frame_words` are the words
of the stack that are stored at all, `loop_words` those of them that a turn of the loop stores, `predicated_words` those
of the others that are stored under predicates alone, of a thread's columns as a rule.
"""
import collections
import itertools
import re
import subprocess

from sass import read_arguments
from spill_places import LOAD, SLOT, STORE, kernels, parts, spilled

NAME = re.compile(r"flash_fwd_kernelI23Flash_fwd_kernel_traitsILi(\d+)ELi(\d+)ELi(\d+)ELi(\d+)ELb0ELb0E\w*?(half|bfloat16)"
                  r"\w*?EELb(\d)ELb(\d)ELb(\d)ELb(\d)ELb(\d)ELb(\d)ELb(\d)ELb(\d)E")
RESOURCES = re.compile(r"Function (?P<name>\S+):\s+REG:(?P<registers>\d+) STACK:(?P<stack>\d+)")
FIRST = ("first", "second", "third", "fourth", "fifth")
PLACES = ("early", *FIRST, "enters", "whole", "other")
COUNTS = ("instructions", "stored", "loaded", "stores", "loads")
CASE = ("arch", "headdim", "tile_m", "tile_n", "num_warps", "causal", "local", "softcap", "even_mn", "even_k")


def multiplications(kernel, block):
    return sum(parts(text)[0] == "HMMA" for text in kernel.texts([block]))


def loop_of(kernel):
    """(head, blocks) of the natural loop that multiplies, of which there is one."""
    live = kernel.reach(0)
    before = collections.defaultdict(list)
    for block in live:
        for then in kernel.follow[block]:
            before[then].append(block)
    found = {}
    for latch in live:
        for head in kernel.follow[latch]:
            if latch in kernel.reach(0, {head}):
                continue  # the head does not dominate it
            blocks, left = {head}, [latch]
            while left:
                if (block := left.pop()) not in blocks:
                    blocks.add(block)
                    left += before[block]
            found.setdefault(head, set()).update(blocks)
    found = {head: blocks for head, blocks in found.items() if any(multiplications(kernel, x) for x in blocks)}
    if len(found) != 1:
        raise ValueError(f"{len(found)} loops multiply")
    return next(iter(found.items()))


def key_tiles(kernel, loop):
    """For each key tile that has code of its own before the loop, the blocks that multiply."""
    a_tile = sum(multiplications(kernel, block) for block in loop)
    tiles, done = [], a_tile
    for block in range(len(kernel.blocks)):
        if block in loop or not (n := multiplications(kernel, block)):
            continue
        if done == a_tile:
            tiles.append([])
            done = 0
        tiles[-1].append(block)
        done += n
        if done > a_tile:
            raise ValueError("a block multiplies for two key tiles")
    if done != a_tile:
        raise ValueError("a key tile is not whole")
    return tiles


def copy_behind(kernel, block):
    """The block, if there is one, that runs behind that one where there is another key tile to copy."""
    for side, other in itertools.permutations(kernel.follow[block], 2):
        ahead = kernel.reach(side, {other})
        if other in kernel.reach(side) and side not in kernel.reach(other, {block}) and any(
                parts(text)[0] == "LDGSTS" for text in kernel.texts(ahead)):
            return [side]
    return []


def branches_without_another_side(kernel, blocks, without):
    """(fork, side, where both meet) of those of these blocks that run something, or nothing in its place."""
    return sorted((fork, side, other) for fork in blocks for side, other in itertools.permutations(kernel.follow[fork], 2)
                  if side > fork and other in kernel.reach(side, without) and side not in kernel.reach(other, without))


def branches_behind(kernel, block, without):
    """What is taken of them behind that block, all key tiles being done: rows that are there have sums and are stored."""
    behind = set().union(*(kernel.reach(then, without) for then in kernel.follow[block]))
    return [side for _, side, _ in branches_without_another_side(kernel, behind, without)]


def branches_before(kernel, block, without):
    """And in front of it: rows that are there are copied."""
    before = [x for x in kernel.reach(0, without | {block}) if block in kernel.reach(x, without)]
    return [side for _, side, other in branches_without_another_side(kernel, before, without | {block})
            if any(parts(text)[0] == "LDGSTS" for text in kernel.texts([side]))]


def counts_of(kernel, blocks):
    texts = kernel.texts(blocks)
    sure = [text for text in texts if not text.startswith("@")]
    # Predicates are of a thread's columns, which some of a warp's threads have; where the branch behind stores the
    # same word, of going that way.
    for block in blocks:
        behind = [text for then in kernel.follow[block] if then in blocks for text in kernel.texts([then])]
        elsewhere = {SLOT.search(text)[0] for text in behind if spilled(text, STORE)}
        sure += [text for text in kernel.texts([block])
                 if text.startswith("@") and spilled(text, STORE) and SLOT.search(text)[0] not in elsewhere]

    def words(name):
        return [n for text in sure if (n := spilled(text, name))]

    stored, loaded = words(STORE), words(LOAD)
    return {"instructions": len(texts), "stored": sum(stored), "loaded": sum(loaded), "stores": len(stored),
            "loads": len(loaded)}


def on_paths(kernel, through, without, inside=None, start=0, ends=None):
    """(blocks that every path has which goes from `start` through those blocks, in their order, to an end, blocks that
    some path has)."""
    stops = [{start}, *({block} for block in through), kernel.exits if ends is None else ends]

    def passable(removed):
        return all(bool(kernel.reach(next(iter(a)), removed, inside) & b) for a, b in zip(stops, stops[1:]))

    some = set()
    for a, b in zip(stops, stops[1:]):
        ahead = kernel.reach(next(iter(a)), without, inside)
        some |= {block for block in ahead if kernel.reach(block, without, inside) & b}
    if not passable(without):
        raise ValueError(f"no path goes through {through}")
    every = [block for block in sorted(some) if not passable(without | {block})]
    return every, some


def stack_words_of(text):
    """That an instruction stores."""
    if not (n := spilled(text, STORE)):
        return []
    offset = re.search(r"\+(0x[0-9a-f]+)", SLOT.search(text)[0])
    at = int(offset[1], 16) if offset else 0
    return [at // 4 + i for i in range(n)]


def stack_words(kernel, blocks):
    return {word for text in kernel.texts(blocks) for word in stack_words_of(text)}


def words_in_part(kernel, loop):
    """Of the stack's, those that are stored under predicates alone, and outside of the loop."""
    def stored(predicated, blocks):
        texts = [text for text in kernel.texts(blocks) if text.startswith("@") == predicated]
        return {word for text in texts for word in stack_words_of(text)}

    return stored(True, range(len(kernel.blocks))) - stored(False, range(len(kernel.blocks))) - stack_words(kernel, loop)


def places_of(kernel, counts_of=counts_of):
    """(place -> counts, words of the frame, of it those that the loop stores, and that some threads alone may store)"""
    head, loop = loop_of(kernel)
    tiles = key_tiles(kernel, loop)
    in_loop = sorted(block for block in loop if multiplications(kernel, block))
    copies = [copy_behind(kernel, tile[0]) for tile in tiles]
    copy_in_loop = copy_behind(kernel, in_loop[0])
    found = {place: collections.Counter() for place in PLACES}
    sure, others = set(), set()

    def count(through, without=frozenset(), **inside):
        if through and not inside:
            through = [*branches_before(kernel, tiles[0][0], loop), *through,
                       *branches_behind(kernel, through[-1], loop.union(*tiles))]
        every, some = on_paths(kernel, through, set(without), **inside)
        sure.update(every), others.update(some)
        return collections.Counter(counts_of(kernel, every))

    found["early"] = count([], loop.union(*tiles))
    before, way = collections.Counter(), []
    for i, tile in enumerate(tiles):
        words = count([*way, tile[-1]], loop.union(*tiles[i + 1:]))
        way += [*copies[i], tile[-1]]
        found[FIRST[i]] = words - before
        before = words
    # a turn: from the loop's head round to it
    latches = {block for block in loop if head in kernel.follow[block]}
    found["whole"] = count([*copy_in_loop, in_loop[-1]], inside=loop, start=head, ends=latches)
    entered = count([*way, in_loop[-1]], copy_in_loop)
    found["enters"] = entered.copy()
    found["enters"].subtract(before)
    found["enters"].subtract(found["whole"])
    found["other"] = collections.Counter(counts_of(kernel, sorted(others - sure)))
    found["other"]["loaded"] += sum(spilled(text, LOAD) for text in kernel.texts(sorted(others | sure))
                                    if text.startswith("@"))
    frame = stack_words(kernel, range(len(kernel.blocks)))
    return found, len(frame), len(stack_words(kernel, loop)), len(words_in_part(kernel, loop))


def resources_of(cuobjdump, path):
    """A kernel's name -> (registers, bytes of its stack)."""
    text = subprocess.run([cuobjdump, "-res-usage", path], capture_output=True, text=True, check=True).stdout
    return {m["name"]: (int(m["registers"]), int(m["stack"])) for m in RESOURCES.finditer(text)}


def forward_kernels(args):
    """(what it is compiled for, Kernel, (registers, bytes of its stack)) of each kernel of those files."""
    for path in args.files:
        with open(path, "rb") as f:
            if b"flash_fwd_kernel" not in f.read():
                continue
        arch = re.search(r"sm_(\d+)", path)[1]
        resources = resources_of(args.cuobjdump, path)
        for name, kernel in kernels(args.nvdisasm, path):
            m = NAME.search(name)
            if name.startswith("$") or not m:
                continue
            dropout, causal, local, alibi, even_mn, even_k, softcap, returns_p = m.groups()[5:]
            if "1" not in (dropout, alibi, returns_p):
                case = tuple(map(int, (arch, *m.groups()[:4], causal, local, softcap, even_mn, even_k)))
                yield case, kernel, resources[name]


def main():
    args = read_arguments(__doc__, "--cuobjdump", "wheel")
    rows = {}
    for case, kernel, resources in forward_kernels(args):
        places, *frame = places_of(kernel)
        row = [*resources, 16 * len(kernel.code), *frame,
               *(places[place][count] for place in PLACES for count in COUNTS)]
        if rows.setdefault(case, row) != row:
            raise SystemExit(f"{case}: float16 and bfloat16 differ\n{rows[case]}\n{row}")
    print(f"# {args.wheel}; flash_in_torch.py")
    print(",".join((*CASE, "registers", "stack_bytes", "code_bytes", "frame_words", "loop_words", "predicated_words",
                    *(f"{place}_{count}" for place in PLACES for count in COUNTS))))
    for case in sorted(rows):
        print(",".join(map(str, (*case, *rows[case]))))


if __name__ == "__main__":
    main()
