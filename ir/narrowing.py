"""Rounding of float64 arrays to narrow floats, once.

``ml_dtypes`` converts float64 by way of float32, which rounds twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .dtype import DType, f32

Array = NDArray[Any]

_EXACT = 1 << 53
"""Integers of a smaller magnitude are doubles."""

_LOST = (1 << 11) - 1
"""The bits of an integer of 64 bits that a double may lose."""


def rounded_to_odd(x: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return doubles as odd singles, so that rounding them once more is correct.

    An inexact result is truncated and its last bit is set, so it is never halfway between two
    narrower numbers.

    Examples
    --------
    >>> rounded_to_odd(np.array([1.0, 1.0 + 2.0**-40]))
    array([1.       , 1.0000001], dtype=float32)
    """
    with np.errstate(all="ignore"):
        near: NDArray[np.float32] = np.asarray(x, np.float64).astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.uint32) - (np.abs(back) > np.abs(x)).astype(np.uint32)
    inexact = (back < x) | (back > x)
    return (bits | inexact.astype(np.uint32)).view(np.float32)


def _with_53_bits(x: Array) -> Array:
    """Return integers that doubles represent, and that have the same narrow floats.

    The lowest bits of a large integer are replaced by one bit, which is set if any of them was.
    """
    if x.dtype.kind not in "iu" or x.dtype.itemsize < np.float64().itemsize:
        return x
    small = (x < _EXACT) & (x > -_EXACT if x.dtype.kind == "i" else x >= 0)
    low = x & x.dtype.type(_LOST)
    folded = (x - low) | np.where(low != 0, _LOST + 1, 0).astype(x.dtype)
    return np.where(small, x, folded)


def narrowed(x: Array, dtype: DType) -> Array:
    """Return numbers as floats of a dtype, each rounded once.

    Examples
    --------
    >>> from .dtype import f8_e4m3
    >>> float(narrowed(np.float64(0.0087890625000001), f8_e4m3))
    0.009765625
    """
    storage = dtype.numpy
    with np.errstate(all="ignore"):
        if not dtype.is_extension:
            return np.asarray(x).astype(storage)
        given = np.asarray(x)
        if given.dtype == f32.numpy:
            return given.astype(storage)
        return rounded_to_odd(_with_53_bits(given).astype(np.float64)).astype(storage)
