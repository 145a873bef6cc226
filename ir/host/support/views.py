"""Understand what the caller passed: NumPy's array interface and DLPack, one form after that."""

from __future__ import annotations

from .. import layout
from ..language import (
    NULL,
    Ptr,
    load_i32,
    load_i64,
    load_ptr,
    load_u8,
    load_u16,
    move,
    number,
    store_i64,
    store_ptr,
    support,
)

BFLOAT = 4 * 256 + 16
OTHER = 255 * 256
"""The dtype of what no element type of ours stores."""

WRITTEN = 1
STRIDED = 2
DEVICES = 256
"""The device that is asked for counts this much."""

NUMPY_SWAPPED = 0x200
NUMPY_WRITABLE = 0x400


@support
def numpy_dtype(kind: int, size: int) -> int:
    """Give DLPack's code * 256 + bits for NumPy's letter of kind and element size."""
    code = 255
    if kind == 105:  # 'i'
        code = 0
    if kind == 117:  # 'u'
        code = 1
    if kind == 102:  # 'f'
        code = 2
    if kind == 98:  # 'b'
        code = 6
    return code * 256 + size * 8


@support
def view_numpy(array: Ptr, view: Ptr) -> None:
    """Read a ``PyArrayInterface``."""
    size = load_i32(array, 12)
    flags = load_i32(array, 16)
    dtype = numpy_dtype(load_u8(array, 8), size)
    if flags & NUMPY_SWAPPED == 0:
        dtype = OTHER
    store_i64(view, layout.VIEW_RANK, load_i32(array, 4))
    store_ptr(view, layout.VIEW_SHAPE, load_ptr(array, 24))
    store_ptr(view, layout.VIEW_STRIDES, load_ptr(array, 32))
    store_i64(view, layout.VIEW_STRIDE_UNIT, 1)
    store_ptr(view, layout.VIEW_DATA, load_ptr(array, 40))
    store_i64(view, layout.VIEW_DTYPE, dtype)
    store_i64(view, layout.VIEW_WRITABLE, flags & NUMPY_WRITABLE)
    store_i64(view, layout.VIEW_DEVICE, 1)


@support
def view_dlpack(tensor: Ptr, view: Ptr) -> None:
    """Read a ``DLTensor``; who asked for it found out whether it may be written."""
    bits = load_u8(tensor, 21)
    dtype = load_u8(tensor, 20) * 256 + bits
    if load_u16(tensor, 22) != 1:
        dtype = OTHER
    data = move(load_ptr(tensor, 0), load_i64(tensor, 40))
    store_ptr(view, layout.VIEW_DATA, data)
    store_i64(view, layout.VIEW_RANK, load_i32(tensor, 16))
    store_ptr(view, layout.VIEW_SHAPE, load_ptr(tensor, 24))
    store_ptr(view, layout.VIEW_STRIDES, load_ptr(tensor, 32))
    store_i64(view, layout.VIEW_STRIDE_UNIT, bits // 8)
    store_i64(view, layout.VIEW_DTYPE, dtype)
    store_i64(view, layout.VIEW_WRITABLE, 1)
    store_i64(view, layout.VIEW_DEVICE, load_i32(tensor, 8))


@support
def view_argument(call: Ptr, position: int, view: Ptr) -> None:
    """Bring an argument into the one form, whatever it came in."""
    operand = move(call, layout.CALL_OPERANDS + 16 * position)
    form = load_i64(operand, 0) & 255
    payload = load_ptr(operand, 8)
    if form == layout.FORM_DLPACK:
        view_dlpack(payload, view)
        if load_i64(operand, 0) & 256 != 0:
            store_i64(view, layout.VIEW_WRITABLE, 0)
    else:
        view_numpy(payload, view)
        if form == layout.FORM_BFLOAT:
            store_i64(view, layout.VIEW_DTYPE, BFLOAT)


@support
def is_compact(view: Ptr, size: int) -> int:
    """Whether the elements lie one after the other, the last dimension closest."""
    strides = load_ptr(view, layout.VIEW_STRIDES)
    if strides == NULL:
        return 1
    shape = load_ptr(view, layout.VIEW_SHAPE)
    unit = load_i64(view, layout.VIEW_STRIDE_UNIT)
    step = size
    compact = 1
    rank = load_i64(view, layout.VIEW_RANK)
    for k in range(rank):
        d = 8 * (rank - 1 - k)
        extent = load_i64(shape, d)
        if extent == 0:
            return 1
        if extent != 1 and load_i64(strides, d) * unit != step:
            compact = 0
        step = step * extent
    return compact


@support
def lies_on(given: int, wanted: int) -> int:
    """Whether a device's memory is as good as the one asked for."""
    if given == wanted:
        return 1
    if wanted == layout.HOST and given == 3:  # the host's, pinned for CUDA
        return 1
    if wanted == layout.CUDA and given == 13:  # managed by CUDA
        return 1
    return 0


@support
def check_argument(view: Ptr, dtype: int, rank: int, alignment: int, asked: int) -> int:
    """Give the number of the first problem of an argument, 0 for none; -1 is any rank.

    ``asked`` adds WRITTEN, STRIDED and DEVICES times the device up.
    """
    if load_i64(view, layout.VIEW_DTYPE) != dtype:
        return layout.PROBLEM_DTYPE
    if rank != -1 and load_i64(view, layout.VIEW_RANK) != rank:
        return layout.PROBLEM_RANK
    if lies_on(load_i64(view, layout.VIEW_DEVICE), asked // DEVICES) == 0:
        return layout.PROBLEM_DEVICE
    if asked & STRIDED == 0 and is_compact(view, (dtype & 255) // 8) == 0:
        return layout.PROBLEM_STRIDES
    if number(load_ptr(view, layout.VIEW_DATA)) % alignment != 0:
        return layout.PROBLEM_ALIGNMENT
    if asked & WRITTEN != 0 and load_i64(view, layout.VIEW_WRITABLE) == 0:
        return layout.PROBLEM_READ_ONLY
    return 0


@support
def overlap(a: Ptr, a_bytes: int, b: Ptr, b_bytes: int) -> int:
    """Whether two ranges of memory share a byte."""
    if a_bytes == 0 or b_bytes == 0:
        return 0
    if number(a) < number(b) + b_bytes and number(b) < number(a) + a_bytes:
        return 1
    return 0


@support
def stride_bytes(view: Ptr, dim: int) -> int:
    """Give the distance of neighbours along a dimension."""
    strides = load_ptr(view, layout.VIEW_STRIDES)
    if strides != NULL:
        return load_i64(strides, 8 * dim) * load_i64(view, layout.VIEW_STRIDE_UNIT)
    shape = load_ptr(view, layout.VIEW_SHAPE)
    step = (load_i64(view, layout.VIEW_DTYPE) & 255) // 8
    for k in range(dim + 1, load_i64(view, layout.VIEW_RANK)):
        step = step * load_i64(shape, 8 * k)
    return step


@support
def view_bytes(view: Ptr) -> int:
    """Count the bytes from a tensor's first element to behind its last."""
    shape = load_ptr(view, layout.VIEW_SHAPE)
    size = (load_i64(view, layout.VIEW_DTYPE) & 255) // 8
    for k in range(load_i64(view, layout.VIEW_RANK)):
        extent = load_i64(shape, 8 * k)
        if extent == 0:
            return 0
        size = size + (extent - 1) * stride_bytes(view, k)
    return size
