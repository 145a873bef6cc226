"""sin, cos, and atan2, with angles reduced in double precision by pi/2 in three parts."""

from __future__ import annotations

from typing import Final

from ....ir.dtype import f64
from .coefficients import ATAN32, ATAN64, COS32, COS64, SIN32, SIN64
from .expansion import expansion
from .number import DOUBLE, Num

TWO_OVER_PI: Final = 0.6366197723675814
HALF_PI: Final = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)


def _reduce(x: Num) -> tuple[Num, Num]:
    """Return the remainder by pi/2 and the quadrant as an integer."""
    wide = x.cast(f64)
    shifted = wide.fma(TWO_OVER_PI, DOUBLE.magic)
    count = shifted - DOUBLE.magic
    rest = wide
    for part in HALF_PI:
        rest = count.fma(-part, rest)
    return rest, shifted.bits()


def _sine(r: Num) -> Num:
    square = r * r
    return (r * square).fma(square.polynomial(SIN32 if r.is_single else SIN64), r)


def _cosine(r: Num) -> Num:
    square = r * r
    tail = square * square.polynomial(COS32 if r.is_single else COS64)
    half = square * 0.5
    one = r.constant(1)
    top = one - half
    return top + square.fma(tail, (one - top) - half)


def _quadrant(x: Num, shift: int) -> Num:
    """Return the sine of ``x + shift * pi/2``."""
    wide, quadrant = _reduce(x)
    # The remainder is undefined for infinity and for numbers whose last place exceeds pi.
    wide = wide.greatest(-1.0).least(1.0)
    r = wide.cast(x.type.dtype)
    turned = quadrant + shift
    odd = (turned & 1).compare("ne", 0)
    result = _cosine(r).where(odd, _sine(r))
    negative = (turned & 2).compare("ne", 0)
    result = (-result).where(negative, result)
    return (x - x).where(abs(x).compare("eq", float("inf")), result)


@expansion("sin")
def sin(x: Num) -> Num:
    """Return the sine."""
    return _quadrant(x, 0)


@expansion("cos")
def cos(x: Num) -> Num:
    """Return the cosine."""
    return _quadrant(x, 1)


@expansion("atan2")
def atan2(y: Num, x: Num) -> Num:
    """Return the angle of the point (x, y), from -pi to pi."""
    dtype, single = y.type.dtype, y.is_single
    y, x = y.cast(f64), x.cast(f64)
    height, width = abs(y), abs(x)
    steep = height.compare("gt", width)
    infinite = (height.least(width)).compare("eq", float("inf"))
    ratio = height.least(width) / height.greatest(width)
    ratio = ratio.constant(1).where(infinite, ratio)
    ratio = ratio.constant(0).where(height.greatest(width).compare("eq", 0), ratio)
    angle = _arctangent(ratio, single=single)
    angle = (angle.constant(HALF_PI[0]) - angle).where(steep, angle)
    behind = (x.bits() >> 63).compare("ne", 0)
    angle = (angle.constant(2 * HALF_PI[0]) - angle).where(behind, angle)
    return angle.copysign(y).cast(dtype)


def _arctangent(t: Num, *, single: bool) -> Num:
    """Return the arc tangent of a number in [0, 1], reduced by pi/4 if it is large."""
    large = t.compare("gt", 0.4142135623730951)
    turned = ((t - 1) / (t + 1)).where(large, t)
    square = turned * turned
    series = square.polynomial(ATAN32 if single else ATAN64)
    angle = (turned * square).fma(series, turned)
    return (angle + HALF_PI[0] / 2).where(large, angle)
