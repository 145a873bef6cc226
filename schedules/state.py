"""A program with the steps that made it, and how a step makes the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from ..ir.analysis import Tree, tree_of
from ..ir.graph.nodes import GraphFunc
from ..ir.identity import STEP_STRIDE, UidSource
from ..ir.loop.nodes import INTRINSIC, Block, Buffer, For, PrimFunc
from ..ir.module import Module
from ..ir.symbolic import Var
from ..ir.target import Target
from .coerce import Context, coerced
from .naming import unknown
from .primitive import Primitive, Query, Rewrite, Step
from .problem import Problem, ScheduleError, StepError
from .queries import find
from .record import located, record
from .refs import (
    BindingRef,
    BlockRef,
    BufferRef,
    FunctionRef,
    Gone,
    LoopRef,
    Move,
    Ref,
    kind_of,
    label,
)
from .trace import ResultOf, Trace

_S = TypeVar("_S", bound=Step)
_NO_RESULTS: Mapping[Ref, ResultOf] = MappingProxyType({})


def _nothing_known() -> dict[object, object]:
    return {}


class LostHandleError(ScheduleError):
    """A handle that points at nothing; checks report it before a rewrite can meet it."""

    title = "Lost handle"


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A module, the trace that made it, and the target it is made for.

    ``results`` are the handles that each step of the trace gave; ``known`` finds the step that
    gave a handle last. ``first`` numbers the first step, above all that already minted uids.
    ``memo`` keeps what steps have found out about this state, for others to ask again; it is no
    part of what the state is, and goes with it.

    Examples
    --------
    >>> from ..ir.module import Module
    >>> State.start(Module()).ordinal
    1
    """

    module: Module
    trace: Trace = field(default_factory=Trace)
    target: Target | None = None
    results: tuple[tuple[Ref, ...], ...] = ()
    known: Mapping[Ref, ResultOf] = field(default_factory=lambda: _NO_RESULTS)
    moves: tuple[Move, ...] = ()
    first: int = 1
    memo: dict[object, object] = field(default_factory=_nothing_known, init=False, repr=False)

    @classmethod
    def start(cls, module: Module, target: Target | None = None) -> State:
        """Begin with a module and an empty trace."""
        return cls(module, target=target, first=1 + _last_step(module))

    @property
    def ordinal(self) -> int:
        """The number of the next step, from which it mints uids."""
        return self.first + len(self.trace)

    # ------------------------------------------------------------ looking up

    def tree(self, function: str) -> Tree:
        """The index of a loop-level function."""
        return tree_of(self.module.prim(function))

    def loop(self, ref: LoopRef) -> For:
        """The loop a handle points at."""
        found = self.tree(ref.function).loops.get(ref.uid)
        if found is None:
            raise self._lost(ref)
        return found

    def block(self, ref: BlockRef) -> Block:
        """The block a handle points at."""
        found = self.tree(ref.function).blocks.get(ref.uid)
        if found is None:
            raise self._lost(ref)
        return found

    def buffer(self, ref: BufferRef) -> Buffer:
        """The buffer a handle points at."""
        found = self.tree(ref.function).buffers.get(ref.uid)
        if found is None:
            raise self._lost(ref)
        return found

    def _lost(self, ref: Ref) -> LostHandleError:
        return LostHandleError(self._absence(ref) or f"{kind_of(ref)} {label(ref)} exists")

    def missing(self, step: Step) -> Iterator[Problem]:
        """Problems of requirement 0: handles of a step that point at nothing."""
        for ref in dict.fromkeys(step.refs()):
            absence = self._absence(ref)
            if absence is not None:
                yield Problem(0, absence, (ref,))

    def _absence(self, ref: Ref) -> str | None:
        function = self.module.functions.get(ref.function)
        if function is None:
            return unknown("function", ref.function, list(self.module.functions), "the module")
        uids = _uids(ref, function)
        if uids is None:
            level = "loop" if isinstance(function, PrimFunc) else "graph"
            return f"{ref.function!r} is a {level}-level function and has no {kind_of(ref)}s"
        if isinstance(ref, FunctionRef) or ref.uid in uids:
            return None
        return self._fate(ref) or unknown(
            kind_of(ref), label(ref), list(uids.values()), f"function {ref.function!r}"
        )

    def _fate(self, ref: Ref) -> str | None:
        for move in reversed(self.moves):
            fate = move.moved.get(ref)
            if isinstance(fate, Gone):
                return (
                    f"{kind_of(ref)} {label(ref)!r} is gone: step {move.ordinal} ({move.step}) "
                    f"{fate.reason}"
                )
            if fate is not None:
                into = ", ".join(label(r) for r in fate)
                return (
                    f"{kind_of(ref)} {label(ref)!r} is no more: step {move.ordinal} "
                    f"({move.step}) turned it into {into}"
                )
        return None

    def enclosed(self, step: Step) -> Iterator[Problem]:
        """Problems of requirement 0: handles of a step that are out of its reach in a block.

        What is inside of a tensorized block is the instruction's. Steps that move, copy or divide
        blocks work on those that are in no other block.
        """
        for ref in dict.fromkeys(step.refs()):
            if isinstance(ref, LoopRef | BlockRef):
                tree = self.tree(ref.function)
                node = self.loop(ref) if isinstance(ref, LoopRef) else self.block(ref)
                blocks = [s for s in tree.ancestors(node) if isinstance(s, Block)]
                message = _out_of_reach(step, label(ref), blocks)
                if message is not None:
                    yield Problem(0, message, (ref,))

    def symbols(self, step: Step) -> Mapping[str, Var]:
        """The symbols that the text of a step's terms may name: those of its first function."""
        ref = next(step.refs(), None)
        function = None if ref is None else self.module.functions.get(ref.function)
        if not isinstance(function, PrimFunc):
            return {}
        return {v.name: v for v in tree_of(function).symbols()}

    # ------------------------------------------------------------ applying

    def prepared(self, step: _S) -> _S:
        """A step with its values brought to the types of its fields."""
        function = next((ref.function for ref in step.refs()), None)

        def named(kind: type[Ref], name: str) -> Ref:
            return find(self, kind, name, function)

        return coerced(step, Context(lambda: self.symbols(step), named))

    def check(self, step: Primitive) -> tuple[Problem, ...]:
        """Everything that keeps a step from applying; nothing means it is legal."""
        return tuple(self.prepared(step).check(self))

    def apply(self, step: Step) -> Applied:
        """Apply a step and record it.

        Raises
        ------
        StepError
            If a requirement does not hold; the state stays what it was.
        """
        step = self.prepared(step)
        problems = tuple(step.check(self) if isinstance(step, Primitive) else self.missing(step))
        if problems:
            raise StepError(step.title(), problems)
        state = located(self, step)
        rewrite = _run(step, state)
        return Applied(record(state, step, rewrite), rewrite.results, rewrite)

    def follow(self, ref: Ref) -> tuple[Ref, ...]:
        """Where a handle points now, after all steps: itself, its successors, or nothing."""
        found: list[Ref] = [ref]
        for move in self.moves:
            found = [new for old in found for new in _moved(move, old)]
        return tuple(found)

    def minted(self) -> UidSource:
        """A source of uids for the next step."""
        return UidSource(step=self.ordinal)

    def with_module(self, module: Module) -> State:
        """The same state of another module, outside of the trace; for tests and previews."""
        return replace(self, module=module)


