#!/usr/bin/env python3
"""Times the sm80 forward beside PyTorch's FlashAttention-2 and cuDNN and the unfused baseline in one process, on one stream, in interleaved rounds.

    python3 bench/gpu/versus_torch.py --library build/cuda/bench/gpu/libattest_sm80_shared.so [--json FILE]

Inputs are fresh normal numbers for every point; our O is NaN before its first run and is then held to FlashAttention's,
in decoding to fp32 scores, softmax and products. TFLOP/s count 4 * seqlen^2 * headdim * heads * batch, half of it for
causal. Exit 1 where anything is WRONG.
"""
import argparse
import itertools
import json
import math
import pathlib
import statistics
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from kernels import Kernels


def milliseconds(run, repeats):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / repeats


def interleaved(runs, rounds, flush=None):
    """Median milliseconds of each of `runs`, about 10 ms of it a round; one run a round after flush() where given."""
    repeats, times = {}, {name: [] for name in runs}
    for name, run in runs.items():
        run()
        repeats[name] = 1 if flush else max(1, min(200, int(8 / milliseconds(run, 3))))
    for _ in range(rounds):
        for name, run in runs.items():
            if flush:
                flush()
            times[name].append(milliseconds(run, repeats[name]))
    return {name: statistics.median(t) for name, t in times.items()}


def normal(*shape, dtype):
    return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)


def torch_call(backend, q, k, v, causal):
    views = [t.transpose(1, 2) for t in (q, k, v)]
    with sdpa_kernel(backend):  # chosen here once: entering the context costs more than a launch
        scaled_dot_product_attention(*views, is_causal=causal)

    def run():
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(*views, is_causal=causal)

    return run


def raw_flash(q, k, v, causal):
    """FlashAttention-2 without the dispatcher's search for a backend."""
    views = [t.transpose(1, 2) for t in (q, k, v)]
    return lambda: torch.ops.aten._scaled_dot_product_flash_attention(*views, 0.0, causal, False)[0]


def worst(differences):
    """The largest, or NaN where there is one: an O that nothing has written stays NaN, and max() may drop it."""
    return math.nan if any(math.isnan(x) for x in differences) else max(differences)


def wrong(rows, limit, what):
    """Says so, and marks the rows, where their worst difference is not below `limit`."""
    bad = worst([r["max_difference"] for r in rows])
    for r in rows:
        r["wrong"] = not bad < limit
    if not bad < limit:
        print(f"WRONG: {what} is off by {bad}, not less than {limit}", flush=True)


