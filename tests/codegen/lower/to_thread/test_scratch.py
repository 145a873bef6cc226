"""Temporaries of parallel regions: one copy per worker in the scratch argument."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.script import parse
from tilewright.schedules import Schedule

from tests.codegen.kernels import LEVELS, Runtime, build

HEAD = "n, m = symbols('n m', lower=1)\n\n"


def function(body: str):
    module = parse(HEAD + "@prim_func\n" + body)
    return next(iter(module.functions.values()))


ROWS = """
def rows(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    row = alloc((n, m), f32)
    for i in parallel(n):
        for j in range(m):
            with block("double"):
                vi, vj = spatial(i), spatial(j)
                row[vi, vj] = x[vi, vj] * 2.0
        for k in range(m):
            with block("reverse"):
                vi, vk = spatial(i), spatial(k)
                reads(row[vi, 0:m])
                y[vi, vk] = row[vi, m - 1 - vk] + 1.0
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rows_of_a_parallel_loop_use_separate_scratch(level: str, threads: int) -> None:
    x = np.random.default_rng(0).random((400, 300), np.float32)
    y, runtime = np.empty_like(x), Runtime(threads=threads)
    kernel = build(function(ROWS), level)
    assert kernel.artifact.parallel
    assert kernel.artifact.scratch is not None
    assert kernel(x, y, runtime=runtime) == 0
    np.testing.assert_array_equal(y, (x * 2 + 1)[:, ::-1])
    assert runtime.regions == (threads > 1)


def test_small_parallel_loops_stay_on_one_thread() -> None:
    x = np.ones((3, 4), np.float32)
    y, runtime = np.empty_like(x), Runtime(threads=2)
    assert build(function(ROWS))(x, y, runtime=runtime) == 0
    assert runtime.regions == 0
    np.testing.assert_array_equal(y, np.full((3, 4), 3, np.float32))


def test_a_local_copy_that_two_parallel_regions_use_is_shared() -> None:
    module = parse("""
@prim_func
def f(x: Buffer[(800, 600), f32], y: Out[(800, 600), f32]):
    for i in range(800):
        for j in range(600):
            with block("double"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
""")
    schedule = Schedule(module)
    schedule.cache_read("double", "x", "local")
    schedule.parallel("ax0")
    schedule.parallel("i")
    x = np.random.default_rng(0).random((800, 600), np.float32)
    y, runtime = np.empty_like(x), Runtime(threads=2)
    assert build(schedule.module.prim("f"))(x, y, runtime=runtime) == 0
    np.testing.assert_array_equal(y, x * 2)
    assert runtime.regions == 2
