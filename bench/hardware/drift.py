#!/usr/bin/env python3
"""Summary of sm_probe's `drift`: how far CTAs are apart after n key tiles, and what their requests come to at L2.

    bench/hardware/run.py build/cuda/bin/sm_probe OUT drift          # under ncu
    bench/hardware/drift.py OUT/drift.csv OUT/drift_counters.csv > docs/results/h200-sm/drift.csv

Times are of the requests for K, in cycles; a step is from one to the next. GPCs have clocks of their own, so deviations
are over CTAs of one GPC (and of one turn: which of two CTAs of an SM), less their mean. Columns: mean step; deviation
of the GPCs' clocks (ppm); between the two turns' mean steps, and over CTAs' own mean steps (% of a step); deviation of
single steps (%), and their autocorrelation at lags 1, 2 and 8; for each n, the deviation of the time that n tiles take,
over step * sqrt(n) (walk_n, %: a random walk has the same at each n); and of pairs of CTAs of one GPC that read one
head, at tile n, how far apart they ask for it: median, and the share within a coalescer's windows, 60 and 430 cycles.
Last, requests for K and V that reach L2 over those of the SMs: as counted (less Q's), and as the times of the requests
give, if up to four of a GPC merge within a window of w cycles from the first (merged_w).
"""

import collections
import csv
import itertools
import multiprocessing
import statistics
import sys

LENGTHS = [1, 4, 16, 64, 256]
WINDOWS = [60, 100, 150, 200, 300, 430, 600]
SETTLED = 16  # tiles after which the start is forgotten
TILES = 320  # drift_tiles
KEY = ["matrix", "tile_n", "headdim", "warpgroups", "turns", "share", "source", "keys_a_query", "repeat"]
COUNTED = "lts__t_sectors_srcunit_tex_op_read.sum"


def less_mean(rows: list[list[float]]) -> list[list[float]]:
    means = [statistics.fmean(at) for at in zip(*rows)]
    return [[x - mean for x, mean in zip(row, means)] for row in rows]


def within(rows: list[list[float]], groups: list[tuple[int, int]]) -> list[list[float]]:
    """Each row less its group's mean; unbiased variances take as many degrees of freedom as there are left."""
    members = collections.defaultdict(list)
    for row, group in zip(rows, groups):
        members[group].append(row)
    return [
        [x * (len(group) / (len(group) - 1)) ** 0.5 for x in row]
        for group in members.values()
        if len(group) > 1
        for row in less_mean(group)
    ]


def deviation(rows: list[list[float]]) -> float:
    return statistics.fmean(x * x for row in rows for x in row) ** 0.5


def autocorrelation(steps: list[list[float]], lag: int) -> float:
    product = square = 0.0
    for cta in steps:
        mean = statistics.fmean(cta)
        off = [x - mean for x in cta]
        product += sum(a * b for a, b in zip(off, off[lag:])) / (len(off) - lag)
        square += sum(a * a for a in off) / len(off)
    return product / square if square else 0.0


