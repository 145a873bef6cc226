"""lgamma and digamma, computed in double precision for both precisions.

Arguments below 8 are shifted by an integer to an interval around the root, where a polynomial times
the distance from the root is accurate. The asymptotic series is used above, and the reflection
formula for negative arguments. Logarithms have two parts.

References: NIST Digital Library of Mathematical Functions, sections 5.5, 5.7, and 5.11.
"""

from __future__ import annotations

from typing import Final

from ....ir.dtype import f64
from ....ir.thread.nodes import Unary, Value
from .coefficients import DIGAMMA64, DIGAMMA_REST64, LGAMMA64, STIRLING64
from .control import Code
from .expansion import branching_expansion
from .logarithm import log_in_two_parts
from .number import DOUBLE, Num, two_sum
from .trigonometric import divided, sine_and_cosine

_ASYMPTOTIC: Final = 8.0
_FACTORS: Final = 6
"""The largest shift: arguments below 8 become at most 2.5."""

_PI: Final = (3.141592653589793, 1.2246467991473532e-16)
_LOG_PI: Final = (1.1447298858494002, 1.0265951162707826e-17)
_STIRLING: Final = (0.4189385332046727, 1.6728209650585413e-17)
"""(log(2 pi) - 1) / 2 in two parts."""

_ROOT: Final = (1.4616321449683622, 9.549995429965697e-17)
"""The root of digamma in two parts."""

_TINY: Final = 2.0**-60

_Sum = tuple[Num, Num]
"""An unevaluated sum of two doubles."""


def _log(x: Num) -> _Sum:
    tiny = x.compare("lt", DOUBLE.smallest)
    return log_in_two_parts((x * 2.0**54).where(tiny, x), tiny)


def _times(x: Num, y: Num) -> _Sum:
    product = x * y
    return product, x.fma(y, -product)


def _angle(r: Num) -> tuple[_Sum, _Sum]:
    """Return sine and cosine of pi times a number in [0, 1/2]."""
    steep = r.compare("gt", 0.25)
    turned = (r.constant(0.5) - r).where(steep, r)
    high, low = _times(turned, r.constant(_PI[0]))
    sine, cosine = sine_and_cosine(*two_sum(high, turned.fma(_PI[1], low)))
    return _chosen(steep, cosine, sine), _chosen(steep, sine, cosine)


def _chosen(bit: Value, x: _Sum, y: _Sum) -> _Sum:
    return x[0].where(bit, y[0]), x[1].where(bit, y[1])


@branching_expansion("lgamma")
def lgamma(code: Code, x: Num) -> Num:
    """Return the logarithm of the absolute value of the gamma function."""
    wide = code.keep("x", x.cast(f64))
    size = code.keep("size", abs(wide))
    high, low = _log_gamma_below(wide.where(size.compare("le", 0.5), size))
    high, low = code.replace_all_if_any(
        size.compare("ge", _ASYMPTOTIC), ("high", "low"), (high, low), lambda _: _stirling(size)
    )
    found = code.replace_if_any(
        wide.compare("lt", -0.5),
        "found",
        high + low,
        lambda _: _reflected_log_gamma(size, high, low),
    )
    infinity = size.constant(float("inf"))
    found = infinity.where(size.compare("eq", 0), found)
    found = infinity.where(size.compare("eq", float("inf")), found)
    return wide.where(wide.compare("ne", wide), found).cast(x.type.dtype)


def _log_gamma_below(x: Num) -> _Sum:
    """Return lgamma of a number from -1/2 to 8: lgamma(2 + t) plus or minus a logarithm."""
    whole = x.unary("round")
    t = x - whole
    series = t.polynomial(LGAMMA64)
    core, core_error = _times(t, series)
    square, error = _times(x, x)
    product, lost = two_sum(x, square)
    below, below_error = abs(product), (error + lost).where(x.compare("gt", 0), -(error + lost))
    factors = x.constant(1)
    for k in range(1, _FACTORS + 1):
        factors = (factors * (x - k)).where(whole.compare("ge", k + 2), factors)
    factors = x.where(whole.compare("eq", 1), factors)
    first = whole.compare("eq", 0)
    product = below.where(first, factors)
    high, low = _log(product)
    low = low + below_error.where(first, x.constant(0)) / product
    down = whole.compare("lt", 2)
    total, rest = two_sum(core, (-high).where(down, high))
    return total, rest + (core_error + (-low).where(down, low))


