"""Integers loaded from memory whose range is proved, and the discharges of the proofs."""

from __future__ import annotations

from collections.abc import Iterator

from ..dtype import DType
from ..loop.nodes import Alloc, BufferParam, For, Let, Load, PrimFunc, Seq
from ..loop.visit import walk
from ..symbolic import Expr, Facts, Var, free_vars, is_proved, to_text
from .accesses import ranges_of
from .intervals import interval_of
from .tree import Tree, tree_of


def unproved_ranges(function: PrimFunc) -> Iterator[tuple[Let, str]]:
    """Yield the integers with a proved range that nothing discharges, each with the reason.

    A range is discharged by the dtype of the buffer, or by a ``checked`` integer: one that
    encloses the statement and is loaded from the same element, or one in a loop nest before it
    that loads every element of a buffer that the function does not write.
    """
    for statement in walk(function.body):
        if isinstance(statement, Let) and statement.mode == "proved":
            reason = _reason(tree_of(function), statement)
            if reason is not None:
                yield statement, reason


def _reason(tree: Tree, let: Let) -> str | None:
    if let.discharge is None:
        return "its range is proved, but nothing that discharges the proof is named"
    facts = tree.facts(let)
    if let.discharge == "dtype":
        return _dtype_reason(let, let.load.dtype, facts)
    check = next((s for s in tree.order if isinstance(s, Let) and s.var is let.discharge), None)
    if check is None or check.mode != "checked":
        return f"{let.discharge.name!r} is not a checked integer of the function"
    inside = is_proved(check.lower >= let.lower, facts) and is_proved(
        check.upper <= let.upper, facts
    )
    if not inside:
        return (
            f"the range [{to_text(check.lower)}, {to_text(check.upper)}) of {check.var.name!r} is "
            f"not contained in [{to_text(let.lower)}, {to_text(let.upper)})"
        )
    same = check.load == let.load and tree.contains(check.body, let)
    if not same and not _checks_all(tree, check, let):
        return f"{check.var.name!r} does not check every element of {let.load.buffer.name!r} before"
    return None


def _dtype_reason(let: Let, dtype: DType, facts: Facts) -> str | None:
    low, end = dtype.lowest, dtype.highest + 1
    if is_proved(let.lower <= low, facts) and is_proved(let.upper >= end, facts):
        return None
    return f"an element of dtype {dtype} is in [{low}, {end})"


def _checks_all(tree: Tree, check: Let, let: Let) -> bool:
    """Return whether a check runs before a statement, for every element of an input."""
    load = check.load
    inputs = (p for p in tree.function.params if isinstance(p, BufferParam) and p.access == "in")
    if load.buffer is not let.load.buffer or all(p.buffer is not load.buffer for p in inputs):
        return False
    if tree.order[check] > tree.order[let]:
        return False
    loops: list[For] = []
    for above in tree.ancestors(check):
        if tree.contains(above, let):
            break
        if not isinstance(above, For | Seq | Alloc):
            return False
        loops += [above] if isinstance(above, For) else []
    return _covers(load, tuple(loops), tree.facts(check))


def _covers(load: Load, loops: tuple[For, ...], facts: Facts) -> bool:
    """Return whether a load reads every element of its buffer in some loops."""
    ranges = ranges_of(loops)
    used: set[Var] = set()
    for index, size in zip(load.indices, load.buffer.shape, strict=True):
        interval = interval_of(index, ranges, facts)
        moving = free_vars(index) & ranges.keys()
        if interval is None or not interval.exhaustive or used & moving:
            return False
        if not _contains(interval.start, interval.stop, size, facts):
            return False
        used |= moving
    return all(free_vars(x.extent).isdisjoint(ranges) for x in loops)


def _contains(start: Expr, stop: Expr, size: Expr, facts: Facts) -> bool:
    return is_proved(start <= 0, facts) and is_proved(stop >= size, facts)
