"""Results: tensors that own their memory and know how to free it, in DLPack's versioned form."""

from __future__ import annotations

from ...thread import table
from .. import layout
from ..language import (
    NULL,
    Ptr,
    call_nothing,
    load_i64,
    load_ptr,
    load_u8,
    move,
    store_i32,
    store_i64,
    store_ptr,
    store_u8,
    store_u16,
    support,
)
from .memory import allocate, allocate_host, device_of, release, release_host

HEADER = 88
"""A managed tensor, then the one word of its context (the table), then shape and strides."""


@support
def make_result(call: Ptr, position: int, rank: int, dtype: int, size: int) -> Ptr:
    """Allocate a result of ``size`` bytes; shape and strides follow by :func:`finish_result`.

    The managed tensor becomes operand word ``position``; null means that there is no memory.
    """
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
    store_i32(block, 0, 1)
    store_i32(block, 4, 0)
    store_ptr(block, 8, move(block, 80))
    store_ptr(block, 16, load_ptr(source, table.RELEASE))
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


@support
def finish_result(block: Ptr) -> Ptr:
    """Derive the strides from the shape, and give the address of the elements."""
    rank = load_i64(block, 48) & 0xFFFFFFFF
    step = 1
    for k in range(rank):
        d = 8 * (rank - 1 - k)
        store_i64(block, HEADER + 8 * rank + d, step)
        step = step * load_i64(block, HEADER + d)
    return load_ptr(block, 32)


@support
def release_result(block: Ptr) -> None:
    """Free a result; the deleter of its managed tensor."""
    context = load_ptr(block, 8)
    source = load_ptr(context, 0)
    device = load_ptr(source, table.DEVICE)
    if device == NULL:
        call_nothing(load_ptr(source, table.FREE), context, block)
    else:
        call_nothing(load_ptr(source, table.FREE), context, load_ptr(block, 32))
        call_nothing(load_ptr(device, layout.DEVICE_HOST_FREE), context, block)


@support
def drop_results(call: Ptr, first: int, count: int) -> None:
    """Free the results of a call that failed."""
    for k in range(count):
        place = layout.CALL_OPERANDS + 8 * (first + k)
        block = load_ptr(call, place)
        if block != NULL:
            release_result(block)
            store_ptr(call, place, NULL)


@support
def copy_bytes(target: Ptr, source: Ptr, size: int) -> None:
    """Copy memory, a word at a time and then the rest."""
    words = size // 8
    for k in range(words):
        store_i64(target, 8 * k, load_i64(source, 8 * k))
    for k in range(8 * words, size):
        store_u8(target, k, load_u8(source, k))
