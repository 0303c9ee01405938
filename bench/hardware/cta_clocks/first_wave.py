#!/usr/bin/env python3
"""How much faster the older CTA of an SM is in PyTorch's FlashAttention 2, of whose kernels nothing is changed.

    bench/hardware/cta_clocks/first_wave.py ./libwatch_ends.so > docs/results/h200-sm/first_wave.csv

watch_ends.cu notes when each query tile of O is written, from an SM of its own; the others begin with two CTAs, of which
the one with the lower number is the older. It ends after a time t, the younger gap_us later, with the older's speed
since then: gap / t = 1 - younger's speed / older's. t is the time that the other CTAs take, by their number. lead:
thousandths by which the older's speed exceeds the mean of both. A few of the first wave's CTAs have another partner
(docs/results/h200-l2.md, dispatch); medians do not see them. Causal calls have few queries and many keys, of which all
query tiles see nearly as many.
"""

import csv
import ctypes
import statistics
import sys
import time

import torch

FILLED, LIMIT_MS = 0x7FFF, 200.0  # a NaN
# batch, heads, queries, keys, headdim, causal
CALLS = [(b, n, s, s, d, False)
         for b, n, s, d in [(1, 2, 65536, 128), (1, 16, 16384, 128), (1, 64, 8192, 128), (2, 16, 8192, 128),
                            (4, 16, 4096, 128), (1, 8, 32768, 64), (4, 32, 4096, 64), (4, 16, 4096, 96),
                            (1, 16, 16384, 96), (1, 16, 16384, 80), (4, 8, 4096, 256)]]
CALLS += [(1, 512, 1024, 16384, d, True) for d in [32, 64, 72, 80, 88, 96, 104, 128, 256]]


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


def lead(ends: list[int], sms: int) -> tuple[float, float, int]:
    """gap and t in us, and thousandths."""
    slots = 2 * sms
    gap = statistics.median(ends[sms:slots]) - statistics.median(ends[:sms])
    t = (max(ends) - min(ends)) * slots / (len(ends) - slots)
    part = gap / t
    return gap / 1e3, t / 1e3, round(1000 * part / (2 - part))


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    library.watch_ends.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
                                   ctypes.c_double, ctypes.c_void_p]
    sms = torch.cuda.get_device_properties(0).multi_processor_count - 1
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["batch", "nheads", "seqlen_q", "seqlen", "headdim", "causal", "repeat", "gap_us", "cta_us", "lead"])
    torch.manual_seed(0)
    for call in CALLS:
        for repeat in range(3):
            gap, t, thousandths = lead(ends_of(library, *call, 64 if call[4] == 256 else 128), sms)
            writer.writerow([*call[:5], int(call[5]), repeat, f"{gap:.1f}", f"{t:.1f}", thousandths])


if __name__ == "__main__":
    main()
