"""The types and literals of shaders.

A register holds integers of up to 32 bits as ``i32`` or ``u32``, those of 64 bits as a pair of
words, the low one first, and floats of 16 bits as ``f32`` values that are rounded after each
operation.
"""

from __future__ import annotations

import math
import struct
from typing import Final

import numpy as np

from ...errors import TilewrightError
from ...ir.dtype import DType

WORD: Final = 4
"""The bytes of a word, the smallest unit of a store."""

PAIR: Final = "vec2<u32>"
"""The type of an integer of 64 bits."""


class ShaderTypeError(TilewrightError):
    """A value of a dtype that shaders do not compute with."""

    title = "Dtype without a shader type"


class Literal(str):
    """A literal, which a compiler evaluates at compile time and rejects if it overflows."""

    __slots__ = ()


def type_name(dtype: DType) -> str:
    """Return the type of a value in a register.

    Raises
    ------
    ShaderTypeError
        If shaders have no type for the dtype.

    Examples
    --------
    >>> from ...ir.dtype import f16, i8, u64
    >>> type_name(i8), type_name(u64), type_name(f16)
    ('i32', 'vec2<u32>', 'f32')
    """
    if dtype.kind == "bool":
        return "bool"
    if dtype.kind in ("int", "uint"):
        if dtype.bits == 64:
            return PAIR
        return "i32" if dtype.kind == "int" else "u32"
    if dtype.name in ("f16", "bf16", "f32"):
        return "f32"
    raise ShaderTypeError(
        f"WebGPU shaders do not compute with dtype {dtype}",
        hint="compute with f32, or compile for another target",
        details={"dtype": str(dtype)},
    )


def literal(value: float, dtype: DType) -> str:
    """Return a constant.

    Examples
    --------
    >>> from ...ir.dtype import f32, i8, i64, u32
    >>> literal(1, f32), literal(-1, i64), literal(3, u32), literal(200, i8)
    ('1.0f', 'vec2<u32>(4294967295u, 4294967295u)', '3u', '-56i')
    >>> literal(float("inf"), f32)
    'tw_float(0x7f800000u)'
    """
    if dtype.kind == "bool":
        return Literal("true" if value else "false")
    if dtype.is_float:
        return _float(value, dtype)
    bits = int(value) & ((1 << dtype.bits) - 1)
    if dtype.bits == 64:
        return pair(bits)
    if dtype.kind == "uint":
        return Literal(f"{bits}u")
    signed = bits - (1 << dtype.bits) if bits >> (dtype.bits - 1) else bits
    return integer(signed)


def integer(value: int) -> str:
    """Return a constant of type ``i32``."""
    return Literal("i32(-2147483648)" if value == -(1 << 31) else f"{value}i")


def pair(value: int) -> str:
    """Return a constant of 64 bits."""
    bits = value & ((1 << 64) - 1)
    return Literal(f"{PAIR}({bits & 0xFFFFFFFF}u, {bits >> 32}u)")


def _float(value: float, dtype: DType) -> str:
    type_name(dtype)
    with np.errstate(over="ignore"):
        number = float(np.asarray(value).astype(dtype.numpy))
    smallest = 2.0**-126
    if not math.isfinite(number) or (number and abs(number) < smallest):
        (bits,) = struct.unpack("<I", struct.pack("<f", number))
        return f"tw_float(0x{bits:08x}u)"
    text = str(np.float32(number))
    return Literal(f"{text}f" if set(text) & set(".e") else f"{text}.0f")
