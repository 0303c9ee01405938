#!/usr/bin/env python3
"""Runs attention as three kernels, bf16, once for each row of CALLS.csv, between cudaProfilerStart and -Stop:
S = Q K^T and O = P V by torch.bmm (cuBLAS), P = softmax(S) by torch.softmax, S and P in bf16. bench/hardware/unfused.py
profiles it. Q is taken to be scaled already, so that nothing else runs; heads lie one after the other.
"""

import csv
import sys

import torch


def main() -> None:
    with open(sys.argv[1], newline="") as f:
        calls = list(csv.DictReader(f))
    profiler = torch.cuda.profiler
    for call in calls:
        batch, heads, length, headdim = (int(call[k]) for k in ("batch", "nheads", "seqlen", "headdim"))
        q, k, v = (torch.randn(batch * heads, length, headdim, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        warm = torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)), dim=-1), v)  # cuBLAS chooses its kernels
        torch.cuda.synchronize()
        del warm
        profiler.start()
        s = torch.bmm(q, k.transpose(1, 2))
        p = torch.softmax(s, dim=-1)
        torch.bmm(p, v)
        torch.cuda.synchronize()
        profiler.stop()


if __name__ == "__main__":
    main()
