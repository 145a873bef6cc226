"""The call record, and saturating arithmetic of sizes."""

from __future__ import annotations

from ...ir.thread import runtime_table
from . import layout
from .language import (
    Code,
    Ptr,
    call_code,
    exchange,
    load_i64,
    load_ptr,
    move,
    rtlib_function,
    store_i64,
    store_ptr,
    widen,
)

LIMIT = 1 << 60
"""The value at which sizes saturate; it means that a size overflowed."""


@rtlib_function
def open_call(call: Ptr) -> Ptr:
    """Copy the runtime table into the call record and return the copy.

    The context of the copy is the call record, so errors of its kernels are recorded there.
    """
    source = load_ptr(call, layout.CALL_TABLE)
    own = move(call, layout.CALL_OWN_TABLE)
    for k in range(runtime_table.SIZE // 8):
        store_i64(own, 8 * k, load_i64(source, 8 * k))
    store_ptr(own, runtime_table.CONTEXT, call)
    return own


@rtlib_function
def report(call: Ptr, code: Code, text: Ptr, a: int, b: int) -> None:
    """Record the first error of a call; function ``ERROR`` of the runtime table."""
    if exchange(call, layout.CALL_CODE, 0, widen(code)) == 0:
        store_ptr(call, layout.CALL_TEXT, text)
        store_i64(call, layout.CALL_A, a)
        store_i64(call, layout.CALL_B, b)


@rtlib_function
def scale(a: int, b: int) -> int:
    """Return the product of two non-negative sizes, at most the limit."""
    if a == 0:
        return 0
    if b > LIMIT // a:
        return LIMIT
    return a * b


@rtlib_function
def join(a: int, b: int) -> int:
    """Return the sum of two non-negative sizes, at most the limit."""
    return min(a + b, LIMIT)


@rtlib_function
def magnitude(a: int) -> int:
    """Return the absolute value of a number, at most the limit."""
    if a < -LIMIT:
        return LIMIT
    return min(max(a, -a), LIMIT)


@rtlib_function
def call_library(_call: Ptr, entry: Ptr, operands: Ptr, count: int) -> Code:
    """Call a library function; function ``LIBRARY`` of the runtime table.

    ``entry`` is the address of the library function, followed by its first argument.
    """
    return call_code(load_ptr(entry, 0), load_ptr(entry, 8), operands, count)
