"""Loops whose extents depend on other loops, as in causal attention."""

from __future__ import annotations

import random
import warnings
from collections import Counter

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule
from tilewright.schedules.patterns import Matmul, classify
from tilewright.schedules.primitives.tensorize.pad_einsum import PadEinsum

from tests.schedules.helpers import rejected, schedule
from tests.schedules.random_steps import loop_level, random_step

PRODUCT = """
n = symbols("n", lower=1)

@prim_func
def random(A: Buffer[(n, n), f32], B: Buffer[(n, 8), f32], y: Out[(n, 8), f32]):
    for i in range(n):
        for j in range(8):
            for k in range({extent}):
                with block("s"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[vi, vj] = 0.0
                    y[vi, vj] += A[vi, vk] * B[vk, vj]
"""

CHAIN = """
n = symbols("n", lower=1)

@prim_func
def random(A: Buffer[(n, n), f32], y: InOut[(n, n), f32]):
    t = alloc((n, n), f32)
    for i in range(n):
        for k in range(i + 1):
            with block("s"):
                vi, vk = spatial(i), spatial(k)
                t[vi, vk] = A[vi, vk] * 2.0
    for i2 in range(n):
        for k2 in range(i2 + 1):
            with block("e"):
                wi, wk = spatial(i2), spatial(k2)
                y[wi, wk] = t[wi, wk] + 1.0
"""
EXTENTS = ("i + 1", "min(i + 1, 16)", "n - i", "i // 2 + 1")
PROGRAMS = (*(PRODUCT.format(extent=e) for e in EXTENTS), CHAIN)


def test_random_steps_preserve_results(fuzz_factor):
    applied: Counter[str] = Counter()
    for seed in range(60 * fuzz_factor):
        rng = random.Random(seed)
        sch = schedule(rng.choice(PROGRAMS))
        for _ in range(4):
            step = random_step(rng, sch.state, rng.choice(loop_level()))
            if step is not None and not sch.check(step):
                sch.apply(step)
                applied[step.verb()] += 1
        assert not violations(sch.module.prims[0]), f"{sch.trace}\n{sch}"
        assert sch.verify(runs=2).ok, f"{sch.trace}\n{sch}"
    assert applied.keys() >= {"split", "fuse", "cache_read", "blockize", "loop_partition"}


def test_extents_of_a_block_follow_the_loop():
    sch = schedule(PRODUCT.format(extent="i + 1"))
    sch.split("i", factors=(None, 4))
    extent = sch.state.block(sch.get_block("s")).iters[2].extent
    assert str(extent) == "i_0 * 4 + i_1 + 1"


def test_a_copy_covers_the_reads_of_all_iterations():
    sch = schedule(PRODUCT.format(extent="i + 1"))
    copy = sch.cache_read("s", "B", "global")
    assert [str(sch.state.loop(x).extent) for x in sch.get_loops(copy)] == ["n", "8"]


def test_a_block_is_not_padded():
    sch = schedule(PRODUCT.format(extent="i + 1"))
    step = PadEinsum(sch.get_block("s"), (3, 2, 3))
    rejected(sch, step, PadEinsum.Requires.WHOLE_LOOPS, "the extent i + 1 of iteration variable")


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("target", [None, "cpu", "simt"])
def test_the_default_schedule(extent, target):
    module = tw.parse(PRODUCT.format(extent=extent))
    assert not isinstance(classify(module.prims[0]), Matmul)
    sch = Schedule(module, target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sch.default_schedule()
    assert len(sch.trace)
    assert sch.verify().ok


def test_the_compiled_product():
    rng = np.random.default_rng(1)
    a, b = rng.integers(-4, 4, (13, 13)), rng.integers(-4, 4, (13, 8))
    a, b = a.astype(np.float32), b.astype(np.float32)
    result = tw.compile(tw.parse(PRODUCT.format(extent="i + 1")), "cpu")(a, b)
    np.testing.assert_array_equal(result, np.tril(a) @ b)
