#!/usr/bin/env python3
"""How far CTAs of cuDNN's forward walk apart on SMs of one GPC, which have one clock; nothing of it is changed.

    bench/hardware/run.py l2_probe . sm_places    # of that very GPU
    bench/hardware/cta_clocks/one_gpc.py ./libone_gpc.so sm_places.csv > one_gpc.csv
    bench/hardware/cta_clocks/one_gpc.py ./libone_gpc.so sm_places.csv alone > one_sm.csv

All other SMs are held (one_gpc.cu), and one of them watches when each query tile is written. All read one head, from L2.
deviation_ns is that of the ends of the tiles that 16 SMs do as their first, their second and so on. Where the watcher
stood still, which is taken to be so where tiles end more than 8 us apart or fewer than four of them apart, there is no
row. `alone`: one SM after the other, tile_ns is what each of its
query tiles behind the first takes.
"""

import csv
import ctypes
import itertools
import statistics
import sys
import time

import torch

FILLED, LIMIT_MS, TILE_M, STOOD_STILL_NS = 0x7FFF, 100.0, 128, 8000  # filled: a NaN
HEADDIMS, SMS, REPEATS = (64, 96, 128, 192, 256), 16, 16
CALLS = [(keys, headdim, 1) for headdim in HEADDIMS for keys in (1024, 4096, 16384, 65536)]
CALLS += [(keys, headdim, 1) for headdim in (64, 128) for keys in (1032, 4104, 16392)]  # kernels that mask all tiles
CALLS += [(keys, headdim, 6) for headdim in HEADDIMS for keys in (1024, 4096)]
CALLS_ALONE = [(headdim, repeat) for headdim in HEADDIMS for repeat in range(4)]
FREE, WATCHES = 1, 2


def ends_of(library: ctypes.CDLL, free: list[int], tiles: int, keys: int, headdim: int) -> list[int]:
    """ns at which each query tile is seen to be written: its second warpgroup's part of O."""
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    queries = tiles * TILE_M
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
    roles[free] = FREE
    roles[0] = WATCHES
    on_device = roles.cuda()
    stop = torch.zeros(1, dtype=torch.int32, device="cuda")
    held = torch.zeros(1, dtype=torch.int32).pin_memory()
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    library.hold_sms(on_device.data_ptr(), sms, stop.data_ptr(), held.data_ptr(), addresses.data_ptr(), len(words), FILLED,
                     when.data_ptr(), LIMIT_MS, side.cuda_stream)
    began = time.time()
    while int(held[0]) < sms - len(free) and time.time() < began + LIMIT_MS / 2e3:
        pass
    time.sleep(3e-3)
    graph.replay()
    torch.cuda.synchronize()
    of_warpgroups = when.tolist()
    return sorted(max(pair) for pair in zip(of_warpgroups[::2], of_warpgroups[1::2]))


def deviation(ends: list[int]) -> float | None:
    if max(ends) - min(ends) > STOOD_STILL_NS or len(set(ends)) < SMS // 4:
        return None
    return statistics.stdev(ends)


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    library.hold_sms.argtypes = [ctypes.c_void_p, ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_int, ctypes.c_int,
                                 ctypes.c_void_p, ctypes.c_double, ctypes.c_void_p]
    gpcs: dict[str, list[int]] = {}
    with open(sys.argv[2], newline="") as f:
        for row in csv.DictReader(f):
            gpcs.setdefault(row["gpc"], []).append(int(row["sm"]))
    whole = [gpc for gpc, sms in gpcs.items() if len(sms) >= SMS and 0 not in sms]  # SM 0 watches
    writer = csv.writer(sys.stdout, lineterminator="\n")
    torch.manual_seed(0)
    if sys.argv[3:] == ["alone"]:
        writer.writerow(["headdim", "gpc", "sm", "repeat", "tile_ns"])
        for (headdim, repeat), gpc in itertools.product(CALLS_ALONE, whole[:3]):
            for sm in gpcs[gpc]:
                ends = ends_of(library, [sm], 5, 16384, headdim)
                writer.writerow([headdim, gpc, sm, repeat, f"{(ends[-1] - ends[0]) / (len(ends) - 1):.0f}"])
        return
    writer.writerow(["keys", "headdim", "gpc", "repeat", "tile", "deviation_ns"])
    for (keys, headdim, tiles), gpc, repeat in itertools.product(CALLS, whole, range(REPEATS)):
        ends = ends_of(library, gpcs[gpc][:SMS], tiles * SMS, keys, headdim)
        for tile in range(tiles):
            of_ends = deviation(ends[tile * SMS : (tile + 1) * SMS])
            if of_ends is not None:
                writer.writerow([keys, headdim, gpc, repeat, tile, f"{of_ends:.0f}"])


if __name__ == "__main__":
    main()
