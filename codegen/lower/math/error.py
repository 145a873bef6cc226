"""The error function: a polynomial near 0, else 1 minus the complement."""

from __future__ import annotations

from .coefficients import ERF32, ERF64, ERFC64, ERFC_LOG32
from .expansion import expansion
from .exponential import exp
from .number import Num


@expansion("erf")
def erf(x: Num) -> Num:
    """Return the error function."""
    size = abs(x)
    square = x * x
    near = x.fma(square.polynomial(ERF32 if x.is_single else ERF64), x)
    far = (_far_single(size) if x.is_single else _far_double(size)).copysign(x)
    return near.where(size.compare("lt", 0.921875), far)


def _far_single(size: Num) -> Num:
    """Return 1 - exp(-g) with g = -log(erfc) as a polynomial."""
    g = size.least(3.95).polynomial(ERFC_LOG32)
    return size.constant(1) - exp(-g)


def _far_double(size: Num) -> Num:
    """Return 1 - exp(-t**2) h(u) / (t + 2) with u = (t - 2) / (t + 2)."""
    t = size.least(6.0)
    u = (t - 2) / (t + 2)
    return size.constant(1) - exp(-(t * t)) * u.polynomial(ERFC64) / (t + 2)
