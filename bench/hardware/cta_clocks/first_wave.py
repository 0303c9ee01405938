#!/usr/bin/env python3
"""How much faster the older CTA of an SM is in PyTorch's FlashAttention 2, of whose kernels nothing is changed.

    bench/hardware/cta_clocks/first_wave.py ./libwatch_ends.so > docs/results/h200-sm/first_wave.csv

watch_ends.cu notes when each query tile of O is written, from an SM of its own; the others begin with two CTAs, of which
the one with the lower number is the older. lead: thousandths by which the older's speed exceeds the mean of both.

Full attention: an older one ends after a time w / (1 + lead), where w is the time that the other CTAs take, by their
number; the younger one does then what it has still to do as the older, gap_us: gap / w = 2 lead / (1 + lead)^2.

Causal calls, whose query tiles come in the order of their lengths, so that the younger one has always more to do: the
older ones' ends, over their key tiles, lie on a line. Its slope is older_ns. mean_ns is what a CTA takes longer on
average for each key tile while all slots are full, beside a call of a third of the keys. Who begins an SM's second CTA is that of a few others' (docs/results/h200-l2.md,
dispatch); medians and lines do not see them.
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


def lead_of_gap(ends: list[int], sms: int) -> tuple[float, float, float]:
    """gap and w in us, and the lead."""
    slots = 2 * sms
    gap = statistics.median(ends[sms:slots]) - statistics.median(ends[:sms])
    w = (max(ends) - min(ends)) * slots / (len(ends) - slots)
    part = gap / w
    return gap / 1e3, w / 1e3, part / (1 - part + math.sqrt(1 - 2 * part))


def older_slope(ends: list[int], tiles: list[int], sms: int) -> float:
    """ns a key tile. `tiles`: key tiles of each of a head's CTAs."""
    first = range(30, sms - 6)
    return statistics.linear_regression([tiles[cta] for cta in first], [ends[cta] for cta in first]).slope


def average_cta(ends: list[int], tiles: list[int], sms: int) -> tuple[float, float]:
    """Its ns and key tiles, of those while all slots are full: from the second head's begin to the last one's."""
    slots, a_head = 2 * sms, len(tiles)
    in_order = sorted(ends)
    begins = [0] * slots + in_order[:-slots]
    begin, end = in_order[slots + a_head], in_order[-slots - a_head]
    ctas = key_tiles = 0.0
    for cta, (b, e) in enumerate(zip(begins, ends)):
        if b < end and e > max(b, begin):
            part = (min(e, end) - max(b, begin)) / (e - b)
            ctas, key_tiles = ctas + part, key_tiles + part * tiles[cta % a_head]
    return (end - begin) * slots / ctas, key_tiles / ctas


def lead_of_slope(ends: list[int], tiles: list[int], shorter: list[int], few_tiles: list[int],
                  sms: int) -> tuple[float, float, float]:
    """ns a key tile of the older and on average, and the lead. `tiles`: key tiles of each of a head's CTAs."""
    first = range(30, sms - 6)
    older = statistics.linear_regression([tiles[cta] for cta in first], [ends[cta] for cta in first]).slope
    (t, n), (t_few, n_few) = average_cta(ends, tiles, sms), average_cta(shorter, few_tiles, sms)
    mean = (t - t_few) / (n - n_few)
    return older, mean, mean / older - 1


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
                slope, mean, lead = lead_of_slope(ends, tiles, shorter, tiles[:fewer // tile_m], sms)
                measured = ["", "", f"{slope:.1f}", f"{mean:.1f}"]
            else:
                gap, w, lead = lead_of_gap(ends, sms)
                measured = [f"{gap:.1f}", f"{w:.1f}", "", ""]
            writer.writerow([*call[:5], int(causal), repeat, *measured, round(1000 * lead)])


if __name__ == "__main__":
    main()
