"""Loop bounds tightened by the guards in the loop body."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import Block, For, If, Let, PrimFunc, Seq, Stmt
from ....ir.loop.visit import children, substitute_in, with_children
from ....ir.symbolic import Bool, Expr, Le, Lt, Var, conjuncts, maximum, minimum
from ....ir.symbolic.assumptions import Assumptions
from ....schedules.launch.lowering_pass import CPU, Pass
from ....target.target import Target
from ..analysis.linear_limits import solve

_NONE: frozenset[Bool] = frozenset()
_NO_LANES: frozenset[Var] = frozenset()


class TightenLoopBounds(Pass):
    """Remove the iterations of serial and parallel loops that a guard skips.

    Before::
        for i0 in range((n + 3) // 4):
            for i1 in range(4):
                if i0 * 4 + i1 < n: body
    After::
        for i0 in range((n + 3) // 4):
            for i1 in range(min(4, n - i0 * 4)):
                body

    The pass ``prune_branches`` then removes the guards, which follow from the bounds.
    """

    targets = CPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Tighten all loops."""
        del target
        return replace(func, body=_tighten_all(func.body, Assumptions.of(func.facts), _NO_LANES))


def _tighten_all(statement: Stmt, assumptions: Assumptions, lanes: frozenset[Var]) -> Stmt:
    if isinstance(statement, For):
        inner = lanes | {statement.var} if statement.kind == "vectorized" else lanes
        body = _tighten_all(
            statement.body, assumptions.iterating(statement.var, statement.extent), inner
        )
        loop = statement if body is statement.body else replace(statement, body=body)
        return _tighten(loop, assumptions, lanes) if loop.kind in ("serial", "parallel") else loop
    below = tuple(_tighten_all(c, assumptions, lanes) for c in children(statement))
    return with_children(statement, below)


def guards(statement: Stmt) -> frozenset[Bool]:
    """Return the comparisons without which the statement has no effect."""
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


def _tighten(loop: For, assumptions: Assumptions, lanes: frozenset[Var]) -> For:
    """Tighten one loop by the guards that do not differ per lane."""
    free = (g for g in guards(loop.body) if loop.var in g.free and g.free.isdisjoint(lanes))
    own = sorted(free, key=lambda g: g.order)
    inside = assumptions.iterating(loop.var, loop.extent)
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
