"""Virtual threads: unrolled iterations of one thread, interleaved statement by statement."""

from __future__ import annotations

from dataclasses import replace

from ...ir.analysis import tree_of
from ...ir.analysis.entry_checks import terms_of
from ...ir.analysis.occurrences import Occurrence, occurrences, separated_by
from ...ir.loop.nodes import (
    INTRINSIC,
    Alloc,
    Bind,
    Block,
    Buffer,
    Element,
    For,
    Let,
    Load,
    Local,
    PrimFunc,
    Stmt,
    Store,
)
from ...ir.loop.thread_roles import ACROSS_THREADS
from ...ir.loop.visit import (
    Rebuilder,
    children,
    loads,
    transform,
    walk,
    walk_element,
    with_children,
)
from ...ir.symbolic import Bool, Expr, Facts, Var
from ...target.target import Target
from .lowering_pass import GPU, Pass


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

    def expand(statement: Stmt) -> Stmt:
        if isinstance(statement, Alloc) and statement.buffer in expanded:
            return replace(statement, buffer=expanded[statement.buffer])
        return statement

    body = _swap(func.body, loop, pushed)
    body = transform(body, expand) if expanded else body
    return replace(func, body=body, buffers=tuple(expanded.get(b, b) for b in func.buffers))


def _swap(root: Stmt, old: Stmt, new: Stmt) -> Stmt:
    if root is old:
        return new
    return with_children(root, tuple(_swap(c, old, new) for c in children(root)))


def _push(statement: Stmt, loop: For) -> Stmt:
    """Wrap the innermost statements that depend on the loop variable."""
    if any(loop.var in term.free for term in _own(statement)):
        return replace(loop, body=statement)
    if isinstance(statement, Store | Let | Bind) or _is_leaf(statement):
        return statement
    return with_children(statement, tuple(_push(c, loop) for c in children(statement)))


def _own(statement: Stmt) -> tuple[Expr | Bool, ...]:
    """Return the terms of a statement, and of its nested statements if it is indivisible."""
    if isinstance(statement, Let | Bind) or _is_leaf(statement):
        return tuple(t for s in walk(statement) for t in _terms(s))
    return _terms(statement)


def _terms(statement: Stmt) -> tuple[Expr | Bool, ...]:
    """Return the terms of a statement, without those of nested statements."""
    match statement:
        case Store(value=value) | Bind(value=value):
            parts = (statement, *walk_element(value))
        case Let(load=load):
            parts = (statement, load)
        case _:
            parts = (statement,)
    return tuple(t for part in parts for t in terms_of(part))


def _is_leaf(statement: Stmt) -> bool:
    """Return whether a block is indivisible: a tensor instruction or a cross-thread reduction."""
    if not isinstance(statement, Block):
        return False
    tensorized = any(key == INTRINSIC for key, _ in statement.annotations)
    return tensorized or isinstance(statement.threads, ACROSS_THREADS)


def _private(func: PrimFunc, loop: For) -> list[Buffer]:
    """Return the temporaries of an iteration whose elements several iterations write."""
    found, tree = list(occurrences(func.body)), tree_of(func)
    own = {b for b in tree.temporaries if tree.allocated_in(b, loop.body)}
    outside = {x.buffer for x in found if loop not in x.loops}
    writes = [x for x in found if x.writes and (x.buffer in own or _depends(x, loop))]
    common = {x.buffer for x in writes if _overlaps(x, loop)}
    return [b for b in tree.temporaries if b in common - outside]


def _depends(write: Occurrence, loop: For) -> bool:
    """Return whether the iterations of a loop may write different values.

    A value computed from the temporaries of an iteration depends on the iteration, too, and one
    that uses bound values may do.
    """
    if isinstance(write.statement, Store) and any(
        isinstance(e, Local) for e in walk_element(write.statement.value)
    ):
        return True
    terms = (t for s in (write.statement, *write.binders) for t in _terms(s))
    return any(loop.var in t.free for t in (*write.guards, *terms)) or any(
        r.buffer.scope != "global" for r in loads(write.statement)
    )


def _overlaps(write: Occurrence, loop: For) -> bool:
    """Return whether several iterations of a loop may write one element."""
    if loop not in write.loops:
        return False
    inside = write.binders[write.binders.index(loop) :]
    return loop.var not in separated_by(write.indices, inside, Facts())


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
