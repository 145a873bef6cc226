"""An estimate of how much a loop computes, to decide whether threads are worth waking."""

from __future__ import annotations

from typing import Final

from ....ir.loop import nodes as loop
from ....ir.loop.visit import children, walk_element
from ....ir.symbolic import Expr, as_expr, const_value, maximum, substitute

LANES: Final = 16
"""Elements that one vector instruction counts for."""

_SLOW: Final = frozenset({"div", "floordiv", "mod", "pow", "atan2"})
_FUNCTIONS: Final = frozenset(
    {"exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "sigmoid", "tanh", "erf", "sin", "cos"}
)


def _cost(element: loop.Element) -> int:
    """Count the instructions of one element, those of its operands left out."""
    match element:
        case loop.Number() | loop.Index() | loop.Condition():
            return 0
        case loop.Unary(op=op):
            return 24 if op in _FUNCTIONS else 1
        case loop.Binary(op=op):
            return 8 if op in _SLOW else 1
        case _:
            return 1


def work_of(statement: loop.Stmt) -> Expr:
    """Estimate instructions: extents are multiplied, branches and sequences added.

    Work that differs from iteration to iteration is taken to be that of the first one.
    """
    match statement:
        case loop.Store(value=value):
            return as_expr(1 + sum(_cost(e) for e in walk_element(value)))
        case loop.For(extent=extent, kind=kind, body=body, var=var):
            inner = work_of(body)
            if var in inner.free:
                inner = substitute(inner, {var: 0})
            count = const_value(extent)
            if kind == "vectorized" and count is not None:
                return inner * max(1, count // LANES)
            return inner * maximum(extent, 0)
        case _:
            total = as_expr(0)
            for child in children(statement):
                total += work_of(child)
            return total
