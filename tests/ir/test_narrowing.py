"""Rounding of doubles to narrow floats, once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tilewright.ir.dtype import DTYPES, DType, f16
from tilewright.ir.narrowing import narrowed

NARROW = [row for row in DTYPES.values() if row.is_float and row.bits <= 16]


def _finite(row: DType) -> np.ndarray:
    """Return the finite non-negative values of a dtype, in order."""
    codes = np.arange(2 ** (row.bits - 1), dtype=f"u{row.bits // 8}")
    with np.errstate(invalid="ignore"):
        values = codes.view(row.numpy).astype(np.float64)
    return values[np.isfinite(values)]


@pytest.mark.parametrize("row", NARROW, ids=str)
def test_ties_and_their_neighbors_are_rounded_to_nearest_even(row: DType) -> None:
    values = _finite(row)[: 1 << 12]
    ties = (values[:-1] + values[1:]) / 2
    lower, upper = values[:-1], values[1:]
    even = np.where(np.arange(len(ties)) % 2 == 0, lower, upper)
    assert np.array_equal(narrowed(ties, row).astype(np.float64), even)
    above = narrowed(np.nextafter(ties, np.inf), row).astype(np.float64)
    below = narrowed(np.nextafter(ties, 0), row).astype(np.float64)
    assert np.array_equal(above, upper)
    assert np.array_equal(below, lower)


@pytest.mark.parametrize("row", NARROW, ids=str)
def test_values_beyond_the_largest_one_overflow(row: DType) -> None:
    step = Fraction(row.largest) - Fraction(float(_finite(row)[-2]))
    tie = float(Fraction(row.largest) + step / 2)
    beyond = narrowed(np.array([np.nextafter(tie, np.inf), 1e300, np.inf]), row).astype(float)
    assert (np.isinf(beyond) if row.special == "ieee" else np.isnan(beyond)).all()
    assert float(narrowed(np.float64(np.nextafter(tie, 0)), row)) == row.largest


@pytest.mark.parametrize("row", NARROW, ids=str)
def test_integers_beside_a_tie_are_rounded_once(row: DType) -> None:
    """A conversion to double first would reach the tie."""
    given, wanted = [], []
    for power in range(row.mantissa + 2, min(63, 1 << (row.exponent - 1))):
        unit = 1 << (power - row.mantissa)
        for odd in (0, 1):
            low = (1 << power) + odd * unit
            given += [low + unit // 2 + step for step in (-1, 0, 1)]
            wanted += [low, low + odd * unit, low + unit]
    x = np.array(given, np.int64)
    found = narrowed(np.concatenate([x, -x]), row).astype(np.float64)
    expected = np.array([*wanted, *(-w for w in wanted)], np.float64)
    kept = np.abs(expected) <= row.largest
    assert np.array_equal(found[kept], expected[kept])
    unsigned = narrowed(x.astype(np.uint64), row).astype(np.float64)
    assert np.array_equal(unsigned, found[: len(x)], equal_nan=True)


def test_singles_are_rounded_by_numpy() -> None:
    assert narrowed(np.float32(1.0 + 2.0**-20), f16) == np.float16(1.0)
