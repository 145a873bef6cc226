"""Limits on nested scopes of allocations and bound values, which passes visit recursively."""

from __future__ import annotations

from typing import Final

from .nodes import Alloc, Bind, Seq, Stmt
from .visit import children

MOST_NAMES: Final = 256
"""The largest number of allocations and bound values in one list of statements."""

MOST_NESTED: Final = 384
"""The largest number of allocations and bound values around a statement, in all lists."""


def most_names(statement: Stmt) -> int:
    """Return the largest number of allocations and bound values of one list of statements.

    Examples
    --------
    >>> from ..script import parse
    >>> f = parse('''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         with block("y"):
    ...             vi = spatial(i)
    ...             a = x[vi] * 2.0
    ...             b = a * a
    ...             y[vi] = b + b
    ... ''').prim("f")
    >>> most_names(f.body)
    2
    """
    most, stack = 0, [(statement, 0)]
    while stack:
        top, count = stack.pop()
        opened = isinstance(top, Alloc | Bind)
        most = max(most, count + opened)
        inner = count + opened if opened or isinstance(top, Seq) else 0
        stack.extend((child, inner) for child in children(top))
    return most
