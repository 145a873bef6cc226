"""Tensor instructions of a CPU: the operands and extents of tensorized blocks.

The primitive ``tensorize`` leaves plain loops in a block. Passes may have shortened these loops for
tails, so the block is matched with its instruction again: a loop may have fewer iterations, and
lanes at the end of a row may be masked. If the instruction has no expansion for that, the loops are
lowered as ordinary loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....errors import TilewrightError
from ....ir.loop.buffer_size import size_of
from ....ir.loop.nodes import Block, Buffer, For
from ....ir.loop.visit import substitute_in
from ....ir.symbolic import FALSE, TRUE, Bool, Facts, Var, as_expr, const_value, substitute
from ....ir.thread.nodes import Stmt
from ....schedules.intrinsics.contract import ExpansionSite, Intrinsic, Operand
from ....schedules.intrinsics.match import Unified, unify
from ....schedules.intrinsics.nest import ImperfectNest, Nest, nest_of
from ....schedules.intrinsics.registry import intrinsic_of
from ....schedules.intrinsics.windows import Window
from .buffer_addresses import BufferAddresses
from .context import LoweringContext


class IntrinsicMismatchError(TilewrightError):
    """A tensorized block whose body no longer matches the semantics of its instruction."""

    title = "Instruction mismatch"


def expand(
    block: Block, context: LoweringContext, memory: BufferAddresses
) -> tuple[Stmt, ...] | None:
    """Return the statements of a tensorized block, or None to lower its loops instead.

    Raises
    ------
    IntrinsicMismatchError
        If the body differs from the instruction in more than the number of iterations.
    """
    intrinsic = intrinsic_of(block)
    if intrinsic is None or context.lanes is not None:
        return None
    nest = nest_of(substitute_in(block.body, context.values), Facts())
    if isinstance(nest, ImperfectNest):
        return None  # The tail was split into copies.
    found = unify(nest, intrinsic)
    _check(block, intrinsic, found)
    site = _site(nest, found, intrinsic, context, memory)
    if site is None:
        return None
    made = intrinsic.expand(site)
    return tuple(replace(s, source=context.source) for s in made)


def _check(block: Block, intrinsic: Intrinsic, found: Unified) -> None:
    other = [d for d in found.differences if d.kind not in ("extent", "predicate")]
    if other:
        raise IntrinsicMismatchError(
            f"the body of block {block.name!r} no longer matches instruction {intrinsic.name}: "
            f"{other[0].message}",
            where=f"block {block.name!r}",
            hint="apply tensorize last, after all steps on the loops, layouts, and scopes of the "
            "block",
        )


def _site(
    nest: Nest,
    found: Unified,
    intrinsic: Intrinsic,
    context: LoweringContext,
    memory: BufferAddresses,
) -> ExpansionSite | None:
    if found.extra or len(found.loops) != len(found.pattern.loops):
        return None
    windows = [w for w in found.windows if w is not None]
    if len(windows) != len(found.windows):
        return None
    cut = tuple(_iterations(x, nest.guards, context) for x in found.loops)
    full = tuple(const_value(x.extent) for x in found.pattern.loops)
    extents: list[int] = []
    masks: list[tuple[Var, Bool]] = []
    for number, (loop, (count, mask)) in enumerate(zip(found.loops, cut, strict=True)):
        partial = number in intrinsic.partial
        if count is None or (not partial and (count != full[number] or mask is not TRUE)):
            return None
        extents.append(count)
        if mask is not TRUE:
            masks.append((loop.var, mask))
    if not _concern_single_loops(nest.guards, found.loops, context):
        return None
    operands = tuple(_operand(w, context, memory) for w in windows)
    return ExpansionSite(operands, tuple(extents), tuple(masks))


def _iterations(
    loop: For, guards: tuple[Bool, ...], context: LoweringContext
) -> tuple[int | None, Bool]:
    """Return the number of iterations that run, and the mask of those decided at run time."""
    extent = const_value(context.term(loop.extent))
    if extent is None:
        return None, TRUE
    own = [context.term(g) for g in guards if loop.var in g.free]
    mask = TRUE
    count = extent
    for guard in own:
        decided = list(_decisions(loop, guard, extent, context))
        if all(d in (TRUE, FALSE) for d in decided):
            count = min(count, sum(d is TRUE for d in decided))
        elif loop.kind == "vectorized":
            mask = mask & guard
        else:
            return None, TRUE
    return count, mask


def _decisions(loop: For, guard: Bool, extent: int, context: LoweringContext) -> Iterator[Bool]:
    for k in range(extent):
        yield context.assumptions.decide(substitute(guard, {loop.var: as_expr(k)}))


def _concern_single_loops(
    guards: tuple[Bool, ...], loops: tuple[For, ...], context: LoweringContext
) -> bool:
    """Return whether each undecided guard depends on exactly one of the loops."""
    own = {x.var for x in loops}
    return all(
        context.assumptions.decide(context.term(g)) is TRUE or len(g.free & own) == 1
        for g in guards
    )


def _operand(window: Window, context: LoweringContext, memory: BufferAddresses) -> Operand:
    buffer, width = window.buffer, window.buffer.dtype.alignment
    return Operand(
        memory.add(buffer),
        context.term(window.offset) * width,
        tuple(context.term(s) * width for s in window.steps),
        width,
        _private(buffer),
    )


def _private(buffer: Buffer) -> bool:
    """Return whether a buffer is a register tile, where masked lanes are not observable."""
    return buffer.scope == "local" and const_value(size_of(buffer)) is not None
