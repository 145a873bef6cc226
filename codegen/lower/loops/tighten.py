"""Loop bounds narrowed to where a guard of the whole body holds."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import Block, For, If, Let, Seq, Stmt
from ....ir.loop.visit import children, substitute_in, with_children
from ....ir.symbolic import (
    Bool,
    Expr,
    Le,
    Lt,
    Var,
    as_expr,
    ceildiv,
    const_value,
    linear_form,
    maximum,
    minimum,
)
from .known import Known, conjuncts

_NONE: frozenset[Bool] = frozenset()
_NO_LANES: frozenset[Var] = frozenset()


def tighten_loops(statement: Stmt, known: Known) -> Stmt:
    """Cut off the iterations of serial and parallel loops that a guard would skip.

    Before::
        for i0 in range((n + 3) // 4):
            for i1 in range(4):
                if i0 * 4 + i1 < n: body
    After::
        for i0 in range((n + 3) // 4):
            for i1 in range(min(4, n - i0 * 4)):
                body

    The guards themselves fall away later, because the bounds imply them.
    """
    return _tighten_all(statement, known, _NO_LANES)


def _tighten_all(statement: Stmt, known: Known, lanes: frozenset[Var]) -> Stmt:
    if isinstance(statement, For):
        inner = lanes | {statement.var} if statement.kind == "vectorized" else lanes
        body = _tighten_all(statement.body, known.inside(statement), inner)
        loop = statement if body is statement.body else replace(statement, body=body)
        return _tighten(loop, known, lanes) if loop.kind in ("serial", "parallel") else loop
    below = tuple(_tighten_all(c, known, lanes) for c in children(statement))
    return with_children(statement, below)


def guards(statement: Stmt) -> frozenset[Bool]:
    """Give the comparisons that have to hold for the statement to do anything."""
    match statement:
        case For(var=var, body=body) | Let(var=var, body=body):
            return frozenset(g for g in guards(body) if var not in g.free)
        case Block(body=body, init=None, iters=()):
            return guards(body)
        case If(condition=condition, then=then, otherwise=None):
            own = (c for c in conjuncts(condition) if isinstance(c, Lt | Le))
            return frozenset(own) | guards(then)
        case Seq(body=parts):
            each = [guards(p) for p in parts]
            return each[0].intersection(*each[1:]) if each else _NONE
        case _:
            return _NONE


def _tighten(loop: For, known: Known, lanes: frozenset[Var]) -> For:
    """Narrow one loop; bounds that differ from lane to lane would be none."""
    free = (g for g in guards(loop.body) if loop.var in g.free and g.free.isdisjoint(lanes))
    own = sorted(free, key=lambda g: g.order)
    inside = known.inside(loop)
    lower: list[Expr] = []
    upper: list[Expr] = [loop.extent]
    for guard in own:
        if inside.decide(guard) is not guard:
            continue
        bound = solve(guard, loop.var)
        if bound is not None:
            (upper if bound.above else lower).append(bound.limit)
    if not lower:
        return loop if len(upper) == 1 else replace(loop, extent=minimum(*upper))
    start = maximum(0, *lower)
    body = substitute_in(loop.body, {loop.var: loop.var + start})
    return replace(loop, extent=minimum(*upper) - start, body=body)


class Limit:
    """``var < limit`` where ``above``, else ``limit <= var``."""

    __slots__ = ("above", "limit")

    def __init__(self, limit: Expr, *, above: bool) -> None:
        """Keep both."""
        self.limit = limit
        self.above = above


def solve(guard: Bool, var: Var) -> Limit | None:
    """Solve a comparison for a variable, where it is linear with a constant coefficient."""
    if not isinstance(guard, Lt | Le) or var not in guard.free:
        return None
    slack = guard.right - guard.left - (1 if isinstance(guard, Lt) else 0)
    form = linear_form(slack, (var,))
    if form is None:
        return None
    factor = const_value(form.coefficients[var])
    if not factor:
        return None
    if factor < 0:
        return Limit(form.rest // as_expr(-factor) + 1, above=True)
    return Limit(ceildiv(-form.rest, factor), above=False)
