"""Check of memory that thread blocks share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.analysis import Interval as ValueInterval, injective_in
from ....ir.analysis.accesses import ranges_of
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
    as_expr,
    const_value,
    is_proved,
    substitute,
)
from ....target.gpus import BLOCK_AXES
from ....target.target import Target
from ...errors import MemoryScopeError
from ..lowering_pass import GPU, Pass
from .compact_buffers import BufferAccess, Interval, common_loops, compaction_scope


@dataclass(frozen=True, slots=True)
class _BlockAccess:
    """An access with its statement, the loops around it, and the conditions it runs under."""

    statement: Stmt
    indices: tuple[Expr, ...]
    loops: tuple[For, ...]
    guards: tuple[Bool, ...]
    writes: bool

    @property
    def access(self) -> BufferAccess:
        return BufferAccess(self.indices, self.loops, self.writes)


class CheckInterblockMemory(Pass):
    """Reject kernels in which a thread block may need the result of another thread block.

    Thread blocks do not synchronize. Two statements that access a parameter, one of them a write,
    must be proved to access different elements, or to do so within one thread block.

    Raises
    ------
    MemoryScopeError
        If neither is proved.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Return the function unchanged, after the check."""
        del target
        found: dict[Buffer, list[_BlockAccess]] = {}
        for buffer, access in _block_accesses(func.body, (), ()):
            if buffer in func.buffer_params:
                found.setdefault(buffer, []).append(access)
        for buffer, accesses in found.items():
            for first, second in itertools.combinations(accesses, 2):
                if first.writes or second.writes:
                    _check(buffer, first, second, func)
        return func


def _check(buffer: Buffer, first: _BlockAccess, second: _BlockAccess, func: PrimFunc) -> None:
    # The primitive ``bind`` checked the accesses within one statement.
    if first.statement is second.statement or not any(map(_is_several, first.loops)):
        return
    if _in_one_block(buffer, first, second) or _are_disjoint(first, second, func.facts):
        return
    raise MemoryScopeError(
        f"two statements access {buffer.name!r}, at least one writes it, and a thread block may "
        "depend on the result of another thread block",
        where=f"function {func.name!r}",
        hint="compute both inside the same loop bound to blockIdx, or split the function into two "
        "kernels; thread blocks of one launch do not synchronize",
        details={"buffer": buffer.name},
        parts=(buffer.name, *(x.thread for x in (*first.loops, *second.loops) if _is_several(x))),
    )


def _is_several(loop: For) -> bool:
    return loop.thread in BLOCK_AXES and const_value(loop.extent) != 1


def _in_one_block(buffer: Buffer, first: _BlockAccess, second: _BlockAccess) -> bool:
    """Return whether both accesses of any one element happen in the same thread block."""
    pair = [BufferAccess(a.indices, a.loops, writes=True) for a in (first, second)]
    blocks = tuple(x for x in common_loops(pair) if _is_several(x))
    if any(_is_several(x) and x not in blocks for x in (*first.loops, *second.loops)):
        return False
    if _same_element(first, second, blocks):
        return True
    scope, intervals = compaction_scope(buffer, pair, blocks)
    return scope == blocks and _regions_disjoint(intervals, blocks)


def _regions_disjoint(intervals: list[Interval | None], blocks: tuple[For, ...]) -> bool:
    """Return whether different thread blocks access different regions."""
    values = ranges_of(blocks)
    indices: list[Expr] = []
    for interval in intervals:
        if interval is not None:
            extent = as_expr(interval.high - interval.low + 1)
            inside = loop_var("_", extent)
            values[inside] = ValueInterval.full(extent)
            indices.append(interval.base + inside)
    return {x.var for x in blocks} <= injective_in(indices, values, Facts())


def _same_element(first: _BlockAccess, second: _BlockAccess, shared: tuple[For, ...]) -> bool:
    """Return whether both access one element in the same block loops.

    The primitive ``bind`` proved that the iterations of these loops access different elements.
    """
    own = {x for x in (*first.loops, *second.loops) if _is_several(x)}
    return first.indices == second.indices and own <= set(shared)


def _are_disjoint(first: _BlockAccess, second: _BlockAccess, facts: Facts) -> bool:
    """Return whether two accesses provably access different elements, in any thread blocks."""
    try:
        facts, ours = _renamed(first, facts)
        facts, theirs = _renamed(second, facts)
    except ContradictoryFactsError:
        return True
    pairs = tuple(zip(ours, theirs, strict=True))
    return is_proved(any_of(*(a < b for a, b in pairs), *(a > b for a, b in pairs)), facts) or any(
        is_proved(a < b, facts) or is_proved(a > b, facts) for a, b in pairs
    )


def _renamed(one: _BlockAccess, facts: Facts) -> tuple[Facts, tuple[Expr, ...]]:
    names: dict[Var, Expr] = {}
    for loop in one.loops:
        extent = substitute(loop.extent, names)
        fresh = loop_var(loop.var.name, extent)
        names[loop.var] = fresh
        facts = facts.with_loop(fresh, extent)
    for guard in one.guards:
        facts = facts.assume(substitute(guard, names))
    return facts, tuple(substitute(i, names) for i in one.indices)


def _block_accesses(
    statement: Stmt, loops: tuple[For, ...], guards: tuple[Bool, ...]
) -> Iterator[tuple[Buffer, _BlockAccess]]:
    match statement:
        case Store(buffer=buffer, indices=indices):
            yield buffer, _BlockAccess(statement, indices, loops, guards, writes=True)
            for load in loads(statement):
                own = _BlockAccess(statement, load.indices, loops, guards, writes=False)
                yield load.buffer, own
        case Let(load=load, body=body):
            yield load.buffer, _BlockAccess(statement, load.indices, loops, guards, writes=False)
            yield from _block_accesses(body, loops, guards)
        case For(body=body):
            yield from _block_accesses(body, (*loops, statement), guards)
        case If(condition=condition, then=then, otherwise=otherwise):
            yield from _block_accesses(then, loops, (*guards, condition))
            if otherwise is not None:
                yield from _block_accesses(otherwise, loops, guards)
        case _:
            for child in children(statement):
                yield from _block_accesses(child, loops, guards)
