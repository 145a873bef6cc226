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
from ..dtype import DType, from_numpy
from ..narrowing import narrowed

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
        narrow = target.is_extension and storage == target.numpy
        return (lambda x: narrowed(x, target)[()]) if narrow else make
    low, high = target.lowest, target.highest

    def to_integer(x: Scalar) -> Scalar:
        if x.dtype.kind in "iub" or not from_numpy(x.dtype).is_float:
            word = int(x) & ((1 << target.bits) - 1)
            return make(word - (1 << target.bits) if word > high else word)
        wide = float(x)
        if math.isnan(wide):
            return make(0)
        return make(min(max(int(wide) if math.isfinite(wide) else wide, low), high))

    return to_integer


def computed(function: Callable[..., Scalar], dtype: DType) -> Callable[..., Scalar]:
    """Return an element function that computes in the dtype that computes with its operands.

    Parameters
    ----------
    function : callable
        The reference of an element function.
    dtype : DType
        The dtype of the operands. A result that is not a bool is converted back to it.

    Examples
    --------
    >>> from ..dtype import i4
    >>> computed(lambda a, b: a + b, i4)(*map(i4.numpy.type, (7, 1)))
    -8
    """
    inner = cast_to(dtype.compute, dtype.compute.numpy)
    back = cast_to(dtype, dtype.numpy)

    def run(*operands: Scalar) -> Scalar:
        found = function(*map(inner, operands))
        return found if found.dtype == np.bool_ else back(found)

    return run


def reinterpreted(
    source: DType, target: DType, storage: np.dtype[np.generic]
) -> Callable[[Scalar], Scalar]:
    """Return the function that reads the bits of an element as an element of another dtype.

    Examples
    --------
    >>> from ..dtype import f32, i32
    >>> reinterpreted(f32, i32, i32.numpy)(np.float32(1.0))
    np.int32(1065353216)
    """
    if source.is_packed:  # both are integers of the same number of bits
        return cast_to(target, storage)

    def view(x: Scalar) -> Scalar:
        bits = np.asarray(x).astype(source.numpy).view(target.numpy)
        return bits.astype(storage)[()]

    return view
