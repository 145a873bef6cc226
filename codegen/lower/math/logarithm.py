"""log and log1p by the exponent and a series in f / (2 + f) for the mantissa."""

from __future__ import annotations

from typing import Final

from ....ir.thread.nodes import Value
from .coefficients import LOG32, LOG64
from .expansion import expansion
from .exponential import LN2_DOUBLE, LN2_SINGLE
from .number import Format, Num

_LOG64_0_LOW: Final = 3.700743415417188e-17
"""2/3 minus its double-precision value, the first coefficient of the series."""

_HALF_ROOT: Final = {True: 0x3F3504F3, False: 0x3FE6A09E667F3BCD}
"""The bits of sqrt(1/2), the start of the reduced range."""


def _series(f: Num, exponent: Num) -> Num:
    """Return ``log(1 + f) + exponent * ln 2``, with the largest terms added last."""
    s = f / (f + 2)
    z = s * s
    r = z * z.polynomial(LOG32 if f.is_single else LOG64)
    half = f * f * 0.5
    first, second = LN2_SINGLE if f.is_single else LN2_DOUBLE
    tail = s.fma(half + r, exponent * second)
    return exponent.fma(first, f - (half - tail))


def _split(x: Num) -> tuple[Num, Num]:
    """Split a positive normal number into a mantissa in [sqrt(1/2), sqrt(2)) and an exponent."""
    form = Format.of(x)
    offset = (1 << form.mantissa) * form.bias - _HALF_ROOT[x.is_single]
    shifted = x.bits() + offset
    exponent = (shifted >> form.mantissa) - form.bias
    mantissa = (shifted & ((1 << form.mantissa) - 1)) + _HALF_ROOT[x.is_single]
    return mantissa.floats(x.type.dtype), exponent.cast(x.type.dtype)


def _special(x: Num, result: Num, zero: float) -> Num:
    """Replace the result for arguments ``zero``, below ``zero``, infinity, and NaN."""
    result = x.where(x.compare("eq", float("inf")), result)
    result = x.constant(float("-inf")).where(x.compare("eq", zero), result)
    result = x.constant(float("nan")).where(x.compare("lt", zero), result)
    return x.where(x.compare("ne", x), result)


def log_in_two_parts(x: Num, scaled: Value) -> tuple[Num, Num]:
    """Return the logarithm of a positive normal double as an unevaluated sum of two doubles.

    Where ``scaled``, it is the logarithm of ``x * 2**-54``.

    The relative error is about 2**-65. The series is ``2 s + 2/3 s**3 + ...`` with
    ``s = f / (2 + f)``; its first two terms have two parts.
    """
    mantissa, exponent = _split(x)
    exponent = (exponent - 54).where(scaled, exponent)
    f = mantissa - 1
    bottom = f + 2
    rounded = f - (bottom - 2)
    s = f / bottom
    error = ((-s).fma(bottom, f) - s * rounded) / bottom
    square = s * s
    square_error = s.fma(s, -square) + s * error * 2
    cube = square * s
    cube_error = square.fma(s, -cube) + square * error + square_error * s
    third, third_error = LOG64[0], _LOG64_0_LOW
    term = cube * third
    term_error = cube.fma(third, -term) + cube * third_error + cube_error * third
    tail = square * square * s * square.polynomial(LOG64[1:])
    twice = s * 2
    high, low = _two_sum(twice, term)
    low = low + (error * 2 + term_error + tail)
    first, second = LN2_DOUBLE
    total, rest = _two_sum(exponent * first, high)
    return _two_sum(total, rest + exponent.fma(second, low))


def _two_sum(a: Num, b: Num) -> tuple[Num, Num]:
    """Return the rounded sum and its error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@expansion("log")
def log(x: Num) -> Num:
    """Return the natural logarithm."""
    form = Format.of(x)
    tiny = x.compare("lt", form.smallest)
    scale = float(form.mantissa + 1)
    normal = (x * 2.0**scale).where(tiny, x)
    mantissa, exponent = _split(normal)
    exponent = (exponent - scale).where(tiny, exponent)
    return _special(x, _series(mantissa - 1, exponent), 0.0)


@expansion("log1p")
def log1p(x: Num) -> Num:
    """Return log(1 + x); the rounding error of 1 + x is added to the reduced argument."""
    u = x + 1
    lost = (x - (u - 1)).where(x.compare("lt", 1), x.constant(1) - (u - x))
    mantissa, exponent = _split(u)
    scale = mantissa / u
    f = lost.fma(scale, mantissa - 1)
    result = x.where(abs(x).compare("lt", 2.0**-60), _series(f, exponent))
    return _special(x, result, -1.0)
