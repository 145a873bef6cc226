"""Temporaries shrunk to the part that is live at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from math import gcd

from ....ir.analysis import (
    Tree,
    injective_in,
    tree_of,
    within_loops,
    written_before_read,
)
from ....ir.analysis.accesses import ranges_of
from ....ir.loop.nodes import Buffer, Element, For, Let, Load, PrimFunc, Scope, Stmt, Store
from ....ir.loop.visit import Rebuilder, children, loads
from ....ir.symbolic import (
    Expr,
    Var,
    as_expr,
    bounds,
    const_value,
    free_vars,
    linear_form,
    substitute,
)
from ....target.target import Target
from ...errors import MemoryScopeError
from ..lowering_pass import CPU, Pass

ZERO = as_expr(0)


@dataclass(frozen=True, slots=True)
class BufferAccess:
    """An access to a buffer.

    Parameters
    ----------
    indices : tuple of Expr
        The indices.
    loops : tuple of For
        The loops around the access, outermost first.
    writes : bool
        Whether the access writes.
    loaded : frozenset of Var
        The integers loaded from memory around the access; they have arbitrary values.
    """

    indices: tuple[Expr, ...]
    loops: tuple[For, ...]
    writes: bool
    loaded: frozenset[Var] = frozenset()


@dataclass(frozen=True, slots=True)
class Interval:
    """The accessed indices of one dimension: ``base + low``, ..., ``base + high`` by ``step``.

    A step of 0 means a single index.
    """

    base: Expr
    low: int
    high: int
    step: int = 1


class CompactBuffers(Pass):
    """Shrink each temporary to the region that is live at a time.

    Before::
        for i in range(n):
            for j in range(m): T[i, j] = A[i, j]
            for j in range(m): B[i, j] = T[i, j]
    After::
        for i in range(n):
            for j in range(m):
                T[0, j] = A[i, j]
            for j in range(m):
                B[i, j] = T[0, j]

    The storage of a temporary is reused by the iterations of a loop only if each iteration provably
    writes every element before it reads the element. If that loop is in a parallel loop, the
    temporary gets scope ``local``: one copy per worker. A temporary in a parallel loop that does
    not get a copy per worker must have iterations that write different elements.

    Raises
    ------
    MemoryScopeError
        If neither is proved for a temporary in a parallel loop.
    """

    targets = CPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Compact all temporaries."""
        del target
        found, tree = buffer_accesses(func.body), tree_of(func)
        new = {b: _compacted(b, found[b], tree) for b in func.buffers if b in found}
        changed = {b: c for b, c in new.items() if c is not None}
        if not changed:
            return func
        body = Rebase(changed).statement(func.body)
        buffers = tuple(changed[b].buffer if b in changed else b for b in func.buffers)
        return replace(func, body=body, buffers=buffers)


def buffer_accesses(body: Stmt) -> dict[Buffer, list[BufferAccess]]:
    """Collect the accesses to every buffer."""
    found: dict[Buffer, list[BufferAccess]] = {}
    none = frozenset[Var]()
    stack: list[tuple[Stmt, tuple[For, ...], frozenset[Var]]] = [(body, (), none)]
    while stack:
        statement, loops, loaded = stack.pop()
        for buffer, indices, writes in _own(statement):
            found.setdefault(buffer, []).append(BufferAccess(indices, loops, writes, loaded))
        inner = (*loops, statement) if isinstance(statement, For) else loops
        known = loaded | {statement.var} if isinstance(statement, Let) else loaded
        stack.extend((child, inner, known) for child in children(statement))
    return found


def _own(statement: Stmt) -> Iterator[tuple[Buffer, tuple[Expr, ...], bool]]:
    if isinstance(statement, Store):
        yield statement.buffer, statement.indices, True
        yield from ((x.buffer, x.indices, False) for x in loads(statement))
    elif isinstance(statement, Let):
        yield statement.load.buffer, statement.load.indices, False


@dataclass(frozen=True, slots=True)
class CompactedBuffer:
    """A shrunken buffer and the map from old to new indices.

    The new index of a dimension is ``(index - base) // step``; if its base is None, the index does
    not change.
    """

    buffer: Buffer
    bases: tuple[Expr | None, ...]
    steps: tuple[int, ...]


