"""Memory that thread blocks share: they do not wait for each other, so they must not meet in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.gpu import BLOCK_AXES
from ....ir.loop.nodes import Buffer, For, If, Let, PrimFunc, Stmt, Store
from ....ir.loop.ranges import loop_var
from ....ir.loop.visit import children, loads
from ....ir.symbolic import (
    Bool,
    ContradictoryFactsError,
    Expr,
    Facts,
    Var,
    any_of,
    const_value,
    is_proved,
    substitute,
)
from ..loops.compact import Access, common_loops, find_place
from .errors import MemoryScopeError


@dataclass(frozen=True, slots=True)
class _Meeting:
    """One access: the statement that does it, and what holds around it."""

    statement: Stmt
    indices: tuple[Expr, ...]
    loops: tuple[For, ...]
    guards: tuple[Bool, ...]
    writes: bool

    @property
    def access(self) -> Access:
        return Access(self.indices, self.loops, self.writes)


def check_blocks(func: PrimFunc) -> PrimFunc:
    """Check that no thread block needs what another one did.

    Raises
    ------
    MemoryScopeError
        If two statements touch a parameter, one writes, and neither is it proved that they touch
        different elements, nor that it is within one thread block.
    """
    found: dict[Buffer, list[_Meeting]] = {}
    for buffer, meeting in _meetings(func.body, (), ()):
        if buffer in func.buffer_params:
            found.setdefault(buffer, []).append(meeting)
    for buffer, meetings in found.items():
        for first, second in itertools.combinations(meetings, 2):
            if first.writes or second.writes:
                _check(buffer, first, second, func)
    return func


def _check(buffer: Buffer, first: _Meeting, second: _Meeting, func: PrimFunc) -> None:
    # What one statement reads and writes itself, binding its loops has been asked about.
    if first.statement is second.statement or not any(map(_is_several, first.loops)):
        return
    if _in_one_block(buffer, first, second) or _apart(first, second, func.facts):
        return
    raise MemoryScopeError(
        f"two statements touch {buffer.name!r}, and a thread block may need what another one did",
        where=f"function {func.name!r}",
        hint="compute both inside the same loop of thread blocks, or make two kernels of it",
        details={"buffer": buffer.name},
    )


def _is_several(loop: For) -> bool:
    return loop.thread in BLOCK_AXES and const_value(loop.extent) != 1


def _in_one_block(buffer: Buffer, first: _Meeting, second: _Meeting) -> bool:
    """Whether all blocks keep to boxes of their own."""
    pair = [first.access, second.access]
    if not first.writes or not second.writes:
        pair = [Access(a.indices, a.loops, writes=True) for a in pair]
    blocks = tuple(x for x in common_loops(pair) if _is_several(x))
    if _same_element(first, second, blocks):
        return True
    place, boxes = find_place(buffer, pair, blocks)
    moving = {x.var for x in blocks}
    told = {v for b in boxes if b is not None for v in b.base.free & moving}
    return place == blocks and told == moving


def _same_element(first: _Meeting, second: _Meeting, shared: tuple[For, ...]) -> bool:
    """Whether both touch one element, in the same loops: binding those told the blocks apart."""
    own = {x for x in (*first.loops, *second.loops) if _is_several(x)}
    return first.indices == second.indices and own <= set(shared)


def _apart(first: _Meeting, second: _Meeting, facts: Facts) -> bool:
    """Whether two accesses are proved to touch different elements, whatever block they are in."""
    try:
        facts, ours = _renamed(first, facts)
        facts, theirs = _renamed(second, facts)
    except ContradictoryFactsError:
        return True
    pairs = tuple(zip(ours, theirs, strict=True))
    return is_proved(any_of(*(a < b for a, b in pairs), *(a > b for a, b in pairs)), facts) or any(
        is_proved(a < b, facts) or is_proved(a > b, facts) for a, b in pairs
    )


def _renamed(one: _Meeting, facts: Facts) -> tuple[Facts, tuple[Expr, ...]]:
    names: dict[Var, Expr] = {}
    for loop in one.loops:
        extent = substitute(loop.extent, names)
        fresh = loop_var(loop.var.name, extent)
        names[loop.var] = fresh
        facts = facts.with_loop(fresh, extent)
    for guard in one.guards:
        facts = facts.assume(substitute(guard, names))
    return facts, tuple(substitute(i, names) for i in one.indices)


def _meetings(
    statement: Stmt, loops: tuple[For, ...], guards: tuple[Bool, ...]
) -> Iterator[tuple[Buffer, _Meeting]]:
    match statement:
        case Store(buffer=buffer, indices=indices):
            yield buffer, _Meeting(statement, indices, loops, guards, writes=True)
            for load in loads(statement):
                own = _Meeting(statement, load.indices, loops, guards, writes=False)
                yield load.buffer, own
        case Let(load=load, body=body):
            yield load.buffer, _Meeting(statement, load.indices, loops, guards, writes=False)
            yield from _meetings(body, loops, guards)
        case For(body=body):
            yield from _meetings(body, (*loops, statement), guards)
        case If(condition=condition, then=then, otherwise=otherwise):
            yield from _meetings(then, loops, (*guards, condition))
            if otherwise is not None:
                yield from _meetings(otherwise, loops, guards)
        case _:
            for child in children(statement):
                yield from _meetings(child, loops, guards)
