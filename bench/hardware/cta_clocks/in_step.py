#!/usr/bin/env python3
"""How CTAs go that share an SM and keep in step, by the clocks that instrument.py has kernels note.

    bench/hardware/cta_clocks/in_step.py SEQLEN:FILE... > docs/results/h200-sm/in_step_ctas.csv

Of full attention over SEQLEN keys, tiles of 128 x 64, a file a launch of two waves or more. The first two CTAs of an SM end when its next two
begin. Columns: of later CTAs those that begin beside one of their head; how far those are apart that begin on an SM one
after the other, in parts of a key tile; the standard deviation of what SMs take for their first two, in parts of it; and
of TPCs those whose SMs are within half a microsecond then.
"""

import array
import collections
import pathlib
import statistics
import sys

TILE_M, TILE_N, TOGETHER_NS = 128, 64, 500


def row_of(path: pathlib.Path, seqlen: int) -> list:
    words = array.array("Q")
    words.frombytes(path.read_bytes())
    of_sm = collections.defaultdict(list)
    for cta, (begin, sm) in enumerate(zip(words[::2], words[1::2])):
        of_sm[sm].append((begin, cta * TILE_M // seqlen))
    same, apart, took = [], [], {}
    for sm, ctas in of_sm.items():
        ctas.sort()
        for (first, head), (second, other) in zip(ctas[2::2], ctas[3::2]):
            same.append(head == other)
            apart.append(second - first)
        if len(ctas) > 3:
            took[sm] = (ctas[2][0] + ctas[3][0] - ctas[0][0] - ctas[1][0]) / 2
    mates = [abs(took[sm] - took[sm + 1]) < TOGETHER_NS for sm in took if sm % 2 == 0 and sm + 1 in took]
    if not same or not mates:
        raise SystemExit(f"{path}: {len(words) // 2} CTAs are no two waves of two CTAs an SM")
    mean = statistics.fmean(took.values())
    lag = statistics.fmean(apart) / (mean / (seqlen / TILE_N))
    return [path.stem, len(words) // 2, f"{statistics.fmean(same):.3f}", f"{lag:.4f}",
            f"{statistics.pstdev(took.values()) / mean:.4f}", f"{statistics.fmean(mates):.2f}"]


def main() -> None:
    print("call,ctas,beside_its_head,lag,of_sm,mates")
    for argument in sys.argv[1:]:
        seqlen, _, file = argument.partition(":")
        if not seqlen.isdigit() or not file:
            raise SystemExit(f"{argument}: SEQLEN:FILE")
        print(*row_of(pathlib.Path(file), int(seqlen)), sep=",")


if __name__ == "__main__":
    main()
