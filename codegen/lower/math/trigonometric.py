"""sin, cos, and atan2; angles are reduced by pi/2 in double precision."""

from __future__ import annotations

from ....ir.dtype import f64
from .angle import HALF_PI, reduce_angle
from .coefficients import ATAN32, ATAN64, COS32, COS64, SIN32, SIN64
from .control import Code
from .expansion import branching_expansion, expansion
from .number import Num


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


def _quadrant(code: Code, x: Num, shift: int) -> Num:
    """Return the sine of ``x + shift * pi/2``."""
    wide, quadrant = reduce_angle(code, x)
    r = code.keep("remainder", wide.cast(x.type.dtype))
    turned = quadrant + shift
    odd = (turned & 1).compare("ne", 0)
    result = _cosine(r).where(odd, _sine(r))
    negative = (turned & 2).compare("ne", 0)
    result = (-result).where(negative, result)
    return (x - x).where(abs(x).compare("eq", float("inf")), result)


@branching_expansion("sin")
def sin(code: Code, x: Num) -> Num:
    """Return the sine; a zero keeps its sign."""
    x = code.keep("x", x)
    return x.where(x.compare("eq", 0), _quadrant(code, x, 0))


@branching_expansion("cos")
def cos(code: Code, x: Num) -> Num:
    """Return the cosine."""
    return _quadrant(code, code.keep("x", x), 1)


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
