"""Conversions of dtypes without machine type, as formulas of machine operations.

A register holds the bits of a float, or the value of a packed integer. Floats are rounded once, to
nearest even; a value beyond the largest finite float becomes infinite, or NaN if the dtype has no
infinity. Floats saturate to integers and NaN becomes 0; integers wrap.
"""

from __future__ import annotations

from typing import Final

from ....ir.dtype import DType, f32, f64, i32, u32
from ....ir.thread.nodes import Binary, Bitcast, Cast, Select, Value
from ....ir.thread.types import VectorType
from .number import SINGLE, Num

_INFINITY: Final = 0x7F800000
_QUIET: Final = 0x400000
_EXACT_BITS: Final = 16
"""The largest integers, in bits, that all are floats of single precision."""


def converted(value: Value, source: DType, target: DType) -> Value:
    """Convert the value of an element in a register to another dtype.

    Parameters
    ----------
    value : Value
        A value of the register type of ``source``; it may be a symbolic integer of 64 bits.
    source, target : DType
        The dtypes of the element.
    """
    if source is target:
        return value
    if source.is_float and not source.is_machine:
        return converted(decoded(value, source), f32, target)
    if target.is_float and not target.is_machine:
        return encoded(_single(value, source), target)
    if target.is_integer and not target.is_machine:
        return _field(value, source, target)
    return _cast(value, target)


def reinterpreted(value: Value, source: DType, target: DType) -> Value:
    """Return the bits of an element as an element of a dtype with as many bits."""
    if source.is_packed:
        return converted(value, source, target)
    of = VectorType(target.register, _lanes(value))
    return value if value.type == of else Bitcast(of, value)


def _lanes(value: Value) -> int:
    return value.type.lanes if isinstance(value.type, VectorType) else 1


def _cast(value: Value, dtype: DType) -> Value:
    of = VectorType(dtype, _lanes(value))
    return value if value.type == of else Cast(of, value)


def _field(value: Value, source: DType, target: DType) -> Value:
    """Return a packed integer: saturated from a float, wrapped from an integer."""
    of = VectorType(target.register, _lanes(value))
    number = Num(_cast(value, target.register), of)
    if source.is_float:
        return number.least(target.highest).greatest(target.lowest).value
    if source.kind == "bool":
        return number.value
    return extended(number, target).value


def extended(number: Num, dtype: DType) -> Num:
    """Return the packed integer in the low bits of a register."""
    low = number & ((1 << dtype.bits) - 1)
    if dtype.kind != "int":
        return low
    sign = 1 << (dtype.bits - 1)
    return (low ^ sign) - sign


def _single(value: Value, source: DType) -> Value:
    """Convert to single precision; wider values are rounded to odd for a second rounding."""
    if source is f32:
        return value
    if source is f64:
        return rounded_to_odd(value)
    if source.is_integer and source.bits > _EXACT_BITS:
        return rounded_to_odd(_cast(value, f64))
    return _cast(value, f32)


def decoded(value: Value, dtype: DType) -> Value:
    """Return a float that is represented by its bits in single precision, exactly."""
    lanes = _lanes(value)
    words, floats = VectorType(u32, lanes), VectorType(f32, lanes)
    word = Num(_cast(value, u32), words)
    size = word & ((1 << (dtype.bits - 1)) - 1)
    moved = size << (SINGLE.mantissa - dtype.mantissa)
    normal = moved + ((SINGLE.bias - dtype.bias) << SINGLE.mantissa)
    units = Num(Cast(floats, Cast(VectorType(i32, lanes), size.value)), floats)
    small = Num(Bitcast(words, (units * 2.0 ** (1 - dtype.bias - dtype.mantissa)).value), words)
    found = small.where(size.compare("lt", 1 << dtype.mantissa), normal)
    if dtype.special == "ieee":
        special = moved | _INFINITY
        found = special.where(size.compare("ge", _infinity(dtype)), found)
    else:
        found = found.constant(_INFINITY | _QUIET).where(
            size.compare("eq", _all_ones(dtype)), found
        )
    sign = (word >> (dtype.bits - 1)) << 31
    return Bitcast(floats, (found | sign).value)


def encoded(value: Value, dtype: DType) -> Value:
    """Return the bits of a float of single precision, rounded to nearest even."""
    lanes = _lanes(value)
    words, floats = VectorType(u32, lanes), VectorType(f32, lanes)
    raw = Num(Bitcast(words, value), words)
    size = raw & 0x7FFFFFFF
    lost = SINGLE.mantissa - dtype.mantissa
    odd = (size >> lost) & 1
    offset = ((SINGLE.bias - dtype.bias) << SINGLE.mantissa) - ((1 << (lost - 1)) - 1)
    normal = (size - offset + odd) >> lost
    # Next to this number, singles have the spacing of the subnormal numbers of the dtype.
    magic = 2.0 ** (SINGLE.mantissa + 1 - dtype.bias - dtype.mantissa)
    magnitude = Num(Bitcast(floats, size.value), floats)
    shifted = Num(Bitcast(words, (magnitude + magic).value), words)
    start = Num(Bitcast(words, magnitude.constant(magic).value), words)
    least_normal = (SINGLE.bias + 1 - dtype.bias) << SINGLE.mantissa
    found = (shifted - start).where(size.compare("lt", least_normal), normal)
    beyond = _infinity(dtype) if dtype.special == "ieee" else _all_ones(dtype)
    found = found.least(beyond)
    found = found.constant(_not_a_number(dtype)).where(size.compare("gt", _INFINITY), found)
    sign = (raw >> 31) << (dtype.bits - 1)
    return Cast(VectorType(dtype.register, lanes), (found | sign).value)


def _infinity(dtype: DType) -> int:
    """Return the bits of infinity."""
    return ((1 << dtype.exponent) - 1) << dtype.mantissa


def _all_ones(dtype: DType) -> int:
    return (1 << (dtype.bits - 1)) - 1


def _not_a_number(dtype: DType) -> int:
    """Return the bits of NaN, a quiet one if there are several."""
    if dtype.special == "ieee":
        return _infinity(dtype) | 1 << (dtype.mantissa - 1)
    return _all_ones(dtype)


def rounded_to_odd(value: Value) -> Value:
    """Round a double to an odd single, so that rounding it once more is correct.

    An inexact result is truncated and its last bit is set, so it is never halfway between two
    narrower numbers.
    """
    lanes = _lanes(value)
    doubles, floats = VectorType(f64, lanes), VectorType(f32, lanes)
    words = VectorType(u32, lanes)
    exact, near = Num(value, doubles), Num(Cast(floats, value), floats)
    back = near.cast(f64)
    bits = Num(Bitcast(words, near.value), words)
    above = abs(back).compare("gt", abs(exact))
    bits = (bits - 1).where(above, bits)
    comparable = Binary("or", back.compare("lt", exact), back.compare("gt", exact))
    bits = Num(Select(comparable, (bits | 1).value, bits.value), words)
    return Bitcast(floats, bits.value)
