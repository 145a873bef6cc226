"""GPU rule for long scans: the threads of a thread block compute runs of a scan."""

from __future__ import annotations

from typing import Final

from ....ir.loop.scans import scan_variable
from ....ir.symbolic import const_value, free_vars, product
from ...composite import composite
from ...handles import BlockRef, FunctionRef, LoopRef
from ...primitives.placement.compute_inline import ComputeInline
from ...problem import RuleNotApplicableError
from ...schedule import Schedule
from ._binding import THREADS, joined, separate_nests, spatial_first

RUN: Final = 32
"""The number of steps that one thread computes at a time."""

SHORT: Final = 64
"""The number of steps up to which a scan is not divided."""

MOST_ROWS: Final = 64
"""The number of scans up to which their steps are divided; more of them run in parallel."""


@composite
def schedule_gpu_scan_runs(sch: Schedule, function: FunctionRef) -> None:
    """Divide long scans into runs of the threads of a thread block.

    Before::

        for j in range(n):
            y[j] = scan(add, x[j])

    After::

        for r_0 in range(ceildiv(ceildiv(n, 32), 256)):
            for r_1 in bind(256, "threadIdx.x"):
                for q in range(32):
                    total[r_0 * 256 + r_1] += x[(r_0 * 256 + r_1) * 32 + q]
        for r in range(ceildiv(n, 32)):
            first[r] = scan(add, total[r - 1])
        for r_0 in range(ceildiv(ceildiv(n, 32), 256)):
            for r_1 in bind(256, "threadIdx.x"):
                for q in range(32):
                    y[...] = scan(add, x[(r_0 * 256 + r_1) * 32 + q], start=first[r_0 * 256 + r_1])

    Parameters
    ----------
    function : FunctionRef
        The function. It has a scan of many steps and with few rows: one, or a constant number.

    Notes
    -----
    ``compute_inline`` where it is legal, ``scan_blocks``, ``split`` and ``bind``. The scan of the
    totals of the runs is serial. A scan with several rows has one thread block per row.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... n = symbols("n", lower=0)
    ... @prim_func
    ... def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    ...     for j in range(n):
    ...         with block("sums"):
    ...             vj = ordered(j)
    ...             y[vj] = scan(add, x[vj])
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cuda", arch="sm_90a"))
    >>> sch.schedule_gpu_scan_runs("f")
    >>> [sch.state.loop(loop).thread for loop in sch.get_loops("sums")]
    ['', 'threadIdx.x', '']
    """
    name = function.function
    scans = long_scans(sch, name)
    if not scans:
        raise RuleNotApplicableError(f"function {name!r} has no long scan with few rows")
    blocks = sch.get_blocks(name)
    for block in blocks:
        if block not in scans:
            _bind(sch, joined(sch, spatial_first(sch, block)))
            continue
        runs, _ = sch.scan_blocks(block, RUN)
        for part in (runs, block):
            _bind(sch, sch.get_loops(part)[-2])
    rows = sch.get_loops(scans[0])[:-3]
    if len(blocks) == 1 and rows:
        sch.bind(joined(sch, rows), "blockIdx.x")


def long_scans(sch: Schedule, name: str) -> list[BlockRef]:
    """Inline blocks where it is legal, and return the scans of many steps with few rows.

    Raises
    ------
    RuleNotApplicableError
        If two blocks are in the same loop.
    """
    for block in sch.get_blocks(name):
        step = ComputeInline(block)
        if not sch.check(step):
            sch.apply(step)
    return [block for block in separate_nests(sch, name) if _is_long(sch, block)]


def _is_long(sch: Schedule, block: BlockRef) -> bool:
    """Return whether a block is a scan of many steps with few rows, in its innermost loop."""
    node = sch.state.block(block)
    own = scan_variable(node)
    loops = [sch.state.loop(x) for x in sch.get_loops(block)]
    if own is None or not loops:
        return False
    *outer, inner = loops
    bound = [v.var for v in node.iters if inner.var in free_vars(v.binding)]
    rows = const_value(product(tuple(x.extent for x in outer)))
    steps = const_value(inner.extent)
    few = rows is not None and rows <= MOST_ROWS
    return few and bound == [own] and (steps is None or steps > SHORT)


def _bind(sch: Schedule, loop: LoopRef) -> None:
    _, thread = sch.split(loop, factors=(None, THREADS))
    sch.bind(thread, "threadIdx.x")
