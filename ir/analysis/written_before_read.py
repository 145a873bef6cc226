"""Temporaries whose contents do not outlive one execution of a statement.

A temporary has no live value at the start of a statement if every element that the statement reads
was written before in the same execution. It may then be shrunk to the part that one iteration uses,
or exist once per worker or thread. A write counts only if it is certain: a guarded store, or a
store in a loop that may have no iterations, does not. A buffer that the statement allocates has no
value at its start, whatever the statement reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..copies import replace
from ..loop.nodes import (
    Alloc,
    Bind,
    Block,
    Buffer,
    Condition,
    Element,
    For,
    If,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Where,
)
from ..loop.visit import accessed_buffers, operands
from ..symbolic import (
    TRUE,
    Bool,
    Expr,
    Facts,
    Var,
    all_of,
    const_value,
    eq,
    free_vars,
    is_proved,
    linear_form,
    negate,
    product,
    simplify,
    substitute,
    var,
)
from .accesses import bindings_of, values_of
from .facts_at import assuming, within_loop
from .guarded_writes import Write, guarded, settled
from .intervals import Interval, interval_of
from .iter_map import injective_in

MOST_REPEATED: Final = 16
"""How often bodies of loops are scanned again, with the writes of earlier iterations.

Loops of a nest that all carry a recurrence, as those that a split makes, would be scanned a number
of times that is exponential in their depth. A buffer beyond the limit counts as read before it is
written.
"""

_Box: TypeAlias = "tuple[Interval, ...]"


def written_before_read(
    body: Stmt,
    buffers: Collection[Buffer],
    facts: Facts,
    collective: Mapping[Var, Expr] | None = None,
) -> frozenset[Buffer]:
    """Return the buffers of which a statement reads only elements that it wrote before.

    Parameters
    ----------
    body : Stmt
        The statement, such as the body of a loop. Blocks must not have an init.
    buffers : collection of Buffer
        The buffers to examine. Those that the statement allocates are in the result.
    facts : Facts
        The facts in scope at the statement.
    collective : Mapping[Var, Expr], optional
        Loop variables with their extents whose iterations execute the statement together, such as
        the threads of a thread block that share a buffer: each may read elements that others wrote.

    Examples
    --------
    >>> from ..script import parse
    >>> f = parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
    ...     t = alloc((4, 8), f32)
    ...     for i in range(4):
    ...         for j in range(8):
    ...             with block("t"):
    ...                 vi, vj = spatial(i), spatial(j)
    ...                 t[vi, vj] = x[vi, vj]
    ...         for k in range(8):
    ...             with block("y"):
    ...                 vi, vk = spatial(i), spatial(k)
    ...                 y[vi, vk] = t[vi, 7 - vk]
    ... ''').prim("f")
    >>> [b.name for b in written_before_read(f.body.body, f.buffers, f.facts)]
    ['t']
    """
    scan = _Scan(frozenset(buffers), dict(collective or {}))
    scan.statement(body, facts, {})
    return frozenset(buffers) - scan.exposed


def written_regions(body: Stmt, buffer: Buffer, facts: Facts) -> tuple[tuple[Interval, ...], ...]:
    """Return regions of a buffer that each execution of a statement writes completely.

    A region may extend past the end of the buffer, where nothing is written.

    Parameters
    ----------
    body : Stmt
        The statement, such as the body of a loop. Blocks must not have an init.
    buffer : Buffer
        The buffer.
    facts : Facts
        The facts in scope at the statement.
    """
    scan = _Scan(frozenset({buffer}), {})
    scan.statement(body, facts, {})
    boxes = (_box(write, facts) for write in scan.certain(buffer, facts))
    return tuple(box for box in boxes if box is not None)


_Frame: TypeAlias = "dict[Buffer, list[Write]]"


@dataclass(frozen=True, slots=True)
class _Branch:
    """The certain writes of a branch if it is taken, and the facts in scope there."""

    writes: _Frame
    facts: Facts

    def boxes(self) -> dict[Buffer, list[_Box]]:
        """Return the regions that the branch writes."""
        each = {
            b: [_box(w, self.facts) for w in ws if not w.guards] for b, ws in self.writes.items()
        }
        return {b: [box for box in boxes if box is not None] for b, boxes in each.items()}


class _Scan:
    """One traversal in program order.

    ``exposed`` are the buffers with a read that may not follow a write, and ``_unwritten`` the
    indices of these reads. ``_frames`` are the certain writes so far, one dictionary per enclosing
    loop, branch, or let; while a recurrence is examined, also those of earlier iterations.
    """

    def __init__(self, buffers: frozenset[Buffer], collective: Mapping[Var, Expr]) -> None:
        self._buffers = buffers
        self._collective = {v: Interval.full(extent) for v, extent in collective.items()}
        self.exposed: set[Buffer] = set()
        self._unwritten: dict[Buffer, tuple[Expr, ...]] = {}
        self._frames: list[_Frame] = [{}]
        self._memo: dict[tuple[int, int], tuple[Write, Facts, Write]] = {}
        self._repeated = 0

    def statement(self, statement: Stmt, facts: Facts, bound: Mapping[Var, Expr]) -> None:
        """Scan a statement; ``bound`` maps iteration variables to their bindings."""
        if self._buffers.isdisjoint(accessed_buffers(statement)):
            return
        match statement:
            case Store(buffer=buffer, indices=indices, value=value):
                self._element(value, facts, bound)
                if buffer in self._buffers:
                    write = Write(_at(indices, bound), self._collective)
                    self._frames[-1].setdefault(buffer, []).append(write)
            case Bind(value=value, body=body):
                self._element(value, facts, bound)
                self.statement(body, facts, bound)
            case Seq(body=parts):
                for part in parts:
                    self.statement(part, facts, bound)
            case Alloc(buffer=buffer, body=body):
                # No value enters the scope, so only the other buffers are examined in it.
                outer, self._buffers = self._buffers, self._buffers - {buffer}
                self.statement(body, facts, bound)
                self._buffers = outer
            case For():
                self._loop(statement, facts, bound)
            case Let():
                self._let(statement, facts, bound)
            case If(condition=condition, then=then, otherwise=otherwise):
                claim = substitute(condition, bound)
                first = self._branch(then, claim, facts, bound)
                if otherwise is not None:
                    self._add(_common(first, self._branch(otherwise, negate(claim), facts, bound)))
            case Block(init=init, body=body):
                inner = {v: substitute(e, bound) for v, e in bindings_of(statement).items()}
                claim = substitute(statement.predicate, bound)
                if init is not None:  # it runs in the first iteration of the reduction
                    reduced = [v.var for v in statement.iters if v.kind == "reduce"]
                    first = all_of(claim, *(eq(inner[v], 0) for v in reduced))
                    self._branch(init, first, facts, {**bound, **inner})
                self._branch(body, claim, facts, {**bound, **inner})

    def certain(self, buffer: Buffer, facts: Facts) -> list[Write]:
        """Return the certain writes of a buffer in the statement."""
        writes = self._frames[-1].get(buffer, [])
        return [w for w in (self._settled(w, buffer, facts) for w in writes) if not w.guards]

    def _element(self, element: Element, facts: Facts, bound: Mapping[Var, Expr]) -> None:
        """Check the reads of an element."""
        if isinstance(element, Load):
            self._read(element, facts, bound)
        elif isinstance(element, Where) and isinstance(element.condition, Condition):
            claim = substitute(element.condition.value, bound)
            self._element(element.then, assuming(facts, claim), bound)
            self._element(element.otherwise, assuming(facts, negate(claim)), bound)
        else:
            for operand in operands(element):
                self._element(operand, facts, bound)

    def _read(self, load: Load, facts: Facts, bound: Mapping[Var, Expr]) -> None:
        buffer = load.buffer
        if buffer not in self._buffers or buffer in self.exposed:
            return
        indices = _at(load.indices, bound)
        found = [w for frame in self._frames for w in frame.get(buffer, ())]
        writes = [w for w in found if not w.guards]
        if any(_covers(write, indices, buffer, facts) for write in writes):
            return
        under = (self._settled(w, buffer, facts) for w in found if w.guards or w.limits)
        guarded_writes = [w for w in under if not w.guards]
        if any(_covers(write, indices, buffer, facts) for write in guarded_writes):
            return
        every = (_box(write, facts) for write in (*writes, *guarded_writes))
        boxes = [box for box in every if box is not None]
        if not any(_contains(box, indices, buffer, facts) for box in _joined(boxes, facts)):
            self.exposed.add(buffer)
            self._unwritten[buffer] = indices

    def _settled(self, write: Write, buffer: Buffer, facts: Facts) -> Write:
        """Return a write of the same elements, without conditions if possible."""
        if not write.guards and not write.limits:
            return write
        key = (id(write), id(facts))
        if key not in self._memo:
            self._memo[key] = (write, facts, settled(write, buffer, facts))
        return self._memo[key][2]

    def _loop(self, loop: For, facts: Facts, bound: Mapping[Var, Expr]) -> None:
        extent = substitute(loop.extent, bound)
        known = frozenset(self.exposed)
        inside = self._iteration(loop, extent, facts, bound)
        again = [b for b in self.exposed - known if self._reads_earlier(loop, b, inside)]
        if again and self._repeated < MOST_REPEATED:
            self._repeated += 1
            self.exposed.difference_update(again)
            self._frames.append({b: [_earlier(w, loop.var) for w in inside[b]] for b in again})
            inside = self._iteration(loop, extent, facts, bound)
            self._frames.pop()
        own = {} if loop.var in self._collective else {loop.var: Interval.full(extent)}
        self._add(
            {b: [replace(w, closed={**w.closed, **own}) for w in ws] for b, ws in inside.items()}
        )

    def _iteration(
        self, loop: For, extent: Expr, facts: Facts, bound: Mapping[Var, Expr]
    ) -> _Frame:
        """Scan an iteration of a loop, and return its certain writes."""
        self._frames.append({})
        self.statement(loop.body, within_loop(facts, loop.var, extent), bound)
        return self._frames.pop()

    def _reads_earlier(self, loop: For, buffer: Buffer, inside: _Frame) -> bool:
        """Return whether a read may follow a write in an earlier iteration of a loop.

        Then an index of both depends on the loop, in different ways, as in ``t[i - 1]``, ``t[i]``.
        """
        if loop.kind not in {"serial", "unrolled"}:
            return False
        return any(
            loop.var in read.free and loop.var in written.free and read != written
            for write in inside.get(buffer, ())
            for read, written in zip(self._unwritten[buffer], write.indices, strict=True)
        )

    def _let(self, let: Let, facts: Facts, bound: Mapping[Var, Expr]) -> None:
        self._element(let.load, facts, bound)
        values = values_of(let).substitute(bound)
        self._frames.append({})
        inner = assuming(facts, let.var >= values.start, let.var < values.stop)
        self.statement(let.body, inner, bound)
        inside = self._frames.pop()
        self._add({b: [w for w in ws if not w.mentions(let.var)] for b, ws in inside.items()})

    def _branch(self, body: Stmt, claim: Bool, facts: Facts, bound: Mapping[Var, Expr]) -> _Branch:
        inner = facts if claim is TRUE else assuming(facts, claim)
        self._frames.append({})
        self.statement(body, inner, bound)
        inside = self._frames.pop()
        self._add({b: [guarded(w, claim, b, facts) for w in ws] for b, ws in inside.items()})
        return _Branch(inside, inner)

    def _add(self, writes: _Frame) -> None:
        for buffer, found in writes.items():
            self._frames[-1].setdefault(buffer, []).extend(found)


def _common(first: _Branch, second: _Branch) -> _Frame:
    """Return writes of the regions that both branches write."""
    found: _Frame = {}
    for buffer, boxes in first.boxes().items():
        others = second.boxes().get(buffer, ())
        found[buffer] = [_write_of(box) for box in boxes if box in others]
    return found


def _earlier(write: Write, variable: Var) -> Write:
    """Return the writes of all earlier iterations of a loop, by a write of its iterations."""
    before = var(variable.name, lower=0, upper=variable.upper)
    moved = write.substitute({variable: before})
    return replace(moved, closed={**moved.closed, before: Interval.full(variable)})


def _write_of(box: _Box) -> Write:
    values = [var("_", lower=0) for _ in box]
    indices = tuple(i.start + v for i, v in zip(box, values, strict=True))
    return Write(indices, {v: Interval.full(i.extent) for i, v in zip(box, values, strict=True)})


def _at(indices: tuple[Expr, ...], bound: Mapping[Var, Expr]) -> tuple[Expr, ...]:
    return tuple(substitute(i, bound) for i in indices) if bound else indices


def _covers(write: Write, indices: tuple[Expr, ...], buffer: Buffer, facts: Facts) -> bool:
    """Return whether a write writes the element at ``indices``, which is inside of the buffer."""
    groups = _groups(write, facts)
    if groups is None:
        return False
    for dimensions, variables in groups:
        box = _filled(write, dimensions, variables, facts)
        if box is None:
            if len(dimensions) > 1 or not _is_taken(write, dimensions[0], indices, facts):
                return False
            continue
        for dimension, interval in zip(dimensions, box, strict=True):
            size = buffer.shape[dimension]
            if not _is_inside(interval, indices[dimension], size, facts):
                return False
    return True


def _box(write: Write, facts: Facts) -> _Box | None:
    """Return the region of a write; None if it has gaps or may be empty while the box is not."""
    groups = _groups(write, facts)
    if groups is None:
        return None
    found: dict[int, Interval] = {}
    for dimensions, variables in groups:
        box = _filled(write, dimensions, variables, facts)
        if box is None:
            return None
        found.update(zip(dimensions, box, strict=True))
    return tuple(found[k] for k in range(len(write.indices)))


_Group: TypeAlias = "tuple[list[int], frozenset[Var]]"


def _groups(write: Write, facts: Facts) -> list[_Group] | None:
    """Return the dimensions that share closed variables, with these variables.

    Return None if a variable that no index contains may have no values.
    """
    groups: list[_Group] = []
    used = frozenset[Var]()
    for dimension, index in enumerate(write.indices):
        own = frozenset(free_vars(index) & write.closed.keys())
        joined_groups = [g for g in groups if g[1] & own]
        merged = sorted([dimension, *(d for g in joined_groups for d in g[0])])
        groups = [g for g in groups if g not in joined_groups]
        groups.append((merged, own.union(*(g[1] for g in joined_groups))))
        used |= own
    idle = (values for variable, values in write.closed.items() if variable not in used)
    return groups if all(is_proved(values.extent >= 1, facts) for values in idle) else None


def _filled(
    write: Write, dimensions: list[int], variables: frozenset[Var], facts: Facts
) -> list[Interval] | None:
    """Return the intervals of some dimensions if the write fills the box of these intervals."""
    box: list[Interval] = []
    for dimension in dimensions:
        interval = interval_of(write.indices[dimension], write.closed, facts)
        if interval is None or not interval.exhaustive:
            return None
        box.append(interval)
    indices = tuple(write.indices[k] for k in dimensions)
    extents = {v: write.closed[v].extent for v in variables}
    size = product(tuple(interval.extent for interval in box))
    return box if _fills(indices, extents, size, facts) else None


def _is_taken(write: Write, dimension: int, indices: tuple[Expr, ...], facts: Facts) -> bool:
    """Return whether an index with gaps takes a value: its digits are values of its variables."""
    form = linear_form(write.indices[dimension], tuple(write.closed))
    if form is None:
        return False
    rest = simplify(indices[dimension] - form.rest, facts)
    terms = [(const_value(c), write.closed[v]) for v, c in form.coefficients.items() if c != 0]
    if any(c is None or c < 1 for c, _ in terms):
        return False
    for scale, values in sorted(terms, key=lambda t: t[0] or 0, reverse=True):
        rest = rest - values.start * (scale or 1)
        digit = simplify(rest // (scale or 1), facts)
        rest = simplify(rest % (scale or 1), facts)
        if not is_proved(digit >= 0, facts) or not is_proved(digit < values.extent, facts):
            return False
    return rest == 0


def _fills(
    indices: tuple[Expr, ...], extents: Mapping[Var, Expr], size: Expr, facts: Facts
) -> bool:
    """Return whether indices that take all values per dimension take all their combinations.

    ``size`` is the number of combinations. If a loop may be empty, it must be 0 then.
    """
    maybe_empty = [e for e in extents.values() if not is_proved(e >= 1, facts)]
    if len(indices) == 1 and not maybe_empty:
        return True
    count = product(tuple(extents.values()))
    if simplify(count - size, facts) != 0:
        return False
    if len(maybe_empty) > 1 and not all(is_proved(e >= 0, facts) for e in maybe_empty):
        return False  # the product of two negative extents is positive
    ranges = {v: Interval.full(e) for v, e in extents.items()}
    return len(indices) == 1 or injective_in(indices, ranges, facts) >= frozenset(extents)


def _contains(box: _Box, indices: tuple[Expr, ...], buffer: Buffer, facts: Facts) -> bool:
    """Return whether a box contains the indices of a read, which are inside of the buffer."""
    return all(
        _is_inside(interval, index, size, facts)
        for interval, index, size in zip(box, indices, buffer.shape, strict=True)
    )


def _is_inside(interval: Interval, index: Expr, size: Expr, facts: Facts) -> bool:
    if interval.start is index and interval.extent == 1:
        return True
    inside = assuming(facts, index >= 0, index < size)
    if interval.start != 0 and not is_proved(interval.start <= index, inside):
        return False
    return interval.stop is size or is_proved(index < interval.stop, inside)


def _joined(boxes: list[_Box], facts: Facts) -> list[_Box]:
    """Return the boxes that result from joining boxes adjacent in one dimension."""
    joined: list[_Box] = []
    if not boxes:
        return joined
    grown = boxes[0]
    for box in boxes[1:]:
        bigger = _join(grown, box, facts)
        if bigger is None:
            grown = box
        else:
            grown = bigger
            joined.append(grown)
    return joined


def _join(a: _Box, b: _Box, facts: Facts) -> _Box | None:
    differing = [k for k, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
    if len(differing) != 1:
        return None
    k = differing[0]
    if simplify(b[k].start - a[k].stop, facts) != 0 or not is_proved(a[k].extent >= 0, facts):
        return None
    extent = simplify(a[k].extent + b[k].extent, facts)
    return (*a[:k], replace(a[k], extent=extent), *a[k + 1 :])
