"""The live part of temporaries, and the accesses to those that are shrunk to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import takewhile
from math import gcd
from typing import Final, TypeAlias

from ...ir.analysis import Interval, Tree, interval_of, union, written_before_read
from ...ir.analysis.allocations import largest_shape, largest_value, loops_around
from ...ir.analysis.bounds import bounded_accesses
from ...ir.analysis.differences import has_choice, largest_difference
from ...ir.analysis.occurrences import Occurrence, occurrences
from ...ir.copies import replace
from ...ir.kernel_errors import MemoryScopeError
from ...ir.loop.nodes import Alloc, Buffer, Element, For, Let, Load, PrimFunc, Scope, Stmt, Store
from ...ir.loop.visit import Rebuilder, allocations
from ...ir.symbolic import (
    Expr,
    Facts,
    Var,
    as_expr,
    const_value,
    free_vars,
    linear_form,
    maximum,
    select,
    to_text,
)
from ...ir.symbolic.terms import linear_terms
from .own_parts import writes_own_part

Access: TypeAlias = "tuple[Buffer, tuple[Expr, ...]]"
"""A buffer and the indices of an access to it."""

ZERO = as_expr(0)
_NO_FACTS = Facts()


@dataclass(frozen=True, slots=True)
class Part:
    """The live indices of one dimension: ``size`` from ``start`` on, of which every ``step``-th.

    A step of 0 means a single index.
    """

    start: Expr
    size: int
    step: int = 1


def hoisted(
    made: CompactedBuffer,
    accesses: list[Occurrence],
    tree: Tree,
    buffer: Buffer,
    each: tuple[For, ...] = (),
    *,
    constant: bool = False,
) -> CompactedBuffer:
    """Return the form of a temporary that is allocated once, outside of all loops.

    Its dimensions have the largest size of all iterations. The lanes of a vectorized loop around
    the allocation run at the same time, so each one gets its own elements, unless they write
    different elements. Threads get their own bytes: a store of a packed element changes a byte.

    Parameters
    ----------
    made : CompactedBuffer
        The shrunken form.
    accesses : list of Occurrence
        All accesses to the temporary.
    tree : Tree
        The index of the function.
    buffer : Buffer
        The temporary.
    each : tuple of For
        Further loops around the allocation whose iterations run at the same time.
    constant : bool
        Whether a constant upper bound of a size is better than a smaller term.

    Raises
    ------
    MemoryScopeError
        If the largest size is unknown.
    """
    sides = zip(buffer.shape, made.buffer.shape, largest_shape(tree, buffer), strict=True)
    sizes = [small if small is not dim else largest for dim, small, largest in sides]
    together = [x for x in loops_around(tree, buffer) if x.kind == "vectorized" or x in each]
    packed = buffer.dtype.is_packed
    vectors = [
        x
        for x in together
        if (packed and x.kind == "thread") or not writes_own_part(x, accesses, tree)
    ]
    sizes += [largest_value(tree, x, x.extent) for x in vectors]
    if constant:
        terms = zip((*buffer.shape, *(x.extent for x in vectors)), sizes, strict=True)
        sizes = [_constant(term, size) for term, size in terms]
    unknown = [d for d, size in zip(buffer.shape, sizes, strict=False) if size is None]
    if None in sizes:
        names = sorted({v.name for d in unknown for v in d.free})
        raise MemoryScopeError(
            f"the largest size of temporary {buffer.name!r} is unknown when the kernel starts: "
            f"{', '.join(map(to_text, unknown)) or 'a vectorized loop around it has no bound'}",
            where=f"function {tree.function.name!r}",
            hint="use integers and loops whose ranges are bounded by the symbols of the function: "
            "with checked(p[i], 0, n) as v:",
            parts=(buffer.name, *names),
        )
    shape = tuple(size for size in sizes if size is not None)
    lanes: tuple[Expr, ...] = tuple(x.var for x in vectors)
    if packed and any(x.kind == "thread" for x in vectors):
        shape, lanes = (*shape, as_expr(buffer.dtype.per_byte)), (*lanes, ZERO)
    return replace(made, buffer=replace(made.buffer, shape=shape), lanes=lanes)


def placement_note(
    buffer: Buffer, made: CompactedBuffer | None, accesses: list[Occurrence], tree: Tree
) -> str:
    """Describe the placement of a temporary, and why it does not use less memory.

    Parameters
    ----------
    buffer : Buffer
        The temporary.
    made : CompactedBuffer or None
        Its new form; None if it is unchanged.
    accesses : list of Occurrence
        All accesses to it.
    tree : Tree
        The index of the function.
    """
    around, parts = loops_around(tree, buffer), list[str]()
    if made is not None:
        new = made.buffer
        if new.scope != buffer.scope or any(x.kind == "parallel" for x in around):
            parts.append(_OWNERS[new.scope, _on_gpu(accesses)])
        if around:
            names = ", ".join(x.var.name for x in around)
            parts.append(f"allocated once for all iterations of {names}")
        if new.shape != buffer.shape:
            parts.append(f"{_shape(new)} instead of {_shape(buffer)} elements")
    refused = _refused(buffer, made, accesses, tree)
    if refused is not None:
        parts.append(
            f"not smaller: an iteration of {refused.var.name} may read elements that it did not "
            "write before"
        )
    return f"{buffer.name}: {'; '.join(parts)}" if parts else ""


_OWNERS: Final = {
    ("local", False): "one per worker",
    ("local", True): "one per thread",
    ("shared", True): "one per thread block",
    ("fragment", True): "one per warp",
    ("global", False): "one for all workers",
    ("global", True): "one for all thread blocks",
    ("shared", False): "one for all workers",
    ("fragment", False): "one per worker",
}
"""The owners of a temporary by its memory scope, and whether the target is a GPU."""


def _on_gpu(accesses: list[Occurrence]) -> bool:
    return any(x.kind == "thread" for access in accesses for x in access.loops)


def _shape(buffer: Buffer) -> str:
    return f"({', '.join(map(to_text, buffer.shape))}{',' if buffer.rank == 1 else ''})"


def _refused(
    buffer: Buffer, made: CompactedBuffer | None, accesses: list[Occurrence], tree: Tree
) -> For | None:
    """Return a loop whose iterations would use less memory if they shared no values."""
    if not accesses or _on_gpu(accesses):
        return None
    loops, intervals = compaction_scope(buffer, accesses, common_loops(accesses), tree)
    used = frozenset[Var]().union(*(i.start.free for i in intervals if i is not None))
    moving = [x for x in loops if x.var in used]
    bases = () if made is None else made.bases
    if not moving or any(b is not None and moving[-1].var in b.free for b in bases):
        return None
    return moving[-1]


def _constant(term: Expr, size: Expr | None) -> Expr | None:
    """Return the constant upper bound of a term, if its largest value is not a constant."""
    known = None if size is None else size.upper
    upper = min((n for n in (known, term.upper) if n is not None), default=None)
    return size if upper is None else as_expr(max(upper, 0))


def unproved(func: PrimFunc, changed: Mapping[Buffer, CompactedBuffer]) -> frozenset[Access]:
    """Return the accesses to hoisted buffers that are not proved to be in bounds.

    A hoisted buffer may be larger than the one that an iteration allocates.
    """
    scoped = {alloc.buffer for alloc in allocations(func.body)}
    larger = {b for b, c in changed.items() if b in scoped and c.buffer.shape != b.shape}
    if not larger:
        return frozenset()
    accesses = (a for a in bounded_accesses(func) if a.status != "proved")
    return frozenset((a.buffer, a.indices) for a in accesses if a.buffer in larger)


def by_age(tree: Tree) -> tuple[Buffer, ...]:
    """Return the temporaries of a function in the order in which they were made.

    The layout of memory does not depend on where they are allocated.
    """
    found = tree.temporaries
    scoped = len(found) > len(tree.function.buffers)
    return tuple(sorted(found, key=lambda b: b.uid)) if scoped else found


def buffer_accesses(body: Stmt) -> dict[Buffer, list[Occurrence]]:
    """Return the accesses to every buffer."""
    found: dict[Buffer, list[Occurrence]] = {}
    for access in occurrences(body):
        found.setdefault(access.buffer, []).append(access)
    return found


@dataclass(frozen=True, slots=True)
class CompactedBuffer:
    """A shrunken buffer and the map from old to new indices.

    The new index of a dimension is ``(index - base) // step``; if its base is None, the index does
    not change. The variables of ``lanes`` are indices of further dimensions.
    """

    buffer: Buffer
    bases: tuple[Expr | None, ...]
    steps: tuple[int, ...]
    lanes: tuple[Expr, ...] = ()


def live_scope(
    buffer: Buffer,
    accesses: list[Occurrence],
    loops: tuple[For, ...],
    tree: Tree,
    collective: Mapping[Var, Expr] | None = None,
    *,
    fresh: tuple[For, ...] = (),
) -> tuple[tuple[For, ...], list[Part | None]]:
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
    fresh : tuple of For
        The loops each iteration of which has its own elements, because it allocates them.
    """
    while True:
        loops, intervals = compaction_scope(buffer, accesses, loops, tree)
        used = frozenset[Var]().union(*(i.start.free for i in intervals if i is not None))
        moving = [k for k, loop in enumerate(loops) if loop.var in used]
        if not moving or loops[moving[-1]] in fresh:
            return loops, intervals
        if begins_empty(buffer, loops[moving[-1]].body, tree, collective):
            return loops, intervals
        loops = loops[: moving[-1]]


