#!/usr/bin/env python3
"""The fewest registers with which compiled kernels do not spill, by bisection of ptxas's limit.

    least_registers.py FILE.ptx... --arch sm_80 [--only NAME] [--ptxas PATH]

One line a kernel: what it uses of 255, the fewest without a stack frame, and the limits tried with the bytes of stack at
each; they need not fall steadily. One whose limit of 255 makes it spill is told as such. Limits that a source asks for
(launch bounds) are taken out first, since ptxas follows those and not its option. PTX of a kernel: the commands of the
compile_*.py here with -ptx in place of -cubin, without -Xptxas -v. Less accumulators, rows, Q's fragments and a plan's
`loop_words`, that is what a compiler keeps in flight at the least: the plan's `fragment_words` and temporaries.
"""
import argparse
import os
import re
import subprocess
import tempfile

LIMITS = re.compile(r"^\s*\.(minnctapersm|maxntid|maxnreg) [^\n]*\n", re.M)
WIDEST, SPAN = 255, 80  # of registers a thread; how far below what is used bisection begins


def said_of(command, name, limit):
    """Bytes of stack, registers."""
    said = subprocess.run([*command, "-e", name, "-maxrregcount", str(limit)], capture_output=True, text=True, check=True).stderr
    entry = said[said.index(f"Compiling entry function '{name}'"):]
    return int(re.search(r"(\d+) bytes stack frame", entry)[1]), int(re.search(r"Used (\d+) registers", entry)[1])


def bisect(command, name):
    stack, used = said_of(command, name, WIDEST)
    if stack:
        return f"{stack} bytes of stack at {WIDEST}"
    spills, fits, tried = used - SPAN, used, []
    while fits - spills > 1:
        limit = (spills + fits) // 2
        stack, _ = said_of(command, name, limit)
        tried.append(f"{limit}: {stack}")
        spills, fits = (limit, fits) if stack else (spills, limit)
    return f"uses {used}, least {fits} ({', '.join(tried)})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--arch", required=True)
    parser.add_argument("--only", default="", help="regular expression of the kernels' names")
    parser.add_argument("--ptxas", default="ptxas")
    args = parser.parse_args()
    for path in args.files:
        with open(path, encoding="utf-8") as text, tempfile.TemporaryDirectory() as folder:
            code = LIMITS.sub("", text.read())
            stripped = os.path.join(folder, "kernels.ptx")
            with open(stripped, "w", encoding="utf-8") as out:
                out.write(code)
            command = [args.ptxas, "-arch", args.arch, "-v", "-o", os.path.join(folder, "kernels.cubin"), stripped]
            for name in re.findall(r"\.entry (\w+)\(", code):
                if re.search(args.only, name):
                    constants = " ".join(re.findall(r"L[ib](\d+)E", name)) or name
                    print(f"{constants}: {bisect(command, name)}", flush=True)


if __name__ == "__main__":
    main()
