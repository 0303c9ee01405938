#!/usr/bin/env python3
"""What the clocks of FlashAttention 3's CTAs say (fa3_clocks.cu), a row a call.

    bench/hardware/fa3_clocks/summary.py CLOCKS.bin > docs/results/h200-sm/fa3_clocks.csv
    bench/hardware/fa3_clocks/summary.py CLOCKS.bin gpcs > docs/results/h200-sm/fa3_gpcs.csv

clock_sd: deviation of the GPCs' clocks, as a fraction (SMs of one GPC run at the same). In cycles: prologue, from a CTA's
start to its first copy; exit, from its last products to its end; a key tile (step, median, from the fourth on of a query
tile) and its deviation (step_sd, %). A query tile takes tile_cycles for each key tile and query_cycles beside (least
squares from products done to products done; with one length of query tiles, query_cycles is what steps leave). Pairs of
CTAs of one GPC that read the same keys: deviation of one's time over n key tiles, over step * sqrt(n) (walk_n, %), and
the median of how far apart they are (lag, cycles, within two steps).

gpcs: a row a GPC, by its lowest SM: how many SMs it has, its clock over the mean of the GPCs in each call, and for each
call which of the 132 CTAs is the first it holds (those on GPC 0's first eight SMs come before all).
"""

import array
import collections
import itertools
import csv
import statistics
import struct
import sys

READINGS, FIRST, LENGTHS = 32, 64, [1, 4, 16]
Cta = collections.namedtuple("Cta", "sm start end k tile done")


def read_calls(path: str):
    with open(path, "rb") as file:
        while head := file.read(32):
            *call, tiles, ctas = struct.unpack("8i", head)
            clocks, words = array.array("q"), array.array("q")
            clocks.fromfile(file, 2 * ctas * READINGS * 2)
            words.fromfile(file, ctas * (FIRST + 4 * tiles))
            yield call, clocks, [words[i : i + FIRST + 4 * tiles] for i in range(0, len(words), FIRST + 4 * tiles)]


def sm_clocks(clocks: array.array, sms: int) -> list[tuple[int, float, float]]:
    """Of each SM: cycles a ns, a moment by the global timer (ns from the first) and its clock then."""
    first_ns = min(clocks[1::2])
    result = []
    for sm in range(sms):
        at = [range((when * sms + sm) * READINGS * 2, (when * sms + sm + 1) * READINGS * 2, 2) for when in (0, 1)]
        base = clocks[at[0][0]]
        cycles = [statistics.fmean(clocks[i] - base for i in readings) for readings in at]
        ns = [statistics.fmean(clocks[i + 1] - first_ns for i in readings) for readings in at]
        rate = (cycles[1] - cycles[0]) / (ns[1] - ns[0])
        result.append((rate, base, ns[0] - cycles[0] / rate))
    return result


def gpcs_of(rates: list[float]) -> list[float]:
    """Of each SM its GPC's clock: SMs of one GPC differ by 1e-5."""
    clock, last = {}, None
    for rate in sorted(rates):
        if last is None or rate > last * 1.00005:
            gpc = rate
        clock[rate] = gpc
        last = rate
    return [clock[rate] for rate in rates]


def cta_of(words: array.array) -> Cta:
    k = words[FIRST::4]
    n = sum(1 for x in k if x != 0)
    return Cta(words[0], words[1], words[2], k[:n], words[FIRST + 2 :: 4][:n], words[FIRST + 3 :: 4][:n])


def query_tiles(cta: Cta) -> list[range]:
    starts = [i for i in range(len(cta.tile)) if i == 0 or cta.tile[i] >> 16 != cta.tile[i - 1] >> 16]
    return [range(a, b) for a, b in zip(starts, starts[1:] + [len(cta.tile)])]


