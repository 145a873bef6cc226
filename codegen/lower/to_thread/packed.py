"""Packed elements in bytes: extraction, insertion, and vectors of whole bytes."""

from __future__ import annotations

from ....ir.dtype import BYTE, DType, f32, u8, u32
from ....ir.symbolic import TRUE, as_expr, eq, substitute
from ....ir.thread.nodes import Binary, Bitcast, Cast, Const, Shuffle, Value
from ....ir.thread.types import VectorType
from ..math.conversions import extended
from ..math.number import SINGLE, Num
from .buffer_addresses import ElementAddress
from .context import LoweringContext


def _power(exponent: int) -> int:
    """Return the bits of a power of two in single precision."""
    return (SINGLE.bias + exponent) << SINGLE.mantissa


def lanes_of(value: Value) -> int:
    """Return the number of lanes of a value."""
    return value.type.lanes if isinstance(value.type, VectorType) else 1


def fills_bytes(access: ElementAddress, context: LoweringContext) -> bool:
    """Return whether the lanes of a vector provably fill two or more whole bytes."""
    per = access.buffer.dtype.per_byte
    if access.distance != as_expr(1) or context.count % per or context.count < 2 * per:
        return False
    first = substitute(access.element, {context.lane_var: 0}) % per
    return first == as_expr(0) or context.assumptions.decide(eq(first, 0)) is TRUE


def strided_bits(access: ElementAddress, context: LoweringContext) -> int | None:
    """Return the bit of the elements of lanes in adjacent bytes; None if they are elsewhere."""
    per = access.buffer.dtype.per_byte
    if access.distance != as_expr(per) or context.count < 2:
        return None
    first = substitute(access.element, {context.lane_var: 0}) % per
    for phase in range(per):
        if first == as_expr(phase) or context.assumptions.decide(eq(first, phase)) is TRUE:
            return phase * access.buffer.dtype.bits
    return None


def as_single(words: Value, shift: int, dtype: DType) -> Value:
    """Return the elements at a bit of bytes in single precision, exactly.

    The bits of an element replace bits of the fraction of a power of two, at the same position, so
    that they are not shifted. The power is then subtracted; the unit of the element is 1.
    """
    lanes = lanes_of(words)
    of, floats = VectorType(u32, lanes), VectorType(f32, lanes)
    exponent, sign = SINGLE.mantissa - shift, -dtype.lowest
    word = Num(Cast(of, words), of) & (((1 << dtype.bits) - 1) << shift)
    found = Num(Bitcast(floats, (word ^ (_power(exponent) | sign << shift)).value), floats)
    return (found - float(2**exponent + sign)).value


def _of_byte(value: Value, dtype: DType) -> Value:
    """Return the low bits of bytes as elements in registers."""
    of = VectorType(dtype.register, lanes_of(value))
    number = Num(value if value.type == of else Cast(of, value), of)
    return extended(number, dtype).value


def _as_byte(value: Value) -> Value:
    of = VectorType(u8, lanes_of(value))
    return value if value.type == of else Cast(of, value)


def field(byte: Value, shift: Value, dtype: DType) -> Value:
    """Return the element at a bit of a byte, in each lane."""
    return _of_byte(Binary("shr", byte, _as_byte(shift)), dtype)


def inserted(byte: Value, shift: Value, value: Value, dtype: DType) -> Value:
    """Return a byte after the replacement of the element at a bit."""
    at = _as_byte(shift)
    ones = Const((1 << dtype.bits) - 1, VectorType(u8))
    new = Binary("shl", Binary("and", _as_byte(value), ones), at)
    others = Binary("xor", Binary("shl", ones, at), Const(255, VectorType(u8)))
    return Binary("or", Binary("and", byte, others), new)


def unpacked(words: Value, dtype: DType) -> Value:
    """Return the elements of a vector of bytes, in order."""
    of = VectorType(u8, lanes_of(words))
    parts = [
        Binary("shr", words, Const(k * dtype.bits, of)) if k else words
        for k in range(dtype.per_byte)
    ]
    return _of_byte(_interleaved(parts), dtype)


def _interleaved(parts: list[Value]) -> Value:
    """Return the lanes of several vectors in turn: lane 0 of each, then lane 1 of each."""
    if len(parts) == 1:
        return parts[0]
    even, odd = _interleaved(parts[::2]), _interleaved(parts[1::2])
    count = lanes_of(even)
    return Shuffle(even, odd, tuple(k // 2 + k % 2 * count for k in range(2 * count)))


def packed(value: Value, dtype: DType) -> Value:
    """Return a vector of elements as bytes; their number is a multiple of that per byte."""
    fields = Binary("and", _as_byte(value), Const((1 << dtype.bits) - 1, _bytes(value)))
    result: Value | None = None
    for k in range(dtype.per_byte):
        lanes = tuple(range(k, lanes_of(value), dtype.per_byte))
        part: Value = Shuffle(fields, fields, lanes)
        if k:
            part = Binary("shl", part, Const(k * dtype.bits, VectorType(u8, len(lanes))))
        result = part if result is None else Binary("or", result, part)
    if result is None:
        raise TypeError(f"dtype {dtype} has more than {BYTE} bits")
    return result


def _bytes(value: Value) -> VectorType:
    return VectorType(u8, lanes_of(value))