def begins_empty(
    buffer: Buffer, statement: Stmt, tree: Tree, collective: Mapping[Var, Expr] | None = None
) -> bool:
    """Return whether no value of a temporary enters a statement of a function.

    Parameters
    ----------
    buffer : Buffer
        The temporary.
    statement : Stmt
        The statement, such as the body of a loop.
    tree : Tree
        The index of the function.
    collective : Mapping[Var, Expr], optional
        The thread indices, with their extents, of the threads that share the buffer.
    """
    body = _lifetime(buffer, statement, tree)
    key = ("begins_empty", buffer, body, tuple((collective or {}).items()))
    known = tree.memo.get(key)
    if known is None:
        found = written_before_read(body, [buffer], tree.facts(body), collective)
        known = tree.memo[key] = buffer in found
    return known is True


def _lifetime(buffer: Buffer, body: Stmt, tree: Tree) -> Stmt:
    """Return the part of a statement in which a buffer exists."""
    alloc = tree.allocs.get(buffer)
    return alloc.body if alloc is not None and tree.contains(body, alloc) else body


def compaction_scope(
    buffer: Buffer, accesses: list[Occurrence], loops: tuple[For, ...], tree: Tree
) -> tuple[tuple[For, ...], list[Part | None]]:
    """Return the innermost loops in one iteration of which the accesses stay in an interval.

    ``loops`` are the loops around all accesses, outermost first; the result is a prefix of them
    with the interval of each dimension. A dimension without an interval keeps its full extent. The
    only index of a dimension of size 1 is 0.
    """
    while True:
        facts = tree.facts(loops[-1].body if loops else tree.function.body)
        ranges = [_ranges(a, len(loops)) for a in accesses]
        intervals = [
            Part(ZERO, 1, 0) if size == 1 else _part(accesses, axis, ranges, facts)
            for axis, size in enumerate(buffer.shape)
        ]
        if not loops or all(
            i is not None or _is_invariant(accesses, k, loops) for k, i in enumerate(intervals)
        ):
            return loops, intervals
        loops = loops[:-1]


