"""The floor of a quotient of floats is the exact one, rounded once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tilewright.ir.dtype import DType, bf16, f16, f32, f64
from tilewright.ir.loop.element_functions import FUNCTIONS
from tilewright.ir.loop.float_division import floor_divide

FLOATS = [f16, bf16, f32, f64]


def pairs(dtype: DType, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random bit patterns, and patterns beside small divisors."""
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << dtype.bits, (2, count), dtype=np.uint64)
    x, y = bits.astype(f"u{dtype.bits // 8}").view(dtype.numpy)
    return np.concatenate([x, x]), np.concatenate([y, rng.normal(size=count).astype(dtype.numpy)])


def quotient(x: float, y: float, dtype: DType) -> float:
    """Return the floor of the exact quotient of finite numbers, rounded once by two neighbors."""
    exact = Fraction(x) // Fraction(y)
    try:
        near = dtype.numpy.type(float(exact))
    except OverflowError:
        near = dtype.numpy.type(math.inf if exact > 0 else -math.inf)
    around = [near, np.nextafter(near, dtype.numpy.type(0)), np.nextafter(near, near * 2)]
    finite = [v for v in around if np.isfinite(v)]
    best = min(finite, key=lambda v: (abs(Fraction(float(v)) - exact), _is_odd(v)))
    return float(near) if np.isinf(near) else float(best)


def _is_odd(value: np.floating) -> bool:
    return bool(int(np.asarray(value).view(f"u{value.itemsize}")) & 1)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_quotients_are_rounded_once(dtype: DType) -> None:
    x, y = pairs(dtype, 600)
    with np.errstate(all="ignore"):
        found = floor_divide(x, y)
        for a, b, q in zip(x, y, found, strict=True):
            scalar = FUNCTIONS["floordiv"].reference(a, b)
            assert scalar == q or (np.isnan(scalar) and np.isnan(q))
            if np.isfinite(a) and np.isfinite(b) and b != 0:
                assert float(q) == quotient(float(a), float(b), dtype), (a, b)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_quotients(dtype: DType) -> None:
    inf, nan = math.inf, math.nan
    cases = [
        (1.0, 0.0, inf), (-1.0, 0.0, -inf), (0.0, 0.0, nan), (inf, 2.0, nan), (nan, 1.0, nan),
        (1.0, inf, 0.0), (-1.0, inf, -1.0), (1.0, -inf, -1.0), (0.0, -inf, -0.0),
        (inf, inf, nan), (-0.0, 2.0, -0.0), (1.0, nan, nan),
    ]  # fmt: skip
    for x, y, expected in cases:
        found = floor_divide(dtype.numpy.type(x), dtype.numpy.type(y))
        assert repr(float(found)) == repr(expected), (x, y)


def test_a_quotient_that_numpy_rounds_twice() -> None:
    x, y = np.float32(2.0**24 * 3 + 8), np.float32(3)
    assert floor_divide(x, y) == np.float32(float((2**24 * 3 + 8) // 3))


def test_integer_arrays_are_divided_as_by_numpy() -> None:
    x, y = np.array([-7, 7, 5], np.int32), np.array([2, -2, 0], np.int32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(floor_divide(x, y), [-4, -4, 0])
