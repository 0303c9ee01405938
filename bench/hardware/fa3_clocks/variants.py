#!/usr/bin/env python3
"""Has FlashAttention 3's forward leave out parts of what it moves, by flags that its caller passes as pointers.

    bench/hardware/fa3_clocks/variants.py change PATH/TO/flash-attention/hopper      # a checkout to be thrown away
    bench/hardware/fa3_clocks/variants.py calls > CALLS.csv
    ncu --kernel-name regex:device_kernel --clock-control none --cache-control all --metrics METRICS \\
        --csv --page raw --print-units base --log-file LOG.csv ./fa3_clocks CALLS.csv    # fa3_clocks.cu says how it is built
    bench/hardware/fa3_clocks/variants.py join CALLS.csv LOG.csv > docs/results/h200-l2/fa3_variants.csv

METRICS are the columns of that file. What is left out makes O wrong, not the kernel's walk.
"""

import csv
import pathlib
import sys

from instrument import insert

FLAGS = {  # as_is has none
    "no_prefetch": 1,  # of Q
    "no_q_hint": 2,
    "no_kv_hint": 4,
    "fixed_q": 8,  # every CTA reads the same tile
    "fixed_kv": 16,
    "no_o": 32,
    "no_lse": 64,
    "o_by_threads": 128,
    "o_shifted": 256,  # by three pages of 4 KiB; the caller does that
}
FIRST, REST = (4, 16, 16, 4096, 128, 0), [
    (32, 16, 16, 512, 128, 0),
    (4, 32, 8, 4096, 128, 0),
    (4, 16, 16, 4096, 128, 1),
    (4, 32, 32, 4096, 64, 0),
    (1, 32, 32, 2048, 64, 0),
]
OF_ALL = ["as_is", "no_prefetch", "no_q_hint", "fixed_kv", "fixed_kv+no_prefetch"]
OF_FIRST = ["no_prefetch+no_q_hint", "no_kv_hint", "fixed_q", "fixed_kv+fixed_q", "no_o", "fixed_kv+no_o",
            "fixed_kv+no_o+no_prefetch", "no_lse", "no_o+o_by_threads", "o_shifted"]  # fmt: skip
CALL = ["batch", "nheads", "nheads_k", "seqlen", "headdim", "causal"]


def given(pointer: str, name: str) -> str:
    return f"((reinterpret_cast<unsigned long long>(params.{pointer}) & {FLAGS[name]}) != 0)"


def replace(path: pathlib.Path, old: str, new: str, places: int = 1) -> None:
    source = path.read_text()
    if source.count(old) != places:
        raise SystemExit(f"{path}: {source.count(old)} places like {old!r}, not {places}")
    path.write_text(source.replace(old, new))


def change(root: pathlib.Path) -> None:
    mainloop, epilogue = root / "mainloop_fwd_sm90_tma_gmma_ws.hpp", root / "epilogue_fwd.hpp"
    load = {name: given("ptr_q_descale", name) for name in FLAGS}
    store = {name: given("seqused", name) for name in FLAGS}
    replace(mainloop, "if (Use_TMA_Q && thread_idx == 0) { prefetch(",
            f"if (Use_TMA_Q && thread_idx == 0 && !{load['no_prefetch']}) {{ prefetch(")  # fmt: skip
    normal = "TMA::CacheHintSm90::EVICT_NORMAL"
    replace(mainloop, "!Split ? TMA::CacheHintSm90::EVICT_FIRST", f"{load['no_q_hint']} ? {normal} : !Split ? TMA::CacheHintSm90::EVICT_FIRST", 2)
    replace(mainloop, "mcast_mask_kv, TMA::CacheHintSm90::EVICT_LAST", f"mcast_mask_kv, {load['no_kv_hint']} ? {normal} : TMA::CacheHintSm90::EVICT_LAST", 2)
    for tile in ("KgK", "VgVt"):
        replace(mainloop, f"t{tile}_TMA(_, n_block_idx, bidb_kv_idx)",
                f"t{tile}_TMA(_, {load['fixed_kv']} ? 0 : n_block_idx, {load['fixed_kv']} ? 0 : bidb_kv_idx)")  # fmt: skip
    replace(mainloop, "get_tma_tensor(params.shape_Q)(_, _, bidh, !is_varlen_q ? bidb : 0)",
            f"get_tma_tensor(params.shape_Q)(_, _, {load['fixed_q']} ? 0 : bidh, {load['fixed_q']} ? 0 : bidb)")  # fmt: skip
    replace(mainloop, "mQ), select<0, 2>(TileShape_MNK{}), make_coord(m_block, _0{}))", f"mQ), select<0, 2>(TileShape_MNK{{}}), make_coord({load['fixed_q']} ? 0 : m_block, _0{{}}))")
    replace(epilogue, "cute::copy(params.tma_store_O, tOsO, tOgO);", f"if (!{store['no_o']}) cute::copy(params.tma_store_O, tOsO, tOgO);")
    replace(epilogue, "{ mLSE(row) = lse(mi); }", f"{{ if (!{store['no_lse']}) mLSE(row) = lse(mi); }}")
    chunks = "kHeadDimV * 2 / 16"
    insert(
        epilogue,
        "if constexpr (Use_TMA_O) {\n",
        f"for (int i = {store['o_by_threads']} ? thread_idx : kBlockM * {chunks}; i < kBlockM * {chunks}; i += NumEpilogueThreads)\n"
        f"if (int const row = m_block * kBlockM + i / ({chunks}); row < seqlen_o)\n"
        f"__stcg(reinterpret_cast<int4*>(params.ptr_O + bidb * get<3>(params.stride_O) + bidh * get<2>(params.stride_O)"
        f" + row * get<0>(params.stride_O) + i % ({chunks}) * 8), make_int4(i, row, bidh, bidb));\n",
        "            Tensor mO = params.tma_store_O",
    )


def calls() -> None:
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(CALL + ["flags", "variant"])
    for call in [FIRST, *REST]:
        for name in OF_ALL + (OF_FIRST if call is FIRST else []):
            flags = sum(FLAGS.get(part, 0) for part in name.split("+"))
            out.writerow([*call, flags, name])


def join(calls_file: str, log: str) -> None:
    made = list(csv.DictReader(open(calls_file)))
    lines = [line for line in open(log) if line.startswith('"')]
    counted = [row for row in csv.DictReader(lines) if row["ID"]]
    if len(made) != len(counted):
        raise SystemExit(f"{log}: {len(counted)} launches of {len(made)} calls")
    metrics = sorted(name for name in counted[0] if name.endswith(".sum"))
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["variant", *CALL, *metrics])
    for call, row in zip(made, counted):
        out.writerow([call["variant"], *(call[c] for c in CALL), *(row[m].replace(",", "") for m in metrics)])


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("change", "calls", "join"):
        raise SystemExit(__doc__)
    {"change": lambda root: change(pathlib.Path(root)), "calls": calls, "join": join}[sys.argv[1]](*sys.argv[2:])
