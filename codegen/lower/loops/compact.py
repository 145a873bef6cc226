"""Temporaries shrunk to the part of them that is live at a time.

A schedule keeps a temporary at its full logical shape wherever its blocks move. Here each one is
given the innermost place that sees all its accesses, and the box that these cover there: a tile
of a matmul becomes 14 by 32 accumulators, a row of a softmax one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from math import gcd

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


@dataclass(frozen=True, slots=True)
class Access:
    """One access: the buffer's indices, the loops around it, and whether it writes."""

    indices: tuple[Expr, ...]
    loops: tuple[For, ...]
    writes: bool


@dataclass(frozen=True, slots=True)
class Box:
    """Where one dimension is accessed: ``base + low``, and every ``step`` up to ``base + high``.

    A step of 0 means a single index.
    """

    base: Expr
    low: int
    high: int
    step: int = 1


def compact_buffers(func: PrimFunc) -> PrimFunc:
    """Shrink every temporary of a function whose blocks are realised.

    A temporary is shrunk only where every element that an iteration of its place reads lies in
    the box that the same iteration writes. One whose place lies inside a parallel loop becomes
    ``local``: each worker has its own.

    Examples
    --------
    >>> from ....ir.dtype import f32
    >>> from ....ir.loop.builder import Builder
    >>> b = Builder("kept")
    >>> x, t, y = (
    ...     b.param("x", (8,), f32),
    ...     b.temporary("t", (8,), f32),
    ...     b.param("y", (8,), f32, "out"),
    ... )
    >>> b.compute(t, lambda i: b.load(x, i))
    >>> b.compute(y, lambda i: b.load(t, i))
    >>> [str(d) for d in compact_buffers(b.finish()).buffers[0].shape]
    ['8']
    """
    found = buffer_accesses(func.body)
    new = {b: _compacted(b, found[b]) for b in func.buffers if b in found}
    changed = {b: c for b, c in new.items() if c is not None}
    if not changed:
        return func
    body = Rebase(changed).statement(func.body)
    buffers = tuple(changed[b].buffer if b in changed else b for b in func.buffers)
    return replace(func, body=body, buffers=buffers)


def buffer_accesses(body: Stmt) -> dict[Buffer, list[Access]]:
    """Collect the accesses to every buffer."""
    found: dict[Buffer, list[Access]] = {}
    stack: list[tuple[Stmt, tuple[For, ...]]] = [(body, ())]
    while stack:
        statement, loops = stack.pop()
        for buffer, indices, writes in _own(statement):
            found.setdefault(buffer, []).append(Access(indices, loops, writes))
        inner = (*loops, statement) if isinstance(statement, For) else loops
        stack.extend((child, inner) for child in children(statement))
    return found


def _own(statement: Stmt) -> Iterator[tuple[Buffer, tuple[Expr, ...], bool]]:
    if isinstance(statement, Store):
        yield statement.buffer, statement.indices, True
        yield from ((x.buffer, x.indices, False) for x in loads(statement))
    elif isinstance(statement, Let):
        yield statement.load.buffer, statement.load.indices, False


# ---------------------------------------------------------------- boxes


@dataclass(frozen=True, slots=True)
class Compact:
    """A shrunken buffer; ``bases`` are subtracted from the indices, None where one stays.

    What is left of an index is divided by the dimension's step.
    """

    buffer: Buffer
    bases: tuple[Expr | None, ...]
    steps: tuple[int, ...]


def _compacted(buffer: Buffer, accesses: list[Access]) -> Compact | None:
    place, boxes = find_place(buffer, accesses, common_loops(accesses))
    inside = any(loop.kind in ("parallel", "thread") for loop in place)
    if not inside and all(b is None for b in boxes):
        return None
    return shrunk(buffer, boxes, "local" if inside else buffer.scope)


def find_place(
    buffer: Buffer, accesses: list[Access], place: tuple[For, ...]
) -> tuple[tuple[For, ...], list[Box | None]]:
    """Give the innermost of some loops in whose iterations the accesses keep to a box.

    ``place`` are the loops around all accesses, outermost first. A dimension without a box stays
    whole.
    """
    while True:
        boxes = [_box(accesses, axis, place) for axis in range(buffer.rank)]
        if not place or all(
            b is not None or _plain(accesses, k, place) for k, b in enumerate(boxes)
        ):
            return place, boxes
        place = place[:-1]


