"""Temporaries, parallel regions, integers read from memory, and debug mode."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.script import parse
from tilewright.ir.thread.table import CODE_BOUNDS, CODE_RANGE

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
def test_rows_of_a_parallel_loop_use_scratch_of_their_own(level: str, threads: int) -> None:
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


GATHER = """
def gather(x: Buffer[(n, 40), f32], at: Buffer[(m,), i64], y: Out[(m, 40), f32]):
    for i in range(m):
        for j in vectorized(40):
            with block("take"):
                vi, vj = spatial(i), spatial(j)
                with {mode}(at[vi], 0, n) as row:
                    y[vi, vj] = x[row, vj]
"""


def test_checked_integers_report_what_is_out_of_range() -> None:
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
def test_integers_that_differ_from_lane_to_lane(count: int) -> None:
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


SHIFTED = """
def shifted(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in vectorized(n):
        with block("shift"):
            vi = spatial(i)
            y[vi] = x[vi + {by}]
"""


def test_debug_mode_reports_the_first_access_outside() -> None:
    kernel = build(function(SHIFTED.format(by=2)), debug=True)
    x, y, runtime = np.arange(6, dtype=np.float32), np.zeros(6, np.float32), Runtime()
    assert kernel(x, y, runtime=runtime) == CODE_BOUNDS
    ((_, text, index, extent),) = runtime.errors
    assert (index, extent) == (6, 6)
    assert text == "x: index of axis 0 is outside of its extent in block shift"
    np.testing.assert_array_equal(y, [2, 3, 4, 5, 0, 0])


def test_debug_mode_lets_correct_programs_pass() -> None:
    kernel = build(function(SHIFTED.format(by=0)), debug=True)
    x, y, runtime = np.arange(6, dtype=np.float32), np.zeros(6, np.float32), Runtime()
    assert kernel(x, y, runtime=runtime) == 0
    np.testing.assert_array_equal(y, x)
    assert not runtime.errors


PADDED = """
def padded(x: Buffer[(n,), f32], y: Out[(n + 2,), f32]):
    for i in vectorized(n + 2):
        with block("pad"):
            vi = spatial(i)
            y[vi] = where(1 <= vi and vi <= n, x[vi - 1], 0.0)
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("size", [1, 14, 15, 16, 47])
def test_the_side_of_a_choice_not_taken_is_not_read(level: str, size: int, debug: bool) -> None:
    page = np.full(size + 8, np.nan, np.float32)
    x = page[4:-4]
    x[:] = np.arange(size)
    y = np.empty(size + 2, np.float32)
    assert build(function(PADDED), level, debug=debug)(x, y) == 0
    np.testing.assert_array_equal(y, np.pad(x, 1))


LANES = """
def lanes(x: Buffer[(n, 16), f32], y: Out[(n, 16), f32]):
    t = alloc((n, 16), f32)
    for i in range(n):
        for j in vectorized(16):
            with block("first"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vi, vj] * 2.0
            with block("second"):
                wi, wj = spatial(i), spatial(j)
                y[wi, wj] = t[wi, wj] + 1.0
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("around", ["range(n)", "parallel(n)"])
def test_each_lane_has_elements_of_its_own(level: str, around: str) -> None:
    """Found by random programs: a temporary inside of a vectorized loop shrank to one element."""
    x = np.random.default_rng(0).random((300, 16), np.float32)
    y = np.empty_like(x)
    kernel = build(function(LANES.replace("range(n)", around)), level)
    assert kernel(x, y, runtime=Runtime(threads=2)) == 0
    np.testing.assert_array_equal(y, x * 2 + 1)
