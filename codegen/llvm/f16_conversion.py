"""Conversion of half precision by integer operations, for CPUs without an instruction for it."""

from __future__ import annotations

from .emitter import Emitter
from .types import splat, vector

_SCALE = "0x46F0000000000000"  # 2**112, the difference of the exponent biases


def widen(em: Emitter, operand: str, lanes: int) -> str:
    """Emit an exact conversion to single precision, including subnormal numbers and NaN."""
    words, single, bit = vector("i32", lanes), vector("float", lanes), vector("i1", lanes)
    raw = em.op(f"bitcast {vector('half', lanes)} {operand} to {vector('i16', lanes)}")
    word = em.op(f"zext {vector('i16', lanes)} {raw} to {words}")
    size = em.op(f"and {words} {word}, {_number(0x7FFF, lanes)}")
    shifted = em.op(f"shl {words} {size}, {_number(13, lanes)}")
    # The bits read as a single are too small by 2**112, normal or not; the product is exact.
    small = em.op(f"bitcast {words} {shifted} to {single}")
    scaled = em.op(f"fmul {single} {small}, {splat(_SCALE, 'float', lanes)}")
    finite = em.op(f"bitcast {single} {scaled} to {words}")
    special = em.op(f"or {words} {shifted}, {_number(0x7F800000, lanes)}")
    is_special = em.op(f"icmp ugt {words} {size}, {_number(0x7BFF, lanes)}")
    value = em.op(f"select {bit} {is_special}, {words} {special}, {words} {finite}")
    signed = em.op(f"and {words} {word}, {_number(0x8000, lanes)}")
    sign = em.op(f"shl {words} {signed}, {_number(16, lanes)}")
    result = em.op(f"or {words} {value}, {sign}")
    return em.op(f"bitcast {words} {result} to {single}")


def narrow(em: Emitter, operand: str, lanes: int) -> str:
    """Emit a rounding of single to half precision, to nearest even; overflow is infinite."""
    words, single, bit = vector("i32", lanes), vector("float", lanes), vector("i1", lanes)
    raw = em.op(f"bitcast {single} {operand} to {words}")
    size = em.op(f"and {words} {raw}, {_number(0x7FFFFFFF, lanes)}")
    chosen = _normal(em, size, lanes)
    tiny = em.op(f"icmp ult {words} {size}, {_number(0x38800000, lanes)}")
    small = _subnormal(em, size, lanes)
    chosen = em.op(f"select {bit} {tiny}, {words} {small}, {words} {chosen}")
    is_nan = em.op(f"icmp ugt {words} {size}, {_number(0x7F800000, lanes)}")
    beyond = em.op(
        f"select {bit} {is_nan}, {words} {_number(0x7E00, lanes)}, {words} {_number(0x7C00, lanes)}"
    )
    large = em.op(f"icmp uge {words} {size}, {_number(0x47800000, lanes)}")
    chosen = em.op(f"select {bit} {large}, {words} {beyond}, {words} {chosen}")
    high = em.op(f"lshr {words} {raw}, {_number(16, lanes)}")
    sign = em.op(f"and {words} {high}, {_number(0x8000, lanes)}")
    result = em.op(f"or {words} {chosen}, {sign}")
    short = em.op(f"trunc {words} {result} to {vector('i16', lanes)}")
    return em.op(f"bitcast {vector('i16', lanes)} {short} to {vector('half', lanes)}")


def _normal(em: Emitter, size: str, lanes: int) -> str:
    """Subtract 112 from the exponent and round off 13 bits; the carry overflows to infinity."""
    words = vector("i32", lanes)
    last = em.op(f"lshr {words} {size}, {_number(13, lanes)}")
    odd = em.op(f"and {words} {last}, {_number(1, lanes)}")
    moved = em.op(f"sub {words} {size}, {_number((112 << 23) - 0xFFF, lanes)}")
    rounded = em.op(f"add {words} {moved}, {odd}")
    return em.op(f"lshr {words} {rounded}, {_number(13, lanes)}")


def _subnormal(em: Emitter, size: str, lanes: int) -> str:
    """Round by an addition of 0.5, next to which singles have the spacing of subnormal halves."""
    words, single = vector("i32", lanes), vector("float", lanes)
    number = em.op(f"bitcast {words} {size} to {single}")
    summed = em.op(f"fadd {single} {number}, {splat('0.5', 'float', lanes)}")
    bits = em.op(f"bitcast {single} {summed} to {words}")
    return em.op(f"sub {words} {bits}, {_number(0x3F000000, lanes)}")


def _number(value: int, lanes: int) -> str:
    return splat(str(value), "i32", lanes)
