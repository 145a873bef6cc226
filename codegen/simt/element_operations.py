"""Operations on elements, vectorized over threads.

The semantics are total: integers wrap around, casts from floats to integers saturate, and shifts
and division by zero are defined. A scalar value is a NumPy scalar if it is uniform across threads,
otherwise an array ``(threads,)``; a vector is an array ``(lanes, 1)`` or ``(lanes, threads)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ...errors import MalformedProgramError
from ...ir.dtype import DType, bf16, f64
from ...ir.narrowing import narrowed
from ...ir.thread.types import VectorType
from .rounding import fma_double, fma_odd, fma_single, to_bfloat

Array: TypeAlias = Any
"""A NumPy array or scalar of the element's dtype."""


def constant(value: float, of: VectorType) -> Array:
    """Return a constant of a type, the same for all threads."""
    scalar = _number(value, of.dtype)
    return scalar if of.lanes == 1 else np.full((of.lanes, 1), scalar)


def _number(value: float, dtype: DType) -> Array:
    if dtype.is_integer:
        wrapped = int(value) & ((1 << dtype.bits) - 1)
        if dtype.kind == "int" and wrapped >> (dtype.bits - 1):
            wrapped -= 1 << dtype.bits
        return dtype.numpy.type(wrapped)
    return dtype.numpy.type(value)


def _negated(x: Array) -> Array:
    return x.dtype.type(0) - x if x.dtype.kind in "iu" else -x


def _leading_zeros(x: Array) -> Array:
    width = 8 * x.dtype.itemsize
    bits = np.asarray(x).view(f"u{x.dtype.itemsize}").astype(np.uint64)
    length = np.zeros(bits.shape, np.int64)
    for shift in (32, 16, 8, 4, 2, 1):
        above = (bits >> np.uint64(shift)) != 0
        length += np.where(above, shift, 0)
        bits = np.where(above, bits >> np.uint64(shift), bits)
    return (width - length - (bits != 0)).astype(x.dtype)


def _unless_integer(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: x if x.dtype.kind in "iub" else function(x)


def _not_a_number(x: Array) -> Array:
    return np.zeros(np.shape(x), np.bool_) if x.dtype.kind in "iub" else np.isnan(x)


UNARY: Mapping[str, Callable[[Array], Array]] = {
    "neg": _negated,
    "abs": np.abs,
    "not": np.invert,
    "sqrt": np.sqrt,
    "floor": _unless_integer(np.floor),
    "ceil": _unless_integer(np.ceil),
    "round": _unless_integer(np.rint),
    "trunc": _unless_integer(np.trunc),
    "isnan": _not_a_number,
    "clz": _leading_zeros,
}


def _truncated(x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iu":
        return x / y
    quotient = np.floor_divide(x, y)
    if x.dtype.kind == "u":
        return quotient
    inexact = (y != 0) & (quotient * y != x) & ((x < 0) != (y < 0))
    return quotient + inexact.astype(x.dtype)


BINARY: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _truncated,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
}

TRUTH: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.logical_or,
    "mul": np.logical_and,
    "min": np.logical_and,
    "max": np.logical_or,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "sub": np.logical_xor,
}
"""The operations on Booleans, which do not carry."""

COMPARE: Mapping[str, Callable[[Array, Array], Array]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def binary(op: str, dtype: DType) -> Callable[[Array, Array], Array]:
    """Return an operation on two operands of one dtype.

    Raises
    ------
    MalformedProgramError
        If the operation is not defined on the dtype.
    """
    table = TRUTH if dtype.kind == "bool" else BINARY
    undefined = dtype.is_float and op in ("and", "or", "xor", "shl", "shr", "floordiv", "mod")
    if op not in table or undefined:
        raise MalformedProgramError(f"operation {op!r} is not defined on {dtype}")
    return table[op]


def fma(a: Array, b: Array, c: Array) -> Array:
    """Return ``a * b + c``, rounded once if the operands are floats."""
    match a.dtype.name:
        case "float64":
            return fma_double(a, b, c)
        case "float32":
            return fma_single(a, b, c)
        case "float16":
            return fma_odd(a, b, c).astype(np.float16)
        case "bfloat16":
            return to_bfloat(fma_odd(a, b, c))
        case _:
            return a * b + c


def reduce_lanes(op: str, x: Array, dtype: DType) -> Array:
    """Reduce the lanes pairwise by halves, in the same order as the machine code."""
    combine = binary(op, dtype)
    lanes = x.shape[0]
    odd: list[Array] = []
    while lanes > 1:
        half = lanes // 2
        if lanes % 2:
            odd.append(x[lanes - 1])
        x, lanes = combine(x[:half], x[half : 2 * half]), half
    total = x[0]
    for rest in reversed(odd):
        total = combine(total, rest)
    return total if total.shape != (1,) else total[0]


def convert(target: DType, source: DType) -> Callable[[Array], Array]:
    """Return the conversion between two dtypes: floats saturate to integers, integers wrap."""
    storage = target.numpy
    if target == source:
        return lambda x: x
    if target.kind == "bool":
        return lambda x: x != source.numpy.type(0)
    if source.is_float and target.is_integer:
        return _saturating(target)
    if target is bf16 and source is f64:
        return to_bfloat
    if target is bf16:
        return lambda x: narrowed(x, bf16)[()]
    if target.name == "f16" and not source.is_float:
        return lambda x: x.astype(np.float64).astype(storage)
    return lambda x: x.astype(storage)


def _saturating(target: DType) -> Callable[[Array], Array]:
    low, high = target.lowest, target.highest
    make = target.numpy.type

    def run(x: Array) -> Array:
        wide = np.trunc(x.astype(np.float64))
        # Both limits are exact in float64 as powers of two; `high` itself need not be.
        inside = (wide >= float(low)) & (wide < float(high + 1))
        converted = np.where(inside, wide, 0.0).astype(target.numpy)
        saturated = np.where(wide > 0, make(high), make(low))
        return np.where(inside | np.isnan(wide), converted, saturated)[()]

    return run
