"""Reference semantics of comparisons and casts of NumPy scalars.

``ir.loop.element_functions`` contains the references of element functions. Casts from floats to
integers saturate, and NaN becomes 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ...errors import TilewrightError
from ..dtype import DType

Scalar: TypeAlias = Any
"""A NumPy scalar of any dtype that the operation is defined for."""


class OutOfBoundsError(TilewrightError):
    """An access outside of a buffer, or an iteration variable outside of its domain."""

    title = "Out-of-bounds access"


COMPARE: Mapping[str, Callable[[Scalar, Scalar], Scalar]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def cast_to(target: DType, storage: np.dtype[np.generic]) -> Callable[[Scalar], Scalar]:
    """Return the conversion function to a dtype.

    Parameters
    ----------
    target : DType
        The dtype whose range and rounding apply.
    storage : numpy.dtype
        The dtype of the result: that of ``target``, or float64 for floats in precise mode.

    Examples
    --------
    >>> from ..dtype import i8
    >>> cast_to(i8, i8.numpy)(np.float32(300.0)), cast_to(i8, i8.numpy)(np.int32(300))
    (np.int8(127), np.int8(44))
    """
    make = storage.type
    if not target.is_integer:
        return make
    signed = target.kind == "int"
    low = -(1 << (target.bits - 1)) if signed else 0
    high = (1 << (target.bits - int(signed))) - 1

    def to_integer(x: Scalar) -> Scalar:
        if x.dtype.kind in "iub":
            return np.asarray(int(x) & ((1 << target.bits) - 1), np.uint64).astype(storage)[()]
        wide = float(x)
        if math.isnan(wide):
            return make(0)
        return make(min(max(int(wide) if math.isfinite(wide) else wide, low), high))

    return to_integer
