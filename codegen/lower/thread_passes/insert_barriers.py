"""Insertion of barriers between conflicting accesses of the threads of a block.

Statements are visited in order with the accesses since the last barrier. A barrier is inserted
before the first statement that conflicts with one of these accesses of another thread: it reads an
element that was written, or writes an element that was read or written. Loop bodies are visited
twice, the second time with the accesses of the previous iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar, Final, Self

from ....ir.analysis.thread_accesses import AccessKey, ThreadAccesses
from ....ir.identity import Uid
from ....ir.kernel_errors import AsyncOperationError, DivergentBarrierError
from ....ir.loop.nodes import INTRINSIC, Block, PrimFunc
from ....ir.loop.thread_roles import ACROSS_THREADS
from ....ir.loop.visit import walk
from ....ir.symbolic import Bool, Expr, Facts, Var, const_value, is_proved
from ....ir.thread.function import ThreadFunc
from ....ir.thread.nodes import (
    Barrier,
    Body,
    If,
    Let,
    Loop,
    MachineOp,
    Predicate,
    Reg,
    Source,
    Stmt,
    Value,
    While,
)
from ....ir.thread.types import GLOBAL_POINTER, PointerType
from ....ir.thread.visit import bodies, value_terms, walk as walk_statements, walk_values
from ....schedules.launch.annotations import (
    DISJOINT,
    IN_PLACE,
    REPEATED,
    marked_blocks,
    marked_buffers,
)
from ....schedules.launch.lowering_pass import GPU, ThreadPass
from ....target.gpus import THREAD_AXES
from ....target.target import Target
from ..analysis.access_sets import AccessClasses, AccessSet
from ..analysis.memory_effects import MemoryAccess, fixed_axes, may_conflict, memory_accesses


@dataclass(frozen=True, slots=True)
class InsertBarriers(ThreadPass):
    """Insert the barriers between conflicting accesses of the threads of a block.

    Before::
        S[t] = x[t]
        y[t] = S[63 - t]
    After::
        S[t] = x[t]
        barrier
        y[t] = S[63 - t]

    Parameters
    ----------
    disjoint : frozenset of Uid
        The blocks that write each element of global memory at most once.
    in_place : frozenset of Uid
        Those of them that only read the elements that they write.
    own_parts : frozenset of str
        The buffers of global memory of which each thread accesses only its own part.
    repeated : frozenset of Uid
        The blocks of which several threads execute the same iteration.
    accesses : ThreadAccesses or None
        The accesses of the loops that the kernel is lowered from.

    Raises
    ------
    AsyncOperationError
        If an operation accesses memory at its completion: barriers order only accesses at issue.
    DivergentBarrierError
        If a barrier is required where control flow is divergent.
    """

    targets: ClassVar = GPU

    disjoint: frozenset[Uid] = frozenset()
    in_place: frozenset[Uid] = frozenset()
    own_parts: frozenset[str] = frozenset()
    repeated: frozenset[Uid] = frozenset()
    accesses: ThreadAccesses | None = None

    @classmethod
    def for_function(cls, func: PrimFunc) -> Self:
        """Return the pass with the records of passes on the function."""
        disjoint, in_place = marked_blocks(func, DISJOINT), marked_blocks(func, IN_PLACE)
        repeated = marked_blocks(func, REPEATED)
        accesses = ThreadAccesses(func, _opaque(func))
        return cls(disjoint, in_place, marked_buffers(func), repeated, accesses)

    def run(self, kernel: ThreadFunc, target: Target) -> ThreadFunc:
        """Insert all barriers."""
        del target
        _require_synchronous(kernel)
        launch = kernel.launch.axes if kernel.launch is not None else ()
        axes = {a.var: const_value(a.extent) or 1 for a in launch if a.tag in THREAD_AXES}
        if all(extent == 1 for extent in axes.values()):
            return kernel
        insertion = _BarrierInsertion(kernel.name, axes, self)
        body, _ = insertion.body(kernel.body, [], _ProgramPoint())
        return replace(kernel, body=body)


@dataclass(frozen=True, slots=True)
class _ProgramPoint:
    """The control flow around a statement.

    ``divergent`` is the outermost enclosing statement with divergent control flow.
    """

    divergent: Stmt | None = None
    fixed: Mapping[Var, Expr] | None = None
    varying: frozenset[Var] = frozenset()

    @property
    def threads(self) -> Mapping[Var, Expr]:
        return self.fixed or {}


MAX_PROOFS: Final = 128
"""The number of pairs of accesses of a kernel for which a prover is called."""


NOTHING: Final = Facts()
"""No facts."""


def _require_synchronous(kernel: ThreadFunc) -> None:
    """Raise for an operation that accesses memory at its completion."""
    for statement in walk_statements(kernel.body):
        if not isinstance(statement, MachineOp):
            continue
        operation, source = statement.operation, statement.source
        late = [e for e in operation.effects if e.moment == "completion"]
        if not late:
            continue
        accessed = ", ".join(
            f"{e.action}s {e.bytes} bytes of {e.space} memory (operand {e.operand})" for e in late
        )
        block = f"block {source.name!r} of " if source.name else ""
        raise AsyncOperationError(
            f"operation {operation.name!r} {accessed} at its completion, and a barrier waits "
            "only for accesses at issue",
            where=f"{block}kernel {kernel.name!r}",
            hint="use an operation whose accesses end at issue",
            details={"operation": operation.name, "operands": [e.operand for e in late]},
            parts=(source.name,),
        )


def _opaque(func: PrimFunc) -> frozenset[Uid]:
    """Return the blocks whose threads exchange elements, by an instruction or in a reduction."""
    blocks = (s for s in walk(func.body) if isinstance(s, Block))
    return frozenset(
        b.uid
        for b in blocks
        if INTRINSIC in dict(b.annotations) or isinstance(b.threads, ACROSS_THREADS)
    )


class _BarrierInsertion:
    def __init__(self, name: str, axes: Mapping[Var, int], known: InsertBarriers) -> None:
        self._name = name
        self._axes = axes
        self._disjoint = known.disjoint
        self._in_place = known.in_place
        self._own_parts = known.own_parts
        self._repeated = known.repeated
        self._accesses = known.accesses
        self._classes = AccessClasses()
        self._statements: dict[tuple[object, ...], tuple[Stmt, tuple[MemoryAccess, ...]]] = {}
        self._ordered: dict[tuple[int, int], bool] = {}
        self._answers: dict[tuple[int, int, int], bool] = {}
        self._separate: dict[tuple[frozenset[AccessKey], frozenset[Var]], bool] = {}
        self._proofs = 0

    def body(
        self, body: Body, before: Iterable[MemoryAccess], point: _ProgramPoint
    ) -> tuple[Body, AccessSet]:
        """Insert barriers into a list; also return the accesses since the last barrier."""
        out: list[Stmt] = []
        pending = self._set(before)
        for statement in body:
            if isinstance(statement, Let) and self._varies(statement.value, point):
                point = replace(point, varying=point.varying | {statement.var})
            match statement:
                case Barrier(scope="block"):
                    pending = self._set()
                    out.append(statement)
                case Loop() | While() | If():
                    pending = self._nested(statement, pending, point, out)
                case _:
                    own = self._own(statement, point)
                    pending = self._wait(pending, self._set(own), point, out, statement)
                    pending.update(own)
                    out.append(statement)
        return tuple(out), pending

    def _wait(
        self,
        pending: AccessSet,
        own: AccessSet,
        point: _ProgramPoint,
        out: list[Stmt],
        statement: Stmt,
    ) -> AccessSet:
        """Insert a barrier before a statement if it needs one."""
        found = self._conflict(pending, own)
        if found is None:
            return pending
        if point.divergent is not None:
            self._reject(*found, point.divergent)
        out.append(Barrier("block", _source(statement)))
        return self._set()

    def _set(self, *parts: Iterable[MemoryAccess]) -> AccessSet:
        """Return the accesses of several collections, in order."""
        return AccessSet(self._classes, chain(*parts))

    def _own(self, statement: Stmt, point: _ProgramPoint) -> tuple[MemoryAccess, ...]:
        """Return the accesses of a statement without nested ones; each is examined once."""
        key = id(statement), *point.threads.items()
        found = self._statements.get(key)
        if found is None:
            found = statement, memory_accesses(statement, point.threads)
            self._statements[key] = found
        return found[1]

    def _nested(
        self,
        statement: Loop | While | If,
        pending: AccessSet,
        point: _ProgramPoint,
        out: list[Stmt],
    ) -> AccessSet:
        inner = self._inside(statement, point)
        if isinstance(statement, If):
            return self._branch(statement, pending, point, inner, out)
        own = self._own(statement, point)
        body, tail = self._iteration(statement, own, own, inner[0])
        after = _after(statement)
        first = self._set(own, self._head(body, inner[0]))
        heads = self._set(after(t) for t in first)
        pending = self._wait(pending, heads, point, out, statement)
        again = self._set(after(t) for t in tail)
        if self._conflict(again, first) is not None:
            body, tail = self._iteration(statement, again, own, inner[0])
        out.append(replace(statement, body=body))
        return self._set(pending, (after(t) for t in tail))

    def _iteration(
        self,
        statement: Loop | While,
        before: Iterable[MemoryAccess],
        own: tuple[MemoryAccess, ...],
        inside: _ProgramPoint,
    ) -> tuple[Body, AccessSet]:
        """Insert barriers into the body of a loop, whose condition is evaluated after it."""
        body, tail = self.body(statement.body, before, inside)
        out = list(body)
        tail = self._wait(tail, self._set(own), inside, out, statement)
        tail.update(own)
        return tuple(out), tail

    def _branch(
        self,
        branch: If,
        pending: AccessSet,
        point: _ProgramPoint,
        inner: list[_ProgramPoint],
        out: list[Stmt],
    ) -> AccessSet:
        own = self._own(branch, point)  # of the condition, before both parts
        done = [
            self.body(part, own, where)
            for part, where in zip((branch.then, branch.otherwise), inner, strict=True)
        ]
        heads = self._set(
            own, *(self._head(part, where) for (part, _), where in zip(done, inner, strict=True))
        )
        pending = self._wait(pending, heads, point, out, branch)
        out.append(replace(branch, then=done[0][0], otherwise=done[1][0]))
        return self._set(pending, done[0][1], done[1][1])

    def _inside(self, statement: Loop | While | If, point: _ProgramPoint) -> list[_ProgramPoint]:
        """Return the program points of the nested statement lists."""
        split = point.divergent
        match statement:
            case Loop(start=start, stop=stop):
                diverges = self._differs((start, stop), point)
                return [replace(point, divergent=split or (statement if diverges else None))]
            case While(condition=condition):
                diverges = self._varies(condition, point)
                return [replace(point, divergent=split or (statement if diverges else None))]
            case If(condition=condition):
                diverges = self._varies(condition, point)
                inner = replace(point, divergent=split or (statement if diverges else None))
                if not isinstance(condition, Predicate):
                    return [inner, inner]
                fixed = fixed_axes(condition.condition, frozenset(self._axes))
                return [replace(inner, fixed={**point.threads, **fixed}), inner]

    def _differs(self, terms: tuple[Expr | Bool, ...], point: _ProgramPoint) -> bool:
        changing = point.varying | {a for a, extent in self._axes.items() if extent > 1}
        return any(not t.free.isdisjoint(changing) for t in terms)

    def _varies(self, value: Value, point: _ProgramPoint) -> bool:
        """Return whether a value may differ between threads."""
        for part in walk_values((value,)):
            if self._differs(value_terms(part), point):
                return True
            if isinstance(part, Reg) and part.type not in _SPACES:
                return True
        return False

    def _head(self, body: Body, point: _ProgramPoint) -> AccessSet:
        """Return the accesses of a list before its first barrier."""
        found = self._set()
        for statement in body:
            if isinstance(statement, Barrier):
                break
            found.update(self._own(statement, point))
            if isinstance(statement, Loop | While | If):
                inner = self._inside(statement, point)
                after = _after(statement)
                for part, where in zip(bodies(statement), inner, strict=True):
                    found.update(after(t) for t in self._head(part, where))
        return found

    def _conflict(
        self, first: AccessSet, second: AccessSet
    ) -> tuple[MemoryAccess, MemoryAccess] | None:
        """Return a pair of accesses that need a barrier between them; None if there is none."""
        for kind, starts, other, ends in first.pairs_of_classes(second):
            if self._is_ordered(kind, other, starts, ends):
                continue
            for start, a in starts.items():
                for end, b in ends.items():
                    key = kind, other, end - start
                    if key not in self._answers:
                        self._answers[key] = self._may_conflict(a, b)
                    if self._answers[key]:
                        return a, b
        return None

    def _is_ordered(
        self,
        kind: int,
        other: int,
        starts: Mapping[int, MemoryAccess],
        ends: Mapping[int, MemoryAccess],
    ) -> bool:
        """Return whether accesses of two classes never need a barrier, whatever their offsets."""
        found = self._ordered.get((kind, other))
        if found is None:
            a, b = next(iter(starts.values())), next(iter(ends.values()))
            found = not (a.write or b.write) or self._once(a, b)
            self._ordered[kind, other] = found
        return found

    def _may_conflict(self, a: MemoryAccess, b: MemoryAccess) -> bool:
        """Return whether neither their addresses nor their loops prove that accesses differ.

        The proof about loops is about all copies of a statement, in either order, so it is reused.
        """
        first, second = (_access_key(access) for access in (a, b))
        if self._accesses is None or first is None or second is None:
            return self._may_overlap(a, b)
        key = frozenset((first, second)), a.loops | b.loops
        if self._separate.get(key) or not self._may_overlap(a, b):
            return False
        if key not in self._separate:
            ended = a.loops | b.loops
            self._separate[key] = self._accesses.are_disjoint(first, second, ended, self._prove)
        return not self._separate[key]

    def _may_overlap(self, a: MemoryAccess, b: MemoryAccess) -> bool:
        repeated = a.source.uid in self._repeated
        return may_conflict(a, b, self._axes, self._prove, repeated=repeated)

    def _prove(self, claim: Bool, facts: Facts = NOTHING) -> bool:
        """Return whether a claim is proved; claims beyond the limit count as unknown."""
        self._proofs += 1
        return self._proofs <= MAX_PROOFS and is_proved(claim, facts)

    def _once(self, a: MemoryAccess, b: MemoryAccess) -> bool:
        """Return whether an analysis of indices proved that threads access different elements."""
        if a.base.type == GLOBAL_POINTER and a.base.name in self._own_parts:
            return True
        uid = a.source.uid
        if uid != b.source.uid or uid not in self._disjoint or a.base.type != GLOBAL_POINTER:
            return False
        return (a.write and b.write) or (uid in self._in_place and uid not in self._repeated)

    def _reject(self, first: MemoryAccess, second: MemoryAccess, divergent: Stmt) -> None:
        source = _source(divergent)
        raise DivergentBarrierError(
            f"a barrier is required between {_describe(first)} and {_describe(second)}, but "
            "control flow is divergent",
            where=f"loop or branch {source.name or '(unnamed)'!r} of kernel {self._name!r}",
            hint="its bounds or its condition depend on threadIdx; make them uniform across the "
            "threads of the block, and guard the accesses instead",
            details={"buffer": first.base.name},
            parts=(source.name, first.source.name, second.source.name, first.base.name),
        )


_SPACES: Final = {PointerType("global"), PointerType("shared")}
"""The memory that the threads of a block share."""


def _access_key(access: MemoryAccess) -> AccessKey | None:
    """Return the statement of an access in the loops that the kernel is lowered from."""
    uid = access.source.uid
    if uid is None or access.base.type not in _SPACES:
        return None
    return AccessKey(uid, access.base.name, access.write)


def _describe(access: MemoryAccess) -> str:
    kind = "write" if access.write else "read"
    block = f" in block {access.source.name!r}" if access.source.name else ""
    return f"the {kind} of {access.base.name!r}{block}"


def _source(statement: Stmt) -> Source:
    source = getattr(statement, "source", None)
    return source if isinstance(source, Source) else Source()


def _after(statement: Stmt) -> Callable[[MemoryAccess], MemoryAccess]:
    """Return the function that maps an access in a statement to its form after the statement."""
    if isinstance(statement, Loop):
        variable = statement.var
        return lambda access: access.after(variable)
    return lambda access: access
