"""The GPU rule for long scans in one kernel: runs of the threads of a thread block."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.problem import StepError
from tilewright.target.target import Target

SIMT = Target("simt")
TWO = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32], z: Out[(n,), f32]):
    t = alloc((n,), f32)
    for i in range(n):
        with block("first"):
            vi = ordered(i)
            t[vi] = scan(max, x[vi])
    for j in range(n):
        with block("copy"):
            vj = spatial(j)
            y[vj] = t[n - 1 - vj] * 2.0
    for k in range(n):
        with block("second"):
            vk = ordered(k)
            z[n - 1 - vk] = scan(add, t[n - 1 - vk])
"""
ROWS = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(2, 3, n), f32], y: Out[(2, 3, n), f32]):
    for a in range(2):
        for b in range(3):
            for i in range(n):
                with block("sums"):
                    va, vb, vi = spatial(a), spatial(b), ordered(i)
                    y[va, vb, vi] = scan(add, x[va, vb, vi])
"""
PAIRS = """
n = symbols("n", lower=0)

@prim_func
def f(a: Buffer[(n,), f32], b: Buffer[(n,), f32], p: Out[(n,), f32], h: Out[(n,), f32]):
    for i in range(n):
        with block("states"):
            vi = ordered(i)
            p[vi], h[vi] = scan(linear_recurrence, a[vi], b[vi])
"""


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 1031])
def test_two_scans_and_a_copy(n):
    sch = Schedule(parse(TWO), SIMT)
    sch.schedule_gpu_scan_runs("f")
    x = np.random.default_rng(n).integers(-3, 4, n).astype(np.float32)
    y, z = compile(sch.module, SIMT)["f"](x)
    largest = np.maximum.accumulate(x)
    np.testing.assert_array_equal(y, largest[::-1] * 2)
    np.testing.assert_array_equal(z, np.cumsum(largest[::-1])[::-1])


@pytest.mark.parametrize("n", [0, 1, 257])
def test_rows_have_their_own_thread_blocks(n):
    sch = Schedule(parse(ROWS), SIMT)
    sch.schedule_gpu_scan_runs("f")
    threads = [sch.state.loop(x).thread for x in sch.get_loops("sums")]
    assert threads == ["blockIdx.x", "", "threadIdx.x", ""]
    x = np.random.default_rng(n).integers(-3, 4, (2, 3, n)).astype(np.float32)
    np.testing.assert_array_equal(compile(sch.module, SIMT)["f"](x), np.cumsum(x, 2))


@pytest.mark.parametrize("n", [1, 70])
def test_an_operation_that_does_not_commute(n):
    sch = Schedule(parse(PAIRS), SIMT)
    sch.default_schedule()
    a, b = np.random.default_rng(n).uniform(0.5, 1.0, (2, n)).astype(np.float32)
    _, h = compile(sch.module, SIMT)["f"](a, b)
    state, expected = 0.0, []
    for factor, term in zip(a, b, strict=True):
        state = factor * state + term
        expected.append(state)
    np.testing.assert_allclose(h, expected, rtol=1e-5)


def test_a_function_without_a_long_scan_is_refused():
    sch = Schedule(parse(ROWS.replace("n)", "64)").replace("range(n)", "range(64)")), SIMT)
    with pytest.raises(StepError, match="has no long scan with few rows"):
        sch.schedule_gpu_scan_runs("f")
