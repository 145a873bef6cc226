"""The ``tile`` composite step."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.loop.nodes import For
from ...ir.symbolic import SymInt
from ..apply import Composite
from ..composite import composite
from ..handles import Handle, LoopRef, loop_ref
from ..schedule import Schedule
from ..state import State


def nest_of_two(state: State, selection: Handle) -> Iterator[tuple[LoopRef, LoopRef]]:
    """Yield a selected loop and the loop that is its whole body, if both are serial."""
    if not isinstance(selection, LoopRef):
        return
    outer = state.loop(selection)
    inner = outer.body
    if isinstance(inner, For) and outer.kind == inner.kind == "serial":
        yield selection, loop_ref(selection.function, inner)


def _suggested(state: State, selection: Handle) -> Iterator[Composite]:
    for i, j in nest_of_two(state, selection):
        for size in (8, 32):
            yield tile(i, j, (size, size))


@composite(suggest=_suggested)
def tile(
    sch: Schedule, i: LoopRef, j: LoopRef, sizes: tuple[SymInt, SymInt] = (32, 32)
) -> tuple[LoopRef, LoopRef, LoopRef, LoopRef]:
    """Divide the iterations of two nested loops into tiles.

    Before::

        for i in range(n):
            for j in range(m):
                body(i, j)

    After (``sizes=(8, 32)``)::

        for i_0 in range(ceildiv(n, 8)):
            for j_0 in range(ceildiv(m, 32)):
                for i_1 in range(8):
                    for j_1 in range(32):
                        if i_0 * 8 + i_1 < n and j_0 * 32 + j_1 < m:
                            body(i_0 * 8 + i_1, j_0 * 32 + j_1)

    Parameters
    ----------
    i : LoopRef
        The outer loop.
    j : LoopRef
        The loop that is its whole body.
    sizes : tuple of SymInt
        The extents of a tile along ``i`` and ``j``, in iterations.

    Returns
    -------
    tuple of LoopRef
        ``i_0``, ``j_0``, ``i_1`` and ``j_1``: the loops over tiles, then those inside a tile.

    Notes
    -----
    Two ``split`` and one ``reorder``; cost: linear in the size of the body.

    Names elsewhere: TVM and Halide ``tile``.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(64, 64), f32], y: Out[(64, 64), f32]):
    ...     for i in range(64):
    ...         for j in range(64):
    ...             y[j, i] = x[i, j]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> loops = sch.tile("i", "j", sizes=(8, 16))
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(64, 64), f32], y: Out[(64, 64), f32]):
        for i_0 in range(8):
            for j_0 in range(4):
                for i_1 in range(8):
                    for j_1 in range(16):
                        with block("y"):
                            vi, vj = spatial(64, i_0 * 8 + i_1), spatial(64, j_0 * 16 + j_1)
                            y[vj, vi] = x[vi, vj]
    """
    i_0, i_1 = sch.split(i, factors=(None, sizes[0]))
    j_0, j_1 = sch.split(j, factors=(None, sizes[1]))
    sch.reorder((i_0, j_0, i_1, j_1))
    return i_0, j_0, i_1, j_1
