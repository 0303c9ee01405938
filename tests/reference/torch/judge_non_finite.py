#!/usr/bin/python3
"""Where NaN and Inf in Q, K, V and the bias go, in PyTorch's float64 with autograd, beside attest's reference.

    judge_non_finite.py FOLDER

FOLDER is what `draw_torch_cases FOLDER COUNT SEED non_finite` wrote. A row of queries is computed on its own, from the
keys gathered that it sees, so that nothing masked is ever multiplied by 0. NaN has to stand where PyTorch has NaN, each
Inf where PyTorch has it, and what is finite differs by at most 1e-12 of its terms (judge.py says which). Where PyTorch
has no answer, or two, docs/numerics.md, "NaN and Inf", gives one:

    a row whose scores are all -Inf    weights of 0, where PyTorch's softmax has NaN
    a weight that underflowed          is not 0: times Inf it is Inf, in O; in the gradients 0 and with it NaN will do, too
    a score of +Inf                    LSE is m + ln(sum exp(s - m)) by IEEE arithmetic, NaN, where torch.logsumexp has Inf

Every feature in REQUIRED has to occur. Exit 0: all agree; 1: not; 3: no PyTorch.
"""
import collections
import json
import math
import sys

import judge
import torch  # judge.py says what to do where there is none

LIMIT = judge.LIMIT
CHANNELS = judge.CHANNELS
SMALLEST = sys.float_info.min
UNDERFLOW = 1e-290  # the reference's exp ends at e^-708, PyTorch's at e^-745: what hangs on it is below this

REQUIRED = """
    q-nan q-inf k-nan k-inf v-nan v-inf bias-nan bias-inf
    gqa varlen_q varlen_k seqused_k softcap sink alibi window prefix documents causal
    row-all-minus-inf row-plus-inf weight-underflowed-times-inf
    untouched-row o-nan o-inf lse-nan dq-finite-beside-non-finite dk-finite-beside-non-finite
""".split()


class Row:
    """One query of one head: leaves are shared, so that autograd adds what rows have in common."""

    def __init__(self, p, leaves, b, h, i, keys, scale):
        h_k = h // (p["nheads"] // p["nheads_k"])
        k = leaves["k"][h_k].index_select(0, keys)
        self.v = leaves["v"][h_k].index_select(0, keys)
        x = scale * (k * leaves["q"][h, i]).sum(1)
        magnitude = abs(scale) * (k * leaves["q"][h, i]).abs().sum(1).detach()
        self.slope = torch.ones_like(x)
        if p["softcap"]:
            cap = judge.as_float32(p["softcap"])
            t = torch.tanh(x / cap)
            self.slope = (1 + t * t).detach()
            x = cap * t
            magnitude = torch.where(torch.isfinite(magnitude), magnitude, x.detach().abs())  # Inf is capped
        if p["alibi"]:
            along = leaves["slopes"][h] * (keys - (i + judge.diagonal(p, b))).abs()
            x = x - along
            magnitude = magnitude + along.abs()
        if leaves["bias"] is not None:
            some = leaves["bias"][b if leaves["bias"].shape[0] > 1 else 0]
            some = some[h if some.shape[0] > 1 else 0][i].index_select(0, keys)
            x = x + some
            magnitude = magnitude + some.detach().abs()
        if leaves["sink"] is not None:
            x = torch.cat([x, leaves["sink"][h:h + 1]])
            magnitude = torch.cat([magnitude, leaves["sink"][h:h + 1].detach().abs()])
        top = x.detach().max()  # NaN if one is
        self.all_minus_inf = bool(top == -math.inf)
        self.plus_inf = bool((x == math.inf).any())
        if self.all_minus_inf:  # exp(x) is 0; the sum, 0 too, is there for its derivative
            self.weights = torch.exp(x) / (1 + torch.exp(x).sum())
        else:
            self.weights = torch.softmax(x, 0)
        self.p = self.weights[:len(keys)]
        self.o = (self.p[:, None] * self.v).sum(0)
        with torch.no_grad():
            underflowed = (self.p == 0) & torch.isfinite(x[:len(keys)])
            positive = torch.where(underflowed, torch.tensor(SMALLEST), self.p)
            self.underflowed_times_inf = bool((underflowed[:, None] & self.v.isinf()).any())
            self.o_value = torch.where(torch.isfinite(self.v).all(0), self.o, (positive[:, None] * self.v).sum(0))
            self.o_terms = (self.p[:, None] * self.v.abs()).sum(0)
            if self.all_minus_inf:
                self.lse, self.lse_terms = torch.tensor(-math.inf), torch.tensor(0.0)
            else:
                log_sum = torch.log(torch.exp(x - top).sum())
                self.lse = top + log_sum
                self.lse_terms = magnitude[x.argmax()] + log_sum.abs()


