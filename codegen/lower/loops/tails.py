"""Guards of tiles lifted out of the loops they do not depend on.

A guard such as ``i0 * 14 + i1 < m`` stands where it is tested: innermost, once an element, inside
an unrolled tile. Lifted to the body of loop ``i0`` it becomes one test of the whole tile: is there
room for all rows? If so the tile runs without guards; if not, one copy a remaining number of rows,
each without guards again, or a masked copy where the guard is about lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.loop.nodes import INTRINSIC, Block, For, If, Let, Seq, Stmt, Store
from ....ir.loop.visit import children, seq, substitute_in, with_children
from ....ir.symbolic import (
    FALSE,
    Bool,
    Expr,
    Le,
    Lt,
    Var,
    const_value,
    eq,
    linear_form,
    maximum,
    minimum,
    negate,
)
from .known import Known, conjuncts
from .prune import prune
from .tighten import solve

MOST_COPIES = 16
"""Remaining sizes that get a copy each."""

MOST_TRIED = 4 * MOST_COPIES
"""Remaining sizes of which those that may occur are looked for."""

MOST_STORES = 2_000
"""Stores, unrolled, that all copies together may have; tiles in tiles share them."""


@dataclass(frozen=True, slots=True)
class Guard:
    """``slack - tile >= 0`` where ``tile`` ranges over ``lowest .. highest`` inside the tile."""

    slack: Expr
    lowest: int
    highest: int
    lanes: bool


@dataclass(frozen=True, slots=True)
class _Path:
    """What lies between a level and a statement below it."""

    tiles: tuple[For, ...] = ()
    others: frozenset[Var] = frozenset()
    looped: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """What holds at a level, the tiles around it, and the guards that stay where they are."""

    known: Known
    tiles: frozenset[Var] = frozenset()
    kept: frozenset[Expr] = frozenset()
    stores: int = MOST_STORES
    threads: tuple[For, ...] = ()

    @property
    def start(self) -> _Path:
        """Give the way from here down, before its first step."""
        return _Path(self.threads)

    def assuming(self, claim: Bool) -> _Place:
        return replace(self, known=self.known.assuming(claim))

    def inside(self, loop: For) -> _Place:
        return replace(self, known=self.known.inside(loop))


def lift_tails(statement: Stmt, known: Known, threads: tuple[For, ...] = ()) -> Stmt:
    """Lift the guards of tiles, in every loop body from the outside in.

    ``threads`` are loops around everything that count as tiles too: what is lifted is alike for
    all threads of a block. Then there is one copy for all that does not fit.

    Before::
        for i0 in range((m + 3) // 4):
            for i1 in unrolled(4):
                if i0 * 4 + i1 < m: body(i1)
    After::
        for i0 in range((m + 3) // 4):
            if i0 * 4 + 3 < m:
                for i1 in unrolled(4): body(i1)
            elif m - i0 * 4 == 3: (three rows)
            elif ...
    """
    return _level(statement, _Place(known, threads=threads))


def _level(body: Stmt, place: _Place) -> Stmt:
    guard = next(_liftable(body, place, place.start), None)
    if guard is None:
        return _descend(body, place)
    if isinstance(body, Seq):
        return _level_range(body, guard, place)
    return _versions(body, guard, place)


def _level_range(body: Seq, guard: Guard, place: _Place) -> Stmt:
    """Make versions of the statements from the first to the last that the guard is about."""
    concerned = [
        k
        for k, part in enumerate(body.body)
        if any(g.slack is guard.slack for g in _liftable(part, place, place.start))
    ]
    first, last = concerned[0], concerned[-1] + 1
    pieces = [_versions(seq(*body.body[first:last]), guard, place)]
    if first:
        pieces.insert(0, _level(seq(*body.body[:first]), place))
    if last < len(body.body):
        pieces.append(_level(seq(*body.body[last:]), place))
    return seq(*pieces)


def _versions(body: Stmt, guard: Guard, place: _Place) -> Stmt:
    same = [g for g in _liftable(body, place, place.start) if g.slack is guard.slack]
    full, least = max(g.highest for g in same), min(g.lowest for g in same)
    slack, room = guard.slack, guard.slack >= full

    whole = bool(place.threads) or any(g.lanes for g in same) or full - least > MOST_TRIED
    sizes = range(0) if whole else range(least, full)
    exact = [c for n in sizes if (c := place.known.decide(eq(slack, n))) is not FALSE]
    whole = whole or not _affordable(body, len(exact), place.stores)
    share = place.stores // (2 if whole else len(exact) + 1)

    def version(claim: Bool) -> Stmt:
        inner = replace(place.assuming(claim), kept=place.kept | {slack}, stores=share)
        return _level(prune(body, inner.known), inner)

    if whole:
        return _branch(room, version(room), version(negate(room)))
    tail = prune(body, place.known.assuming(slack < least))
    for claim in exact:
        tail = _branch(claim, version(claim), tail)
    return _branch(room, version(room), tail)


def _branch(claim: Bool, then: Stmt, otherwise: Stmt) -> Stmt:
    empty = isinstance(otherwise, Seq) and not otherwise.body
    return If(claim, then, None if empty else otherwise)


def _descend(statement: Stmt, place: _Place) -> Stmt:
    match statement:
        case For(kind="serial" | "parallel" | "thread"):
            body = _level(statement.body, place.inside(statement))
            return _split_loop(replace(statement, body=body))
        case For():
            inner = replace(place.inside(statement), tiles=place.tiles | {statement.var})
            return with_children(statement, (_descend(statement.body, inner),))
        case Let():
            return with_children(statement, (_level(statement.body, place),))
        case If(condition=claim, then=then, otherwise=otherwise):
            first = _descend(then, place.assuming(claim))
            if otherwise is None:
                return with_children(statement, (first,))
            other = _descend(otherwise, place.assuming(negate(claim)))
            return with_children(statement, (first, other))
        case _:
            below = tuple(_descend(c, place) for c in children(statement))
            return with_children(statement, below)


# ---------------------------------------------------------------- finding guards


def _liftable(statement: Stmt, place: _Place, path: _Path) -> Iterator[Guard]:
    """Iterate the guards below that do not depend on what is bound between, but for tiles."""
    match statement:
        case For(kind="unrolled" | "vectorized"):
            inner = replace(path, tiles=(*path.tiles, statement))
            yield from _liftable(statement.body, place.inside(statement), inner)
        case For():
            inner = replace(path, others=path.others | {statement.var}, looped=True)
            yield from _liftable(statement.body, place.inside(statement), inner)
        case Let():
            inner = replace(path, others=path.others | {statement.var})
            yield from _liftable(statement.body, place, inner)
        case _:
            if isinstance(statement, If):
                yield from _own_guards(statement, place, path)
            for child in children(statement):
                yield from _liftable(child, place, path)


def _own_guards(branch: If, place: _Place, path: _Path) -> Iterator[Guard]:
    hidden = place.tiles | path.others
    for part in conjuncts(place.known.decide(branch.condition)):
        guard = _guard(part, path) if part.free.isdisjoint(hidden) else None
        if guard is not None and guard.slack not in place.kept:
            yield guard


def _guard(part: Bool, path: _Path) -> Guard | None:
    """Split a comparison into a slack and what the tile's own variables add."""
    if not isinstance(part, Lt | Le):
        return None
    tiles = [t for t in path.tiles if t.var in part.free]
    if not tiles and not path.looped:
        return None
    rest = part.right - part.left - (1 if isinstance(part, Lt) else 0)
    form = linear_form(rest, tuple(t.var for t in tiles))
    if form is None:
        return None
    low = high = 0
    for tile in tiles:
        factor, count = const_value(form.coefficients[tile.var]), const_value(tile.extent)
        if factor is None or count is None:
            return None
        reach = -factor * (count - 1)
        low, high = low + min(0, reach), high + max(0, reach)
    return Guard(form.rest, low, high, any(t.kind == "vectorized" for t in tiles))


# ---------------------------------------------------------------- cost and loops


def unrolled_stores(statement: Stmt) -> int:
    """Count stores, those in unrolled loops as often as they will be written.

    A tensor instruction takes at once what one lane of it does, however many steps that has.
    """
    if isinstance(statement, Store):
        return 1
    if isinstance(statement, Block) and INTRINSIC in dict(statement.annotations):
        return _rows(statement.body)
    times = 1
    if isinstance(statement, For) and statement.kind == "unrolled":
        times = const_value(statement.extent) or 1
    return times * sum(unrolled_stores(c) for c in children(statement))


def _rows(nest: Stmt) -> int:
    """Count the unrolled iterations of a tensorized nest down to its lanes."""
    if not isinstance(nest, For):
        return max((_rows(c) for c in children(nest)), default=1)
    if nest.kind == "vectorized":
        return 1
    return (const_value(nest.extent) or 1) * _rows(nest.body)


def _affordable(body: Stmt, copies: int, stores: int) -> bool:
    return 0 < copies <= MOST_COPIES and unrolled_stores(body) * copies <= stores


def _split_loop(loop: For) -> Stmt:
    """Split a loop at the iteration where the condition of its whole body changes."""
    body = loop.body
    if loop.kind != "serial" or not isinstance(body, If) or _has_loops(body):
        return loop
    bound = solve(body.condition, loop.var) if loop.var in body.condition.free else None
    if bound is None or not bound.above:
        return loop
    cut = maximum(minimum(bound.limit, loop.extent), 0)
    main = replace(loop, extent=cut, body=body.then)
    if body.otherwise is None:
        return main
    moved = substitute_in(body.otherwise, {loop.var: loop.var + cut})
    return seq(main, replace(loop, extent=loop.extent - cut, body=moved))


def _has_loops(statement: Stmt) -> bool:
    if isinstance(statement, For) and statement.kind in ("serial", "parallel"):
        return True
    return any(_has_loops(c) for c in children(statement))
