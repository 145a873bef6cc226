"""Barriers where one thread of a block needs what another one did.

Statements are read in order with what has been touched since the last barrier. A barrier goes
before the first that meets one of those touches from another thread: what it reads was written,
or what it writes was read or written. Loops are read twice, the second time after their own end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ....ir.gpu import THREAD_AXES
from ....ir.identity import Uid
from ....ir.symbolic import Bool, Expr, Var, const_value
from ....ir.thread.nodes import (
    Barrier,
    Body,
    If,
    Let,
    Loop,
    Predicate,
    Reg,
    Source,
    Stmt,
    ThreadFunc,
    Value,
    While,
)
from ....ir.thread.types import GLOBAL_POINTER
from ....ir.thread.visit import bodies, value_terms, walk_values
from .errors import DivergentBarrierError
from .touches import Touch, fixed_by, meet, touches


def insert_barriers(kernel: ThreadFunc, apart: frozenset[Uid] = frozenset()) -> ThreadFunc:
    """Let the threads of a block wait for each other where they have to.

    ``apart`` are blocks of the program that write each element of global memory once at most.

    Before::
        S[t] = x[t]
        y[t] = S[63 - t]
    After::
        S[t] = x[t]
        barrier
        y[t] = S[63 - t]

    Raises
    ------
    DivergentBarrierError
        If a barrier would stand where only some threads come by.
    """
    launch = kernel.launch.axes if kernel.launch is not None else ()
    axes = {a.var: const_value(a.extent) or 1 for a in launch if a.tag in THREAD_AXES}
    if all(extent == 1 for extent in axes.values()):
        return kernel
    body, _ = _Sync(kernel.name, axes, apart).body(kernel.body, [], _Place())
    return replace(kernel, body=body)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a statement stands.

    ``divergent`` is the outermost statement around it that not all threads pass alike.
    """

    divergent: Stmt | None = None
    fixed: Mapping[Var, Expr] | None = None
    varying: frozenset[Var] = frozenset()

    @property
    def threads(self) -> Mapping[Var, Expr]:
        return self.fixed or {}


