"""Temporaries of a kernel in registers or shared memory, no larger than what is live at a time.

A buffer of scope ``local`` is one for every thread, ``shared`` one for every block. A ``global``
temporary becomes the first where each thread reads only what it wrote, and the second where a
block of a short one is enough. What is left stays in global memory, which the caller provides;
that only the one block of a launch may use, for blocks do not wait for each other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ....ir.gpu import BLOCK_AXES, THREAD_AXES
from ....ir.loop.nodes import Block, Buffer, For, PrimFunc, Stmt
from ....ir.loop.visit import stores, walk
from ....ir.symbolic import Expr, as_expr, const_value, product, to_text
from ....schedules.primitives.layout.storage_align import STORAGE_ALIGN
from ..loops.compact import (
    Access,
    Compact,
    Rebase,
    buffer_accesses,
    common_loops,
    find_place,
    shrunk,
)
from .errors import MemoryScopeError

LONGEST: Final = 16 * 1024
"""Bytes of a temporary that shared memory is given to without being asked."""


def compact_for_threads(func: PrimFunc) -> PrimFunc:
    """Shrink every temporary of a function whose axes are around its whole body.

    Raises
    ------
    MemoryScopeError
        If a temporary lives where its users cannot see it, or is of no constant size.
    """
    found = buffer_accesses(func.body)
    placed = {b: _placed(b, found[b], func.name) for b in func.buffers if b in found}
    changed = {b: c for b, c in placed.items() if c is not None}
    if not changed:
        return replace(func, buffers=tuple(placed))
    for buffer, (axis, factor, offset) in _padding(func.body).items():
        if buffer in changed:
            padded = _padded(changed[buffer].buffer, axis, factor, offset)
            changed[buffer] = replace(changed[buffer], buffer=padded)
    body = Rebase(changed).statement(func.body)
    kept = tuple(b if c is None else changed[b].buffer for b, c in placed.items())
    return replace(func, body=body, buffers=kept)


def _placed(buffer: Buffer, accesses: list[Access], function: str) -> Compact | None:
    """Give what becomes of a temporary; None where it stays in global memory."""
    if buffer.scope != "shared":
        own = _own(buffer, accesses)
        if own is not None and (buffer.scope != "global" or _bytes(own) is not None):
            return _sized(own, function)
        if buffer.scope in ("local", "fragment"):
            raise MemoryScopeError(
                f"{buffer.name!r} is {buffer.scope}, but a thread reads what another one wrote",
                where=f"function {function!r}",
                hint=f"set_scope({buffer.name!r}, 'shared'), or bind the loops of its writer and "
                "readers alike",
            )
    several = [x for x in accesses[0].loops if _is_several(x)]
    if buffer.scope == "global" and not several:
        shared = _of_block(buffer, accesses, function)
        return shared if (_bytes(shared) or LONGEST + 1) <= LONGEST else None
    return _sized(_of_block(buffer, accesses, function), function)


def _bytes(compact: Compact) -> int | None:
    size = const_value(product(compact.buffer.shape))
    return None if size is None else size * compact.buffer.dtype.bytes


def _is_several(loop: For) -> bool:
    return loop.thread in BLOCK_AXES and const_value(loop.extent) != 1


def _own(buffer: Buffer, accesses: list[Access]) -> Compact | None:
    """Give the buffer that each thread has for itself; None where threads share elements."""
    launch = [x for x in accesses[0].loops if x.kind == "thread"]
    place, boxes = find_place(buffer, accesses, common_loops(accesses))
    if not set(launch) <= set(place):
        return None
    if buffer.scope == "fragment":
        return shrunk(buffer, boxes, "fragment")
    return shrunk(buffer, boxes, "local", dense=True)


def _of_block(buffer: Buffer, accesses: list[Access], function: str) -> Compact:
    """Give the buffer that the threads of a block share."""
    moved = [_threads_last(a) for a in accesses]
    common = tuple(x for x in common_loops(moved) if x.thread not in THREAD_AXES)
    place, boxes = find_place(buffer, moved, common)
    blocks = {x for x in accesses[0].loops if _is_several(x)}
    if not blocks <= set(place):
        names = ", ".join(sorted(x.thread for x in blocks - set(place)))
        raise MemoryScopeError(
            f"{buffer.name!r} is read in other thread blocks than it was written in ({names})",
            where=f"function {function!r}",
            hint="compute its writer inside the loops of thread blocks (compute_at), or make it a "
            "kernel of its own",
        )
    return shrunk(buffer, boxes, "shared")


def _threads_last(access: Access) -> Access:
    inner = [x for x in access.loops if x.thread in THREAD_AXES]
    outer = [x for x in access.loops if x.thread not in THREAD_AXES]
    return replace(access, loops=(*outer, *inner))


def _sized(compact: Compact, function: str) -> Compact:
    size = product(compact.buffer.shape)
    if const_value(size) is None:
        raise MemoryScopeError(
            f"{compact.buffer.name!r} has {to_text(size)} elements, which is no constant, as "
            f"{compact.buffer.scope} memory needs",
            where=f"function {function!r}",
            hint="compute it inside a loop (compute_at), so that less of it is live at a time",
        )
    return compact


def _padding(body: Stmt) -> dict[Buffer, tuple[int, int, int]]:
    """Give the buffers whose rows are to be padded: axis, factor and remainder."""
    found: dict[Buffer, tuple[int, int, int]] = {}
    for block in walk(body):
        note = dict(block.annotations).get(STORAGE_ALIGN) if isinstance(block, Block) else None
        if isinstance(note, tuple):
            axis, factor, offset = (n for n in note if isinstance(n, int))
            found.update({s.buffer: (axis, factor, offset) for s in stores(block)})
    return found


def _padded(buffer: Buffer, axis: int, factor: int, offset: int) -> Buffer:
    """Lengthen the stride of one dimension until it has a remainder."""
    strides: list[Expr] = []
    stride = as_expr(1)
    for number, size in reversed(tuple(enumerate(buffer.shape))):
        if number == axis:
            stride = stride + (offset - stride) % factor
        strides.insert(0, stride)
        stride = stride * size
    return replace(buffer, strides=tuple(strides))
