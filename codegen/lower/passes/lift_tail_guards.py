"""Guards of tiles lifted out of the loops they do not depend on.

A guard such as ``i0 * 14 + i1 < m`` is tested per element, inside an unrolled tile. Lifted to the
body of loop ``i0``, it becomes one test per tile. A full tile runs without guards. A partial tile
runs one of several copies, one per remaining number of rows, whose guards are decided when the tile
is unrolled; if the guard depends on vector lanes, it runs a masked copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.loop.nodes import INTRINSIC, Block, For, If, Let, PrimFunc, Seq, Stmt, Store
from ....ir.loop.visit import children, seq, substitute_in, with_children
from ....ir.symbolic import (
    FALSE,
    Bool,
    Expr,
    Le,
    Lt,
    Var,
    conjuncts,
    const_value,
    eq,
    linear_form,
    maximum,
    minimum,
    negate,
)
from ....ir.symbolic.assumptions import Assumptions
from ....schedules.launch.lowering_pass import CPU, Pass
from ....target.target import Target
from ..analysis.linear_limits import solve
from .prune_branches import prune

MAX_TAIL_COPIES = 16
"""The maximum number of copies of a partial tile, one per remaining size."""

MAX_TAIL_SIZES = 4 * MAX_TAIL_COPIES
"""The maximum number of remaining sizes that are tested for whether they can occur."""

MAX_UNROLLED_STORES = 2_000
"""The maximum number of unrolled stores in all copies, shared by nested tiles."""


@dataclass(frozen=True, slots=True)
class Guard:
    """The guard ``slack - tile >= 0``, with ``tile`` in ``lowest .. highest`` inside the tile."""

    slack: Expr
    lowest: int
    highest: int
    lanes: bool


@dataclass(frozen=True, slots=True)
class _Path:
    """The loops between an insertion point and a statement below it."""

    tiles: tuple[For, ...] = ()
    others: frozenset[Var] = frozenset()
    looped: bool = False


@dataclass(frozen=True, slots=True)
class _InsertionPoint:
    """The assumptions at a loop level, the tiles around it, and the guards that are not lifted."""

    assumptions: Assumptions
    tiles: frozenset[Var] = frozenset()
    kept: frozenset[Expr] = frozenset()
    stores: int = MAX_UNROLLED_STORES
    threads: tuple[For, ...] = ()

    @property
    def start(self) -> _Path:
        """The empty path from this point downwards."""
        return _Path(self.threads)

    def assuming(self, claim: Bool) -> _InsertionPoint:
        return replace(self, assumptions=self.assumptions.assuming(claim))

    def inside(self, loop: For) -> _InsertionPoint:
        return replace(self, assumptions=self.assumptions.iterating(loop.var, loop.extent))


class LiftTailGuards(Pass):
    """Lift guards of partial tiles out of the loops that they do not depend on.

    Before::
        for i0 in range((m + 13) // 14):
            for k in range(n):
                for i1 in unrolled(14):
                    if i0 * 14 + i1 < m: body(i1)
    After::
        for i0 in range((m + 13) // 14):
            if m - i0 * 14 >= 14:
                for k in range(n):
                    for i1 in unrolled(14):
                        body(i1)
            else:
                ...  # one copy per remaining number of rows, or a masked copy for lanes

    A guard is tested per tile instead of per element. Full tiles run without guards.
    """

    targets = CPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Lift all guards of tiles."""
        del target
        return replace(func, body=lift_tail_guards(func.body, Assumptions.of(func.facts)))


def lift_tail_guards(
    statement: Stmt, assumptions: Assumptions, threads: tuple[For, ...] = ()
) -> Stmt:
    """Lift the guards of tiles in every loop body, outermost first.

    ``threads`` are loops around the statement that count as tiles, too, so a lifted condition is
    uniform across the threads of a block. There is then one copy for all partial tiles.

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
    return _level(statement, _InsertionPoint(assumptions, threads=threads))


def _level(body: Stmt, point: _InsertionPoint) -> Stmt:
    guard = next(_liftable(body, point, point.start), None)
    if guard is None:
        return _descend(body, point)
    if isinstance(body, Seq):
        return _level_range(body, guard, point)
    return _versions(body, guard, point)


def _level_range(body: Seq, guard: Guard, point: _InsertionPoint) -> Stmt:
    """Create versions of the statements from the first to the last with the guard."""
    concerned = [
        k
        for k, part in enumerate(body.body)
        if any(g.slack is guard.slack for g in _liftable(part, point, point.start))
    ]
    first, last = concerned[0], concerned[-1] + 1
    pieces = [_versions(seq(*body.body[first:last]), guard, point)]
    if first:
        pieces.insert(0, _level(seq(*body.body[:first]), point))
    if last < len(body.body):
        pieces.append(_level(seq(*body.body[last:]), point))
    return seq(*pieces)


def _versions(body: Stmt, guard: Guard, point: _InsertionPoint) -> Stmt:
    same = [g for g in _liftable(body, point, point.start) if g.slack is guard.slack]
    full, least = max(g.highest for g in same), min(g.lowest for g in same)
    slack, room = guard.slack, guard.slack >= full

    whole = bool(point.threads) or any(g.lanes for g in same) or full - least > MAX_TAIL_SIZES
    sizes = range(0) if whole else range(least, full)
    exact = [c for n in sizes if (c := point.assumptions.decide(eq(slack, n))) is not FALSE]
    whole = whole or not _affordable(body, len(exact), point.stores)
    share = point.stores // (2 if whole else len(exact) + 1)

    def version(claim: Bool) -> Stmt:
        inner = replace(point.assuming(claim), kept=point.kept | {slack}, stores=share)
        return _level(prune(body, inner.assumptions), inner)

    if whole:
        return _branch(room, version(room), version(negate(room)))
    tail = prune(body, point.assumptions.assuming(slack < least))
    for claim in exact:
        tail = _branch(claim, version(claim), tail)
    return _branch(room, version(room), tail)


def _branch(claim: Bool, then: Stmt, otherwise: Stmt) -> Stmt:
    empty = isinstance(otherwise, Seq) and not otherwise.body
    return If(claim, then, None if empty else otherwise)


def _descend(statement: Stmt, point: _InsertionPoint) -> Stmt:
    match statement:
        case For(kind="serial" | "parallel" | "thread"):
            body = _level(statement.body, point.inside(statement))
            return _split_loop(replace(statement, body=body))
        case For():
            inner = replace(point.inside(statement), tiles=point.tiles | {statement.var})
            return with_children(statement, (_descend(statement.body, inner),))
        case Let():
            return with_children(statement, (_level(statement.body, point),))
        case If(condition=claim, then=then, otherwise=otherwise):
            first = _descend(then, point.assuming(claim))
            if otherwise is None:
                return with_children(statement, (first,))
            other = _descend(otherwise, point.assuming(negate(claim)))
            return with_children(statement, (first, other))
        case _:
            below = tuple(_descend(c, point) for c in children(statement))
            return with_children(statement, below)


def _liftable(statement: Stmt, point: _InsertionPoint, path: _Path) -> Iterator[Guard]:
    """Yield the guards below that depend on no variable bound in between, except tile loops."""
    match statement:
        case For(kind="unrolled" | "vectorized"):
            inner = replace(path, tiles=(*path.tiles, statement))
            yield from _liftable(statement.body, point.inside(statement), inner)
        case For():
            inner = replace(path, others=path.others | {statement.var}, looped=True)
            yield from _liftable(statement.body, point.inside(statement), inner)
        case Let():
            inner = replace(path, others=path.others | {statement.var})
            yield from _liftable(statement.body, point, inner)
        case _:
            if isinstance(statement, If):
                yield from _own_guards(statement, point, path)
            for child in children(statement):
                yield from _liftable(child, point, path)


def _own_guards(branch: If, point: _InsertionPoint, path: _Path) -> Iterator[Guard]:
    hidden = point.tiles | path.others
    for part in conjuncts(point.assumptions.decide(branch.condition)):
        guard = _guard(part, path) if part.free.isdisjoint(hidden) else None
        if guard is not None and guard.slack not in point.kept:
            yield guard


def _guard(part: Bool, path: _Path) -> Guard | None:
    """Split a comparison into a slack and the range of its terms in the tile variables."""
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


def unrolled_stores(statement: Stmt) -> int:
    """Return the number of stores, counting those in unrolled loops once per iteration.

    A tensorized block counts once per unrolled iteration outside of its lanes.
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
    """Return the number of unrolled iterations of a tensorized nest above its lanes."""
    if not isinstance(nest, For):
        return max((_rows(c) for c in children(nest)), default=1)
    if nest.kind == "vectorized":
        return 1
    return (const_value(nest.extent) or 1) * _rows(nest.body)


def _affordable(body: Stmt, copies: int, stores: int) -> bool:
    return 0 < copies <= MAX_TAIL_COPIES and unrolled_stores(body) * copies <= stores


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
