"""Integers loaded from memory that are used in indices: checked, clamped, and per lane."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.script import parse
from tilewright.ir.thread.runtime_table import CODE_RANGE

from tests.codegen.kernels import Runtime, build

HEAD = "n, m = symbols('n m', lower=1)\n\n"


def function(body: str):
    module = parse(HEAD + "@prim_func\n" + body)
    return next(iter(module.functions.values()))


GATHER = """
def gather(x: Buffer[(n, 40), f32], at: Buffer[(m,), i64], y: Out[(m, 40), f32]):
    for i in range(m):
        for j in vectorized(40):
            with block("take"):
                vi, vj = spatial(i), spatial(j)
                with {mode}(at[vi], 0, n) as row:
                    y[vi, vj] = x[row, vj]
"""


def test_checked_integers_report_values_out_of_range() -> None:
    x = np.arange(200, dtype=np.float32).reshape(5, 40)
    kernel, y, runtime = (
        build(function(GATHER.format(mode="checked"))),
        np.empty((3, 40), "f4"),
        Runtime(),
    )
    assert kernel(x, np.array([4, 0, 2]), y, runtime=runtime) == 0
    np.testing.assert_array_equal(y, x[[4, 0, 2]])
    assert kernel(x, np.array([4, 5, 2]), y, runtime=runtime) == CODE_RANGE
    ((code, text, value, limit),) = runtime.errors
    assert (code, value, limit) == (CODE_RANGE, 5, 5)
    assert "at" in text


def test_clamped_integers_stay_in_range() -> None:
    x = np.arange(200, dtype=np.float32).reshape(5, 40)
    kernel, y = build(function(GATHER.format(mode="clamped"))), np.empty((3, 40), "f4")
    assert kernel(x, np.array([-7, 3, 99]), y) == 0
    np.testing.assert_array_equal(y, x[[0, 3, 4]])


PER_LANE = """
def per_lane(x: Buffer[(n,), f32], at: Buffer[(m,), i32], y: Out[(m,), f32]):
    for i in vectorized(m):
        with block("take"):
            vi = spatial(i)
            with checked(at[vi], 0, n) as row:
                y[vi] = x[row]
"""


@pytest.mark.parametrize("count", [1, 15, 16, 37])
def test_integers_that_differ_per_lane(count: int) -> None:
    rng = np.random.default_rng(1)
    x, at = rng.random(9, np.float32), rng.integers(0, 9, count, np.int32)
    y = np.empty(count, np.float32)
    assert build(function(PER_LANE))(x, at, y) == 0
    np.testing.assert_array_equal(y, x[at])


ACROSS_THREADS = """
def across(x: Buffer[(n, 64), f32], at: Buffer[(m,), i64], y: Out[(m, 64), f32]):
    for i in parallel(m):
        for j in vectorized(64):
            with block("take"):
                vi, vj = spatial(i), spatial(j)
                with checked(at[vi], 0, n) as row:
                    y[vi, vj] = x[row, vj]
"""


def test_an_error_inside_a_parallel_region_reaches_the_caller() -> None:
    x, at = np.ones((4, 64), np.float32), np.zeros(60_000, np.int64)
    y, runtime = np.empty((60_000, 64), np.float32), Runtime(threads=2)
    kernel = build(function(ACROSS_THREADS))
    assert kernel(x, at, y, runtime=runtime) == 0
    assert runtime.regions == 1
    at[47_000] = -1
    assert kernel(x, at, y, runtime=runtime) == CODE_RANGE
    assert [e[2] for e in runtime.errors] == [-1]
