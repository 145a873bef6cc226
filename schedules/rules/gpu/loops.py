"""GPU rule for any kernel: all spatial loops of a nest are bound to thread blocks and threads.

Nests that exchange temporaries require synchronization, which only the threads of one thread block
have. Such a kernel runs in one thread block.
"""

from __future__ import annotations

from typing import Final

from ...composite import composite
from ...handles import FunctionRef
from ...primitives.placement.compute_inline import ComputeInline
from ...schedule import Schedule
from ._binding import THREADS, is_dependent, joined, separate_nests, spatial_first

BLOCKS: Final = 128
"""The number of thread blocks of nests with different extents; each runs several iterations."""


@composite
def schedule_gpu_loops(sch: Schedule, function: FunctionRef) -> None:
    """Fuse the spatial loops of every nest, and bind them to thread blocks and threads.

    Before::

        for i in range(n):
            for j in range(m):
                y[i, j] = x[i, j] + 1.0

    After::

        for b in bind(ceildiv(n * m, 256), "blockIdx.x"):
            for t in bind(256, "threadIdx.x"):
                if b * 256 + t < n * m:
                    y[(b * 256 + t) // m, (b * 256 + t) % m] = ...

    Parameters
    ----------
    function : FunctionRef
        The function.

    Notes
    -----
    ``compute_inline`` where it is legal, ``reorder``, ``fuse``, ``split`` and ``bind``. Reductions
    stay serial within a thread; a scatter, which updates elements at indices loaded from memory,
    is bound to threads, too, and its updates are atomic. The order of atomic updates is not
    defined, so sums of floats differ in rounding between runs. Nests that exchange temporaries run
    in one thread block.

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
    >>> sch.schedule_gpu_loops("f")
    >>> [sch.state.loop(loop).thread for loop in sch.get_loops("add")]
    ['blockIdx.x', 'threadIdx.x']
    """
    name = function.function
    for block in sch.get_blocks(name):
        step = ComputeInline(block)
        if not sch.check(step):
            sch.apply(step)
    blocks = separate_nests(sch, name)
    dependent = is_dependent(sch, name)
    flat = [joined(sch, spatial_first(sch, block)) for block in blocks]
    extents = {sch.state.loop(x).extent for x in flat}
    for loop in flat:
        if dependent:
            _, thread = sch.split(loop, factors=(None, THREADS))
        elif len(extents) == 1:
            outer, thread = sch.split(loop, factors=(None, THREADS))
            sch.bind(outer, "blockIdx.x")
        else:
            outer, _, thread = sch.split(loop, factors=(BLOCKS, None, THREADS))
            sch.bind(outer, "blockIdx.x")
        sch.bind(thread, "threadIdx.x")
