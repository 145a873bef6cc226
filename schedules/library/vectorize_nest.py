"""The ``vectorize_nest`` composite step."""

from __future__ import annotations

from ...ir.symbolic import const_value
from ..composite import composite
from ..handles import BlockRef
from ..schedule import Schedule
from .whole_bytes import parallelize


@composite
def vectorize_nest(sch: Schedule, block: BlockRef, lanes: int) -> None:
    """Vectorize the innermost loop around a block, and run the outermost one in parallel.

    Outer loops of one iteration are skipped.

    Before::

        for i in range(n):
            for j in range(m):
                y[i, j] = x[i, j]

    After (``lanes=8``)::

        for i in parallel(n):
            for j_0 in range(ceildiv(m, 8)):
                for j_1 in vectorized(8):
                    if j_0 * 8 + j_1 < m:
                        y[i, j_0 * 8 + j_1] = x[i, j_0 * 8 + j_1]

    Parameters
    ----------
    block : BlockRef
        The block. Without loops around it, nothing is changed.
    lanes : int
        The number of elements of a vector.

    Notes
    -----
    One ``vectorize_inner`` and one ``parallel``. A single loop of at most ``lanes`` iterations is
    only vectorized, and so is a loop whose iterations may write packed elements that share a byte.
    Cost: linear in the size of the nest.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 16), f32], y: Out[(4, 16), f32]):
    ...     for i in range(4):
    ...         for j in range(16):
    ...             with block("copy"):
    ...                 vi, vj = spatial(i), spatial(j)
    ...                 y[vi, vj] = x[vi, vj]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.vectorize_nest("copy", lanes=16)
    >>> [step.op for step in sch.trace.steps if not step.op.startswith("get_")]
    ['vectorize', 'parallel']
    """
    loops = sch.get_loops(block)
    if not loops:
        return
    sch.vectorize_inner(loops[-1], lanes)
    outer, *others = sch.get_loops(block)
    for loop in (outer, *others):
        found = sch.state.loop(loop)
        if found.kind != "serial":
            break
        if const_value(found.extent) != 1:
            outer = loop
            break
    if sch.state.loop(outer).kind == "serial":
        parallelize(sch, outer)