def prefill(kernels, args):
    rows = []
    for headdim in args.headdim:
        for causal in (False, True):
            for seqlen in args.seqlen:
                batch, heads = max(1, args.tokens // seqlen), 2048 // headdim
                q, k, v = (normal(batch, seqlen, heads, headdim, dtype=torch.bfloat16) for _ in range(3))
                case = dict(batch=batch, nheads=heads, seqlen_q=seqlen, headdim=headdim, dtype="bf16",
                            causal="bottom-right" if causal else "none")
                flash = raw_flash(q, k, v, causal)
                runs, differences = {}, []
                ours = {name: (library, "sm80") for name, library in kernels.items()}
                if args.unfused:
                    ours["unfused"] = next(iter(kernels.values())), "unfused"
                for name, (library, kernel) in ours.items():
                    runs[name], o, _ = library.prepare(case, q, k, v, kernel=kernel)
                    runs[name]()
                    differences.append((o.float() - flash().transpose(1, 2).float()).abs().max().item())
                error = worst(differences)
                runs["fa2"] = flash
                if args.cudnn:
                    runs["cudnn"] = torch_call(SDPBackend.CUDNN_ATTENTION, q, k, v, causal)
                times = interleaved(runs, args.rounds)
                flops = 4 * seqlen * seqlen * headdim * heads * batch / (2 if causal else 1)
                rows.append(dict(headdim=headdim, causal=causal, seqlen=seqlen, max_difference=error, ms=times,
                                 tflops={n: flops / t / 1e9 for n, t in times.items()},
                                 speedup={n: times["fa2"] / times[n] for n in ours}))
                r = rows[-1]
                print(f"d{headdim:<4}{'causal' if causal else 'full':7}{seqlen:6}  " +
                      "  ".join(f"{n} {t:6.1f}" for n, t in r["tflops"].items()) +
                      "  TFLOP/s  " + " ".join(f"{r['speedup'][n]:.3f}x" for n in kernels) + f" of fa2  diff {error:.4f}", flush=True)
                wrong([r], 0.05, "O")
    for name in kernels if rows else ():
        by = [r["speedup"][name] for r in rows]
        print(f"{name}: geometric mean {statistics.geometric_mean(by):.3f}x of FA2, least {min(by):.3f}x, {len(by)} points")
    return rows


def decode_shape(kernels, args, batch, queries, keys, headdim=128):
    heads, heads_k = 64, 8
    q = normal(batch, queries, heads, headdim, dtype=torch.bfloat16)
    k, v = (normal(batch, keys, heads_k, headdim, dtype=torch.bfloat16) for _ in range(2))
    scrub, source = (torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(2))
    runs, differences = {}, []
    for splits, (name, kernel) in itertools.product(args.splits, kernels.items()):
        case = dict(batch=batch, nheads=heads, nheads_k=heads_k, seqlen_q=queries, seqlen_k=keys, headdim=headdim, dtype="bf16",
                    causal="bottom-right")
        if splits:
            case["num_splits"] = splits
        launch, o, _ = kernel.prepare(case, q, k, v)
        launch()
        runs[name, f"{splits}" if splits else f"chosen {kernel.num_splits(case)}"] = launch
        views = [t.transpose(1, 2).float() for t in (q[:1], k[:1], v[:1])]
        views[1:] = [t.repeat_interleave(heads // heads_k, 1) for t in views[1:]]
        scores = views[0] @ views[1].transpose(2, 3) / math.sqrt(headdim)
        scores += torch.full((queries, keys), -math.inf, device="cuda").triu(keys - queries + 1)
        exact = torch.softmax(scores, -1) @ views[2]
        differences.append((o[:1].transpose(1, 2).float() - exact).abs().max().item())
        del views, exact, scores
    times = interleaved(runs, args.rounds, flush=lambda: scrub.fill_(1))
    copy = interleaved({"copy": lambda: scrub.copy_(source)}, args.rounds)["copy"]
    copy_rate = 2 * scrub.numel() / copy / 1e9
    read = 2 * k.numel() * 2
    rows = []
    for (name, splits), ms in times.items():
        rate = read / ms / 1e9
        rows.append(dict(library=name, headdim=headdim, batch=batch, queries=queries, keys=keys, splits=splits, ms=ms, tb_per_second=rate,
                         of_copy=rate / copy_rate, max_difference=worst(differences)))
        which = f"{name}, " if len(kernels) > 1 else ""
        print(f"decode {batch} x {queries} on {keys:6}, d{headdim}, {which}splits {splits:9}: {ms:.4f} ms, {rate:.2f} TB/s, "
              f"{rate / copy_rate:.3f} of the copy's {copy_rate:.2f}", flush=True)
    wrong(rows, 0.01 if keys - queries > 1000 else 0.05, "O")  # rows of few keys hold larger numbers
    return rows


def decode(kernels, args):
    shapes = [[int(x) for x in shape.split("x")] for shape in args.decode]
    return [row for shape in shapes for row in decode_shape(kernels, args, *shape)]


def variants(kernels, args):
    """The plain kernel beside its ablations, beside copies of pages, and at headdim 192 with headdim_v 128. O of the last
    is held to fp32 products and softmax for its first batch, all others' to FlashAttention's."""
    kernel, rows = next(iter(kernels.values())), []
    batch, seqlen, heads, page = 4, 4096, 16, 64
    for causal in (False, True):
        def case(**more):
            return dict(batch=batch, nheads=heads, seqlen_q=seqlen, headdim=128, dtype="bf16",
                        causal="bottom-right" if causal else "none", **more)

        q, k, v = (normal(batch, seqlen, heads, 128, dtype=torch.bfloat16) for _ in range(3))
        names = ["sm80", "sm80-no-swizzle", "sm80-sync-copies", "sm80-no-skip", "sm80-spill"]
        calls = {name: kernel.prepare(case(), q, k, v, kernel=name) for name in names}
        order = torch.randperm(batch * seqlen // page, device="cuda")
        pages = []
        for t in (k, v):
            pages.append(torch.empty(batch * seqlen // page, page, heads, 128, dtype=t.dtype, device="cuda"))
            pages[-1][order] = t.view(-1, page, heads, 128)
        calls[f"pages of {page}"] = kernel.prepare(case(page_size=page), q, *pages, page_table=order.to(torch.int32))
        wide = [normal(batch, seqlen, heads, 192, dtype=torch.bfloat16) for _ in range(2)]
        calls["192/128"] = kernel.prepare(case() | dict(headdim=192, headdim_v=128), *wide, v)
        for launch, _, _ in calls.values():
            launch()
        flash = raw_flash(q, k, v, causal)().transpose(1, 2).float()
        views = [t[:1].transpose(1, 2).float() for t in (*wide, v)]  # one batch, in fp32, by no flash kernel
        with sdpa_kernel(SDPBackend.MATH):
            exact = scaled_dot_product_attention(*views, is_causal=causal).transpose(1, 2)
        error = {name: (o.float() - flash).abs().max().item() for name, (_, o, _) in calls.items() if name != "192/128"}
        error["192/128"] = (calls["192/128"][1][:1].float() - exact).abs().max().item()
        del flash, views, exact
        times = interleaved({name: launch for name, (launch, _, _) in calls.items()}, args.rounds)
        for name, ms in times.items():
            width = 192 + 128 if name == "192/128" else 2 * 128
            tflops = 2 * seqlen * seqlen * width * heads * batch / (2 if causal else 1) / ms / 1e9
            rows.append(dict(kernel=name, causal=causal, ms=ms, tflops=tflops, of_plain=times["sm80"] / ms,
                             max_difference=error[name]))
            print(f"{'causal' if causal else 'full':7}{name:18} {ms:.4f} ms  {tflops:6.1f} TFLOP/s  "
                  f"{times['sm80'] / ms:.3f} of plain  diff {error[name]:.4f}", flush=True)
            wrong(rows[-1:], 0.05, name)
    return rows


def general(kernels, args):
    """Builds beside each other where the general kernel runs: a prefix of one key, which changes nothing of a causal mask,
    and a softcap. O of the last is held to fp32 products and softmax for its first batch, the other's to FlashAttention's."""
    rows = []
    for headdim, softcap, seqlen in itertools.product(args.headdim, (False, True), args.seqlen):
        batch, heads = max(1, args.tokens // seqlen), 2048 // headdim
        q, k, v = (normal(batch, seqlen, heads, headdim, dtype=torch.bfloat16) for _ in range(3))
        case = dict(batch=batch, nheads=heads, seqlen_q=seqlen, headdim=headdim, dtype="bf16", causal="bottom-right")
        case.update(dict(softcap=30.0) if softcap else dict(prefix=1))
        calls = {name: kernel.prepare(case, q, k, v) for name, kernel in kernels.items()}
        if softcap:
            views = [t[:1, :, :1].transpose(1, 2).float() for t in (q, k, v)]  # one head
            scores = 30 * torch.tanh(views[0] @ views[1].transpose(2, 3) / math.sqrt(headdim) / 30)
            scores += torch.full((seqlen, seqlen), -math.inf, device="cuda").triu(1)
            exact = (torch.softmax(scores, -1) @ views[2]).transpose(1, 2)
        else:
            exact = raw_flash(q, k, v, True)().transpose(1, 2).float()
        differences = []
        for launch, o, _ in calls.values():
            launch()
            differences.append((o[:exact.shape[0], :, :exact.shape[2]].float() - exact).abs().max().item())
        times = interleaved({name: launch for name, (launch, _, _) in calls.items()}, args.rounds)
        what, first = "softcap" if softcap else "prefix", next(iter(times.values()))
        rows.append(dict(headdim=headdim, what=what, seqlen=seqlen, ms=times, max_difference=worst(differences)))
        print(f"d{headdim:<4}{what:8}{seqlen:6}  " + "  ".join(f"{n} {t:.4f} ms {first / t:.3f}x" for n, t in times.items()) +
              f"  diff {rows[-1]['max_difference']:.4f}", flush=True)
        wrong(rows[-1:], 0.05, what)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, nargs="+", help="builds to compare; --variants times the first")
    parser.add_argument("--json", help="write all numbers here")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--headdim", type=int, nargs="*", default=[64, 128, 256])
    parser.add_argument("--seqlen", type=int, nargs="*", default=[512, 1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--splits", type=int, nargs="*", default=[0, 8, 16], help="0: as many as choose_splits() finds best")
    parser.add_argument("--decode", nargs="*", default=["4x1x65536"], metavar="BATCHxQUERIESxKEYS[xHEADDIM]")
    parser.add_argument("--variants", action="store_true", help="time ablations, pages and headdim 192/128 as well")
    parser.add_argument("--cudnn", action="store_true", help="time cuDNN as well")
    parser.add_argument("--unfused", action="store_true", help="time the baseline of three kernels as well")
    parser.add_argument("--general", action="store_true", help="compare builds on what their general kernels run")
    args = parser.parse_args()
    kernels = {pathlib.Path(path).stem.removeprefix("lib"): Kernels(path) for path in args.library}
    result = dict(schema="attest/versus-torch/1", device=torch.cuda.get_device_name(), torch=torch.__version__)
    result["prefill"] = prefill(kernels, args)
    result["decode"] = decode(kernels, args) if args.splits else []
    result["variants"] = variants(kernels, args) if args.variants else []
    result["general"] = general(kernels, args) if args.general else []
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    return int(any(row["wrong"] for name in ("prefill", "decode", "variants", "general") for row in result[name]))


if __name__ == "__main__":
    sys.exit(main())
