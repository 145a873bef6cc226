"""Memory of the temporaries of a CPU kernel: the stack, or the scratch buffer of the caller.

Large temporaries and those of symbolic size are never on the stack. A temporary of scope ``local``
that parallel regions use exists once per worker; the pass ``compact_buffers`` leaves this scope
only to temporaries without values that outlive an iteration. Temporaries with disjoint live ranges
share memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ....ir.loop.buffer_size import size_of
from ....ir.loop.nodes import Buffer, For, PrimFunc, Stmt as LoopStmt
from ....ir.loop.visit import children, loads, stores
from ....ir.symbolic import Expr, Facts, Var, as_expr, ceildiv, var
from ....ir.thread.nodes import Allocate, Assign, Offset, Reg, Stmt
from ....ir.thread.types import POINTER
from ..analysis.lifetimes import LiveRange, live_ranges, on_stack
from .buffer_addresses import ALIGNMENT, BufferAddresses, allocated_bytes
from .shared_offsets import Request, shared_offsets


@dataclass(frozen=True, slots=True)
class ScratchTemporary:
    """A temporary in a scratch buffer: its name, its bytes for all workers, and its offset."""

    name: str
    size: Expr
    offset: Expr


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
        self._stack = on_stack(func.buffers)
        several = len(func.buffers) - len(self._stack) > 1
        self._ranges = live_ranges(func) if several else {}
        self._offsets: dict[Buffer, Expr] = {}
        self._common = self._layout(self._shared, func.facts)
        self._each = self._layout(self._private, func.facts)

    def _layout(self, buffers: list[Buffer], facts: Facts) -> Expr:
        """Assign offsets to temporaries that are not on the stack; return their size."""
        placed = [b for b in buffers if b not in self._stack]
        requests = [Request(_aligned(size_of(b)), *self._range(b)) for b in placed]
        offsets, size = shared_offsets(requests, facts)
        self._offsets.update(zip(placed, offsets, strict=True))
        return size

    def _range(self, buffer: Buffer) -> LiveRange:
        return self._ranges.get(buffer, (0, _WHOLE))

    @property
    def size(self) -> Expr | None:
        """The size of the scratch argument in bytes; None if the kernel has none."""
        return self._common + self._each * self.threads if self._offsets else None

    @property
    def temporaries(self) -> tuple[ScratchTemporary, ...]:
        """The temporaries in the scratch argument, in the order of the function."""
        private = set(self._private)
        return tuple(
            ScratchTemporary(b.name, size_of(b) * self.threads, self._common + offset)
            if b in private
            else ScratchTemporary(b.name, size_of(b), offset)
            for b, offset in self._offsets.items()
        )

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
        size = allocated_bytes(buffer)
        if buffer in self._stack and size is not None:
            return Allocate(base, size, max(buffer.alignment, ALIGNMENT))
        return Assign(base, Offset(self.pointer, start + self._offsets[buffer]))


_WHOLE: Final = 1 << 62
"""The last position of a temporary that is live in the whole function."""


def _aligned(size: Expr) -> Expr:
    return ceildiv(size, ALIGNMENT) * ALIGNMENT


def _used(statement: LoopStmt) -> frozenset[Buffer]:
    read = {load.buffer for load in loads(statement)}
    return frozenset(read | {s.buffer for s in stores(statement)})


def _used_in_regions(statement: LoopStmt) -> frozenset[Buffer]:
    """Return the buffers that parallel loops use."""
    if isinstance(statement, For) and statement.kind == "parallel":
        return _used(statement)
    return frozenset[Buffer]().union(*(_used_in_regions(c) for c in children(statement)))
