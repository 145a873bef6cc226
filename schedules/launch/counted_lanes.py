"""Extreme values per lane with the number of the iteration instead of an index.

The number is narrower than the index, and its order is that of the iterations, so that the loop
does not compare it: it keeps a value unless a later one is better.
"""

from __future__ import annotations

from typing import Final

from ...ir.dtype import (
    bool_,
    i32,
    i64,
)
from ...ir.loop.combiners import is_named
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
from ...ir.loop.visit import seq
from ...ir.symbolic import (
    Bool,
    Expr,
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
    at_lane,
)

NUMBERS: Final = 2**30
"""The number of iterations that are numbered together."""

_NOTHING: Final = Seq(())


def is_counted(site: Site) -> bool:
    """Return whether the terms of a reduction are values with increasing indices in each lane."""
    parts, root = site.parts, site.loops[-1]
    if parts.reducer.name not in ("argmax", "argmin") or not is_named(parts.reducer):
        return False
    if len(site.loops) != 2 or root is site.lanes or parts.reducer.left[1].dtype != i64:
        return False
    step = _step(index_of(site), root.var)
    return step is not None and step > 0 and all(_keeps_first(p, root.var) for p in site.guards)


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
    """A writer of the statements of a reduction whose lanes number their iterations."""

    def reduced(self) -> Stmt:
        """Return the statements that reduce the terms of each lane."""
        root, names = self.site.loops[-1], self.names
        count = ceildiv(root.extent, NUMBERS)
        counter = names.variable(f"{root.var.name}_block", count)
        length = minimum(root.extent - counter * NUMBERS, as_expr(NUMBERS))
        body = self._numbered(length, counter * NUMBERS)
        return seq(self.starts(self.results), For(names.mint(), counter, count, body))

    def _numbered(self, extent: Expr, start: Expr) -> Stmt:
        """Return the reduction of iterations from a start on: the first one, then the others.

        A lane that does not run the first iteration runs none.
        """
        dtypes = {"best": self.results[0].dtype, "number": i32}
        into = tuple(self.partial(name, dtype) for name, dtype in dtypes.items())
        one = as_expr(1)
        first = self.terms(into, one, start, self._first)
        others = self.terms(into, extent - one, start + one, self._better)
        last = self.terms(into, one, start, self._indexed)
        return seq(first, others, last)

    def _first(self, parts: Reducing, into: tuple[Load, ...], turn: Var) -> tuple[Stmt, ...]:
        """Return the statements of the first iteration."""
        del turn
        values = (parts.terms[0], Number(0, i32))
        return _stores(into, values, parts)

    def _better(self, parts: Reducing, into: tuple[Load, ...], turn: Var) -> tuple[Stmt, ...]:
        """Return the statements that keep the previous value unless the next one is better."""
        best, number = into
        u, v = Local("best", best.dtype), Local("value", best.dtype)
        keep = Local("keep", bool_)
        kept: Element = Compare("ge" if self.site.parts.reducer.name == "argmax" else "le", u, v)
        if u.dtype.is_float:
            kept = Binary("or", kept, Unary("isnan", u))
        binds = (Bind(x, e, _NOTHING) for x, e in ((u, best), (v, parts.terms[0]), (keep, kept)))
        values = (Where(keep, u, v), Where(keep, number, Index(turn + 1, i32)))
        return (*binds, *_stores(into, values, parts))

    def _indexed(self, parts: Reducing, into: tuple[Load, ...], turn: Var) -> tuple[Stmt, ...]:
        """Return the statements that combine values and indices with the results of the lane."""
        del turn
        best, number = into
        step = _step(index_of(self.site), self.site.loops[-1].var) or 1
        offset = Binary("mul", Cast(i64, number), Number(step, i64))
        ((lane,),) = {target.indices for target in into}
        results = at_lane(self.results, lane)
        index = Binary("add", parts.terms[1], offset)
        return update_statements(
            self.site.parts.reducer, results, results, (best, index), parts.origins
        )


def _stores(
    into: tuple[Load, ...], values: tuple[Element, ...], parts: Reducing
) -> tuple[Stmt, ...]:
    return tuple(
        Store(target.buffer, target.indices, value, parts.origins)
        for target, value in zip(into, values, strict=True)
    )
