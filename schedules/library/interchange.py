"""The ``interchange`` composite step."""

from __future__ import annotations

from collections.abc import Iterator

from ..apply import Composite
from ..composite import composite
from ..handles import Handle, LoopRef
from ..schedule import Schedule
from ..state import State
from .tile import nest_of_two


def _suggested(state: State, selection: Handle) -> Iterator[Composite]:
    for outer, inner in nest_of_two(state, selection):
        yield interchange(outer, inner)


@composite(suggest=_suggested)
def interchange(sch: Schedule, outer: LoopRef, inner: LoopRef) -> tuple[LoopRef, LoopRef]:
    """Exchange two loops of a perfect nest.

    Before::

        for i in range(n):
            for j in range(m):
                body(i, j)

    After::

        for j in range(m):
            for i in range(n):
                body(i, j)

    Parameters
    ----------
    outer : LoopRef
        The loop that becomes the inner one.
    inner : LoopRef
        The loop that becomes the outer one.

    Returns
    -------
    tuple of LoopRef
        The loops in the new order, outermost first.

    Notes
    -----
    One ``reorder``; loops between the two keep their positions. Cost: linear in the size of the
    nest.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
    ...     for i in range(4):
    ...         for j in range(8):
    ...             y[i, j] = x[i, j]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> loops = sch.interchange("i", "j")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
        for j in range(8):
            for i in range(4):
                with block("y"):
                    vi, vj = spatial(i), spatial(j)
                    y[vi, vj] = x[vi, vj]
    """
    sch.reorder((inner, outer))
    return inner, outer
