"""log, log1p, log2, log10 by the exponent and a series in f / (2 + f) for the mantissa."""

from __future__ import annotations

from typing import Final

from ....ir.dtype import f64
from ....ir.thread.nodes import Value
from .coefficients import LOG32, LOG64
from .expansion import expansion
from .exponential import LN2_DOUBLE, LN2_SINGLE
from .number import DOUBLE, Format, Num, two_sum

_LOG64_0_LOW: Final = 3.700743415417188e-17
"""2/3 minus its double-precision value, the first coefficient of the series."""

_LOG2_E: Final = (1.4426946640014648, 3.768874985636099e-07)
_LOG10_E: Final = (0.4342944622039795, 1.9699272335463627e-08)
"""log2(e) and log10(e) in two parts; the first has 21 bits."""

_HIGH_HALF: Final = -(1 << 32)
"""The mask of the high 32 bits: sign, exponent, and 21 bits of the significand."""

_LOG10_2: Final = (0.30102999566395283, 2.8363394551044964e-14)
"""log10(2) in two parts; the first has 41 bits, so its multiples by exponents are exact."""

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
    high, low = _mantissa_in_two_parts(mantissa - 1)
    first, second = LN2_DOUBLE
    total, rest = two_sum(exponent * first, high)
    return two_sum(total, rest + exponent.fma(second, low))


def _mantissa_in_two_parts(f: Num) -> tuple[Num, Num]:
    """Return ``log(1 + f)`` of a reduced mantissa as an unevaluated sum of two doubles.

    The quotient ``s`` is a product with an inverse, since its error is computed.
    """
    bottom = f + 2
    rounded = f - (bottom - 2)
    inverse = bottom.reciprocal()
    s = f * inverse
    error = ((-s).fma(bottom, f) - s * rounded) * inverse
    square = s * s
    square_error = s.fma(s, -square) + s * error * 2
    cube = square * s
    cube_error = square.fma(s, -cube) + square * error + square_error * s
    third, third_error = LOG64[0], _LOG64_0_LOW
    term = cube * third
    term_error = cube.fma(third, -term) + cube * third_error + cube_error * third
    tail = square * square * s * square.polynomial(LOG64[1:])
    twice = s * 2
    high, low = two_sum(twice, term)
    return high, low + (error * 2 + term_error + tail)


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


def short_log(x: Num) -> Num:
    """Return the logarithm of a positive normal double, rounded to single precision later."""
    mantissa, exponent = _split(x)
    return exponent.fma(LN2_DOUBLE[0] + LN2_DOUBLE[1], _short_series(mantissa - 1))


def _short_series(f: Num) -> Num:
    """Return ``log(1 + f)`` of a reduced mantissa with the relative error 2**-31."""
    s = f / (f + 2)
    z = s * s
    half = f * f * 0.5
    return f - (half - s * (half + z * z.polynomial(LOG32)))


@expansion("log2")
def log2(x: Num) -> Num:
    """Return the binary logarithm; exact for powers of two."""
    return _in_base(x, _LOG2_E, (1.0, 0.0))


@expansion("log10")
def log10(x: Num) -> Num:
    """Return the decimal logarithm; exact for powers of ten."""
    return _in_base(x, _LOG10_E, _LOG10_2)


def _in_base(x: Num, scale: tuple[float, float], two: tuple[float, float]) -> Num:
    """Return the logarithm times ``scale``; ``two`` is the logarithm of 2, its parts as above."""
    wide = x.cast(f64)
    tiny = wide.compare("lt", DOUBLE.smallest)
    normal = wide if x.is_single else (wide * 2.0**54).where(tiny, wide)
    mantissa, exponent = _split(normal)
    if x.is_single:
        whole = scale[0] + scale[1]
        found = exponent.fma(two[0] + two[1], _short_series(mantissa - 1) * whole)
        return _special(wide, found, 0.0).cast(x.type.dtype)
    exponent = (exponent - 54).where(tiny, exponent)
    high, low = _mantissa_with_short_part(mantissa - 1)
    first, product = exponent * two[0], high * scale[0]
    total = first + product
    rest = (first - total) + product
    small = (high + low) * scale[1] + low * scale[0]
    return _special(x, total + (rest + exponent.fma(two[1], small)), 0.0)


def _mantissa_with_short_part(f: Num) -> tuple[Num, Num]:
    """Return ``log(1 + f)`` of a reduced mantissa as a number of 21 bits and the rest."""
    s = f / (f + 2)
    z = s * s
    half = f * f * 0.5
    tail = s * (half + z * z.polynomial(LOG64))
    high = ((f - half).bits() & _HIGH_HALF).floats(f.type.dtype)
    return high, ((f - high) - half) + tail
