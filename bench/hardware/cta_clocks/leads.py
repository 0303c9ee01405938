#!/usr/bin/env python3
"""How much faster the older of two CTAs of an SM is, by the clocks that instrument.py has kernels note.

    i=0; cut ... ATTEST_CLOCKS=DIR/$i.clocks attest __measure CALL.json      # for each call of a panel's CSV
    bench/hardware/cta_clocks/leads.py PANEL.csv DIR > simulator/measured/cta_leads.csv

A CTA's time is parted into what it was the older one of its SM, the younger one and alone. CTAs of a call have the same
work w = older_time / a + younger_time / b, and a and b are what fits all of them best: the microseconds that a CTA takes
which is always the older, or the younger. Calls whose CTAs have different work, and grids that leave SMs with one CTA or
with three, are left out. lead: thousandths by which the older's speed exceeds the mean of both; left_over: deviation of
the CTAs' work from w, in thousandths.
"""

import array
import collections
import csv
import json
import pathlib
import re
import statistics
import sys

SAME_US = 0.3  # began together: then by their numbers
COLUMNS = ["arch", "tile", "kind", "plan", "lead", "older_us", "younger_us", "alone_us", "left_over", "ctas", "case"]


def same_work(case: dict) -> bool:
    shaped = any(name in case for name in ("varlen_q", "varlen_k", "seqused_k", "prefix", "documents"))
    return case["causal"] == "none" and case["window_left"] < 0 and case["window_right"] < 0 and not shaped


def clocks_of(path: pathlib.Path) -> list[tuple[int, float, float, int]]:
    """(CTA, begin in us, end in us, SM) of each."""
    words = array.array("Q")
    words.frombytes(path.read_bytes())
    start = min(words[::3])
    return [(i // 3, (words[i] - start) / 1e3, (words[i + 1] - start) / 1e3, words[i + 2]) for i in range(0, len(words), 3)]


def older(a: tuple, b: tuple) -> bool:
    return a[0] < b[0] if abs(a[1] - b[1]) < SAME_US else a[1] < b[1]


def shares(cta: tuple, others: list[tuple]) -> list[float]:
    """Microseconds as the older, the younger and alone; beside two others: of all of its SM's times."""
    times = sorted({cta[1], cta[2]} | {t for o in others for t in o[1:3] if cta[1] < t < cta[2]})
    spent = [0.0] * 4
    for begin, end in zip(times, times[1:]):
        beside = [o for o in others if o[1] <= begin and o[2] >= end]
        spent[2 if not beside else 3 if len(beside) > 1 else 0 if older(cta, beside[0]) else 1] += end - begin
    return spent


def fitted(spent: list[list[float]]) -> tuple[float, float]:
    """x and y for which older * x + younger * y is nearest to 1 over all CTAs."""
    oo, oy, yy = (sum(s[i] * s[j] for s in spent) for i, j in ((0, 0), (0, 1), (1, 1)))
    o, y = sum(s[0] for s in spent), sum(s[1] for s in spent)
    determinant = oo * yy - oy * oy
    return (o * yy - y * oy) / determinant, (y * oo - o * oy) / determinant


def row_of(call: dict, clocks: pathlib.Path) -> list | None:
    case = json.loads(call["case"])
    if call["launch"] != "0" or not clocks.exists() or not same_work(case):
        return None
    of_sm = collections.defaultdict(list)
    for cta in clocks_of(clocks):
        of_sm[cta[3]].append(cta)
    spent = [shares(cta, [o for o in ctas if o is not cta]) for ctas in of_sm.values() for cta in ctas]
    both = [s for s in spent if s[2] < 0.02 * (s[0] + s[1])]
    if any(s[3] > 0 for s in spent) or len(both) < len(of_sm):
        return None
    x, y = fitted(both)
    off = statistics.pstdev(s[0] * x + s[1] * y for s in both)
    lone = [s for s in spent if s[2] > 0.02 * (s[0] + s[1])]
    alone = sum(s[2] ** 2 for s in lone) / sum(s[2] * (1 - s[0] * x - s[1] * y) for s in lone) if lone else 0
    tile, kind = (re.search(rf"{name}E(\d)", call["function"]) for name in ("Sm80Tile", "Sm80Kind"))
    plan = "attest" if call["kernel"] == "sm80" else call["kernel"]
    kernel = [90, tile[1] if tile else 2, kind[1] if kind else 0, plan]  # ablations are of the tile of 128 columns
    return kernel + [round(1000 * (x - y) / (x + y)), f"{1 / x:.2f}", f"{1 / y:.2f}", f"{alone:.2f}", round(1000 * off),
                     len(both), call["case"]]


def main() -> None:
    with open(sys.argv[1], newline="") as file:
        calls = list(csv.DictReader(line for line in file if not line.startswith("#")))
    rows = [row_of(call, pathlib.Path(sys.argv[2]) / f"{i}.clocks") for i, call in enumerate(calls)]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(sorted((r for r in rows if r), key=lambda r: (r[3], int(r[1]), int(r[2]), -float(r[5]))))


if __name__ == "__main__":
    main()
