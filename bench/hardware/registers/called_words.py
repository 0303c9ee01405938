#!/usr/bin/env python3
"""What a function that a kernel calls holds of its own in registers.

    called_words.py NAME FILE.cubin... [--nvdisasm PATH]

One line a file: the registers that the function whose name holds NAME writes, and the most of them alive at once; these
come on top of what the caller keeps across the call. The caller's own counts are no measure of that: nvdisasm takes a
call to define all registers that the calling convention gives away, while ptxas, which sees the function, has the caller
keep values in those that the function leaves alone. Where it finds room the most alive at once are a plan's
`refill_call_words` (NAME: copy_general).
"""
import re
import subprocess

from sass import read_arguments

INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?);\s*//\s*\|\s?(.*)$")
FIRST_COLUMN, REGISTERS = 4, 255  # of the life ranges, behind the number of live registers


def life_ranges(nvdisasm, path, name):
    """Of each instruction of the function: register -> its mark, but at calls of its own."""
    said = subprocess.run([nvdisasm, "-c", "-plr", "-lrm", "narrow", path], capture_output=True, text=True, check=True).stdout
    inside, found = False, []
    for line in said.splitlines():
        if line.startswith("$"):
            inside = name in line
        elif line.startswith(".text"):
            inside = False
        elif inside and (instruction := INSTRUCTION.match(line)) and not instruction[1].startswith("CALL"):
            columns = instruction[2][FIRST_COLUMN:FIRST_COLUMN + REGISTERS]
            found.append({register: mark for register, mark in enumerate(columns) if mark in ":^vx"})
    return found


def main():
    args = read_arguments(__doc__, "name")
    for path in args.files:
        ranges = life_ranges(args.nvdisasm, path, args.name)
        written = {register for alive in ranges for register, mark in alive.items() if mark in "^x"}
        most = max((len(written & alive.keys()) for alive in ranges), default=0)
        print(f"{path}: writes {len(written)}, most alive {most}")


if __name__ == "__main__":
    main()