def shrunk(
    buffer: Buffer, intervals: list[Part | None], scope: Scope, *, dense: bool = False
) -> CompactedBuffer:
    """Return the buffer shrunk to intervals; a dense one omits the elements between the steps.

    A dimension that is not larger than its interval, whose ends may be outside, is unchanged.
    """
    shape: list[Expr] = []
    bases: list[Expr | None] = []
    steps: list[int] = []
    for dim, one in zip(buffer.shape, intervals, strict=True):
        step = max(1, one.step) if dense and one is not None else 1
        size = None if one is None else (one.size - 1) // step + 1
        smaller = size is not None and (dim.upper is None or size < dim.upper)
        steps.append(step if smaller else 1)
        shape.append(as_expr(size) if size is not None and smaller else dim)
        bases.append(one.start if one is not None and smaller else None)
    new = replace(buffer, shape=tuple(shape), scope=scope, strides=None)
    return CompactedBuffer(new, tuple(bases), tuple(steps))


def common_loops(accesses: list[Occurrence]) -> tuple[For, ...]:
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


def _part(
    accesses: list[Occurrence], axis: int, ranges: list[dict[Var, Interval]], facts: Facts
) -> Part | None:
    """Return the written part of a dimension while only the variables of ``ranges`` change.

    Its size is constant, and all reads are inside of it. None if there is no such part.
    """
    known: list[Interval] = []
    for access, inner in zip(accesses, ranges, strict=True):
        values = _values(access, axis, inner)
        if values is None:
            return None
        known.append(values)
    written = union((x for x, a in zip(known, accesses, strict=True) if a.writes), _NO_FACTS)
    size = None if written is None else const_value(written.extent)
    if written is None or size is None or not _contains(written, known, facts):
        return None
    steps = (_step(a.indices[axis], inner) for a, inner in zip(accesses, ranges, strict=True))
    shifts = (const_value(x.start - written.start) for x in known)
    return Part(written.start, size, gcd(*steps, *(1 if s is None else s for s in shifts)))


