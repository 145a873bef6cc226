"""Memory of the temporaries of a CPU kernel: the stack, or the scratch buffer of the caller.

Large temporaries and those of symbolic size are never on the stack. A temporary of scope ``local``
that parallel regions use exists once per worker; the pass ``compact_buffers`` leaves this scope
only to temporaries without values that outlive an iteration.
"""

from __future__ import annotations

from typing import Final

from ....ir.loop.nodes import Buffer, For, PrimFunc, Stmt as LoopStmt
from ....ir.loop.visit import children, loads, stores
from ....ir.symbolic import Expr, Var, as_expr, ceildiv, const_value, var
from ....ir.thread.nodes import Allocate, Assign, Offset, Reg, Stmt
from ....ir.thread.types import POINTER
from .buffer_addresses import BufferAddresses, size_of

STACK_LIMIT: Final = 16 * 1024
"""The largest temporary on the stack, in bytes."""

ALIGNMENT: Final = 64


class Scratch:
    """The memory layout of the temporaries of one kernel."""

    def __init__(self, func: PrimFunc, memory: BufferAddresses) -> None:
        """Lay out the temporaries that are not on the stack."""
        self.pointer = Reg("scratch", POINTER)
        self.threads: Var = var("threads", lower=1)
        self._memory = memory
        private = _used_in_regions(func.body)
        self._private = [b for b in func.buffers if b.scope == "local" and b in private]
        self._shared = [b for b in func.buffers if b not in set(self._private)]
        self._offsets: dict[Buffer, Expr] = {}
        self._common = self._layout(self._shared, as_expr(0))
        self._each = self._layout(self._private, as_expr(0))

    def _layout(self, buffers: list[Buffer], start: Expr) -> Expr:
        for buffer in buffers:
            if not _on_stack(buffer):
                self._offsets[buffer] = start
                start += ceildiv(size_of(buffer), ALIGNMENT) * ALIGNMENT
        return start

    @property
    def size(self) -> Expr | None:
        """The size of the scratch argument in bytes; None if the kernel has none."""
        return self._common + self._each * self.threads if self._offsets else None

    def shared(self) -> tuple[Stmt, ...]:
        """Return the allocations of the temporaries of the whole kernel."""
        return tuple(self._allocate(b, as_expr(0)) for b in self._shared)

    def private(self, region: For, worker: Expr) -> tuple[Stmt, ...]:
        """Return the allocations of the temporaries of one worker of a parallel region."""
        used = _used(region.body)
        start = self._common + self._each * worker
        return tuple(self._allocate(b, start) for b in self._private if b in used)

    def _allocate(self, buffer: Buffer, start: Expr) -> Stmt:
        base = self._memory.add(buffer)
        size = const_value(size_of(buffer))
        if _on_stack(buffer) and size is not None:
            return Allocate(base, size, max(buffer.alignment, ALIGNMENT))
        return Assign(base, Offset(self.pointer, start + self._offsets[buffer]))


def _on_stack(buffer: Buffer) -> bool:
    size = const_value(size_of(buffer))
    return size is not None and size <= STACK_LIMIT


def _used(statement: LoopStmt) -> frozenset[Buffer]:
    read = {load.buffer for load in loads(statement)}
    return frozenset(read | {s.buffer for s in stores(statement)})


def _used_in_regions(statement: LoopStmt) -> frozenset[Buffer]:
    """Return the buffers that parallel loops use."""
    if isinstance(statement, For) and statement.kind == "parallel":
        return _used(statement)
    return frozenset[Buffer]().union(*(_used_in_regions(c) for c in children(statement)))
