"""Extreme values per lane with a number of 32 bits instead of an index.

The number is the distance of the index from that of the first lane in the first iteration. Its
order is that of the iterations, so that the loop does not compare it: it keeps a value unless a
later one is better. The results of the lanes are combined with their numbers, and the index is
computed once.

If each number occurs once, the combination is one maximum or minimum of integers in the order of
the values, and one minimum of numbers: two short chains of operations. If there are registers for
it, the lanes then do not keep NaN, but have the number of their first NaN, so that each term waits
for one operation on the term before instead of three.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import nan
from typing import Final

from ...ir.dtype import (
    DType,
    bool_,
    i8,
    i16,
    i32,
    i64,
)
from ...ir.loop.combiners import Combiner, identity_of, is_named, named_reducer
from ...ir.loop.decompose import Namer
from ...ir.loop.nodes import (
    Binary,
    Bind,
    Buffer,
    Cast,
    Compare,
    Element,
    For,
    If,
    Index,
    IterVar,
    Load,
    Local,
    Number,
    Reinterpret,
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
from ...ir.loop.visit import seq, substitute_in
from ...ir.symbolic import (
    TRUE,
    Bool,
    Expr,
    Facts,
    Le,
    Lt,
    Var,
    all_of,
    as_expr,
    bounds,
    ceildiv,
    const_value,
    linear_form,
    minimum,
    substitute,
)
from ...target.cpus import Cpu
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

_BITS: Final = {dtype.bits: dtype for dtype in (i8, i16, i32, i64)}


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

    def are_distinct(self, lanes: int) -> bool:
        """Return whether the numbers of all terms are different."""
        return 0 < self.lane * lanes <= self.step


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

    def __init__(
        self, names: Namer, site: Site, facts: Facts, numbers: Numbers, cpu: Cpu | None
    ) -> None:
        """Start with an extreme value and a number per lane, on a CPU or, if None, on a GPU."""
        super().__init__(names, site, facts)
        self._numbers = numbers
        dtype, lanes = self.results[0].dtype, const_value(self.extent) or 0
        distinct = numbers.are_distinct(lanes)
        self._has_order = cpu is not None and distinct and _has_order(dtype)
        self._missing: Targets = ()
        if self._has_order and dtype.is_float and cpu is not None:
            bits = lanes * (dtype.bits + 2 * i32.bits)
            if 2 * bits <= cpu.registers * cpu.vector_bits:
                self._missing = (self.partial("missing", i32),)
        self._reducer = named_reducer(
            site.parts.reducer.name, tuple(buffer.dtype for buffer in self.results)
        )

    def statements(self) -> Stmt:
        """Return the statements of the reduction: those of iterations that are numbered together.

        Almost always these are all iterations, which have a version of their own.
        """
        root, names, size = self.site.loops[-1], self.names, self._numbers.iterations
        upper = bounds(root.extent, self.facts).upper
        if upper is not None and upper <= size:
            whole, some = self._numbered(as_expr(0), root.extent), root.extent >= 1
            return whole if some is TRUE else If(some, whole)
        count = ceildiv(root.extent, size)
        counter = names.variable(f"{root.var.name}_block", count)
        start = counter * size
        extent = minimum(root.extent - start, as_expr(size))
        blocks = For(names.mint(), counter, count, self._numbered(start, extent))
        few = all_of(root.extent >= 1, root.extent <= size)
        return If(few, self._numbered(as_expr(0), root.extent), blocks)

    @property
    def _replaces(self) -> bool:
        """Whether a comparison decides which values are kept, because lanes do not keep NaN."""
        return bool(self._missing) or not self.results[0].dtype.is_float

    def _numbered(self, start: Expr, extent: Expr) -> Stmt:
        """Return the statements of some iterations from a start on.

        The first iteration stores the terms. A lane that does not run it runs none.
        """
        one = as_expr(1)
        combined: tuple[Stmt, ...]
        if self._has_order:
            lanes, best, number = self._chosen(self.results[0].dtype)
            combined = (*lanes, self._indexed(start, best, number))
        else:
            best, number = at_lane(self.results, as_expr(0))
            combined = (*self.halves(), self._indexed(start, best, number))
        return seq(
            self.starts(self.results),
            self.terms(self.results, one, start, self._first),
            self.terms(
                self.results,
                extent - one,
                start + one,
                self._better if self._replaces else self._kept,
            ),
            self._with_lane(),
            *combined,
        )

    def _acquire(self) -> Targets:
        dtype = self.site.parts.targets[0].buffer.dtype
        return self.partial("best", dtype), self.partial("number", i32)

    def starts(self, into: Targets) -> Stmt:
        """Return the loop that stores the identity and the number of a lane without terms."""
        lane, loop = self.lane(self.extent)
        identity, none = self.site.parts.reducer.identities[0], Number(self._numbers.none, i32)
        values = (identity, none, none)[: 2 + len(self._missing)]
        targets = at_lane((*into, *self._missing), lane)
        return loop("init", seq(*_stores(targets, values, self.site.parts)), None)

    def _first(self, parts: Reducing, into: tuple[Load, ...], turn: Var) -> tuple[Stmt, ...]:
        """Return the statements of the first iteration."""
        del turn
        (term, _), zero = parts.terms, Number(0, i32)
        if not self._missing:
            return _stores(into, (term, zero), parts)
        value, missing = Local("value", term.dtype), Local("missing", bool_)
        binds = (Bind(value, term, _NOTHING), Bind(missing, Unary("isnan", value), _NOTHING))
        identity, none = self.site.parts.reducer.identities[0], Number(self._numbers.none, i32)
        values = (Where(missing, identity, value), zero, Where(missing, zero, none))
        return (*binds, *_stores(self._with_missing(into), values, parts))

    def _with_missing(self, into: tuple[Load, ...]) -> tuple[Load, ...]:
        return (*into, *(Load(buffer, into[0].indices) for buffer in self._missing))

    def _better(self, parts: Reducing, into: tuple[Load, ...], turn: Var) -> tuple[Stmt, ...]:
        """Return the statements that keep the previous value unless the next one is better.

        A NaN is not better. Its number is kept if it is the first one.
        """
        best, number = into
        u, v = Local("best", best.dtype), Local("value", best.dtype)
        better = Local("better", bool_)
        is_better = Compare("gt" if self.site.parts.reducer.name == "argmax" else "lt", v, u)
        later = Index((turn + 1) * self._numbers.step, i32)
        found = ((u, best), (v, parts.terms[0]), (better, is_better))
        binds = [Bind(x, e, _NOTHING) for x, e in found]
        values: list[Element] = [Where(better, v, u), Where(better, later, number)]
        targets = self._with_missing(into)
        for missing in targets[2:]:
            first = Binary("min", missing, later)
            values.append(Where(Unary("isnan", v), first, missing))
        return (*binds, *_stores(targets, tuple(values), parts))

    def _kept(self, parts: Reducing, into: tuple[Load, ...], turn: Var) -> tuple[Stmt, ...]:
        """Return the statements that keep NaN, or the previous value unless the next is better."""
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
        _, *numbers = at_lane((*self.results, *self._missing), lane)
        own = Index(lane * self._numbers.lane, i32)
        values = tuple(Binary("add", number, own) for number in numbers)
        return loop("number", seq(*_stores(tuple(numbers), values, self.site.parts)), None)

    def _chosen(self, dtype: DType) -> tuple[list[Stmt], Element, Element]:
        """Return statements that choose the first extreme value of the lanes, and it."""
        extreme: Combiner = "max" if self.site.parts.reducer.name == "argmax" else "min"
        of = _BITS[dtype.bits] if dtype.is_float else dtype
        order = self.partial("order", of)
        lane, loop = self.lane(self.extent)
        best, number = at_lane(self.results, lane)
        (key,) = at_lane((order,), lane)
        ordered = Store(order, (lane,), self._order(best, of, extreme), self.site.parts.origins)
        keys = loop("order", ordered, None)
        most, chosen = self._total("most", extreme, key, lane)
        none = identity_of("min", i32)
        first, found = self._total(
            "first", "min", Where(Compare("eq", key, most), number, none), lane
        )
        statements = [keys, *chosen, *found]
        if not dtype.is_float:
            return statements, most, first
        zero = Number(0, of)
        bits = Where(Compare("eq", number, first), Reinterpret(of, best), zero)
        value, picked = self._total("bits", "or", bits, lane)
        statements += picked
        if not self._missing:
            return statements, Reinterpret(dtype, value), first
        (missing,) = at_lane(self._missing, lane)
        lost, earliest = self._total("first_missing", "min", missing, lane)
        some = Compare("lt", lost, Number(self._numbers.none, i32))
        best = Where(some, Number(nan, dtype), Reinterpret(dtype, value))
        return [*statements, *earliest], best, Where(some, lost, first)

    def _order(self, value: Element, of: DType, extreme: Combiner) -> Element:
        """Return an integer with the order of a value: equal for both zeros, extreme for NaN."""
        if not value.dtype.is_float:
            return value
        bits = Reinterpret(of, Binary("add", value, Number(0.0, value.dtype)))
        sign = Binary("shr", bits, Number(of.bits - 1, of))
        ordered = Binary("xor", bits, Binary("and", sign, Number(of.highest, of)))
        if self._missing:
            return ordered
        last = Number(of.highest if extreme == "max" else of.lowest, of)
        return Where(Unary("isnan", value), last, ordered)

    def _total(
        self, name: str, combiner: Combiner, term: Element, lane: Var
    ) -> tuple[Load, list[Stmt]]:
        """Return the combination of a term of every lane, and its statements."""
        names, lanes, origins = self.names, self.site.lanes, self.site.parts.origins
        total = Buffer(names.mint(), names.fresh(name), (), term.dtype, "local")
        self.buffers.append(total)
        own = Load(total, ())
        start = Store(total, (), identity_of(combiner, term.dtype), origins)
        counter, fresh = (names.variable(x.name, self.extent) for x in (lanes.var, lane))
        value = Binary(combiner, own, term)
        update = substitute_in(Store(total, (), value, origins), {lane: fresh})
        iters = (IterVar(fresh, self.extent, "reduce", counter),)
        block = self.made(name, iters, update, None)
        several = replace(lanes, uid=names.mint(), var=counter, body=block)
        return own, [self.made(f"{name}_init", (), start, None), several]

    def _indexed(self, start: Expr, best: Element, number: Element) -> Stmt:
        """Return the block that combines the result of the lanes with the elements."""
        site = self.site
        first: dict[Var, Expr] = {site.loops[-1].var: start, site.lanes.var: as_expr(0)}
        block = self.copied(first)
        parts = self.parts(block)
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


def _has_order(dtype: DType) -> bool:
    """Return whether values of a dtype have the order of integers of a machine."""
    return dtype.is_machine and (dtype.is_integer or (dtype.is_float and dtype.bits in _BITS))
