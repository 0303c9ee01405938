"""PyTorch's own scaled_dot_product_attention on a GPU, a kernel for each backend:

    attest doctor --kernel docs/examples/torch_sdpa.py:flash
    attest fuzz --kernel docs/examples/torch_sdpa.py:math --time 30s

It gives no LSE, and its is_causal aligns at the top left: the records say so. Gradients are autograd's. What a backend
takes PyTorch is asked itself.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import attest

OF = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}


def heads_first(tensor):
    return tensor.torch().transpose(1, 2)


def attend(problem, q, k, v, backend):
    with sdpa_kernel(backend):
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=problem.causal != 0, scale=problem.softmax_scale,
            enable_gqa=problem.nheads_k != problem.nheads)


def asks(can_use):
    """supports() of a backend: PyTorch's own answer for tensors of these sizes."""
    def supports(problem):
        if problem.seqlen_q == 0 or problem.seqlen_k == 0:
            return "seqlen: an empty sequence"
        if problem.base_offset % 8 or problem.row_gap % 8:
            return f"layout: base_offset {problem.base_offset} and row_gap {problem.row_gap} are no multiples of 8"

        def like(heads, rows, columns):
            return torch.empty(problem.batch, rows, heads, columns, dtype=OF[problem.dtype_name], device="cuda",
                               requires_grad=bool(problem.backward)).transpose(1, 2)

        parameters = torch.backends.cuda.SDPAParams(
            like(problem.nheads, problem.seqlen_q, problem.headdim),
            like(problem.nheads_k, problem.seqlen_k, problem.headdim),
            like(problem.nheads_k, problem.seqlen_k, problem.headdim_v), None, 0.0, problem.causal != 0,
            problem.nheads_k != problem.nheads)
        return None if can_use(parameters) else f"torch: {can_use.__name__}() says no"
    return supports


def register(name, backend, dtypes, features, **more):
    def forward(problem, t):
        t.o.torch().copy_(attend(problem, *(heads_first(x) for x in (t.q, t.k, t.v)), backend).transpose(1, 2))

    def backward(problem, t):
        leaves = [heads_first(x).detach().requires_grad_() for x in (t.q, t.k, t.v)]
        gradients = torch.autograd.grad(attend(problem, *leaves, backend), leaves, heads_first(t.dout))
        for out, gradient in zip((t.dq, t.dk, t.dv), gradients):
            out.torch().copy_(gradient.transpose(1, 2))

    attest.kernel(name, device="cuda", dtypes=dtypes, channels=["o", "gradients"], features=features,
                  causal=["top-left"], bitwise=[], backward=backward,
                  description=f"torch {torch.__version__} sdpa, {name} backend", **more)(forward)


def positive(supports):
    """Looks past what is known: with a scale of 0 or less the flash and cudnn backends give NaN."""
    return lambda problem: "softmax_scale: not above 0" if problem.softmax_scale <= 0 else supports(problem)


HALF = ["fp16", "bf16"]
can = torch.backends.cuda
flash, efficient, cudnn = (asks(can_use) for can_use in (
    can.can_use_flash_attention, can.can_use_efficient_attention, can.can_use_cudnn_attention))
register("flash", SDPBackend.FLASH_ATTENTION, HALF, ["gqa"], supports=flash)
register("flash_positive", SDPBackend.FLASH_ATTENTION, HALF, ["gqa"], supports=positive(flash))
register("efficient", SDPBackend.EFFICIENT_ATTENTION, HALF + ["fp32"], ["headdim_v"], supports=efficient)
register("cudnn", SDPBackend.CUDNN_ATTENTION, HALF, ["gqa", "headdim_v"], supports=cudnn)
register("cudnn_positive", SDPBackend.CUDNN_ATTENTION, HALF, ["gqa", "headdim_v"], supports=positive(cudnn))
register("math", SDPBackend.MATH, HALF + ["fp32"], ["gqa", "headdim_v"], arithmetic="fp32", normalises_first=True)
