#!/usr/bin/env python3
"""Counts what attention in three kernels (unfused_calls.py) moves through DRAM, and its cycles.

    bench/hardware/unfused.py OUT.csv

A row a kernel. `caches` is `cold` where ncu empties them before each kernel, `kept` where a kernel finds what the one
before has left (counters of one pass, so that no kernel is run twice). Warm clocks, as they are.
"""

import csv
import pathlib
import subprocess
import sys
import tempfile

CASE = ["batch", "nheads", "seqlen", "headdim"]
CALLS = [(4, 16, 4096, 128), (1, 16, 2048, 128), (1, 8, 1024, 128), (4, 32, 1024, 64), (1, 8, 8192, 64), (32, 16, 512, 128)]
STEPS = ["S = Q K^T", "P = softmax(S)", "O = P V"]
METRICS = ["dram__bytes_read.sum", "dram__bytes_write.sum", "sm__cycles_elapsed.max", "gpu__time_duration.sum"]
ALSO_COLD = ["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", "lts__t_sectors_srcunit_tex_op_read.sum",
             "lts__t_sectors_srcunit_tex_op_write.sum", "launch__grid_size", "launch__registers_per_thread"]


def profile(calls: pathlib.Path, caches: str, log: pathlib.Path) -> list[dict]:
    metrics = METRICS + (ALSO_COLD if caches == "cold" else [])
    script = pathlib.Path(__file__).with_name("unfused_calls.py")
    ncu = ["ncu", "--profile-from-start", "off", "--cache-control", "all" if caches == "cold" else "none"]
    ncu += ["--clock-control", "none", "--metrics", ",".join(metrics), "--csv", "--page", "raw", "--print-units", "base"]
    subprocess.run([*ncu, "--log-file", str(log), sys.executable, str(script), str(calls)], check=True)
    rows = list(csv.DictReader(line for line in log.read_text().splitlines() if line.startswith('"')))[1:]
    if len(rows) != len(STEPS) * len(CALLS):
        raise SystemExit(f"{len(CALLS)} calls of {len(STEPS)} kernels, {len(rows)} profiled: "
                         f"{[row['Kernel Name'][:40] for row in rows]}")
    return rows


def main() -> int:
    out = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder, open(out, "w", newline="") as f:
        calls = pathlib.Path(folder) / "calls.csv"
        calls.write_text(",".join(CASE) + "\n" + "".join(",".join(map(str, call)) + "\n" for call in CALLS))
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(["caches", *CASE, "step", *METRICS, *ALSO_COLD, "kernel"])
        for caches in ("cold", "kept"):
            for i, row in enumerate(profile(calls, caches, pathlib.Path(folder) / "log.csv")):
                values = [row.get(m, "").replace(",", "") for m in METRICS + ALSO_COLD]
                name = row["Kernel Name"].replace(",", " ")[:80]
                writer.writerow([caches, *CALLS[i // 3], STEPS[i % 3], *values, name])
            f.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
