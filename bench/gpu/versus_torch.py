#!/usr/bin/env python3
"""Times the sm80 forward beside PyTorch's FlashAttention-2 and cuDNN in one process, on one stream, in interleaved rounds.

    python3 bench/gpu/versus_torch.py --library build/cuda/bench/gpu/libattest_sm80_shared.so [--json FILE]

Inputs are fresh normal numbers for every point; our O is NaN before its first run and is then held to FlashAttention's.
TFLOP/s count 4 * seqlen^2 * headdim * heads * batch, half of it for causal.
"""
import argparse
import ctypes
import json
import math
import pathlib
import statistics
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


class Kernels:
    """The shared library's calls."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.attest_error.restype = ctypes.c_char_p
        self.library.attest_workspace_bytes.restype = ctypes.c_longlong
        self.library.attest_open.restype = ctypes.c_void_p
        self.library.attest_open.argtypes = [ctypes.c_char_p] + [ctypes.c_void_p] * 6
        self.library.attest_launch.argtypes = [ctypes.c_void_p] * 2

    def check(self, good):
        if not good:
            raise RuntimeError(self.library.attest_error().decode())

    def prepare(self, case, q, k, v):
        """A function that launches `case`, and its O and LSE. Tensors are [batch, seqlen, heads, headdim]."""
        text = json.dumps(case).encode()
        size = self.library.attest_workspace_bytes(text)
        self.check(size >= 0)
        workspace = torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")
        o = torch.full((*q.shape[:3], v.shape[3]), math.nan, dtype=q.dtype, device="cuda")
        lse = torch.full((q.shape[0], q.shape[2], q.shape[1]), math.nan, device="cuda")
        call = self.library.attest_open(text, *(t.data_ptr() for t in (q, k, v, o, lse, workspace)))
        self.check(call)
        stream = torch.cuda.current_stream().cuda_stream

        def launch(keep=(q, k, v, workspace)):
            self.check(self.library.attest_launch(call, stream) == 0)

        return launch, o, lse


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
                runs, error = {}, 0
                for name, library in kernels.items():
                    runs[name], o, _ = library.prepare(case, q, k, v)
                    runs[name]()
                    difference = (o.float() - flash().transpose(1, 2).float()).abs().max().item()
                    error = max(error, difference) if difference == difference else difference
                runs["fa2"] = flash
                if args.cudnn:
                    runs["cudnn"] = torch_call(SDPBackend.CUDNN_ATTENTION, q, k, v, causal)
                times = interleaved(runs, args.rounds)
                flops = 4 * seqlen * seqlen * headdim * heads * batch / (2 if causal else 1)
                rows.append(dict(headdim=headdim, causal=causal, seqlen=seqlen, max_difference=error, ms=times,
                                 tflops={n: flops / t / 1e9 for n, t in times.items()},
                                 speedup={n: times["fa2"] / times[n] for n in kernels}))
                r = rows[-1]
                print(f"d{headdim:<4}{'causal' if causal else 'full':7}{seqlen:6}  " +
                      "  ".join(f"{n} {t:6.1f}" for n, t in r["tflops"].items()) +
                      "  TFLOP/s  " + " ".join(f"{x:.3f}x" for x in r["speedup"].values()) + f" of fa2  diff {error:.4f}", flush=True)
                if not error < 0.05:
                    print("WRONG", flush=True)
    for name in kernels if rows else ():
        by = [r["speedup"][name] for r in rows]
        print(f"{name}: geometric mean {statistics.geometric_mean(by):.3f}x of FA2, least {min(by):.3f}x, {len(by)} points")
    return rows


def decode(kernels, args):
    batch, heads, heads_k, keys, headdim = 4, 64, 8, 65536, 128
    q = normal(batch, 1, heads, headdim, dtype=torch.bfloat16)
    k, v = (normal(batch, keys, heads_k, headdim, dtype=torch.bfloat16) for _ in range(2))
    scrub, source = (torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(2))
    runs = {}
    for splits in args.splits:
        case = dict(batch=batch, nheads=heads, nheads_k=heads_k, seqlen_q=1, seqlen_k=keys, headdim=headdim, dtype="bf16",
                    num_splits=splits)
        launch, o, _ = next(iter(kernels.values())).prepare(case, q, k, v)
        launch()
        runs[splits] = launch
        views = [t.transpose(1, 2).float() for t in (q[:1], k[:1], v[:1])]
        views[1:] = [t.repeat_interleave(heads // heads_k, 1) for t in views[1:]]
        exact = torch.softmax(views[0] @ views[1].transpose(2, 3) / math.sqrt(headdim), -1) @ views[2]
        print(f"decode, {splits} splits: largest difference {(o[:1].transpose(1, 2).float() - exact).abs().max():.5f}")
        del views, exact
    times = interleaved(runs, args.rounds, flush=lambda: scrub.fill_(1))
    copy = interleaved({"copy": lambda: scrub.copy_(source)}, args.rounds)["copy"]
    copy_rate = 2 * scrub.numel() / copy / 1e9
    read = 2 * k.numel() * 2
    rows = []
    for splits, ms in times.items():
        rate = read / ms / 1e9
        rows.append(dict(splits=splits, ms=ms, tb_per_second=rate, of_copy=rate / copy_rate))
        print(f"decode, {splits:3} splits: {ms:.4f} ms, {rate:.2f} TB/s, {rate / copy_rate:.3f} of the copy's {copy_rate:.2f}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, nargs="+", help="builds to compare; decoding times the first")
    parser.add_argument("--json", help="write all numbers here")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--headdim", type=int, nargs="*", default=[64, 128, 256])
    parser.add_argument("--seqlen", type=int, nargs="*", default=[512, 1024, 2048, 4096, 8192, 16384])
    parser.add_argument("--splits", type=int, nargs="*", default=[8, 16, 32])
    parser.add_argument("--cudnn", action="store_true", help="time cuDNN as well")
    args = parser.parse_args()
    kernels = {pathlib.Path(path).stem.removeprefix("lib"): Kernels(path) for path in args.library}
    result = dict(schema="attest/versus-torch/1", device=torch.cuda.get_device_name(), torch=torch.__version__)
    result["prefill"] = prefill(kernels, args)
    result["decode"] = decode(kernels, args) if args.splits else []
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
