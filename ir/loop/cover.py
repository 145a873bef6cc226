"""Whether the regions that a block states cover what its body accesses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..symbolic import (
    Bool,
    ContradictoryFactsError,
    Expr,
    Facts,
    Refuted,
    Var,
    all_of,
    as_expr,
    minimum,
    negate,
    prove,
    substitute,
    to_text,
)
from .nodes import (
    Block,
    Buffer,
    Element,
    For,
    If,
    Let,
    Load,
    Range,
    Region,
    Seq,
    Stmt,
    Store,
    Where,
)
from .visit import operands

_ONE = as_expr(1)


@dataclass(frozen=True, slots=True)
class _Access:
    """A box that the body touches where ``facts`` hold; None where that is not known.

    That of a block inside may hang over the end of the buffer, as a tile does, where nothing is.
    """

    region: Region
    writes: bool
    facts: Facts | None
    hanging: bool = False


def uncovered(block: Block, facts: Facts) -> Iterator[str]:
    """Say which accesses of a block lie outside of its regions, in words.

    ``facts`` hold in its body. What can be neither proved nor refuted is left alone, and so is the
    extent of what happens only under a condition that is read from memory.
    """
    seen: set[tuple[Region, bool]] = set()
    parts = [block.body] if block.init is None else [block.init, block.body]
    for part in parts:
        for access in _accesses(part, facts):
            if (access.region, access.writes) not in seen:
                seen.add((access.region, access.writes))
                yield from _outside(block, access)


def _outside(block: Block, access: _Access) -> Iterator[str]:
    # A reduction's read of its own output belongs to the write.
    stated = block.writes if access.writes else (*block.reads, *block.writes)
    regions = [r for r in stated if r.buffer is access.region.buffer]
    verb = "writes" if access.writes else "reads"
    name = access.region.buffer.name
    if not regions:
        yield f"it {verb} buffer {name!r}, which none of its regions has"
        return
    if access.facts is None or access.region in regions:
        return
    answers = [prove(_inside(access, r), access.facts) for r in regions]
    refuted = [a for a in answers if isinstance(a, Refuted)]
    if len(refuted) == len(answers):
        box = ", ".join(_range_text(r) for r in access.region.ranges)
        yield f"it {verb} {name}[{box}] outside of its regions, where {refuted[-1]}"


def _range_text(part: Range) -> str:
    start = to_text(part.start)
    return start if part.extent == _ONE else f"{start}:{to_text(part.start + part.extent)}"


def _inside(access: _Access, outer: Region) -> Bool:
    claims: list[Bool] = []
    region = access.region
    sides = zip(region.ranges, outer.ranges, region.buffer.shape, strict=False)
    for inner, stated, size in sides:
        stop = inner.start + inner.extent
        stop = minimum(stop, size) if access.hanging else stop
        claims += [stated.start <= inner.start, stop <= stated.start + stated.extent]
    return all_of(*claims)


def _point(buffer: Buffer, indices: tuple[Expr, ...]) -> Region:
    return Region(buffer, tuple(Range(i, _ONE) for i in indices))


def _given(facts: Facts | None, condition: Bool) -> Facts | None:
    """Add a condition to what is known; None where it can never hold."""
    if facts is None:
        return None
    try:
        return facts.assume(condition)
    except ContradictoryFactsError:
        return None


def _accesses(statement: Stmt, facts: Facts | None) -> Iterator[_Access]:
    match statement:
        case Store(buffer=buffer, indices=indices, value=value):
            yield _Access(_point(buffer, indices), writes=True, facts=facts)
            yield from _element_accesses(value, facts)
        case For(var=var, extent=extent, body=body):
            inner = None if facts is None else facts.with_loop(var, extent)
            yield from _accesses(body, inner)
        case Let(load=load, body=body):
            yield from _element_accesses(load, facts)
            inner = _given(
                facts, (statement.lower <= statement.var) & (statement.var < statement.upper)
            )
            yield from _accesses(body, inner)
        case Seq(body=parts):
            for part in parts:
                yield from _accesses(part, facts)
        case If(condition=condition, then=then, otherwise=otherwise):
            yield from _accesses(then, _given(facts, condition))
            if otherwise is not None:
                yield from _accesses(otherwise, _given(facts, negate(condition)))
        case Block():
            yield from _block_accesses(statement, facts)


def _block_accesses(block: Block, facts: Facts | None) -> Iterator[_Access]:
    """Give the regions of a block inside, in terms of the variables around it."""
    values = {v.var: v.binding for v in block.iters}
    guarded = _given(facts, block.predicate)
    for writes, regions in ((False, block.reads), (True, block.writes)):
        for region in regions:
            yield _Access(_rebound(region, values), writes, guarded, hanging=True)


def _rebound(region: Region, values: dict[Var, Expr]) -> Region:
    ranges = (
        Range(substitute(r.start, values), substitute(r.extent, values)) for r in region.ranges
    )
    return Region(region.buffer, tuple(ranges))


def _element_accesses(element: Element, facts: Facts | None) -> Iterator[_Access]:
    if isinstance(element, Load):
        yield _Access(_point(element.buffer, element.indices), writes=False, facts=facts)
        return
    # Only one side of a `Where` is evaluated, so the other may be out of bounds.
    parts: Iterable[Element] = operands(element)
    unknown = None if isinstance(element, Where) else facts
    for position, part in enumerate(parts):
        yield from _element_accesses(part, facts if position == 0 else unknown)
