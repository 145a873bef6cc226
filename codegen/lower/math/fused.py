"""fma and ldexp, rounded once."""

from __future__ import annotations

from typing import Final

from ....ir.dtype import f64, i64
from ....ir.thread.nodes import Binary, Fma
from .expansion import expansion
from .number import DOUBLE, Num, power_of_two, two_sum

_LEAST: Final = -(DOUBLE.bias - 1)
_STEP: Final = _LEAST + DOUBLE.mantissa + 1
_FARTHEST: Final = 2200
"""An exponent that takes every double to zero or infinity."""


@expansion("fma", direct=True)
def fma(x: Num, y: Num, z: Num) -> Num:
    """Return ``x * y + z``, rounded once.

    The product of floats of 16 bits is exact in double precision, and the sum is rounded to odd, so
    that the second rounding is correct.

    References
    ----------
    S. Boldo and G. Melquiond, Emulation of a FMA and Correctly-Rounded Sums, 2008.
    """
    dtype = x.type.dtype
    if dtype.compute == dtype:
        return Num(Fma(x.value, y.value, z.value, exact=True), x.type)
    total, error = two_sum(x.cast(f64) * y.cast(f64), z.cast(f64))
    bits = total.bits()
    # The error of an infinite sum is NaN, which is not compared as inexact.
    inexact = Binary("or", error.compare("lt", 0), error.compare("gt", 0))
    even = (bits & 1).compare("eq", 0)
    inward = Binary("xor", error.compare("gt", 0), total.compare("gt", 0))
    odd = (bits - 1).where(inward, bits + 1)
    return odd.where(Binary("and", inexact, even), bits).floats(f64).cast(dtype)


@expansion("ldexp", direct=True)
def ldexp(x: Num, n: Num) -> Num:
    """Return ``x * 2**n``, rounded once."""
    dtype = x.type.dtype
    wide, exponent = x.cast(f64), n.cast(i64).greatest(-_FARTHEST).least(_FARTHEST)
    if dtype != f64:
        exponent = exponent.greatest(-400).least(400)
        half = exponent >> 1
        wide = wide * power_of_two(half, f64) * power_of_two(exponent - half, f64)
        return wide.cast(dtype)
    # A factor after one that may round is below 2**-53, so that the result is 0 in this case.
    for _ in range(2):
        step = exponent.constant(_STEP).where(exponent.compare("lt", _LEAST), exponent)
        step = step.least(DOUBLE.bias)
        wide = wide * power_of_two(step, f64)
        exponent = exponent - step
    return wide * power_of_two(exponent, f64)
