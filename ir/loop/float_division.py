"""The floor of the quotient of floats, rounded once: the reference of ``floordiv``."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dtype import from_numpy


def floor_divide(x: Any, y: Any) -> Any:
    """Return the floor of the quotient of two scalars or arrays of one dtype, rounded once.

    Integer division by 0 returns 0. For floats, the result for a divisor of 0 is ``x / y``, and
    NaN for an infinite dividend. NumPy rounds quotients above the precision of the dtype twice.

    Examples
    --------
    >>> floor_divide(np.float32(-1), np.float32(1e20)), floor_divide(np.int32(-7), np.int32(2))
    (np.float32(-1.0), np.int32(-4))
    """
    with np.errstate(all="ignore"):
        found = np.floor_divide(x, y)
    row = from_numpy(found.dtype)
    if not row.is_float:
        return found
    precision = row.precision
    uncertain = np.isfinite(found) & (np.abs(found) >= 2.0 ** (precision - 2))
    if found.dtype.itemsize == 2:
        uncertain = uncertain | np.isinf(found)
    if not uncertain.any():
        return found
    return _corrected(found, x, y, uncertain, precision)


def _corrected(found: Any, x: Any, y: Any, uncertain: Any, precision: int) -> Any:
    """Return the quotients with the uncertain ones replaced by exact division."""
    result: NDArray[Any] = np.array(found)
    left, right = (np.broadcast_to(a, result.shape) for a in (x, y))
    for index in zip(*np.nonzero(np.atleast_1d(uncertain)), strict=True):
        at = index if result.shape else ()
        result[at] = _exact(left[at], right[at], precision)
    return result if isinstance(found, np.ndarray) else result[()]


def _exact(x: Any, y: Any, precision: int) -> float:
    """Return the floor of the exact quotient of finite numbers, rounded to a precision."""
    a, b = float(x), float(y)
    if not (math.isfinite(a) and math.isfinite(b)) or b == 0:
        return a / b if b else math.copysign(math.inf, a) * math.copysign(1.0, b)
    quotient = Fraction(a) // Fraction(b)
    size = abs(quotient)
    shift = max(size.bit_length() - precision, 0)
    head, tail = size >> shift, size & ((1 << shift) - 1)
    half = (1 << shift) >> 1
    head += int(tail > half or (tail == half and half > 0 and head % 2 == 1))
    try:
        value = math.ldexp(head, shift)
    except OverflowError:
        value = math.inf
    return -value if quotient < 0 else value