def lags(asked: list[list[int]], places: list[tuple[int, int]], share: int, tile: int) -> list[int]:
    pairs = itertools.combinations(range(len(asked)), 2)
    return [
        abs(asked[a][tile] - asked[b][tile])
        for a, b in pairs
        if places[a][0] == places[b][0] and (share == 0 or a // share == b // share)
    ]


def summary(share: int, asked: list[list[int]], places: list[tuple[int, int]], mhz: list[float]) -> list[float]:
    steps = [[b - a for a, b in zip(cta[SETTLED:], cta[SETTLED + 1 :])] for cta in asked]
    means = [statistics.fmean(cta) for cta in steps]
    step = statistics.fmean(means)
    by_turn = [statistics.fmean(m for m, p in zip(means, places) if p[1] == turn) for turn in {p[1] for p in places}]
    off = within(steps, places)
    row = [step, 1e6 * statistics.pstdev(mhz) / statistics.fmean(mhz), 100 * (max(by_turn) - min(by_turn)) / step]
    row += [100 * deviation(within([[m] for m in means], places)) / step, 100 * deviation(off) / step]
    row += [autocorrelation(off, lag) for lag in (1, 2, 8)]
    for n in LENGTHS:
        spans = [[cta[t + n] - cta[t] for t in range(SETTLED, len(cta) - n, max(1, n // 4))] for cta in asked]
        row.append(100 * deviation(within(spans, places)) / step / n**0.5)
    for n in LENGTHS:
        apart = lags(asked, places, share, n)
        if not apart:
            row += [float("nan")] * 3
            continue
        row += [statistics.median(apart)] + [sum(x <= window for x in apart) / len(apart) for window in (60, 430)]
    return row


def requests_at_l2(asked: list[list[int]], gpcs: list[int], share: int, window: float) -> int:
    """How many of the requests for a tile are not merged into an earlier one."""
    sent = 0
    for t in range(len(asked[0])):
        readers = collections.defaultdict(list)
        for cta, times in enumerate(asked):
            readers[gpcs[cta], cta // share].append(times[t])
        for times in readers.values():
            first, merged = float("-inf"), 4
            for now in sorted(times):
                if merged == 4 or now > first + window:
                    first, merged, sent = now, 0, sent + 1
                merged += 1
    return sent


def summary_of_run(run: tuple[list[str], list[list[str]], float]) -> list[str]:
    key, rows, sectors = run
    of = dict(zip(KEY, key))
    share, on_sm = int(of["share"]), collections.defaultdict(set)
    asked, asked_v = collections.defaultdict(list), collections.defaultdict(list)
    place, mhz = {}, {}
    for cta, sm, gpc, clock, _, k, v, _ in rows:
        asked[int(cta)].append(int(k))
        asked_v[int(cta)].append(int(v))
        on_sm[sm].add(int(cta))
        place[int(cta)], mhz[int(cta)] = (int(gpc), sm), float(clock)
    ctas = sorted(asked)
    k, v = [asked[c] for c in ctas], [asked_v[c] for c in ctas]
    places = [(place[c][0], sorted(on_sm[place[c][1]]).index(c)) for c in ctas]
    row = summary(share, k, places, [mhz[c] for c in ctas])
    gpcs, requests = [p[0] for p in places], 2 * len(ctas) * TILES
    if share == 0:
        row += [float("nan")] * (1 + len(WINDOWS))
    else:
        headdim, warpgroups = int(of["headdim"]), int(of["warpgroups"])
        queries = 0 if of["matrix"] == "mma_sync" else TILES // int(of["keys_a_query"])
        of_q = len(ctas) * queries * warpgroups * 64 * headdim * 2
        row.append((32 * sectors - of_q) / (requests * int(of["tile_n"]) * headdim * 2))
        row += [sum(requests_at_l2(x, gpcs, share, w) for x in (k, v)) / requests for w in WINDOWS]
    return [*key, *(f"{x:.4g}" for x in row)]


def main() -> int:
    with open(sys.argv[2], newline="") as file:
        sectors = [float(r[COUNTED]) for r in csv.DictReader(file)]
    header = [*KEY, "step_cycles", "clock_ppm", "turns_apart", "speed_sd", "step_sd"]
    header += [f"autocorrelation_{lag}" for lag in (1, 2, 8)] + [f"walk_{n}" for n in LENGTHS]
    for n in LENGTHS:
        header += [f"lag_median_{n}", f"within_60_{n}", f"within_430_{n}"]
    header += ["counted", *(f"merged_{w}" for w in WINDOWS)]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    with open(sys.argv[1], newline="") as file, multiprocessing.Pool() as pool:
        file.readline()
        lines = (line.rstrip().split(",") for line in file)
        runs = itertools.groupby(lines, key=lambda fields: fields[: len(KEY)])
        tasks = ((key, [f[len(KEY) :] for f in rows], sectors[i]) for i, (key, rows) in enumerate(runs))
        writer.writerows(pool.imap(summary_of_run, tasks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
