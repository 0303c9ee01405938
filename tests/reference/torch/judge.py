#!/usr/bin/python3
"""Attention and its gradients again, in PyTorch's float64 with autograd, beside what attest's reference wrote.

    judge.py FOLDER

FOLDER is what draw_torch_cases wrote. Nothing here comes from attest's code: the mask is a set of pairs (i, j) that is
put together from the definition of each feature, and the gradients are autograd's. A number passes if it differs by at
most 1e-12 of the sum of the magnitudes of the terms that it is a sum of:

    o      sum_j p_j |v_jc|
    lse    what the largest score is a sum of, |softmax_scale| sum |q k| + |alibi| + |bias| or |sink|, and ln(sum)
    dv     sum_i p_ij |dO_ic|
    dbias  T_ij = p_ij (sum_c |dO_ic v_jc| + sum_c |dO_ic| sum_j p_ij |v_jc|), summed over what shares the bias
    dq     |softmax_scale| sum_j T_ij (1 + t^2) |k_jd|, t = tanh(x / softcap), 0 without softcap
    dk     |softmax_scale| sum_i T_ij (1 + t^2) |q_id|, over the heads of a group
    dsink  sum over rows of p_sink sum_c |dO_ic| sum_j p_ij |v_jc|

Every feature in REQUIRED has to occur. Exit 0: all within; 1: not; 3: no PyTorch.
"""
import collections
import json
import math
import os
import struct
import sys

try:
    import torch
except ImportError as error:
    print(f"judge.py: {error}; install Debian's python3-torch (tools/setup.sh test does) for {sys.executable}",
          file=sys.stderr)
    sys.exit(3)

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
LIMIT = 1e-12
CHANNELS = ["o", "lse", "dq", "dk", "dv", "dsink", "dbias"]

REQUIRED = """
    fp16 bf16 fp32 fp8_e4m3 fp8_e5m2 gqa mha headdim_v!=headdim headdim_v==headdim
    full causal-bottom-right causal-top-left window-left window-right window-both causal+window
    prefix prefix+causal prefix+window documents documents+causal empty-document
    varlen_q varlen_k varlen-both seqused_k varlen_k+seqused_k
    empty-q-first empty-q-middle empty-q-last empty-q-in-a-row
    empty-k-first empty-k-middle empty-k-last empty-k-in-a-row
    alibi alibi+top-left softcap softcap+bias sink bias-bhqk bias-1hqk bias-b1qk bias-11qk
    scale-negative scale-zero scale-default large-scores empty-row empty-row+sink
    seqlen_q>seqlen_k seqlen_q<seqlen_k
""".split()

# What a problem may say; anything else is refused, so that no new feature passes here unjudged.
PROBLEM_FIELDS = {
    "schema", "batch", "nheads", "nheads_k", "seqlen_q", "seqlen_k", "headdim", "headdim_v", "dtype", "softmax_scale",
    "causal", "window_left", "window_right", "prefix", "documents", "softcap", "alibi", "sink", "bias", "varlen_q",
    "varlen_k", "seqused_k", "backward"}
# How tensors lie and are drawn is nothing to the mathematics; these have to be at their defaults.
OTHER_FIELDS = {"layout": "bshd", "row_gap": 0, "seq_gap": 0, "base_offset": 0, "inputs": "normal", "seed": 0}


def read_problem(case):
    problem = dict(case)
    for field, default in OTHER_FIELDS.items():
        if problem.pop(field, default) != default:
            sys.exit(f"judge.py: {field} = {case[field]!r} is not the default {default!r}")
    unknown = set(problem) - PROBLEM_FIELDS
    if unknown:
        sys.exit(f"judge.py: does not know the field {sorted(unknown)[0]!r} of a case; teach it what that means")
    if problem["schema"] != "attest/case/1":
        sys.exit(f"judge.py: does not know the schema {problem['schema']!r}")
    for field, default in [("window_left", -1), ("window_right", -1), ("prefix", 0), ("documents", []), ("softcap", 0),
                           ("alibi", False), ("sink", False), ("bias", "none"), ("varlen_q", []), ("varlen_k", []),
                           ("seqused_k", []), ("causal", "none"), ("softmax_scale", None)]:
        problem.setdefault(field, default)
    return problem


def num_queries(p, b):
    return p["varlen_q"][b] if p["varlen_q"] else p["seqlen_q"]


def num_keys(p, b):
    if p["seqused_k"]:
        return p["seqused_k"][b]
    return p["varlen_k"][b] if p["varlen_k"] else p["seqlen_k"]


