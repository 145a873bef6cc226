"""Statements of a GPU thread. Vectors, memory, and reductions differ from those of a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from ....ir.analysis import update_of
from ....ir.kernel_errors import KernelStatementError
from ....ir.loop import nodes as loop
from ....ir.loop.buffer_size import size_of
from ....ir.loop.combiners import COMBINERS, Combiner
from ....ir.loop.thread_roles import Atomic, Combined
from ....ir.loop.visit import loads, walk as preorder
from ....ir.sizes import storage_bytes
from ....ir.symbolic import FALSE, TRUE, Var, as_expr, ceildiv
from ....ir.thread.nodes import (
    Address,
    Allocate,
    Assign,
    AtomicUpdate,
    Const,
    If,
    MachineOp,
    Offset,
    Predicate,
    Reg,
    Source,
    Stmt,
    Store,
    Value,
)
from ....ir.thread.operations.nvidia import TRAP
from ....ir.thread.types import GLOBAL_POINTER, POINTER, SHARED_POINTER, VectorType
from ....schedules.intrinsics.registry import intrinsic_of
from ....schedules.launch.shared_memory import ALIGNMENT, alignment_of, partial_bytes, partial_name
from ....schedules.launch.threads import Threads
from ....target.gpus import THREAD, WARP
from .bounds_checks import Access
from .buffer_addresses import allocated_bytes
from .context import Lanes, LoweringContext
from .element_values import Elements
from .gpu_addresses import POINTERS, GpuBufferAddresses
from .gpu_intrinsics import expand, fragment_size
from .lane_scans import lane_scan
from .scratch import Scratch, ScratchTemporary
from .statements import StatementLowering
from .vector_access import assume_all_lanes, is_simple, vector_condition
from .vector_chunks import element_types
from .warp_reduce import Combination, Single, ThreadReduction

LINE: Final = 128
"""The alignment in bytes of a temporary in global memory."""

_COMBINERS: Final[dict[str, Combiner]] = {name: name for name in COMBINERS}


class ThreadLowering(StatementLowering):
    """The lowering of a kernel body; :attr:`allocations` must precede the result."""

    carries = False

    def __init__(
        self,
        memory: GpuBufferAddresses,
        scratch: Scratch,
        threads: Threads,
        name: str,
        *,
        checked: frozenset[Access] = frozenset(),
    ) -> None:
        """Initialize without allocations; ``checked`` are accesses without a proof."""
        super().__init__(memory, THREAD, Reg("table", POINTER), scratch, checked=checked)
        self._memory = memory
        self._threads = threads
        self._name = name
        self._totals: dict[tuple[int, str], Reg] = {}
        self._atomic = False
        self.pointer = Reg("scratch", GLOBAL_POINTER)
        self.bytes = as_expr(0)
        self.temporaries: list[ScratchTemporary] = []
        self.allocations: list[Allocate | Assign] = []

    def allocate(self, buffers: tuple[loop.Buffer, ...]) -> None:
        """Allocate temporaries in registers, shared memory, or the scratch buffer."""
        for buffer in buffers:
            if buffer.scope == "global":
                address = Offset(self.pointer, self.bytes)
                self.allocations.append(Assign(self.memory.add(buffer), address))
                self.temporaries.append(ScratchTemporary(buffer.name, size_of(buffer), self.bytes))
                self.bytes += ceildiv(size_of(buffer), LINE) * LINE
                continue
            size = allocated_bytes(buffer) or 0
            if buffer.scope == "fragment":
                size = storage_bytes(fragment_size(buffer), buffer.dtype)
            self.allocations.append(Allocate(self.memory.add(buffer), size, alignment_of(buffer)))

    def statement(self, statement: loop.Stmt, context: LoweringContext) -> None:
        """Append the lowered form of one statement to :attr:`out`."""
        if self._is_atomic(statement):
            outer, self._atomic = self._atomic, True
            super().statement(statement, context)
            self._atomic = outer
            return
        if isinstance(statement, loop.Block):
            if isinstance(statement.threads, Combined):
                self._combine(statement, statement.threads, context)
                return
            if intrinsic_of(statement) is not None:
                self._tensor(statement, context)
                return
        super().statement(statement, context)

    @staticmethod
    def _is_atomic(statement: loop.Stmt) -> bool:
        return isinstance(statement, loop.Block) and isinstance(statement.threads, Atomic)

    @staticmethod
    def _is_by_element(statement: loop.Stmt) -> bool:
        """Return whether threads update, or combine the partial results of, one element at a time.

        All threads of a warp combine, so a choice by the alignment of each thread is not around it.
        """
        role = statement.threads if isinstance(statement, loop.Block) else None
        return isinstance(role, Atomic | Combined)

    def _value(self, store: loop.Store) -> loop.Element:
        """Return the value of a store; a GPU has an instruction for the maximum with NaN."""
        return store.value

    def _store(self, store: loop.Store, context: LoweringContext) -> None:
        update = update_of(store) if self._atomic else None
        if update is None or store.buffer.scope not in POINTERS:
            super()._store(store, context)
            return
        source = replace(context.source, origins=context.source.origins | store.origins)
        context = replace(context, source=source)
        op, change = update
        target = self.memory.access(store.buffer, store.indices, context)
        elements = self._elements(context)
        elements.check(store.buffer, store.indices)
        value = elements.typed(change.right, store.buffer.dtype)
        address = Address(target.base, target.offset, target.alignment)
        self.out.append(AtomicUpdate(op, address, value, None, source, relaxed=True))

    def _fail(
        self, code: int, text: str, numbers: tuple[Value, Value], context: LoweringContext
    ) -> tuple[Stmt, ...]:
        """Trap: a GPU thread cannot report an error to the runtime table; the emulator does."""
        del code
        return (MachineOp(TRAP, numbers, (), replace(context.source, note=text)),)

    def _vectorized(self, nest: loop.For, count: int, context: LoweringContext) -> None:
        lanes = self._width(nest)
        single = self._atomic or any(map(self._is_by_element, preorder(nest.body)))
        single = single or self.checks.inside(nest.body) or lane_scan(nest) is not None
        if context.lanes is not None or not is_simple(nest.body) or lanes < 2 or single:
            self._unrolled(nest, range(count), context)
            return
        start = 0
        while start < count:
            while lanes > count - start:
                lanes //= 2
            self._vector(nest, start, lanes, context)
            start += lanes

    @staticmethod
    def _width(nest: loop.For) -> int:
        """Return the number of elements that one load or store instruction moves."""
        return THREAD.lanes(max((t.bits for t in element_types(nest)), default=32))

    def _vector(self, nest: loop.For, start: int, lanes: int, context: LoweringContext) -> None:
        """Lower some iterations to vector accesses if they are aligned, else to scalar ones."""
        if lanes == 1:
            self._unrolled(nest, range(start, start + 1), context)
            return
        lane = self._lane(nest.var, lanes)
        inner = context.binding(nest.var, as_expr(start) + lane)
        claim = context.assumptions.decide(vector_condition(nest, lane, lanes, inner))
        if claim is FALSE:
            self._unrolled(nest, range(start, start + lanes), context)
            return
        inner = replace(inner, assumptions=inner.assumptions.assuming(claim))
        at_once = self._at_once(nest, lane, lanes, inner)
        if claim is TRUE:
            self.out.extend(at_once)
            return
        outer, self.out = self.out, []
        self._unrolled(nest, range(start, start + lanes), context)
        single, self.out = tuple(self.out), outer
        self.out.append(If(Predicate(claim), at_once, single, self._source(nest, context)))

    def _at_once(
        self, nest: loop.For, lane: Var, lanes: int, context: LoweringContext
    ) -> tuple[Stmt, ...]:
        before, self._memory.aligned = self._memory.aligned, True
        running = assume_all_lanes(nest.body, nest.var)
        body = self.body(running, replace(context, lanes=Lanes(lane, lanes)))
        self._memory.aligned = before
        return body

    def _tensor(self, block: loop.Block, context: LoweringContext) -> None:
        """Lower a tensorized block to a warp-level instruction."""
        if self.checks.inside(block.body):
            raise KernelStatementError(
                f"the accesses of tensorized block {block.name!r} are not proved to be in bounds, "
                "and its instruction cannot check them",
                where=f"function {self._name!r}",
                hint="state the missing condition: fact(...)",
                parts=(block.name,),
            )
        source = Source(block.uid, block.name, block.origins | context.source.origins)
        lane = self._threads.number % WARP
        inner = replace(context, source=source)
        self.out.extend(expand(block, inner, self.memory, lane))

    def _combine(self, block: loop.Block, role: Combined, context: LoweringContext) -> None:
        """Combine the partial results of the threads, and store the total over each of them."""
        found = {r.buffer.name: r for r in loads(block.body)}
        if any(name not in found for name in role.parts):
            return  # The total is unused in this version of the kernel.
        parts = tuple(found[name] for name in role.parts)
        elements = self._elements(context)
        own = tuple(elements.value(part) for part in parts)
        source = replace(context.source, uid=block.uid, name=block.name)
        scratch = tuple(self._slots(block.uid, part.buffer, role.axes) for part in parts)
        combine: Combination
        if block.reducer is None:
            combine = Single(_COMBINERS[role.op], parts[0].dtype)
        else:
            combine = _Reduction(block.reducer, self, context)
        combination = ThreadReduction(self._threads, combine, scratch, source)
        totals = combination.total(own, role.axes)
        self.out.extend(combination.out)
        for part, total in zip(parts, totals, strict=True):
            element = self.memory.access(part.buffer, part.indices, context)
            address = Address(element.base, element.offset, element.alignment)
            self.out.append(Store(address, total, source=source))
        self.statement(block.body, replace(context, source=source))

    def _slots(self, uid: int, part: loop.Buffer, axes: tuple[str, ...]) -> Reg:
        """Return the shared memory of a reduction, allocated on first use."""
        key = uid, part.name
        if key not in self._totals:
            reg = self._totals[key] = Reg(partial_name(part.name), SHARED_POINTER)
            size = partial_bytes(self._threads, axes, part.dtype)
            self.allocations.append(Allocate(reg, size, ALIGNMENT))
        return self._totals[key]

    def elements_with(
        self, bound: Mapping[loop.Local, Value], out: list[Stmt], context: LoweringContext
    ) -> Elements:
        """Return the lowering of elements of given locals; ``out`` collects statements."""
        return Elements(self.memory, context, out, bound=bound)


@dataclass(frozen=True, slots=True)
class _Reduction:
    """A reducer as an operation on the values of two threads."""

    reducer: loop.Reducer
    lowering: ThreadLowering
    context: LoweringContext

    @property
    def identities(self) -> tuple[Const, ...]:
        """The identities of the reducer."""
        return tuple(Const(n.value, VectorType(n.dtype)) for n in self.reducer.identities)

    @property
    def exchangeable(self) -> bool:
        """False, as the rounding of results may depend on the order of the operands."""
        return False

    def __call__(
        self, left: tuple[Reg, ...], right: tuple[Value, ...], out: list[Stmt]
    ) -> tuple[Value, ...]:
        """Return the results."""
        reducer = self.reducer
        bound: dict[loop.Local, Value] = dict(zip(reducer.left, left, strict=True))
        for local, value in zip(reducer.right, right, strict=True):
            bound[local] = _kept(local.name, value, out, self.context)
        for local, value in reducer.binds:
            made = self.lowering.elements_with(bound, out, self.context).value(value)
            bound[local] = _kept(local.name, made, out, self.context)
        elements = self.lowering.elements_with(bound, out, self.context)
        return tuple(elements.value(result) for result in reducer.results)


def _kept(name: str, value: Value, out: list[Stmt], context: LoweringContext) -> Reg:
    reg = Reg(name, value.type)
    out.append(Assign(reg, value, context.source))
    return reg
