"""Operands in single precision that element functions are tested with, and exact results.

The functions of one float are tested with every bit pattern, those of two or three floats with
pairs. Results are computed in float64. Where float64 is not exact enough beside a result in single
precision, the sum of two numbers is rounded to odd, which avoids a second rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tests.codegen.functions import UNARY, reference

Array = np.ndarray
Operands = tuple[Array, ...]

CHUNK = 1 << 17
"""Operands per call, which stay in the cache."""

EVERY = 1 << 32
"""The number of bit patterns in single precision."""

POSITIVE = EVERY // 2
"""The number of bit patterns without a sign."""

ROUNDING: Mapping[str, Callable[[Array], Array]] = {
    "neg": np.negative,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "sign": lambda x: np.where(x == 0, np.float32(0), np.sign(x)),
}
"""Functions of one float that are exact in its dtype."""

SWEPT = (*UNARY, *ROUNDING)

ODD = (
    "neg", "round", "trunc", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh",
    "erf", "erfinv",
)  # fmt: skip
EVEN = ("abs", "cos", "cosh")


def exact_unary(op: str, x: Array) -> Array:
    """Return results before the rounding to single precision."""
    if op in ROUNDING:
        with np.errstate(all="ignore"):
            return ROUNDING[op](x).astype(np.float64)
    return reference(op, x)


def of_negative(op: str, x: Array, exact: Array) -> Array:
    """Return the exact results at ``-x`` of a function with known results at ``x``."""
    if op in ODD:
        return -exact
    return exact if op in EVEN else exact_unary(op, -x)


def patterns(start: int, stop: int, step: int = 1) -> Iterator[Array]:
    """Yield chunks of the single-precision numbers of every ``step``-th bit pattern of a range.

    The length of the range is a multiple of ``CHUNK * step``.
    """
    offsets = np.arange(CHUNK, dtype=np.uint32) * np.uint32(step)
    for low in range(start, stop, CHUNK * step):
        yield (offsets + np.uint32(low)).view(np.float32)


# ---------------------------------------------------------------- functions of two or three


def sum_rounded_to_odd(a: Array, b: Array) -> Array:
    """Return the sum in float64, such that rounding it again rounds the exact sum."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    even = (total.view(np.int64) & 1) == 0
    moved = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where(even & (error != 0) & np.isfinite(total), moved, total)


def _remainder(x: Array, y: Array) -> Array:
    """Return the remainder with the sign of the divisor; that of an infinity is NaN."""
    rest = np.fmod(x, y)
    turned = np.where(np.isinf(y) & ~np.isnan(rest), y, sum_rounded_to_odd(rest, y))
    found = np.where((rest != 0) & (np.signbit(rest) != np.signbit(y)), turned, rest)
    return np.where(rest == 0, np.copysign(0.0, y), found)


PAIRS: Mapping[str, Callable[..., Array]] = {
    "add": sum_rounded_to_odd,
    "sub": lambda x, y: sum_rounded_to_odd(x, -y),
    "mul": np.multiply,
    "div": np.divide,
    "mod": _remainder,
    "min": np.minimum,
    "max": np.maximum,
    "pow": np.power,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "fmod": np.fmod,
    "copysign": np.copysign,
    "nextafter": lambda x, y: np.nextafter(x.astype(np.float32), y.astype(np.float32)),
    "ldexp": lambda x, k: np.ldexp(x, np.clip(k, -400, 400).astype(np.int32)),
    "fma": lambda x, y, z: sum_rounded_to_odd(x * y, z),
}
"""The functions of two or three floats, of float64."""

EITHER_ZERO = ("min", "max")
"""Functions whose result may be a zero of either sign."""

_MANTISSAS = np.array([0, 1, 2, 0x1FFFFF, 0x3504F3, 0x400000, 0x7FFFFE, 0x7FFFFF], dtype=np.uint32)