def diagonal(p, b):
    """The key that query 0 stands at."""
    return 0 if p["causal"] == "top-left" else num_keys(p, b) - num_queries(p, b)


def visible_pairs(p, b):
    """The set of (i, j) such that query i of batch entry b sees key j."""
    queries, keys, first = range(num_queries(p, b)), range(num_keys(p, b)), diagonal(p, b)
    pairs = {(i, j) for i in queries for j in keys}
    seen = set(pairs)
    if p["causal"] != "none":
        seen -= {(i, j) for (i, j) in pairs if j - first > i}  # no key after the query's own
    if p["window_right"] >= 0:
        seen &= {(i, i + first + ahead) for i in queries for ahead in range(-len(keys) - len(queries),
                                                                            p["window_right"] + 1)}
    if p["window_left"] >= 0:
        seen &= {(i, i + first - back) for i in queries for back in range(-len(keys) - len(queries),
                                                                          p["window_left"] + 1)}
    seen |= {(i, j) for (i, j) in pairs if j in range(p["prefix"])}
    if p["documents"]:
        together, start = set(), 0
        for length in p["documents"]:
            members = range(start, start + length)
            together |= {(i, j) for i in members for j in members}
            start += length
        seen &= together
    return seen


def as_float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


class Judge:
    def __init__(self):
        self.features = collections.Counter()
        self.largest = dict.fromkeys(CHANNELS, 0.0)
        self.compared = collections.Counter()
        self.failures = []

    def compare(self, channel, got, want, terms, what):
        """Every number of `got` within LIMIT of `terms`; Inf and what has no terms exactly."""
        assert got.shape == want.shape == terms.shape, (channel, got.shape, want.shape, terms.shape)
        if got.numel() == 0:
            return
        difference = torch.where(got == want, torch.zeros_like(got), (got - want).abs())
        ratio = torch.where(difference == 0, difference, difference / terms)
        worst = float("inf") if torch.isnan(ratio).any() else ratio.max().item()
        self.largest[channel] = max(self.largest[channel], worst)
        self.compared[channel] += got.numel()
        if not worst <= LIMIT:
            at = int(torch.nan_to_num(ratio, nan=math.inf).argmax())
            self.failures.append(f"{channel} differs by {worst:.3g} of its terms: {got.flatten()[at].item()!r}, PyTorch "
                                 f"{want.flatten()[at].item()!r}, in {what}")

    def judge(self, case, tensor):
        p = read_problem(case)
        what = json.dumps(case)
        h, hk = p["nheads"], p["nheads_k"]
        group = h // hk
        scale = as_float32(1 / math.sqrt(p["headdim"]) if p["softmax_scale"] is None else p["softmax_scale"])
        softcap = as_float32(p["softcap"])
        sink = tensor["sink"][0, :, 0, 0].clone().requires_grad_() if p["sink"] else None
        bias = tensor["bias"].clone() if p["bias"] != "none" else None
        if bias is not None:
            bias.requires_grad_()
        dsink_terms = torch.zeros(h)
        dbias_terms = torch.zeros_like(bias) if bias is not None else None
        losses = []
        self.count(p, scale)

        for b in range(p["batch"]):
            sq, sk = num_queries(p, b), num_keys(p, b)

            def factor(name):
                return tensor[name][b, :, 0, 0] if name in tensor else torch.ones(hk)

            # Leaves: the values times their descales, [heads, rows, dim].
            q = (tensor["q"][b, :sq].transpose(0, 1) * factor("q_descale").repeat_interleave(group)[:, None, None])
            k = (tensor["k"][b, :sk].transpose(0, 1) * factor("k_descale")[:, None, None])
            v = (tensor["v"][b, :sk].transpose(0, 1) * factor("v_descale")[:, None, None])
            q, k, v = (x.clone().requires_grad_() for x in (q, k, v))
            dout = tensor["dout"][b, :sq].transpose(0, 1)

            seen = torch.zeros(sq, sk, dtype=torch.bool)
            for i, j in visible_pairs(p, b):
                seen[i, j] = True
            rows = [i for i in range(sq) if seen[i].any()]
            if len(rows) < sq:
                self.features["empty-row+sink" if p["sink"] else "empty-row"] += 1

            # Only rows that see something go through softmax; of the others the definition says what they are.
            mask = seen[rows]
            keys = k.repeat_interleave(group, 0)
            values = v.repeat_interleave(group, 0)
            queries = q[:, rows]
            x = scale * (queries @ keys.transpose(1, 2))
            magnitude = abs(scale) * (queries.abs() @ keys.abs().transpose(1, 2))
            slope = torch.ones_like(x)
            if p["softcap"]:
                t = torch.tanh(x / softcap)
                slope = 1 + t * t
                x = softcap * t
            if p["alibi"]:
                distance = torch.tensor([[abs(i + diagonal(p, b) - j) for j in range(sk)] for i in rows],
                                        dtype=torch.float64).reshape(len(rows), sk)
                along = tensor["alibi_slopes"][b, :, 0, 0][:, None, None] * distance
                x = x - along
                magnitude = magnitude + along.abs()
            if bias is not None:
                bb = b if bias.shape[0] > 1 else 0
                some = bias[bb][:, rows][:, :, :sk]  # [heads or 1, rows, keys]
                x = x + some
                magnitude = magnitude + some.abs()
            x = torch.where(mask, x, torch.tensor(-math.inf))
            if mask.any():
                shown = torch.where(mask, x, torch.zeros_like(x)).abs().max().item()
                self.features["large-scores"] += shown > 100
            if sink is not None:
                x = torch.cat([x, sink[:, None, None].expand(h, len(rows), 1)], 2)
                magnitude = torch.cat([magnitude, sink.abs()[:, None, None].expand(h, len(rows), 1)], 2)
            weights = torch.softmax(x, 2) if rows else x
            p_keys = weights[:, :, :sk]
            o = p_keys @ values
            losses.append((o * dout[:, rows]).sum())

            with torch.no_grad():
                o_all = torch.zeros(h, sq, p["headdim_v"])
                o_terms = torch.zeros_like(o_all)
                lse_all = torch.full((h, sq), -math.inf)
                if sink is not None:
                    lse_all[:] = sink[:, None]
                lse_terms = torch.zeros(h, sq)
                t_terms = torch.zeros(h, sq, sk)
                dv_terms = torch.zeros(h, sk, p["headdim_v"])
                if rows:
                    o_all[:, rows] = o
                    o_terms[:, rows] = p_keys @ values.abs()
                    top, at = x.max(2)
                    lse_all[:, rows] = torch.logsumexp(x, 2)
                    lse_terms[:, rows] = magnitude.gather(2, at[:, :, None])[:, :, 0] + (lse_all[:, rows] - top).abs()
                    d_terms = (dout.abs() * o_terms).sum(2)[:, rows]
                    t_terms[:, rows] = p_keys * (dout[:, rows].abs() @ values.abs().transpose(1, 2) +
                                                 d_terms[:, :, None])
                    dv_terms = p_keys.transpose(1, 2) @ dout[:, rows].abs()
                    if sink is not None:
                        dsink_terms += (weights[:, :, sk] * d_terms).sum(1)
                x_terms = t_terms.clone()
                x_terms[:, rows] *= abs(scale) * slope
                dq_terms = x_terms @ keys.abs()
                dk_terms = x_terms.transpose(1, 2) @ q.abs()
                if bias is not None:
                    share = t_terms if bias.shape[1] > 1 else t_terms.sum(0, keepdim=True)
                    dbias_terms[bb][:, :sq, :sk] += share

            self.pending.append((b, sq, sk, q, k, v, o_all, o_terms, lse_all, lse_terms, dq_terms,
                                 dk_terms.unflatten(0, (hk, group)).sum(1), dv_terms.unflatten(0, (hk, group)).sum(1)))

        total = sum(losses)
        if total.requires_grad:
            total.backward()

        def gradient(leaf):
            return leaf.grad if leaf.grad is not None else torch.zeros_like(leaf)

        for b, sq, sk, q, k, v, o, o_terms, lse, lse_terms, dq_terms, dk_terms, dv_terms in self.pending:
            def head_first(name, rows):
                return tensor[name][b, :rows].transpose(0, 1) if name in tensor else torch.zeros(0)

            self.compare("o", head_first("o", sq), o, o_terms, what)
            self.compare("lse", tensor["lse"][b, :, :sq, 0], lse, lse_terms, what)
            self.compare("dq", head_first("dq", sq), gradient(q), dq_terms, what)
            self.compare("dk", head_first("dk", sk), gradient(k), dk_terms, what)
            self.compare("dv", head_first("dv", sk), gradient(v), dv_terms, what)
            for name, end in [("o", sq), ("dq", sq), ("dk", sk), ("dv", sk)]:
                if tensor[name][b, end:].any():
                    self.failures.append(f"{name} is not 0 past the end of batch entry {b}, in {what}")
        self.pending.clear()
        if sink is not None:
            self.compare("dsink", tensor["dsink"][0, :, 0, 0], gradient(sink), dsink_terms, what)
        if bias is not None:
            self.compare("dbias", tensor["dbias"], gradient(bias), dbias_terms, what)

    pending = []

    def count(self, p, scale):
        def hit(name, condition=True):
            self.features[name] += bool(condition)

        hit(p["dtype"])
        hit("gqa" if p["nheads"] > p["nheads_k"] else "mha")
        hit("headdim_v!=headdim" if p["headdim"] != p["headdim_v"] else "headdim_v==headdim")
        left, right, causal = p["window_left"] >= 0, p["window_right"] >= 0, p["causal"] != "none"
        hit("full", not (left or right or causal or p["documents"]))
        hit("causal-" + p["causal"], causal)
        hit("window-left", left and not right)
        hit("window-right", right and not left)
        hit("window-both", left and right)
        hit("causal+window", causal and (left or right))
        hit("prefix", p["prefix"])
        hit("prefix+causal", p["prefix"] and causal)
        hit("prefix+window", p["prefix"] and (left or right))
        hit("documents", p["documents"])
        hit("documents+causal", p["documents"] and causal)
        hit("empty-document", 0 in p["documents"])
        hit("varlen_q", p["varlen_q"])
        hit("varlen_k", p["varlen_k"])
        hit("varlen-both", p["varlen_q"] and p["varlen_k"])
        hit("seqused_k", p["seqused_k"])
        hit("varlen_k+seqused_k", p["varlen_k"] and p["seqused_k"])
        for side, lengths in [("q", p["varlen_q"]), ("k", p["varlen_k"])]:
            if lengths:
                hit(f"empty-{side}-first", lengths[0] == 0)
                hit(f"empty-{side}-last", lengths[-1] == 0)
                hit(f"empty-{side}-middle", 0 in lengths[1:-1])
                hit(f"empty-{side}-in-a-row", any(a == b == 0 for a, b in zip(lengths, lengths[1:])))
        hit("alibi", p["alibi"])
        hit("alibi+top-left", p["alibi"] and p["causal"] == "top-left")
        hit("softcap", p["softcap"])
        hit("softcap+bias", p["softcap"] and p["bias"] != "none")
        hit("sink", p["sink"])
        hit("bias-" + p["bias"], p["bias"] != "none")
        hit("scale-negative", scale < 0)
        hit("scale-zero", scale == 0)
        hit("scale-default", p["softmax_scale"] is None)
        hit("seqlen_q>seqlen_k", p["seqlen_q"] > p["seqlen_k"])
        hit("seqlen_q<seqlen_k", p["seqlen_q"] < p["seqlen_k"])


