"""Reference semantics of element operations on NumPy scalars.

Every operation is total, that is, defined for all operands. Integer arithmetic wraps around.
Integer division by zero returns 0. Shifts by the bit width or more return 0, or the sign for an
arithmetic right shift. Casts from floats to integers saturate, and NaN becomes 0. Functions such
as ``exp`` are computed in float64 and rounded once.
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


def _wide(function: Callable[[np.float64], Scalar]) -> Callable[[Scalar], Scalar]:
    """Return a function that computes in float64 and rounds once to the operand's dtype."""

    def apply(x: Scalar) -> Scalar:
        return type(x)(function(np.float64(x)))

    return apply


def _erf(x: np.float64) -> float:
    return math.erf(x)


def _sigmoid(x: np.float64) -> Scalar:
    return 1.0 / (1.0 + np.exp(-x)) if x >= 0 else np.exp(x) / (1.0 + np.exp(x))


def _logical_not(x: Scalar) -> Scalar:
    return np.bool_(not x)


def _sign(x: Scalar) -> Scalar:
    return type(x)(np.sign(np.float64(x))) if x.dtype.kind not in "iu" else np.sign(x)


def _negate(x: Scalar) -> Scalar:
    return type(x)(0) - x if x.dtype.kind in "iu" else -x


UNARY: Mapping[str, Callable[[Scalar], Scalar]] = {
    "neg": _negate,
    "abs": np.abs,
    "not": _logical_not,
    "bitnot": lambda x: ~x,
    "exp": _wide(np.exp),
    "expm1": _wide(np.expm1),
    "log": _wide(np.log),
    "log1p": _wide(np.log1p),
    "sqrt": _wide(np.sqrt),
    "rsqrt": _wide(lambda x: np.float64(1.0) / np.sqrt(x)),
    "sigmoid": _wide(_sigmoid),
    "tanh": _wide(np.tanh),
    "erf": _wide(_erf),
    "sin": _wide(np.sin),
    "cos": _wide(np.cos),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "sign": _sign,
}


def _wrapped(value: int, like: Scalar) -> Scalar:
    """Return the low bits of a value as an integer of the dtype of ``like``."""
    word = value % (1 << (8 * like.dtype.itemsize))
    return np.dtype(f"u{like.dtype.itemsize}").type(word).view(like.dtype)


def _divide(a: Scalar, b: Scalar) -> Scalar:
    """Divide; integer quotients are truncated, and integer division by zero returns 0."""
    if a.dtype.kind not in "iu":
        return a / b
    x, y = int(a), int(b)
    size = abs(x) // abs(y) if y else 0
    return _wrapped(-size if (x < 0) != (y < 0) else size, a)


def _power(a: Scalar, b: Scalar) -> Scalar:
    if a.dtype.kind in "iu":
        width: int = 1 << (8 * a.dtype.itemsize)
        return _wrapped(pow(int(a), int(b), width) if b >= 0 else 0, a)
    return type(a)(np.power(np.float64(a), np.float64(b)))


BINARY: Mapping[str, Callable[[Scalar, Scalar], Scalar]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "pow": _power,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "atan2": lambda a, b: type(a)(np.arctan2(np.float64(a), np.float64(b))),
}

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
