#!/usr/bin/env python3
"""Calls PyTorch's scaled_dot_product_attention with its FLASH backend, bf16, once for each row of CALLS.

Tensors lie as (batch, seqlen, heads, headdim), as models keep them, unless a row says otherwise. Run under ncu:

    ncu ... --kernel-name regex:flash_fwd python3 bench/hardware/sdpa_calls.py
"""

import csv
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def main() -> None:
    with open(sys.argv[1], newline="") as f:
        calls = list(csv.DictReader(f))
    for call in calls:
        batch, heads, heads_k, length, headdim, causal = (
            int(call[k]) for k in ("batch", "nheads", "nheads_k", "seqlen", "headdim", "causal")
        )

        def tensor(n: int) -> torch.Tensor:
            if call["layout"] == "bhsd":
                return torch.randn(batch, n, length, headdim, device="cuda", dtype=torch.bfloat16)
            return torch.randn(batch, length, n, headdim, device="cuda", dtype=torch.bfloat16).transpose(1, 2)

        q, k, v = tensor(heads), tensor(heads_k), tensor(heads_k)
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=bool(causal), enable_gqa=heads != heads_k
            )
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
