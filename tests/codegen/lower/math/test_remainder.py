"""Remainder and floor division of floats are exact: the bits of the reference for all operands."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.dtype import DType, bf16, f16, f32, f64
from tilewright.ir.loop.element_functions import FUNCTIONS

from tests.codegen.functions import apply, elementwise
from tests.codegen.kernels import LEVELS

EDGES = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, 1.5, 3, -3, 3e38, -3e38, 1e20, -1e20, 1e-45,
     65504, 5e-324, 1.7e308, -1.7e308]
)  # fmt: skip


def operands(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of edge values, random bits, and random bits beside small divisors."""
    rng = np.random.default_rng(7)
    with np.errstate(all="ignore"):
        x, y = np.array(np.meshgrid(EDGES, EDGES)).reshape(2, -1).astype(dtype.numpy)
    bits = rng.integers(0, 1 << dtype.bits, (2, 1500), dtype=np.uint64)
    a, b = bits.astype(f"u{dtype.bits // 8}").view(dtype.numpy)
    small = rng.normal(0, 30, 1500).astype(dtype.numpy)
    return np.concatenate([x, a, a]), np.concatenate([y, b, small])


def same_bits(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return whether elements have equal bits or are both NaN."""
    word = f"u{found.itemsize}"
    with np.errstate(invalid="ignore"):  # signaling NaN
        nan = np.isnan(found.astype(np.float64)) & np.isnan(expected.astype(np.float64))
    return (found.view(word) == expected.view(word)) | nan


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [f16, bf16, f32, f64], ids=str)
@pytest.mark.parametrize("op", ["floordiv", "mod"])
def test_results_have_the_bits_of_the_reference(op: str, dtype: DType, level: str) -> None:
    x, y = operands(dtype)
    with np.errstate(all="ignore"):
        expected = [FUNCTIONS[op].reference(a, b) for a, b in zip(x, y, strict=True)]
    found = apply(elementwise(op, dtype, level, arity=2), x, y)
    same = same_bits(found, np.array(expected, dtype.numpy))
    assert same.all(), (x[~same][:4], y[~same][:4], found[~same][:4])


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_remainder_of_a_small_dividend_and_of_a_large_quotient(dtype: DType) -> None:
    x = np.array([1, 1, 3e38], dtype.numpy)
    y = np.array([-3e38, -1e20, 1.5], dtype.numpy)
    rest = apply(elementwise("mod", dtype, arity=2), x, y)
    quotient = apply(elementwise("floordiv", dtype, arity=2), x, y)
    np.testing.assert_array_equal(rest, np.fmod(x, y) + np.where(y < 0, y, 0))
    np.testing.assert_array_equal(quotient, np.array([-1, -1, x[2] / y[2]], dtype.numpy))
