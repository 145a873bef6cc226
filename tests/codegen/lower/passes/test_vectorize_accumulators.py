"""Vector accumulators of vectorized reductions."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

from tests.codegen.kernels import LEVELS
from tests.codegen.lower.passes.running import (
    CPU,
    both,
    comparison,
    racing,
    same_results,
    text_of,
    unchanged,
)

NAME = "vectorize_accumulators"

SUMS = """
m, n = symbols("m n", lower=1)

@prim_func
def sums(n: Int, x: Buffer[(m, n * 16), f32], y: InOut[(m,), f32]):
    for i in range(m):
        for k0 in range(n):
            for k1 in vectorized(16):
                with block("sum"):
                    vi, vk = spatial(i), reduce(n * 16, k0 * 16 + k1)
                    y[vi] += x[vi, vk]
"""
"""Two registers of partial sums per row."""

ONE = SUMS.replace("16", "8")
"""One register of partial sums per row."""

TILE = """
n = symbols("n", lower=1)

@prim_func
def tile(x: Buffer[(n, 3, 8), f32], y: InOut[(3,), f32]):
    for k in range(n):
        for i in unrolled(3):
            for v in vectorized(8):
                with block("sum"):
                    vi, vk, vv = spatial(i), reduce(k), reduce(v)
                    y[vi] {update}
"""


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, SUMS, CPU))


@pytest.mark.parametrize("text", [SUMS, ONE])
@pytest.mark.parametrize("n", [1, 3, 4, 9])
def test_results(text, n):
    same_results(*both(NAME, text, CPU), m=2, n=n)


def test_one_register_has_four_interleaved_accumulators():
    _, second = both(NAME, ONE, CPU)
    assert 'y_partial = alloc((4, 8), f32, scope="local")' in text_of(second)
    assert "for k0_member in unrolled(4):" in text_of(second)


def test_few_iterations_have_one_accumulator():
    text = ONE.replace("range(n)", "range(3)").replace("n * 8", "24")
    first, second = both(NAME, text, CPU)
    assert "alloc((1, 8), f32" in text_of(second)
    same_results(first, second, m=2, n=1)


@pytest.mark.parametrize("update", ["+= x[vk, vi, vv]", "= max(y[vi], x[vk, vi, vv])"])
def test_each_element_of_a_tile_has_an_accumulator(update):
    first, second = both(NAME, TILE.format(update=update), CPU)
    assert "alloc((1, 3, 8), f32" in text_of(second)
    same_results(first, second, n=5)


PARALLEL_IN_SERIAL = """
n = symbols("n", lower=1)

@prim_func(scheduled=True)
def total(x: Buffer[(n, 16), f32], y: InOut[(), f32]):
    for k in range(n):
        for unit in parallel(1):
            for v in vectorized(16):
                with block("sum"):
                    vk, vv = reduce(k), reduce(v)
                    y[()] += x[vk, vv]
"""

UNCHANGED = {
    "registers of another worker": PARALLEL_IN_SERIAL,
    "serial": ONE.replace("vectorized", "range"),
    "more than registers hold": TILE.format(update="+= x[vk, vi, vv]").replace(" 3", " 200")
    .replace("(3", "(200"),
}  # fmt: skip


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED)
def test_other_loops_are_not_changed(text):
    assert unchanged(NAME, text, CPU)


@pytest.mark.parametrize(
    "value", ["x[vi, vk] - y[vi]", "y[vi] + x[vi, vk] * y[vi]"], ids=["order", "result"]
)
def test_updates_that_depend_on_their_order_are_not_changed(value):
    assert unchanged(NAME, racing(ONE.replace("+= x[vi, vk]", f"= {value}")), CPU)


def test_a_loop_without_iterations_accesses_no_element():
    text = """
n = symbols("n", lower=0)

@prim_func
def total(x: Buffer[(n, 16), f32], y: InOut[(n,), f32]):
    for i in range(1):
        for k in range(n):
            for v in vectorized(16):
                with block("sum"):
                    vi, vk, vv = spatial(n, i), reduce(k), reduce(v)
                    y[vi] += x[vk, vv]
"""
    first, second = both(NAME, text, CPU)
    for n in (0, 1, 7):  # the interpreter checks every index
        same_results(first, second, n=n)


EXTREMES = """
n, m = symbols("n m", lower=0)

@graph_func
def main(x: Tensor[(n, m), {dtype}]):
    y = {name}(x, axes=({axis},))
    return y
"""
COLUMNS = (1, 2, 7, 31, 64, 65, 131, 1031)


def with_nan(size: int, dtype: type) -> np.ndarray:
    """Return rows with NaN at no, all, and single columns, and a row of infinities."""
    x = np.random.default_rng(size).standard_normal((6, size)).astype(dtype)
    x[1] = x[2, size // 2] = x[3, 0] = x[4, -1] = np.nan
    x[5] = -np.inf
    return x


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["max", "min"])
def test_one_nan_is_the_result(name: str, axis: int, level: str) -> None:
    for dtype, of in (("f32", np.float32), ("f16", np.float16), ("f64", np.float64)):
        module = tw.parse(EXTREMES.format(name=name, axis=axis, dtype=dtype))
        run = tw.compile(module, tw.Target("cpu", features=(level,)))
        for size in COLUMNS:
            x = with_nan(size, of)
            np.testing.assert_array_equal(run(x), getattr(np, name)(x, axis=axis))
