"""References of element functions: total functions of NumPy scalars.

``element_functions`` is the table that names them. A function that NumPy and :mod:`math` lack is
computed here in float64, or exactly. Integer arithmetic wraps around.

References
----------
J. Salmon, M. Moraes, R. Dror, D. Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, 2011 (Philox).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Scalar: TypeAlias = Any
"""A NumPy scalar of any dtype that the function is defined for."""

_WORD: Final = (1 << 32) - 1
_ROUNDS: Final = 10
_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
_SINGLE: Final = 24


def in_double(compute: Callable[..., Any]) -> Callable[..., Scalar]:
    """Return the function of scalars of one dtype that is computed in float64 and rounded once."""

    def reference(*x: Scalar) -> Scalar:
        return type(x[0])(compute(*(np.float64(v) for v in x)))

    return reference


def of_each(compute: Callable[[Any], Any]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return the function of arrays that applies a function of float64 to each element."""
    apply: Callable[[Any], Any] = np.vectorize(compute, otypes=[np.float64])

    def arrays(x: NDArray[Any]) -> NDArray[Any]:
        return apply(x.astype(np.float64)) if x.size else np.empty(x.shape)

    return arrays


def of_each_integer(compute: Callable[[Any], Any]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return the function of arrays that applies a function of integers to each element."""

    def arrays(x: NDArray[Any]) -> NDArray[Any]:
        return np.array([compute(v) for v in x.ravel()], x.dtype).reshape(x.shape)

    return arrays


def wrapped(value: int, like: Scalar) -> Scalar:
    """Return the low bits of a value as an integer of the dtype of ``like``."""
    word = value % (1 << (8 * like.dtype.itemsize))
    return np.dtype(f"u{like.dtype.itemsize}").type(word).view(like.dtype)


def _is_integer(x: Scalar) -> bool:
    return x.dtype.kind in "iu"


def _rounded(exact: Fraction, of: Any) -> Scalar:
    """Return a number as a float of a class of NumPy scalars, rounded once.

    The number is rounded to odd first, with at least two more bits than the result has, which
    avoids ties (Boldo and Melquiond, 2008).
    """
    try:
        near = np.float64(float(exact))
    except OverflowError:
        return of(math.inf if exact > 0 else -math.inf)
    if of is np.float64:
        return near
    wide = np.float64 if of is np.float32 else np.float32
    with np.errstate(all="ignore"):
        found = wide(near)
        if not np.isfinite(found) or Fraction(float(found)) == exact:
            return of(found)
        if not found.view(f"u{found.itemsize}") & 1:
            toward = math.inf if Fraction(float(found)) < exact else -math.inf
            found = np.nextafter(found, wide(toward))
        return of(found)


# ---------------------------------------------------------------- arithmetic


def negate(x: Scalar) -> Scalar:
    """Return ``-x``."""
    return type(x)(0) - x if _is_integer(x) else -x


def logical_not(x: Scalar) -> Scalar:
    """Return whether ``x`` is false."""
    return np.bool_(not x)


def sign(x: Scalar) -> Scalar:
    """Return -1, 0, or 1; NaN for NaN."""
    return np.sign(x) if _is_integer(x) else type(x)(np.sign(np.float64(x)))


def round_to_even(x: Any) -> Any:
    """Round halves to even; ``rint`` would convert an integer to a float."""
    return x if _is_integer(x) else np.rint(x)


def multiply(a: Scalar, b: Scalar) -> Scalar:
    """Return ``a * b``; integers wrap around."""
    return a * b


def divide(a: Scalar, b: Scalar) -> Scalar:
    """Divide; integer quotients are truncated, and integer division by zero returns 0."""
    if not _is_integer(a):
        return a / b
    x, y = int(a), int(b)
    size = abs(x) // abs(y) if y else 0
    return wrapped(-size if (x < 0) != (y < 0) else size, a)


def power(a: Scalar, b: Scalar) -> Scalar:
    """Return ``a ** b``; 0 for a negative power of an integer."""
    if not _is_integer(a):
        return type(a)(np.power(np.float64(a), np.float64(b)))
    width: int = 1 << (8 * a.dtype.itemsize)
    return wrapped(pow(int(a), int(b), width) if b >= 0 else 0, a)


def truncated_remainder(a: Scalar, b: Scalar) -> Scalar:
    """Return the remainder with the sign of the dividend; 0 for an integer divisor of 0."""
    if not _is_integer(a):
        return type(a)(np.fmod(np.float64(a), np.float64(b)))
    x, y = int(a), int(b)
    rest = abs(x) % abs(y) if y else 0
    return wrapped(-rest if x < 0 else rest, a)


def neighbor(a: Scalar, b: Scalar) -> Scalar:
    """Return the next float after ``a`` in the direction of ``b``; ``b`` if they are equal."""
    return b if a == b else np.nextafter(a, b)


def neighbors(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return :func:`neighbor` of each pair."""
    return np.where(a == b, b, np.nextafter(a, b))


def fused(a: Scalar, b: Scalar, c: Scalar) -> Scalar:
    """Return ``a * b + c``, rounded once."""
    x, y, z = (np.float64(v) for v in (a, b, c))
    if np.isfinite([x, y, z]).all():
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if exact:
            return _rounded(exact, a.dtype.type)
    if np.isfinite([x, y]).all() and np.isinf(z):
        return type(a)(z)
    return type(a)(x * y + z)


def scaled(x: Scalar, exponent: Scalar) -> Scalar:
    """Return ``x * 2**exponent``, rounded once."""
    try:
        return type(x)(math.ldexp(float(x), int(exponent)))
    except OverflowError:
        return type(x)(math.copysign(math.inf, float(x)))


# ---------------------------------------------------------------- bits


def count_ones(x: Scalar) -> Scalar:
    """Return the number of bits that are set."""
    return type(x)(_bits(x).bit_count())


def leading_zeros(x: Scalar) -> Scalar:
    """Return the number of zero bits above the highest bit that is set."""
    return type(x)(8 * x.dtype.itemsize - _bits(x).bit_length())


def trailing_zeros(x: Scalar) -> Scalar:
    """Return the number of zero bits below the lowest bit that is set."""
    bits = _bits(x) | 1 << (8 * x.dtype.itemsize)
    return type(x)((bits & -bits).bit_length() - 1)


def _bits(x: Scalar) -> int:
    return int(x) % (1 << (8 * x.dtype.itemsize))


def philox(counter: tuple[int, ...], key: tuple[int, int]) -> tuple[int, ...]:
    """Return the four random words of a counter of four words and a key: Philox 4x32-10.

    Examples
    --------
    >>> [hex(word) for word in philox((0, 0, 0, 0), (0, 0))]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    for _ in range(_ROUNDS):
        first, second = (counter[2 * k] * _MULTIPLIERS[k] for k in (0, 1))
        counter = (
            second >> 32 ^ counter[1] ^ key[0],
            second & _WORD,
            first >> 32 ^ counter[3] ^ key[1],
            first & _WORD,
        )
        key = (key[0] + _KEY_STEPS[0] & _WORD, key[1] + _KEY_STEPS[1] & _WORD)
    return counter


def random_bits(counter: Scalar, key: Scalar) -> Scalar:
    """Return element ``counter`` of the stream of random bits of a key."""
    per_block = 16 // counter.dtype.itemsize
    block, position = divmod(int(counter), per_block)
    words = philox((block & _WORD, block >> 32, 0, 0), (int(key) & _WORD, int(key) >> 32))
    stream = sum(word << (32 * k) for k, word in enumerate(words))
    return wrapped(stream >> (128 // per_block * position), counter)


# ---------------------------------------------------------------- elementary functions


def inverse_root(x: NDArray[Any]) -> NDArray[Any]:
    """Return ``1 / sqrt(x)``."""
    return 1.0 / np.sqrt(x)


def sigmoid(x: np.float64) -> Scalar:
    """Return ``1 / (1 + exp(-x))``."""
    return 1.0 / (1.0 + np.exp(-x)) if x >= 0 else np.exp(x) / (1.0 + np.exp(x))


def sigmoid_of_arrays(x: NDArray[Any]) -> NDArray[Any]:
    """Return ``1 / (1 + exp(-x))``, computed without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, np.ones_like(x), small) / (1 + small)


# ---------------------------------------------------------------- special functions


def inverse_erf(x: float) -> float:
    """Return the number whose error function is ``x``, by Halley's method.

    Examples
    --------
    >>> inverse_erf(0.0), inverse_erf(-1.0), math.erf(inverse_erf(0.25))
    (0.0, -inf, 0.25)
    """
    size = abs(x)
    if not size < 1 or x == 0:
        return math.copysign(math.inf, x) if size == 1 else x if x == 0 else math.nan
    log = math.log1p(-size) + math.log1p(size)
    part = 2 / (math.pi * 0.147) + log / 2
    y = math.sqrt(math.sqrt(part * part - log / 0.147) - part)
    for _ in range(4):
        slope = 2 / math.sqrt(math.pi) * math.exp(-y * y)
        error = math.erf(y) - size if y < 0.5 else (1 - size) - math.erfc(y)
        step = error / slope
        y -= step / (1 + y * step)
    return math.copysign(y, x)
