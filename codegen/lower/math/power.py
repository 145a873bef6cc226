"""rsqrt, pow, and hypot."""

from __future__ import annotations

from ....ir.dtype import f64
from ....ir.thread.nodes import Binary, Unary, Value
from .control import Code
from .expansion import branching_expansion, expansion, integer_expansion
from .exponential import exp, exp_of_sum
from .logarithm import log, log_in_two_parts
from .number import DOUBLE, Num, two_sum


@expansion("rsqrt")
def rsqrt(x: Num) -> Num:
    """Return 1 / sqrt(x)."""
    if x.is_single:
        return x.cast(f64).unary("sqrt").reciprocal().cast(x.type.dtype)
    return x.unary("sqrt").reciprocal()


@branching_expansion("pow")
def pow_(code: Code, x: Num, y: Num) -> Num:
    """Return x**y as e**(y log|x|) with the sign of odd powers.

    Single precision is computed in double precision. In double precision, the logarithm and its
    product with y have two parts, since e**z multiplies the error of z by up to 745.
    """
    dtype = x.type.dtype
    base, power = code.keep("base", x.cast(f64)), code.keep("power", y.cast(f64))
    size = exp(power * log(abs(base))) if x.is_single else _size(code, abs(base), power)
    size = code.keep("size", size)
    whole = power.unary("floor").compare("eq", power)
    half = power * 0.5
    odd = Binary("and", whole, half.unary("floor").compare("ne", half))
    finite = abs(power).compare("lt", float("inf"))
    odd = Binary("and", odd, finite)
    signed = size.copysign(base).where(odd, size)
    # A finite negative base has a real power only if the exponent is an integer.
    broken = _all(base.compare("lt", 0), Unary("not", whole), abs(base).compare("lt", float("inf")))
    result = base.constant(float("nan")).where(broken, signed)
    one = base.constant(1)
    neutral = Binary("or", base.compare("eq", 1), power.compare("eq", 0))
    minus = _all(base.compare("eq", -1), Unary("not", finite), power.compare("eq", power))
    return one.where(Binary("or", neutral, minus), result).cast(dtype)


def _size(code: Code, base: Num, power: Num) -> Num:
    """Return base**power for a base that is not negative, in double precision."""
    tiny = base.compare("lt", DOUBLE.smallest)
    scaled = code.keep("scaled", (base * 2.0**54).where(tiny, base))
    high, low = (code.keep("log", part) for part in log_in_two_parts(scaled, tiny))
    plain = code.keep("plain", power * log(base))
    product = code.keep("product", power * high)
    error = power.fma(high, -product) + power * low
    usual = _all(
        abs(product).compare("lt", 1e4),
        base.compare("gt", 0),
        base.compare("lt", float("inf")),
    )
    error = error.where(usual, error.constant(0))
    return exp_of_sum(product.where(usual, plain), error)


def _all(*bits: Value) -> Value:
    total = bits[0]
    for bit in bits[1:]:
        total = Binary("and", total, bit)
    return total


@integer_expansion("pow")
def integer_power(x: Num, y: Num) -> Num:
    """Return x**y of integers by repeated squaring, wrapping; 0 for a negative exponent."""
    result, base, power = x.constant(1), x, y
    for _ in range(x.type.dtype.bits):
        odd = (power & 1).compare("ne", 0)
        result = (result * base).where(odd, result)
        base, power = base * base, _halved(power)
    if x.type.dtype.kind == "uint":
        return result
    return x.constant(0).where(y.compare("lt", 0), result)


def _halved(power: Num) -> Num:
    return power >> 1


@expansion("hypot")
def hypot(x: Num, y: Num) -> Num:
    """Return the root of ``x**2 + y**2``; infinity if an operand is infinite, even beside NaN.

    The squares of single precision are in the range of double precision. In double precision, the
    operands are scaled, and the rounding errors of squares, sum, and root are added.
    """
    a, b = abs(x).cast(f64), abs(y).cast(f64)
    if x.is_single:
        found = a.fma(a, b * b).unary("sqrt")
    else:
        high = a.greatest(b)
        large, small = high.compare("gt", 2.0**500), high.compare("lt", 2.0**-400)
        one = high.constant(1)
        scale = one.constant(2.0**-600).where(large, one.constant(2.0**600).where(small, one))
        back = one.constant(2.0**600).where(large, one.constant(2.0**-600).where(small, one))
        found = _root_of_squares(a * scale, b * scale) * back
    infinity = found.constant(float("inf"))
    found = infinity.where(a.compare("eq", infinity), found)
    return infinity.where(b.compare("eq", infinity), found).cast(x.type.dtype)


def _root_of_squares(x: Num, y: Num) -> Num:
    first, second = x * x, y * y
    total, error = two_sum(first, second)
    error = error + (x.fma(x, -first) + y.fma(y, -second))
    root = total.unary("sqrt")
    rest = ((-root).fma(root, total) + error) / (root * 2)
    return root + rest.where(root.compare("gt", 0), root.constant(0))
