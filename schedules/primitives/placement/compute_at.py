"""Compute at: a producer moves into a loop of its consumers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.analysis import Span, Tree, reads, region_at, within_dimension, writes
from ....ir.loop.nodes import Block, Buffer, For, Seq, Stmt
from ....ir.symbolic import FloorDiv, Var
from ...edit import Edit
from ...moving import between_problems, movable_problems, told_apart_problems, vector_problems
from ...nests import ONE, before, loops_gone, nest, whole, without
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BlockRef, LoopRef, Ref, loop_ref
from ...state import State


@primitive(family="placement", returns=None)
@dataclass(frozen=True, slots=True)
class ComputeAt(Primitive):
    """Compute a producer inside a loop of its consumers, as much as one iteration needs.

    Before::

        for i in range(n):
            T[i] = A[i] * 2
        for i0 in range(n // 8):
            for i1 in range(8):
                C[i0 * 8 + i1] = T[i0 * 8 + i1] + 1

    After (``loop=i0``)::

        for i0 in range(n // 8):
            for ax in range(8):
                T[i0 * 8 + ax] = A[i0 * 8 + ax] * 2
            for i1 in range(8):
                C[i0 * 8 + i1] = T[i0 * 8 + i1] + 1

    Parameters
    ----------
    block : BlockRef
        The producer.
    loop : LoopRef
        The loop into which it goes, before its first consumer there.

    Requires
    --------
    1. The loop is not around the block.
    2. The block writes one element of one temporary in an iteration, which nobody else writes; it
       has no ordered iterations, its predicate only keeps its iterations inside their extents, and
       a reduction has its initialisation.
    3. Different spatial iterations write different elements.
    4. All blocks that read the temporary are in the loop.
    5. The block comes before the loop, and what it reads is not written after it up to the end of
       the loop.
    6. Neither the loop nor a loop around it is vectorized.

    Notes
    -----
    The box to compute is bounded over the loops inside the given one: where those have constant
    extents, so has the box. The block gets new loops. Cost: linear in the size of the function.
    Source: TensorIR §3.2.
    """

    block: BlockRef
    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the block, its consumers and what lies between."""
        tree, block, loop = (
            state.tree(self.block.function),
            state.block(self.block),
            state.loop(self.loop),
        )
        where = (self.block, self.loop)
        if tree.contains(loop, block):
            yield Problem(
                1, f"loop {loop.var.name!r} is around block {block.name!r} already", where
            )
            return
        found = tuple(movable_problems(state, self.block, 2))
        if found:
            yield from found
            return
        buffer = writes(block)[0].buffer
        readers = [b for b in tree.leaf_blocks() if reads(b, buffer)]
        outside = [b for b in readers if not tree.contains(loop, b)]
        if outside or not readers:
            names = ", ".join(b.name for b in outside) or "nobody"
            yield Problem(
                4,
                f"{buffer.name!r} is read by {names}, not in loop {loop.var.name!r}",
                where,
                {"readers": names},
                fixes=tuple(self._places(state, readers)),
            )
            return
        yield from between_problems(state, self.block, 5, loop, later=True)
        yield from vector_problems(state, self.loop, 6)

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that iterations can be told from what they write."""
        yield from told_apart_problems(state, self.block, 3)

    def _places(self, state: State, readers: list[Block]) -> Iterator[ComputeAt]:
        """The innermost legal loop that is around all consumers."""
        if not readers:
            return
        tree, block = state.tree(self.block.function), state.block(self.block)
        around = [
            x for x in tree.loops_above(readers[0]) if all(tree.contains(x, b) for b in readers)
        ]
        free = [x for x in reversed(around) if not tree.contains(x, block)]
        places = (ComputeAt(self.block, loop_ref(self.block.function, x)) for x in free)
        yield from itertools.islice((p for p in places if not state.check(p)), 1)

    def rewrite(self, state: State) -> Rewrite:
        """Rebuild the block's loops at the place, and take the old ones away."""
        edit = Edit(state, self.block.function)
        tree, block, loop = edit.tree, state.block(self.block), state.loop(self.loop)
        buffer = writes(block)[0].buffer
        spans = _needed(tree, block, loop, buffer)
        moved = nest(edit, block, spans, tree.facts(loop.body))
        body = before(tree.function.body, _anchor(tree, loop, buffer), moved)
        kept = without(body, block)
        if kept is None:
            raise TypeError(f"nothing is left of {self.block.function!r}")
        gone = edit.gone(loops_gone(tree, kept), f"moved block {block.name!r} away")
        return edit.finish(kept, moved=gone)

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The loops of the first consumer of the selected block."""
        if not isinstance(selection, BlockRef):
            return
        tree, block = state.tree(selection.function), state.block(selection)
        for buffer in dict.fromkeys(a.buffer for a in writes(block)):
            readers = [b for b in tree.leaf_blocks() if b is not block and reads(b, buffer)]
            for loop in tree.loops_above(readers[0]) if readers else ():
                if not tree.contains(loop, block):
                    yield cls(selection, loop_ref(selection.function, loop))


def _needed(tree: Tree, block: Block, loop: For, buffer: Buffer) -> dict[Var, Span]:
    """The interval of every iteration variable that one iteration of the loop needs."""
    facts = tree.facts(loop.body)
    found = tuple(a for b in tree.blocks_in(loop) for a in reads(b, buffer))
    box = region_at(tree, loop, found, facts)
    spans = whole(block)
    if box is None:
        return spans
    extents = {v.var: v.extent for v in block.iters}
    for index, span in zip(writes(block)[0].indices, box, strict=True):
        match index:
            case Var():
                variable, size = index, ONE
            case FloorDiv(numerator=Var() as variable, divisor=size):
                pass
            case _:
                continue
        wider = Span(span.start * size, span.extent * size, span.filled)
        spans[variable] = within_dimension(wider, extents[variable], facts)
    return spans


def _anchor(tree: Tree, loop: For, buffer: Buffer) -> Stmt:
    """The first statement of a loop's body that reads a buffer."""
    parts = loop.body.body if isinstance(loop.body, Seq) else (loop.body,)
    reading = (p for p in parts if any(reads(b, buffer) for b in tree.blocks_in(p)))
    return next(reading)
