"""The range a loop variable has by its extent alone: one rule for all who make loops."""

from __future__ import annotations

from ..symbolic import Expr, SymInt, Var, as_expr, var


def range_of(extent: Expr) -> tuple[int, int | None]:
    """Give the constant bounds of ``i`` in ``0 <= i < extent``, both included.

    An extent of zero gives ``(0, 0)``: no integer is in range, and none is asked for.

    Examples
    --------
    >>> range_of(as_expr(8)), range_of(var("n", upper=512)), range_of(var("n"))
    ((0, 7), (0, 511), (0, None))
    """
    return 0, None if extent.upper is None else max(extent.upper - 1, 0)


def loop_var(name: str, extent: SymInt) -> Var:
    """Make a variable that runs from 0 to an extent, its own constant bounds from the extent's.

    Examples
    --------
    >>> i = loop_var("i", 8)
    >>> i // 8
    0
    """
    lower, upper = range_of(as_expr(extent))
    return var(name, lower=lower, upper=upper)
