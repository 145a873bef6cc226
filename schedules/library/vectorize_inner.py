"""The ``vectorize_inner`` composite step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...ir.analysis import bound_kinds
from ...ir.loop.nodes import For
from ...ir.loop.visit import walk
from ...ir.symbolic import const_value
from ..apply import Composite
from ..composite import composite
from ..handles import BlockRef, Handle, LoopRef
from ..machine import machine_of
from ..schedule import Schedule
from ..state import State

REDUCER_VECTORS: Final = 4
"""The vectors of terms that a reduction by a declared reducer combines independently, to hide the
latency of its operations."""


def lanes_of(sch: Schedule, block: BlockRef) -> int:
    """Return the number of elements that a block writes in one vector register of the target.

    A reduction of the innermost loop by a declared reducer has several vectors, if its terms fill
    them.
    """
    found = sch.state.block(block)
    lanes = machine_of(sch.state.target_of(block.function)).lanes(found.writes[0].buffer.dtype)
    if found.reducer is None or found.init is None:
        return lanes
    loops = sch.state.tree(block.function).loops_above(found)
    if not loops or "reduce" not in bound_kinds(loops[-1], found):
        return lanes
    extent = const_value(loops[-1].extent)
    vectors = REDUCER_VECTORS if extent is None else extent // lanes
    return lanes * max(1, min(REDUCER_VECTORS, vectors))


def _suggested(state: State, selection: Handle) -> Iterator[Composite]:
    if not isinstance(selection, LoopRef):
        return
    loop = state.loop(selection)
    if loop.kind == "serial" and not any(isinstance(s, For) for s in walk(loop.body)):
        for lanes in (8, 16):
            yield vectorize_inner(selection, lanes)


@composite(suggest=_suggested)
def vectorize_inner(sch: Schedule, loop: LoopRef, lanes: int) -> LoopRef:
    """Vectorize an innermost loop, in vectors of a given length.

    Before::

        for i in range(n):
            y[i] = x[i]

    After (``lanes=8``)::

        for i_0 in range(ceildiv(n, 8)):
            for i_1 in vectorized(8):
                if i_0 * 8 + i_1 < n:
                    y[i_0 * 8 + i_1] = x[i_0 * 8 + i_1]

    Parameters
    ----------
    loop : LoopRef
        The loop.
    lanes : int
        The number of elements of a vector.

    Returns
    -------
    LoopRef
        The vectorized loop.

    Notes
    -----
    One ``split`` and one ``vectorize``. A loop of at most ``lanes`` iterations is not split, and
    one of at most one iteration is unchanged. Cost: linear in the size of the body.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    ...     for i in range(32):
    ...         y[i] = x[i]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> lanes = sch.vectorize_inner("i", lanes=8)
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for i_0 in range(4):
            for i_1 in vectorized(8):
                with block("y"):
                    vi = spatial(32, i_0 * 8 + i_1)
                    y[vi] = x[vi]
    """
    extent = const_value(sch.state.loop(loop).extent)
    if extent is not None and extent <= 1:
        return loop
    if extent is None or extent > lanes:
        _, loop = sch.split(loop, factors=(None, lanes))
    sch.vectorize(loop)
    return loop
