#!/usr/bin/env python3
"""How much faster the older CTA of an SM is in PyTorch's FlashAttention 2, of whose kernels nothing is changed.

    bench/hardware/cta_clocks/first_wave.py ./libwatch_ends.so > docs/results/h200-sm/first_wave.csv

watch_ends.cu notes when each query tile of O is written, from an SM of its own; the others begin with two CTAs, of
which the one with the lower number is the older. lead: thousandths by which the older's speed exceeds the mean of both.
A few of the first wave's CTAs have another partner (docs/results/h200-l2.md, dispatch), which medians do not see, and
lines by little.

Full attention: an older one ends after a time w / (1 + lead), where w, cta_us, is the time that CTAs take while all
slots are full; the younger one does then what it has still to do as the older, gap_us: gap / w = 2 lead / (1 + lead)^2.

Causal calls: a CTA that begins as the older stays it until it ends, whoever is beside it. Query tiles come in the order
of their lengths, so the first wave's older CTAs end on a line over their key tiles. Its slope is older_ns. mean_ns is
what a CTA takes longer on average for each key tile while all slots are full, beside a call of a third of the keys.
"""

import csv
import ctypes
import math
import statistics
import sys
import time

import torch

FILLED, LIMIT_MS = 0x7FFF, 200.0  # a NaN
# batch, heads, queries, keys, headdim, causal
CALLS = [(b, n, s, s, d, False)
         for b, n, s, d in [(1, 2, 65536, 128), (1, 16, 16384, 128), (1, 64, 8192, 128), (2, 16, 8192, 128),
                            (4, 16, 4096, 128), (1, 8, 32768, 64), (4, 32, 4096, 64), (4, 16, 4096, 96),
                            (1, 16, 16384, 96), (1, 16, 16384, 80), (1, 16, 16384, 104), (4, 8, 4096, 256),
                            (1, 16, 16384, 256), (1, 16, 16384, 224)]]
CALLS += [(1, 16, 24576, 24576, d, True) for d in (32, 40, 64, 72, 80, 88, 96, 104, 112, 120, 128, 224, 256)]


def ends_of(library: ctypes.CDLL, batch: int, nheads: int, queries: int, keys: int, headdim: int, causal: bool,
            tile_m: int) -> list[int]:
    """ns at which each CTA's tile of O is seen, in the order of the grid: query tiles, batch, heads."""
    q, k, v = (torch.randn(batch, rows, nheads, headdim, dtype=torch.bfloat16, device="cuda").transpose(1, 2)
               for rows in (queries, keys, keys))
    attention = torch.ops.aten._scaled_dot_product_flash_attention
    attention(q, k, v, 0.0, causal, False)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()  # in which O keeps its place
    with torch.cuda.graph(graph):
        o = attention(q, k, v, 0.0, causal, False)[0]
    graph.replay()
    o.transpose(1, 2).view(torch.int16).fill_(FILLED)
    s = o.stride()
    words = [o.data_ptr() + 2 * (b * s[0] + h * s[1] + t * s[2])
             for h in range(nheads) for b in range(batch) for t in range(0, queries, tile_m)]
    addresses = torch.tensor(words, dtype=torch.int64, device="cuda")
    when = torch.zeros(len(words), dtype=torch.int64, device="cuda")
    running = torch.zeros(1, dtype=torch.int32).pin_memory()
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    library.watch_ends(addresses.data_ptr(), len(words), FILLED, when.data_ptr(), running.data_ptr(), LIMIT_MS,
                       side.cuda_stream)
    began = time.time()
    while int(running[0]) == 0 and time.time() < began + 2:
        pass
    graph.replay()
    torch.cuda.synchronize()
    if 0 in when.tolist():
        raise SystemExit("not every tile was seen")
    return when.tolist()


def average_cta(ends: list[int], tiles: list[int], sms: int) -> tuple[float, float]:
    """Its ns and key tiles, of those while all slots are full. `tiles`: key tiles of each of a head's CTAs.

    From when a wave and a head have ended, so that what began with the grid is done, until the last head begins.
    """
    slots, a_head = 2 * sms, len(tiles)
    in_order = sorted(ends)
    begins = [min(ends)] * slots + in_order[:-slots]
    begin, end = in_order[slots + a_head], in_order[-slots - a_head]
    ctas = key_tiles = 0.0
    for cta, (b, e) in enumerate(zip(begins, ends)):
        if b < end and e > max(b, begin):
            part = (min(e, end) - max(b, begin)) / (e - b)
            ctas, key_tiles = ctas + part, key_tiles + part * tiles[cta % a_head]
    return (end - begin) * slots / ctas, key_tiles / ctas


def lead_of_gap(ends: list[int], sms: int) -> tuple[float, float, float]:
    """gap and w in us, and the lead."""
    gap = statistics.median(ends[sms:2 * sms]) - statistics.median(ends[:sms])
    w = average_cta(ends, [1], sms)[0]
    part = gap / w
    return gap / 1e3, w / 1e3, part / (1 - part + math.sqrt(1 - 2 * part))


def older_slope(ends: list[int], tiles: list[int], sms: int) -> float:
    """ns a key tile of the first wave's older CTAs, but for the shortest ones and those beside the last SMs."""
    first = range(30, sms - 6)
    return statistics.linear_regression([tiles[cta] for cta in first], [ends[cta] for cta in first]).slope


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    library.watch_ends.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
                                   ctypes.c_double, ctypes.c_void_p]
    sms = torch.cuda.get_device_properties(0).multi_processor_count - 1
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["batch", "nheads", "seqlen_q", "seqlen", "headdim", "causal", "repeat", "gap_us", "cta_us",
                     "older_ns", "mean_ns", "lead"])
    torch.manual_seed(0)
    for call in CALLS:
        _, heads, queries, keys, headdim, causal = call
        tile_m, tile_n = 64 if headdim > 192 else 128, 128 if headdim <= 64 else 64
        for repeat in range(9 if causal else 3):
            ends = ends_of(library, *call, tile_m)
            if causal:
                fewer = queries // 3
                tiles = [-(-(tile + 1) * tile_m // tile_n) for tile in range(queries // tile_m)]
                shorter = ends_of(library, 1, 3 * heads, fewer, fewer, headdim, True, tile_m)
                t, n = average_cta(ends, tiles, sms)
                t_few, n_few = average_cta(shorter, tiles[:fewer // tile_m], sms)
                older, mean = older_slope(ends, tiles, sms), (t - t_few) / (n - n_few)
                lead, measured = mean / older - 1, ["", "", f"{older:.1f}", f"{mean:.1f}"]
            else:
                gap, w, lead = lead_of_gap(ends, sms)
                measured = [f"{gap:.1f}", f"{w:.1f}", "", ""]
            writer.writerow([*call[:5], int(causal), repeat, *measured, round(1000 * lead)])


if __name__ == "__main__":
    main()
