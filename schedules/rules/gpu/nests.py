"""GPU rule for kernels whose loops cannot be fused: the last spatial loop is bound to threads."""

from __future__ import annotations

from ...composite import composite
from ...handles import FunctionRef
from ...schedule import Schedule
from ._binding import WARP, is_dependent, joined, separate_nests, spatial_first


@composite
def schedule_gpu_nests(sch: Schedule, function: FunctionRef) -> None:
    """Bind the last spatial loop of every nest to threads, and the others to thread blocks.

    Before::

        for i in range(n):
            for j in range(i):
                y[i, j] = x[i, j] + 1.0

    After::

        for i in bind(n, "blockIdx.x"):
            for j_0 in range(ceildiv(i, 32)):
                for t in bind(32, "threadIdx.x"):
                    if j_0 * 32 + t < i:
                        y[i, j_0 * 32 + t] = x[i, j_0 * 32 + t] + 1.0

    Parameters
    ----------
    function : FunctionRef
        The function.

    Notes
    -----
    ``reorder``, ``split``, ``fuse`` and ``bind``. Only a single nest uses several thread blocks.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(64, 64), f32], y: Out[(64, 64), f32]):
    ...     for i in range(64):
    ...         for j in range(64):
    ...             with block("add"):
    ...                 vi, vj = spatial(i), spatial(j)
    ...                 y[vi, vj] = x[vi, vj] + 1.0
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cuda", arch="sm_90a"))
    >>> sch.schedule_gpu_nests("f")
    >>> [sch.state.loop(loop).thread for loop in sch.get_loops("add")]
    ['blockIdx.x', '', 'threadIdx.x']
    """
    name = function.function
    blocks = separate_nests(sch, name)
    dependent = is_dependent(sch, name)
    for block in blocks:
        *outer, last = spatial_first(sch, block)
        _, thread = sch.split(last, factors=(None, WARP))
        sch.bind(thread, "threadIdx.x")
        if outer and not dependent and len(blocks) == 1:
            sch.bind(joined(sch, tuple(outer)), "blockIdx.x")
