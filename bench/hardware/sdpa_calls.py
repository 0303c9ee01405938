#!/usr/bin/env python3
"""Calls PyTorch's scaled_dot_product_attention, bf16, once for each row of CALLS.

    bench/hardware/sdpa_calls.py CALLS.csv flash|cudnn

Tensors lie as (batch, seqlen, heads, headdim), as models keep them, unless a row's layout is bhsd. A row without seqlen_q
has as many queries as keys. bench/hardware/third_party.py runs it under ncu.
"""

import csv
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def main() -> None:
    backend = BACKENDS[sys.argv[2]]
    with open(sys.argv[1], newline="") as f:
        calls = list(csv.DictReader(f))
    for call in calls:
        batch, heads, heads_k, length, headdim, causal = (
            int(call[k]) for k in ("batch", "nheads", "nheads_k", "seqlen", "headdim", "causal")
        )

        queries = int(call.get("seqlen_q") or length)

        def tensor(n: int, rows: int) -> torch.Tensor:
            if call["layout"] == "bhsd":
                return torch.randn(batch, n, rows, headdim, device="cuda", dtype=torch.bfloat16)
            return torch.randn(batch, rows, n, headdim, device="cuda", dtype=torch.bfloat16).transpose(1, 2)

        q, k, v = tensor(heads, queries), tensor(heads_k, length), tensor(heads_k, length)
        with sdpa_kernel(backend):
            torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=bool(causal), enable_gqa=heads != heads_k
            )
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
