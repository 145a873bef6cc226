"""Steps that remove a mismatch between a loop nest and an intrinsic.

Every fix is tested before it is suggested: it is legal, and it removes the mismatch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....ir.analysis import bound_kinds, reads, writes
from ....ir.loop.nodes import Buffer, For, IndexMap, Load
from ....ir.loop.visit import walk_element
from ....ir.symbolic import Bool, Expr, Var, const_value, free_vars, var
from ...apply import Primitive, apply, check
from ...handles import BlockRef, BufferRef, FunctionRef, LoopRef, block_ref, loop_ref
from ...intrinsics.difference import Difference, Kind
from ...intrinsics.match import Unified
from ...intrinsics.nest import ImperfectNest, Nest, compact_strides
from ...intrinsics.registry import intrinsics_for
from ...state import State
from ..caching.cache_read import CacheRead
from ..caching.cache_write import CacheWrite
from ..layout.set_scope import SetScope
from ..layout.transform_layout import TransformLayout
from ..loops.reorder import Reorder
from ..loops.split import Split
from ..reduction.decompose_reduction import DecomposeReduction
from ..specialize.assume import Assume
from ._site import TensorizeSite, site_of

if TYPE_CHECKING:
    from .tensorize import Tensorize

_WRONG = ("access", "dtype", "target")
"""Kinds that no loop transformation removes: another intrinsic may match."""

MOST_FIXES = 3
"""The maximum number of fixes per difference; simpler ones come first."""


def fixes_of(site: TensorizeSite, difference: Difference) -> tuple[Primitive, ...]:
    """Return the steps that are legal and remove a difference."""
    found: list[Primitive] = []
    for step in dict.fromkeys(_suggestions(site, difference)):
        if len(found) < MOST_FIXES and removes(site, difference, step):
            found.append(step)
    return tuple(found)


def removes(site: TensorizeSite, difference: Difference, step: Primitive) -> bool:
    """Return whether a step is legal, and removes a difference."""
    if isinstance(step, _tensorize()):
        return not any(step.structural(site.state)) and not step.site(site.state).differences
    after = _after(site.state, step)
    if after is None:
        return False
    where = after.follow(site.where, since=site.state)[-1:]
    if not where or not isinstance(where[0], LoopRef | BlockRef):
        return False
    left = site_of(after, where[0], site.intrinsic)
    if isinstance(left.unified, ImperfectNest):
        return False
    if _occurrences(left, difference) >= _occurrences(site, difference):
        return False
    return _same_messages(left, difference) < _same_messages(site, difference)


def _after(state: State, step: Primitive) -> State | None:
    """Return the state after a step, or None if it is illegal; memoized per state."""
    key = ("after", step)
    if key not in state.memo:
        state.memo[key] = None if check(state, step) else apply(state, step).state
    after = state.memo[key]
    return after if isinstance(after, State) else None


def _tensorize() -> type[Tensorize]:
    """Return the ``tensorize`` step, imported late to avoid an import cycle."""
    from .tensorize import Tensorize

    return Tensorize


def _occurrences(site: TensorizeSite, difference: Difference) -> int:
    """Return the number of differences of the same kind and part of the intrinsic."""
    found = Counter((d.kind, d.partner, d.pattern) for d in site.differences)
    return found[difference.kind, difference.partner, difference.pattern]


def _same_messages(site: TensorizeSite, difference: Difference) -> int:
    """Return the number of differences with the same message."""
    return sum((d.kind, d.message) == (difference.kind, difference.message)
               for d in site.differences)  # fmt: skip


def _suggestions(site: TensorizeSite, difference: Difference) -> Iterator[Primitive]:
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


def _others(site: TensorizeSite) -> Iterator[Primitive]:
    """Yield other intrinsics that match without changes, the most similar names first."""
    own = site.intrinsic
    family = own.name.split(".")
    target = site.state.target_of(site.where.function)
    found = [i for i in intrinsics_for(target) if i is not own]
    found.sort(key=lambda i: -sum(a == b for a, b in zip(family, i.name.split("."), strict=False)))
    for intrinsic in found:
        if not site_of(site.state, site.where, intrinsic).differences:
            yield _tensorize()(site.where, intrinsic.name)


def _for_extent(
    site: TensorizeSite, unified: Unified, difference: Difference
) -> Iterator[Primitive]:
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


def _for_reduction(site: TensorizeSite) -> Iterator[Primitive]:
    block, name = site.block, site.where.function
    if isinstance(site.where, BlockRef) and site.state.block(site.where).init is not None:
        block = site.state.block(site.where)
    if block is None or block.init is None:
        return
    above = site.tree.loops_above(block)
    first = next((x for x in above if "reduce" in bound_kinds(x, block)), None)
    if first is not None:
        yield DecomposeReduction(block_ref(name, block), loop_ref(name, first))
    if isinstance(site.where, LoopRef):
        yield DecomposeReduction(block_ref(name, block), site.where)


def _for_scope(site: TensorizeSite, difference: Difference) -> Iterator[Primitive]:
    block, name, buffer = site.block, site.where.function, difference.subject
    if not isinstance(buffer, Buffer) or difference.partner is None or block is None:
        return
    wanted = site.intrinsic.semantics.buffer_params[difference.partner].scope
    ref = BufferRef(name, buffer.uid, buffer.name)
    if site.tree.is_temporary(buffer):
        yield SetScope(ref, wanted)
    yield from _copies(block_ref(name, block), site, buffer, wanted, None)


def _copies(
    block: BlockRef, site: TensorizeSite, buffer: Buffer, scope: str, index_map: IndexMap | None
) -> Iterator[Primitive]:
    ref = BufferRef(block.function, buffer.uid, buffer.name)
    made = site.state.block(block)
    if any(a.buffer is buffer for a in reads(made)):
        yield CacheRead(block, ref, scope, index_map)
    elif index_map is None and any(a.buffer is buffer for a in writes(made)):
        yield CacheWrite(block, ref, scope)


def _for_layout(
    site: TensorizeSite, unified: Unified, difference: Difference
) -> Iterator[Primitive]:
    block, buffer = site.block, difference.subject
    if block is None or not isinstance(buffer, Buffer) or difference.partner is None:
        return
    index_map = _packed(site, unified, buffer, difference.partner)
    if index_map is None:
        return
    name = site.where.function
    if site.tree.is_temporary(buffer):
        yield TransformLayout(BufferRef(name, buffer.uid, buffer.name), index_map)
    scope = buffer.scope if site.tree.is_temporary(buffer) else "global"
    yield from _copies(block_ref(name, block), site, buffer, scope, index_map)


def _packed(site: TensorizeSite, unified: Unified, buffer: Buffer, number: int) -> IndexMap | None:
    """Return the layout in which the tile has the strides of the intrinsic.

    Every dimension indexed by a loop of the tile with a constant stride is split into tiles. The
    indices inside a tile come last, in the order of the strides of the intrinsic.
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
    """Return the indices at which a nest reads or writes a buffer, or None."""
    value = walk_element(nest.store.value)
    found = [e.indices for e in value if isinstance(e, Load) and e.buffer is buffer]
    found += [nest.store.indices] if nest.store.buffer is buffer else []
    return found[0] if found else None


def _for_predicate(site: TensorizeSite, difference: Difference) -> Iterator[Primitive]:
    """Yield assumptions that make a predicate redundant: a symbol is a multiple of the tile."""
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