class _Sync:
    def __init__(self, name: str, axes: Mapping[Var, int], apart: frozenset[Uid]) -> None:
        self._name = name
        self._axes = axes
        self._apart = apart
        self._answers: dict[tuple[object, ...], bool] = {}

    # ------------------------------------------------------------ reading in order

    def body(self, body: Body, before: list[Touch], place: _Place) -> tuple[Body, list[Touch]]:
        """Insert barriers into a list; give what was touched since the last one, too."""
        out: list[Stmt] = []
        pending = list(before)
        for statement in body:
            if isinstance(statement, Let) and self._varies(statement.value, place):
                place = replace(place, varying=place.varying | {statement.var})
            match statement:
                case Barrier(scope="block"):
                    pending = []
                    out.append(statement)
                case Loop() | While() | If():
                    pending = self._nested(statement, pending, place, out)
                case _:
                    own = touches(statement, place.threads)
                    pending = self._wait(pending, list(own), place, out, statement)
                    pending.extend(own)
                    out.append(statement)
        return tuple(out), pending

    def _wait(
        self,
        pending: list[Touch],
        own: list[Touch],
        place: _Place,
        out: list[Stmt],
        statement: Stmt,
    ) -> list[Touch]:
        """Put a barrier before a statement if it needs one."""
        found = self._conflict(pending, own)
        if found is None:
            return pending
        if place.divergent is not None:
            self._refuse(*found, place.divergent)
        out.append(Barrier("block", _source(statement)))
        return []

    def _nested(
        self, statement: Loop | While | If, pending: list[Touch], place: _Place, out: list[Stmt]
    ) -> list[Touch]:
        inner = self._inside(statement, place)
        if isinstance(statement, If):
            return self._branch(statement, pending, place, inner, out)
        body, tail = self.body(statement.body, [], inner[0])
        over = _left(statement)
        heads = [over(t) for t in self._head(body, inner[0])]
        pending = self._wait(pending, heads, place, out, statement)
        again = [over(t) for t in tail]
        if self._conflict(again, self._head(body, inner[0])) is not None:
            body, tail = self.body(statement.body, again, inner[0])
        out.append(replace(statement, body=body))
        return _merged(pending, [over(t) for t in tail])

    def _branch(
        self, branch: If, pending: list[Touch], place: _Place, inner: list[_Place], out: list[Stmt]
    ) -> list[Touch]:
        done = [
            self.body(part, [], where)
            for part, where in zip((branch.then, branch.otherwise), inner, strict=True)
        ]
        heads = [
            t for (part, _), where in zip(done, inner, strict=True) for t in self._head(part, where)
        ]
        pending = self._wait(pending, heads, place, out, branch)
        out.append(replace(branch, then=done[0][0], otherwise=done[1][0]))
        return _merged(pending, done[0][1], done[1][1])

    # ------------------------------------------------------------ control flow

    def _inside(self, statement: Loop | While | If, place: _Place) -> list[_Place]:
        """Give the places of the lists inside a statement."""
        split = place.divergent
        match statement:
            case Loop(start=start, stop=stop):
                diverges = self._differs((start, stop), place)
                return [replace(place, divergent=split or (statement if diverges else None))]
            case While(condition=condition):
                diverges = self._varies(condition, place)
                return [replace(place, divergent=split or (statement if diverges else None))]
            case If(condition=condition):
                diverges = self._varies(condition, place)
                inner = replace(place, divergent=split or (statement if diverges else None))
                if not isinstance(condition, Predicate):
                    return [inner, inner]
                known = fixed_by(condition.condition, frozenset(self._axes))
                return [replace(inner, fixed={**place.threads, **known}), inner]

    def _differs(self, terms: tuple[Expr | Bool, ...], place: _Place) -> bool:
        changing = place.varying | {a for a, extent in self._axes.items() if extent > 1}
        return any(not t.free.isdisjoint(changing) for t in terms)

    def _varies(self, value: Value, place: _Place) -> bool:
        """Whether a value may differ from thread to thread."""
        for part in walk_values((value,)):
            if self._differs(value_terms(part), place):
                return True
            if isinstance(part, Reg) and not _is_pointer(part):
                return True
        return False

    # ------------------------------------------------------------ what meets

    def _head(self, body: Body, place: _Place) -> list[Touch]:
        """Give what a list touches before its first barrier."""
        found: list[Touch] = []
        for statement in body:
            if isinstance(statement, Barrier):
                break
            if isinstance(statement, Loop | While | If):
                inner = self._inside(statement, place)
                over = _left(statement)
                for part, where in zip(bodies(statement), inner, strict=True):
                    found.extend(over(t) for t in self._head(part, where))
            else:
                found.extend(touches(statement, place.threads))
        return _merged(found)

    def _conflict(self, first: list[Touch], second: list[Touch]) -> tuple[Touch, Touch] | None:
        for a in first:
            for b in second:
                ordered = a.base is b.base and (a.write or b.write)
                if ordered and not self._once(a, b) and self._meet(a, b):
                    return a, b
        return None

    def _once(self, a: Touch, b: Touch) -> bool:
        """Whether both are the same block's writes, and that writes each element once."""
        same = a.source.uid == b.source.uid and a.source.uid in self._apart
        return same and a.write and b.write and a.base.type == GLOBAL_POINTER

    def _meet(self, a: Touch, b: Touch) -> bool:
        key = (*_key(a), *_key(b))
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = meet(a, b, self._axes)
        return found

    def _refuse(self, first: Touch, second: Touch, divergent: Stmt) -> None:
        source = _source(divergent)
        raise DivergentBarrierError(
            f"{_what(second)} needs a barrier after {_what(first)} ({first.base.name}), but not "
            "all threads of the block come by there",
            where=f"loop or branch {source.name or 'without a name'!r} of kernel {self._name!r}",
            hint="its bounds or its condition depend on threadIdx: let all threads run it, and "
            "guard the accesses instead",
            details={"buffer": first.base.name},
        )


def _what(touch: Touch) -> str:
    verb = "writes" if touch.write else "reads"
    return f"what {touch.source.name or 'a statement'} {verb}"


def _source(statement: Stmt) -> Source:
    source = getattr(statement, "source", None)
    return source if isinstance(source, Source) else Source()


def _is_pointer(reg: Reg) -> bool:
    return str(reg.type).startswith("ptr")


def _left(statement: Stmt) -> Callable[[Touch], Touch]:
    """Give how a touch inside looks from outside."""
    if isinstance(statement, Loop):
        variable = statement.var
        return lambda touch: touch.over(variable)
    return lambda touch: touch


def _merged(*lists: list[Touch]) -> list[Touch]:
    """Join touches, each that is the same but for its place in the program once."""
    found: dict[tuple[object, ...], Touch] = {}
    for touch in (t for one in lists for t in one):
        found.setdefault(_key(touch), touch)
    return list(found.values())


def _key(touch: Touch) -> tuple[object, ...]:
    """Give what tells touches apart: everything but which copy of a statement it is."""
    fixed = tuple(touch.fixed.items())
    place = (touch.base, touch.offset, touch.size, touch.write)
    return (*place, touch.own, fixed, touch.source.uid)
