"""Partial results per lane of reductions by declared reducers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...ir.loop.decompose import (
    around,
    bound_variables,
    namer_of,
)
from ...ir.loop.nodes import (
    Block,
    For,
    PrimFunc,
    Stmt,
)
from ...ir.loop.reducers import (
    Reducing,
    reducing,
)
from ...ir.loop.visit import (
    replace_statement,
    walk,
)
from ...ir.symbolic import (
    Var,
    all_of,
    conjuncts,
    const_value,
    free_vars,
)
from ...target.cpus import cpu_of
from ...target.host import with_level
from ...target.target import Target
from .counted_lanes import (
    CountedLanes,
    numbers_of,
)
from .lane_results import (
    LaneResults,
    Site,
)
from .lowering_pass import Pass


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
    lanes of each thread run one after the other, and so do lanes that cannot have partial results:
    if a loop inside of theirs is not one of the reduction, or has an extent that depends on it.

    Updates by one operator, ``C[i] = C[i] op value``, are not changed.
    """

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Add partial results to all vectorized reductions by a reducer."""
        for block in [s for s in walk(func.body) if isinstance(s, Block) and s.reducer]:
            path = around(func.body, block)
            _, reduced = bound_variables(block.iters)
            if target.is_gpu and _in_threads(path, block):
                func = _with_serial_lanes(func, path)
            elif (site := _site(path, block)) is not None:
                func = _with_lanes(func, site, target)
            elif reducing(block) is not None:
                loops = (x for x in path if isinstance(x, For) and x.var in reduced)
                func = _with_serial_lanes(func, loops)
        return func


def _in_threads(path: tuple[Stmt, ...], block: Block) -> bool:
    """Return whether a block is a reduction of which threads compute parts."""
    _, reduced = bound_variables(block.iters)
    return reducing(block) is not None and any(
        isinstance(x, For) and x.kind == "thread" and x.var in reduced for x in path
    )


def _with_serial_lanes(func: PrimFunc, path: Iterable[Stmt]) -> PrimFunc:
    """Return a function whose vectorized loops on a path are serial."""
    body = func.body
    for loop in path:
        if isinstance(loop, For) and loop.kind == "vectorized":
            body = replace_statement(body, loop, replace(loop, kind="serial"))
    return replace(func, body=body)


def _site(path: tuple[Stmt, ...], block: Block) -> Site | None:
    """Return the reduction of a block if its lanes can have their own partial results."""
    parts = reducing(block)
    spatial, reduced = bound_variables(block.iters)
    reduced -= spatial
    if parts is None or block.init is not None or not parts.reducer.commutative:
        return None
    loops: list[For] = []
    for above in reversed(path):
        if not isinstance(above, For) or above.kind not in ("serial", "vectorized"):
            break
        unit = const_value(above.extent) == 1 and above.var not in spatial
        dependent = any(above.var in free_vars(x.extent) for x in loops)
        if not (unit or above.var in reduced) or dependent:
            break
        loops.append(above)
    while loops and loops[-1].var not in reduced:
        loops.pop()
    lanes = next((x for x in loops if x.kind == "vectorized"), None)
    if lanes is None or const_value(lanes.extent) is None:
        return None
    inner = {x.var for x in loops}
    kept = [p for p in conjuncts(block.predicate) if free_vars(p).isdisjoint(inner)]
    mixed = [p for p in conjuncts(block.predicate) if not free_vars(p).isdisjoint(inner)]
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


def _with_lanes(func: PrimFunc, site: Site, target: Target) -> PrimFunc:
    numbers, names = numbers_of(site), namer_of(func)
    if numbers is None:
        writer = LaneResults(names, site, func.facts)
    else:
        resolved = with_level(target)
        cpu = None if target.is_gpu else cpu_of(resolved.arch, resolved.features)
        writer = CountedLanes(names, site, func.facts, numbers, cpu)
    body = replace_statement(func.body, site.loops[-1], writer.statements())
    return replace(func, body=body, buffers=(*func.buffers, *writer.buffers))
