"""Reduction of angles by pi/2, exact over the whole range of double precision.

Angles below 2**30 are reduced by Cody and Waite's method: pi/2 in three parts, subtracted by fused
multiply-adds. The bits of 2/pi that determine the quadrant and the remainder of a larger angle are
selected by its exponent and multiplied by its mantissa in integers, as Payne and Hanek describe.

References: M. Payne and R. Hanek, Radian Reduction for Trigonometric Functions, 1983; J.-M. Muller,
Elementary Functions, section 11.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from ....ir.dtype import f64, i64, u64
from ....ir.thread.nodes import Binary, Bitcast, Select, Value
from ....ir.thread.types import VectorType
from .control import Code
from .number import DOUBLE, Num, two_sum

TWO_OVER_PI: Final = 0.6366197723675814
HALF_PI: Final = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)

TWO_OVER_PI_WORDS: Final = (
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561,
    0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484,
    0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F,
    0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B,
    0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB,
)  # fmt: skip
"""The first bits of 2/pi, in words of 32 bits."""

_LARGE: Final = 2.0**30
_LOW: Final = (1 << 32) - 1
_LEADING: Final = 64
"""The zero bits in front of 2/pi, so that the window of the smallest large angle exists."""


def reduce_angle(code: Code, x: Num) -> tuple[Num, Num]:
    """Return the remainder by pi/2 in double precision and the quadrant as an integer."""
    wide = code.keep("angle", x.cast(f64))
    shifted = wide.fma(TWO_OVER_PI, DOUBLE.magic)
    count = shifted - DOUBLE.magic
    rest = wide
    for part in HALF_PI:
        rest = count.fma(-part, rest)
    size = abs(wide)
    finite = size.compare("lt", float("inf"))
    large = Binary("and", size.compare("ge", _LARGE), finite)
    limbs = 4 if x.is_single else 6
    rest, quadrant = code.replace_all_if_any(
        large,
        ("rest", "quadrant"),
        (rest, shifted.bits()),
        lambda inner: _reduce_large(inner, wide, limbs),
    )
    return rest, quadrant


def reduce_in_two_parts(code: Code, x: Num) -> tuple[Num, Num, Num]:
    """Return the remainder by pi/2 of a double as an unevaluated sum, and the quadrant."""
    wide = code.keep("angle", x)
    shifted = wide.fma(TWO_OVER_PI, DOUBLE.magic)
    count = code.keep("count", shifted - DOUBLE.magic)
    product = count * HALF_PI[1]
    total, error = two_sum(count.fma(-HALF_PI[0], wide), -product)
    error = error - count.fma(HALF_PI[1], -product)
    rest, low = two_sum(total, count.fma(-HALF_PI[2], error))
    size = abs(wide)
    large = Binary("and", size.compare("ge", _LARGE), size.compare("lt", float("inf")))
    high, low, quadrant = code.replace_all_if_any(
        large,
        ("rest", "low", "quadrant"),
        (rest, low, shifted.bits()),
        lambda inner: _reduce_large_in_two_parts(inner, wide),
    )
    return high, low, quadrant


def _reduce_large_in_two_parts(code: Code, x: Num) -> tuple[Num, Num, Num]:
    high, low, quadrant = _large_parts(code, x, 6)
    total, error = two_sum(high, low)
    return total, error, quadrant


def _reduce_large(code: Code, x: Num, limbs: int) -> tuple[Num, Num]:
    """Return remainder and quadrant of an angle of at least 2**30."""
    high, low, quadrant = _large_parts(code, x, limbs)
    return high + low, quadrant


def _large_parts(code: Code, x: Num, limbs: int) -> tuple[Num, Num, Num]:
    """Return the remainder of an angle of at least 2**30 as a sum, and its quadrant.

    With ``abs(x) = m * 2**e``, the window of 2/pi from bit ``e - 2`` on determines the fraction of
    ``abs(x) * 2 / pi / 4``: the bits in front of it contribute whole turns.
    """
    bits = abs(x).bits()
    exponent = bits >> DOUBLE.mantissa
    mantissa = _unsigned((bits & ((1 << DOUBLE.mantissa) - 1)) | (1 << DOUBLE.mantissa))
    position = exponent - (DOUBLE.bias + DOUBLE.mantissa + 2 - _LEADING)
    window = _window(code, _unsigned(position), limbs)
    digits = _product(code, mantissa, window)
    top = code.keep("top", (digits[-1] << 32) | digits[-2])
    middle = code.keep("middle", (digits[-3] << 32) | digits[-4])
    below = digits[-5] if limbs > 4 else top.constant(0)
    quadrant = _signed((top + (1 << 61)) >> 62)
    high = code.keep("high", _signed((top << 2) | (middle >> 62)))
    low = code.keep("low", (middle << 2) | (below >> 30))
    product, correction = _times_half_pi(code, high, low)
    negative = x.compare("lt", 0)
    zero = quadrant.constant(0)
    return (
        (-product).where(negative, product),
        (-correction).where(negative, correction),
        (zero - quadrant).where(negative, quadrant),
    )


def _window(code: Code, position: Num, limbs: int) -> list[Num]:
    """Return ``limbs`` words of 2/pi from a bit position on, the lowest word first.

    The words are selected by the bits of the word index, from the highest to the lowest.
    """
    zeros = (0,) * (_LEADING // 32)
    count = limbs + 1
    steps = [4, 2, 1] if limbs == 4 else [32, 16, 8, 4, 2, 1]
    words: list[Num | int] = [*zeros, *TWO_OVER_PI_WORDS]
    words += [0] * (count + sum(steps) - len(words))
    index = code.keep("word", position >> 5)
    for step in steps:
        bit = (index & step).compare("ne", 0)
        remaining = count + step - 1
        words = [
            code.keep("word", _chosen(bit, words[k + step], words[k], index))
            for k in range(remaining)
        ]
    shift = position.constant(32) - (position & 31)
    found = [_number(w, index) for w in words]
    parts = [
        code.keep("limb", _shifted_right((left << 32) | right, shift) & _LOW)
        for left, right in pairwise(found)
    ]
    return parts[::-1]


def _product(code: Code, factor: Num, limbs: list[Num]) -> list[Num]:
    """Return the low words of the product of a 53-bit number and a number in words."""
    low, high = code.keep("low", factor & _LOW), code.keep("high", factor >> 32)
    digits: list[Num] = []
    carry = factor.constant(0)
    for k, limb in enumerate(limbs):
        terms = [code.keep("term", low * limb)]
        if k:
            terms.append(code.keep("term", high * limbs[k - 1]))
        total = carry
        for term in terms:
            total = total + (term & _LOW)
        total = code.keep("total", total)
        digits.append(total & _LOW)
        carry = total >> 32
        for term in terms:
            carry = carry + (term >> 32)
        carry = code.keep("carry", carry)
    return digits


def _times_half_pi(code: Code, high: Num, low: Num) -> tuple[Num, Num]:
    """Return pi/2 times the fraction ``high * 2**-64 + low * 2**-128`` as a sum."""
    first = (high >> 32).cast(f64) * 2.0**-32
    second = _signed(_unsigned(high) & _LOW).cast(f64) * 2.0**-64
    third = _signed(low >> 32).cast(f64) * 2.0**-96
    fourth = _signed(low & _LOW).cast(f64) * 2.0**-128
    total = code.keep("sum", first + second)
    error = code.keep("error", (second - (total - first)) + (third + fourth))
    fraction = code.keep("fraction", total + error)
    error = error - (fraction - total)
    product = code.keep("product", fraction * HALF_PI[0])
    lost = fraction.fma(HALF_PI[0], -product)
    return product, lost + (fraction * HALF_PI[1] + error * HALF_PI[0])


def _number(word: Num | int, like: Num) -> Num:
    return word if isinstance(word, Num) else like.constant(word)


def _chosen(bit: Value, then: Num | int, otherwise: Num | int, like: Num) -> Num:
    first, second = _number(then, like), _number(otherwise, like)
    return Num(Select(bit, first.value, second.value), like.type)


def _shifted_right(x: Num, amount: Num) -> Num:
    return Num(Binary("shr", x.value, amount.value), x.type)


def _unsigned(x: Num) -> Num:
    of = VectorType(u64, x.type.lanes)
    return Num(Bitcast(of, x.value), of)


def _signed(x: Num) -> Num:
    of = VectorType(i64, x.type.lanes)
    return Num(Bitcast(of, x.value), of)
