"""References of lgamma and digamma, computed with 50 digits and rounded once.

Positive numbers are shifted until the asymptotic series has errors below ``1e-38``. The reflection
formulas are used for negative numbers. Results beside roots keep more than 20 of the digits.

References
----------
NIST Digital Library of Mathematical Functions, sections 5.5 and 5.11.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Final

DIGITS: Final = 50
_SHIFTED: Final = 20
"""The series is used from this number on, with this number of terms."""

_TINY: Final = 2.0**-80
_PI: Final = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
_ROOT_LOG: Final = Decimal("0.91893853320467274178032973640561763986139747363778341281715")
"""log(2 pi) / 2."""


def log_gamma(x: float) -> float:
    """Return the logarithm of the absolute value of the gamma function.

    Examples
    --------
    >>> log_gamma(3.0) == math.log(2), log_gamma(-1.0)
    (True, inf)
    """
    if math.isnan(x) or math.isinf(x):
        return abs(x)
    if x <= 0 and x == math.floor(x):
        return math.inf
    if x in (1, 2):
        return 0.0
    with localcontext(Context(prec=DIGITS)):
        size = Decimal(abs(x))
        if abs(x) < _TINY:
            return float(-size.ln())
        if x > 0:
            return float(_log_gamma(size))
        sine = _sine(_fraction(-x))
        return float((_PI / (size * sine)).ln() - _log_gamma(size))


def digamma(x: float) -> float:
    """Return the derivative of :func:`log_gamma`.

    It is NaN at negative integers, and ``-inf`` and ``inf`` at the zeros 0.0 and -0.0.

    Examples
    --------
    >>> digamma(1.0), digamma(-1.0)
    (-0.5772156649015329, nan)
    """
    if x == 0:
        return math.copysign(math.inf, -x)
    if math.isnan(x) or math.isinf(x):
        return x if x > 0 else math.nan
    if x < 0 and x == math.floor(x):
        return math.nan
    with localcontext(Context(prec=DIGITS)):
        if abs(x) < _TINY:
            return float(-1 / Decimal(x))
        if x > 0:
            return float(_digamma(Decimal(x)))
        part = _fraction(-x)
        cotangent = (_sine(Decimal("0.5") - abs(part)) / _sine(part)).copy_sign(part)
        return float(_digamma(1 - Decimal(x)) + _PI * cotangent)


def _fraction(x: float) -> Decimal:
    """Return the distance from the nearest integer, with its sign."""
    return Decimal(x - math.floor(x + 0.5) if abs(x) < 2.0**52 else 0.0)


def _sine(x: Decimal) -> Decimal:
    """Return the absolute value of the sine of pi times a number in [-1/2, 1/2]."""
    angle = abs(x) * _PI
    square, term, total, k = angle * angle, angle, angle, 1
    while abs(term) > abs(total).scaleb(-DIGITS):
        k += 2
        term = -term * square / (k * (k - 1))
        total += term
    return total


def _log_gamma(x: Decimal) -> Decimal:
    """Return lgamma of a positive number."""
    product = Decimal(1)
    while x < _SHIFTED:
        product *= x
        x += 1
    series = x * _series(x, _coefficients()[0])
    return (x - Decimal("0.5")) * x.ln() - x + _ROOT_LOG + series - product.ln()


def _digamma(x: Decimal) -> Decimal:
    """Return digamma of a positive number."""
    shift = Decimal(0)
    while x < _SHIFTED:
        shift += 1 / x
        x += 1
    series = _series(x, _coefficients()[1])
    return x.ln() - 1 / (2 * x) - series - shift


def _series(x: Decimal, coefficients: Sequence[Decimal]) -> Decimal:
    """Return the sum of the coefficients times the powers of ``1 / x**2``."""
    inverse, total = 1 / (x * x), Decimal(0)
    for coefficient in coefficients:
        total = (total + coefficient) * inverse
    return total


@functools.cache
def _coefficients() -> tuple[tuple[Decimal, ...], tuple[Decimal, ...]]:
    """Return the coefficients of the series of lgamma and of digamma, last first.

    They are the Bernoulli numbers ``B[2k]`` by ``2 k (2 k - 1)`` and by ``2 k``.
    """
    found = [Fraction(1)]
    for n in range(1, 2 * _SHIFTED + 1):
        rest = sum((math.comb(n + 1, k) * found[k] for k in range(n)), Fraction(0))
        found.append(-rest / (n + 1))
    with localcontext(Context(prec=DIGITS)):
        even = [(2 * k, found[2 * k]) for k in range(_SHIFTED, 0, -1)]
        terms = [(Decimal(b.numerator) / b.denominator / k, k) for k, b in even]
        return tuple(b / (k - 1) for b, k in terms), tuple(b for b, _ in terms)
