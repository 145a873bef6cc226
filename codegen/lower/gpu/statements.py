"""Statements of a GPU's thread: as on a CPU, but for lanes, totals of threads and registers."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ....ir.gpu import WARP
from ....ir.loop import nodes as loop
from ....ir.loop.builder import Combiner
from ....ir.loop.visit import loads
from ....ir.symbolic import FALSE, TRUE, Var, as_expr, ceildiv, const_value
from ....ir.thread.nodes import (
    Address,
    Allocate,
    Assign,
    If,
    Offset,
    Perform,
    Predicate,
    Reg,
    Source,
    Stmt,
    Store,
    Value,
)
from ....ir.thread.operations.nvidia import TRAP
from ....ir.thread.types import GLOBAL_POINTER, POINTER, SHARED_POINTER
from ..kernel.chunks import element_types
from ..kernel.context import Context, Lanes
from ..kernel.memory import size_of
from ..kernel.scratch import Scratch
from ..kernel.statements import StatementLowering
from .across import ACROSS
from .combine import Combination, Threads
from .errors import KernelStatementError
from .lanes import assuming_all, is_simple, together
from .machine import THREAD
from .memory import GpuMemory
from .tensor import expand, fragment_size, intrinsic_of

ALIGNMENT: Final = 16
"""Bytes that memory of a thread or a block is aligned to, at least."""

LINE: Final = 128
"""Bytes that a temporary in global memory starts at a multiple of."""

_COMBINERS: Final[dict[str, Combiner]] = {
    "add": "add", "mul": "mul", "min": "min", "max": "max", "and": "and", "or": "or",
    "xor": "xor",
}  # fmt: skip


class ThreadLowering(StatementLowering):
    """Lowers the body of a kernel; :attr:`allocations` have to stand before it."""

    def __init__(self, memory: GpuMemory, scratch: Scratch, threads: Threads, name: str) -> None:
        """Start with an empty list."""
        super().__init__(memory, THREAD, Reg("table", POINTER), scratch)
        self._memory = memory
        self._threads = threads
        self._name = name
        self._totals: dict[int, Reg] = {}
        self.pointer = Reg("scratch", GLOBAL_POINTER)
        self.bytes = as_expr(0)
        self.allocations: list[Allocate | Assign] = []

    def allocate(self, buffers: tuple[loop.Buffer, ...]) -> None:
        """Give temporaries their memory: the thread's own, the block's, or of the scratch."""
        for buffer in buffers:
            if buffer.scope == "global":
                place = Offset(self.pointer, self.bytes)
                self.allocations.append(Assign(self.memory.add(buffer), place))
                self.bytes += ceildiv(size_of(buffer), LINE) * LINE
                continue
            size = const_value(size_of(buffer)) or 0
            if buffer.scope == "fragment":
                size = fragment_size(buffer) * buffer.dtype.bytes
            alignment = max(ALIGNMENT, buffer.dtype.bytes)
            self.allocations.append(Allocate(self.memory.add(buffer), size, alignment))

    def statement(self, statement: loop.Stmt, context: Context) -> None:
        """Lower one statement."""
        if isinstance(statement, loop.Block):
            notes = dict(statement.annotations).get(ACROSS)
            if isinstance(notes, tuple):
                self._across(statement, tuple(map(str, notes)), context)
                return
            if intrinsic_of(statement) is not None:
                self._tensor(statement, context)
                return
        if isinstance(statement, loop.For) and statement.kind == "parallel":
            raise KernelStatementError(
                f"loop {statement.var.name!r} is parallel, which only a CPU has",
                where=f"function {self._name!r}",
                hint="bind it to blockIdx.x or threadIdx.x",
            )
        super().statement(statement, context)

    def _fail(
        self, code: int, text: str, numbers: tuple[Value, Value], context: Context
    ) -> tuple[Stmt, ...]:
        """Abort the launch: a thread has nobody to tell."""
        del code, text, numbers
        return (Perform(TRAP, (), (), context.source),)

    # ------------------------------------------------------------ lanes

    def _vectorized(self, nest: loop.For, count: int, context: Context) -> None:
        lanes = self._width(nest)
        if context.lanes is not None or not is_simple(nest.body) or lanes < 2:
            self._unrolled(nest, range(count), context)
            return
        start = 0
        while start < count:
            while lanes > count - start:
                lanes //= 2
            self._together(nest, start, lanes, context)
            start += lanes

    @staticmethod
    def _width(nest: loop.For) -> int:
        """Give the elements that one instruction moves."""
        return THREAD.lanes(max((t.bits for t in element_types(nest)), default=32))

    def _together(self, nest: loop.For, start: int, lanes: int, context: Context) -> None:
        """Move some elements at once where that may be, else one after the other."""
        if lanes == 1:
            self._unrolled(nest, range(start, start + 1), context)
            return
        lane = self._lane(nest.var, lanes)
        inner = context.binding(nest.var, as_expr(start) + lane)
        claim = context.known.decide(together(nest.body, lane, lanes, inner))
        if claim is FALSE:
            self._unrolled(nest, range(start, start + lanes), context)
            return
        inner = replace(inner, known=inner.known.assuming(claim))
        at_once = self._at_once(nest, lane, lanes, inner)
        if claim is TRUE:
            self.out.extend(at_once)
            return
        outer, self.out = self.out, []
        self._unrolled(nest, range(start, start + lanes), context)
        single, self.out = tuple(self.out), outer
        self.out.append(If(Predicate(claim), at_once, single, self._source(nest, context)))

    def _at_once(self, nest: loop.For, lane: Var, lanes: int, context: Context) -> tuple[Stmt, ...]:
        before, self._memory.aligned = self._memory.aligned, True
        running = assuming_all(nest.body, nest.var)
        body = self.body(running, replace(context, lanes=Lanes(lane, lanes)))
        self._memory.aligned = before
        return body

    # ------------------------------------------------------------ warps

    def _tensor(self, block: loop.Block, context: Context) -> None:
        """Let an instruction of a warp do the work of a block."""
        source = Source(block.uid, block.name, block.origins | context.source.origins)
        lane = self._threads.number % WARP
        inner = replace(context, source=source)
        self.out.extend(expand(block, inner, self.memory, lane))

    # ------------------------------------------------------------ totals of threads

    def _across(self, block: loop.Block, notes: tuple[str, ...], context: Context) -> None:
        """Combine the threads' parts, put the total in the place of each, and use it."""
        op, name, *axes = notes
        part = next((r for r in loads(block.body) if r.buffer.name == name), None)
        if part is None:
            return  # Nobody in this version of the kernel takes the total.
        elements = self._elements(context)
        own = elements.value(part)
        source = replace(context.source, uid=block.uid, name=block.name)
        scratch = self._slots(block.uid, part.buffer, tuple(axes))
        combination = Combination(self._threads, _COMBINERS[op], scratch, source)
        total = combination.total(own, part.dtype, tuple(axes))
        place = self.memory.access(part.buffer, part.indices, context)
        self.out.extend(combination.out)
        address = Address(place.base, place.offset, place.alignment)
        self.out.append(Store(address, total, source=source))
        self.statement(block.body, replace(context, source=source))

    def _slots(self, uid: int, part: loop.Buffer, axes: tuple[str, ...]) -> Reg:
        """Give a reduction its shared memory."""
        if uid not in self._totals:
            reg = self._totals[uid] = Reg(f"{part.name}s", SHARED_POINTER)
            size = self._threads.slots(axes) * part.dtype.bytes
            self.allocations.append(Allocate(reg, size, ALIGNMENT))
        return self._totals[uid]
