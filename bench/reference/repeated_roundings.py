#!/usr/bin/env python3
"""Where the statistical budget's premise of independent roundings fails (docs/numerics.md), emulated with numpy.

    python3 bench/reference/repeated_roundings.py

First, scores rounded to fp16 over 2513 keys: the error of LSE over sqrt(sum (p u_S |s|)^2), by headdim. Then P and O
rounded to bf16, ALiBi, 128 rows of 200 keys: the mean square G of a block's error, by softcap (0: none).
"""
import numpy

random = numpy.random.default_rng(1)


def to_bf16(x):
    bits = numpy.ascontiguousarray(numpy.float32(x)).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32).astype(float)


def spacing(x):
    return 2.0 ** (numpy.floor(numpy.log2(numpy.abs(x))) - 7)


def lse_error(headdim):
    q, k = (random.standard_normal(n).astype(numpy.float16).astype(float) for n in ((headdim,), (2513, headdim)))
    s = k @ q / numpy.sqrt(headdim)
    rounded, p = s.astype(numpy.float16).astype(float), numpy.exp(s) / numpy.exp(s).sum()
    return numpy.log(numpy.exp(rounded).sum() / numpy.exp(s).sum()) / numpy.sqrt(((p * 2.0**-11 * numpy.abs(s)) ** 2).sum())


def block_mean_square(softcap, rows=128, keys=200, headdim=78, columns=64):
    q, k = random.standard_normal((rows, headdim)), random.standard_normal((keys, headdim))
    v, x = to_bf16(random.standard_normal((keys, columns))), q @ k.T / numpy.sqrt(headdim)
    distance = numpy.abs(numpy.arange(rows)[:, None] + keys - rows - numpy.arange(keys)[None])
    s = (softcap * numpy.tanh(x / softcap) if softcap else x) - 2.0 ** -random.integers(1, 9) * distance
    e = numpy.exp(s - s.max(1, keepdims=True))
    total = e.sum(1, keepdims=True)
    o = e @ v / total
    variance = (spacing(e) ** 2 / 12 * (e != 1)) @ v**2 / total**2 + spacing(o) ** 2 / 12
    return ((to_bf16(to_bf16(e) @ v / total) - o) ** 2 / variance).mean()


for headdim in (1, 2, 3, 4, 64):
    errors = numpy.array([lse_error(headdim) for _ in range(4000 if headdim < 8 else 1000)])
    print(f"headdim {headdim:3}: deviation {errors.std():.2f}, largest {numpy.abs(errors).max():.2f}")
for softcap in (0.1, 0.3, 1, 0):
    squares = numpy.array([block_mean_square(softcap) for _ in range(400)])
    print(f"softcap {softcap:4}: G {squares.mean():.2f}, deviation {squares.std():.3f}")
