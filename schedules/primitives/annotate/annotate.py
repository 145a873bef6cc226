"""Annotate: leave a note on a loop or a block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.loop.nodes import INTRINSIC
from ...common import node_at
from ...edit import Edit, with_attribute
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BlockRef, LoopRef, label
from ...state import State
from .unannotate import Unannotate


@primitive(family="annotate", returns=None)
@dataclass(frozen=True, slots=True)
class Annotate(Primitive):
    """Leave a note on a loop or a block for later steps and for lowering.

    Before::

        for i in range(n):
            body(i)

    After (``key="prefetch", value=4``)::

        for i in range(n, prefetch=4):
            body(i)

    Parameters
    ----------
    target : LoopRef or BlockRef
        Where the note goes.
    key : str
        Its name.
    value : bool, int, float or str
        What it says.

    Requires
    --------
    1. The key is a Python identifier.
    2. There is no note of that name there yet.
    3. The key is not ``intrinsic``: ``tensorize`` writes that note.
    """

    target: LoopRef | BlockRef
    key: str
    value: bool | int | float | str

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the key."""
        if not self.key.isidentifier():
            yield Problem(1, f"{self.key!r} is no identifier", (self.target,), {"key": self.key})
            return
        if self.key == INTRINSIC:
            yield Problem(
                3,
                f"{INTRINSIC!r} says which instruction does the work, and tensorize writes it",
                (self.target,),
                {"key": self.key},
            )
            return
        notes = dict(node_at(state, self.target).annotations)
        if self.key in notes:
            yield Problem(
                2,
                f"{label(self.target)} carries {self.key}={notes[self.key]!r} already",
                (self.target,),
                {"key": self.key},
                fixes=(Unannotate(self.target, self.key),),
            )

    def rewrite(self, state: State) -> Rewrite:
        """Add the note."""
        edit = Edit(state, self.target.function)
        node = node_at(state, self.target)
        notes = with_attribute(node.annotations, self.key, value=self.value)
        return edit.finish(edit.replaced(node, replace(node, annotations=notes)))
