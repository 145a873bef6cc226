"""Thread-IR values with arithmetic operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ....ir.dtype import DType, i8, i16, i32, i64, u8, u16, u32, u64
from ....ir.thread.nodes import (
    Binary,
    BinaryOp,
    Bitcast,
    Cast,
    Compare,
    CompareOp,
    Const,
    Fma,
    Select,
    Unary,
    UnaryOp,
    Value,
)
from ....ir.thread.types import VectorType

_SIGNED: Final = {t.bits: t for t in (i8, i16, i32, i64)}
_UNSIGNED: Final = {t.bits: t for t in (u8, u16, u32, u64)}


@dataclass(frozen=True, slots=True, eq=False)
class Num:
    """A vector of numbers of one type."""

    value: Value
    type: VectorType

    def constant(self, number: float) -> Num:
        """Return a constant of the same type."""
        return Num(Const(number, self.type), self.type)

    def _coerce(self, other: Num | float) -> Num:
        return other if isinstance(other, Num) else self.constant(other)

    def _binary(self, op: BinaryOp, other: Num | float) -> Num:
        return Num(Binary(op, self.value, self._coerce(other).value), self.type)

    def unary(self, op: UnaryOp) -> Num:
        """Apply an operation of one operand."""
        return Num(Unary(op, self.value), self.type)

    def __add__(self, other: Num | float) -> Num:
        return self._binary("add", other)

    def __sub__(self, other: Num | float) -> Num:
        return self._binary("sub", other)

    def __mul__(self, other: Num | float) -> Num:
        return self._binary("mul", other)

    def __truediv__(self, other: Num | float) -> Num:
        return self._binary("div", other)

    def __and__(self, other: Num | float) -> Num:
        return self._binary("and", other)

    def __or__(self, other: Num | float) -> Num:
        return self._binary("or", other)

    def __xor__(self, other: Num | float) -> Num:
        return self._binary("xor", other)

    def __lshift__(self, bits: int) -> Num:
        return self._binary("shl", bits)

    def __rshift__(self, bits: int) -> Num:
        return self._binary("shr", bits)

    def __neg__(self) -> Num:
        return self.unary("neg")

    def __abs__(self) -> Num:
        return self.unary("abs")

    def least(self, other: Num | float) -> Num:
        """Return the minimum; NaN if either value is NaN."""
        return self._binary("min", other)

    def greatest(self, other: Num | float) -> Num:
        """Return the maximum; NaN if either value is NaN."""
        return self._binary("max", other)

    def fma(self, factor: Num | float, term: Num | float) -> Num:
        """Return ``self * factor + term``, rounded once."""
        b, c = self._coerce(factor).value, self._coerce(term).value
        return Num(Fma(self.value, b, c), self.type)

    def reciprocal(self) -> Num:
        """Return ``1 / self``."""
        return self.constant(1) / self

    def polynomial(self, coefficients: Sequence[float]) -> Num:
        """Evaluate a polynomial at this value, lowest power first (Horner)."""
        total = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = total.fma(self, coefficient)
        return total

    def compare(self, op: CompareOp, other: Num | float) -> Value:
        """Compare two values per lane."""
        return Compare(op, self.value, self._coerce(other).value)

    def where(self, bit: Value, otherwise: Num | float) -> Num:
        """Return this value in the lanes where the bit is set, else the other."""
        return Num(Select(bit, self.value, self._coerce(otherwise).value), self.type)

    def copysign(self, sign: Num) -> Num:
        """Return this non-negative value with the sign of another."""
        return (self.bits() | (sign.bits() & sign.sign_bit)).floats(self.type.dtype)

    @property
    def sign_bit(self) -> int:
        """The mask of the sign bit."""
        return 1 << (self.type.dtype.bits - 1)

    @property
    def is_single(self) -> bool:
        """Whether the value has single precision."""
        return self.type.dtype.bits == 32

    def bits(self) -> Num:
        """Bitcast to a signed integer of the same width."""
        return self.reinterpreted(_SIGNED[self.type.dtype.bits])

    def unsigned(self) -> Num:
        """Bitcast to an unsigned integer of the same width."""
        return self.reinterpreted(_UNSIGNED[self.type.dtype.bits])

    def floats(self, dtype: DType) -> Num:
        """Bitcast an integer to a float of the same width."""
        return self.reinterpreted(dtype)

    def reinterpreted(self, dtype: DType) -> Num:
        """Bitcast to a dtype of the same width."""
        of = VectorType(dtype, self.type.lanes)
        return self if of == self.type else Num(Bitcast(of, self.value), of)

    def cast(self, dtype: DType) -> Num:
        """Convert to another dtype."""
        of = VectorType(dtype, self.type.lanes)
        return self if of == self.type else Num(Cast(of, self.value), of)


@dataclass(frozen=True, slots=True)
class Format:
    """The layout of a binary floating-point type."""

    mantissa: int
    bias: int
    magic: float
    smallest: float

    @staticmethod
    def of(x: Num) -> Format:
        """Return the format of a value."""
        return SINGLE if x.is_single else DOUBLE

    @property
    def magic_bits(self) -> int:
        """The bits of :attr:`magic`; adding ``magic`` rounds a value to an integer."""
        return (self.bias + self.mantissa << self.mantissa) + (1 << (self.mantissa - 1))


SINGLE = Format(23, 127, 1.5 * 2.0**23, 2.0**-126)
DOUBLE = Format(52, 1023, 1.5 * 2.0**52, 2.0**-1022)


def power_of_two(n: Num, dtype: DType) -> Num:
    """Return 2**n for an integer in the range of normal exponents."""
    form = SINGLE if dtype.bits == 32 else DOUBLE
    return ((n + form.bias) << form.mantissa).floats(dtype)


def two_sum(a: Num, b: Num) -> tuple[Num, Num]:
    """Return the rounded sum and its error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
