"""GPU rule for long scans of kernels in graphs: one thread block per part of a scan."""

from __future__ import annotations

from typing import Final

from ....ir.graph.nodes import CallTIR
from ...composite import composite
from ...handles import FunctionRef
from ...problem import RuleNotApplicableError
from ...schedule import Schedule
from ._binding import THREADS, joined, require_exchange
from .scan_runs import long_scans

ITEMS: Final = 8
"""The number of steps of a scan that one thread computes."""

GROUP: Final = 16
"""The number of totals of threads that one thread scans."""

PART: Final = THREADS * ITEMS
"""The number of steps that one thread block computes."""


@composite
def schedule_gpu_scans(sch: Schedule, function: FunctionRef) -> None:
    """Divide a long scan into parts, each of which one thread block computes.

    Before::

        for j in range(n):
            y[j] = scan(add, x[j])

    After::

        for p in bind(ceildiv(n, 2048), "blockIdx.x"):
            for t in bind(256, "threadIdx.x"):
                for q in range(8):
                    total[t] += x[p * 2048 + t * 8 + q]
            for t in range(256):
                first[t] = scan(add, total[t - 1], start=before[p])
            for t in bind(256, "threadIdx.x"):
                for q in range(8):
                    y[p * 2048 + t * 8 + q] = scan(add, x[p * 2048 + t * 8 + q], start=first[t])

    Parameters
    ----------
    function : FunctionRef
        The function, which graphs call. It has one scan, of many steps and with few rows.

    Notes
    -----
    ``scan_blocks`` and ``hoist_block``: the totals of the parts and their scan ``before`` become
    two kernels of their own, since thread blocks do not synchronize. A thread block reduces each
    part in the first one; ``schedule_gpu_scan_runs`` schedules the second one. In a thread block,
    ``scan_blocks`` divides a part again, and also the scan of the 256 totals of its threads.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... n = symbols("n", lower=0)
    ...
    ... @graph_func
    ... def main(x: Tensor[(n,), f32]):
    ...     y = call_tir(sums, x, outputs=(Tensor[(n,), f32],))
    ...     return y
    ...
    ... @prim_func
    ... def sums(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    ...     for j in range(n):
    ...         with block("y"):
    ...             vj = ordered(j)
    ...             y[vj] = scan(add, x[vj])
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cuda", arch="sm_90a"))
    >>> sch.schedule_gpu_scans("sums")
    >>> sorted(prim.name for prim in sch.module.prims)
    ['sums', 'sums_y_before', 'sums_y_total']
    >>> [sch.state.loop(loop).thread for loop in sch.get_loops(sch.get_block("y", "sums"))]
    ['blockIdx.x', 'threadIdx.x', '']
    """
    name = function.function
    scans = long_scans(sch, name)
    if len(scans) != 1:
        raise RuleNotApplicableError(f"function {name!r} has {len(scans)} long scans, not one")
    if not _is_called(sch, name):
        raise RuleNotApplicableError(f"no graph calls {name!r}, so it remains one kernel")
    scan = scans[0]
    totals, before = sch.scan_blocks(scan, PART)
    _schedule_totals(sch, sch.hoist_block(totals))
    sch.schedule_gpu_scan_runs(sch.hoist_block(before))
    rows = len(sch.get_loops(scan)) - 1
    part = sch.get_loops(scan)[rows - 1]
    for block in sch.get_blocks(name):
        if block != scan:
            sch.reverse_compute_at(block, part)
            inner = joined(sch, sch.get_loops(block)[rows:])
            _, thread = sch.split(inner, factors=(None, THREADS))
            sch.bind(thread, "threadIdx.x")
    runs, carried = sch.scan_blocks(scan, ITEMS)
    for block in (runs, scan):
        sch.bind(sch.get_loops(block)[rows], "threadIdx.x")
    groups, _ = sch.scan_blocks(carried, GROUP)
    for block in (groups, carried):
        _, thread = sch.split(sch.get_loops(block)[rows], factors=(None, THREADS))
        sch.bind(thread, "threadIdx.x")
    sch.bind(joined(sch, sch.get_loops(scan)[:rows]), "blockIdx.x")


def _schedule_totals(sch: Schedule, function: FunctionRef) -> None:
    """Reduce each part in one thread block."""
    (block,) = sch.get_blocks(function.function)
    require_exchange(sch.state.block(block))
    *outer, step = sch.get_loops(block)
    _, thread = sch.split(step, factors=(None, THREADS))
    sch.bind(thread, "threadIdx.x")
    sch.bind(joined(sch, tuple(outer)), "blockIdx.x")


def _is_called(sch: Schedule, name: str) -> bool:
    """Return whether graphs call a kernel."""
    bindings = (b for graph in sch.module.graphs for b in graph.bindings)
    return any(isinstance(b.right, CallTIR) and b.right.function == name for b in bindings)
