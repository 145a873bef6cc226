"""sinh, cosh, and the inverses of sinh, cosh, and tanh.

The inverse functions are logarithms of sums. In double precision, sums, roots, and logarithms have
two parts; in single precision, they are computed in double precision.

References: T. J. Dekker, A floating-point technique for extending the available precision, 1971.
"""

from __future__ import annotations

from typing import Final

from ....ir.dtype import f64
from ....ir.thread.nodes import Value
from .coefficients import SINH32, SINH64
from .expansion import expansion
from .exponential import half_exp
from .logarithm import log_in_two_parts, short_log
from .number import DOUBLE, Num, two_sum

_LN2: Final = (0.6931471805599453, 2.3190468138462996e-17)
_LARGE: Final = 2.0**28
"""The number from which on the square exceeds 1 by more than the precision."""

_SMALL: Final = {True: 2.0**-12, False: 2.0**-28}
"""The number below which two terms of the series are exact."""


@expansion("sinh")
def sinh(x: Num) -> Num:
    """Return the hyperbolic sine: a polynomial below 1, else (e**x - e**-x) / 2."""
    size, square = abs(x), x * x
    near = (x * square).fma(square.polynomial(SINH32 if x.is_single else SINH64), x)
    high, low = half_exp(size)
    far = high + (low - high.constant(0.25) / high)
    result = near.where(size.compare("lt", 1.0), far.copysign(x))
    return x.where(x.compare("eq", 0), result)


@expansion("cosh")
def cosh(x: Num) -> Num:
    """Return the hyperbolic cosine, (e**x + e**-x) / 2."""
    high, low = half_exp(abs(x))
    return high + (low + high.constant(0.25) / high)


@expansion("asinh")
def asinh(x: Num) -> Num:
    """Return the inverse of sinh, the logarithm of abs(x) + sqrt(x**2 + 1)."""
    size = abs(x).cast(f64)
    if x.is_single:
        found = short_log(size + size.fma(size, 1.0).unary("sqrt"))
    else:
        found = _log_of_sum(size, _root(size, 1.0))
    return _odd(x, size, found, -1 / 6)


@expansion("acosh")
def acosh(x: Num) -> Num:
    """Return the inverse of cosh, the logarithm of x + sqrt(x**2 - 1); NaN below 1."""
    wide = x.cast(f64)
    if x.is_single:
        found = short_log(wide + wide.fma(wide, -1.0).unary("sqrt"))
    else:
        found = _log_of_sum(wide, _root(wide, -1.0))
    found = wide.where(wide.compare("eq", float("inf")), found)
    found = wide.constant(0).where(wide.compare("eq", 1.0), found)
    inside = wide.compare("ge", 1.0)
    return found.where(inside, found.constant(float("nan"))).cast(x.type.dtype)


@expansion("atanh")
def atanh(x: Num) -> Num:
    """Return the inverse of tanh, half the logarithm of (1 + x) / (1 - x); NaN above 1."""
    size = abs(x).cast(f64)
    one = size.constant(1)
    if x.is_single:
        found = short_log((one + size) / (one - size)) * 0.5
    else:
        top, top_error = two_sum(one, size)
        bottom, bottom_error = two_sum(one, -size)
        quotient = top / bottom
        rest = (-quotient).fma(bottom, top) + (top_error - quotient * bottom_error)
        high, low = log_in_two_parts(quotient, one.compare("lt", 0))
        found = (high + (low + rest / top)) * 0.5
    found = one.constant(float("inf")).where(size.compare("eq", 1), found)
    found = one.constant(float("nan")).where(size.compare("gt", 1), found)
    return _odd(x, size, found, 1 / 3)


def _odd(x: Num, size: Num, found: Num, cubic: float) -> Num:
    """Return an odd function with its sign, and its series for small and infinite numbers."""
    small = (size * size * size).fma(cubic, size)
    found = small.where(size.compare("lt", _SMALL[x.is_single]), found)
    if cubic < 0:
        found = size.where(size.compare("eq", float("inf")), found)
    found = size.where(size.compare("ne", size), found)
    return found.cast(x.type.dtype).copysign(x)


def _root(x: Num, term: float) -> tuple[Num, Num]:
    """Return the root of ``x**2 + term`` as an unevaluated sum; 0 for 0."""
    square = x * x
    total, error = two_sum(square, x.constant(term))
    error = error + x.fma(x, -square)
    root = total.unary("sqrt")
    rest = ((-root).fma(root, total) + error) / (root * 2)
    return root, rest.where(root.compare("gt", 0), root.constant(0))


def _log_of_sum(x: Num, root: tuple[Num, Num]) -> Num:
    """Return the logarithm of a positive number plus a root; of twice the number if it is large.

    The sum is halved, because it may overflow, and the logarithm of 2 added.
    """
    large = x.compare("ge", _LARGE)
    total, error = two_sum(x * 0.5, root[0] * 0.5)
    error = error + root[1] * 0.5
    total, error = x.where(large, total), error.constant(0).where(large, error)
    high, low = log_in_two_parts(total, _none(total))
    first, rest = two_sum(high.constant(_LN2[0]), high)
    return first + (rest + (low + _LN2[1] + error / total))


def _none(x: Num) -> Value:
    """Return the lanes of a normal number that are scaled: none."""
    return x.compare("lt", DOUBLE.smallest)
