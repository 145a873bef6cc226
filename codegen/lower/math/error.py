"""erf, erfc, and the inverse of erf.

References: W. J. Cody, Rational Chebyshev Approximations for the Error Function, 1969; M. Giles,
Approximating the erfinv Function, 2012 (polynomials in the logarithm of 1 - x**2).
"""

from __future__ import annotations

from ....ir.dtype import f64
from .coefficients import (
    ERF32,
    ERF64,
    ERFC64,
    ERFC_BINARY_LOG32,
    ERFC_WIDE32,
    ERFC_WIDE64,
    ERFINV_CENTRAL32,
    ERFINV_CENTRAL64,
    ERFINV_MIDDLE32,
    ERFINV_MIDDLE64,
    ERFINV_TAIL64,
)
from .control import Code
from .expansion import branching_expansion, expansion
from .exponential import exp_of_sum, normal_exp, short_exp2
from .logarithm import log
from .number import Num, two_sum


@expansion("erf")
def erf(x: Num) -> Num:
    """Return the error function."""
    size = abs(x)
    square = x * x
    near = x.fma(square.polynomial(ERF32 if x.is_single else ERF64), x)
    far = (_far_single(size) if x.is_single else _far_double(size)).copysign(x)
    return near.where(size.compare("lt", 0.921875), far)


def _far_single(size: Num) -> Num:
    """Return 1 - 2**g with g = log2(erfc) as a polynomial."""
    rest, power = short_exp2(size.least(3.95).polynomial(ERFC_BINARY_LOG32))
    return (-rest).fma(power, 1)


def _far_double(size: Num) -> Num:
    """Return 1 - exp(-t**2) h(u) / (t + 2) with u = (t - 2) / (t + 2)."""
    t = size.least(6.0)
    u = (t - 2) / (t + 2)
    rest, power = normal_exp(-(t * t))
    return size.constant(1) - rest * power * u.polynomial(ERFC64) / (t + 2)


@expansion("erfc")
def erfc(x: Num) -> Num:
    """Return 1 - erf(x), accurate for large numbers too.

    Above 1/2, it is exp(-t**2) h(u) / (t + 2) with u = (t - 2) / (t + 2).
    """
    wide = x.cast(f64)
    size, square = abs(wide), wide * wide
    total, error = two_sum(wide.constant(1), -wide)
    near = total + (error - wide * square.polynomial(ERF32 if x.is_single else ERF64))
    t = size.least(28.0)
    u = (t - 2) / (t + 2)
    scale = u.polynomial(ERFC_WIDE32 if x.is_single else ERFC_WIDE64) / (t + 2)
    square = t * t
    far = exp_of_sum(-square, -t.fma(t, -square), scale)
    far = (far.constant(2) - far).where(wide.compare("lt", 0), far)
    return near.where(size.compare("lt", 0.5), far).cast(x.type.dtype)


@branching_expansion("erfinv")
def erfinv(code: Code, x: Num) -> Num:
    """Return the number whose error function is ``x``, as x times a function of log(1 - x**2)."""
    single = x.is_single
    wide = code.keep("x", x.cast(f64))
    one = wide.constant(1)
    w = code.keep("w", -log((one - wide) * (one + wide)))
    ratio = (w - 3.125).polynomial(ERFINV_CENTRAL32 if single else ERFINV_CENTRAL64)

    def outside(inner: Code) -> Num:
        s = inner.keep("s", w.unary("sqrt").least(6.25))
        found = (s - 3.25).polynomial(ERFINV_MIDDLE32 if single else ERFINV_MIDDLE64)
        if single:
            return found
        return (s - 5).polynomial(ERFINV_TAIL64).where(s.compare("ge", 4.0), found)

    ratio = code.replace_if_any(w.compare("ge", 6.25), "ratio", ratio, outside)
    limit = one.constant(float("inf")).copysign(wide)
    return limit.where(abs(wide).compare("eq", 1), wide * ratio).cast(x.type.dtype)
