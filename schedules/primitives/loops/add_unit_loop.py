"""The ``add_unit_loop`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...apply import Primitive, Rewrite
from ...checks import node_at
from ...edit import Edit
from ...handles import BlockRef, Handle, LoopRef
from ...registry import primitive
from ...state import State


@primitive(family="loops", returns=LoopRef)
@dataclass(frozen=True, slots=True)
class AddUnitLoop(Primitive):
    """Add a loop of one iteration around a loop or a block.

    Before::

        for i in range(n):
            body(i)

    After::

        for unit in range(1):
            for i in range(n):
                body(i)

    Parameters
    ----------
    target : LoopRef or BlockRef
        The statement that becomes the body of the new loop.

    Notes
    -----
    The step is always legal. Use it where another step needs a loop that the nest does not have: as
    the destination of a block, or to bind or parallelize. All handles persist. Cost: linear in the
    depth of the target.

    Names elsewhere: TVM ``add_unit_loop``; Halide: none.

    References
    ----------
    TensorIR (ASPLOS '23), §3.2.

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
    >>> outer = sch.add_unit_loop("i")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for unit in range(1):
            for i in range(32):
                with block("y"):
                    vi = spatial(i)
                    y[vi] = x[vi]
    """

    target: LoopRef | BlockRef

    def rewrite(self, state: State) -> Rewrite:
        """Insert a unit loop around the target."""
        edit = Edit(state, self.target.function)
        inner = node_at(state, self.target)
        outer = edit.loop(edit.loop_var("unit", 1), 1, inner)
        return edit.finish(edit.replaced(inner, outer), results=(edit.loop_ref(outer),))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected block outside of all loops."""
        if isinstance(selection, BlockRef):
            above = state.tree(selection.function).loops_above
            if not above(state.block(selection)):
                yield cls(selection)
