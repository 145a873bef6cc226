"""Packed elements: several per byte in row-major order, element 0 in the low bits.

Rows are not padded. The last byte of a tensor whose elements do not fill it has unused high bits,
which are zero in packed arrays made here and are ignored otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import index
from typing import Any, Final, SupportsIndex, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import TilewrightError
from .dtype import DTYPES, DType, dtype as dtype_named
from .sizes import storage_bytes

Array = NDArray[Any]
Bytes = NDArray[np.uint8]

_INTEGERS: Final = frozenset(row.stored for row in DTYPES.values() if row.is_packed)
"""The names of the dtypes of arrays of packed integers, one element per item."""


class PackingError(TilewrightError):
    """Bytes that do not have the size of a packed tensor, or a dtype that is not packed."""

    title = "Invalid packed tensor"


def pack(array: Array, dtype: DType) -> Bytes:
    """Return the elements of an array as packed bytes; integers wrap to the bits of the dtype.

    Parameters
    ----------
    array : array
        Integers of any dtype of NumPy or ``ml_dtypes``, one element per item.
    dtype : DType
        A packed dtype.

    Raises
    ------
    PackingError
        If the elements are not integers.

    Examples
    --------
    >>> from .dtype import i4
    >>> pack(np.array([1, -1, 2]), i4)
    array([241,   2], dtype=uint8)
    """
    _check_packed(dtype)
    low = np.uint8(2**dtype.bits - 1)
    fields: Bytes = _integers(array, dtype).reshape(-1).astype(np.int8).view(np.uint8) & low
    size = storage_bytes(int(fields.size), dtype)
    groups = np.zeros(size * dtype.per_byte, np.uint8)
    groups[: fields.size] = fields
    columns = groups.reshape(size, dtype.per_byte)
    packed = np.zeros(size, np.uint8)
    for k in range(dtype.per_byte):
        packed |= columns[:, k] << np.uint8(k * dtype.bits)
    return packed


def unpack(data: Bytes, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return packed bytes as an array with one element per item.

    Parameters
    ----------
    data : array of uint8
        The packed bytes.
    shape : tuple of int
        The shape, in elements.
    dtype : DType
        A packed dtype.

    Raises
    ------
    PackingError
        If the number of bytes is not that of the shape.

    Examples
    --------
    >>> from .dtype import i4
    >>> unpack(np.array([241, 2], np.uint8), (3,), i4)
    array([1, -1, 2], dtype=int4)
    """
    _check_packed(dtype)
    count = math.prod(shape)
    _check_size(data, shape, dtype)
    shifts = np.arange(dtype.per_byte, dtype=np.uint8) * np.uint8(dtype.bits)
    fields = (data.reshape(-1, 1) >> shifts & np.uint8(2**dtype.bits - 1)).reshape(-1)[:count]
    if dtype.kind == "int":
        sign = np.uint8(2 ** (dtype.bits - 1))
        fields = (fields ^ sign) - sign
    return fields.view(np.int8).astype(dtype.numpy).reshape(shape)


def storage_of(array: Array, dtype: DType) -> Bytes:
    """Return the bytes of the elements of an array as in memory, packed if the dtype is."""
    if dtype.is_packed:
        return pack(array, dtype)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def from_storage(data: Bytes, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return the array of elements that are stored in bytes, without a copy if possible."""
    if dtype.is_packed:
        return unpack(data, shape, dtype)
    return data.view(dtype.numpy).reshape(shape)


class PackedArray:
    """A tensor of a packed dtype in memory that functions read and write without a copy.

    Parameters
    ----------
    data : array of uint8
        The packed bytes, one-dimensional and contiguous.
    shape : tuple of int
        The shape, in elements.
    dtype : DType or str
        A packed dtype, such as ``"i4"``.

    Raises
    ------
    PackingError
        If the number of bytes is not that of the shape, or a dimension is not an integer of at
        least 0.

    Examples
    --------
    >>> x = PackedArray(np.array([0x21, 0x43], np.uint8), (2, 2), "i4")
    >>> x.unpack().tolist()
    [[1, 2], [3, 4]]
    """

    def __init__(self, data: Bytes, shape: tuple[int, ...], dtype: DType | str) -> None:
        """Check the size of the data."""
        self.data = data
        self.shape = _dimensions(shape)
        self.dtype = dtype_named(dtype)
        _check_packed(self.dtype)
        if not isinstance(cast("object", data), np.ndarray):
            raise PackingError(
                f"expected an array of dtype uint8, got {type(data).__name__}",
                hint="np.frombuffer(data, np.uint8) is an array of bytes",
            )
        _check_size(data, self.shape, self.dtype)
        if data.ndim != 1 or not data.flags.c_contiguous:
            raise PackingError(
                f"packed data has shape {data.shape}, expected a contiguous array of one dimension",
                hint="np.ascontiguousarray(x).reshape(-1) returns one",
            )

    @classmethod
    def of(cls, array: Array, dtype: DType | str) -> PackedArray:
        """Return the packed elements of an array."""
        found = dtype_named(dtype)
        return cls(pack(array, found), np.shape(array), found)

    def unpack(self) -> Array:
        """Return an array with one element per item."""
        return unpack(self.data, self.shape, self.dtype)

    def __array__(  # NumPy passes a copy by position
        self,
        dtype: np.dtype[Any] | None = None,
        copy: bool | None = None,  # noqa: FBT001
    ) -> Array:
        """Return a copy with one element per item, for NumPy functions."""
        if copy is False:
            raise PackingError("the elements of a PackedArray share bytes; an array is a copy")
        found = self.unpack()
        return found if dtype is None else found.astype(dtype)

    def __repr__(self) -> str:
        """Return shape and dtype as text."""
        return f"PackedArray({self.shape}, {self.dtype})"


def _integers(array: Array, dtype: DType) -> Array:
    """Return an array of integers or bools; raise an error for other elements."""
    values = np.asarray(array)
    if values.dtype.kind in "iub" or values.dtype.name in _INTEGERS or not values.size:
        return values
    raise PackingError(
        f"expected integers to pack as {dtype}, got elements of dtype {values.dtype}",
        hint="convert them first: np.clip(np.rint(x), low, high).astype(np.int8)",
    )


def _dimensions(shape: object) -> tuple[int, ...]:
    """Return a shape as a tuple of integers, none of which is negative."""
    try:
        dims = tuple(index(d) for d in cast("Iterable[SupportsIndex]", shape))
    except TypeError:
        dims = None
    if dims is None or any(d < 0 for d in dims):
        raise PackingError(
            f"expected a tuple of integers of at least 0 as shape, got {shape!r}",
            hint="write (n,) for one dimension",
        )
    return dims


def _check_packed(dtype: DType) -> None:
    if not dtype.is_packed:
        raise PackingError(f"dtype {dtype} is not packed; its elements have {dtype.bits} bits")


def _check_size(data: Bytes, shape: tuple[int, ...], dtype: DType) -> None:
    size = storage_bytes(math.prod(shape), dtype)
    if data.dtype != np.uint8 or data.size != size:
        raise PackingError(
            f"expected {size} bytes of dtype uint8 for shape {shape} of {dtype}, got {data.size} "
            f"elements of dtype {data.dtype}",
            hint="pack(array, dtype) packs an array with one element per item",
        )
