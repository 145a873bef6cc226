"""When a short loop of a thread may move all its elements by one instruction."""

from __future__ import annotations

from collections.abc import Iterator

from ....ir.loop import nodes as loop
from ....ir.loop.visit import Rebuilder, loads, stores, walk, walk_element
from ....ir.symbolic import TRUE, Bool, Expr, Var, all_of, as_expr, eq, linear_form, substitute
from ..kernel.context import Context
from ..kernel.memory import strides_of


def is_simple(body: loop.Stmt) -> bool:
    """Whether a body is stores and branches alone."""
    return not any(isinstance(s, loop.For | loop.Let) for s in walk(body))


def assuming_all(body: loop.Stmt, lane: Var) -> loop.Stmt:
    """Take what a body does where all lanes run; its conditions that vary with the lane hold."""
    return _Assume(lane).statement(body)


class _Assume(Rebuilder):
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


def together(body: loop.Stmt, lane: Var, count: int, context: Context) -> Bool:
    """State that all lanes run, and that what they access side by side is aligned.

    ``context`` gives the loop's variable as the lane plus where the vector starts.
    """
    return all_of(*_running(body, lane, count, context), *_aligned(body, lane, count, context))


def _running(body: loop.Stmt, lane: Var, count: int, context: Context) -> Iterator[Bool]:
    for statement in walk(body):
        if isinstance(statement, loop.If):
            yield from _everywhere(context.term(statement.condition), lane, count, context)
        if isinstance(statement, loop.Store):
            for element in walk_element(statement.value):
                if isinstance(element, loop.Condition):
                    yield from _everywhere(context.term(element.value), lane, count, context)


def _everywhere(claim: Bool, lane: Var, count: int, context: Context) -> Iterator[Bool]:
    if lane in claim.free:
        for k in range(count):
            yield context.known.decide(substitute(claim, {lane: k}))


def _aligned(body: loop.Stmt, lane: Var, count: int, context: Context) -> Iterator[Bool]:
    touched = [(s.buffer, s.indices) for s in stores(body)]
    touched += [(r.buffer, r.indices) for r in loads(body)]
    for buffer, indices in dict.fromkeys(touched):
        start = _contiguous(buffer, indices, lane, context)
        if start is not None and buffer.scope in ("global", "shared"):
            yield _multiple(start, count)


def _contiguous(
    buffer: loop.Buffer, indices: tuple[Expr, ...], lane: Var, context: Context
) -> Expr | None:
    """Give where the lanes start, in elements, if they are neighbours."""
    flat = as_expr(0)
    for index, stride in zip(indices, strides_of(buffer), strict=True):
        flat += index * stride
    flat = context.term(flat)
    form = linear_form(flat, (lane,)) if lane in flat.free else None
    if form is None or form.coefficients[lane] != as_expr(1):
        return None
    return substitute(flat, {lane: 0})


def _multiple(start: Expr, count: int) -> Bool:
    """State that a sum is a multiple; it is where every term that is not one is."""
    rest = start % count
    return TRUE if rest == as_expr(0) else eq(rest, 0)