def _contains(written: Interval, known: list[Interval], facts: Facts) -> bool:
    """Return whether an interval contains others; indices near an edge are compared by proof."""
    every = union(known, _NO_FACTS)
    if every is not None and every.start is written.start and every.extent is written.extent:
        return True
    if not any(has_choice(x.start) for x in known):
        return False
    ends = ((x.stop, written.stop) for x in known)
    starts = ((written.start, x.start) for x in known)
    found = (largest_difference(a, b, facts) for a, b in (*starts, *ends))
    return all(x is not None and x <= 0 for x in found)


def _values(access: Occurrence, axis: int, inner: Mapping[Var, Interval]) -> Interval | None:
    """Return the interval of an index over inner variables."""
    index = access.indices[axis]
    if index.free & access.loaded:
        return None
    return interval_of(index, inner, _NO_FACTS)


def _ranges(access: Occurrence, depth: int) -> dict[Var, Interval]:
    """Return the ranges of the loops below ``depth``, constant if possible."""
    sizes = {x.var: x.extent for x in access.loops[depth:]}
    return {
        v: Interval.full(n if n.upper is None else as_expr(max(n.upper, 1)))
        for v, n in sizes.items()
    }


def _step(index: Expr, inner: Collection[Var]) -> int:
    """Return a common divisor of the distances of the values of an index; 0 for one value."""
    terms, _ = linear_terms(index)
    if all(isinstance(term, Var) for term, _ in terms):
        return gcd(*(c for term, c in terms if term in inner))
    form = linear_form(index, inner)
    return 1 if form is None else gcd(*(const_value(c) or 1 for c in form.coefficients.values()))


def _is_invariant(accesses: list[Occurrence], axis: int, loops: tuple[For, ...]) -> bool:
    """Return whether the indices of a dimension do not depend on the loops."""
    variables = {loop.var for loop in loops}
    return not any(free_vars(a.indices[axis]) & variables for a in accesses)


class Rebase(Rebuilder):
    """A rewriter that maps the indices of shrunken buffers, and removes their allocations."""

    def __init__(
        self,
        changed: Mapping[Buffer, CompactedBuffer],
        unproved: frozenset[Access] = frozenset(),
    ) -> None:
        self._changed = changed
        self._unproved = unproved

    def _indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        changed = self._changed[buffer]
        if (buffer, indices) in self._unproved:
            sizes = zip(indices, buffer.shape, changed.buffer.shape, strict=False)
            indices = tuple(_outside_if(index, dim, size) for index, dim, size in sizes)
        parts = zip(indices, changed.bases, changed.steps, strict=True)
        return tuple(i if b is None else (i - b) // step for i, b, step in parts) + changed.lanes

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
        if isinstance(statement, Alloc):
            return self.statement(statement.body)
        if isinstance(statement, Let) and statement.load.buffer in self._changed:
            load = self.element(statement.load)
            if not isinstance(load, Load):
                raise TypeError(f"expected a load, got {type(load).__name__}")
            statement = replace(statement, load=load)
        return super().statement(statement)


def _outside_if(index: Expr, dim: Expr, size: Expr) -> Expr:
    """Return an index that is outside of a larger dimension if it is outside of a dimension."""
    return index if dim is size else select(index < dim, index, maximum(index, size))
