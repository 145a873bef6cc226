"""Partial results of a reduction by a declared reducer: one per lane of a vectorized loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Final, TypeAlias

from ...ir.dtype import DType
from ...ir.loop.decompose import Namer
from ...ir.loop.nodes import (
    Binary,
    Block,
    Buffer,
    For,
    If,
    IterVar,
    Load,
    Reducer,
    Stmt,
    Ternary,
    Unary,
)
from ...ir.loop.reducers import (
    Reducing,
    reducing,
    update_statements,
)
from ...ir.loop.regions import access_regions
from ...ir.loop.straight_line import joined
from ...ir.loop.visit import (
    seq,
    substitute_in,
    walk_element,
)
from ...ir.symbolic import (
    TRUE,
    Bool,
    Expr,
    Facts,
    Var,
    all_of,
    as_expr,
    bounds,
    ceildiv,
    const_value,
    minimum,
    substitute,
)

TERMS: Final = 64
"""The maximum number of terms that one partial result of a lane combines in sequence."""

LEVELS: Final = 2
"""The maximum number of levels of blocks of terms."""

_EXACT: Final = frozenset({"min", "max", "neg", "abs"})


@dataclass(frozen=True, slots=True)
class Site:
    """A vectorized reduction: its block, the loop of its lanes, and the loops around to repeat."""

    block: Block
    parts: Reducing
    lanes: For
    loops: tuple[For, ...]
    predicate: Bool
    guards: tuple[Bool, ...] = ()


def _sizes(site: Site, facts: Facts) -> tuple[int, ...]:
    """Return the iterations of the outermost loop per block of terms, the smallest block first.

    There are none if the loop is short, or if the reducer does not round its results.
    """
    root = site.loops[-1]
    if root is site.lanes or not rounds(site.parts.reducer):
        return ()
    inner = [const_value(x.extent) for x in site.loops[:-1] if x is not site.lanes]
    terms = prod(size or TERMS for size in inner)
    size = max(1, TERMS // max(1, terms))
    upper = bounds(root.extent, facts).upper
    if upper is not None and upper <= size:
        return ()
    sizes = [size]
    while len(sizes) < LEVELS and (upper is None or sizes[-1] * TERMS < upper):
        sizes.append(sizes[-1] * TERMS)
    return tuple(sizes)


def rounds(reducer: Reducer) -> bool:
    """Return whether a reducer computes floating-point numbers, and does not only choose them."""
    values = (*(value for _, value in reducer.binds), *reducer.results)
    parts = (part for value in values for part in walk_element(value))
    return any(
        isinstance(part, Unary | Binary | Ternary) and part.dtype.is_float and part.op not in _EXACT
        for part in parts
    )


Targets: TypeAlias = tuple[Buffer, ...]
Update: TypeAlias = Callable[[Reducing, tuple[Load, ...], Var], tuple[Stmt, ...]]


class LaneResults:
    """A writer of the statements of one reduction; :attr:`buffers` are its partial results."""

    def __init__(self, names: Namer, site: Site, facts: Facts) -> None:
        """Start with a partial result per lane."""
        self.buffers: list[Buffer] = []
        self.names, self.site, self.facts = names, site, facts
        self._reducer, self.extent = site.parts.reducer, site.lanes.extent
        self.results = self._acquire()

    def statements(self) -> Stmt:
        """Return the statements of the reduction."""
        runs = all_of(*(x.extent >= 1 for x in self.site.loops))
        combined = seq(*self.halves(), self._last())
        return seq(self._reduced(), combined if runs is TRUE else If(runs, combined))

    def _reduced(self) -> Stmt:
        """Return the statements that reduce the terms of each lane."""
        root, sizes = self.site.loops[-1], _sizes(self.site, self.facts)
        start = self.starts(self.results)
        if not sizes:
            return seq(start, self.terms(self.results, root.extent, as_expr(0)))
        size = as_expr(sizes[0])
        first = self.terms(self.results, minimum(root.extent, size), as_expr(0))
        rest = self._blocks(self.results, root.extent - size, size, sizes)
        several = root.extent > size
        return seq(start, first, rest if several is TRUE else If(several, rest))

    def halves(self) -> list[Stmt]:
        """Return the loops that combine the results of all lanes into that of the first."""
        size = const_value(self.extent) or 1
        halves: list[Stmt] = []
        while size > 1:
            half, size = size // 2, size - size // 2
            halves.append(self._halved(half, size))
        return halves

    def partial(self, name: str, dtype: DType) -> Buffer:
        """Add a buffer with an element per lane."""
        names = self.names
        made = Buffer(names.mint(), names.fresh(name), (self.extent,), dtype, "local")
        self.buffers.append(made)
        return made

    def _acquire(self) -> Targets:
        targets = (target.buffer for target in self.site.parts.targets)
        return tuple(self.partial(f"{b.name}_part", b.dtype) for b in targets)

    def _blocks(self, into: Targets, extent: Expr, start: Expr, sizes: tuple[int, ...]) -> Stmt:
        """Return the reduction of iterations from a start on, in blocks of the largest size."""
        if not sizes:
            return self.terms(into, extent, start)
        size, count, own = sizes[-1], ceildiv(extent, sizes[-1]), self._acquire()
        counter = self.names.variable(f"{self.site.loops[-1].var.name}_block", count)
        length = minimum(as_expr(size), extent - counter * size)
        inner = self._blocks(own, length, start + counter * size, sizes[:-1])
        body = seq(self.starts(own), inner, self.added(into, own))
        return For(self.names.mint(), counter, count, body)

    def terms(self, into: Targets, extent: Expr, start: Expr, update: Update | None = None) -> Stmt:
        """Return a copy of the loops over some iterations of the outermost one.

        ``update`` returns the statements for the parts of the block, the elements of its lane, and
        the number of the iteration; by default those of the reducer.
        """
        names, (*inner, root) = self.names, self.site.loops
        variable = names.variable(root.var.name, extent)
        renamed: dict[Var, Expr] = {root.var: start + variable}
        loops = [replace(root, uid=names.mint(), var=variable, extent=extent)]
        for loop in reversed(inner):
            size = substitute(loop.extent, renamed)
            own = names.variable(loop.var.name, size)
            renamed[loop.var] = own
            loops.append(replace(loop, uid=names.mint(), var=own, extent=size))
        block = self.copied(renamed)
        parts, lane = self.parts(block), names.variable("lane", self.extent)
        iters = [*block.iters, IterVar(lane, self.extent, "spatial", renamed[self.site.lanes.var])]
        if update is None:
            body = replace(parts, targets=at_lane(into, lane)).body()
        else:
            turn = names.variable("turn", extent)
            iters.append(IterVar(turn, extent, "reduce", variable))
            body = joined((*parts.prefix, *update(parts, at_lane(into, lane), turn)))
            block = replace(block, reducer=None)
        reads, writes = access_regions(body)
        made: Stmt = replace(block, iters=tuple(iters), body=body, reads=reads, writes=writes)
        for loop in reversed(loops):
            made = replace(loop, body=made)
        return made

    def copied(self, renamed: dict[Var, Expr]) -> Block:
        """Return a copy of the block at other values of the loops around it."""
        names, block = self.names, self.site.block
        extents = [substitute(v.extent, renamed) for v in block.iters]
        fresh = {
            v.var: names.variable(v.var.name, extent)
            for v, extent in zip(block.iters, extents, strict=True)
        }
        iters = (
            IterVar(fresh[v.var], extent, v.kind, substitute(v.binding, renamed))
            for v, extent in zip(block.iters, extents, strict=True)
        )
        return replace(
            block,
            uid=names.mint(),
            name=names.fresh(block.name),
            iters=tuple(iters),
            predicate=substitute(block.predicate, renamed),
            body=substitute_in(block.body, fresh),
        )

    @staticmethod
    def parts(block: Block) -> Reducing:
        """Return the parts of a block that reduces by a reducer."""
        parts = reducing(block)
        if parts is None:
            raise TypeError(f"block {block.name!r} is not a reduction by a reducer")
        return parts

    def starts(self, into: Targets) -> Stmt:
        """Return the loop that stores the identities."""
        lane, loop = self.lane(self.extent)
        body = replace(self.site.parts, targets=at_lane(into, lane)).starts()
        return loop("init", body, None)

    def added(self, into: Targets, own: Targets) -> Stmt:
        """Return the loop that adds the results of a block of terms to those of the others."""
        lane, loop = self.lane(self.extent)
        parts = replace(
            self.site.parts, prefix=(), targets=at_lane(into, lane), terms=at_lane(own, lane)
        )
        return loop("add", parts.body(), self._reducer)

    def _halved(self, count: int, distance: int) -> Stmt:
        """Return the loop that combines the results of lanes at a distance."""
        lane, loop = self.lane(as_expr(count))
        own, other = at_lane(self.results, lane), at_lane(self.results, lane + distance)
        origins = self.site.parts.origins
        return loop("halve", joined(update_statements(self._reducer, own, own, other, origins)))

    def lane(self, extent: Expr) -> tuple[Var, Callable[..., Stmt]]:
        """Return an iteration variable of lanes, and a function that makes its loop."""
        names, lanes = self.names, self.site.lanes
        counter = names.variable(lanes.var.name, extent)
        lane = names.variable("lane", extent)

        def loop(kind: str, body: Stmt, reducer: Reducer | None = None) -> Stmt:
            iters = (IterVar(lane, extent, "spatial", counter),)
            block = self.made(kind, iters, body, reducer)
            one = const_value(extent) == 1
            return For(
                names.mint(),
                counter,
                extent,
                block,
                "serial" if one else "vectorized",
                origins=lanes.origins,
            )

        return lane, loop

    def _last(self) -> Stmt:
        """Return the block that combines the total of the lanes with the elements."""
        names, site = self.names, self.site
        spatial = [v for v in site.block.iters if v.kind != "reduce"]
        fresh = {v.var: names.variable(v.var.name, v.extent) for v in spatial}
        parts = replace(site.parts, prefix=(), terms=at_lane(self.results, as_expr(0)))
        iters = tuple(replace(v, var=fresh[v.var]) for v in spatial)
        made = self.made("combine", iters, substitute_in(parts.body(), fresh), self._reducer)
        return replace(made, predicate=site.predicate)

    def made(
        self, kind: str, iters: tuple[IterVar, ...], body: Stmt, reducer: Reducer | None
    ) -> Block:
        """Return a block of the reduction with other statements."""
        names, block = self.names, self.site.block
        reads, writes = access_regions(body)
        return Block(
            names.mint(),
            names.fresh(f"{block.name}_{kind}"),
            iters,
            reads,
            writes,
            body,
            origins=block.origins,
            reducer=reducer,
        )


def at_lane(partials: Targets, lane: Expr) -> tuple[Load, ...]:
    """Return the elements of partial results for a lane."""
    return tuple(Load(buffer, (lane,)) for buffer in partials)
