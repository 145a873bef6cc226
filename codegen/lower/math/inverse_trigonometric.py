"""asin, acos, and atan.

Above 1/2, asin and acos are computed from the square root of (1 - x) / 2, whose rounding error is
added to the sum.
"""

from __future__ import annotations

from typing import Final

from .angle import HALF_PI
from .coefficients import ASIN32, ASIN64
from .expansion import expansion
from .number import Num, two_sum
from .trigonometric import atan2

_HALF_PI: Final = {True: (1.5707963705062866, -4.371138828673793e-08), False: HALF_PI[:2]}
"""pi/2 in two parts, by whether the precision is single."""


@expansion("asin")
def asin(x: Num) -> Num:
    """Return the arc sine, from -pi/2 to pi/2; NaN outside of [-1, 1]."""
    size = abs(x)
    small = size.compare("le", 0.5)
    root, rest = _root_of_distance(size)
    high, low = _HALF_PI[x.is_single]
    total, error = two_sum(root.constant(high), -(root * 2))
    far = total + (error - ((rest + _bend(root)) * 2 - low))
    result = (x + _bend(x)).where(small, far.copysign(x))
    return x.where(x.compare("eq", 0), result)


@expansion("acos")
def acos(x: Num) -> Num:
    """Return the arc cosine, from 0 to pi; NaN outside of [-1, 1]."""
    small = abs(x).compare("le", 0.5)
    high, low = _HALF_PI[x.is_single]
    total, error = two_sum(x.constant(high), -x)
    near = total + (error - (_bend(x) - low))
    root, rest = _root_of_distance(abs(x))
    correction = rest + _bend(root)
    twice = root * 2
    total, error = two_sum(x.constant(2 * high), -twice)
    behind = total + (error - (correction * 2 - 2 * low))
    far = behind.where(x.compare("lt", 0), twice + correction * 2)
    return near.where(small, far)


@expansion("atan")
def atan(x: Num) -> Num:
    """Return the arc tangent, from -pi/2 to pi/2."""
    return atan2(x, x.constant(1))


def _bend(x: Num) -> Num:
    """Return ``asin(x) - x`` of a number of at most 1/2."""
    square = x * x
    return x * square * square.polynomial(ASIN32 if x.is_single else ASIN64)


def _root_of_distance(size: Num) -> tuple[Num, Num]:
    """Return the root of ``(1 - size) / 2`` as an unevaluated sum; NaN above 1."""
    square = (size.constant(1) - size) * 0.5
    root = square.unary("sqrt")
    rest = (-root).fma(root, square) / (root * 2)
    return root, rest.where(root.compare("ne", 0), root.constant(0))
