"""The constant range of a loop variable, derived from the extent of its loop."""

from __future__ import annotations

from ..symbolic import Expr, SymInt, Var, as_expr, var
from .nodes import For


def range_of(extent: Expr) -> tuple[int, int | None]:
    """Return the inclusive constant bounds of a variable with ``0 <= i < extent``.

    The result for extent zero is ``(0, 0)``: the loop has no iterations.

    Examples
    --------
    >>> range_of(as_expr(8)), range_of(var("n", upper=512)), range_of(var("n"))
    ((0, 7), (0, 511), (0, None))
    """
    return 0, None if extent.upper is None else max(extent.upper - 1, 0)


def loop_var(name: str, extent: SymInt) -> Var:
    """Create a loop variable whose constant bounds follow from the extent.

    Examples
    --------
    >>> i = loop_var("i", 8)
    >>> i // 8
    0
    """
    lower, upper = range_of(as_expr(extent))
    return var(name, lower=lower, upper=upper)


def is_empty(loop: For) -> bool:
    """Return whether a loop has no iterations for any values of the symbols.

    Facts inside of such a loop contradict each other: they prove everything.

    Examples
    --------
    >>> from .nodes import Seq
    >>> [is_empty(For(1, loop_var("i", n), as_expr(n), Seq(()))) for n in (0, 1)]
    [True, False]
    """
    return loop.extent.upper is not None and loop.extent.upper <= 0