def pairs(ctas: list[Cta], clocks: list[tuple[int, float, float]], gpcs: list[float], group: int, step: float):
    """How far apart two CTAs of a GPC are at each key tile that both read."""
    readers = collections.defaultdict(list)
    for cta in ctas:
        _, base, ns = clocks[cta.sm]
        gpc = gpcs[cta.sm]
        for tiles in query_tiles(cta):
            of = cta.tile[tiles[0]]
            at = {cta.tile[i] & 0xFFFF: cta.k[i] - base + ns * gpc for i in tiles[2:]}
            readers[gpc, of >> 48, (of >> 32 & 0xFFFF) // group].append(at)
    for same in readers.values():
        for a, b in itertools.combinations(same, 2):
            apart = [a[t] - b[t] for t in sorted(a.keys() & b.keys(), reverse=True)]
            if apart and abs(statistics.median(apart)) < 2 * step:
                yield apart


def summary(call: list[int], readings: array.array, logs: list[array.array]) -> list[float]:
    clocks = sm_clocks(readings, len(logs))
    gpcs = gpcs_of([rate for rate, _, _ in clocks])
    ctas = [cta_of(words) for words in logs]
    steps, lengths, times = [], [], []
    for cta in ctas:
        tiles = query_tiles(cta)
        steps += [cta.k[i] - cta.k[i - 1] for t in tiles for i in t[4:]]
        for before, t in zip(tiles, tiles[1:]):
            lengths.append(len(t))
            times.append(cta.done[t[-1]] - cta.done[before[-1]])
    step = statistics.median(steps or [0])
    if len(set(lengths)) > 1:
        slope, beside = statistics.linear_regression(lengths, times)
    else:
        slope, beside = float("nan"), statistics.fmean(times) - lengths[0] * statistics.fmean(steps)
    row = [statistics.pstdev(set(gpcs)) / statistics.fmean(set(gpcs))]
    row += [statistics.fmean(c.k[0] - c.start for c in ctas), statistics.fmean(c.end - c.done[-1] for c in ctas)]
    row += [step, 100 * statistics.pstdev(steps) / step if steps else float("nan"), slope, beside]
    apart = list(pairs(ctas, clocks, gpcs, call[1] // call[2], step or 1e9))
    for n in LENGTHS:
        squares = [(b - a) ** 2 for x in apart for a, b in zip(x, x[n:])]
        enough = len(squares) > 1000 and step > 0
        row.append(100 * (statistics.fmean(squares) / 2 / n) ** 0.5 / step if enough else float("nan"))
    row.append(statistics.median(abs(x) for a in apart for x in a) if apart else float("nan"))
    return row


def of_gpcs(path: str) -> list[list]:
    calls = list(read_calls(path))
    rates = [[rate for rate, _, _ in sm_clocks(readings, len(logs))] for _, readings, logs in calls]
    gpcs: list[list[int]] = []  # SMs that run alike in every call
    for sm in range(len(rates[0])):
        alike = [gpc for gpc in gpcs if all(abs(of[sm] / of[gpc[0]] - 1) < 2e-4 for of in rates)]
        if alike:
            alike[0].append(sm)
        else:
            gpcs.append([sm])
    clocks = [[statistics.fmean(of[sm] for sm in gpc) for gpc in gpcs] for of in rates]
    names = ["-".join(str(x) for x in call[:6]) for call, _, _ in calls]
    rows = [["lowest_sm", "sms", *(f"clock {n}" for n in names), *(f"first {n}" for n in names)]]
    for i, gpc in enumerate(gpcs):
        firsts = [[cta for cta, words in enumerate(logs) if words[0] in gpc] for _, _, logs in calls]
        first = [next((b for a, b in zip(of, of[1:]) if b != a + 1), of[0]) if of[0] == 0 else of[0] for of in firsts]
        rows.append([gpc[0], len(gpc), *(f"{of[i] / statistics.fmean(of):.4f}" for of in clocks), *first])
    return rows


def main() -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if sys.argv[2:] == ["gpcs"]:
        writer.writerows(of_gpcs(sys.argv[1]))
        return
    columns = ["clock_sd", "prologue", "exit", "step", "step_sd", "tile_cycles", "query_cycles"]
    writer.writerow(["batch", "nheads", "nheads_k", "seqlen", "headdim", "causal", *columns]
                    + [f"walk_{n}" for n in LENGTHS] + ["lag"])
    for call, readings, logs in read_calls(sys.argv[1]):
        writer.writerow([*call, *(f"{x:.4g}" for x in summary(call, readings, logs))])


if __name__ == "__main__":
    main()