def _compacted(buffer: Buffer, accesses: list[BufferAccess], tree: Tree) -> CompactedBuffer | None:
    shared = common_loops(accesses)
    loops, intervals = live_scope(buffer, accesses, shared, tree)
    scope = buffer.scope
    region = next((x for x in shared if x.kind == "parallel"), None)
    if region is not None:
        shrinks = region in loops
        scope = _scope_in(region, buffer, accesses, tree, shrinks=shrinks)
    sides = zip(intervals, buffer.shape, strict=True)
    if scope == buffer.scope and all(i is None or size == 1 for i, size in sides):
        return None
    return shrunk(buffer, intervals, scope)


def _scope_in(
    region: For, buffer: Buffer, accesses: list[BufferAccess], tree: Tree, *, shrinks: bool
) -> Scope:
    """Return ``local`` if each worker of a parallel loop gets a copy of a temporary."""
    private = bool(written_before_read(region.body, [buffer], tree.facts(region.body)))
    if private and shrinks:
        return "local"
    if _writes_disjoint(region, accesses, tree):
        return "global" if buffer.scope == "local" else buffer.scope
    if private:
        return "local"
    raise MemoryScopeError(
        f"iterations of parallel loop {region.var.name!r} share temporary {buffer.name!r}: they "
        "may write the same elements, and may read elements that they did not write",
        where=f"function {tree.function.name!r}",
        hint="run the loop serially, or compute the writer of the temporary inside the loop "
        "(compute_at)",
        parts=(buffer.name, region.var.name),
    )


def _writes_disjoint(region: For, accesses: list[BufferAccess], tree: Tree) -> bool:
    """Return whether iterations of a loop write different elements."""
    for access in accesses:
        inside = access.loops[access.loops.index(region) :]
        facts = within_loops(tree.facts(region.body), inside[1:])
        if access.writes and region.var not in injective_in(
            access.indices, ranges_of(inside), facts
        ):
            return False
    return True


def live_scope(
    buffer: Buffer,
    accesses: list[BufferAccess],
    loops: tuple[For, ...],
    tree: Tree,
    collective: Mapping[Var, Expr] | None = None,
) -> tuple[tuple[For, ...], list[Interval | None]]:
    """Return loops and intervals as ``compaction_scope`` does, where no value outlives its region.

    Parameters
    ----------
    buffer : Buffer
        The temporary.
    accesses : list of BufferAccess
        All accesses to it.
    loops : tuple of For
        The loops around all accesses, outermost first.
    tree : Tree
        The index of the function.
    collective : Mapping[Var, Expr], optional
        The thread indices, with their extents, of the threads that share the buffer.
    """
    while True:
        loops, intervals = compaction_scope(buffer, accesses, loops)
        used = frozenset[Var]().union(*(i.base.free for i in intervals if i is not None))
        moving = [k for k, loop in enumerate(loops) if loop.var in used]
        if not moving:
            return loops, intervals
        body = loops[moving[-1]].body
        if written_before_read(body, [buffer], tree.facts(body), collective):
            return loops, intervals
        loops = loops[: moving[-1]]


def compaction_scope(
    buffer: Buffer, accesses: list[BufferAccess], loops: tuple[For, ...]
) -> tuple[tuple[For, ...], list[Interval | None]]:
    """Return the innermost loops in one iteration of which the accesses stay in an interval.

    ``loops`` are the loops around all accesses, outermost first; the result is a prefix of them
    with the interval of each dimension. A dimension without an interval keeps its full extent. The
    only index of a dimension of size 1 is 0.
    """
    while True:
        intervals = [
            Interval(ZERO, 0, 0, 0) if size == 1 else _interval(accesses, axis, loops)
            for axis, size in enumerate(buffer.shape)
        ]
        if not loops or all(
            i is not None or _is_invariant(accesses, k, loops) for k, i in enumerate(intervals)
        ):
            return loops, intervals
        loops = loops[:-1]


