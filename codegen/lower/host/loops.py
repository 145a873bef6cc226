"""Lowering of loops of memory-stage functions to loops of host IR.

Memory planning leaves the carried values whose shape varies, and the stacked outputs of loops whose
number of iterations is not known before. Both are in blocks on the heap that the loop owns. At the
end of each iteration, the storage of the next value of a carried value becomes its block, or is
copied to a block of its own size. The block of a stacked output, and that of a carried value that
grows at its end, grow to twice their capacity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from ....ir.graph.call_conditions import CallCondition
from ....ir.graph.live_ranges import tensor_bytes
from ....ir.graph.loops import result_fields, varying_symbols
from ....ir.graph.nodes import (
    DEFAULT_DEVICE,
    Binding,
    GrowTensor,
    Info,
    Loop,
    LoopParam,
    Operand,
    TensorInfo,
    Value,
)
from ....ir.graph.visit import all_bindings
from ....ir.host import nodes as host
from ....ir.symbolic import TRUE, Expr, SymInt, Var, eq, substitute, to_text
from ...manifest import CheckSite
from ...rtlib import layout
from .context import CALL, LATE, HostContext, integer
from .storage import Storages
from .streams import Streams

_FIRST_CAPACITY: Final = 4
"""The number of slices in the first block of a stacked output."""


class Emitter(Protocol):
    """The lowering of the bindings of a function, of which a loop is one."""

    context: HostContext
    storages: Storages
    streams: Streams
    depth: int
    tuples: dict[Value, tuple[Operand, ...]]

    def run(self, bindings: Sequence[Binding]) -> None:
        """Emit a list of bindings in order."""
        ...

    def release(self, slot: int) -> None:
        """Emit the release of the block in a slot, if there is one."""
        ...

    def measured(self, size: Expr) -> None:
        """Emit checks of a size that is not known at entry."""
        ...

    def holds(self, condition: CallCondition) -> None:
        """Emit a check of a condition, unless it is proved."""
        ...


@dataclass
class _Block:
    """A block on the heap: its slots, and the variable with its address.

    During a copy, the new block is in the second slot, so that an error frees both.
    """

    slot: int
    address: host.Local
    capacity: host.Local | None = None
    """The bytes of the block of a carried value that grows; 0 for the initial value."""

    @property
    def next_slot(self) -> int:
        return self.slot + 1


@dataclass
class _Stack:
    """A stacked output: its block, the size of a slice, and the capacity in slices."""

    block: _Block
    size: Expr
    capacity: host.Local


@dataclass
class LoopEmitter:
    """The emitter of one loop."""

    bindings: Emitter
    binding: Binding
    loop: Loop
    carried: list[_Block] = field(default_factory=list[_Block])
    stacks: list[_Stack] = field(default_factory=list[_Stack])
    sizes: dict[Var, host.Local] = field(default_factory=dict[Var, host.Local])
    grown: dict[Operand, Value] = field(default_factory=dict[Operand, Value])
    """The values that are carried values of this loop with more elements at their end."""

    def __post_init__(self) -> None:
        """Find the carried values that grow."""
        self.grown = {
            b.value: b.right.source
            for b in all_bindings(self.loop.body.bindings)
            if isinstance(b.right, GrowTensor)
        }

    @property
    def context(self) -> HostContext:
        """The context of the function."""
        return self.bindings.context

    @property
    def carried_values(self) -> tuple[Value, ...]:
        """The carried values, in the order of their blocks."""
        return tuple(p.value for p in self.loop.carried)

    def emit(self) -> None:
        """Emit the loop; its results are tensors in the blocks."""
        context, loop, name = self.context, self.loop, self.binding.value.name
        varying = varying_symbols(loop, context.bound)[1:]
        limit = None
        if loop.count is not None:
            limit = context.assign("count", context.ready(loop.count, f"count of loop {name!r}"))
        index = context.assign(loop.index.name, integer(0))
        going = context.assign("going", integer(1))
        slots = [b.late for b in self.bindings.storages.loops[self.binding.value]]
        for param, slot in zip(loop.carried, slots[::2], strict=False):
            self.start(param, slot, varying)
        for operand, slot in zip(loop.stacked, slots[2 * len(loop.carried) :: 2], strict=True):
            self.start_stack(operand, slot)
        with context.nested() as body:
            self.iteration(index, going)
        more: host.Value = host.Comparison("ne", going, integer(0))
        if limit is not None:
            more = host.Both(more, host.Comparison("lt", index, limit))
        context.emit(host.While(more, tuple(body)))
        self.finish(index)

    # ------------------------------------------------------------ before the loop

    def start(self, param: LoopParam, slot: int, varying: Sequence[Var]) -> None:
        """Emit the first address of a carried value, and the first values of its symbols."""
        context, name = self.context, param.value.name
        self.clear(slot)
        address = context.assign(name, context.pointer(param.given), "ptr")
        grows = any(source is param.value for source in self.grown.values())
        capacity = context.assign("capacity", integer(0)) if grows else None
        self.carried.append(_Block(slot, address, capacity))
        formal = context.dims(param.value)
        for wanted, dim in zip(formal, context.dims(param.given), strict=True):
            if isinstance(wanted, Var) and wanted in varying and wanted not in self.sizes:
                given = context.ready(dim, f"initial value of {name!r}")
                self.sizes[wanted] = context.assign(wanted.name, given)

    def start_stack(self, operand: Operand, slot: int) -> None:
        """Emit the first block of a stacked output."""
        context = self.context
        self.clear(slot)
        size = tensor_bytes(context.tensor(operand))
        self.bindings.measured(size)
        capacity = context.assign("capacity", integer(_FIRST_CAPACITY))
        bytes_ = host.Arithmetic("mul", context.ready(size, "a stacked output"), capacity)
        address = context.local("stack", "ptr")
        context.emit(host.Assign(address, self.allocated(slot, bytes_)))
        self.stacks.append(_Stack(_Block(slot, address), size, capacity))

    def clear(self, slot: int) -> None:
        """Emit the release of the block that an earlier execution of the loop left in a slot."""
        if self.bindings.depth:
            self.bindings.release(slot)

    def allocated(self, slot: int, size: host.Value) -> host.Value:
        """Emit the allocation of a block in an empty slot."""
        context = self.context
        rounded = context.assign("size", host.Arithmetic("max", size, integer(layout.ALIGNMENT)))
        where = context.number(DEFAULT_DEVICE), integer(0)
        block = context.invoke("tw_allocate_on", CALL, rounded, *where, kind="ptr")
        present = host.Comparison("ne", block, host.NullPointer())
        context.guard(present, CheckSite("memory"), rounded)
        context.emit(host.Write("ptr", LATE, integer(8 * slot), block))
        return block

    # ------------------------------------------------------------ in the loop

    def iteration(self, index: host.Local, going: host.Local) -> None:
        """Emit one iteration, which sets ``going`` to 0 if the condition is false."""
        context, loop = self.context, self.loop
        stop = context.local("stop")
        context.emit(host.Observe(CALL, integer(layout.CALL_STOP), stop))
        runs = host.Comparison("eq", stop, integer(0))
        context.guard(runs, CheckSite("stopped", self.binding.value.name))
        context.bind(loop.index, index, natural=True)
        if loop.count is not None:
            context.held.add(loop.index < loop.count)
        for symbol, value in self.sizes.items():
            context.bind(symbol, value, natural=True)
        for param, block in zip(loop.carried, self.carried, strict=True):
            context.pointers[param.value] = block.address
            self.alike(param.value.info, param.given, param.value.name, {})
        self.bindings.depth += 1
        if loop.condition is None:
            self.body(index)
        else:
            self.bindings.run(loop.condition.bindings)
            self.bindings.streams.join()
            condition = context.fetch("u8", context.pointer(loop.condition.results[0]), 0, 1)
            with context.nested() as then:
                self.body(index)
            ended = (host.Assign(going, integer(0)),)
            context.emit(
                host.When(host.Comparison("ne", condition, integer(0)), tuple(then), ended)
            )
        self.bindings.depth -= 1

    def alike(
        self, formal: Info, operand: Operand, name: str, values: Mapping[Var, SymInt]
    ) -> None:
        """Emit checks of the dimensions that do not vary by themselves."""
        shape = formal.shape if isinstance(formal, TensorInfo) else None
        for axis, (wanted, dim) in enumerate(
            zip(shape or (), self.context.dims(operand), strict=True)
        ):
            if isinstance(wanted, Var) and wanted in self.sizes and wanted not in values:
                continue
            claim = eq(dim, substitute(wanted, values))
            if wanted is not dim and claim is not TRUE:
                text = f"carried value {name!r}, dimension {axis}: {to_text(claim)}"
                self.bindings.holds(CallCondition(claim, text))

    def body(self, index: host.Local) -> None:
        """Emit the body, and the copies of its results to blocks."""
        context, loop, value = self.context, self.loop, self.binding.value
        self.bindings.run(loop.body.bindings)
        self.bindings.streams.join()
        for operand, stack in zip(loop.stacked, self.stacks, strict=True):
            self.push(operand, stack, index)
        triples = zip(loop.carried, self.carried, loop.next_values, strict=True)
        moved = {k: s for (v, k), s in self.bindings.storages.moved.items() if v is value}
        changed = [
            (block, operand, moved.get(k))
            for k, (param, block, operand) in enumerate(triples)
            if operand is not param.value and self.grown.get(operand) is not param.value
        ]
        values: dict[Var, SymInt] = {}
        for param, operand in zip(loop.carried, loop.next_values, strict=True):
            pairs = zip(context.dims(param.value), context.dims(operand), strict=True)
            for wanted, dim in pairs:
                if isinstance(wanted, Var) and wanted in self.sizes:
                    values.setdefault(wanted, dim)
        for param, operand in zip(loop.carried, loop.next_values, strict=True):
            self.alike(param.value.info, operand, param.value.name, values)
        for block, operand, storage in changed:
            if storage is None:
                self.renew(block, operand)
        sizes = [
            (self.sizes[v], context.assign(v.name, context.ready(e, f"next value of {v.name}")))
            for v, e in values.items()
            if isinstance(e, Expr)
        ]
        for block, _, storage in changed:
            self.replace(block, block.next_slot if storage is None else storage.late)
            if block.capacity is not None:
                context.emit(host.Assign(block.capacity, integer(0)))
        for size, new in sizes:
            context.emit(host.Assign(size, new))
        context.emit(host.Assign(index, host.Arithmetic("add", index, integer(1))))

    def grow(self, source: Value, info: TensorInfo) -> host.Local:
        """Emit the growth of a carried value to the size of an annotation; return its address.

        A block of insufficient capacity moves to one of at least twice the capacity.
        """
        context, block = self.context, self.carried[self.carried_values.index(source)]
        size, where = tensor_bytes(info), f"growth of {source.name!r}"
        self.bindings.measured(size)
        used = context.ready(tensor_bytes(context.tensor(source)), where)
        needed = context.assign("needed", host.Arithmetic("max", context.ready(size, where), used))
        capacity = block.capacity
        if capacity is None:
            raise TypeError(f"{source.name!r} has a block without capacity")
        with context.nested() as more:
            twice = host.Arithmetic("mul", capacity, integer(2))
            wanted = context.assign("wanted", host.Arithmetic("max", needed, twice))
            made = self.allocated(block.next_slot, wanted)
            context.copy(made, block.address, used)
            self.replace(block, block.next_slot)
            context.emit(host.Assign(capacity, wanted))
        context.emit(host.When(host.Comparison("gt", needed, capacity), tuple(more)))
        return block.address

    def renew(self, block: _Block, operand: Operand) -> None:
        """Emit the copy of a next value to a new block."""
        context = self.context
        size = tensor_bytes(context.tensor(operand))
        self.bindings.measured(size)
        count = context.ready(size, "a carried value")
        made = self.allocated(block.next_slot, count)
        context.copy(made, context.pointer(operand), count)

    def replace(self, block: _Block, slot: int) -> None:
        """Emit the release of the old block, and the move of the new one from its slot."""
        context = self.context
        self.bindings.release(block.slot)
        made = host.Read("ptr", LATE, integer(8 * slot))
        context.emit(
            host.Assign(block.address, made),
            host.Write("ptr", LATE, integer(8 * block.slot), block.address),
            host.Write("ptr", LATE, integer(8 * slot), host.NullPointer()),
        )

    def push(self, operand: Operand, stack: _Stack, index: host.Local) -> None:
        """Emit the copy of a slice to the end of a stacked output, which grows if it is full."""
        context, block = self.context, stack.block
        size = context.ready(stack.size, "a stacked output")
        with context.nested() as grow:
            twice = host.Arithmetic("mul", stack.capacity, integer(2))
            made = self.allocated(block.next_slot, host.Arithmetic("mul", size, twice))
            context.copy(made, block.address, host.Arithmetic("mul", size, index))
            self.replace(block, block.next_slot)
            context.emit(host.Assign(stack.capacity, twice))
        context.emit(host.When(host.Comparison("ge", index, stack.capacity), tuple(grow)))
        end = host.Moved(block.address, host.Arithmetic("mul", size, index))
        context.copy(end, context.pointer(operand), size)

    # ------------------------------------------------------------ after the loop

    def finish(self, index: host.Local) -> None:
        """Bind the symbols of the results, and define the results."""
        context, loop, value = self.context, self.loop, self.binding.value
        infos = result_fields(loop, value.info)
        made: list[Value] = []
        after: dict[Var, SymInt] = {}
        for param, info in zip(loop.carried, infos, strict=False):
            shape = info.shape if isinstance(info, TensorInfo) else None
            for formal, dim in zip(context.dims(param.value), shape or (), strict=True):
                if isinstance(formal, Var) and formal in self.sizes:
                    self.bind(dim, self.sizes[formal])
                    after.setdefault(formal, dim)
        for info in infos[len(loop.carried) :]:
            if isinstance(info, TensorInfo) and info.shape:
                self.bind(info.shape[0], index)
        blocks = [*self.carried, *(s.block for s in self.stacks)]
        for info, block in zip(infos, blocks, strict=True):
            field_ = Value(-1, block.address.name, info)
            context.pointers[field_] = block.address
            made.append(field_)
        for param, result in zip(loop.carried, made, strict=False):
            self.alike(param.value.info, result, param.value.name, after)
        if len(made) == 1:
            context.pointers[value] = blocks[0].address
        elif made:
            self.bindings.tuples[value] = tuple(made)

    def bind(self, dim: Expr, size: host.Value) -> None:
        """Emit the binding of a symbol of the results, or the check of a known dimension."""
        context = self.context
        if isinstance(dim, Var) and dim not in context.bound:
            context.bind(dim, size, natural=True)
            return
        where = f"result of loop {self.binding.value.name!r}"
        expected = context.ready(dim, where)
        site = CheckSite("check", f"{where}: {to_text(dim)}", names=("found", "expected"))
        context.guard(host.Comparison("eq", size, expected), site, size, expected)
