"""Correctly rounded fused multiply-add, built from NumPy operations."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from ...ir.dtype import bf16
from .arrays import where

Array: TypeAlias = Any

_SMALLEST_NORMAL = 2.0**-126
_HALF = 1 << 28
_TAIL = (1 << 29) - 1


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum and its rounding error (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _to_odd(total: Array, error: Array) -> Array:
    """Return a rounded sum rounded to odd instead, given its rounding error.

    Rounding the result again, to at least two fewer bits, equals rounding the exact sum, because
    the odd bit avoids ties (Boldo and Melquiond, 2008).
    """
    total = np.asarray(total, np.float64)
    bits = total.view(np.int64)
    away = (error > 0) == (total > 0)
    even = (bits & 1) == 0
    neighbor = bits + np.where(away, 1, -1)
    inexact = even & (error != 0) & np.isfinite(total)
    return where(inexact, neighbor, bits).view(np.float64)


def fma_single(a: Array, b: Array, c: Array) -> Array:
    """Return ``a * b + c`` in float32, rounded once.

    The product is exact in float64. If the float64 sum is not a tie of float32, rounding it again
    is correct; otherwise it is rounded to odd first.
    """
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = product + addend
    bits = np.asarray(total).view(np.int64)
    size = np.abs(total)
    tie = (bits & _TAIL) == _HALF
    small = (size < _SMALLEST_NORMAL) & (size > 0)
    if np.any(tie | small):
        total = _to_odd(*two_sum(product, addend))
    return total.astype(np.float32)


def fma_odd(a: Array, b: Array, c: Array) -> Array:
    """Return ``a * b + c`` of 16-bit floats in float64, rounded to odd, for a second rounding."""
    product = a.astype(np.float64) * b.astype(np.float64)
    return _to_odd(*two_sum(product, c.astype(np.float64)))


def _split(a: Array) -> tuple[Array, Array]:
    scaled = a * 134217729.0
    high = scaled - (scaled - a)
    return high, a - high


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    p = a * b
    (ah, al), (bh, bl) = _split(a), _split(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def fma_double(a: Array, b: Array, c: Array) -> Array:
    """Return ``a * b + c`` in float64, rounded once (Boldo and Melquiond, 2008).

    Elements whose intermediates may overflow or underflow are computed exactly, one by one.
    """
    a, b, c = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (a, b, c)))
    high, low = _two_product(a, b)
    upper_high, upper_low = two_sum(c, low)
    sum_high, sum_low = two_sum(high, upper_high)
    result = np.asarray(sum_high + _to_odd(*two_sum(upper_low, sum_low)))
    # The parts of a sum of zeros are zeros of either sign.
    result = np.where(result == 0, high + c, result)
    sizes = [np.abs(x) for x in (a, b, high, c)]
    wide = np.logical_or.reduce([s > 2.0**900 for s in sizes])
    tiny = (sizes[2] < 2.0**-900) & (a != 0) & (b != 0)
    special = wide | tiny | ~np.isfinite(result)
    if np.any(special):
        result[special] = [
            _one_by_one(*xs) for xs in zip(a[special], b[special], c[special], strict=True)
        ]
    return result[()]


def _one_by_one(a: float, b: float, c: float) -> float:
    if np.isfinite(a) and np.isfinite(b) and np.isinf(c):
        return c
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def to_bfloat(x: Array) -> Array:
    """Round float64 to bfloat16 once, by way of float32 rounded to odd."""
    x = np.asarray(x, np.float64)
    near = x.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.int32)
    truncated = where(np.abs(back) > np.abs(x), bits - 1, bits)
    inexact = (back != x) & ~np.isnan(x)
    odd = where(inexact, truncated | 1, bits).astype(np.int32).view(np.float32)
    return odd.astype(bf16.numpy)[()]
