"""Extreme values per lane with a number of 32 bits instead of an index.

The number is the distance of the index from that of the first lane in the first iteration. Its
order is that of the iterations, so that the loop does not compare it: it keeps a value unless a
later one is better. The results of the lanes are combined with their numbers, and the index is
computed once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ...ir.dtype import (
    bool_,
    i32,
    i64,
)
from ...ir.loop.combiners import is_named, named_reducer
from ...ir.loop.decompose import Namer
from ...ir.loop.nodes import (
    Binary,
    Bind,
    Cast,
    Compare,
    Element,
    For,
    Index,
    Load,
    Local,
    Number,
    Seq,
    Stmt,
    Store,
    Unary,
    Where,
)
from ...ir.loop.reducers import (
    Reducing,
    update_statements,
)
from ...ir.loop.regions import access_regions
from ...ir.loop.straight_line import joined
from ...ir.loop.visit import seq
from ...ir.symbolic import (
    Bool,
    Expr,
    Facts,
    Le,
    Lt,
    Var,
    as_expr,
    ceildiv,
    const_value,
    linear_form,
    minimum,
    substitute,
)
from .lane_results import (
    LaneResults,
    Site,
    Targets,
    at_lane,
)

LARGEST: Final = i32.highest
"""The largest number."""

LEAST_ITERATIONS: Final = 64
"""The least number of iterations that are numbered together; otherwise indices are compared."""

_NOTHING: Final = Seq(())


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of the terms of a reduction.

    Parameters
    ----------
    step, lane : int
        The difference between the numbers of consecutive iterations, and of adjacent lanes.
    none : int
        The number of a lane before its first iteration: with that of any lane added, it is larger
        than all numbers of terms.
    iterations : int
        The number of iterations that are numbered together, a power of two.
    """

    step: int
    lane: int
    none: int
    iterations: int


def numbers_of(site: Site) -> Numbers | None:
    """Return the numbers of the terms of a reduction.

    None unless the terms are values with increasing indices, at constant distances of which 32 bits
    hold many.
    """
    parts, root = site.parts, site.loops[-1]
    if parts.reducer.name not in ("argmax", "argmin") or not is_named(parts.reducer):
        return None
    if len(site.loops) != 2 or root is site.lanes or parts.reducer.left[1].dtype != i64:
        return None
    if not all(_keeps_first(p, root.var) for p in site.guards):
        return None
    index, lanes = index_of(site), const_value(site.lanes.extent)
    step, lane = _step(index, root.var), _step(index, site.lanes.var)
    if step is None or lane is None or lanes is None or step <= 0 or lane < 0:
        return None
    last = lane * (lanes - 1)
    iterations = (LARGEST - 2 * last - 1) // step
    if iterations < LEAST_ITERATIONS:
        return None
    return Numbers(step, lane, LARGEST - last, 1 << (iterations.bit_length() - 1))


def index_of(site: Site) -> Expr | None:
    """Return the index of a term as a term over the loops; None if it is another element."""
    term = site.parts.terms[1]
    bindings = {v.var: v.binding for v in site.block.iters}
    return substitute(term.value, bindings) if isinstance(term, Index) else None


def _step(index: Expr | None, variable: Var) -> int | None:
    """Return the constant difference between the indices of consecutive iterations."""
    form = None if index is None else linear_form(index, {variable})
    return None if form is None else const_value(form.coefficients.get(variable, as_expr(0)))


def _keeps_first(guard: Bool, variable: Var) -> bool:
    """Return whether a guard that holds in an iteration holds in all iterations before it."""
    if not isinstance(guard, Lt | Le):
        return False
    step = _step(guard.left - guard.right, variable)
    return step is not None and step >= 0


