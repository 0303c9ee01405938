#!/usr/bin/env python3
"""How far CTAs of cuDNN's forward walk apart on the SMs of one GPC, which have one clock; nothing of it is changed.

    bench/hardware/cta_clocks/one_gpc.py ./libone_gpc.so docs/results/h200-l2/sm_places.csv > one_gpc.csv

All other SMs are held (one_gpc.cu), and one of them watches when each query tile is written, of which every SM has one.
All read one head, from L2. deviation_ns is that of the tiles' ends: after n key tiles of time t, d * t * sqrt(n) where
one key tile's deviates by d of it. Where the watcher stood still for longer than tiles end apart there is no row.
"""

import csv
import ctypes
import statistics
import sys
import time

import torch

FILLED, LIMIT_MS, TILE_M, STOOD_STILL_NS = 0x7FFF, 100.0, 128, 8000  # filled: a NaN
CALLS = [(keys, headdim) for headdim in (64, 96, 128, 192, 256) for keys in (4096, 16384)]
CALLS += [(65536, 64), (65536, 96), (16440, 64), (16440, 128)]
FREE, WATCHES = 1, 2


def ends_of(library: ctypes.CDLL, gpc: list[int], keys: int, headdim: int) -> list[int]:
    """ns at which each warpgroup's part of O is seen."""
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    queries = 16 * TILE_M
    q, k, v = (torch.randn(1, rows, 1, headdim, dtype=torch.bfloat16, device="cuda").transpose(1, 2)
               for rows in (queries, keys, keys))
    attention = torch.ops.aten._scaled_dot_product_cudnn_attention
    attention(q, k, v, None, False, 0.0, False, False)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()  # in which O keeps its place
    with torch.cuda.graph(graph):
        o = attention(q, k, v, None, False, 0.0, False, False)[0]
    graph.replay()
    o.transpose(1, 2).view(torch.int16).fill_(FILLED)
    words = [o.data_ptr() + 2 * row * o.stride()[2] for row in range(0, queries, TILE_M // 2)]
    addresses = torch.tensor(words, dtype=torch.int64, device="cuda")
    when = torch.full((len(words),), 2**62, dtype=torch.int64, device="cuda")
    roles = torch.zeros(sms, dtype=torch.int32)
    roles[gpc] = FREE
    roles[0] = WATCHES
    on_device = roles.cuda()
    stop = torch.zeros(1, dtype=torch.int32, device="cuda")
    held = torch.zeros(1, dtype=torch.int32).pin_memory()
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    library.hold_sms(on_device.data_ptr(), sms, stop.data_ptr(), held.data_ptr(), addresses.data_ptr(), len(words), FILLED,
                     when.data_ptr(), LIMIT_MS, side.cuda_stream)
    began = time.time()
    while int(held[0]) < sms - len(gpc) and time.time() < began + LIMIT_MS / 2e3:
        pass
    time.sleep(3e-3)
    graph.replay()
    torch.cuda.synchronize()
    return when.tolist()


def deviation(ends: list[int]) -> float | None:
    """Of the query tiles' ends, each that of its second warpgroup."""
    if max(ends) - min(ends) > STOOD_STILL_NS or len(set(ends)) < 8:
        return None
    return statistics.stdev(max(pair) for pair in zip(ends[::2], ends[1::2]))


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    library.hold_sms.argtypes = [ctypes.c_void_p, ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_int, ctypes.c_int,
                                 ctypes.c_void_p, ctypes.c_double, ctypes.c_void_p]
    gpcs: dict[str, list[int]] = {}
    with open(sys.argv[2], newline="") as f:
        for row in csv.DictReader(f):
            gpcs.setdefault(row["gpc"], []).append(int(row["sm"]))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["keys", "headdim", "gpc", "repeat", "deviation_ns"])
    torch.manual_seed(0)
    for keys, headdim in CALLS:
        for gpc in ("4", "8"):
            for repeat in range(8):
                of_ends = deviation(ends_of(library, gpcs[gpc], keys, headdim))
                if of_ends is not None:
                    writer.writerow([keys, headdim, gpc, repeat, f"{of_ends:.0f}"])


if __name__ == "__main__":
    main()
