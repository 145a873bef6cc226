"""The limit of sizes in bytes, and sizes that are known at compile time."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Final, overload

from .dtype import BYTE, DType
from .symbolic import Expr, ceildiv, const_value, maximum, product

SIZE_LIMIT: Final = 1 << 60
"""The number of bytes that no tensor reaches; larger sizes overflow 64-bit addresses."""


@overload
def storage_bytes(count: int, dtype: DType) -> int: ...
@overload
def storage_bytes(count: Expr, dtype: DType) -> Expr: ...
def storage_bytes(count: int | Expr, dtype: DType) -> int | Expr:
    """Return the size of elements in bytes; packed elements fill whole bytes at the end.

    Examples
    --------
    >>> from .dtype import f32, i4
    >>> storage_bytes(5, f32), storage_bytes(5, i4)
    (20, 3)
    """
    if dtype.bits % BYTE == 0:
        return count * (dtype.bits // BYTE)
    if isinstance(count, int):
        return -(-count * dtype.bits // BYTE)
    return ceildiv(count * dtype.bits, BYTE)


def shape_bytes(shape: Iterable[Expr], dtype: DType) -> Expr:
    """Return the size in bytes of a compact tensor.

    Examples
    --------
    >>> from .dtype import f32
    >>> from .symbolic import as_expr, var
    >>> shape_bytes((var("n"), as_expr(3)), f32)
    n * 12
    """
    return storage_bytes(product(tuple(shape)), dtype)


def allocated_shape(shape: Iterable[Expr]) -> tuple[Expr, ...]:
    """Return the dimensions of an allocation, with 0 in place of negative ones.

    Examples
    --------
    >>> from .symbolic import as_expr, var
    >>> allocated_shape((var("n", lower=0), var("m") - 3, as_expr(4)))
    (n, max(0, m - 3), 4)
    """
    return tuple(d if d.lower is not None and d.lower >= 0 else maximum(d, 0) for d in shape)


def size_problem(shape: Iterable[Expr], dtype: DType) -> str:
    """Return the problem with the size of a tensor; empty if it is legal or unknown.

    Examples
    --------
    >>> from .dtype import f32
    >>> from .symbolic import as_expr
    >>> size_problem((as_expr(2**31), as_expr(2**31)), f32)
    'its size of 2**64 bytes reaches the limit of 2**60 bytes'
    >>> size_problem((as_expr(-5),), f32)
    'dimension -5 is negative'
    """
    dims = [const_value(dim) for dim in shape]
    known = [dim for dim in dims if dim is not None]
    negative = next((dim for dim in known if dim < 0), None)
    if negative is not None:
        return f"dimension {negative} is negative"
    size = storage_bytes(prod(known), dtype)
    if len(known) < len(dims) or size < SIZE_LIMIT:
        return ""
    exponent = size.bit_length() - 1 if size & (size - 1) == 0 else size.bit_length()
    power = f"2**{exponent}" if size == 1 << exponent else f"about 2**{exponent}"
    return f"its size of {power} bytes reaches the limit of 2**60 bytes"
