"""Partial results per lane of reductions by declared reducers."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.decompose import around, namer_of
from ....ir.loop.nodes import Block, For, PrimFunc, Stmt
from ....ir.loop.reducers import Reducing, reducing
from ....ir.loop.visit import replace_statement, seq, walk
from ....ir.symbolic import Var, all_of, conjuncts, const_value, free_vars
from ....target.target import Target
from ..counted_lanes import CountedLanes, is_counted
from ..lane_results import LaneResults, Site
from ..lowering_pass import Pass


class VectorizeReducers(Pass):
    """Reduce into one partial result per lane, then combine the partial results of the lanes.

    Before::
        for k0 in range(n):
            for k1 in vectorized(16):
                block: m[i], p[i] = argmax(x[i, k0 * 16 + k1], k0 * 16 + k1)
    After::
        for k1 in vectorized(16):
            block: m_part[k1], p_part[k1] = -inf, 9223372036854775807
        for k0 in range(n):
            for k1 in vectorized(16):
                block: m_part[k1], p_part[k1] = argmax(x[i, k0 * 16 + k1], k0 * 16 + k1)
        for k1 in vectorized(8):
            block: m_part[k1], p_part[k1] combined with m_part[k1 + 8], p_part[k1 + 8]
        ...  # the same for 4, 2 and 1 lanes
        block: m[i], p[i] = argmax(m_part[0], p_part[0])

    If the reducer rounds its results, as ``welford`` does, long reductions are divided into blocks
    of 64 terms per lane with their own partial results, and into blocks of these, so that the
    rounding error grows slowly with the number of terms. The order depends on shapes and schedule
    only.

    If loops of the reduction are bound to threads, which have partial results of their own, the
    lanes of each thread run one after the other.

    Updates by one operator, ``C[i] = C[i] op value``, are not changed.
    """

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Add partial results to all vectorized reductions by a reducer."""
        for block in [s for s in walk(func.body) if isinstance(s, Block) and s.reducer]:
            path = around(func.body, block)
            if target.is_gpu and _in_threads(path, block):
                func = _with_serial_lanes(func, path)
                continue
            site = _site(path, block)
            if site is not None:
                func = _with_lanes(func, site)
        return func


def _in_threads(path: tuple[Stmt, ...], block: Block) -> bool:
    """Return whether a block is a reduction of which threads compute parts."""
    reduced = _bound(block, reduce=True)
    return reducing(block) is not None and any(
        isinstance(x, For) and x.kind == "thread" and x.var in reduced for x in path
    )


def _with_serial_lanes(func: PrimFunc, path: tuple[Stmt, ...]) -> PrimFunc:
    """Return a function whose vectorized loops on a path are serial."""
    body = func.body
    for loop in path:
        if isinstance(loop, For) and loop.kind == "vectorized":
            body = replace_statement(body, loop, replace(loop, kind="serial"))
    return replace(func, body=body)


def _site(path: tuple[Stmt, ...], block: Block) -> Site | None:
    """Return the reduction of a block if its lanes can have their own partial results."""
    parts = reducing(block)
    reduced = _bound(block, reduce=True) - _bound(block, reduce=False)
    if parts is None or block.init is not None or not parts.reducer.commutative:
        return None
    loops: list[For] = []
    for above in reversed(path):
        own = isinstance(above, For) and above.var in reduced
        if not own or not isinstance(above, For) or above.kind not in ("serial", "vectorized"):
            break
        loops.append(above)
    lanes = next((x for x in loops if x.kind == "vectorized"), None)
    if lanes is None or const_value(lanes.extent) is None:
        return None
    inner = {x.var for x in loops}
    kept = [p for p in conjuncts(block.predicate) if free_vars(p).isdisjoint(inner)]
    mixed = [p for p in conjuncts(block.predicate) if not free_vars(p).isdisjoint(inner)]
    spatial = _bound(block, reduce=False)
    if any(not free_vars(p).isdisjoint(spatial) for p in mixed):
        if not _has_all_elements(block, parts):
            return None
        kept += [v.binding < v.extent for v in block.iters if v.kind != "reduce"]
    return Site(block, parts, lanes, tuple(loops), all_of(*kept), tuple(mixed))


def _has_all_elements(block: Block, parts: Reducing) -> bool:
    """Return whether the results have an element for every value of the iteration variables."""
    extents = {v.var: v.extent for v in block.iters}
    return all(
        isinstance(index, Var) and extents.get(index) == size
        for target in parts.targets
        for index, size in zip(target.indices, target.buffer.shape, strict=True)
    )


def _bound(block: Block, *, reduce: bool) -> frozenset[Var]:
    """Return the variables in the bindings of the reduction or of the other variables."""
    chosen = (v for v in block.iters if (v.kind == "reduce") is reduce)
    return frozenset[Var]().union(*(free_vars(v.binding) for v in chosen))


def _with_lanes(func: PrimFunc, site: Site) -> PrimFunc:
    kind = CountedLanes if is_counted(site) else LaneResults
    writer = kind(namer_of(func), site, func.facts)
    body = replace_statement(func.body, site.loops[-1], seq(writer.reduced(), writer.combined()))
    return replace(func, body=body, buffers=(*func.buffers, *writer.buffers))
