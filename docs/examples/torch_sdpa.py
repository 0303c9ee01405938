"""PyTorch's own scaled_dot_product_attention on a GPU, a kernel for each backend:

    attest doctor --kernel docs/examples/torch_sdpa.py:flash
    attest fuzz --kernel docs/examples/torch_sdpa.py:math --time 30s

It gives no LSE, and its is_causal aligns at the top left: the records say so. Gradients are autograd's.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import attest


def heads_first(tensor):
    return tensor.torch().transpose(1, 2)


def attend(problem, q, k, v, backend):
    with sdpa_kernel(backend):
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=problem.causal != 0, scale=problem.softmax_scale,
            enable_gqa=problem.nheads_k != problem.nheads)


def register(name, backend, dtypes, features, refuses, **more):
    def forward(problem, t):
        t.o.torch().copy_(attend(problem, *(heads_first(x) for x in (t.q, t.k, t.v)), backend).transpose(1, 2))

    def backward(problem, t):
        leaves = [heads_first(x).detach().requires_grad_() for x in (t.q, t.k, t.v)]
        gradients = torch.autograd.grad(attend(problem, *leaves, backend), leaves, heads_first(t.dout))
        for out, gradient in zip((t.dq, t.dk, t.dv), gradients):
            out.torch().copy_(gradient.transpose(1, 2))

    attest.kernel(name, device="cuda", dtypes=dtypes, channels=["o", "gradients"], features=features,
                  causal=["top-left"], bitwise=[], supports=refuses, backward=backward,
                  description=f"torch {torch.__version__} sdpa, {name} backend", **more)(forward)


def whole_granules(problem):
    """The fused backends take rows of whole 16 bytes (https://docs.pytorch.org, SDPBackend)."""
    item_bytes = 4 if problem.dtype == 2 else 2
    if problem.headdim * item_bytes % 16 or problem.headdim_v * item_bytes % 16:
        return f"headdim: {problem.headdim} and {problem.headdim_v} are no whole 16 bytes"
    if problem.seqlen_q == 0 or problem.seqlen_k == 0:
        return "seqlen: an empty sequence"
    if problem.row_gap * item_bytes % 16 or problem.base_offset * item_bytes % 16:
        return f"layout: row_gap {problem.row_gap} and base_offset {problem.base_offset} are no whole 16 bytes"
    return None


HALF = ["fp16", "bf16"]
register("flash", SDPBackend.FLASH_ATTENTION, HALF, ["gqa"], whole_granules)
register("efficient", SDPBackend.EFFICIENT_ATTENTION, HALF + ["fp32"], ["headdim_v"], whole_granules)
register("cudnn", SDPBackend.CUDNN_ATTENTION, HALF, ["gqa"], whole_granules)
register("math", SDPBackend.MATH, HALF + ["fp32"], ["gqa", "headdim_v"], None, arithmetic="fp32")
