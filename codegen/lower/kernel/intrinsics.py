"""Tensor instructions of a processor: where the operands of a tensorized block lie, and how far.

A block that ``tensorize`` made holds plain loops. Passes on loops have cut them for tails by the
time it is lowered, so the block is matched with its instruction again, as far as it runs: a loop
may have fewer iterations, and lanes at the end of a row may be masked. Where the instruction has
no expansion for that, the loops are lowered as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....ir.errors import TilewrightError
from ....ir.loop.nodes import INTRINSIC, Block, Buffer, For
from ....ir.loop.visit import substitute_in
from ....ir.symbolic import FALSE, TRUE, Bool, Facts, Var, as_expr, const_value, substitute
from ....ir.thread.nodes import Stmt
from ....schedules.intrinsics.contract import Intrinsic, Operand, Site
from ....schedules.intrinsics.match import Unified, unify
from ....schedules.intrinsics.nest import Nest, Stray, nest_of
from ....schedules.intrinsics.registry import get_intrinsic
from ....schedules.intrinsics.windows import Window
from .context import Context
from .memory import Memory, size_of


class IntrinsicMismatchError(TilewrightError):
    """A tensorized block whose loops are no longer what its instruction computes."""

    title = "Not what the instruction computes"


def intrinsic_of(block: Block) -> Intrinsic | None:
    """Give the instruction that a block was tensorized with, if it was."""
    name = dict(block.annotations).get(INTRINSIC)
    return get_intrinsic(name) if isinstance(name, str) else None


def expand(block: Block, context: Context, memory: Memory) -> tuple[Stmt, ...] | None:
    """Write what a tensorized block does, or None where its loops have to do it.

    Raises
    ------
    IntrinsicMismatchError
        If the block is not what its instruction computes, whatever the number of iterations.
    """
    intrinsic = intrinsic_of(block)
    if intrinsic is None or context.lanes is not None:
        return None
    nest = nest_of(substitute_in(block.body, context.values), Facts())
    if isinstance(nest, Stray):
        return None  # a tail that was cut into copies
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
            f"block {block.name!r} is not what {intrinsic.name} computes: {other[0].message}",
            where=f"block {block.name!r}",
            hint="tensorize last, once loops, layouts and scopes are as the instruction wants them",
        )


def _site(
    nest: Nest, found: Unified, intrinsic: Intrinsic, context: Context, memory: Memory
) -> Site | None:
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
    if not _all_about(nest.guards, found.loops, context):
        return None
    operands = tuple(_operand(w, context, memory) for w in windows)
    return Site(operands, tuple(extents), tuple(masks))


def _iterations(loop: For, guards: tuple[Bool, ...], context: Context) -> tuple[int | None, Bool]:
    """Count the iterations that run, or give the mask of those that do where only the run tells."""
    extent = const_value(context.term(loop.extent))
    if extent is None:
        return None, TRUE
    own = [context.term(g) for g in guards if loop.var in g.free]
    mask = TRUE
    count = extent
    for guard in own:
        decided = list(_decisions(loop, guard, extent, context))
        known = [d for d in decided if d in (TRUE, FALSE)]
        if len(known) == extent:
            count = min(count, sum(d is TRUE for d in decided))
        elif loop.kind == "vectorized":
            mask = mask & guard
        else:
            return None, TRUE
    return count, mask


def _decisions(loop: For, guard: Bool, extent: int, context: Context) -> Iterator[Bool]:
    for k in range(extent):
        yield context.known.decide(substitute(guard, {loop.var: as_expr(k)}))


def _all_about(guards: tuple[Bool, ...], loops: tuple[For, ...], context: Context) -> bool:
    """Whether what is left of the guards is about one loop each."""
    own = {x.var for x in loops}
    return all(
        context.known.decide(context.term(g)) is TRUE or len(g.free & own) == 1 for g in guards
    )


def _operand(window: Window, context: Context, memory: Memory) -> Operand:
    buffer, width = window.buffer, window.buffer.dtype.bytes
    return Operand(
        memory.add(buffer),
        context.term(window.offset) * width,
        tuple(context.term(s) * width for s in window.steps),
        width,
        _private(buffer),
    )


def _private(buffer: Buffer) -> bool:
    """Whether a buffer is a register tile: what masked lanes do to it is seen by nobody."""
    return buffer.scope == "local" and const_value(size_of(buffer)) is not None
