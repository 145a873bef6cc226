"""``init`` branches moved out of the reduction loops they guard themselves against."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import Block, For, If, Seq, Stmt
from ....ir.loop.visit import seq, substitute_in, transform, walk
from ....ir.symbolic import TRUE, all_of, as_expr, const_value, eq
from .known import conjuncts
from .terms import mentions


def hoist_initials(statement: Stmt) -> Stmt:
    """Run what a loop does in its first iteration alone before the loop.

    Before::
        for k in range(n):
            if k == 0: C[i] = 0
            C[i] = C[i] + A[i, k]
    After::
        if 0 < n:
            C[i] = 0
        for k in range(n):
            C[i] = C[i] + A[i, k]

    So a reduction over nothing is its neutral element. Where the branch stands deeper, the first
    iteration is peeled off instead.
    """
    return transform(statement, lambda s: _hoist(s) if isinstance(s, For) else s)


def _hoist(loop: For) -> Stmt:
    if loop.kind in ("parallel", "thread"):
        return loop
    first, rest = _leading(loop.body, loop)
    if first is not None:
        return seq(first, replace(loop, body=rest))
    return _peel(loop) if loop.kind == "serial" and _pins(loop.body, loop) else loop


def _leading(body: Stmt, loop: For) -> tuple[Stmt | None, Stmt]:
    """Split off a leading branch on the first iteration whose body does not vary."""
    match body:
        case Block(body=inner) if not body.iters:
            first, rest = _leading(inner, loop)
            shell = replace(body, body=rest)
            return (None if first is None else replace(body, body=first)), shell
        case If(condition=claim, then=then, otherwise=None) if loop.var not in claim.free:
            first, rest = _leading(then, loop)
            return (None if first is None else If(claim, first)), If(claim, rest)
        case Seq(body=(If(condition=claim, then=then, otherwise=None), *others)):
            parts = conjuncts(claim)
            own = eq(loop.var, 0)
            if own not in parts or mentions(then, loop.var):
                return None, body
            left = all_of(*(p for p in parts if p is not own))
            if loop.var in left.free:
                return None, body
            return (then if left is TRUE else If(left, then)), seq(*others)
        case _:
            return None, body


def _pins(statement: Stmt, loop: For) -> bool:
    """Whether a branch on the loop's first iteration stands anywhere below."""
    own = eq(loop.var, 0)
    branches = (inner for inner in walk(statement) if isinstance(inner, If))
    return any(own in conjuncts(branch.condition) for branch in branches)


def _peel(loop: For) -> Stmt:
    """Split the first iteration off."""
    first = substitute_in(loop.body, {loop.var: 0})
    count = const_value(loop.extent)
    if count == 1:
        return first
    later = substitute_in(loop.body, {loop.var: loop.var + 1})
    head = first if count is not None and count > 0 else If(as_expr(0) < loop.extent, first)
    return seq(head, replace(loop, extent=loop.extent - 1, body=later))
