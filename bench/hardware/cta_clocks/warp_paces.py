#!/usr/bin/env python3
"""How far the warps of a CTA are apart between two barriers, in gpu/sm80's kernels that have one a key tile.

    bench/hardware/cta_clocks/warp_paces.py instrument PATH/TO/attest       # a checkout to be thrown away
    ATTEST_CLOCKS=FILE build/cuda/bin/attest measure CASE --kernel sm80-spill   # of that one
    bench/hardware/cta_clocks/warp_paces.py read FILE > docs/results/h200-sm/warp_paces.csv

Warps note the SM's clock behind a key tile's barrier, S = Q K^T, the softmax and O += P V: of the first 264 CTAs, the
first wave, 64 key tiles. Of each of the last three: cycles since the barrier and the standard deviation, in parts of
them, of a warp's from its CTA's mean; of a key tile its cycles, and their deviation; then of the CTA that began later how far it is in a key tile where the other
one of its SM begins one, by eighths.
"""

import collections
import pathlib
import statistics
import struct
import sys

import instrument

CTAS, WARPS, TILES, PLACES = 264, 4, 64, 4
WORDS = CTAS * WARPS * (TILES + 1) * PLACES  # what would be a 65th tile's is the warp's SM
NOTES = instrument.NOTES.split("static __device__ unsigned long long cta_clocks")[0] + f"""
static __device__ unsigned warp_clocks[{WORDS}];
static void write_clocks() {{
  static unsigned host[{WORDS}];
  cudaDeviceSynchronize();
  cudaMemcpyFromSymbol(host, warp_clocks, sizeof host);
  if (host[0] == 0) return;
  FILE* file = fopen(getenv("ATTEST_CLOCKS"), "wb");
  fwrite(host, 1, sizeof host, file);
  fclose(file);
}}
static const bool clocks_added = (add_clocks(&write_clocks), true);
"""
NOTE = f"""  ATTEST_DEVICE void note(int tile, int place) {{
    const unsigned cta = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    if (threadIdx.x % 32 != 0 || cta >= {CTAS} || tile >= {TILES}) return;
    unsigned now, sm;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    unsigned* const of_warp = warp_clocks + (cta * {WARPS} + threadIdx.x / 32) * {(TILES + 1) * PLACES};
    asm volatile("st.global.cg.u32 [%0], %1;" ::"l"(of_warp + tile * {PLACES} + place), "r"(now) : "memory");
    if (tile == 0) of_warp[{TILES * PLACES}] = sm;
  }}
"""
STEPS = ["if (plan.barrier_after_wait() && plan.arrives(work, ops.warp(), tile)) ops.barrier();",
         "k.read = k.next(k.read);", "ops.softmax(s, o, rows, first);", "v.read = v.next(v.read);"]


def write_notes(checkout: pathlib.Path) -> None:
    sm80, forward = checkout / "gpu/sm80", checkout / "gpu/plan/include/attest/plan/forward.h"
    source = forward.read_text()
    begin = source.index("ATTEST_ROLE void forward_multistage")
    end = source.index("ATTEST_ROLE void forward(const Plan", begin)
    role = source[begin:end]
    for place, step in enumerate(STEPS):
        if role.count(step) != 1:
            raise SystemExit(f"{forward}: {role.count(step)} steps like {step!r}")
        role = role.replace(step, f"{step}\n    ops.note(position - walk.first, {place});")
    forward.write_text(source[:begin] + role + source[end:])
    ops, launch = sm80 / "forward_ops.cuh", sm80 / "launch.cpp"
    commit = "  ATTEST_DEVICE void commit()"
    instrument.put(ops, commit, NOTE + commit)
    instrument.put(ops, "namespace attest::sm80 {\n\n/// A CTA's head of a tensor.",
                   NOTES + "\n/// A CTA's head of a tensor.")
    instrument.put(launch, "namespace attest::sm80 {\nnamespace {", instrument.CALLERS + "namespace {")
    instrument.put(launch, instrument.LAUNCHED,
                   instrument.LAUNCHED + '  if (getenv("ATTEST_CLOCKS")) for (auto write : clocks()) write();\n')


def read(path: pathlib.Path) -> None:
    words = struct.unpack(f"<{WORDS}I", path.read_bytes())
    tile_words, warp_words = PLACES, (TILES + 1) * PLACES

    def clock(cta: int, warp: int, tile: int, place: int) -> int:
        return words[(cta * WARPS + warp) * warp_words + tile * tile_words + place]

    tiles = [t for t in range(2, TILES) if clock(0, 0, t, 0) != 0]  # the first ones wait for DRAM
    print("what,place,cycles,deviation")
    for place, name in enumerate(["barrier", "scores", "softmax", "output"]):
        if place == 0:
            continue
        since, apart = [], []
        for cta in range(CTAS):
            for tile in tiles:
                passed = [(clock(cta, w, tile, place) - clock(cta, w, tile, 0)) % 2**32 for w in range(WARPS)]
                mean = statistics.fmean(passed)
                since.append(mean)
                apart += [p - mean for p in passed]
        # a mean of so few has some of what they are apart
        deviation = statistics.fmean(a * a for a in apart)**.5 * (WARPS / (WARPS - 1))**.5
        cycles = statistics.fmean(since)
        print(f"warps,{name},{cycles:.0f},{deviation / cycles:.4f}")
    turns = [(clock(cta, 0, t + 1, 0) - clock(cta, 0, t, 0)) % 2**32 for cta in range(CTAS) for t in tiles[:-1]]
    print(f"key tile,,{statistics.fmean(turns):.0f},{statistics.pstdev(turns) / statistics.fmean(turns):.4f}")
    of_sm = collections.defaultdict(list)
    for cta in range(CTAS):
        of_sm[words[cta * WARPS * warp_words + TILES * PLACES]].append(cta)
    eighths = collections.Counter()
    for ctas in of_sm.values():
        if len(ctas) != 2:
            continue
        older, younger = sorted(ctas, key=lambda cta: clock(cta, 0, 0, 0))
        begins = [clock(older, 0, t, 0) for t in tiles]
        for tile in tiles[1:-1]:
            at = clock(younger, 0, tile, 0)
            for begin, end in zip(begins, begins[1:]):
                if begin <= at < end:
                    eighths[int(8 * (at - begin) / (end - begin))] += 1
    for eighth in range(8):
        print(f"apart,{eighth},{eighths[eighth]},{eighths[eighth] / max(1, eighths.total()):.4f}")


def main() -> None:
    how, path = sys.argv[1], pathlib.Path(sys.argv[2])
    if how == "instrument":
        write_notes(path)
    elif how == "read":
        read(path)
    else:
        raise SystemExit(f"{how}: instrument or read")


if __name__ == "__main__":
    main()
