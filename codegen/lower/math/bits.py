"""popcount, clz, ctz, copysign, nextafter, and random bits: formulas of the bits of elements.

References: H. S. Warren, Hacker's Delight, section 5 (sums of bits in parallel); J. Salmon, M.
Moraes, R. Dror, D. Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, 2011 (Philox).
"""

from __future__ import annotations

from typing import Final

from ....ir.dtype import u32, u64
from ....ir.thread.nodes import Binary
from .expansion import expansion, integer_expansion
from .number import Num

_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
_ROUNDS: Final = 10
_LOW: Final = (1 << 32) - 1


@integer_expansion("popcount")
def popcount(x: Num) -> Num:
    """Return the number of bits that are set: sums of 2, 4, and 8 bits, and of the bytes."""
    width = x.type.dtype.bits
    bits = x.unsigned()
    bits = bits - ((bits >> 1) & _repeated(0x55, width))
    bits = (bits & _repeated(0x33, width)) + ((bits >> 2) & _repeated(0x33, width))
    bits = (bits + (bits >> 4)) & _repeated(0x0F, width)
    shift = 8
    while shift < width:
        bits = bits + (bits >> shift)
        shift *= 2
    return (bits & (2 * width - 1)).reinterpreted(x.type.dtype)


def _repeated(byte: int, width: int) -> int:
    return sum(byte << k for k in range(0, width, 8))


@integer_expansion("clz")
def leading_zeros(x: Num) -> Num:
    """Return the number of zero bits above the highest bit that is set."""
    return x.unary("clz")


@integer_expansion("ctz")
def trailing_zeros(x: Num) -> Num:
    """Return the number of zero bits below the lowest bit that is set."""
    below = x.unary("not") & (x - 1)
    return x.constant(x.type.dtype.bits) - below.unary("clz")


@expansion("copysign", direct=True)
def copysign(x: Num, y: Num) -> Num:
    """Return ``x`` with the sign of ``y``."""
    size = x.bits() & (x.sign_bit - 1)
    return (size | (y.bits() & x.sign_bit)).reinterpreted(x.type.dtype)


@expansion("nextafter", direct=True)
def nextafter(x: Num, y: Num) -> Num:
    """Return the next float after ``x`` in the direction of ``y``; ``y`` if they are equal."""
    bits = x.bits()
    inward = Binary("xor", x.compare("lt", y), x.compare("gt", 0))
    moved = (bits - 1).where(inward, bits + 1)
    least = (y.bits() & x.sign_bit) | 1
    moved = least.where(x.compare("eq", 0), moved).reinterpreted(x.type.dtype)
    found = y.where(x.compare("eq", y), moved)
    unordered = Binary("or", x.compare("ne", x), y.compare("ne", y))
    return (x + y).where(unordered, found)


@integer_expansion("random_bits")
def random_bits(counter: Num, key: Num) -> Num:
    """Return element ``counter`` of the stream of bits of a key, from Philox 4x32-10.

    Block ``k`` of the stream is the result for the counter ``k``; it has four words of 32 bits.
    """
    wide = counter.type.dtype == u64
    zero = counter.constant(0).cast(u32)
    block = counter >> (1 if wide else 2)
    words = _philox((*_words(block, zero), zero, zero), _words(key, zero))
    if not wide:
        odd, upper = ((counter & bit).compare("ne", 0) for bit in (1, 2))
        return words[3].where(odd, words[2]).where(upper, words[1].where(odd, words[0]))
    first, second = (words[k].cast(u64) | (words[k + 1].cast(u64) << 32) for k in (0, 2))
    return second.where((counter & 1).compare("ne", 0), first)


def _words(x: Num, zero: Num) -> tuple[Num, Num]:
    """Return the two words of 32 bits of an integer."""
    if x.type.dtype == u32:
        return x, zero
    return x.cast(u32), (x >> 32).cast(u32)


def _philox(counter: tuple[Num, ...], key: tuple[Num, ...]) -> tuple[Num, ...]:
    for k in range(_ROUNDS):
        keys = [part + (step * k & _LOW) for part, step in zip(key, _KEY_STEPS, strict=True)]
        first, second = (counter[2 * j].cast(u64) * factor for j, factor in enumerate(_MULTIPLIERS))
        counter = (
            (second >> 32).cast(u32) ^ counter[1] ^ keys[0],
            second.cast(u32),
            (first >> 32).cast(u32) ^ counter[3] ^ keys[1],
            first.cast(u32),
        )
    return counter
