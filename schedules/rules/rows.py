"""Default rule for kernels that reduce rows: softmax, norms, means, with fused neighbors.

All blocks process a row while it is in cache. Reductions keep partial results in vector lanes.
"""

from __future__ import annotations

from typing import Final

from ...ir.analysis import reorders
from ...ir.loop.nodes import Block, Condition, For, Index
from ...ir.loop.straight_line import single_store
from ...ir.loop.visit import elements, loads
from ...ir.symbolic import const_value, product, substitute
from ..composite import composite
from ..handles import BlockRef, FunctionRef, LoopRef
from ..library.vectorize_inner import lanes_of
from ..library.whole_bytes import packed_ranks, parallelize
from ..patterns import Rows, classify
from ..problem import RuleNotApplicableError
from ..schedule import Schedule

PART: Final = 65_536
"""The terms of a long reduction that one thread combines: about 10 microseconds of work."""


@composite
def schedule_rows(sch: Schedule, function: FunctionRef) -> None:
    """Schedule reductions of rows for the vector registers of a CPU.

    Before::

        for i in range(n):
            for j in range(m):
                s[i] += x[i, j]
        for i in range(n):
            for j in range(m):
                y[i, j] = x[i, j] / s[i]

    After::

        for i in parallel(n):
            for j_0 in range(ceildiv(m, 16)):
                for j_1 in vectorized(16):
                    s[i] += x[i, j_0 * 16 + j_1]
            for j_0 in range(ceildiv(m, 16)):
                for j_1 in vectorized(16):
                    y[i, j_0 * 16 + j_1] = x[i, j_0 * 16 + j_1] / s[i]

    Parameters
    ----------
    function : FunctionRef
        The function. Its blocks have common outer dimensions, and some reduce the inner ones.

    Notes
    -----
    ``compute_at`` under the row loops of the last block, ``decompose_reduction``, and
    ``vectorize`` in vectors of the target's registers. A reduction of all elements to one result is
    divided into parts that run in parallel, by ``split`` and ``rfactor``; several loops over
    adjacent elements are fused before.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 64), f32], y: Out[(4,), f32]):
    ...     for i in range(4):
    ...         for j in range(64):
    ...             with block("sum"):
    ...                 vi, vj = spatial(i), reduce(j)
    ...                 with init(): y[vi] = 0.0
    ...                 y[vi] += x[vi, vj]
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    >>> sch.schedule_rows("f")
    >>> [sch.state.loop(loop).kind for loop in sch.get_loops("sum")]
    ['parallel', 'serial', 'vectorized']
    """
    name = function.function
    pattern = classify(sch.module.prim(name))
    if not isinstance(pattern, Rows):
        raise RuleNotApplicableError(f"function {name!r} does not reduce rows")
    refs = sch.get_blocks(name)
    if pattern.shared:
        refs = _gathered(sch, refs, pattern.shared)
    parts = () if pattern.shared else tuple(_in_parts(sch, ref) for ref in refs)
    for ref in refs:
        if len(sch.get_loops(ref)) > pattern.shared:
            sch.vectorize_block(ref, lanes_of(sch, ref))
    for part in parts:
        if part is not None:
            _parallelize(sch, part)
    if not pattern.shared:
        return
    for outer in dict.fromkeys(sch.get_loops(ref)[0] for ref in refs):
        if const_value(sch.state.loop(outer).extent) != 1:
            _parallelize(sch, outer)


def _parallelize(sch: Schedule, outer: LoopRef) -> None:
    """Run rows or parts in parallel; groups of them where their packed results share a byte."""
    group = packed_ranks(sch, outer)
    if not parallelize(sch, outer) and set(group) == {1}:
        sch.parallel(sch.split(outer, (None, group[1]))[0])


def _in_parts(sch: Schedule, block: BlockRef) -> LoopRef | None:
    """Divide a long reduction to one result; return the loop over the parts, or None."""
    loops, found = sch.get_loops(block), sch.state.block(block)
    if found.init is None or not loops or not reorders(found):
        return None
    if any(v.kind != "reduce" and v.binding.free for v in found.iters):
        return None
    nest = [sch.state.loop(x) for x in loops]
    extent = const_value(product(x.extent for x in nest))
    if extent is not None and extent <= PART:
        return None
    if len(loops) > 1 and not _is_contiguous(found, nest):
        return None
    one = loops[0] if len(loops) == 1 else sch.fuse(*loops)
    outer, _ = sch.split(one, factors=(None, PART))
    combine = sch.rfactor(block, outer)
    sch.vectorize_block(combine, lanes_of(sch, combine))
    return outer


def _is_contiguous(block: Block, loops: list[For]) -> bool:
    """Return whether consecutive iterations of all loops read adjacent elements of every buffer."""
    bindings, order = {v.var: v.binding for v in block.iters}, tuple(x.var for x in loops)
    extents, results = tuple(x.extent for x in loops), {r.buffer for r in block.writes}
    if any(isinstance(e, Index | Condition) for e in elements(block.body)):
        return False
    return all(
        x.buffer.strides is None
        and x.buffer.shape == extents
        and tuple(substitute(i, bindings) for i in x.indices) == order
        for x in loads(block.body)
        if x.buffer not in results
    )


def _gathered(sch: Schedule, refs: tuple[BlockRef, ...], shared: int) -> tuple[BlockRef, ...]:
    """Move every block but the last under the innermost row loop of the last; return all blocks.

    A block with several results, and one without moved consumers, is not moved.
    """
    *before, last = refs
    row, moved = sch.get_loops(last)[shared - 1], {last}
    for block in reversed(before):
        several = single_store(sch.state.block(block).body) is None
        if not several and not moved.isdisjoint(sch.get_consumers(block)):
            sch.compute_at(block, row)
            moved.add(block)
    return refs
