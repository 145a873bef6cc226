"""Integers loaded from memory that are used in indices: checked, clamped, and per lane."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.script import parse
from tilewright.ir.thread.runtime_table import CODE_RANGE, CODE_RANGE_UNSIGNED

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


@pytest.mark.parametrize("loop", ["range", "vectorized"])
def test_an_integer_below_the_range_is_reported_with_the_least_value(loop: str) -> None:
    text = """
def segments(off: Buffer[(3,), i64], y: Out[(2,), i64]):
    for i in {loop}(2):
        with block("end"):
            vi = spatial(i)
            with checked(off[vi], 0, 8) as lo:
                with checked(off[vi + 1], lo, 8) as hi:
                    y[vi] = hi - lo
"""
    kernel, y, runtime = build(function(text.format(loop=loop))), np.empty(2, "i8"), Runtime()
    assert kernel(np.array([0, 5, 7]), y, runtime=runtime) == 0
    assert kernel(np.array([0, 5, 2]), y, runtime=runtime) == CODE_RANGE
    assert kernel(np.array([0, 5, 9]), y, runtime=runtime) == CODE_RANGE
    assert [tuple(e[2:]) for e in runtime.errors] == [(2, 5), (9, 8)]


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


UNSIGNED = """
def shifted(x: Buffer[(n,), f32], at: Buffer[(m,), u64], y: Out[(m,), f32]):
    for i in {loop}(m):
        with block("take"):
            vi = spatial(i)
            with {mode}(at[vi], -2, 6) as row:
                y[vi] = x[row + 2]
"""


@pytest.mark.parametrize("loop", ["range", "vectorized"])
@pytest.mark.parametrize("value", [2**64 - 1, 2**64 - 2, 2**63, 2**63 - 1, 6])
def test_an_unsigned_integer_is_not_read_as_a_negative_one(loop: str, value: int) -> None:
    x, y, runtime = np.arange(8, dtype=np.float32), np.empty(17, "f4"), Runtime()
    at = np.full(17, 5, np.uint64)
    kernel = build(function(UNSIGNED.format(loop=loop, mode="checked")))
    assert kernel(x, at, y, runtime=runtime) == 0
    assert (y == 7).all()
    at[16] = value
    code = CODE_RANGE if value < 2**63 else CODE_RANGE_UNSIGNED
    assert kernel(x, at, y, runtime=runtime) == code
    assert [e[2] % 2**64 for e in runtime.errors] == [value]


@pytest.mark.parametrize("loop", ["range", "vectorized"])
def test_a_large_unsigned_integer_is_clamped_to_the_upper_bound(loop: str) -> None:
    x, y = np.arange(8, dtype=np.float32), np.empty(4, "f4")
    at = np.array([2**64 - 1, 2**63, 3, 0], np.uint64)
    assert build(function(UNSIGNED.format(loop=loop, mode="clamped")))(x, at, y) == 0
    assert y.tolist() == [7, 7, 5, 2]


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
