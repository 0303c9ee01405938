#!/usr/bin/env python3
"""Summary of sm_probe's `drift`: how far CTAs are apart after n key tiles, and what their steps are like.

    bench/hardware/drift.py OUT/drift.csv > docs/results/h200-sm/drift.csv

Times are of the requests for K, in cycles; a step is from one to the next. GPCs have clocks of their own, so deviations
are over CTAs of one GPC (and of one turn: which of two CTAs of an SM), less their mean. Columns: mean step; deviation
of the GPCs' clocks (ppm); between the two turns' mean steps, and over CTAs' own mean steps (% of a step); deviation of
single steps (%), and their autocorrelation at lags 1, 2 and 8; for each n, the deviation of the time that n tiles take,
over step * sqrt(n) (walk_n, %: a random walk has the same at each n); and of pairs of CTAs of one GPC that read one
head, at tile n, how far apart they ask for it: median, and the share within a coalescer's windows, 60 and 430 cycles.
"""

import collections
import csv
import itertools
import statistics
import sys

LENGTHS = [1, 4, 16, 64, 256]
SETTLED = 16  # tiles after which the start is forgotten


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


def main() -> int:
    runs = collections.defaultdict(lambda: collections.defaultdict(list))
    gpc, turn, mhz = (collections.defaultdict(dict) for _ in range(3))
    on_sm = collections.defaultdict(lambda: collections.defaultdict(set))
    with open(sys.argv[1], newline="") as file:
        for r in csv.DictReader(file):
            run, cta = (r["matrix"], int(r["share"]), r["source"], int(r["repeat"])), int(r["cta"])
            runs[run][cta].append(int(r["asked"]))
            on_sm[run][r["sm"]].add(cta)
            gpc[run][cta] = int(r["gpc"])
            turn[run][cta] = sorted(on_sm[run][r["sm"]]).index(cta)
            mhz[run][cta] = float(r["mhz"])
    header = ["matrix", "share", "source", "repeat", "step_cycles", "clock_ppm", "turns_apart", "speed_sd", "step_sd"]
    header += [f"autocorrelation_{lag}" for lag in (1, 2, 8)] + [f"walk_{n}" for n in LENGTHS]
    for n in LENGTHS:
        header += [f"lag_median_{n}", f"within_60_{n}", f"within_430_{n}"]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    for run, by_cta in runs.items():
        ctas = sorted(by_cta)
        row = summary(
            run[1],
            [by_cta[c] for c in ctas],
            [(gpc[run][c], turn[run][c]) for c in ctas],
            [mhz[run][c] for c in ctas],
        )
        writer.writerow([*run, *(f"{x:.4g}" for x in row)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
