"""Floored division and remainders of floats, with the semantics of NumPy, rounded once.

Both are computed in double precision from ``abs(x)`` and ``abs(y)``. If the quotient is below
2**52, its integer part is exact after one division, and a fused multiply-add yields the exact
remainder. Larger quotients are rare: code that runs only if a lane needs it handles them.
"""

from __future__ import annotations

from typing import Final

from ....ir.dtype import f64
from ....ir.thread.nodes import Binary, Unary, Value
from .control import Code
from .expansion import branching_expansion, integer_expansion
from .number import DOUBLE, Num, power_of_two

_EXACT: Final = 2.0**52
"""The quotient below which its integer part is exact after one division."""


@branching_expansion("mod")
def modulo(code: Code, x: Num, y: Num) -> Num:
    """Return the remainder with the sign of the divisor; NaN if it is undefined."""
    x, y = code.keep("dividend", x), code.keep("divisor", y)
    rest = _truncated(code, x, y)
    moved = (rest + y).where(_opposite(rest, y), rest)
    result = abs(rest).copysign(y).where(rest.compare("eq", 0), moved)
    return result.where(_defined(x, y), x.constant(float("nan")))


@branching_expansion("fmod")
def truncated_modulo(code: Code, x: Num, y: Num) -> Num:
    """Return the remainder with the sign of the dividend; NaN if it is undefined."""
    x, y = code.keep("dividend", x), code.keep("divisor", y)
    return _truncated(code, x, y).where(_defined(x, y), x.constant(float("nan")))


@integer_expansion("fmod")
def truncated_modulo_of_integers(x: Num, y: Num) -> Num:
    """Return the remainder with the sign of the dividend; 0 for the divisor 0."""
    quotient = x / y
    return x.constant(0).where(y.compare("eq", 0), x - quotient * y)


def _truncated(code: Code, x: Num, y: Num) -> Num:
    """Return the remainder with the sign of the dividend."""
    a, b = code.keep("a", abs(x).cast(f64)), code.keep("b", abs(y).cast(f64))
    _, rest = _divided(a, b)
    large = (a / b).compare("ge", _EXACT)
    rest = code.replace_if_any(large, "rest", rest, lambda inner: _remainder(inner, a, b))
    rest = a.where(b.compare("eq", float("inf")), rest)
    return rest.cast(x.type.dtype).copysign(x)


@branching_expansion("floordiv")
def floor_divide(code: Code, x: Num, y: Num) -> Num:
    """Return the floor of the exact quotient, rounded once; ``x / y`` if the divisor is 0."""
    x, y = code.keep("dividend", x), code.keep("divisor", y)
    a, b = code.keep("a", abs(x).cast(f64)), code.keep("b", abs(y).cast(f64))
    negative = code.keep("sign", x.constant(1).copysign(_signs(x, y)))
    below = negative.compare("lt", 0)
    quotient, rest = _divided(a, b)
    quotient = (quotient + 1).where(_both(below, rest.compare("gt", 0)), quotient)
    bits = 24 if x.is_single else 53
    quotient = code.replace_if_any(
        (a / b).compare("ge", _EXACT),
        "quotient",
        quotient,
        lambda inner: _rounded_quotient(inner, a, b, below, bits),
    )
    nonzero = x.compare("ne", 0)
    by_infinity = quotient.constant(1).where(_both(below, nonzero), quotient.constant(0))
    quotient = by_infinity.where(b.compare("eq", float("inf")), quotient)
    result = quotient.cast(x.type.dtype).copysign(negative)
    result = (x / y).where(y.compare("eq", 0), result)
    invalid = Unary("not", abs(x).compare("lt", float("inf")))
    infinite = _both(invalid, y.compare("ne", 0))
    result = x.constant(float("nan")).where(infinite, result)
    return y.where(y.compare("ne", y), result)


def _divided(a: Num, b: Num) -> tuple[Num, Num]:
    """Return the integer part of the quotient and the remainder; exact below 2**52."""
    quotient = (a / b).unary("trunc")
    rest = quotient.fma(-b, a)
    high = rest.compare("lt", 0)
    return (quotient - 1).where(high, quotient), (rest + b).where(high, rest)


