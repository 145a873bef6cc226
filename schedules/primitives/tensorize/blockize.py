"""Blockize: a nest of loops with its block becomes one block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...edit import Edit
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BlockRef, LoopRef, Ref
from ...state import State
from ._blocks import Chain, blockized, chain_below, chain_problems, start_problems


@primitive(family="tensorize", returns=BlockRef)
@dataclass(frozen=True, slots=True)
class Blockize(Primitive):
    """Make one block of a nest of loops and the block inside, a unit to all steps around it.

    Before::

        for i_0 in range(n // 4):
            for i_1 in range(4):
                with block("B"):
                    vi = spatial(n, i_0 * 4 + i_1)
                    B[vi] = A[vi] * 2

    After (``loop=i_1``)::

        for i_0 in range(n // 4):
            with block("B_o"):
                vi_0 = spatial(i_0)
                for i_1 in range(4):
                    with block("B"):
                        vi = spatial(n, vi_0 * 4 + i_1)
                        B[vi] = A[vi] * 2

    Parameters
    ----------
    loop : LoopRef
        The outermost loop of the nest.

    Requires
    --------
    1. From the loop on there is a single nest of loops around one block.
    2. What is around the loop and the block depends on feeds iterations of one kind each, and is
       not read from memory.
    3. The initialisation of a reduction can be repeated for the spatial loops of the nest alone.

    Notes
    -----
    The new block has one iteration variable for each variable around that the inner block depends
    on. Of the inner block's predicate, what mentions no loop of the nest guards the new block, and
    the rest stays where it is. Where a loop around feeds a reduction, the initialisation becomes
    that of the new block. Gives the new block. Cost: linear in the size of the nest.
    Source: TensorIR §3.2.
    """

    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the nest and what is around it."""
        found = tuple(chain_problems(state, self.loop, 1, 2))
        yield from found or start_problems(state, self.loop, 3)

    def rewrite(self, state: State) -> Rewrite:
        """Put the nest into a new block."""
        edit = Edit(state, self.loop.function)
        loop = state.loop(self.loop)
        chain = chain_below(loop)
        if not isinstance(chain, Chain):
            raise TypeError(f"loop {loop.var.name!r} holds more than one block")
        block = blockized(edit, chain)
        return edit.finish(edit.replaced(loop, block), results=(edit.block_ref(block),))

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The selected loop, where it holds one nest."""
        if isinstance(selection, LoopRef) and isinstance(chain_below(state.loop(selection)), Chain):
            yield cls(selection)
