"""The size of a buffer in bytes."""

from __future__ import annotations

from ..sizes import allocated_shape, shape_bytes, storage_bytes
from ..symbolic import Expr, maximum, total
from .nodes import Buffer


def size_of(buffer: Buffer) -> Expr:
    """Return the number of bytes from the first element to the end of the last.

    An allocation with a dimension that is negative or 0 has no elements; with strides, its size may
    be that of other dimensions, and is never negative.
    """
    if buffer.strides is None:
        return shape_bytes(allocated_shape(buffer.shape), buffer.dtype)
    reach = total((d - 1) * s for d, s in zip(buffer.shape, buffer.strides, strict=True))
    return storage_bytes(maximum(reach + 1, 0), buffer.dtype)