def exact_pairs(op: str, operands: tuple[Array, ...]) -> Array:
    """Return results before the rounding to single precision."""
    with np.errstate(all="ignore"):
        wide = [x.astype(np.float64) for x in operands]
        return PAIRS[op](*wide).astype(np.float64)


def structured() -> Array:
    """Return 4,096 numbers: all signs and exponents, with mantissas beside powers of two."""
    exponents = np.arange(512, dtype=np.uint32) << 23
    return (exponents[:, None] + _MANTISSAS).ravel().view(np.float32)


def pairs(op: str, start: int, stop: int, step: int = 1) -> Iterator[Operands]:
    """Yield chunks of operands; a chunk depends on its number only.

    The first 2**24 pairs are all pairs of :func:`structured`. The others are random bit patterns,
    and pairs whose quotient is near a small integer.
    """
    points = structured()
    for k in range(start, stop, step):
        rng = np.random.default_rng(k)
        rows = CHUNK // points.size
        if k < points.size // rows:
            x = np.repeat(points[k * rows : (k + 1) * rows], points.size)
            y = np.tile(points, rows)
        else:
            x = _random_bits(rng)
            y = _random_bits(rng) if k % 3 else _related(rng, x)
        if op == "ldexp":
            exponents = rng.integers(-330, 330, CHUNK)
            extreme = rng.integers(-(1 << 31), 1 << 31, CHUNK)
            yield x, np.where(rng.random(CHUNK) < 0.9, exponents, extreme).astype(np.int32)
        elif op == "fma":
            yield x, y, _third(rng, x, y)
        else:
            yield x, y


def _random_bits(rng: np.random.Generator) -> Array:
    return rng.integers(0, EVERY, CHUNK, dtype=np.uint32).view(np.float32)


def _related(rng: np.random.Generator, x: Array) -> Array:
    """Return numbers whose quotients are near integers, and exponents of moderate powers."""
    with np.errstate(all="ignore"):
        near = x * rng.integers(-9, 9, CHUNK).astype(np.float32)
        near = (near.view(np.uint32) + rng.integers(0, 3, CHUNK, dtype=np.uint32)).view(np.float32)
        moderate = (rng.normal(0, 80, CHUNK) / np.log2(np.abs(x))).astype(np.float32)
    whole = rng.integers(-40, 40, CHUNK).astype(np.float32) / 2
    kind = rng.integers(0, 3, CHUNK)
    return np.choose(kind, [near, moderate, whole]).astype(np.float32)


def _third(rng: np.random.Generator, x: Array, y: Array) -> Array:
    """Return terms of ``x * y + z``: mostly of the size of the product."""
    with np.errstate(all="ignore"):
        scale = np.ldexp(np.float64(1), rng.integers(-52, 52, CHUNK).astype(np.int32))
        near = (-(x.astype(np.float64) * y) * scale).astype(np.float32)
    return np.where(rng.random(CHUNK) < 0.8, near, _random_bits(rng))


def of_result(found: Array, exact: Array, *, either_zero: bool = False) -> tuple[float, int]:
    """Return the largest error of results in ulp, and its index.

    Only results that are not correctly rounded are measured, because most are. A zero of the wrong
    sign is an infinite error.
    """
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
    differs = found.view(np.uint32) != rounded.view(np.uint32)
    if differs.any():
        differs &= ~(np.isnan(found) & np.isnan(rounded))
    indices = np.flatnonzero(differs)
    if not indices.size:
        return 0.0, 0
    a, b = found[indices], exact[indices]
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(rounded[indices])).astype(np.float64)
        error = np.abs(a.astype(np.float64) - b) / unit
    error = np.where(np.isnan(error) | np.isinf(b), np.inf, error)
    zeros = (a == 0) & (rounded[indices] == 0)
    error = np.where(zeros, 0.0 if either_zero else np.inf, error)
    at = int(np.argmax(error))
    return float(error[at]), int(indices[at])


def arity_of(op: str) -> int:
    """Return the number of operands of a function of :data:`PAIRS`, or 1."""
    return 1 if op not in PAIRS else 3 if op == "fma" else 2
