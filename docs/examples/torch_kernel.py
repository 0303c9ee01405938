"""Attention written in PyTorch, forward and backward, under test on the CPU:

    attest doctor --kernel docs/examples/torch_kernel.py:plain
    attest fuzz --kernel docs/examples/torch_kernel.py:plain --time 10s

`plain` is right. `off_by_one` has its causal diagonal one key too far right, and is found out.
"""

import math

import torch

import attest

torch.set_num_threads(1)


def seen(problem, shift=0):
    """[seqlen_q, seqlen_k]: whether query i sees key j."""
    i = torch.arange(problem.seqlen_q)[:, None]
    j = torch.arange(problem.seqlen_k)[None, :]
    offset = 0 if problem.causal == 2 else problem.seqlen_k - problem.seqlen_q
    visible = torch.ones(problem.seqlen_q, problem.seqlen_k, dtype=torch.bool)
    if problem.causal:
        visible &= j <= i + offset + shift
    if problem.window_left >= 0:
        visible &= j >= i + offset - problem.window_left
    if problem.window_right >= 0:
        visible &= j <= i + offset + problem.window_right
    return visible


def heads_first(tensor):
    return tensor.torch().transpose(1, 2).float()


def inputs(problem, t):
    """q, k, v in fp32, [batch, nheads, seqlen, dim]: a key head stands beside each query head that reads it."""
    group = problem.nheads // problem.nheads_k
    return heads_first(t.q), *(heads_first(x).repeat_interleave(group, dim=1) for x in (t.k, t.v))


def scores_of(problem, q, k, shift=0):
    scores = q @ k.transpose(2, 3) * problem.softmax_scale
    return scores.masked_fill(~seen(problem, shift), -math.inf)


def forward(problem, t, shift=0):
    q, k, v = inputs(problem, t)
    if problem.seqlen_k == 0:
        t.o.torch().zero_()
        t.lse.torch().fill_(-math.inf)
        return
    scores = scores_of(problem, q, k, shift)
    largest = scores.amax(dim=3, keepdim=True)
    largest = largest.masked_fill(largest == -math.inf, 0)  # a row that sees nothing: every weight 0
    weights = torch.exp(scores - largest)
    total = weights.sum(dim=3, keepdim=True)
    t.o.torch().copy_(((weights @ v) / total.masked_fill(total == 0, 1)).transpose(1, 2))
    t.lse.torch().copy_(largest + torch.log(total))


def backward(problem, t):
    """From the O and LSE that forward() left, as FlashAttention does it."""
    q, k, v = inputs(problem, t)
    o, dout, lse = heads_first(t.o), heads_first(t.dout), t.lse.torch()
    scores = scores_of(problem, q, k)
    weights = torch.where(scores == -math.inf, 0, torch.exp(scores - lse))
    dscores = weights * (dout @ v.transpose(2, 3) - (dout * o).sum(dim=3, keepdim=True)) * problem.softmax_scale

    def summed(x):  # over the query heads of a key head
        return x.view(problem.batch, problem.nheads_k, problem.nheads // problem.nheads_k, *x.shape[2:]).sum(dim=2)

    for out, gradient in ((t.dq, dscores @ k), (t.dk, summed(dscores.transpose(2, 3) @ q)),
                          (t.dv, summed(weights.transpose(2, 3) @ dout))):
        out.torch().copy_(gradient.transpose(1, 2))


declared = dict(dtypes=["fp32", "bf16"], channels=["o", "lse", "gradients"], features=["gqa", "headdim_v", "window"],
                causal=["bottom-right", "top-left"], arithmetic="fp32", bitwise=[], description="PyTorch on the CPU")

attest.kernel("plain", backward=backward, **declared)(forward)


@attest.kernel("off_by_one", backward=backward, **declared)
def off_by_one(problem, t):
    forward(problem, t, shift=1)


@attest.kernel("softmax_first", dtypes=["fp32", "bf16"], channels=["o"], features=["gqa", "headdim_v"],
               arithmetic="fp32", normalises_first=True, bitwise=[])
def softmax_first(problem, t):
    """softmax(scores) V as it is usually written: P is divided by its sum before it meets V, and the record says so."""
    q, k, v = inputs(problem, t)
    if problem.seqlen_k == 0:
        t.o.torch().zero_()
        return
    weights = torch.softmax(scores_of(problem, q, k), dim=3)
    t.o.torch().copy_((weights @ v).transpose(1, 2))


@attest.kernel("numpy", dtypes=["fp32"], channels=["o"], arithmetic="fp32", bitwise=[])
def numpy_attention(problem, t):
    """The same without PyTorch: tensors are NumPy arrays through __array_interface__."""
    import numpy as np
    q, k, v = (x.numpy().transpose(0, 2, 1, 3) for x in (t.q, t.k, t.v))
    if problem.seqlen_k == 0:
        t.o.numpy()[...] = 0
        return
    scores = q @ k.transpose(0, 1, 3, 2) * np.float32(problem.softmax_scale)
    weights = np.exp(scores - scores.max(axis=3, keepdims=True))
    t.o.numpy()[...] = (weights @ v / weights.sum(axis=3, keepdims=True)).transpose(0, 2, 1, 3)
