#!/usr/bin/env python3
"""What compiled attention kernels execute in each key tile: the innermost loops that hold matrix instructions, with
their instructions and the 32-bit words that a thread spills, beside those of the whole kernel.

    cuobjdump -sass FILE.cubin | bench/hardware/sass_loops.py [NAME_REGEX]

One line a loop: kernel, instructions, matrix instructions (HMMA m16n8k16 or HGMMA), exponentials, words stored and
loaded by spills in the loop, words stored in all of the kernel; with wgmma also which part of the loop's maxima stands
before all products are waited for, and which of its exponentials, in thousandths, added. A loop that contains another counts what is its own
beside it, as each of its turns runs the inner loop once or more.
"""

import re
import sys

INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?);")
BRANCH = re.compile(r"BRA(?:\.\w+)*\s+(?:!?U?P\d+,\s*)?(0x[0-9a-f]+)")


def opcode(text: str) -> list[str]:
    return re.sub(r"^@!?U?P\w+\s+", "", text).split()[0].split(".")


def words(body: list[tuple[int, str]], name: str) -> int:
    parts = [opcode(text) for _, text in body]
    return sum(4 if "128" in p else 2 if "64" in p else 1 for p in parts if p[0] == name)


def count(body: list[tuple[int, str]], *names: str) -> int:
    return sum(opcode(text)[0] in names for _, text in body)


def ahead(body: list[tuple[int, str]]) -> int | str:
    texts = [text for _, text in body]
    waits = [i for i, text in enumerate(texts) if text.startswith("WARPGROUP.DEPBAR.LE gsb0, 0x0")]
    if not waits:
        return ""
    totals = {name: count(body, name) for name in ("FMNMX", "MUFU")}
    return round(1000 * sum(count(body[: waits[0]], name) / total for name, total in totals.items() if total > 0))


def loops_of(code: list[tuple[int, str]]) -> list[tuple[int, int]]:
    at = {address: i for i, (address, _) in enumerate(code)}
    found = []
    for i, (address, text) in enumerate(code):
        branch = BRANCH.search(text)
        if branch and int(branch[1], 16) < address and int(branch[1], 16) in at:
            found.append((at[int(branch[1], 16)], i))
    return found


def report(name: str, code: list[tuple[int, str]]) -> None:
    rows = []
    for first, last in loops_of(code):
        body = code[first : last + 1]
        matrix, exponentials = count(body, "HMMA", "HGMMA"), count(body, "MUFU")
        if matrix > 0 and exponentials > 8:
            rows.append((len(body), matrix, exponentials, words(body, "STL"), words(body, "LDL"), ahead(body)))
    if not rows:
        return
    innermost = min(matrix for _, matrix, *_ in rows)
    for row in rows:
        if row[1] == innermost:
            print(name, *row[:-1], words(code, "STL"), row[-1], sep=",")


def main() -> int:
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    print("kernel,instructions,matrix,exponentials,spill_stored,spill_loaded,spill_stored_in_kernel,ahead")
    name: str | None = None
    code: list[tuple[int, str]] = []
    for line in sys.stdin:
        if "Function :" in line:
            if name and wanted.search(name):
                report(name, code)
            name, code = line.split()[-1], []
        elif match := INSTRUCTION.match(line):
            code.append((int(match[1], 16), match[2]))
    if name and wanted.search(name):
        report(name, code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
