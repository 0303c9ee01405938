#!/usr/bin/env python3
"""Calls PyTorch's scaled_dot_product_attention, bf16, once for each row of CALLS.

    bench/hardware/sdpa_calls.py CALLS.csv flash|cudnn

Tensors lie as (batch, seqlen, heads, headdim), as models keep them, unless a row's layout is bhsd. A row without seqlen_q
has as many queries as keys. bench/hardware/third_party.py runs it under ncu.

Q, K and V of each call stand at the begin of one buffer of at least 512 MiB, one after the other at multiples of 2 MiB,
and O at the begin of another: where they lie decides which sets of L2 they fall into.
"""

import csv
import math
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
UNIT = 1 << 20  # elements, in 2 MiB
FEWEST_UNITS = 256


def shape(call: dict[str, str], heads: str, rows: str) -> tuple[int, ...]:
    batch, n, length, headdim = int(call["batch"]), int(call[heads]), int(rows), int(call["headdim"])
    return (batch, n, length, headdim) if call["layout"] == "bhsd" else (batch, length, n, headdim)


def main() -> None:
    backend = BACKENDS[sys.argv[2]]
    with open(sys.argv[1], newline="") as f:
        calls = list(csv.DictReader(f))
    shapes = []
    for call in calls:
        keys = shape(call, "nheads_k", call["seqlen"])
        shapes.append([shape(call, "nheads", call.get("seqlen_q") or call["seqlen"]), keys, keys])

    def units(of: tuple[int, ...]) -> int:
        return -(-math.prod(of) // UNIT)

    most = max(FEWEST_UNITS, *(sum(map(units, of)) for of in shapes))
    inputs = torch.empty(most * UNIT, device="cuda", dtype=torch.bfloat16)
    # its memory stays PyTorch's, which takes outputs from its begin
    torch.empty((max(units(of[0]) for of in shapes) + 32) * UNIT, device="cuda", dtype=torch.bfloat16)
    for call, of in zip(calls, shapes):
        tensors, first = [], 0
        for each in of:
            tensor = inputs[first : first + math.prod(each)].view(each).normal_()
            tensors.append(tensor if call["layout"] == "bhsd" else tensor.transpose(1, 2))
            first += units(each) * UNIT
        with sdpa_kernel(backend):
            torch.nn.functional.scaled_dot_product_attention(
                *tensors, is_causal=call["causal"] != "0", enable_gqa=call["nheads"] != call["nheads_k"]
            )
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