def _remainder(code: Code, a: Num, b: Num) -> Num:
    """Return the exact remainder: subtract integer multiples of ``b * 2**k``, large ``k`` first.

    A multiple below 2**53 is exact, and so is the remainder, so each step removes 52 bits of the
    quotient; there are at most 6 steps for single and 41 for double precision.
    """
    exponent = code.keep("exponent", _exponent(b))

    def unfinished(rest: Num) -> Value:
        finite = _both(rest.compare("lt", float("inf")), b.compare("gt", 0))
        return _both(finite, rest.compare("ge", b))

    def step(inner: Code, rest: Num) -> Num:
        shift = (_exponent(rest) - exponent - 52).greatest(0)
        unit = inner.keep("unit", _scaled(b, shift))
        return _divided(rest, unit)[1]

    return code.repeat("rest", a, unfinished, step)


def _rounded_quotient(code: Code, a: Num, b: Num, up: Value, bits: int) -> Num:
    """Return the floor, or the ceiling where ``up``, of the quotient, rounded once to ``bits``.

    ``unit`` is the divisor times the last place of the result, so the quotient by it has ``bits``
    bits, and the comparison of the remainder with half a unit decides the rounding.
    """
    shift = _exponent(a) - _exponent(b) - (bits - 1)
    shift = (shift - 1).where(_mantissa(a).compare("lt", _mantissa(b)), shift)
    shift = code.keep("shift", shift.greatest(0))
    unit = code.keep("unit", _scaled(b, shift))
    quotient, rest = (code.keep("part", part) for part in _divided(a, unit))
    gap = rest - unit * 0.5
    odd = (quotient * 0.5).unary("trunc").compare("ne", quotient * 0.5)
    below = _both(gap.compare("ge", b), Unary("not", up))
    above = _both(gap.compare("gt", 0), up)
    tie = _either(
        _both(Unary("not", up), gap.compare("ge", 0), gap.compare("lt", b)),
        _both(up, gap.compare("le", 0), gap.compare("gt", -b)),
    )
    carry = _either(below, above, _both(tie, odd))
    whole = _both(up, rest.compare("gt", 0))
    next_ = quotient + 1
    rounded = next_.where(carry, quotient)
    return _scaled(next_.where(whole, quotient).where(shift.compare("eq", 0), rounded), shift)


def _exponent(x: Num) -> Num:
    """Return the exponent of a positive number, also of a subnormal one."""
    tiny = x.compare("lt", DOUBLE.smallest)
    field = (x * 2.0**54).where(tiny, x).bits() >> DOUBLE.mantissa
    return (field - 54).where(tiny, field)


def _mantissa(x: Num) -> Num:
    """Return the bits of the mantissa of a positive number, normalized."""
    normal = (x * 2.0**54).where(x.compare("lt", DOUBLE.smallest), x)
    return normal.bits() & ((1 << DOUBLE.mantissa) - 1)


def _scaled(x: Num, shift: Num) -> Num:
    """Return ``x * 2**shift`` for a shift from 0 to 2046."""
    half = shift >> 1
    return x * power_of_two(half, f64) * power_of_two(shift - half, f64)


def _signs(x: Num, y: Num) -> Num:
    """Return a number whose sign is that of the quotient."""
    return (x.bits() ^ y.bits()).floats(x.type.dtype)


def _opposite(x: Num, y: Num) -> Value:
    return (x.bits() ^ y.bits()).compare("lt", 0)


def _defined(x: Num, y: Num) -> Value:
    """Return whether the remainder is a number: a finite dividend and a divisor that is not 0."""
    divisor = abs(y).compare("gt", 0)
    return _both(abs(x).compare("lt", float("inf")), divisor)


def _both(*bits: Value) -> Value:
    total = bits[0]
    for bit in bits[1:]:
        total = Binary("and", total, bit)
    return total


def _either(*bits: Value) -> Value:
    total = bits[0]
    for bit in bits[1:]:
        total = Binary("or", total, bit)
    return total
