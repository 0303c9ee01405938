#!/usr/bin/env python3
"""How far apart CTAs of an SM begin, pair by pair, and SMs, by the clocks that instrument.py has kernels note.

    bench/hardware/cta_clocks/lags.py CALL:SEQLEN:FILE,FILE... ... > docs/results/h200-sm/in_step_lags.csv

Of full attention over SEQLEN keys in tiles of 128 x 64 with two CTAs an SM, files of several launches of a call. Pair 0 of
an SM are its first two CTAs, pair 1 those that begin when they end, and so on. Columns: the call, key tiles a CTA, the pair,
how many there are; in parts of a key tile the mean and the standard deviation of how far its CTAs begin apart, and
quantiles; the standard deviation of when SMs begin theirs, and of how far the two SMs of a TPC begin apart; and
nanoseconds of a key tile.
"""

import array
import collections
import pathlib
import statistics
import sys

TILE_N = 64
QUANTILES = 0.05, 0.25, 0.5, 0.75, 0.95


def begins(path: pathlib.Path) -> dict:
    words = array.array("Q")
    words.frombytes(path.read_bytes())
    of_sm = collections.defaultdict(list)
    for begin, sm in zip(words[::2], words[1::2]):
        of_sm[sm].append(begin)
    return {sm: sorted(ctas) for sm, ctas in of_sm.items()}


def print_call(call: str, tiles: int, launches: list) -> None:
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
        ns += [of_pair[int(part * (len(of_pair) - 1))] for part in QUANTILES]
        ns += [statistics.pstdev(sms[pair]), statistics.pstdev(mates[pair])]
        print(call, tiles, pair, len(of_pair), *(f"{x / tile:.4f}" for x in ns), f"{tile:.0f}", sep=",")


def main() -> None:
    print("call,tiles,pair,pairs,lag,deviation,q05,q25,median,q75,q95,sms,mates,tile_ns")
    for argument in sys.argv[1:]:
        call, seqlen, files = argument.split(":", 2)
        print_call(call, int(seqlen) // TILE_N, [begins(pathlib.Path(file)) for file in files.split(",")])


if __name__ == "__main__":
    main()
