"""References of functions of complex numbers: NumPy scalars and arrays.

A function that is defined for real and complex numbers chooses its reference by the operand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

Values: TypeAlias = Any
"""A NumPy scalar or array; the result is of the same form."""

_where: Callable[..., Values] = np.where

_LIMITS: Final = {"f": (2.0**60, 2.0**80), "d": (2.0**500, 2.0**600)}
"""The magnitude above which, or below whose reciprocal, a number is scaled, and the factor."""


@dataclass(frozen=True, slots=True)
class ByKind:
    """A reference that depends on whether the operands are complex.

    Parameters
    ----------
    real : callable
        The function of real numbers.
    pairs : callable
        The function of complex numbers.
    """

    real: Callable[..., Values]
    pairs: Callable[..., Values]

    def __call__(self, *operands: Values) -> Values:
        """Apply the function for the dtype of the first operand."""
        return self.chosen(is_complex=operands[0].dtype.kind == "c")(*operands)

    def chosen(self, *, is_complex: bool) -> Callable[..., Values]:
        """Return the function for operands whose kind is known."""
        return self.pairs if is_complex else self.real


def of_kind(real: Callable[..., Values], complex_: Callable[..., Values]) -> ByKind:
    """Return the function that applies the second one if its first operand is complex.

    Examples
    --------
    >>> absolute = of_kind(np.negative, np.abs)
    >>> absolute(np.float32(3)), absolute(np.complex64(3 - 4j))
    (np.float32(-3.0), np.float32(5.0))
    """
    return ByKind(real, complex_)


def paired(real: Values, imaginary: Values) -> Values:
    """Return the complex numbers with the given parts, which have one dtype.

    Examples
    --------
    >>> paired(np.float32(1), np.float32(-0.0))
    np.complex64(1-0j)
    """
    shape = np.broadcast_shapes(np.shape(real), np.shape(imaginary))
    out = np.empty(shape, np.result_type(real.dtype, np.complex64))
    out.real, out.imag = real, imaginary
    return out[()]


def in_wide(function: Callable[..., Values]) -> Callable[..., Values]:
    """Return a function of complex numbers computed in complex128 and rounded once.

    Examples
    --------
    >>> in_wide(np.sqrt)(np.complex64(complex(-4, -0.0)))
    np.complex64(-2j)
    """

    def reference(*operands: Values) -> Values:
        wide = [np.asarray(x, np.complex128) for x in operands]
        with np.errstate(all="ignore"):
            return function(*wide).astype(operands[0].dtype)[()]

    return reference


exponential = in_wide(np.exp)
"""The function ``exp(x)``."""

power = in_wide(np.power)
"""The function ``x ** y``; 1 for an exponent of 0."""


def angle(x: Values) -> Values:
    """Return the angle of numbers, computed in float64 and rounded once."""
    wide = np.asarray(x, np.complex128)
    return np.arctan2(wide.imag, wide.real).astype(x.real.dtype)[()]


def magnitude(x: Values) -> Values:
    """Return the absolute value of numbers, computed in float64 and rounded once."""
    wide = np.asarray(x, np.complex128)
    return np.hypot(wide.real, wide.imag).astype(x.real.dtype)[()]


def multiply(x: Values, y: Values) -> Values:
    """Return ``x * y``, each product rounded: arrays of NumPy may contract them.

    Examples
    --------
    >>> multiply(np.complex64(1 + 2j), np.complex64(3 - 1j))
    np.complex64(5+5j)
    """
    a, b, c, d = x.real, x.imag, y.real, y.imag
    return paired(a * c - b * d, a * d + b * c)


def _scale(x: Values) -> Values:
    """Return a power of two that brings a number into the range without overflow."""
    limit, factor = _LIMITS[x.real.dtype.char]
    size = np.maximum(np.abs(x.real), np.abs(x.imag))
    small = _where(size < 1 / limit, factor, 1.0)
    return _where(size > limit, 1 / factor, small).astype(x.real.dtype)


def divide(x: Values, y: Values) -> Values:
    """Return ``x / y`` by the formula of Smith, of operands scaled by powers of two.

    The result is infinite or subnormal only if the quotient is, and has the bits of the quotient of
    NumPy for operands between ``2**-60`` and ``2**60`` (complex128: ``2**-500`` and ``2**500``).

    Examples
    --------
    >>> divide(np.complex64(1 + 2j), np.complex64(1 - 2j)), divide(np.complex64(1), np.complex64(0))
    (np.complex64(-0.6+0.8j), np.complex64(inf+nanj))
    >>> divide(np.complex64(1e-40 + 1e-40j), np.complex64(1e-40))
    np.complex64(1+1j)
    """
    with np.errstate(all="ignore"):
        return _quotient(x, y)


def _quotient(x: Values, y: Values) -> Values:
    """Return ``x / y``."""
    top, bottom = _scale(x), _scale(y)
    a, b, c, d = x.real * top, x.imag * top, y.real * bottom, y.imag * bottom
    swap = np.abs(c) < np.abs(d)
    large = _where(swap, d, c)
    small = _where(swap, c, d)
    zero = (large == 0) & (small == 0)
    ratio = small / large
    inverse = 1 / _where(zero, np.abs(large), large + small * ratio)
    first = _where(swap, b, a)
    second = _where(swap, a, b)
    forward = _where(zero, 0, second * ratio)
    across = _where(zero, 0, first * ratio)
    real = (first + forward) * inverse
    imaginary = _where(swap, across - second, second - across) * inverse
    return paired(_unscaled(real, top, bottom), _unscaled(imaginary, top, bottom))


def _unscaled(part: Values, top: Values, bottom: Values) -> Values:
    """Return ``part * bottom / top``, in two steps that cannot cancel."""
    one = top == bottom
    return part * _where(one, 1, 1 / top) * _where(one, 1, bottom)
