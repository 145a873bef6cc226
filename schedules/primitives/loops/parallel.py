"""Parallel: the iterations of a loop run on several threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...common import (
    independence_problems,
    iteration_kind_problems,
    kind_problems,
    nesting_problems,
    with_kind,
)
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import LoopRef, Ref
from ...state import State


@primitive(family="loops", returns=None)
@dataclass(frozen=True, slots=True)
class Parallel(Primitive):
    """Let the iterations of a loop run at the same time, on several threads.

    Before::

        for i in range(n):
            body(i)

    After::

        for i in parallel(n):
            body(i)

    Parameters
    ----------
    loop : LoopRef
        The loop.

    Requires
    --------
    1. The loop is serial.
    2. No loop around it or inside it is parallel, and none around it is vectorized.
    3. It feeds no reduction and no ordered iteration.
    4. Its iterations are independent: no two write one element of a buffer that outlives the
       iteration, and none reads what another one writes.

    Notes
    -----
    Temporaries used only inside the loop, written before they are read, become private to a
    thread. Cost: quadratic in the number of blocks inside at worst. Source: TensorIR §3.2.
    """

    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check kinds of loops and of iterations."""
        yield from kind_problems(state, self.loop, 1)
        yield from nesting_problems(
            state, self.loop, 2, inside=("parallel",), around=("parallel", "vectorized")
        )
        yield from iteration_kind_problems(state, self.loop, 3)

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that iterations are independent."""
        yield from independence_problems(state, self.loop, 4)

    def rewrite(self, state: State) -> Rewrite:
        """Change the kind of the loop."""
        return with_kind(state, self.loop, "parallel")

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The selected loop."""
        if isinstance(selection, LoopRef) and state.loop(selection).kind == "serial":
            yield cls(selection)
