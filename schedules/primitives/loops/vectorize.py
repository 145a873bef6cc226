"""Vectorize: the iterations of a loop become lanes of a vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.analysis import feeds_kind
from ....ir.loop.nodes import Block
from ....ir.symbolic import free_vars, to_text
from ...common import (
    constant_extent_problems,
    feeds_reduction,
    independence_problems,
    kind_problems,
    lane_reduction_problems,
    nesting_problems,
    with_kind,
)
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import LoopRef, Ref, block_ref, loop_ref
from ...state import State
from ..reduction.decompose_reduction import DecomposeReduction
from .split import tile_fixes


@primitive(family="loops", returns=None)
@dataclass(frozen=True, slots=True)
class Vectorize(Primitive):
    """Compute all iterations of a short loop at once, as lanes of a vector.

    Before::

        for j in range(16):
            body(j)

    After::

        for j in vectorized(16):
            body(j)

    Parameters
    ----------
    loop : LoopRef
        The loop.

    Requires
    --------
    1. The loop is serial.
    2. No loop around it or inside it is vectorized, and none inside it is parallel.
    3. Its extent is a constant of at most 1024.
    4. It feeds no ordered iteration. Where it feeds a reduction, nothing but that reduction is
       inside it, in the form ``C = C op value`` with its initialisation decomposed: the lanes
       keep partial results, which are combined after the loop.
    5. No extent inside it depends on its variable.
    6. Its iterations are independent: no two write one element, and none reads what another one
       writes.

    Notes
    -----
    Lanes of a reduction keep partial results that are combined at its end: declared reductions may
    be summed in any order.
    Cost: quadratic in the number of blocks inside at worst. Source: TensorIR §3.2.
    """

    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check kinds, extents and kinds of iterations."""
        yield from kind_problems(state, self.loop, 1)
        yield from nesting_problems(
            state, self.loop, 2, inside=("parallel", "vectorized"), around=("vectorized",)
        )
        fixes = tile_fixes(self.loop, 16, 8)
        yield from constant_extent_problems(state, self.loop, 3, limit=1024, fixes=fixes)
        yield from lane_reduction_problems(state, self.loop, 4, lambda b: self._start(state, b))
        tree, loop = state.tree(self.loop.function), state.loop(self.loop)
        for inner in tree.loops.values():
            if loop.var in free_vars(inner.extent):
                yield Problem(
                    5,
                    f"extent {to_text(inner.extent)} of loop {inner.var.name!r} depends on "
                    f"{loop.var.name!r}, so lanes would run it differently often",
                    (LoopRef(self.loop.function, inner.uid, inner.var.name),),
                    {"extent": to_text(inner.extent)},
                )

    def _start(self, state: State, block: Block) -> tuple[Primitive, ...]:
        """The step that takes the initialisation out of the loop's reduction, where one does."""
        tree, loop = state.tree(self.loop.function), state.loop(self.loop)
        above = tree.loops_above(block)
        first = next(x for x in above if "reduce" in feeds_kind(x, block))
        name = self.loop.function
        step = DecomposeReduction(block_ref(name, block), loop_ref(name, first))
        alone = len(tree.blocks_in(loop.body)) == 1
        return (step,) if alone and not state.check(step) else ()

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that iterations are independent."""
        if not feeds_reduction(state, self.loop):
            yield from independence_problems(state, self.loop, 6, lanes=True)

    def rewrite(self, state: State) -> Rewrite:
        """Change the kind of the loop."""
        return with_kind(state, self.loop, "vectorized")

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The selected loop."""
        if isinstance(selection, LoopRef) and state.loop(selection).kind == "serial":
            yield cls(selection)