def shrunk(
    buffer: Buffer, boxes: list[Box | None], scope: Scope, *, dense: bool = False
) -> Compact:
    """Make the buffer of what its boxes hold; a dense one leaves out what is stepped over."""
    shape: list[Expr] = []
    bases: list[Expr | None] = []
    steps: list[int] = []
    for dim, box in zip(buffer.shape, boxes, strict=True):
        steps.append(max(1, box.step) if dense and box is not None else 1)
        reach = dim if box is None else as_expr((box.high - box.low) // steps[-1] + 1)
        shape.append(reach)
        bases.append(None if box is None else box.base + box.low)
    new = replace(buffer, shape=tuple(shape), scope=scope, strides=None)
    return Compact(new, tuple(bases), tuple(steps))


def common_loops(accesses: list[Access]) -> tuple[For, ...]:
    """Loops around all accesses, as far as their iterations run one after the other.

    The lanes of a vectorized loop run together, so that each needs elements of its own.
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


def _box(accesses: list[Access], axis: int, place: tuple[For, ...]) -> Box | None:
    """The constant-sized interval that one iteration of ``place`` accesses, if there is one."""
    spans = [_span(a, axis, len(place)) for a in accesses]
    known = [s for s in spans if s is not None]
    if len(known) < len(spans):
        return None
    base = known[0].base
    shifts = [const_value(s.base - base) for s in known]
    if any(shift is None for shift in shifts):
        return None
    placed = [(s.low + (d or 0), s.high + (d or 0)) for s, d in zip(known, shifts, strict=True)]
    written = [p for p, a in zip(placed, accesses, strict=True) if a.writes]
    if not written:
        return None
    low, high = min(w[0] for w in written), max(w[1] for w in written)
    if any(p[0] < low or p[1] > high for p in placed):
        return None
    step = gcd(*(s.step for s in known), *(p[0] - low for p in placed))
    return Box(base, low, high, step)


def _span(access: Access, axis: int, depth: int) -> Box | None:
    """What the loops inside the place add to an index."""
    inner = [loop.var for loop in access.loops[depth:]]
    form = linear_form(access.indices[axis], inner)
    if form is None:
        return _bounded(access.indices[axis], inner)
    low = high = every = 0
    for variable, coefficient in form.coefficients.items():
        step, limits = const_value(coefficient), bounds(variable)
        if step is None or limits.lower is None or limits.upper is None:
            return None
        low += min(step * limits.lower, step * limits.upper)
        high += max(step * limits.lower, step * limits.upper)
        every = gcd(every, step)
    return Box(form.rest, low, high, every)


def _bounded(index: Expr, inner: list[Var]) -> Box | None:
    """Bound what variables add to an index that is not linear in them."""
    base = substitute(index, dict.fromkeys(inner, 0))
    added = index - base
    limits = bounds(added)
    if not added.free <= set(inner) or limits.lower is None or limits.upper is None:
        return None
    return Box(base, limits.lower, limits.upper)


def _plain(accesses: list[Access], axis: int, place: tuple[For, ...]) -> bool:
    """Whether a dimension may stay whole: no loop of the place moves its accesses."""
    around = {loop.var for loop in place}
    return not any(free_vars(a.indices[axis]) & around for a in accesses)


class Rebase(Rebuilder):
    """Subtracts the bases from the indices of shrunken buffers."""

    def __init__(self, changed: Mapping[Buffer, Compact]) -> None:
        self._changed = changed

    def _indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        changed = self._changed[buffer]
        parts = zip(indices, changed.bases, changed.steps, strict=True)
        return tuple(i if b is None else (i - b) // step for i, b, step in parts)

    def element(self, element: Element) -> Element:
        """Move the indices of a load."""
        if isinstance(element, Load) and element.buffer in self._changed:
            indices = self._indices(element.buffer, element.indices)
            return Load(self._changed[element.buffer].buffer, indices)
        return super().element(element)

    def statement(self, statement: Stmt) -> Stmt:
        """Move the indices of what a statement reads and writes."""
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
                raise TypeError("a load stays a load")
            statement = replace(statement, load=load)
        return super().statement(statement)
