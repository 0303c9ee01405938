#!/usr/bin/env python3
"""Runs l2_probe's experiments under ncu, cold caches, clocks as they are, and writes OUT/NAME.csv for each: the
experiment's own columns, then the counters.

    bench/hardware/run.py PATH/TO/l2_probe OUT write_once spill ...
"""

import csv
import pathlib
import subprocess
import sys
import time

METRICS = [
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_sectors_srcunit_tex_op_write.sum",
    "lts__t_sectors_srcunit_ltcfabric.sum",
    "lts__t_sectors_srcunit_tex_lookup_hit.sum",
    "l1tex__m_xbar2l1tex_read_bytes.sum",
    "l1tex__m_l1tex2xbar_write_bytes.sum",
    "sm__cycles_elapsed.max",
]
METRICS_OF = {
    "local": [
        "launch__shared_mem_config_size",
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
        "l1tex__t_sectors_pipe_lsu_mem_local_op_ld_lookup_hit.sum",
        "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
        "l1tex__t_sectors_pipe_lsu_mem_local_op_st_lookup_hit.sum",
        "l1tex__m_xbar2l1tex_read_bytes.sum",
        "l1tex__m_l1tex2xbar_write_bytes.sum",
        "lts__t_sectors_srcunit_tex_op_read.sum",
        "lts__t_sectors_srcunit_tex_op_write.sum",
        "sm__cycles_elapsed.max",
    ]
}
WITHOUT_COUNTERS = {"beyond_columns", "sm_places", "page_places", "dispatch", "pipes", "latencies", "beside", "beside_mma", "fetch", "fetch_of_streams", "walked_code", "gates", "jumps", "wgmma", "step", "step_moments", "copy", "waits", "in_step", "contention", "issue"}
# many rows a launch: OUT/NAME_counters.csv has a row for each launch
OF_LAUNCHES = {"drift": ["lts__t_sectors_srcunit_tex_op_read.sum", "l1tex__m_xbar2l1tex_read_bytes.sum"]}


def profile(command: list[str], kernels: str, metrics: list[str], log: pathlib.Path) -> list[list[str]]:
    """One list of counters for each launch of the kernels named by the regular expression, in order of launch."""
    ncu = ["ncu", "--cache-control", "all", "--clock-control", "none", "--kernel-name", f"regex:{kernels}"]
    ncu += ["--metrics", ",".join(metrics), "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]
    subprocess.run(ncu + command, check=True, stdout=subprocess.DEVNULL)
    lines = [line for line in log.read_text().splitlines() if line.startswith('"')]
    table = csv.DictReader(lines)
    rows = [[row[m].replace(",", "") for m in metrics] for row in table]
    return rows[1:]  # the first holds the units


def main() -> int:
    probe, out, names = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        began = time.time()
        metrics = METRICS_OF.get(name, METRICS)
        if name in WITHOUT_COUNTERS:
            subprocess.run([probe, str(out), name], check=True)
            counters = None
        elif name in OF_LAUNCHES:
            of_launches = profile([probe, str(out), name], "^probe_", OF_LAUNCHES[name], out / f"{name}.ncu.csv")
            with open(out / f"{name}_counters.csv", "w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([OF_LAUNCHES[name], *of_launches])
            counters = None
        else:
            counters = profile([probe, str(out), name], "^probe_", metrics, out / f"{name}.ncu.csv")
        with open(out / f"{name}.rows.csv", newline="") as rows_file:
            header, *rows = list(csv.reader(rows_file))
        with open(out / f"{name}.csv", "w", newline="") as joined:
            writer = csv.writer(joined, lineterminator="\n")
            if counters is None:
                writer.writerows([header, *rows])
            else:
                if len(counters) != len(rows):
                    raise SystemExit(f"{name}: {len(rows)} launches, {len(counters)} profiled")
                writer.writerow(header + metrics)
                writer.writerows(row + values for row, values in zip(rows, counters))
        (out / f"{name}.rows.csv").unlink()
        (out / f"{name}.ncu.csv").unlink(missing_ok=True)
        print(f"{name}: {len(rows)} rows, {time.time() - began:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