def shrunk(
    buffer: Buffer, intervals: list[Interval | None], scope: Scope, *, dense: bool = False
) -> CompactedBuffer:
    """Return the buffer shrunk to intervals; a dense one omits the elements between the steps."""
    shape: list[Expr] = []
    bases: list[Expr | None] = []
    steps: list[int] = []
    for dim, one in zip(buffer.shape, intervals, strict=True):
        steps.append(max(1, one.step) if dense and one is not None else 1)
        shape.append(dim if one is None else as_expr((one.high - one.low) // steps[-1] + 1))
        bases.append(None if one is None else one.base + one.low)
    new = replace(buffer, shape=tuple(shape), scope=scope, strides=None)
    return CompactedBuffer(new, tuple(bases), tuple(steps))


def common_loops(accesses: list[BufferAccess]) -> tuple[For, ...]:
    """Return the loops around all accesses, up to the first vectorized loop.

    The lanes of a vectorized loop run at the same time, so each lane needs its own elements.
    """
    shared = accesses[0].loops
    for access in accesses[1:]:
        keep = 0
        for a, b in zip(shared, access.loops, strict=False):
            if a is not b:
                break
            keep += 1
        shared = shared[:keep]
    return tuple(takewhile(lambda loop: loop.kind != "vectorized", shared))


def _interval(accesses: list[BufferAccess], axis: int, loops: tuple[For, ...]) -> Interval | None:
    """Return the interval of constant size that one iteration of ``loops`` accesses, or None."""
    intervals = [_index_interval(a, axis, len(loops)) for a in accesses]
    found = [i for i in intervals if i is not None]
    if len(found) < len(intervals):
        return None
    base = found[0].base
    shifts = [const_value(i.base - base) for i in found]
    if any(shift is None for shift in shifts):
        return None
    shifted = [(i.low + (d or 0), i.high + (d or 0)) for i, d in zip(found, shifts, strict=True)]
    written = [p for p, a in zip(shifted, accesses, strict=True) if a.writes]
    if not written:
        return None
    low, high = min(w[0] for w in written), max(w[1] for w in written)
    if any(p[0] < low or p[1] > high for p in shifted):
        return None
    step = gcd(*(i.step for i in found), *(p[0] - low for p in shifted))
    return Interval(base, low, high, step)


def _index_interval(access: BufferAccess, axis: int, depth: int) -> Interval | None:
    """Return the interval of an index over the loops below ``depth``."""
    if access.indices[axis].free & access.loaded:
        return None
    inner = [loop.var for loop in access.loops[depth:]]
    form = linear_form(access.indices[axis], inner)
    if form is None:
        return _nonlinear_interval(access.indices[axis], inner)
    low = high = every = 0
    for variable, coefficient in form.coefficients.items():
        step, limits = const_value(coefficient), bounds(variable)
        if step is None or limits.lower is None or limits.upper is None:
            return None
        low += min(step * limits.lower, step * limits.upper)
        high += max(step * limits.lower, step * limits.upper)
        every = gcd(every, step)
    return Interval(form.rest, low, high, every)


def _nonlinear_interval(index: Expr, inner: list[Var]) -> Interval | None:
    """Return the interval of an index that is not linear in the inner variables."""
    base = substitute(index, dict.fromkeys(inner, 0))
    added = index - base
    limits = bounds(added)
    if not added.free <= set(inner) or limits.lower is None or limits.upper is None:
        return None
    return Interval(base, limits.lower, limits.upper)


def _is_invariant(accesses: list[BufferAccess], axis: int, loops: tuple[For, ...]) -> bool:
    """Return whether the indices of a dimension do not depend on the loops."""
    variables = {loop.var for loop in loops}
    return not any(free_vars(a.indices[axis]) & variables for a in accesses)


class Rebase(Rebuilder):
    """A rewriter that maps the indices of shrunken buffers."""

    def __init__(self, changed: Mapping[Buffer, CompactedBuffer]) -> None:
        self._changed = changed

    def _indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        changed = self._changed[buffer]
        parts = zip(indices, changed.bases, changed.steps, strict=True)
        return tuple(i if b is None else (i - b) // step for i, b, step in parts)

    def element(self, element: Element) -> Element:
        """Return an element with the indices of its loads mapped."""
        if isinstance(element, Load) and element.buffer in self._changed:
            indices = self._indices(element.buffer, element.indices)
            return Load(self._changed[element.buffer].buffer, indices)
        return super().element(element)

    def statement(self, statement: Stmt) -> Stmt:
        """Return a statement with the indices of its accesses mapped."""
        if isinstance(statement, Store) and statement.buffer in self._changed:
            return replace(
                statement,
                buffer=self._changed[statement.buffer].buffer,
                indices=self._indices(statement.buffer, statement.indices),
                value=self.element(statement.value),
            )
        if isinstance(statement, Let) and statement.load.buffer in self._changed:
            load = self.element(statement.load)
            if not isinstance(load, Load):
                raise TypeError(f"expected a load, got {type(load).__name__}")
            statement = replace(statement, load=load)
        return super().statement(statement)
