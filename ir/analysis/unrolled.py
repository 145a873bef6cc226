"""Copies of statements in unrolled loops."""

from __future__ import annotations

from typing import Final

from ..loop.nodes import INTRINSIC, Block, For, Stmt, Store
from ..loop.visit import children
from ..symbolic import const_value

UNROLL_LIMIT: Final = 256
"""The maximum extent of an ``unrolled`` loop that is unrolled. Longer loops are not copied."""

MOST_COPIES: Final = 32_768
"""The maximum number of stores in the code of a function, counted once per unrolled iteration."""


def copies_of(loop: For) -> int:
    """Return how many copies of its body a loop makes: its extent if it is unrolled, else 1."""
    count = const_value(loop.extent)
    unrolled = loop.kind == "unrolled" and count is not None and count <= UNROLL_LIMIT
    return max(count, 0) if unrolled and count is not None else 1


def _is_unit(statement: Stmt) -> bool:
    """Return whether a statement counts as one store: a store, or a tensorized block."""
    if isinstance(statement, Block):
        return INTRINSIC in dict(statement.annotations)
    return isinstance(statement, Store)


def copied_stores(statement: Stmt) -> int:
    """Return the number of stores, counting those in unrolled loops once per iteration.

    A tensorized block counts as one store.
    """
    found, stack = 0, [(statement, 1)]
    while stack:
        top, copies = stack.pop()
        if _is_unit(top):
            found += copies
            continue
        if isinstance(top, For):
            copies *= copies_of(top)
        stack.extend((child, copies) for child in children(top))
    return found


def most_copied(statement: Stmt) -> tuple[For, ...]:
    """Return the unrolled loops around the store with the most copies, outermost first.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..loop.builder import Builder
    >>> b = Builder("copy")
    >>> x, y = b.param("x", (8,), f32), b.param("y", (8,), f32, "out")
    >>> b.compute(y, lambda i: b.load(x, i))
    >>> most_copied(b.finish().body)
    ()
    """
    most, found = 0, tuple[For, ...]()
    stack: list[tuple[Stmt, int, tuple[For, ...]]] = [(statement, 1, ())]
    while stack:
        top, copies, around = stack.pop()
        if _is_unit(top):
            most, found = max((most, found), (copies, around), key=lambda m: m[0])
            continue
        if isinstance(top, For) and copies_of(top) > 1:
            copies, around = copies * copies_of(top), (*around, top)
        stack.extend((child, copies, around) for child in children(top))
    return found


def product_text(loops: tuple[For, ...]) -> str:
    """Return the number of copies in loops as text, such as ``10 * 10 = 100``."""
    total = 1
    for loop in loops:
        total *= copies_of(loop)
    factors = " * ".join(str(copies_of(loop)) for loop in loops)
    return f"{factors} = {total:,}" if len(loops) > 1 else f"{total:,}"
