"""Views: a common form of tensor arguments, decoded from NumPy arrays and DLPack tensors.

A view contains data address, rank, shape, strides with their unit, dtype, device, and whether the
tensor is writable. A dtype is encoded as ``DLPack code * 256 + bits``.
"""

from __future__ import annotations

from . import layout
from .language import (
    NULL,
    Ptr,
    load_i32,
    load_i64,
    load_ptr,
    load_u8,
    load_u16,
    move,
    number,
    rtlib_function,
    store_i64,
    store_ptr,
)

OTHER = 255 * 256
"""The dtype code of unsupported element types."""

WRITTEN = 1
"""Requirement flag of `check_argument`: the tensor must be writable."""
STRIDED = 2
"""Requirement flag of `check_argument`: any strides are accepted."""
DEVICES = 256
"""The factor of the device number in the requirements of `check_argument`."""

NUMPY_SWAPPED = 0x200
NUMPY_WRITABLE = 0x400


@rtlib_function
def numpy_dtype(kind: int, size: int) -> int:
    """Return the dtype code of a NumPy type kind and element size in bytes."""
    code = 255
    if kind == 105:  # 'i'
        code = 0
    if kind == 117:  # 'u'
        code = 1
    if kind == 102:  # 'f'
        code = 2
    if kind == 99:  # 'c'
        code = 5
    if kind == 98:  # 'b'
        code = 6
    return code * 256 + size * 8


@rtlib_function
def view_numpy(array: Ptr, view: Ptr) -> None:
    """Decode a NumPy ``PyArrayInterface`` structure into a view."""
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


@rtlib_function
def view_dlpack(tensor: Ptr, view: Ptr) -> None:
    """Decode a ``DLTensor`` into a view. It is writable until the caller clears the flag."""
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


@rtlib_function
def view_argument(call: Ptr, position: int, view: Ptr) -> None:
    """Decode an argument of the call into a view."""
    operand = move(call, layout.CALL_OPERANDS + 16 * position)
    form = load_i64(operand, 0) & 255
    payload = load_ptr(operand, 8)
    if form == layout.FORM_DLPACK:
        view_dlpack(payload, view)
        if load_i64(operand, 0) & 256 != 0:
            store_i64(view, layout.VIEW_WRITABLE, 0)
    else:
        view_numpy(payload, view)
        if form == layout.FORM_EXTENSION:
            store_i64(view, layout.VIEW_DTYPE, load_i64(operand, 0) // layout.FORM_DTYPE)


@rtlib_function
def is_compact(view: Ptr, size: int) -> int:
    """Return whether the elements are contiguous in row-major order."""
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


@rtlib_function
def device_matches(actual: int, expected: int) -> int:
    """Return whether memory of device type ``actual`` is accessible as type ``expected``."""
    if actual == expected:
        return 1
    if expected == layout.HOST and actual == 3:  # host memory pinned for CUDA
        return 1
    if expected == layout.CUDA and actual == 13:  # CUDA managed memory
        return 1
    return 0


@rtlib_function
def check_argument(view: Ptr, dtype: int, rank: int, alignment: int, required: int) -> int:
    """Return the number of the first problem of an argument, or 0.

    Parameters
    ----------
    view : Ptr
        The view of the argument.
    dtype : int
        The required dtype code.
    rank : int
        The required rank; -1 accepts any rank.
    alignment : int
        The required alignment in bytes.
    required : int
        The sum of the flags ``WRITTEN`` and ``STRIDED``, and ``DEVICES`` times the device type.
    """
    if load_i64(view, layout.VIEW_DTYPE) != dtype:
        return layout.PROBLEM_DTYPE
    if rank != -1 and load_i64(view, layout.VIEW_RANK) != rank:
        return layout.PROBLEM_RANK
    if device_matches(load_i64(view, layout.VIEW_DEVICE), required // DEVICES) == 0:
        return layout.PROBLEM_DEVICE
    if required & STRIDED == 0 and is_compact(view, (dtype & 255) // 8) == 0:
        return layout.PROBLEM_STRIDES
    if load_ptr(view, layout.VIEW_DATA) == NULL and view_bytes(view) != 0:
        return layout.PROBLEM_DATA
    if number(load_ptr(view, layout.VIEW_DATA)) % alignment != 0:
        return layout.PROBLEM_ALIGNMENT
    if required & WRITTEN != 0 and load_i64(view, layout.VIEW_WRITABLE) == 0:
        return layout.PROBLEM_READ_ONLY
    return 0


@rtlib_function
def overlap(a: Ptr, a_bytes: int, b: Ptr, b_bytes: int) -> int:
    """Return whether two memory ranges overlap."""
    if a_bytes == 0 or b_bytes == 0:
        return 0
    if number(a) < number(b) + b_bytes and number(b) < number(a) + a_bytes:
        return 1
    return 0


@rtlib_function
def stride_bytes(view: Ptr, dim: int) -> int:
    """Return the stride of a dimension in bytes."""
    strides = load_ptr(view, layout.VIEW_STRIDES)
    if strides != NULL:
        return load_i64(strides, 8 * dim) * load_i64(view, layout.VIEW_STRIDE_UNIT)
    shape = load_ptr(view, layout.VIEW_SHAPE)
    step = (load_i64(view, layout.VIEW_DTYPE) & 255) // 8
    for k in range(dim + 1, load_i64(view, layout.VIEW_RANK)):
        step = step * load_i64(shape, 8 * k)
    return step


@rtlib_function
def view_bytes(view: Ptr) -> int:
    """Return the number of bytes from the first to the end of the last element of a tensor."""
    shape = load_ptr(view, layout.VIEW_SHAPE)
    bits = load_i64(view, layout.VIEW_DTYPE) & 255
    if bits < 8:  # packed elements are compact
        for k in range(load_i64(view, layout.VIEW_RANK)):
            bits = bits * load_i64(shape, 8 * k)
        return (bits + 7) // 8
    size = bits // 8
    for k in range(load_i64(view, layout.VIEW_RANK)):
        extent = load_i64(shape, 8 * k)
        if extent == 0:
            return 0
        size = size + (extent - 1) * stride_bytes(view, k)
    return size
