"""Element types and the NumPy dtypes that store them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

import numpy as np

from ..errors import TilewrightError

Kind: TypeAlias = Literal["float", "bfloat", "int", "uint", "bool"]


class UnknownDTypeError(TilewrightError):
    """A dtype name that is not in the table of dtypes."""

    title = "Unknown dtype"


@dataclass(frozen=True, slots=True, repr=False)
class DType:
    """An element type.

    Parameters
    ----------
    name : str
        The printed name, such as ``"f32"``.
    bits : int
        Bits of storage per element.
    kind : str
        ``"float"``, ``"bfloat"``, ``"int"``, ``"uint"`` or ``"bool"``.

    Examples
    --------
    >>> f32.bytes, f32.is_float, i64.is_integer
    (4, True, True)
    """

    name: str
    bits: int
    kind: Kind

    @property
    def bytes(self) -> int:
        """The storage of one element, in bytes."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        """True for floating-point dtypes."""
        return self.kind in ("float", "bfloat")

    @property
    def is_integer(self) -> bool:
        """True for integer dtypes, which do not include bool."""
        return self.kind in ("int", "uint")

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype with the same storage."""
        return _numpy_dtype(self.name)

    def __str__(self) -> str:
        """Print the name."""
        return self.name

    __repr__ = __str__


f16 = DType("f16", 16, "float")
f32 = DType("f32", 32, "float")
f64 = DType("f64", 64, "float")
bf16 = DType("bf16", 16, "bfloat")
i8 = DType("i8", 8, "int")
i16 = DType("i16", 16, "int")
i32 = DType("i32", 32, "int")
i64 = DType("i64", 64, "int")
u8 = DType("u8", 8, "uint")
u16 = DType("u16", 16, "uint")
u32 = DType("u32", 32, "uint")
u64 = DType("u64", 64, "uint")
bool_ = DType("bool", 8, "bool")

DTYPES: dict[str, DType] = {
    t.name: t for t in (f16, f32, f64, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool_)
}


@cache
def _numpy_dtype(name: str) -> np.dtype[np.generic]:
    if name == "bf16":
        import ml_dtypes  # imported here because only bfloat16 needs it and it is slow to import

        return np.dtype(ml_dtypes.bfloat16)
    if name == "bool":
        return np.dtype(np.bool_)
    letter = {"f": "float", "i": "int", "u": "uint"}[name[0]]
    return np.dtype(f"{letter}{name[1:]}")


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
    if name not in DTYPES:
        raise UnknownDTypeError(f"no dtype {name!r}", hint=f"dtypes are {', '.join(DTYPES)}")
    return DTYPES[name]


def from_numpy(array_dtype: np.dtype[np.generic]) -> DType:
    """Return the dtype that corresponds to a NumPy dtype.

    Raises
    ------
    UnknownDTypeError
        If no dtype corresponds to it.

    Examples
    --------
    >>> from_numpy(np.dtype("float32")) is f32
    True
    """
    names = {"float": "f", "int": "i", "uint": "u"}
    text = array_dtype.name
    if text == "bool":
        return bool_
    if text == "bfloat16":
        return bf16
    for prefix, letter in names.items():
        if text.startswith(prefix) and letter + text[len(prefix) :] in DTYPES:
            return DTYPES[letter + text[len(prefix) :]]
    raise UnknownDTypeError(
        f"no dtype corresponds to NumPy dtype {text!r}", hint=f"dtypes are {', '.join(DTYPES)}"
    )
