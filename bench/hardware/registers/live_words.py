#!/usr/bin/env python3
"""What compiled attention kernels hold in registers across their loop over key tiles.

    live_words.py FILE.cubin... [--nvdisasm PATH]

Needs an nvdisasm that prints life ranges of what the compiler at hand makes (its own release or later). One line an
innermost loop that multiplies: registers live at its head, the least between there and its first matrix step, the most in
all of it, those live at a call of a function before that step, and the kernel's spill stores. Less O's accumulators, the
rows' state and what of Q stays in registers, the head's (where the compiler has rotated the loop or calls nothing: the
least) are a plan's `loop_words`, as long as nothing is spilled; what a call has more, its `refill_call_words`. A line too
for the part of a warp-specialised kernel behind setmaxnreg that gives registers away: the most that is live there, which
with what it spills and the two that the hardware's own take (the stack pointer, an odd one) is a plan's `producer_words`.
"""
import re
import subprocess

from sass import LABEL, TEXT, constants_of, read_arguments

INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?);\s*//\s*\|\s*(\d*)")
BRANCH = re.compile(r"BRA.*\((\.L_x_\d+)\)")
MATRIX = re.compile(r"\b(HMMA|HGMMA)\b")


def kernels(nvdisasm, path):
    """(name, [(instruction, live registers)], label -> index)"""
    command = [nvdisasm, "-c", "-plr", "-lrm", "count", path]
    found = []
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if text := TEXT.match(line):
            found.append((text[1], [], {}))
        elif found and (label := LABEL.match(line)):
            found[-1][2][label[1]] = len(found[-1][1])
        elif found and (instruction := INSTRUCTION.match(line)):
            found[-1][1].append((instruction[1].strip(), int(instruction[2] or 0)))
    return found


def innermost_loops(code, labels):
    matrix = [i for i, (text, _) in enumerate(code) if MATRIX.search(text)]
    loops = []
    for i, (text, _) in enumerate(code):
        branch = BRANCH.search(text)
        if branch and labels.get(branch[1], i) < i and sum(labels[branch[1]] <= k <= i for k in matrix) > 4:
            loops.append((labels[branch[1]], i))
    inner = [x for x in loops if not any(y != x and x[0] <= y[0] and y[1] <= x[1] for y in loops)]
    return [(first, last, next(k for k in matrix if k >= first)) for first, last in inner]


def main():
    args = read_arguments(__doc__)
    for path in args.files:
        for name, code, labels in kernels(args.nvdisasm, path):
            spilled = sum("STL" in text for text, _ in code)
            gives = next((i for i, (text, _) in enumerate(code) if "USETMAXREG.DEALLOC" in text), len(code))
            for first, last, multiplies in innermost_loops(code[:gives], labels):
                before = code[first:multiplies + 1]
                called = max((live for text, live in before if text.startswith("CALL")), default=0)
                print(f"{constants_of(name)}: head {before[0][1]}, least {min(live for _, live in before if live > 0)}, "
                      f"most {max(live for _, live in code[first:last + 1])}, called {called}, stores {spilled}")
            behind = [live for _, live in code[gives:]]
            consumer = next((i for i, live in enumerate(behind) if live > 48), len(behind))  # its blocks that follow
            if behind:
                print(f"{constants}: producer {max(behind[:consumer])}, "
                      f"stores {sum('STL' in text for text, _ in code[gives:])}")


if __name__ == "__main__":
    main()
