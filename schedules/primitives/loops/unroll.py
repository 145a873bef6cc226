"""Unroll: the iterations of a loop are written out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...common import constant_extent_problems, kind_problems, with_kind
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import LoopRef, Ref
from ...state import State
from .split import tile_fixes


@primitive(family="loops", returns=None)
@dataclass(frozen=True, slots=True)
class Unroll(Primitive):
    """Write out the iterations of a short loop one after the other.

    Before::

        for i in range(4):
            body(i)

    After::

        for i in unrolled(4):
            body(i)

    Parameters
    ----------
    loop : LoopRef
        The loop.

    Requires
    --------
    1. The loop is serial.
    2. Its extent is a constant of at most 256.

    Notes
    -----
    Lowering writes the iterations out; until then the loop keeps its form. Source: TensorIR §3.2.
    """

    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check kind and extent."""
        yield from kind_problems(state, self.loop, 1)
        fixes = tile_fixes(self.loop, 16, 8)
        yield from constant_extent_problems(state, self.loop, 2, limit=256, fixes=fixes)

    def rewrite(self, state: State) -> Rewrite:
        """Change the kind of the loop."""
        return with_kind(state, self.loop, "unrolled")

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The selected loop."""
        if isinstance(selection, LoopRef) and state.loop(selection).kind == "serial":
            yield cls(selection)
