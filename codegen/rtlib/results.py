"""Result tensors: DLPack ``DLManagedTensorVersioned`` structures that own their memory."""

from __future__ import annotations

from ...ir.thread import runtime_table
from . import layout
from .language import (
    NULL,
    Code,
    Ptr,
    call_nothing,
    load_i32,
    load_i64,
    load_ptr,
    load_u8,
    move,
    rtlib_function,
    store_i32,
    store_i64,
    store_ptr,
    store_u8,
    store_u16,
)
from .memory import allocate, allocate_host, device_of, release, release_host

HEADER = 88
"""The size of a managed tensor plus its context, one word with the address of the table.

Shape and strides follow.
"""

MAJOR_VERSION = 1
"""The version of DLPack; 1.1 is the first one with the codes of 8-bit floats."""
MINOR_VERSION = 1


@rtlib_function
def make_result(call: Ptr, position: int, rank: int, dtype: int, size: int) -> Ptr:
    """Allocate a result of ``size`` bytes and return its managed tensor; null if out of memory.

    The address of the managed tensor is stored in operand word ``position`` of the call record.
    The caller writes the shape; :func:`finish_result` computes the strides.
    """
    if load_i64(call, layout.CALL_MODE) & layout.GIVEN != 0:
        given = load_ptr(call, layout.CALL_OPERANDS + 8 * position)
        if given != NULL:
            return given
    head = (HEADER + 16 * rank + layout.ALIGNMENT - 1) // layout.ALIGNMENT * layout.ALIGNMENT
    room = max(size, layout.ALIGNMENT)
    device = device_of(call)
    kind = layout.HOST
    ordinal = 0
    if device == NULL:
        block = allocate(call, head + room)
        data = move(block, head)
    else:
        block = allocate_host(call, head)
        data = allocate(call, room)
        kind = load_i64(device, layout.DEVICE_TYPE)
        ordinal = load_i64(device, layout.DEVICE_ORDINAL)
        if data == NULL:
            release_host(call, block)
            block = NULL
        elif block == NULL:
            release(call, data)
    store_ptr(call, layout.CALL_OPERANDS + 8 * position, block)
    if block == NULL:
        return NULL
    source = load_ptr(call, layout.CALL_TABLE)
    store_i32(block, 0, MAJOR_VERSION)
    store_i32(block, 4, MINOR_VERSION)
    store_ptr(block, 8, move(block, 80))
    store_ptr(block, 16, load_ptr(source, runtime_table.RELEASE))
    store_i64(block, 24, 0)
    store_ptr(block, 32, data)
    store_i32(block, 40, kind)
    store_i32(block, 44, ordinal)
    store_i32(block, 48, rank)
    store_u8(block, 52, dtype // 256)
    store_u8(block, 53, dtype % 256)
    store_u16(block, 54, 1)
    store_ptr(block, 56, move(block, HEADER))
    store_ptr(block, 64, move(block, HEADER + 8 * rank))
    store_i64(block, 72, 0)
    store_ptr(block, 80, source)
    return block


@rtlib_function
def finish_result(block: Ptr) -> Ptr:
    """Compute the strides from the shape; return the address of the elements."""
    rank = load_i64(block, 48) & 0xFFFFFFFF
    step = 1
    for k in range(rank):
        d = 8 * (rank - 1 - k)
        store_i64(block, HEADER + 8 * rank + d, step)
        step = step * load_i64(block, HEADER + d)
    return load_ptr(block, 32)


@rtlib_function
def release_result(block: Ptr) -> None:
    """Free a result; this is the deleter of its managed tensor."""
    context = load_ptr(block, 8)
    source = load_ptr(context, 0)
    device = load_ptr(source, runtime_table.DEVICE)
    if device == NULL:
        call_nothing(load_ptr(source, runtime_table.FREE), context, block, 0, 0)
    else:
        call_nothing(load_ptr(source, runtime_table.FREE), context, load_ptr(block, 32), 0, 0)
        call_nothing(load_ptr(device, layout.DEVICE_HOST_FREE), context, block, 0, 0)


@rtlib_function
def given_block(block: Ptr) -> int:
    """Return whether a block describes a tensor of the caller, which has no deleter."""
    if block == NULL:
        return 0
    if load_ptr(block, 16) == NULL:
        return 1
    return 0


@rtlib_function
def fits(block: Ptr) -> int:
    """Return whether a tensor of the caller has the shape in its block; 1 for other results.

    The context of such a block is the address of the tensor of the caller.
    """
    if given_block(block) == 0:
        return 1
    shape = load_ptr(load_ptr(block, 8), 24)
    same = 1
    for k in range(load_i32(block, 48)):
        if load_i64(shape, 8 * k) != load_i64(block, HEADER + 8 * k):
            same = 0
    return same


@rtlib_function
def drop_results(call: Ptr, first: int, count: int) -> None:
    """Free the results of a failed call."""
    for k in range(count):
        offset = layout.CALL_OPERANDS + 8 * (first + k)
        block = load_ptr(call, offset)
        if block != NULL and given_block(block) == 0:
            release_result(block)
            store_ptr(call, offset, NULL)


@rtlib_function
def copy_memory(  # the order of the table
    _context: Ptr, target: Ptr, source: Ptr, size: int, _to: int, _origin: int, _stream: int
) -> Code:
    """Copy memory that the host can access; function ``COPY`` of the runtime table."""
    copy_bytes(target, source, size)
    return Code(0)


@rtlib_function
def copy_bytes(target: Ptr, source: Ptr, size: int) -> None:
    """Copy memory by words, then the remaining bytes."""
    words = size // 8
    for k in range(words):
        store_i64(target, 8 * k, load_i64(source, 8 * k))
    for k in range(8 * words, size):
        store_u8(target, k, load_u8(source, k))
