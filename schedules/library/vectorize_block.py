"""The ``vectorize_block`` composite step."""

from __future__ import annotations

from ...ir.analysis import bound_kinds
from ..composite import composite
from ..handles import BlockRef
from ..schedule import Schedule


@composite
def vectorize_block(sch: Schedule, block: BlockRef, lanes: int) -> None:
    """Vectorize the innermost loop around a block; a reduction gets one partial result per lane.

    Before::

        for i in range(n):
            for k in range(m):
                with init():
                    s[i] = 0.0
                s[i] += x[i, k]

    After (``lanes=8``)::

        for i in range(n):
            s[i] = 0.0
            for k_0 in range(ceildiv(m, 8)):
                for k_1 in vectorized(8):
                    if k_0 * 8 + k_1 < m:
                        s[i] += x[i, k_0 * 8 + k_1]

    Parameters
    ----------
    block : BlockRef
        The block. Without loops around it, nothing is changed.
    lanes : int
        The number of elements of a vector.

    Notes
    -----
    One ``vectorize_inner``; if the loop binds a reduction, ``split``, ``decompose_reduction`` and
    ``vectorize``. Cost: linear in the size of the nest.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 64), f32], y: Out[(4,), f32]):
    ...     for i in range(4):
    ...         for k in range(64):
    ...             with block("sum"):
    ...                 vi, vk = spatial(i), reduce(k)
    ...                 with init(): y[vi] = 0.0
    ...                 y[vi] += x[vi, vk]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.vectorize_block("sum", lanes=16)
    >>> [sch.state.loop(loop).kind for loop in sch.get_loops("sum")]
    ['serial', 'serial', 'vectorized']
    """
    loops = sch.get_loops(block)
    if not loops:
        return
    found = sch.state.block(block)
    reducing = [x for x in loops if "reduce" in bound_kinds(sch.state.loop(x), found)]
    if found.init is None or loops[-1] not in reducing:
        sch.vectorize_inner(loops[-1], lanes)
        return
    outer, inner = sch.split(loops[-1], factors=(None, lanes))
    sch.decompose_reduction(block, outer if reducing[0] == loops[-1] else reducing[0])
    sch.vectorize(inner)