def _stirling(x: Num) -> _Sum:
    """Return lgamma of a number of at least 8."""
    log, log_low = _log(x)
    log, error = two_sum(log, log.constant(-1))
    half = x - 0.5
    product, rest = _times(half, log)
    rest = rest + half * (log_low + error)
    inverse = x.reciprocal()
    total, lost = two_sum(product, x.constant(_STIRLING[0]))
    correction = inverse * (inverse * inverse).polynomial(STIRLING64)
    low = lost + rest + (correction + _STIRLING[1])
    finite = product.compare("lt", float("inf"))
    return total, low.where(finite, low.constant(0))


def _reflected_log_gamma(size: Num, high: Num, low: Num) -> Num:
    """Return lgamma of a negative number: log(pi / (size sin(pi size))) - lgamma(size)."""
    r = abs(size - size.unary("round"))
    (sine, sine_low), _ = _angle(r)
    product, error = _times(size, sine)
    error = error + size * sine_low
    log, log_low = _log(product)
    log_low = log_low + error / product
    total, first = two_sum(log.constant(_LOG_PI[0]), -log)
    total, second = two_sum(total, -high)
    found = total + (second + first + (-(log_low + low) + _LOG_PI[1]))
    return found.constant(float("inf")).where(r.compare("eq", 0), found)


@branching_expansion("digamma")
def digamma(code: Code, x: Num) -> Num:
    """Return the derivative of lgamma; NaN at negative integers."""
    wide = code.keep("x", x.cast(f64))
    negative = wide.compare("lt", 0)
    y = code.keep("y", (wide.constant(1) - wide).where(negative, wide))
    high, low = _digamma_below(y)
    high, low = code.replace_all_if_any(
        y.compare("ge", _ASYMPTOTIC), ("high", "low"), (high, low), lambda _: _digamma_above(y)
    )
    found = code.replace_if_any(
        negative, "found", high + low, lambda _: _reflected_digamma(wide, high, low)
    )
    found = (-wide.reciprocal()).where(abs(wide).compare("lt", _TINY), found)
    infinite = wide.compare("eq", float("inf"))
    return wide.where(infinite, found).cast(x.type.dtype)


def _digamma_below(x: Num) -> _Sum:
    """Return digamma of a positive number below 8, by its distance from the root."""
    shift = x.unary("ceil") - 2
    small = x.compare("lt", 1)
    y = (x + 1).where(small, x - shift.greatest(0))
    top, bottom = x.constant(0), x.constant(1)
    for k in range(1, _FACTORS + 1):
        factor = x - k
        used = shift.compare("ge", k)
        top = top.fma(factor, bottom).where(used, top)
        bottom = (bottom * factor).where(used, bottom)
    top, bottom = x.constant(-1).where(small, top), x.where(small, bottom)
    distance = (y - _ROOT[0]) - _ROOT[1]
    return two_sum(top / bottom, distance * (y - 1.5).polynomial(DIGAMMA64))


def _digamma_above(x: Num) -> _Sum:
    """Return digamma of a number of at least 8."""
    high, low = _log(x)
    inverse = x.reciprocal()
    square = inverse * inverse
    return high, low - inverse.fma(0.5, square * square.polynomial(DIGAMMA_REST64))


def _reflected_digamma(x: Num, high: Num, low: Num) -> Num:
    """Return digamma of a negative number: digamma(1 - x) - pi / tan(pi x)."""
    r = x - x.unary("round")
    sine, cosine = _angle(abs(r))
    tangent, tangent_low = divided(cosine, sine)
    product, error = _times(tangent, x.constant(_PI[0]))
    error = error + (tangent * _PI[1] + tangent_low * _PI[0])
    left = r.compare("lt", 0)
    product, error = product.where(left, -product), error.where(left, -error)
    total, lost = two_sum(high, product)
    found = total + (lost + (low + error))
    whole = Unary("not", abs(r).compare("gt", 0))
    return found.constant(float("nan")).where(whole, found)
