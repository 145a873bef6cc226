"""Coverage of the accesses of a block by its declared regions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
    negate,
    prove,
    substitute,
    to_text,
)
from .nodes import (
    Alloc,
    Bind,
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
class _ElementAccess:
    """An element that the body accesses under ``facts``; None if the condition is unknown."""

    region: Region
    writes: bool
    facts: Facts | None


def uncovered(block: Block, facts: Callable[[Stmt], Facts]) -> Iterator[str]:
    """Yield a message for each access of a block that is outside of its declared regions.

    ``facts`` returns the facts that hold in the init, or in the body. Accesses that are neither
    proved nor refuted to be covered are not reported, and the indices of accesses under a condition
    loaded from memory are not checked.
    """
    seen: set[tuple[Region, bool]] = set()
    parts = [block.body] if block.init is None else [block.init, block.body]
    for part in parts:
        for access in _accesses(part, facts(part)):
            if (access.region, access.writes) not in seen:
                seen.add((access.region, access.writes))
                yield from _outside(block, access)


def _outside(block: Block, access: _ElementAccess) -> Iterator[str]:
    # The read of the output by a reduction update is covered by the write region.
    stated = block.writes if access.writes else (*block.reads, *block.writes)
    regions = [r for r in stated if r.buffer is access.region.buffer]
    verb = "writes" if access.writes else "reads"
    name = access.region.buffer.name
    if not regions:
        yield f"the block {verb} buffer {name!r} but declares no region of it"
        return
    if access.facts is None or access.region in regions:
        return
    refuted = _refuted(access, regions, access.facts)
    if refuted is None:
        return
    known = _given(access.facts, _in_bounds(access.region))  # others stop with an error
    refuted = None if known is None else _refuted(access, regions, known)
    if refuted is not None:
        box = ", ".join(_range_text(r) for r in access.region.ranges)
        yield f"the block {verb} {name}[{box}] outside of its declared regions for {refuted}"


def _refuted(access: _ElementAccess, regions: list[Region], facts: Facts) -> Refuted | None:
    """Return an example of an access outside of all regions if there is one for each region."""
    answers = [prove(_inside(access, r), facts) for r in regions]
    found = [a for a in answers if isinstance(a, Refuted)]
    return found[-1] if len(found) == len(answers) else None


def _in_bounds(region: Region) -> Bool:
    sides = zip(region.ranges, region.buffer.shape, strict=False)
    return all_of(*(c for r, size in sides for c in (r.start >= 0, r.start < size)))


def _range_text(part: Range) -> str:
    start = to_text(part.start)
    return start if part.extent == _ONE else f"{start}:{to_text(part.start + part.extent)}"


def _inside(access: _ElementAccess, outer: Region) -> Bool:
    claims: list[Bool] = []
    for inner, stated in zip(access.region.ranges, outer.ranges, strict=False):
        claims += [stated.start <= inner.start, inner.start < stated.start + stated.extent]
    return all_of(*claims)


def _point(buffer: Buffer, indices: tuple[Expr, ...], values: Mapping[Var, Expr]) -> Region:
    return Region(buffer, tuple(Range(substitute(i, values), _ONE) for i in indices))


def _given(facts: Facts | None, condition: Bool) -> Facts | None:
    """Add a condition to facts; None if it contradicts them."""
    if facts is None:
        return None
    try:
        return facts.assume(condition)
    except ContradictoryFactsError:
        return None


_NO_VALUES: Mapping[Var, Expr] = {}


def _accesses(
    statement: Stmt, facts: Facts | None, values: Mapping[Var, Expr] = _NO_VALUES
) -> Iterator[_ElementAccess]:
    """Yield the accesses of a statement; ``values`` are the bindings of nested blocks."""

    def at(condition: Bool) -> Facts | None:
        return _given(facts, substitute(condition, values))

    match statement:
        case Store(buffer=buffer, indices=indices, value=value):
            yield _ElementAccess(_point(buffer, indices, values), writes=True, facts=facts)
            yield from _element_accesses(value, facts, values)
        case For(var=var, extent=extent, body=body):
            inner = None if facts is None else facts.with_loop(var, substitute(extent, values))
            yield from _accesses(body, inner, values)
        case Let(load=load, body=body):
            yield from _element_accesses(load, facts, values)
            inside = (statement.lower <= statement.var) & (statement.var < statement.upper)
            yield from _accesses(body, at(inside), values)
        case Seq(body=parts):
            for part in parts:
                yield from _accesses(part, facts, values)
        case If(condition=condition, then=then, otherwise=otherwise):
            yield from _accesses(then, at(condition), values)
            if otherwise is not None:
                yield from _accesses(otherwise, at(negate(condition)), values)
        case Alloc(buffer=own, body=body):
            inside = _accesses(body, facts, values)
            yield from (access for access in inside if access.region.buffer is not own)
        case Bind(value=value, body=body):
            yield from _element_accesses(value, facts, values)
            yield from _accesses(body, facts, values)
        case Block():
            yield from _block_accesses(statement, facts, values)


def _block_accesses(
    block: Block, facts: Facts | None, values: Mapping[Var, Expr]
) -> Iterator[_ElementAccess]:
    """Yield the accesses of a nested block in terms of the variables of the outer scope.

    The regions that it declares may be larger than these: a box around a partial tile.
    """
    bindings = {v.var: substitute(v.binding, values) for v in block.iters}
    domain = (
        (bindings[v.var] >= 0) & (bindings[v.var] < substitute(v.extent, values))
        for v in block.iters
    )
    inside = _given(facts, all_of(substitute(block.predicate, values), *domain))
    parts = [block.body] if block.init is None else [block.init, block.body]
    for part in parts:
        yield from _accesses(part, inside, {**values, **bindings})


def _element_accesses(
    element: Element, facts: Facts | None, values: Mapping[Var, Expr]
) -> Iterator[_ElementAccess]:
    if isinstance(element, Load):
        region = _point(element.buffer, element.indices, values)
        yield _ElementAccess(region, writes=False, facts=facts)
        return
    # Only the selected side of a `Where` is evaluated, so the other may be out of bounds.
    parts: Iterable[Element] = operands(element)
    unknown = None if isinstance(element, Where) else facts
    for position, part in enumerate(parts):
        yield from _element_accesses(part, facts if position == 0 else unknown, values)
