"""The table of element types: one row per dtype.

Everything that depends on a dtype is derived from its row: sizes, conversions, names in files, and
machine types. Sizes count bits of storage; dtypes of less than 8 bits are packed, element 0 in the
low bits of a byte. Only the lowering of memory accesses computes with bytes of elements. A complex
number is a pair of floats, the real part first; lowering computes with its parts.

Examples
--------
>>> f32.bits, f32.is_float, i64.is_integer
(32, True, True)
>>> f8_e4m3.largest, f8_e4m3.compute, i4.per_byte, (i4.lowest, i4.highest)
(448.0, f32, 2, (-8, 7))
>>> c64.part, f64.paired, c64.is_float, c64.is_inexact
(f32, c128, False, True)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from ..errors import TilewrightError

__all__ = [  # noqa: RUF022  # the rows, as ordered below
    "f16", "f32", "f64", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool_",
    "f8_e4m3", "f8_e5m2", "i4", "u4", "i2", "u2", "c64", "c128",
]  # fmt: skip

BYTE = 8
"""The number of bits of a byte."""

Kind: TypeAlias = Literal["float", "int", "uint", "bool", "complex"]
Special: TypeAlias = Literal["ieee", "nan"]
"""The special values of a float.

``ieee`` has infinities and NaN in the largest exponent; ``nan`` has no infinity, and NaN only if
all bits below the sign are ones.
"""


class UnknownDTypeError(TilewrightError):
    """A dtype name that is not in the table of dtypes."""

    title = "Unknown dtype"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DType:
    """An element type: a row of the table.

    Parameters
    ----------
    name : str
        The printed name, such as ``"f32"``.
    bits : int
        Bits of storage per element. Elements of less than 8 bits are packed.
    kind : str
        ``"float"``, ``"int"``, ``"uint"``, ``"bool"`` or ``"complex"``.
    exponent, mantissa : int
        Bits of the exponent and of the stored fraction of a float.
    special : str
        The special values of a float.
    computes : str
        The dtype in which element functions are computed before one rounding; empty for its own.
    parts : str
        The dtype of the real and the imaginary part of a complex number; empty for real dtypes.
    stored : str
        The name of the dtype in NumPy or ``ml_dtypes``.
    dlpack : int
        The type code of DLPack.
    llvm : str
        The LLVM type of an element in a register; empty if no machine computes with the dtype.
    safetensors : str
        The name in safetensors files; empty if the format lacks the dtype.
    onnx : int
        The number in ONNX files; 0 if the format lacks the dtype.
    torch : str
        The name in PyTorch; empty if it lacks the dtype.

    Notes
    -----
    Rows are compared by identity, and pickled by name.
    """

    name: str
    bits: int
    kind: Kind
    exponent: int = 0
    mantissa: int = 0
    special: Special = "ieee"
    computes: str = ""
    parts: str = ""
    stored: str = ""
    dlpack: int = 0
    llvm: str = ""
    safetensors: str = ""
    onnx: int = 0
    torch: str = ""

    @property
    def is_float(self) -> bool:
        """True for floating-point dtypes."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """True for integer dtypes, which do not include bool."""
        return self.kind in ("int", "uint")

    @property
    def is_complex(self) -> bool:
        """True for complex dtypes."""
        return self.kind == "complex"

    @property
    def is_inexact(self) -> bool:
        """True for floating-point and complex dtypes."""
        return self.kind in ("float", "complex")

    @property
    def part(self) -> DType:
        """The dtype of the parts of a complex number; a real dtype is its own part."""
        return _DTYPES[self.parts] if self.parts else self

    @property
    def paired(self) -> DType | None:
        """The complex dtype whose parts have this dtype, or None."""
        return _paired().get(self.name)

    @property
    def wide(self) -> DType:
        """The most precise dtype of the same kind for floats and complex numbers, else itself."""
        return _DTYPES[_WIDE.get(self.kind, self.name)]

    @property
    def is_packed(self) -> bool:
        """True if several elements share a byte."""
        return self.bits < BYTE

    @property
    def per_byte(self) -> int:
        """The number of elements per byte of a packed dtype; 1 for all others."""
        return max(1, BYTE // self.bits)

    @property
    def alignment(self) -> int:
        """The natural alignment of an element in bytes: that of its parts if it is complex."""
        return max(1, self.part.bits // BYTE)

    @property
    def width(self) -> int:
        """The number of bytes per element; 1 for packed dtypes."""
        return max(1, self.bits // BYTE)

    @property
    def is_machine(self) -> bool:
        """True if machine registers hold elements and compute with them."""
        return bool(self.llvm)

    @property
    def compute(self) -> DType:
        """The dtype in which element functions are computed."""
        return _DTYPES[self.computes] if self.computes else self

    @property
    def register(self) -> DType:
        """The machine dtype whose registers hold an element.

        A float without a machine type is represented by its bits, an integer by its value.
        """
        if self.is_machine:
            return self
        return self.compute if self.is_integer else _DTYPES[f"u{max(self.bits, BYTE)}"]

    @property
    def lowest(self) -> int:
        """The least value of an integer."""
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def highest(self) -> int:
        """The greatest value of an integer."""
        return (1 << (self.bits - int(self.kind == "int"))) - 1

    @property
    def precision(self) -> int:
        """The number of significant bits of a normal float, or of the parts of a number."""
        return self.part.mantissa + 1

    @property
    def bias(self) -> int:
        """The bias of the exponent of a float."""
        return (1 << (self.exponent - 1)) - 1

    @property
    def largest(self) -> float:
        """The greatest finite value of a float."""
        top = self.bias + (self.special != "ieee")
        lost = 2 if self.special == "nan" else 1
        return math.ldexp(2.0 - lost * 2.0**-self.mantissa, top)

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The dtype of arrays, one element per item: of NumPy, or else of ``ml_dtypes``."""
        return _numpy_dtype(self.stored)

    @property
    def is_extension(self) -> bool:
        """True if NumPy itself lacks the dtype, so ``ml_dtypes`` defines it."""
        return not hasattr(np, self.stored)

    def rounds_to_nan(self, value: float) -> bool:
        """Return whether a number rounds to NaN, because a float without infinity is too small.

        Examples
        --------
        >>> f8_e4m3.rounds_to_nan(464.0), f8_e4m3.rounds_to_nan(-465.0), f16.rounds_to_nan(1e9)
        (False, True, False)
        """
        if not self.is_float or self.special == "ieee" or math.isnan(value):
            return False
        step = math.ldexp(2.0, math.frexp(self.largest)[1] - 2 - self.mantissa)
        return abs(value) > self.largest + step / 2

    def is_exact_in(self, wider: DType) -> bool:
        """Return whether a dtype of floats or their pairs contains all values of this one."""
        own, other = self.part, wider.part
        return own.exponent <= other.exponent and own.mantissa <= other.mantissa

    def number(self, value: int) -> float | int | bool:
        """Return an integer as the Python number of a literal of the dtype."""
        return bool(value) if self.kind == "bool" else float(value) if self.is_inexact else value

    def __str__(self) -> str:
        """Print the name."""
        return self.name

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the name."""
        return dtype, (self.name,)


_WIDE = {"float": "f64", "complex": "c128"}
_DTYPES: dict[str, DType] = {}

DTYPES: Mapping[str, DType] = MappingProxyType(_DTYPES)
"""All rows, by name."""


def _row(row: DType) -> DType:
    _DTYPES[row.name] = row
    return row


f16 = _row(DType(
    "f16", 16, "float", 5, 10, computes="f32", stored="float16", dlpack=2, llvm="half",
    safetensors="F16", onnx=10, torch="float16",
))  # fmt: skip
f32 = _row(DType(
    "f32", 32, "float", 8, 23, stored="float32", dlpack=2, llvm="float",
    safetensors="F32", onnx=1, torch="float32",
))  # fmt: skip
f64 = _row(DType(
    "f64", 64, "float", 11, 52, stored="float64", dlpack=2, llvm="double",
    safetensors="F64", onnx=11, torch="float64",
))  # fmt: skip
bf16 = _row(DType(
    "bf16", 16, "float", 8, 7, computes="f32", stored="bfloat16", dlpack=4, llvm="i16",
    safetensors="BF16", onnx=16, torch="bfloat16",
))  # fmt: skip
i8 = _row(DType(
    "i8", 8, "int", stored="int8", dlpack=0, llvm="i8", safetensors="I8", onnx=3, torch="int8",
))  # fmt: skip
i16 = _row(DType(
    "i16", 16, "int", stored="int16", dlpack=0, llvm="i16", safetensors="I16", onnx=5,
    torch="int16",
))  # fmt: skip
i32 = _row(DType(
    "i32", 32, "int", stored="int32", dlpack=0, llvm="i32", safetensors="I32", onnx=6,
    torch="int32",
))  # fmt: skip
i64 = _row(DType(
    "i64", 64, "int", stored="int64", dlpack=0, llvm="i64", safetensors="I64", onnx=7,
    torch="int64",
))  # fmt: skip
u8 = _row(DType(
    "u8", 8, "uint", stored="uint8", dlpack=1, llvm="i8", safetensors="U8", onnx=2, torch="uint8",
))  # fmt: skip
u16 = _row(DType(
    "u16", 16, "uint", stored="uint16", dlpack=1, llvm="i16", safetensors="U16", onnx=4,
    torch="uint16",
))  # fmt: skip
u32 = _row(DType(
    "u32", 32, "uint", stored="uint32", dlpack=1, llvm="i32", safetensors="U32", onnx=12,
    torch="uint32",
))  # fmt: skip
u64 = _row(DType(
    "u64", 64, "uint", stored="uint64", dlpack=1, llvm="i64", safetensors="U64", onnx=13,
    torch="uint64",
))  # fmt: skip
bool_ = _row(DType(
    "bool", 8, "bool", stored="bool", dlpack=6, llvm="i1", safetensors="BOOL", onnx=9,
    torch="bool",
))  # fmt: skip
f8_e4m3 = _row(DType(
    "f8_e4m3", 8, "float", 4, 3, "nan", computes="f32", stored="float8_e4m3fn", dlpack=10,
    safetensors="F8_E4M3", onnx=17, torch="float8_e4m3fn",
))  # fmt: skip
f8_e5m2 = _row(DType(
    "f8_e5m2", 8, "float", 5, 2, computes="f32", stored="float8_e5m2", dlpack=12,
    safetensors="F8_E5M2", onnx=19, torch="float8_e5m2",
))  # fmt: skip
i4 = _row(DType("i4", 4, "int", computes="i8", stored="int4", dlpack=0, onnx=22))
u4 = _row(DType("u4", 4, "uint", computes="u8", stored="uint4", dlpack=1, onnx=21))
i2 = _row(DType("i2", 2, "int", computes="i8", stored="int2", dlpack=0, onnx=26))
u2 = _row(DType("u2", 2, "uint", computes="u8", stored="uint2", dlpack=1, onnx=25))
c64 = _row(DType(
    "c64", 64, "complex", parts="f32", stored="complex64", dlpack=5, safetensors="C64", onnx=14,
    torch="complex64",
))  # fmt: skip
c128 = _row(DType(
    "c128", 128, "complex", parts="f64", stored="complex128", dlpack=5, onnx=15,
    torch="complex128",
))  # fmt: skip


@cache
def _paired() -> dict[str, DType]:
    return {row.parts: row for row in _DTYPES.values() if row.parts}


@cache
def _numpy_dtype(name: str) -> np.dtype[np.generic]:
    if hasattr(np, name):
        return np.dtype(name)
    import ml_dtypes  # imported here because it is slow to import and few programs need it

    return np.dtype(getattr(ml_dtypes, name))


def dtype(name: str | DType) -> DType:
    """Look up a dtype by name; a :class:`DType` is returned unchanged.

    Raises
    ------
    UnknownDTypeError
        If the name is not in the table; the hint lists the valid names.

    Examples
    --------
    >>> dtype("bf16").bits
    16
    """
    if isinstance(name, DType):
        return name
    if name not in _DTYPES:
        raise UnknownDTypeError(f"no dtype {name!r}", hint=f"dtypes are {', '.join(_DTYPES)}")
    return _DTYPES[name]


@cache
def _by_stored_name() -> dict[str, DType]:
    return {row.stored: row for row in _DTYPES.values()}


def from_numpy(array_dtype: np.dtype[np.generic]) -> DType:
    """Return the dtype that corresponds to a dtype of NumPy or ``ml_dtypes``.

    Raises
    ------
    UnknownDTypeError
        If no dtype corresponds to it.

    Examples
    --------
    >>> from_numpy(np.dtype("float32")) is f32
    True
    """
    text = array_dtype.name
    found = _by_stored_name().get(text)
    if found is None:
        raise UnknownDTypeError(
            f"no dtype corresponds to NumPy dtype {text!r}", hint=f"dtypes are {', '.join(_DTYPES)}"
        )
    return found
