"""Temporaries shrunk to the part that is live at a time."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.errors import MemoryScopeError

from tests.codegen.kernels import LEVELS, Runtime, build
from tests.codegen.lower.passes.running import (
    CPU,
    both,
    comparison,
    program,
    racing,
    rejected,
    same_results,
    text_of,
    unchanged,
)

NAME = "compact_buffers"

REVERSE = """
n = symbols("n", lower=1)

@prim_func
def reverse(x: Buffer[(n, 8), i32], y: Out[(n, 8), i32]):
    t = alloc((n, 8), i32)
    for i in {kind}(n):
        for j in range(8):
            with block("double"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vi, vj] * 2
        for k in range(8):
            with block("reverse"):
                wi, wk = spatial(i), spatial(k)
                y[wi, wk] = t[{row}, 7 - wk]
"""
LANES = """
n = symbols("n", lower=1)

@prim_func
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
TILES = """
n = symbols("n", lower=1)

@prim_func
def tiles(n: Int, x: Buffer[(n * 4,), i32], y: Out[(n * 4,), i32]):
    t = alloc((n * 4 + 1,), i32)
    for i in range(n):
        for j in range(5):
            with block("double"):
                vj = spatial(n * 4 + 1, i * 4 + j)
                t[vj] = x[min(vj, n * 4 - 1)] * 2
        for k in range(4):
            with block("sum"):
                vk = spatial(n * 4, i * 4 + k)
                y[vk] = t[vk] + t[vk + 1]
"""


def reverse(kind="range", row="wi"):
    """Return a program whose temporary has one live row."""
    return REVERSE.format(kind=kind, row=row)


def test_golden(golden):
    """Each worker of a parallel loop has a row."""
    golden(f"{NAME}.txt", comparison(NAME, reverse("parallel"), CPU))


@pytest.mark.parametrize("text", [reverse(), reverse("parallel"), LANES, TILES])
@pytest.mark.parametrize("n", [1, 4])
def test_results(text, n):
    same_results(*both(NAME, text, CPU), n=n)


def test_a_temporary_of_a_serial_loop_keeps_its_scope():
    assert "t = alloc((1, 8), i32)" in text_of(both(NAME, reverse(), CPU)[1])


def test_indices_are_relative_to_the_tile():
    text = text_of(both(NAME, TILES, CPU)[1])
    assert "t = alloc((5,), i32)" in text
    assert "t[k] + t[k + 1]" in text


@pytest.mark.parametrize("row", ["n - 1 - wi", "0", "max(wi - 1, 0)"])
def test_a_temporary_of_which_another_iteration_reads_is_not_changed(row):
    assert unchanged(NAME, reverse(row=row), CPU)


def test_parameters_are_not_changed():
    text = (
        reverse()
        .replace("    t = alloc((n, 8), i32)\n", "")
        .replace("y: Out[(n, 8), i32]", "y: Out[(n, 8), i32], t: Out[(n, 8), i32]")
    )
    first, second = both(NAME, text, CPU)
    assert second is first


def test_a_loop_of_one_iteration():
    text = reverse().replace("(n, 8)", "(1, 8)").replace("range(n)", "range(1)")
    text = text.replace('n = symbols("n", lower=1)\n', "").replace("spatial(i)", "spatial(1, i)")
    same_results(*both(NAME, text, CPU))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("around", ["range(n)", "parallel(n)"])
def test_each_lane_keeps_its_element(level: str, around: str) -> None:
    """Found by random programs: a temporary in a vectorized loop shrank to one element."""
    x = np.random.default_rng(0).random((300, 16), np.float32)
    y = np.empty_like(x)
    kernel = build(program(LANES.replace("range(n)", around)), level)
    assert kernel(x, y, runtime=Runtime(threads=2)) == 0
    np.testing.assert_array_equal(y, x * 2 + 1)


GUARDED = """
@prim_func(scheduled=True)
def windows(x: Buffer[(18,), f32], y: Out[(16,), f32]):
    t = alloc((18,), f32)
    for i in range(16):
        for r in range(3):
            with block("fill"):
                vi, vr = spatial(16, i), spatial(3, r)
                guard(i == 0 or r == 2)
                t[vi + vr] = x[vi + vr]
        with block("sum"):
            vk = spatial(16, i)
            y[vk] = t[vk] + t[vk + 1] + t[vk + 2]
"""

MAYBE_EMPTY = """
@prim_func
def skipped(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    t = alloc((8,), f32)
    for i in {kind}(8):
        for r in range((2 - i % 3) // 2):
            with block("fill"):
                vi, vr = spatial(8, i), spatial(1, r)
                t[{at}] = x[vi]
        with block("copy"):
            vi = spatial(8, i)
            y[vi] = t[{at}]
"""


def test_a_window_filled_under_a_guard_keeps_its_elements():
    """Iterations after the first write only the last element of their window."""
    assert unchanged(NAME, GUARDED, CPU)


@pytest.mark.parametrize("level", LEVELS)
def test_a_window_filled_under_a_guard_is_read_by_later_iterations(level: str) -> None:
    x, y = np.arange(18, dtype=np.float32), np.empty(16, np.float32)
    assert build(program(GUARDED), level)(x, y) == 0
    np.testing.assert_array_equal(y, 3 * np.arange(16, dtype=np.float32) + 3)


def test_a_write_in_a_loop_that_may_be_empty_does_not_count():
    assert unchanged(NAME, MAYBE_EMPTY.format(kind="range", at="vi"), CPU)
    shared = both(NAME, MAYBE_EMPTY.format(kind="parallel", at="vi"), CPU)[1]
    assert "t = alloc((8,), f32)" in text_of(shared)


def test_iterations_of_a_parallel_loop_that_share_an_element():
    func = racing(MAYBE_EMPTY.format(kind="parallel", at="0"))
    message = "iterations of parallel loop 'i' share temporary 't'"
    rejected(NAME, func, CPU, MemoryScopeError, message, "compute_at")


def test_an_element_at_an_index_loaded_from_memory_is_not_moved():
    text = """
@prim_func
def f(c: Buffer[(8,), i32], y: Out[(8,), i32]):
    t = alloc((4,), i32)
    for i in range(8):
        with checked(c[i], 0, 4) as p:
            with block("read"):
                vi, vp = spatial(i), spatial(4, p)
                y[vi] = where(condition(vi > 0), t[vp], 0)
            with block("write"):
                wi, wp = spatial(i), spatial(4, p)
                t[wp] = i32(7)
"""
    assert unchanged(NAME, text, CPU)
