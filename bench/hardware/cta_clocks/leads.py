#!/usr/bin/env python3
"""How much faster the older of two CTAs of an SM is, by the clocks that instrument.py has kernels note.

    ATTEST_CLOCKS=DIR/$i.clocks attest __measure CALL.json     # [{"kernel": ..., "case": ...}], row i of the panel's CSV
    bench/hardware/cta_clocks/leads.py PANEL.csv DIR > simulator/measured/cta_leads.csv

A CTA ends when the one begins that follows it on its SM, and of two that have the same work the older ends first. Its
time is parted into what it was the older one of its SM and the younger one. CTAs of a call have the same work
w = older_time / a + younger_time / b, and a and b are what fits all of them best: the microseconds that a CTA takes
which is always the older, or the younger. Each SM's last two CTAs are left out, and so are calls whose CTAs have
different work and grids without two CTAs on each SM. lead: thousandths by which the older's speed exceeds the mean of
both; left_over: deviation of the CTAs' work from w, in thousandths.
"""

import array
import collections
import csv
import json
import pathlib
import re
import statistics
import sys

SAME_US = 5  # began with the grid
COLUMNS = ["arch", "tile", "kind", "plan", "lead", "older_us", "younger_us", "left_over", "ctas", "case"]


def same_work(case: dict) -> bool:
    shaped = any(name in case for name in ("varlen_q", "varlen_k", "seqused_k", "prefix", "documents"))
    return case["causal"] == "none" and case["window_left"] < 0 and case["window_right"] < 0 and not shaped


def begins_of(path: pathlib.Path) -> dict[int, list[float]]:
    """Of each SM, when its CTAs began, in us; CTAs that began together are in the order of their numbers."""
    words = array.array("Q")
    words.frombytes(path.read_bytes())
    of_sm = collections.defaultdict(list)
    for begin, sm in sorted(zip(words[::2], words[1::2])):
        of_sm[sm].append(begin / 1e3)
    return of_sm


def shares(begins: list[float]) -> list[tuple[float, float]]:
    """Microseconds as the older and as the younger of two, of each CTA whose end is known."""
    spent = []
    for i in range(len(begins) - 2):
        begin, end = begins[i], begins[i + 2]
        older_from = begin if i == 0 else begins[i + 1]  # when the one before it ended
        spent.append((end - older_from, older_from - begin))
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
    of_sm = begins_of(clocks)
    together = [sum(t < begins[0] + SAME_US for t in begins) for begins in of_sm.values()]
    spent = [share for begins in of_sm.values() for share in shares(begins)]
    if statistics.median(together) != 2 or not spent:
        return None
    x, y = fitted(spent)
    off = statistics.pstdev(s[0] * x + s[1] * y for s in spent)
    tile, kind = (re.search(rf"{name}E(\d)", call["function"]) for name in ("Sm80Tile", "Sm80Kind"))
    plan = "attest" if call["kernel"] == "sm80" else call["kernel"]
    kernel = [90, tile[1] if tile else 2, kind[1] if kind else 0, plan]  # ablations are of the tile of 128 columns
    return kernel + [round(1000 * (x - y) / (x + y)), f"{1 / x:.2f}", f"{1 / y:.2f}", round(1000 * off), len(spent), call["case"]]


def main() -> None:
    with open(sys.argv[1], newline="") as file:
        calls = list(csv.DictReader(line for line in file if not line.startswith("#")))
    rows = [row_of(call, pathlib.Path(sys.argv[2]) / f"{i}.clocks") for i, call in enumerate(calls)]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(sorted((r for r in rows if r), key=lambda r: (r[3], int(r[1]), int(r[2]), -float(r[5]))))


if __name__ == "__main__":
    main()
