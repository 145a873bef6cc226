"""Default rule for kernels with scans, such as running sums."""

from __future__ import annotations

from typing import Final

from ...ir.loop.nodes import Block, PrimFunc
from ...ir.loop.scans import scan_variable, scanning
from ...ir.loop.visit import walk
from ...ir.symbolic import const_value, free_vars
from ..composite import composite
from ..handles import BlockRef, FunctionRef, LoopRef
from ..library.vectorize_inner import lanes_of
from ..primitives.loops.reorder import Reorder
from ..primitives.reduction.scan_blocks import ScanBlocks
from ..problem import RuleNotApplicableError, StepError
from ..schedule import Schedule
from .nests import contiguous_loop, parallelize, schedule_nest

PART: Final = 16384
"""The number of iterations of a part of a scan without rows: the terms of a part fit in L2."""

VECTORS: Final = 4
"""The number of vectors of adjacent scans that run together."""


def has_scans(function: PrimFunc) -> bool:
    """Return whether a function contains a scan by a declared reducer."""
    return any(isinstance(s, Block) and scanning(s) is not None for s in walk(function.body))


@composite
def schedule_scans(sch: Schedule, function: FunctionRef) -> None:
    """Schedule scans for the threads and vector registers of a CPU.

    Before::

        for i in range(n):
            for j in range(m):
                y[i, j] = scan(add, x[i, j])

    After::

        for i in parallel(n):
            for j_0 in range(ceildiv(m, 16)):
                for j_1 in vectorized(16):
                    y[i, j_0 * 16 + j_1] = scan(add, x[i, j_0 * 16 + j_1])

    Parameters
    ----------
    function : FunctionRef
        The function, with at least one scan.

    Notes
    -----
    Several scans along adjacent elements run in parallel, and the lanes of a vector combine the
    steps of one. Scans across rows run in the lanes, in blocks of columns. A single scan is divided
    by ``scan_blocks`` into parts that run in parallel. All other nests are scheduled as by
    ``schedule_nests``.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(8, 64), f32], y: Out[(8, 64), f32]):
    ...     for i in range(8):
    ...         for j in range(64):
    ...             with block("sums"):
    ...                 vi, vj = spatial(i), ordered(j)
    ...                 y[vi, vj] = scan(add, x[vi, vj])
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    >>> sch.schedule_scans("f")
    >>> [sch.state.loop(loop).kind for loop in sch.get_loops("sums")]
    ['parallel', 'serial', 'vectorized']
    """
    if not has_scans(sch.module.prim(function.function)):
        raise RuleNotApplicableError(f"function {function.function!r} contains no scan")
    for block in sch.get_blocks(function.function):
        if scanning(sch.state.block(block)) is None:
            schedule_nest(sch, block)
        elif _is_single(sch, block) and not sch.check(ScanBlocks(block, PART)):
            totals, _ = sch.scan_blocks(block, PART)
            for part in (totals, block):
                _parts_in_parallel(sch, part)
        elif not _columns(sch, block):
            schedule_nest(sch, block)


def _parts_in_parallel(sch: Schedule, block: BlockRef) -> None:
    """Vectorize the steps of a part, and run the parts in parallel."""
    sch.vectorize_block(block, lanes_of(sch, block))
    parallelize(sch, block)


def _is_single(sch: Schedule, block: BlockRef) -> bool:
    """Return whether a scan has one row, which is longer than a part."""
    *others, own = [sch.state.loop(loop) for loop in sch.get_loops(block)] or [None]
    length = None if own is None else const_value(own.extent)
    short = own is None or (length is not None and length <= PART)
    return not short and all(x is not None and const_value(x.extent) == 1 for x in others)


def _columns(sch: Schedule, block: BlockRef) -> bool:
    """Schedule scans across adjacent elements: blocks of columns, with columns as lanes."""
    loops = sch.get_loops(block)
    column = contiguous_loop(sch, block, loops)
    own = scan_variable(sch.state.block(block))
    if column is None or own is None or _binds(sch, block, column, own):
        return False
    lanes = VECTORS * lanes_of(sch, block)
    extent = const_value(sch.state.loop(column).extent)
    first = next((k for k, x in enumerate(loops) if x == column or _binds(sch, block, x, own)), 0)
    draft = sch.state
    try:
        if extent is not None and extent <= lanes:
            _reordered(sch, loops, column)
            sch.vectorize(column)
        else:
            outer, inner = sch.split(column, factors=(None, lanes))
            rest = [x for x in loops[first:] if x != column]
            sch.reorder(*(outer, *rest, inner))
            sch.vectorize(inner)
    except StepError:
        return sch.state is not draft
    parallelize(sch, block)
    return True


def _reordered(sch: Schedule, loops: tuple[LoopRef, ...], inner: LoopRef) -> None:
    """Make a loop the innermost one."""
    if loops[-1] != inner:
        first = loops.index(inner)
        sch.apply(Reorder((*(x for x in loops[first:] if x != inner), inner)))


def _binds(sch: Schedule, block: BlockRef, loop: LoopRef, variable: object) -> bool:
    """Return whether a loop binds an iteration variable."""
    found = sch.state.loop(loop)
    iters = sch.state.block(block).iters
    return any(v.var is variable and found.var in free_vars(v.binding) for v in iters)