@dataclass(frozen=True, slots=True, eq=False)
class Applied:
    """A new state, the handles its last step gave, and what it did."""

    state: State
    results: tuple[Ref, ...]
    rewrite: Rewrite


_OUTERMOST = ("caching", "placement", "reduction")
"""Families whose steps work on blocks that are in no other block, and on the loops around."""


def _out_of_reach(step: Step, name: str, blocks: list[Block]) -> str | None:
    """Say why a step may not look into the blocks around what it points at."""
    for block in blocks:
        intrinsic = dict(block.annotations).get(INTRINSIC)
        if intrinsic is not None:
            return (
                f"{name!r} is inside of block {block.name!r}, whose work {intrinsic} does; "
                f"unannotate(target={block.name}, key={INTRINSIC!r}) gives it up"
            )
    if blocks and step.family in _OUTERMOST:
        return f"{name!r} is inside of block {blocks[0].name!r}, and {step.verb()} works outside"
    return None


def _run(step: Step, state: State) -> Rewrite:
    if isinstance(step, Query):
        return Rewrite(state.module, step.run(state))
    if isinstance(step, Primitive):
        return step.rewrite(state)
    raise TypeError(f"{type(step).__name__} is neither a primitive nor a query")


def _moved(move: Move, ref: Ref) -> tuple[Ref, ...]:
    fate = move.moved.get(ref, (ref,))
    return () if isinstance(fate, Gone) else fate


def _uids(ref: Ref, function: GraphFunc | PrimFunc) -> Mapping[int, str] | None:
    if isinstance(ref, FunctionRef):
        return {}
    if isinstance(function, GraphFunc):
        if not isinstance(ref, BindingRef):
            return None
        values = (*(p.value for p in function.params), *(b.value for b in function.bindings))
        return {v.uid: v.name for v in values}
    tree = tree_of(function)
    match ref:
        case LoopRef():
            return {uid: loop.var.name for uid, loop in tree.loops.items()}
        case BlockRef():
            return {uid: block.name for uid, block in tree.blocks.items()}
        case BufferRef():
            return {uid: buffer.name for uid, buffer in tree.buffers.items()}
        case BindingRef():
            return None


def _last_step(module: Module) -> int:
    largest = 0
    for function in module:
        if isinstance(function, PrimFunc):
            tree = tree_of(function)
            uids = (*tree.loops, *tree.blocks, *tree.buffers)
        else:
            uids = tuple(b.value.uid for b in function.bindings)
        largest = max(largest, *uids, 0)
    return largest // STEP_STRIDE
