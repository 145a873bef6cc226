"""Predicted rates of kernels."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.workbench.predictions import estimated_instructions, predicted_gflops
from tilewright.workbench.protocol_runs import Roof, RoofLevel

from tests.workbench.conftest import MATMUL

LEVEL = RoofLevel("memory", 0, 10.0)
ROOF = Roof("fma", 2, 64.0, [LEVEL])
"""A roof of one multiply-add of a vector per nanosecond and thread."""

SCALE = """
n = symbols("n", lower=0)

@prim_func
def scale(x: Buffer[(n, 32), f32], y: Out[(n, 32), f32]):
    for i in {outer}(n):
        for j in {inner}(32):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
"""


def instructions(outer: str, inner: str, n: int, threads: int = 2) -> float | None:
    scale = tw.parse(SCALE.format(outer=outer, inner=inner)).prim("scale")
    return estimated_instructions(scale, {"n": n}, threads)


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_vectors_and_threads_reduce_the_instructions(n: int) -> None:
    assert instructions("range", "range", n) == n * 32 * 3
    assert instructions("range", "vectorized", n) == n * 2 * 3
    assert instructions("parallel", "vectorized", n) == n * 3
    assert instructions("parallel", "vectorized", n, threads=1) == n * 6


def test_a_reduction_initializes_each_element_once() -> None:
    matmul = tw.parse(MATMUL).prim("matmul")
    each = 5  # three loads, a multiply-add, and a store
    assert estimated_instructions(matmul, {"n": 2}, 1) == 2 * 24 * (16 * each + 1)


def test_a_kernel_without_sample_has_no_estimate() -> None:
    assert estimated_instructions(tw.parse(MATMUL).prim("matmul"), {}, 1) is None


@pytest.mark.parametrize(
    ("instructions", "size", "expected"),
    [(100.0, 10.0, 32.0), (200.0, 10.0, 16.0), (100.0, 4000.0, 8.0), (0.0, 0.0, 0.0)],
)
def test_the_slower_one_of_instructions_and_bytes_decides(
    instructions: float, size: float, expected: float
) -> None:
    operations = 0.0 if not instructions else 3200.0
    assert predicted_gflops(instructions, operations, size, ROOF, LEVEL) == expected


def test_no_prediction_exceeds_the_roof_of_full_vectors() -> None:
    """All threads execute only multiply-adds of vectors."""
    instructions, threads = 100.0, ROOF.threads
    operations = 32 * instructions * threads
    assert predicted_gflops(instructions, operations, 1.0, ROOF, LEVEL) == ROOF.gflops
