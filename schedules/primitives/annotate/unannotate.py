"""Unannotate: take a note away from a loop or a block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...common import node_at
from ...edit import Edit
from ...naming import unknown
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BlockRef, LoopRef, Ref, label
from ...state import State


@primitive(family="annotate", returns=None)
@dataclass(frozen=True, slots=True)
class Unannotate(Primitive):
    """Take a note away from a loop or a block.

    Before::

        for i in range(n, prefetch=4):
            body(i)

    After (``key="prefetch"``)::

        for i in range(n):
            body(i)

    Parameters
    ----------
    target : LoopRef or BlockRef
        Where the note is.
    key : str
        Its name.

    Requires
    --------
    1. There is a note of that name.
    """

    target: LoopRef | BlockRef
    key: str

    def structural(self, state: State) -> Iterator[Problem]:
        """Check that the note is there."""
        notes = [key for key, _ in node_at(state, self.target).annotations]
        if self.key not in notes:
            place = f"{label(self.target)!r}"
            yield Problem(1, unknown("annotation", self.key, notes, place), (self.target,))

    def rewrite(self, state: State) -> Rewrite:
        """Drop the note."""
        edit = Edit(state, self.target.function)
        node = node_at(state, self.target)
        notes = tuple(note for note in node.annotations if note[0] != self.key)
        return edit.finish(edit.replaced(node, replace(node, annotations=notes)))

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """Every note of the selected part."""
        if isinstance(selection, LoopRef | BlockRef):
            for key, _ in node_at(state, selection).annotations:
                yield cls(selection, key)
