"""Conditions under which one vector access replaces the accesses of a short loop."""

from __future__ import annotations

from collections.abc import Iterator

from ....ir.loop import nodes as loop
from ....ir.loop.memory_scopes import COMMON
from ....ir.loop.visit import Rebuilder, loads, stores, walk, walk_element
from ....ir.symbolic import TRUE, Bool, Expr, Var, all_of, as_expr, eq, linear_form, substitute
from .buffer_addresses import strides_of
from .context import LoweringContext


def is_simple(body: loop.Stmt) -> bool:
    """Return whether a body contains no loops and no bound integers."""
    return not any(isinstance(s, loop.For | loop.Let) for s in walk(body))


def assume_all_lanes(body: loop.Stmt, lane: Var) -> loop.Stmt:
    """Return a body with the conditions that depend on the lane replaced by true."""
    return _AssumeAllLanes(lane).statement(body)


class _AssumeAllLanes(Rebuilder):
    def __init__(self, lane: Var) -> None:
        self._lane = lane

    def element(self, element: loop.Element) -> loop.Element:
        match element:
            case loop.Where(condition=loop.Condition(value=claim), then=then):
                return self.element(then) if self._lane in claim.free else super().element(element)
            case _:
                return super().element(element)

    def statement(self, statement: loop.Stmt) -> loop.Stmt:
        if isinstance(statement, loop.If) and self._lane in statement.condition.free:
            return self.statement(statement.then)
        return super().statement(statement)


def vector_condition(nest: loop.For, lane: Var, count: int, context: LoweringContext) -> Bool:
    """Return the condition that all lanes run and that contiguous accesses are aligned.

    ``context`` binds the variable of the vectorized loop to the lane plus the start of the vector.
    """
    body = nest.body
    return all_of(*_running(nest, lane, count, context), *_aligned(body, lane, count, context))


def _running(nest: loop.For, lane: Var, count: int, context: LoweringContext) -> Iterator[Bool]:
    """Yield the conditions that `assume_all_lanes` replaces by true, for each lane."""
    claims: list[Bool] = []
    for statement in walk(nest.body):
        if isinstance(statement, loop.If):
            claims.append(statement.condition)
        if isinstance(statement, loop.Store | loop.Bind):
            parts = walk_element(statement.value)
            claims += (e.value for e in parts if isinstance(e, loop.Condition))
    for claim in claims:
        if nest.var in claim.free:
            term = context.term(claim)
            # An unrolled loop around may decide the condition for all lanes.
            for k in range(count if lane in term.free else 1):
                yield context.assumptions.decide(substitute(term, {lane: k}))


def _aligned(body: loop.Stmt, lane: Var, count: int, context: LoweringContext) -> Iterator[Bool]:
    accesses = [(s.buffer, s.indices) for s in stores(body)]
    accesses += [(r.buffer, r.indices) for r in loads(body)]
    for buffer, indices in dict.fromkeys(accesses):
        start = _contiguous(buffer, indices, lane, context)
        if start is not None and buffer.scope in COMMON:
            yield _multiple(start, count)


def _contiguous(
    buffer: loop.Buffer, indices: tuple[Expr, ...], lane: Var, context: LoweringContext
) -> Expr | None:
    """Return the flat index of lane 0 if the lanes are contiguous, else None."""
    flat = as_expr(0)
    for index, stride in zip(indices, strides_of(buffer), strict=True):
        flat += index * stride
    flat = context.term(flat)
    form = linear_form(flat, (lane,)) if lane in flat.free else None
    if form is None or form.coefficients[lane] != as_expr(1):
        return None
    return substitute(flat, {lane: 0})


def _multiple(start: Expr, count: int) -> Bool:
    """Return the condition that a term is a multiple of a constant."""
    rest = start % count
    return TRUE if rest == as_expr(0) else eq(rest, 0)
