"""Add a unit loop: a loop of one iteration around a loop or a block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...common import node_at
from ...edit import Edit
from ...primitive import Primitive, Rewrite, primitive
from ...refs import BlockRef, LoopRef, Ref
from ...state import State


@primitive(family="loops", returns=LoopRef)
@dataclass(frozen=True, slots=True)
class AddUnitLoop(Primitive):
    """Put a loop of one iteration around a loop or a block.

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
        What the new loop goes around.

    Notes
    -----
    It gives a block without loops, or a nest that is one loop short, a place for steps that want
    a loop: where to compute another block, what to bind or to make parallel. It is always legal.
    Cost: the path from the function's body to the target. Source: TensorIR §3.2.
    """

    target: LoopRef | BlockRef

    def rewrite(self, state: State) -> Rewrite:
        """Wrap the statement; all handles persist."""
        edit = Edit(state, self.target.function)
        inner = node_at(state, self.target)
        outer = edit.loop(edit.loop_var("unit", 1), 1, inner)
        return edit.finish(edit.replaced(inner, outer), results=(edit.loop_ref(outer),))

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """Suggest a selected block that no loop is around."""
        if isinstance(selection, BlockRef):
            above = state.tree(selection.function).loops_above
            if not above(state.block(selection)):
                yield cls(selection)