class CountedLanes(LaneResults):
    """A writer of the statements of a reduction whose lanes number their terms."""

    def __init__(self, names: Namer, site: Site, facts: Facts, numbers: Numbers) -> None:
        """Start with an extreme value and a number per lane."""
        super().__init__(names, site, facts)
        self._numbers = numbers
        self._reducer = named_reducer(
            site.parts.reducer.name, tuple(buffer.dtype for buffer in self.results)
        )

    def statements(self) -> Stmt:
        """Return the statements of the reduction: those of iterations that are numbered together.

        The first iteration stores the terms. A lane that does not run it runs none.
        """
        root, names, size = self.site.loops[-1], self.names, self._numbers.iterations
        count = ceildiv(root.extent, size)
        counter = names.variable(f"{root.var.name}_block", count)
        start, one = counter * size, as_expr(1)
        extent = minimum(root.extent - start, as_expr(size))
        body = seq(
            self.starts(self.results),
            self.terms(self.results, one, start, self._first),
            self.terms(self.results, extent - one, start + one, self._better),
            self._with_lane(),
            *self.halves(),
            self._indexed(start),
        )
        return For(names.mint(), counter, count, body)

    def _acquire(self) -> Targets:
        dtype = self.site.parts.targets[0].buffer.dtype
        return self.partial("best", dtype), self.partial("number", i32)

    def starts(self, into: Targets) -> Stmt:
        """Return the loop that stores the identity and the number of a lane without terms."""
        lane, loop = self.lane(self.extent)
        identity = self.site.parts.reducer.identities[0]
        values = (identity, Number(self._numbers.none, i32))
        return loop("init", seq(*_stores(at_lane(into, lane), values, self.site.parts)), None)

    def _first(self, parts: Reducing, into: tuple[Load, ...], turn: Var) -> tuple[Stmt, ...]:
        """Return the statements of the first iteration."""
        del turn
        return _stores(into, (parts.terms[0], Number(0, i32)), parts)

    def _better(self, parts: Reducing, into: tuple[Load, ...], turn: Var) -> tuple[Stmt, ...]:
        """Return the statements that keep the previous value unless the next one is better."""
        best, number = into
        u, v = Local("best", best.dtype), Local("value", best.dtype)
        keep = Local("keep", bool_)
        kept: Element = Compare("ge" if self.site.parts.reducer.name == "argmax" else "le", u, v)
        if u.dtype.is_float:
            kept = Binary("or", kept, Unary("isnan", u))
        binds = (Bind(x, e, _NOTHING) for x, e in ((u, best), (v, parts.terms[0]), (keep, kept)))
        later = Index((turn + 1) * self._numbers.step, i32)
        values = (Where(keep, u, v), Where(keep, number, later))
        return (*binds, *_stores(into, values, parts))

    def _with_lane(self) -> Stmt:
        """Return the loop that adds the number of a lane to those of its iterations."""
        lane, loop = self.lane(self.extent)
        (_, number), parts = at_lane(self.results, lane), self.site.parts
        value = Binary("add", number, Index(lane * self._numbers.lane, i32))
        return loop("number", Store(number.buffer, number.indices, value, parts.origins), None)

    def _indexed(self, start: Expr) -> Stmt:
        """Return the block that combines the result of the lanes with the elements."""
        site = self.site
        first: dict[Var, Expr] = {site.loops[-1].var: start, site.lanes.var: as_expr(0)}
        block = self.copied(first)
        parts = self.parts(block)
        best, number = at_lane(self.results, as_expr(0))
        missing = Compare("ge", number, Number(self._numbers.none, i32))
        index = Binary("add", parts.terms[1], Cast(i64, number))
        found = Where(missing, site.parts.reducer.identities[1], index)
        body = joined(
            update_statements(
                parts.reducer, parts.targets, parts.targets, (best, found), parts.origins
            )
        )
        reads, writes = access_regions(body)
        return replace(
            block,
            name=self.names.fresh(f"{site.block.name}_combine"),
            predicate=site.predicate,
            body=body,
            reads=reads,
            writes=writes,
        )


def _stores(
    into: tuple[Load, ...], values: tuple[Element, ...], parts: Reducing
) -> tuple[Stmt, ...]:
    return tuple(
        Store(target.buffer, target.indices, value, parts.origins)
        for target, value in zip(into, values, strict=True)
    )
