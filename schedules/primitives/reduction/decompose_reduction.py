"""Decompose reduction: the initialisation of a reduction gets a block and loops of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import Tree, feeds_kind, is_plain, with_regions
from ....ir.loop.decompose import Namer, Start, split_off
from ....ir.loop.nodes import Block, For
from ....ir.loop.visit import path_to, replace_statement
from ...edit import Edit
from ...moving import told_apart_problems
from ...nests import before
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BlockRef, LoopRef, Ref, loop_ref
from ...state import State


@primitive(family="reduction", returns=BlockRef)
@dataclass(frozen=True, slots=True)
class DecomposeReduction(Primitive):
    """Initialise the results of a reduction in a block of their own, right before a loop.

    Before::

        for i in range(n):
            for k in range(m):
                with init:
                    C[i] = 0
                C[i] += A[i, k]

    After (``loop=k``)::

        for i in range(n):
            C[i] = 0
            for k in range(m):
                C[i] += A[i, k]

    Parameters
    ----------
    block : BlockRef
        The reduction block. It keeps its handle and becomes the update.
    loop : LoopRef
        The loop before which the results are initialised.

    Requires
    --------
    1. The block is a reduction with an initialisation.
    2. The loop is around the block.
    3. No loop outside of the given one feeds a reduction iteration of the block.
    4. Loops inside the given one that feed spatial iterations have extents that depend on no loop
       that feeds none, and no value read from memory is between.
    5. Different spatial iterations of the block write different elements.

    Notes
    -----
    Loops inside the given one that feed spatial iterations are repeated around the new block,
    with their kinds. Gives the initialising block. Source: TensorIR §3.2.
    """

    block: BlockRef
    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the block, and what the loops feed."""
        block, loop = state.block(self.block), state.loop(self.loop)
        tree = state.tree(self.block.function)
        if block.init is None or all(v.kind != "reduce" for v in block.iters):
            yield Problem(
                1, f"block {block.name!r} is no reduction with an initialisation", (self.block,)
            )
            return
        above = tree.loops_above(block)
        if loop not in above:
            names = ", ".join(x.var.name for x in above) or "none"
            yield Problem(
                2,
                f"loop {loop.var.name!r} is not around block {block.name!r}; its loops are {names}",
                (self.block, self.loop),
                fixes=tuple(self._places(tree, block)),
            )
            return
        outside = [x for x in above[: above.index(loop)] if "reduce" in feeds_kind(x, block)]
        if outside:
            names = ", ".join(x.var.name for x in outside)
            yield Problem(
                3,
                f"loop {names} outside of {loop.var.name!r} feeds a reduction iteration, so the "
                "results would be initialised more than once",
                (self.block, self.loop),
                {"loops": names},
                fixes=tuple(self._places(tree, block)),
            )
        if self._start(Edit(state, self.block.function), block, loop) is None:
            yield Problem(
                4,
                f"what is between loop {loop.var.name!r} and block {block.name!r} cannot be "
                "repeated for the spatial iterations alone",
                (self.block, self.loop),
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that no result is initialised while another iteration still adds to it."""
        yield from told_apart_problems(state, self.block, 5)

    def _places(self, tree: Tree, block: Block) -> Iterator[DecomposeReduction]:
        """The innermost loop before which initialising is right."""
        above = tree.loops_above(block)
        first = next((x for x in above if "reduce" in feeds_kind(x, block)), None)
        if first is not None:
            yield replace(self, loop=loop_ref(self.block.function, first))

    def rewrite(self, state: State) -> Rewrite:
        """Put the initialisation before the loop, under copies of the spatial loops."""
        edit = Edit(state, self.block.function)
        block, loop = state.block(self.block), state.loop(self.loop)
        start = self._start(edit, block, loop)
        if start is None:
            raise TypeError(f"the initialisation of {block.name!r} cannot be split off")
        new = before(edit.tree.function.body, loop, start.nest)
        return edit.finish(
            replace_statement(new, block, replace(block, init=None)),
            results=(edit.block_ref(start.block),),
        )

    def _start(self, edit: Edit, block: Block, loop: For) -> Start | None:
        path = path_to(loop, block)[:-1]
        start = split_off(block, path, Namer(edit.mint, edit.fresh))
        if start is None or is_plain(start.block):
            return start
        widened = with_regions(start.block)  # Its body has loops of its own.
        return Start(replace_statement(start.nest, start.block, widened), widened)

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The selected reduction block at each loop around it."""
        if isinstance(selection, BlockRef):
            tree, block = state.tree(selection.function), state.block(selection)
            if block.init is not None:
                for loop in reversed(tree.loops_above(block)):
                    yield cls(selection, loop_ref(selection.function, loop))