class NonFiniteJudge:
    def __init__(self):
        self.features = collections.Counter()
        self.largest = dict.fromkeys(CHANNELS, 0.0)
        self.compared = collections.Counter()
        self.not_finite = collections.Counter()
        self.failures = []

    def compare(self, channel, got, want, terms, what):
        """The same kind everywhere and every finite number within LIMIT of its terms."""
        assert got.shape == want.shape == terms.shape, (channel, got.shape, want.shape, terms.shape)
        if got.numel() == 0:
            return
        finite = torch.isfinite(want)
        same = torch.where(finite, torch.isfinite(got), (got == want) | (got.isnan() & want.isnan()))
        if channel not in ("o", "lse"):  # PyTorch sums p dP for D = sum dO O, where 0 * Inf hides an Inf
            same |= want.isnan() & got.isinf()
        self.compared[channel] += got.numel()
        self.not_finite[channel] += int((~finite).sum())
        if not same.all():
            at = int((~same).flatten().nonzero()[0])
            self.failures.append(f"{channel}[{at}] is {got.flatten()[at].item()!r}, PyTorch "
                                 f"{want.flatten()[at].item()!r}, {int((~same).sum())} such, in {what}")
            return
        difference = (got[finite] - want[finite]).abs()
        ratio = torch.where(difference == 0, difference, difference / terms[finite].clamp_min(UNDERFLOW))
        if not torch.isfinite(terms[finite]).all():
            self.failures.append(f"{channel} is finite where its terms are not, in {what}")
        elif ratio.numel() > 0:
            worst = float("inf") if ratio.isnan().any() else ratio.max().item()
            self.largest[channel] = max(self.largest[channel], worst)
            if not worst <= LIMIT:
                self.failures.append(f"{channel} differs by {worst:.3g} of its terms in {what}")

    def judge(self, case, tensor):
        if case.get("inputs") != "non_finite":
            sys.exit("judge_non_finite.py: a case without non_finite inputs")
        p = judge.read_problem({field: value for field, value in case.items() if field != "inputs"})
        what = json.dumps(case)
        group = p["nheads"] // p["nheads_k"]
        scale = judge.as_float32(1 / math.sqrt(p["headdim"]) if p["softmax_scale"] is None else p["softmax_scale"])
        sink = tensor["sink"][0, :, 0, 0].clone().requires_grad_() if p["sink"] else None
        bias = tensor["bias"].clone().requires_grad_() if p["bias"] != "none" else None
        dsink_terms = torch.zeros(p["nheads"])
        dbias_terms = torch.zeros_like(bias) if bias is not None else None
        self.count(p, tensor)
        loss, entries = torch.zeros(()), []
        for b in range(p["batch"]):
            sq, sk = judge.num_queries(p, b), judge.num_keys(p, b)

            def factor(name):
                return tensor[name][b, :, 0, 0] if name in tensor else torch.ones(p["nheads_k"])

            def leaf(name, rows, factors):
                return (tensor[name][b, :rows].transpose(0, 1) * factors[:, None, None]).clone().requires_grad_()

            leaves = {"q": leaf("q", sq, factor("q_descale").repeat_interleave(group)),
                      "k": leaf("k", sk, factor("k_descale")), "v": leaf("v", sk, factor("v_descale")),
                      "bias": bias, "sink": sink,
                      "slopes": tensor["alibi_slopes"][b, :, 0, 0] if p["alibi"] else None}
            dout = tensor["dout"][b, :sq].transpose(0, 1)
            o = torch.zeros(p["nheads"], sq, p["headdim_v"])
            lse = torch.full((p["nheads"], sq), -math.inf)
            if sink is not None:
                lse[:] = sink.detach()[:, None]
            terms = {"o": torch.zeros_like(o), "lse": lse.abs()}
            terms.update((name, torch.zeros_like(leaves[name[1:]])) for name in ("dq", "dk", "dv"))
            seen = collections.defaultdict(list)
            for i, j in judge.visible_pairs(p, b):
                seen[i].append(j)
            for h in range(p["nheads"]):
                for i in sorted(seen):
                    keys = torch.tensor(sorted(seen[i]))
                    row = Row(p, leaves, b, h, i, keys, scale)
                    loss = loss + (row.o * dout[h, i]).sum()
                    o[h, i], lse[h, i] = row.o_value, row.lse
                    terms["o"][h, i], terms["lse"][h, i] = row.o_terms, row.lse_terms
                    self.features["row-all-minus-inf"] += row.all_minus_inf
                    self.features["row-plus-inf"] += row.plus_inf
                    self.features["weight-underflowed-times-inf"] += row.underflowed_times_inf
                    self.features["untouched-row"] += bool(row.o_value.isfinite().all() and row.lse.isfinite())
                    with torch.no_grad():
                        d_terms = (dout[h, i].abs() * row.o_terms).sum()
                        t = row.p * ((row.v.abs() * dout[h, i].abs()).sum(1) + d_terms)
                        x_terms = abs(scale) * t * row.slope
                        terms["dq"][h, i] = (x_terms[:, None] * leaves["k"][h // group][keys].abs()).sum(0)
                        terms["dk"][h // group].index_add_(0, keys, x_terms[:, None] * leaves["q"][h, i].abs())
                        terms["dv"][h // group].index_add_(0, keys, row.p[:, None] * dout[h, i].abs())
                        if sink is not None:
                            dsink_terms[h] += row.weights[-1] * d_terms
                        if bias is not None:
                            dbias_terms[b if bias.shape[0] > 1 else 0][h if bias.shape[1] > 1 else 0, i].index_add_(
                                0, keys, t)
            entries.append((b, leaves, o, lse, terms))

        if loss.requires_grad:
            loss.backward()

        def gradient(leaf):
            return leaf.grad if leaf.grad is not None else torch.zeros_like(leaf)

        for b, leaves, o, lse, terms in entries:
            def head_first(name, rows):
                return tensor[name][b, :rows].transpose(0, 1) if name in tensor else torch.zeros(0)

            self.compare("o", head_first("o", o.shape[1]), o, terms["o"], what)
            self.compare("lse", tensor["lse"][b, :, :o.shape[1], 0], lse, terms["lse"], what)
            for name in ("dq", "dk", "dv"):
                want = gradient(leaves[name[1:]])
                self.compare(name, head_first(name, want.shape[1]), want, terms[name], what)
                finite = torch.isfinite(want)
                self.features[f"{name}-finite-beside-non-finite"] += bool(((want != 0) & finite).any() and
                                                                          not finite.all())
            self.features["o-nan"] += bool(o.isnan().any())
            self.features["o-inf"] += bool(o.isinf().any())
            self.features["lse-nan"] += bool(lse.isnan().any())
        if sink is not None:
            self.compare("dsink", tensor["dsink"][0, :, 0, 0], gradient(sink), dsink_terms, what)
        if bias is not None:
            self.compare("dbias", tensor["dbias"], gradient(bias), dbias_terms, what)

    def count(self, p, tensor):
        def hit(name, condition=True):
            self.features[name] += bool(condition)

        for b in range(p["batch"]):
            for name, rows in [("q", judge.num_queries(p, b)), ("k", judge.num_keys(p, b)),
                               ("v", judge.num_keys(p, b))]:
                hit(f"{name}-nan", tensor[name][b, :rows].isnan().any())
                hit(f"{name}-inf", tensor[name][b, :rows].isinf().any())
        if p["bias"] != "none":
            hit("bias-nan", tensor["bias"].isnan().any())
            hit("bias-inf", (tensor["bias"] == math.inf).any())
        hit("gqa", p["nheads"] > p["nheads_k"])
        for name in ("varlen_q", "varlen_k", "seqused_k", "softcap", "sink", "alibi", "prefix", "documents"):
            hit(name, p[name])
        hit("window", p["window_left"] >= 0 or p["window_right"] >= 0)
        hit("causal", p["causal"] != "none")


def main(folder):
    result, cases = NonFiniteJudge(), 0
    for case, tensors in judge.read_cases(folder):
        result.judge(case, tensors)
        cases += 1
    print(f"{cases} cases with NaN and Inf against PyTorch {torch.__version__} in float64")
    print("  " + ", ".join(f"{name} {result.features[name]}" for name in REQUIRED))
    print("  channel      numbers   not finite   largest difference over its terms")
    for channel in CHANNELS:
        print(f"  {channel:7}{result.compared[channel]:13,}{result.not_finite[channel]:13,}   "
              f"{result.largest[channel]:.3g}")
    return judge.exit_code(result, REQUIRED, cases >= 60)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