def read_cases(folder):
    """Yields the case and its tensors by name."""
    with open(os.path.join(folder, "tensors.f64"), "rb") as file:
        values = torch.frombuffer(bytearray(file.read()), dtype=torch.float64)
    with open(os.path.join(folder, "cases.jsonl"), encoding="utf-8") as file:
        for line in file:
            item = json.loads(line)
            yield item["case"], {name: values[first:first + math.prod(extents)].reshape(extents)
                                 for name, (first, *extents) in item["tensors"].items()}


def exit_code(judge, required, enough_cases):
    """Says what failed and what was never judged."""
    program = os.path.basename(sys.argv[0])
    missing = [f"no case has {name}" for name in required if judge.features[name] == 0]
    missing += [f"nothing of {channel} was compared" for channel in CHANNELS if judge.compared[channel] == 0]
    for sentence in missing + judge.failures[:10]:
        print(f"{program}: {sentence}", file=sys.stderr)
    if judge.failures:
        print(f"{program}: {len(judge.failures)} disagreements with PyTorch", file=sys.stderr)
    return 1 if missing or judge.failures or not enough_cases else 0


def main(folder):
    judge, cases = Judge(), 0
    for case, tensors in read_cases(folder):
        judge.judge(case, tensors)
        cases += 1

    print(f"{cases} cases against PyTorch {torch.__version__} in float64")
    names = REQUIRED + sorted(set(judge.features) - set(REQUIRED))
    print("  " + ", ".join(f"{name} {judge.features[name]}" for name in names))
    print("  channel      numbers   largest difference over its terms")
    for channel in CHANNELS:
        print(f"  {channel:7}{judge.compared[channel]:13,}   {judge.largest[channel]:.3g}")
    return exit_code(judge, REQUIRED, cases >= 300)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
