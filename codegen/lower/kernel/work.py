"""An estimate of how much a loop computes, to decide whether threads are worth waking."""

from __future__ import annotations

from ....ir.loop import nodes as loop
from ....ir.loop.visit import children, walk_element
from ....ir.symbolic import Expr, as_expr, const_value, maximum, substitute

VECTOR = 8
"""Elements that one vector operation counts for."""


def work_of(statement: loop.Stmt) -> Expr:
    """Estimate elementary operations, vectors as one; extents are multiplied, branches added."""
    match statement:
        case loop.Store(value=value):
            return as_expr(sum(1 for _ in walk_element(value)))
        case loop.For(extent=extent, kind=kind, body=body, var=var):
            inner = work_of(body)
            if var in inner.free:
                inner = substitute(inner, {var: 0})
            count = const_value(extent)
            if kind == "vectorized" and count is not None:
                return inner * max(1, count // VECTOR)
            return inner * maximum(extent, 0)
        case _:
            total = as_expr(0)
            for child in children(statement):
                total += work_of(child)
            return total
