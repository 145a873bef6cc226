"""The LLVM text of thread-IR types and constants."""

from __future__ import annotations

import struct
from functools import cache
from typing import TypeAlias, assert_never

import numpy as np

from ...errors import TilewrightError
from ...ir.dtype import DType
from ...ir.thread.types import PointerType, Space, Type, VectorType

Number: TypeAlias = "float | int | bool"

_REPORT = "this is a bug in the code generator; report it with the program"


class MachineTypeError(TilewrightError):
    """A value in thread IR of a dtype that no machine register holds."""

    title = "Dtype without a machine type"


@cache
def element_type(dtype: DType) -> str:
    """Return the type of one element in a register; bfloat16 is represented by its bits."""
    if not dtype.is_machine:
        raise MachineTypeError(f"no machine type holds elements of dtype {dtype}", hint=_REPORT)
    return dtype.llvm


@cache
def memory_element(dtype: DType) -> str:
    """Return the type of one element in memory, where a boolean is a byte."""
    return "i8" if dtype.kind == "bool" else element_type(dtype)


def vector(element: str, lanes: int) -> str:
    """Return a vector type, or the element type if there is one lane."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


_SPACES: dict[Space, int] = {"generic": 0, "global": 1, "shared": 3}
"""The LLVM address spaces of NVPTX; CPUs only have the first."""


def pointer_name(space: Space) -> str:
    """Return the type of an address.

    Examples
    --------
    >>> pointer_name("generic"), pointer_name("shared")
    ('ptr', 'ptr addrspace(3)')
    """
    return "ptr" if space == "generic" else f"ptr addrspace({_SPACES[space]})"


def mangled_pointer(space: Space) -> str:
    """Return the type of an address as mangled in names of overloaded intrinsics."""
    return f"p{_SPACES[space]}"


def type_name(of: Type) -> str:
    """Return the type of a value in registers."""
    match of:
        case PointerType(space=space):
            return pointer_name(space)
        case VectorType(dtype=dtype, lanes=lanes):
            return vector(element_type(dtype), lanes)
        case _:
            assert_never(of)


def memory_type(of: Type) -> str:
    """Return the type of a value in memory."""
    match of:
        case PointerType(space=space):
            return pointer_name(space)
        case VectorType(dtype=dtype, lanes=lanes):
            return vector(memory_element(dtype), lanes)
        case _:
            assert_never(of)


def mangled(of: Type) -> str:
    """Return a type as mangled in names of overloaded intrinsics.

    Examples
    --------
    >>> from ...ir.dtype import f32
    >>> mangled(VectorType(f32, 16)), mangled(VectorType(f32))
    ('v16f32', 'f32')
    """
    if isinstance(of, PointerType):
        return mangled_pointer(of.space)
    name = element_type(of.dtype)
    short = {"half": "f16", "float": "f32", "double": "f64"}.get(name, name)
    return short if of.lanes == 1 else f"v{of.lanes}{short}"


def _float_literal(value: float, dtype: DType) -> str:
    if dtype.name == "f16":
        return f"0xH{int(np.float16(value).view(np.uint16)):04X}"
    if dtype.name == "bf16":
        return str(int(np.asarray(value, dtype.numpy).view(np.uint16)))
    wide = float(np.float32(value)) if dtype.name == "f32" else float(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', wide))[0]:016X}"


def scalar_literal(value: Number, dtype: DType) -> str:
    """Return the literal of a number; integers wrap to the width of the dtype."""
    if dtype.kind == "bool":
        return "true" if value else "false"
    if dtype.is_float:
        with np.errstate(over="ignore"):
            return _float_literal(float(value), dtype)
    wrapped = int(value) & ((1 << dtype.bits) - 1)
    signed = wrapped - (1 << dtype.bits) if wrapped >> (dtype.bits - 1) else wrapped
    return str(signed)


def splat(literal: str, element: str, lanes: int) -> str:
    """Return a constant with equal lanes."""
    return literal if lanes == 1 else f"splat ({element} {literal})"


def constant(value: Number, of: VectorType) -> str:
    """Return a constant of any type.

    Examples
    --------
    >>> from ...ir.dtype import f32, i32
    >>> constant(1.0, VectorType(f32, 8)), constant(2**32 - 1, VectorType(i32))
    ('splat (float 0x3FF0000000000000)', '-1')
    """
    return splat(scalar_literal(value, of.dtype), element_type(of.dtype), of.lanes)


def iota(lanes: int, bits: int = 64) -> str:
    """Return the constant vector 0, 1, 2, ..."""
    return "<" + ", ".join(f"i{bits} {k}" for k in range(lanes)) + ">"
