"""Python kernels that do wrong, each under its own name."""

import ctypes
import os
import time

import attest


def register(name, **more):
    def add(forward):
        attest.kernel(name, dtypes=["fp32"], arithmetic="fp32", **more)(forward)
        return forward
    return add


def nothing(problem, t):
    pass


@register("raises")
def raises(problem, t):
    raise RuntimeError("no room")


@register("crashes")
def crashes(problem, t):
    ctypes.string_at(16)


@register("exits")
def exits(problem, t):
    os._exit(0)


@register("sleeps")
def sleeps(problem, t):
    time.sleep(0.3)


@register("leaves")
def leaves(problem, t):
    raise SystemExit(3)


@register("burns")
def burns(problem, t):
    end = time.process_time() + 0.03
    while time.process_time() < end:
        pass


@register("hangs")
def hangs(problem, t):
    time.sleep(1000)


calls_before_it_tires = 6


@register("tires")
def tires(problem, t):
    global calls_before_it_tires
    calls_before_it_tires -= 1
    burns(problem, t) if calls_before_it_tires > 0 else hangs(problem, t)


@register("chatters")
def chatters(problem, t):
    print('{"done": 1}', flush=True)


@register("out_of_bounds")
def out_of_bounds(problem, t):
    ctypes.memset(t.o.address - 4, 1, 4)


@register("far_away")
def far_away(problem, t):
    ctypes.memset(t.o.arena.first + t.o.arena.size - 64, 1, 8)


def bad_question(problem):
    return problem.no_such_field


register("asked_badly", supports=bad_question)(nothing)
register("rounds_badly", numerics=lambda problem, numerics: setattr(numerics, "chain", 0))(nothing)
register("refuses", supports=lambda problem: f"batch: {problem.batch} is not to my liking")(nothing)
attest.kernel("unknown_dtype", dtypes=["fp64"])(nothing)
attest.kernel("no_base", dtypes=["fp32"], lse_base=1)(nothing)
