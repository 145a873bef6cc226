"""Exponential functions: range reduction with ln 2, a polynomial, and scaling by 2**n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ....ir.thread.nodes import Unary
from .coefficients import BINARY_EXP32, EXP32, EXP64, TANH32, TANH64
from .expansion import expansion
from .number import Format, Num

LOG2_E: Final = 1.4426950408889634
LN2: Final = 0.6931471805599453
LN2_SINGLE: Final = (0.693145751953125, 1.428606765330187e-06)
LN2_DOUBLE: Final = (0.6931471803691238, 1.9082149292705877e-10)
"""ln 2 in two parts; the first has few bits, so its multiples are exact."""

_EXP_RANGE: Final = {True: (-104.0, 89.0), False: (-746.0, 710.0)}
"""The bounds beyond which exp is 0 or infinite, by whether the precision is single."""

_EXP2_RANGE: Final = {True: (-151.0, 129.0), False: (-1076.0, 1025.0)}
_BIASED_EXPONENT: Final = {True: 192, False: 1624}
"""The biased exponents of the scale 1 in exponentials of numbers that are not positive."""

_SIGMOID_ONE: Final = 40.0
"""A number from which on the sigmoid is 1: its exponential is below both precisions."""

_SIGMOID_SCALE: Final = 64
"""The binary logarithm of the divisor of e**-x: the largest one is then a normal number."""

_HALF_EXP_RANGE: Final = {True: 92.0, False: 720.0}


@dataclass(frozen=True, slots=True)
class _Reduced:
    """A reduced argument, ``exp(x) = exp(r) * low * high``, with normal powers of two."""

    r: Num
    low: Num
    high: Num
    high_inverse: Num


def _reduce(x: Num, upper: float = 0.0) -> _Reduced:
    lower, largest = _EXP_RANGE[x.is_single]
    x = x.greatest(lower).least(upper or largest)
    magic = _doubly_biased(Format.of(x))
    shifted = x.fma(LOG2_E, magic)
    return _scaled(_remainder(x, shifted - magic), shifted)


def _doubly_biased(form: Format) -> float:
    """Return a number that rounds a sum to an integer n, with the low bits of ``n + 2 * bias``."""
    return form.magic + 2 * form.bias


def _remainder(x: Num, count: Num) -> Num:
    """Return ``x - count * ln 2``."""
    first, second = LN2_SINGLE if x.is_single else LN2_DOUBLE
    return count.fma(-second, count.fma(-first, x))


def _scaled(r: Num, shifted: Num) -> _Reduced:
    """Return ``exp(r) * 2**n``, with the power of two in two factors.

    The argument `shifted` is ``n`` plus the doubly biased number. The low bits of its halves are
    biased exponents, and a shift by the mantissa drops the other bits.
    """
    form, dtype = Format.of(r), r.type.dtype
    bits = shifted.bits()
    half = bits >> 1
    high = (bits - half) << form.mantissa
    one_squared = 2 * form.bias << form.mantissa
    return _Reduced(
        r,
        (half << form.mantissa).floats(dtype),
        high.floats(dtype),
        (high.constant(one_squared) - high).floats(dtype),
    )


def _tail(r: Num) -> Num:
    """Return ``exp(r) - 1``."""
    return (r * r).fma(r.polynomial(EXP32 if r.is_single else EXP64), r)


def normal_exp(x: Num) -> tuple[Num, Num]:
    """Return two factors of e**x, a size and a power of two, for a result that is normal.

    The product is exact. The size is NaN if ``x`` is.
    """
    form = Format.of(x)
    magic = form.magic + form.bias
    shifted = x.fma(LOG2_E, magic)
    size = _tail(_remainder(x, shifted - magic)) + 1
    return size, (shifted.bits() << form.mantissa).floats(x.type.dtype)


def short_exp2(x: Num) -> tuple[Num, Num]:
    """Return two factors of 2**x in single precision, for a result that is normal.

    The relative error is 1.6e-7, for sums in which the result is a small term.
    """
    form = Format.of(x)
    magic = form.magic + form.bias
    shifted = x + magic
    size = (x - (shifted - magic)).polynomial((1.0, *BINARY_EXP32))
    return size, (shifted.bits() << form.mantissa).floats(x.type.dtype)


def exp_of_sum(x: Num, low: Num, factor: Num | None = None) -> Num:
    """Return e**(x + low) for a ``low`` that is much smaller than 1, times a factor."""
    parts = _reduce(x)
    size = _tail(parts.r + low) + 1
    return (size if factor is None else size * factor) * parts.low * parts.high


@expansion("exp")
def exp(x: Num) -> Num:
    """Return e**x, scaled in two steps so that subnormal results are rounded once."""
    match x.value:
        case Unary(op="neg", operand=Unary(op="abs")):
            return _exp_of_negative(x)
        case _:
            parts = _reduce(x)
            return _times_exp(parts.r, parts.low) * parts.high


def _times_exp(r: Num, power: Num) -> Num:
    """Return ``exp(r)`` times a power of two, with the roundings of ``exp(r)``.

    Vectors save an instruction. A thread of a GPU computes one number, and would keep the power in
    a register during the polynomial.
    """
    if r.type.lanes == 1:
        return (_tail(r) + 1) * power
    return _tail(r).fma(power, power)


def _exp_of_negative(x: Num) -> Num:
    """Return e**x for a number that is not positive: the same bits by fewer operations.

    The power of two times a constant is a normal number, so that a shift makes it. Its biased
    exponent is the sum that rounds the argument.
    """
    form = Format.of(x)
    exponent = _BIASED_EXPONENT[x.is_single]
    magic = form.magic + exponent
    x = x.greatest(_EXP_RANGE[x.is_single][0])
    shifted = x.fma(LOG2_E, magic)
    r = _remainder(x, shifted - magic)
    power = (shifted.bits() << form.mantissa).floats(x.type.dtype)
    return _times_exp(r, power) * 2.0 ** (form.bias - exponent)


@expansion("exp2")
def exp2(x: Num) -> Num:
    """Return 2**x; exact for integers."""
    lower, upper = _EXP2_RANGE[x.is_single]
    x = x.greatest(lower).least(upper)
    magic = _doubly_biased(Format.of(x))
    shifted = x + magic
    parts = _scaled((x - (shifted - magic)) * LN2, shifted)
    return _times_exp(parts.r, parts.low) * parts.high


def half_exp(x: Num) -> tuple[Num, Num]:
    """Return e**x / 2 of a positive number as an unevaluated sum, which overflows with cosh."""
    parts = _reduce(x, _HALF_EXP_RANGE[x.is_single])
    tail = _tail(parts.r)
    high = tail + 1
    low = tail - (high - 1)
    scale = parts.high * 0.5
    return high * parts.low * scale, low * parts.low * scale


@expansion("expm1")
def expm1(x: Num) -> Num:
    """Return e**x - 1, accurate near 0."""
    parts = _reduce(x)
    low = parts.low
    result = low.fma(_tail(parts.r), low - parts.high_inverse) * parts.high
    return x.where((abs(x)).compare("lt", 2.0**-60), result)


@expansion("sigmoid")
def sigmoid(x: Num) -> Num:
    """Return 1 / (1 + e**-x), with both numbers of the quotient divided by a power of two.

    With e**-x = p (1 + t) for a power of two p, the sum p + p t + 1 is rounded twice: the product
    is added to the smaller of p and 1 first, so that only the last rounding is large. Where the
    result is subnormal, the division rounds it.
    """
    form, upper = Format.of(x), -_EXP_RANGE[x.is_single][0]
    magic = form.magic + form.bias - _SIGMOID_SCALE
    x = x.greatest(-upper).least(_SIGMOID_ONE)
    shifted = x.fma(-LOG2_E, magic)
    r = -_remainder(x, x.constant(magic) - shifted)
    power = (shifted.bits() << form.mantissa).floats(x.type.dtype)
    one = 2.0**-_SIGMOID_SCALE
    below = _tail(r).fma(power, power.least(one)) + power.greatest(one)
    return x.constant(one) / below


@expansion("tanh")
def tanh(x: Num) -> Num:
    """Return the hyperbolic tangent: a polynomial near 0, else 1 - 2 / (e**2x + 1).

    A zero keeps its sign, which the polynomial loses.
    """
    size = abs(x)
    square = x * x
    near = (x * square).fma(square.polynomial(TANH32 if x.is_single else TANH64), x)
    growth, power = normal_exp(size.least(10.0 if x.is_single else 20.0) * 2)
    far = x.constant(1) - x.constant(2) / growth.fma(power, 1)
    result = near.where(size.compare("lt", 0.625), far.copysign(x))
    return x.where(x.compare("eq", 0), result)
