"""Floored division and remainder of floats, with the semantics of NumPy."""

from __future__ import annotations

from ....ir.dtype import f64
from .expansion import expansion
from .number import Num


def _exact(x: Num, y: Num) -> tuple[Num, Num]:
    """Return the quotient and the remainder in double precision.

    For single precision, the remainder is exact if the quotient is below 2**29, since the products
    then fit a double. Above, its error is one unit in the last place of the quotient.
    """
    a, b = x.cast(f64), y.cast(f64)
    quotient = (a / b).unary("floor")
    rest = quotient.fma(-b, a)
    below = (rest * b).compare("lt", 0)
    rest, quotient = (rest + b).where(below, rest), (quotient - 1).where(below, quotient)
    above = abs(rest).compare("ge", abs(b))
    return (quotient + 1).where(above, quotient), (rest - b).where(above, rest)


@expansion("floordiv")
def floor_divide(x: Num, y: Num) -> Num:
    """Return the floor of the exact quotient; ``x / y`` if the divisor is 0."""
    quotient, _ = _exact(x, y)
    finite = abs(x).compare("lt", float("inf"))
    by_infinity = abs(y).compare("eq", float("inf"))
    sign = (x * y).compare("lt", 0)
    small = x.constant(-1).where(sign, (x * 0))
    result = small.where(by_infinity, quotient.cast(x.type.dtype))
    result = result.where(finite, x.constant(float("nan")))
    return (x / y).where(y.compare("eq", 0), result)


@expansion("mod")
def modulo(x: Num, y: Num) -> Num:
    """Return the remainder with the sign of the divisor; NaN if it is undefined."""
    _, rest = _exact(x, y)
    result = rest.cast(x.type.dtype)
    by_infinity = abs(y).compare("eq", float("inf"))
    opposite = (x.bits() ^ y.bits()).compare("lt", 0)
    whole = y.where(opposite, x).where(x.compare("ne", 0), x)
    result = whole.where(by_infinity, result)
    broken = abs(x).compare("lt", float("inf"))
    result = result.where(broken, x.constant(float("nan")))
    return x.constant(float("nan")).where(y.compare("eq", 0), result)
