"""The ``cooperative_copy`` composite step."""

from __future__ import annotations

from ..composite import composite
from ..handles import BlockRef
from ..schedule import Schedule


@composite
def cooperative_copy(sch: Schedule, copy: BlockRef, rows: int = 16, columns: int = 16) -> None:
    """Distribute the copy of a matrix over the threads of a thread block.

    Before::

        for i in range(64):
            for j in range(16):
                s[i, j] = x[i, j]

    After::

        for e in range(4):
            for y in bind(16, "threadIdx.y"):
                for t in bind(16, "threadIdx.x"):
                    s[e * 16 + y, t] = x[e * 16 + y, t]

    Parameters
    ----------
    copy : BlockRef
        The block. Its last two loops are distributed.
    rows : int
        The number of threads along ``threadIdx.y``.
    columns : int
        The number of threads along ``threadIdx.x``. Adjacent threads copy adjacent elements.

    Notes
    -----
    One ``fuse``, one ``split`` and two ``bind``. Cost: linear in the size of the block.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(64, 16), f32], y: Out[(64, 16), f32]):
    ...     for i in range(64):
    ...         for j in range(16):
    ...             with block("copy"):
    ...                 vi, vj = spatial(i), spatial(j)
    ...                 y[vi, vj] = x[vi, vj]
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cuda", arch="sm_90a"))
    >>> sch.cooperative_copy("copy")
    >>> [sch.state.loop(loop).thread for loop in sch.get_loops("copy")]
    ['', 'threadIdx.y', 'threadIdx.x']
    """
    tile = sch.fuse(sch.get_loops(copy)[-2:])
    _, y, x = sch.split(tile, factors=(None, rows, columns))
    sch.bind(y, "threadIdx.y")
    sch.bind(x, "threadIdx.x")
