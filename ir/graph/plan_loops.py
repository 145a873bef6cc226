"""Memory planning of graph-level loops.

A carried value whose shape does not vary has one storage, which the body writes in place, or to
which the next value is copied at the end of each iteration. A stacked input is a view, as is a
stacked output of a loop whose number of iterations is known before. The loop itself keeps the
others: carried values whose shape varies, and stacked outputs of a loop with a condition.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from ...errors import MalformedProgramError
from ..identity import NO_ORIGIN, Origins
from ..symbolic import Bool, Const, Expr, Var, eq, free_vars, is_proved, to_text
from .in_place_updates import InPlaceUpdates, Roots
from .live_ranges import tensor_bytes
from .loops import inner_facts, result_fields, varying_symbols
from .nodes import (
    Binding,
    Branch,
    CallDPSLibrary,
    CallTIR,
    GraphFunc,
    Info,
    Loop,
    LoopParam,
    MatchCast,
    ObjectInfo,
    Operand,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Value,
    ViewTensor,
    operand_info,
)
from .visit import info_terms

ALIGNMENT = 16
"""The alignment in bytes of the tensors of kernels; a slice that may be misaligned is copied."""


@dataclass(frozen=True, slots=True)
class Move:
    """The copy of a value to a tensor, the memory of the tensor, and that of the value."""

    target: Value
    value: Operand
    written: Roots
    roots: Roots
    reason: str

    def blocks(self, other: Move) -> bool:
        """Return whether the other copy reads the memory that this one writes."""
        return other is not self and bool(self.written & other.roots)


_T = TypeVar("_T")
_ZERO = Const(0)


class LoopPlanner(Protocol):
    """The planning of a function, of which a loop is a part.

    ``symbols`` are those in scope, ``replaced`` and ``tuples`` the operands that replace values,
    ``placed`` the tensors that are slices of another one, with their offsets, and ``growing`` the
    carried values that loops keep in blocks.
    """

    func: GraphFunc
    decisions: InPlaceUpdates
    returned: frozenset[Operand]
    symbols: set[Var]
    replaced: dict[Value, Operand]
    tuples: dict[Value, tuple[Operand, ...]]
    placed: dict[Value, tuple[Value, Expr]]
    growing: set[Operand]

    def fresh(self, name: str, info: Info) -> Value:
        """Return a new value with an unused name."""
        ...

    def changed(self, operand: Operand) -> Operand:
        """Return the operand that replaces an operand."""
        ...

    def bindings(self, bindings: Sequence[Binding]) -> Iterator[Binding]:
        """Yield the planned bindings of a list."""
        ...

    def flat(self, results: Sequence[Operand]) -> tuple[Operand, ...]:
        """Return operands, of which tuples are replaced by their fields."""
        ...

    def allocations(
        self, origins: Origins, fields: Sequence[tuple[Value, TensorInfo]]
    ) -> Iterator[Binding]:
        """Yield the allocations of tensors."""
        ...

    def copy(
        self, source: Operand, target: Value, reason: str, origins: Origins = NO_ORIGIN
    ) -> Binding:
        """Return the copy of a tensor."""
        ...

    def equal_shapes(self, operand: Operand, name: str, wanted: Info) -> Iterator[Binding]:
        """Yield checks that an operand has the shape of an annotation, unless it is proved."""
        ...

    def holds(self, claim: Bool, message: str) -> Iterator[Binding]:
        """Yield the check of a condition, unless it is proved."""
        ...

    def kept(self, result: Operand) -> Generator[Binding, None, Operand]:
        """Yield a copy of a result in memory that is written later."""
        ...

    def moves(self, moves: Sequence[Move]) -> Iterator[Binding]:
        """Yield copies of values as if they happened at the same time."""
        ...

    def collect(self, into: list[Binding], steps: Generator[Binding, None, _T]) -> _T:
        """Append the bindings that a generator yields; return its result."""
        ...


@dataclass
class LoopPlan:
    """The planning of one loop."""

    planner: LoopPlanner
    binding: Binding
    loop: Loop
    varying: frozenset[Var] = frozenset()
    fixed: dict[int, Value] = field(default_factory=dict[int, Value])
    stacks: dict[int, Value] = field(default_factory=dict[int, Value])

    def bindings(self) -> Iterator[Binding]:
        """Yield the bindings before the loop, the loop, and the selection of its results."""
        planner, loop = self.planner, self.loop
        outer = set(planner.symbols)
        self.varying = frozenset(varying_symbols(loop, outer))
        kept: list[LoopParam] = []
        for position, param in enumerate(loop.carried):
            target = yield from self.initial(position, param)
            if self.is_fixed(param):
                self.fixed[position] = planner.replaced[param.value] = target
            else:
                kept.append(LoopParam(param.value, target))
                planner.growing.add(param.value)
        yield from self.stacked()
        sources: list[Value] = []
        for param in loop.elements:
            sources.append((yield from self.source(param)))  # noqa: PERF401 - it yields bindings
        planner.symbols |= self.varying
        condition = loop.condition
        if condition is not None:
            bindings = tuple(planner.bindings(condition.bindings))
            condition = Branch(bindings, tuple(map(planner.changed, condition.results)))
        body = self.body(sources)
        planner.symbols = outer
        yield from self.result(replace(loop, carried=tuple(kept), elements=(), condition=condition,
                                       body=body))  # fmt: skip

    def is_fixed(self, param: LoopParam) -> bool:
        """Return whether the shape of a carried value is the same in every iteration."""
        terms = info_terms(param.value.info)
        return not any(free_vars(t) & self.varying for t in terms)

    # ------------------------------------------------------------ before the loop

    def initial(self, position: int, param: LoopParam) -> Generator[Binding, None, Value]:
        """Yield the copy of an initial value, unless its memory becomes that of the value."""
        planner, name = self.planner, param.value.name
        given = planner.changed(param.given)
        reason = planner.decisions.reason(self.binding.value, position)
        wanted = param.value.info if self.is_fixed(param) else operand_info(given)
        if not isinstance(wanted, TensorInfo):
            raise MalformedProgramError(
                f"carried value {name!r} is not a tensor", where=f"loop {self.binding.value.name!r}"
            )
        yield from planner.equal_shapes(given, name, wanted)
        if not reason and isinstance(given, Value):
            if given.info == wanted and given not in planner.returned:
                return given
            tensor = planner.fresh(name, wanted)
            yield Binding(tensor, ViewTensor(given, _ZERO, wanted), self.binding.origins)
            return tensor
        tensor = planner.fresh(name, wanted)
        yield from planner.allocations(self.binding.origins, ((tensor, wanted),))
        text = f"the initial value of {name!r}: {reason}"
        yield planner.copy(given, tensor, text, self.binding.origins)
        return tensor

    def stacked(self) -> Iterator[Binding]:
        """Yield the storages of the stacked outputs of a loop with a known number of iterations."""
        planner, loop, value = self.planner, self.loop, self.binding.value
        if not loop.exact:
            return
        infos = result_fields(loop, value.info)
        first = len(loop.carried)
        for position, info in enumerate(infos[first:], first):
            if isinstance(info, TensorInfo):
                tensor = planner.fresh(f"{value.name}_{position}", info)
                self.stacks[position] = tensor
                yield from planner.allocations(self.binding.origins, ((tensor, info),))

    def source(self, param: LoopParam) -> Generator[Binding, None, Value]:
        """Yield an alias of a constant that is a stacked input; return its value."""
        planner, given = self.planner, self.planner.changed(param.given)
        info = operand_info(given)
        if self.loop.count is not None and isinstance(info, TensorInfo) and info.shape:
            claim = eq(info.shape[0], self.loop.count)
            text = f"{to_text(info.shape[0])} == {to_text(self.loop.count)}"
            message = f"stacked input of {param.value.name!r}, dimension 0: {text}"
            yield from planner.holds(claim, message)
        if isinstance(given, Value):
            return given
        alias = planner.fresh(f"{param.value.name}_slices", info)
        yield Binding(alias, MatchCast(given, info), self.binding.origins)
        return alias

    # ------------------------------------------------------------ in the loop

    def body(self, sources: Sequence[Value]) -> Branch:
        """Return the planned body, whose results are those that the loop keeps."""
        planner, loop = self.planner, self.loop
        made: list[Binding] = []
        for param, source in zip(loop.elements, sources, strict=True):
            made += self.element(param, source)
        direct = dict(self.placed())
        planner.placed |= direct
        made += planner.bindings(loop.body.bindings)
        for position, stack in self.stacks.items():
            operand = loop.body.results[position]
            if operand not in direct:
                (value,) = planner.flat((operand,))
                made += self.kept_slice(value, stack)
        moves = [
            Move(
                target,
                planner.changed(loop.body.results[position]),
                planner.decisions.roots(loop.carried[position].value),
                planner.decisions.roots(loop.body.results[position]),
                f"the next value of {loop.carried[position].value.name!r}",
            )
            for position, target in self.fixed.items()
        ]
        moves = [m for m in moves if m.roots != m.written or len(m.roots) != 1]
        written = frozenset(r for m in moves for r in m.written)
        rest = [p for p in range(len(loop.body.results)) if not self.is_placed(p)]
        results: list[Operand] = []
        for position in rest:
            operand = loop.body.results[position]
            if planner.decisions.roots(operand) & written:
                results.append(planner.collect(made, planner.kept(operand)))
            else:
                results += planner.flat((operand,))
        made += planner.moves(moves)
        return Branch(tuple(made), tuple(results))

    def is_placed(self, position: int) -> bool:
        """Return whether a result has a storage of its own, so that the loop need not keep it."""
        return position in self.fixed or position in self.stacks

    def element(self, param: LoopParam, source: Value) -> Iterator[Binding]:
        """Yield the slice of a stacked input: a view, or a copy if it may be misaligned."""
        planner, info = self.planner, param.value.info
        if not isinstance(info, TensorInfo):
            return
        size = tensor_bytes(info)
        view = ViewTensor(source, self.loop.index * size, info)
        origins = self.binding.origins
        if self.is_aligned(size):
            yield Binding(param.value, view, origins)
            return
        part = planner.fresh(f"{param.value.name}_slice", info)
        yield Binding(part, view, origins)
        yield from planner.allocations(origins, ((param.value, info),))
        yield planner.copy(part, param.value, "slices may be misaligned", origins)

    def placed(self) -> Iterator[tuple[Value, tuple[Value, Expr]]]:
        """Yield the slices of stacked outputs that a kernel writes directly, with their offset."""
        results = self.loop.body.results
        for position, stack in self.stacks.items():
            operand = results[position]
            made = next((b for b in self.loop.body.bindings if b.value is operand), None)
            if made is None or results.count(operand) > 1 or not isinstance(operand, Value):
                continue
            right, info = made.right, operand.info
            writes = isinstance(right, CallTIR | CallDPSLibrary) and len(right.outputs) == 1
            if isinstance(right, CallTIR) and right.updates:
                writes = False
            if writes and isinstance(info, TensorInfo):
                size = tensor_bytes(info)
                if self.is_aligned(size):
                    yield operand, (stack, self.loop.index * size)

    def kept_slice(self, value: Operand, stack: Value) -> Iterator[Binding]:
        """Yield the copy of a slice to a stacked output."""
        planner, info = self.planner, operand_info(value)
        if not isinstance(info, TensorInfo):
            return
        size = tensor_bytes(info)
        part = planner.fresh(f"{stack.name}_slice", info)
        yield Binding(part, ViewTensor(stack, self.loop.index * size, info), self.binding.origins)
        yield planner.copy(value, part, f"a slice of {stack.name!r}", self.binding.origins)

    def is_aligned(self, size: Expr) -> bool:
        """Return whether slices of a size in bytes are aligned."""
        return is_proved(eq(size % ALIGNMENT, 0), inner_facts(self.loop, self.planner.func.facts))

    # ------------------------------------------------------------ after the loop

    def result(self, loop: Loop) -> Iterator[Binding]:
        """Yield the planned loop and the selection of the results that it keeps."""
        planner, value = self.planner, self.binding.value
        infos = result_fields(self.loop, value.info)
        rest = [k for k in range(len(infos)) if not self.is_placed(k)]
        kept = tuple(infos[k] for k in rest)
        info: Info = kept[0] if len(kept) == 1 else TupleInfo(kept) if kept else ObjectInfo()
        whole = value if len(rest) == len(infos) else Value(value.uid, value.name, info)
        yield replace(self.binding, value=whole, right=loop)
        fields: dict[int, Operand] = {**self.fixed, **self.stacks}
        for k, position in enumerate(rest):
            if len(rest) == 1:
                fields[position] = whole
                continue
            item = planner.fresh(f"{value.name}_{position}", kept[k])
            yield Binding(item, TupleItem(whole, k), self.binding.origins)
            fields[position] = item
        for info in infos:
            planner.symbols.update(t for t in info_terms(info) if isinstance(t, Var))
        results = tuple(fields[k] for k in range(len(infos)))
        if len(results) != 1:
            planner.tuples[value] = results
        for only in results if len(results) == 1 else ():
            if only is not value:
                planner.replaced[value] = only
