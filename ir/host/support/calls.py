"""The record of a call, and arithmetic that notices overflow."""

from __future__ import annotations

from ...thread import table
from .. import layout
from ..language import (
    NULL,
    Code,
    Ptr,
    call_code,
    call_nothing,
    exchange,
    load_i64,
    load_ptr,
    move,
    store_i64,
    store_ptr,
    support,
    widen,
)

LIMIT = 1 << 60
"""Bytes and elements counted beyond this are an overflow."""


@support
def open_call(call: Ptr) -> Ptr:
    """Copy the table into the record, so that what kernels report reaches this call."""
    source = load_ptr(call, layout.CALL_TABLE)
    own = move(call, layout.CALL_OWN_TABLE)
    for k in range(table.SIZE // 8):
        store_i64(own, 8 * k, load_i64(source, 8 * k))
    store_ptr(own, table.CONTEXT, call)
    return own


@support
def report(call: Ptr, code: Code, text: Ptr, a: int, b: int) -> None:
    """Keep the first error that is reported; ``error`` of the runtime table."""
    if exchange(call, layout.CALL_CODE, 0, widen(code)) == 0:
        store_ptr(call, layout.CALL_TEXT, text)
        store_i64(call, layout.CALL_A, a)
        store_i64(call, layout.CALL_B, b)


@support
def scale(a: int, b: int) -> int:
    """Multiply magnitudes; what would pass the limit becomes the limit."""
    if a == 0:
        return 0
    if b > LIMIT // a:
        return LIMIT
    return a * b


@support
def join(a: int, b: int) -> int:
    """Add magnitudes; what would pass the limit becomes the limit."""
    return min(a + b, LIMIT)


@support
def magnitude(a: int) -> int:
    """Give how far a number is from zero, at most the limit."""
    if a < -LIMIT:
        return LIMIT
    return min(max(a, -a), LIMIT)


@support
def call_library(_call: Ptr, entry: Ptr, operands: Ptr, count: int) -> Code:
    """Call a library function: its address, then what it is handed; ``library`` of the table."""
    return call_code(load_ptr(entry, 0), load_ptr(entry, 8), operands, count)


@support
def free_later(call: Ptr, blocks: Ptr, count: int) -> None:
    """Free the storages that were allocated on the way."""
    release = load_ptr(move(call, layout.CALL_OWN_TABLE), table.FREE)
    for k in range(count):
        block = load_ptr(blocks, 8 * k)
        if block != NULL:
            call_nothing(release, call, block)
            store_ptr(blocks, 8 * k, NULL)
