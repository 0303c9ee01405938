#!/usr/bin/env python3
"""How far apart CTAs of an SM begin, pair by pair, and SMs, by the clocks that instrument.py has kernels note.

    bench/hardware/cta_clocks/lags.py CALL:SEQLEN:FILE,FILE... ... > docs/results/h200-sm/in_step_lags.csv
    bench/hardware/cta_clocks/lags.py --places sm_places.csv CALL:SEQLEN:FILE,FILE... ... > .../in_step_gpcs.csv

Of full attention over SEQLEN keys in tiles of 128 x 64 with two CTAs an SM, files of several launches of a call. Pair 0 of
an SM are its first two CTAs, pair 1 those that begin when they end, and so on. Columns: the call, key tiles a CTA, the pair,
how many there are; in parts of a key tile the mean and the standard deviation of how far its CTAs begin apart, and
quantiles; the standard deviation of when SMs begin theirs, and of how far the two SMs of a TPC begin apart; and
nanoseconds of a key tile. With that GPU's `l2_probe OUT sm_places`, of when SMs begin the first of the two: the standard
deviation of GPCs' medians, quantiles about an SM's GPC's, and the parts of the TPCs whose SMs begin their first ones, and
their second ones, within 64 ns.
"""

import argparse
import array
import collections
import csv
import pathlib
import statistics

TILE_N, TOGETHER_NS = 64, 64
QUANTILES = 0.05, 0.25, 0.5, 0.75, 0.95
IN_GPC = 0.05, 0.16, 0.84, 0.95


def begins(path: pathlib.Path) -> dict:
    words = array.array("Q")
    words.frombytes(path.read_bytes())
    of_sm = collections.defaultdict(list)
    earliest = min(words[::2])  # a double has 256 ns of the timer itself
    for begin, sm in zip(words[::2], words[1::2]):
        of_sm[sm].append(begin - earliest)
    return {sm: sorted(ctas) for sm, ctas in of_sm.items()}


def quantile(ordered: list, part: float) -> float:
    return ordered[int(part * (len(ordered) - 1))]


def of_gpcs(pair: int, launches: list, gpcs: dict, tile: float) -> list:
    medians, about, together = [], [], [[], []]
    for of_sm in launches:
        ctas = {sm: begins[2 * pair : 2 * pair + 2] for sm, begins in of_sm.items() if len(begins) > 2 * pair + 1}
        members = collections.defaultdict(list)
        for sm, (first, _) in ctas.items():
            members[gpcs[sm]].append(first)
        median = {gpc: statistics.median(firsts) for gpc, firsts in members.items()}
        medians.append(statistics.pstdev(median.values()) / tile)
        about += [(first - median[gpcs[sm]]) / tile for sm, (first, _) in ctas.items()]
        for sm in ctas:
            if sm % 2 == 0 and sm + 1 in ctas:
                for which in (0, 1):
                    together[which].append(abs(ctas[sm][which] - ctas[sm + 1][which]) <= TOGETHER_NS)
    about.sort()
    values = [statistics.fmean(medians), *(quantile(about, part) for part in IN_GPC), *map(statistics.fmean, together)]
    return [f"{value:.4f}" for value in values]


def print_call(call: str, tiles: int, launches: list, gpcs: dict) -> None:
    apart, sms, mates = (collections.defaultdict(list) for _ in range(3))
    took = []
    for of_sm in launches:
        middle = collections.defaultdict(dict)
        for sm, ctas in of_sm.items():
            if len(ctas) > 3:
                took.append((ctas[2] + ctas[3] - ctas[0] - ctas[1]) / 2)
            for pair, (first, second) in enumerate(zip(ctas[::2], ctas[1::2])):
                apart[pair].append(second - first)
                middle[pair][sm] = (first + second) / 2
        for pair, times in middle.items():
            mean = statistics.fmean(times.values())
            sms[pair] += [time - mean for time in times.values()]
            mates[pair] += [times[sm] - times[sm + 1] for sm in times if sm % 2 == 0 and sm + 1 in times]
    tile = statistics.fmean(took) / tiles
    for pair, of_pair in sorted(apart.items()):
        of_pair.sort()
        ns = [statistics.fmean(of_pair), statistics.pstdev(of_pair)]
        ns += [quantile(of_pair, part) for part in QUANTILES]
        ns += [statistics.pstdev(sms[pair]), statistics.pstdev(mates[pair])]
        more = of_gpcs(pair, launches, gpcs, tile) if gpcs else []
        print(call, tiles, pair, len(of_pair), *(f"{x / tile:.4f}" for x in ns), f"{tile:.0f}", *more, sep=",")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--places", type=pathlib.Path)
    parser.add_argument("calls", nargs="+", metavar="CALL:SEQLEN:FILE,FILE...")
    arguments = parser.parse_args()
    gpcs = {}
    if arguments.places:
        with open(arguments.places, newline="") as file:
            gpcs = {int(row["sm"]): row["gpc"] for row in csv.DictReader(file)}
    more = ",gpcs,gpc_q05,gpc_q16,gpc_q84,gpc_q95,first_together,second_together" if gpcs else ""
    print("call,tiles,pair,pairs,lag,deviation,q05,q25,median,q75,q95,sms,mates,tile_ns" + more)
    for argument in arguments.calls:
        call, seqlen, files = argument.split(":", 2)
        launches = [begins(pathlib.Path(file)) for file in files.split(",")]
        print_call(call, int(seqlen) // TILE_N, launches, gpcs)


if __name__ == "__main__":
    main()
