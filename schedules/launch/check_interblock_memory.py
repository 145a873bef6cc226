"""Check of memory that thread blocks share."""

from __future__ import annotations

import itertools

from ...ir.analysis import Interval, injective_in, interval_of, ranges_of, union
from ...ir.analysis.occurrences import Occurrence, never_equal, occurrences
from ...ir.analysis.segments import in_own_segment
from ...ir.analysis.thread_accesses import in_one_thread_block
from ...ir.analysis.tree import tree_of
from ...ir.kernel_errors import MemoryScopeError
from ...ir.loop.nodes import Buffer, For, PrimFunc
from ...ir.loop.ranges import loop_var
from ...ir.symbolic import Expr, Facts, const_value
from ...target.gpus import BLOCK_AXES
from ...target.target import Target
from .compaction import common_loops
from .lowering_pass import GPU, Pass


class CheckInterblockMemory(Pass):
    """Reject kernels in which a thread block may need the result of another thread block.

    Thread blocks do not synchronize. Two statements that access a parameter, one of them a write,
    must be proved to access different elements, or to do so within one thread block, whose elements
    may be the segments between consecutive offsets.

    Raises
    ------
    MemoryScopeError
        If neither is proved.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Return the function unchanged, after the check."""
        del target
        found: dict[Buffer, list[Occurrence]] = {}
        for access in occurrences(func.body):
            if access.buffer in func.buffer_params:
                found.setdefault(access.buffer, []).append(access)
        for buffer, accesses in found.items():
            for first, second in itertools.combinations(accesses, 2):
                if first.writes or second.writes:
                    _check(buffer, first, second, func)
        return func


def _check(buffer: Buffer, first: Occurrence, second: Occurrence, func: PrimFunc) -> None:
    # The primitive ``bind`` checked the accesses within one statement.
    if first.statement is second.statement or not any(map(_is_several, first.loops)):
        return
    if _in_one_block(first, second) or never_equal(first, second, func.facts):
        return
    if in_one_thread_block(first, second, func.facts) or _in_own_segments(
        buffer, first, second, func
    ):
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


def _in_one_block(first: Occurrence, second: Occurrence) -> bool:
    """Return whether both accesses of any one element happen in the same thread block."""
    blocks = tuple(x for x in common_loops([first, second]) if _is_several(x))
    if any(_is_several(x) and x not in blocks for x in (*first.loops, *second.loops)):
        return False
    if first.indices == second.indices:
        # The primitive ``bind`` proved that iterations of these loops access different elements.
        return True
    return _regions_disjoint(first, second, blocks)


def _in_own_segments(buffer: Buffer, first: Occurrence, second: Occurrence, func: PrimFunc) -> bool:
    """Return whether each thread block accesses only its own segments of a buffer."""
    blocks = [x for x in first.loops if _is_several(x)]
    tree = tree_of(func)
    if blocks != [x for x in second.loops if _is_several(x)]:
        return False
    if any(let.load.buffer is buffer for let in tree.lets_in(func.body)):
        return False
    return all(in_own_segment(tree, x, buffer) for x in blocks)


def _regions_disjoint(first: Occurrence, second: Occurrence, blocks: tuple[For, ...]) -> bool:
    """Return whether different thread blocks access different regions."""
    values, facts = ranges_of(blocks), Facts()
    indices: list[Expr] = []
    for axis in range(len(first.indices)):
        sides = [_values(access, axis, blocks) for access in (first, second)]
        known = [side for side in sides if side is not None]
        region = union(known, facts) if len(known) == len(sides) else None
        if region is not None and region.extent.free.isdisjoint(values):
            inside = loop_var("_", region.extent)
            values[inside] = Interval.full(region.extent)
            indices.append(region.start + inside)
    return {x.var for x in blocks} <= injective_in(indices, values, facts)


def _values(access: Occurrence, axis: int, blocks: tuple[For, ...]) -> Interval | None:
    """Return the interval of an index in one iteration of some loops."""
    inner = ranges_of(x for x in access.binders if x not in blocks)
    return interval_of(access.indices[axis], inner, Facts())
