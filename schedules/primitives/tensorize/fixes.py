"""Steps that mend what keeps an instruction from doing a part of a program.

A fix is offered only where it was tried: it is legal, and after it the difference is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....ir.analysis import feeds_kind, reads, writes
from ....ir.loop.nodes import Buffer, For, IndexMap, Load
from ....ir.loop.visit import walk_element
from ....ir.symbolic import Bool, Expr, Var, const_value, free_vars, var
from ...intrinsics.difference import Difference, Kind
from ...intrinsics.match import Unified
from ...intrinsics.nest import Nest, Stray, compact_strides
from ...intrinsics.registry import intrinsics_for
from ...primitive import Primitive
from ...refs import BlockRef, BufferRef, FunctionRef, LoopRef, block_ref, loop_ref
from ...state import State
from ..caching.cache_read import CacheRead
from ..caching.cache_write import CacheWrite
from ..layout.set_scope import SetScope
from ..layout.transform_layout import TransformLayout
from ..loops.reorder import Reorder
from ..loops.split import Split
from ..reduction.decompose_reduction import DecomposeReduction
from ..specialise.assume import Assume
from ._site import Site, site_of

if TYPE_CHECKING:
    from .tensorize import Tensorize

_WRONG = ("access", "dtype", "target")
"""Kinds that no change of loops mends: another instruction is what is wanted, if one fits."""

MOST_FIXES = 3
"""Offers for one difference; the first are the plainest."""


def fixes_of(site: Site, difference: Difference) -> tuple[Primitive, ...]:
    """Give the steps that are legal and remove a difference."""
    found: list[Primitive] = []
    for step in dict.fromkeys(_candidates(site, difference)):
        if len(found) < MOST_FIXES and mends(site, difference, step):
            found.append(step)
    return tuple(found)


def mends(site: Site, difference: Difference, step: Primitive) -> bool:
    """Whether a step is legal, and removes a difference."""
    if isinstance(step, _tensorize()):
        return not any(step.structural(site.state)) and not step.site(site.state).differences
    after = _after(site.state, step)
    if after is None:
        return False
    where = after.follow(site.where)[-1:]
    if not where or not isinstance(where[0], LoopRef | BlockRef):
        return False
    left = site_of(after, where[0], site.intrinsic)
    if isinstance(left.unified, Stray):
        return False
    if _count(left, difference) >= _count(site, difference):
        return False
    return _told(left, difference) < _told(site, difference)


def _after(state: State, step: Primitive) -> State | None:
    """Give the program after a step; None where it is not legal. One step mends many things."""
    key = ("after", step)
    if key not in state.memo:
        state.memo[key] = None if state.check(step) else state.apply(step).state
    after = state.memo[key]
    return after if isinstance(after, State) else None


def _tensorize() -> type[Tensorize]:
    """Give the step itself, which offers these fixes."""
    from .tensorize import Tensorize

    return Tensorize


def _count(site: Site, difference: Difference) -> int:
    """How many differences are of one kind and about one part of the instruction."""
    found = Counter((d.kind, d.partner, d.pattern) for d in site.differences)
    return found[difference.kind, difference.partner, difference.pattern]


def _told(site: Site, difference: Difference) -> int:
    """How many differences read the same: another of a pair may be the one that went."""
    return sum((d.kind, d.message) == (difference.kind, difference.message)
               for d in site.differences)  # fmt: skip


def _candidates(site: Site, difference: Difference) -> Iterator[Primitive]:
    if not isinstance(site.unified, Unified):
        return
    kind: Kind = difference.kind
    if any(d.kind in _WRONG for d in site.differences):
        yield from _others(site)
    match kind:
        case "extent":
            yield from _for_extent(site, site.unified, difference)
        case "layout":
            yield from _for_layout(site, site.unified, difference)
        case "reduction":
            yield from _for_reduction(site)
        case "scope":
            yield from _for_scope(site, difference)
        case "predicate":
            yield from _for_predicate(site, difference)
        case "dtype" | "access" | "target":
            pass
    yield from _others(site)


def _others(site: Site) -> Iterator[Primitive]:
    """Other instructions that fit as it is, the nearest by name first."""
    own = site.intrinsic
    family = own.name.split(".")
    found = [i for i in intrinsics_for(site.state.target) if i is not own]
    found.sort(key=lambda i: -sum(a == b for a, b in zip(family, i.name.split("."), strict=False)))
    for intrinsic in found:
        if not site_of(site.state, site.where, intrinsic).differences:
            yield _tensorize()(site.where, intrinsic.name)


# ---------------------------------------------------------------- by kind


def _for_extent(site: Site, unified: Unified, difference: Difference) -> Iterator[Primitive]:
    name, loop = site.where.function, difference.subject
    if isinstance(loop, For) and difference.partner is not None:
        size = const_value(unified.pattern.loops[difference.partner].extent)
        yield Split(loop_ref(name, loop), (None, size))
    if isinstance(loop, For):
        tile = [x for x in unified.program.loops if x in unified.loops]
        rest = [x for x in unified.program.loops if x not in tile]
        if rest:
            yield Reorder(tuple(loop_ref(name, x) for x in (*rest, *tile)))
        yield from (
            _tensorize()(loop_ref(name, x), site.intrinsic.name) for x in unified.program.loops[1:]
        )
    elif isinstance(site.where, LoopRef):
        around = reversed(site.tree.loops_above(site.state.loop(site.where)))
        yield from (_tensorize()(loop_ref(name, x), site.intrinsic.name) for x in around)


def _for_reduction(site: Site) -> Iterator[Primitive]:
    block, name = site.block, site.where.function
    if isinstance(site.where, BlockRef) and site.state.block(site.where).init is not None:
        block = site.state.block(site.where)
    if block is None or block.init is None:
        return
    above = site.tree.loops_above(block)
    first = next((x for x in above if "reduce" in feeds_kind(x, block)), None)
    if first is not None:
        yield DecomposeReduction(block_ref(name, block), loop_ref(name, first))
    if isinstance(site.where, LoopRef):
        yield DecomposeReduction(block_ref(name, block), site.where)


def _for_scope(site: Site, difference: Difference) -> Iterator[Primitive]:
    block, name, buffer = site.block, site.where.function, difference.subject
    if not isinstance(buffer, Buffer) or difference.partner is None or block is None:
        return
    wanted = site.intrinsic.semantics.buffer_params[difference.partner].scope
    ref = BufferRef(name, buffer.uid, buffer.name)
    if buffer in site.tree.function.buffers:
        yield SetScope(ref, wanted)
    yield from _copies(block_ref(name, block), site, buffer, wanted, None)


def _copies(
    block: BlockRef, site: Site, buffer: Buffer, scope: str, index_map: IndexMap | None
) -> Iterator[Primitive]:
    ref = BufferRef(block.function, buffer.uid, buffer.name)
    made = site.state.block(block)
    if any(a.buffer is buffer for a in reads(made)):
        yield CacheRead(block, ref, scope, index_map)
    elif index_map is None and any(a.buffer is buffer for a in writes(made)):
        yield CacheWrite(block, ref, scope)


def _for_layout(site: Site, unified: Unified, difference: Difference) -> Iterator[Primitive]:
    block, buffer = site.block, difference.subject
    if block is None or not isinstance(buffer, Buffer) or difference.partner is None:
        return
    index_map = _packed(site, unified, buffer, difference.partner)
    if index_map is None:
        return
    name = site.where.function
    if buffer in site.tree.function.buffers:
        yield TransformLayout(BufferRef(name, buffer.uid, buffer.name), index_map)
    scope = buffer.scope if buffer in site.tree.function.buffers else "global"
    yield from _copies(block_ref(name, block), site, buffer, scope, index_map)


def _packed(site: Site, unified: Unified, buffer: Buffer, number: int) -> IndexMap | None:
    """Give the layout in which the tile's elements lie as the instruction asks.

    Every dimension that moves with a loop of the tile along which the stride is fixed is cut into
    tiles; the elements of a tile come last, in the order of the instruction's strides.
    """
    wanted = site.intrinsic.semantics.buffer_params[number]
    access = _indices(unified.program, buffer)
    asked = _indices(unified.pattern, wanted)
    if access is None or asked is None:
        return None
    strides = wanted.strides or compact_strides(wanted.shape)
    order: list[tuple[int, Var, int]] = []
    for index, stride in zip(asked, strides, strict=True):
        step, size = const_value(stride), _extent_along(unified, index)
        if step is not None and size is not None and isinstance(index, Var):
            order.append((step, index, size))
    order.sort(key=lambda item: -item[0])
    partner = {s.var: p.var for p, s in zip(unified.loops, unified.pattern.loops, strict=False)}
    inputs = tuple(var(f"d{k}", lower=0) for k in range(len(access)))
    outer: list[Expr] = list(inputs)
    inner: list[Expr] = []
    for _, variable, size in order:
        moved = [k for k, i in enumerate(access) if partner.get(variable) in free_vars(i)]
        if len(moved) != 1 or outer[moved[0]] is not inputs[moved[0]]:
            return None
        outer[moved[0]] = inputs[moved[0]] // size
        inner.append(inputs[moved[0]] % size)
    return IndexMap(inputs, (*outer, *inner)) if inner else None


def _extent_along(unified: Unified, index: Expr) -> int | None:
    found = (x for x in unified.pattern.loops if x.var is index)
    return next((const_value(x.extent) for x in found), None)


def _indices(nest: Nest, buffer: Buffer) -> tuple[Expr, ...] | None:
    """Give the indices at which a nest reads or writes a buffer, where it does."""
    value = walk_element(nest.store.value)
    found = [e.indices for e in value if isinstance(e, Load) and e.buffer is buffer]
    found += [nest.store.indices] if nest.store.buffer is buffer else []
    return found[0] if found else None


def _for_predicate(site: Site, difference: Difference) -> Iterator[Primitive]:
    """State what makes the guard hold everywhere: a symbol is a multiple of the tile."""
    guard = difference.subject
    if not isinstance(guard, Bool) or not isinstance(site.unified, Unified):
        return
    symbols = sorted(free_vars(guard) & site.tree.symbols(), key=lambda v: v.serial)
    if difference.partner is None or difference.partner >= len(site.unified.pattern.loops):
        return
    size = const_value(site.unified.pattern.loops[difference.partner].extent)
    for symbol in symbols:
        if size is not None:
            yield Assume(FunctionRef(site.where.function), symbol.name, size)
