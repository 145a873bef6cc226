"""rsqrt and pow."""

from __future__ import annotations

from ....ir.dtype import f64
from ....ir.thread.nodes import Binary, Unary, Value
from .expansion import expansion
from .exponential import exp
from .logarithm import log
from .number import Num


@expansion("rsqrt")
def rsqrt(x: Num) -> Num:
    """Return 1 / sqrt(x)."""
    if x.is_single:
        return x.cast(f64).unary("sqrt").reciprocal().cast(x.type.dtype)
    return x.unary("sqrt").reciprocal()


@expansion("pow")
def pow_(x: Num, y: Num) -> Num:
    """Return x**y as e**(y log|x|), computed in double precision, with the sign of odd powers."""
    dtype = x.type.dtype
    base, power = x.cast(f64), y.cast(f64)
    size = exp(power * log(abs(base)))
    whole = power.unary("floor").compare("eq", power)
    half = power * 0.5
    odd = Binary("and", whole, half.unary("floor").compare("ne", half))
    finite = abs(power).compare("lt", float("inf"))
    odd = Binary("and", odd, finite)
    signed = size.copysign(base).where(odd, size)
    # A finite negative base has a real power only if the exponent is an integer.
    broken = _all(base.compare("lt", 0), Unary("not", whole), abs(base).compare("lt", float("inf")))
    result = x.constant(0).cast(f64).constant(float("nan")).where(broken, signed)
    one = base.constant(1)
    neutral = Binary("or", base.compare("eq", 1), power.compare("eq", 0))
    minus = _all(base.compare("eq", -1), Unary("not", finite), power.compare("eq", power))
    return one.where(Binary("or", neutral, minus), result).cast(dtype)


def _all(*bits: Value) -> Value:
    total = bits[0]
    for bit in bits[1:]:
        total = Binary("and", total, bit)
    return total


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
