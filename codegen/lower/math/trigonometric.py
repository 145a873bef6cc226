"""sin, cos, tan, and atan2; angles are reduced by pi/2 in double precision."""

from __future__ import annotations

from ....ir.dtype import f64
from .angle import HALF_PI, reduce_angle, reduce_in_two_parts
from .coefficients import ATAN32, ATAN64, COS32, COS64, SIN32, SIN64
from .control import Code
from .expansion import branching_expansion, expansion
from .number import Num, two_sum


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


@branching_expansion("tan")
def tan(code: Code, x: Num) -> Num:
    """Return the tangent as the quotient of sine and cosine; a zero keeps its sign."""
    x = code.keep("x", x)
    if x.is_single:
        rest, quadrant = reduce_angle(code, x)
        r = code.keep("remainder", rest)
        sine, cosine = _short_sine(r), _short_cosine(r)
        odd = (quadrant & 1).compare("ne", 0)
        found = ((-cosine).where(odd, sine) / sine.where(odd, cosine)).cast(x.type.dtype)
    else:
        r, low, quadrant = reduce_in_two_parts(code, x)
        parts = sine_and_cosine(code.keep("remainder", r), code.keep("low", low))
        odd = (quadrant & 1).compare("ne", 0)
        (sine, sine_low), (cosine, cosine_low) = parts
        top = ((-cosine).where(odd, sine), (-cosine_low).where(odd, sine_low))
        bottom = (sine.where(odd, cosine), sine_low.where(odd, cosine_low))
        high, low = divided(top, bottom)
        found = high + low
    found = x.where(x.compare("eq", 0), found)
    return (x - x).where(abs(x).compare("eq", float("inf")), found)


def _short_sine(r: Num) -> Num:
    square = r * r
    return (r * square).fma(square.polynomial(SIN32), r)


def _short_cosine(r: Num) -> Num:
    square = r * r
    return (square * square).fma(square.polynomial(COS32), square.fma(-0.5, 1.0))


def sine_and_cosine(r: Num, low: Num) -> tuple[tuple[Num, Num], tuple[Num, Num]]:
    """Return sine and cosine of a reduced angle ``r + low`` as unevaluated sums of doubles."""
    square = r * r
    half = square * 0.5
    bend = (r * square).fma(square.polynomial(SIN64), low - low * half)
    sine, sine_low = two_sum(r, bend)
    one = r.constant(1)
    top = one - half
    tail = square * square * square.polynomial(COS64)
    # The square is rounded; its error is a part of the sum.
    lost = r.fma(r, -square) * 0.5
    below = ((one - top) - half) - lost + (tail - r * low)
    cosine, cosine_low = two_sum(top, below)
    return (sine, sine_low), (cosine, cosine_low)


def divided(x: tuple[Num, Num], y: tuple[Num, Num]) -> tuple[Num, Num]:
    """Return the quotient of two unevaluated sums as an unevaluated sum."""
    quotient = x[0] / y[0]
    rest = (-quotient).fma(y[0], x[0]) + (x[1] - quotient * y[1])
    return quotient, rest / y[0]


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
