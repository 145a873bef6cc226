"""Virtual threads: unrolled iterations of one thread, interleaved statement by statement."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....ir.analysis import injective_in, ranges_of
from ....ir.loop.nodes import (
    INTRINSIC,
    Block,
    Buffer,
    Element,
    For,
    Let,
    Load,
    PrimFunc,
    Stmt,
    Store,
)
from ....ir.loop.visit import Rebuilder, children, loads, walk, with_children
from ....ir.symbolic import Bool, Expr, Facts, Var
from ....target.target import Target
from ..analysis.statement_terms import own_terms
from ..annotations import ACROSS
from ..lowering_pass import GPU, Pass


class LowerVirtualThreads(Pass):
    """Distribute loops over virtual threads to the statements that depend on them.

    Before::
        for v in thread(2, "vthread"):
            for k in range(n):
                S[v * 32 + t] = A[k, v * 32 + t]
                C[v * 32 + t] = C[v * 32 + t] + S[...]
    After::
        for k in range(n):
            for v in unrolled(2):
                S[v * 32 + t] = ...
            for v in unrolled(2):
                C[v * 32 + t] = ...

    The virtual threads share the barriers between the statements. A temporary that is private to
    an iteration of the loop gets an extra dimension for the loop variable, unless its elements are
    already distinct.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Lower all loops bound to virtual threads, innermost first."""
        del target
        while (loop := _next(func.body)) is not None:
            func = _distribute(func, loop)
        return func


def _next(body: Stmt) -> For | None:
    """Return the last loop bound to virtual threads, which contains no other one."""
    found = [
        s
        for s in walk(body)
        if isinstance(s, For) and s.kind == "thread" and s.thread.startswith("vthread")
    ]
    return found[-1] if found else None


def _distribute(func: PrimFunc, loop: For) -> PrimFunc:
    expanded = {b: _expanded(b, loop) for b in _private(func, loop)}
    inner = _Expand(expanded, loop.var).statement(loop.body) if expanded else loop.body
    pushed = _push(inner, replace(loop, kind="unrolled", thread=""))
    body = _swap(func.body, loop, pushed)
    return replace(func, body=body, buffers=tuple(expanded.get(b, b) for b in func.buffers))


def _swap(root: Stmt, old: Stmt, new: Stmt) -> Stmt:
    if root is old:
        return new
    return with_children(root, tuple(_swap(c, old, new) for c in children(root)))


def _push(statement: Stmt, loop: For) -> Stmt:
    """Wrap the innermost statements that depend on the loop variable."""
    if any(loop.var in term.free for term in _own(statement)):
        return replace(loop, body=statement)
    if isinstance(statement, Store | Let) or _is_leaf(statement):
        return statement
    return with_children(statement, tuple(_push(c, loop) for c in children(statement)))


def _own(statement: Stmt) -> tuple[Expr | Bool, ...]:
    """Return the terms of a statement, and of its nested statements if it is indivisible."""
    if isinstance(statement, Let) or _is_leaf(statement):
        return tuple(t for s in walk(statement) for t in own_terms(s))
    return tuple(own_terms(statement))


def _is_leaf(statement: Stmt) -> bool:
    """Return whether a block is indivisible: a tensor instruction or a cross-thread reduction."""
    if not isinstance(statement, Block):
        return False
    return any(key in (INTRINSIC, ACROSS) for key, _ in statement.annotations)


def _private(func: PrimFunc, loop: For) -> list[Buffer]:
    """Return the temporaries of an iteration whose elements several iterations write."""
    outside = _users_outside(func.body, loop)
    written: dict[Buffer, list[_Write]] = {}
    for write in _writes(loop.body, (loop,), depends=False):
        written.setdefault(write.store.buffer, []).append(write)
    return [
        b
        for b in func.buffers
        if b in written
        and b not in outside
        and any(w.depends and not _is_disjoint(w, loop) for w in written[b])
    ]


def _users_outside(statement: Stmt, loop: For) -> set[Buffer]:
    if statement is loop:
        return set()
    own: set[Buffer] = set()
    if isinstance(statement, Store):
        own = {statement.buffer, *(r.buffer for r in loads(statement))}
    elif isinstance(statement, Let):
        own = {statement.load.buffer}
    return own.union(*(_users_outside(c, loop) for c in children(statement)))


@dataclass(frozen=True, slots=True)
class _Write:
    store: Store
    loops: tuple[For, ...]
    depends: bool


def _writes(statement: Stmt, loops: tuple[For, ...], *, depends: bool) -> list[_Write]:
    depends = depends or any(loops[0].var in t.free for t in own_terms(statement))
    # A value computed from the temporaries of an iteration depends on the iteration, too.
    if isinstance(statement, Store):
        chained = any(r.buffer.scope != "global" for r in loads(statement))
        return [_Write(statement, loops, depends or chained)]
    inner = (*loops, statement) if isinstance(statement, For) else loops
    return [w for c in children(statement) for w in _writes(c, inner, depends=depends)]


def _is_disjoint(write: _Write, loop: For) -> bool:
    return loop.var in injective_in(write.store.indices, ranges_of(write.loops), Facts())


def _expanded(buffer: Buffer, loop: For) -> Buffer:
    return replace(buffer, shape=(loop.extent, *buffer.shape), strides=None)


class _Expand(Rebuilder):
    """A rewriter that prepends the virtual thread index to the indices of temporaries."""

    def __init__(self, expanded: dict[Buffer, Buffer], var: Var) -> None:
        self._expanded = expanded
        self._var = var

    def element(self, element: Element) -> Element:
        if isinstance(element, Load) and element.buffer in self._expanded:
            return Load(self._expanded[element.buffer], (self._var, *element.indices))
        return super().element(element)

    def statement(self, statement: Stmt) -> Stmt:
        if isinstance(statement, Store) and statement.buffer in self._expanded:
            return replace(
                statement,
                buffer=self._expanded[statement.buffer],
                indices=(self._var, *statement.indices),
                value=self.element(statement.value),
            )
        return super().statement(statement)
