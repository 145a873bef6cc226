"""GPU rule for kernels whose iterations depend on each other: one thread."""

from __future__ import annotations

from ...composite import composite
from ...handles import FunctionRef
from ...schedule import Schedule
from ._binding import outermost_blocks


@composite
def schedule_gpu_serial(sch: Schedule, function: FunctionRef) -> None:
    """Run every nest in one thread.

    Before::

        for i in range(n):
            y[i + 1] = y[i] + x[i]

    After::

        for t in bind(1, "threadIdx.x"):
            for i in range(n):
                y[i + 1] = y[i] + x[i]

    Parameters
    ----------
    function : FunctionRef
        The function.

    Notes
    -----
    One ``add_unit_loop`` and one ``bind`` per nest.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: Out[(9,), f32]):
    ...     for i in range(8):
    ...         with block("scan"):
    ...             vi = ordered(i)
    ...             y[vi + 1] = y[vi] + x[vi]
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cuda", arch="sm_90a"))
    >>> sch.schedule_gpu_serial("f")
    >>> [sch.state.loop(loop).thread for loop in sch.get_loops("scan")]
    ['threadIdx.x', '']
    """
    for block in outermost_blocks(sch, function.function):
        loops = sch.get_loops(block)
        if any(sch.state.loop(loop).kind == "thread" for loop in loops):
            continue  # the loops contain an earlier block, too
        unit = sch.add_unit_loop(loops[0] if loops else block)
        sch.bind(unit, "threadIdx.x")
