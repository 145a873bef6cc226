"""Reorder: nested loops change places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import (
    Tree,
    covered_inside,
    feeds_kind,
    reads,
    reduction_update,
    writes,
    writes_apart,
)
from ....ir.loop.nodes import Block, For, Stmt
from ....ir.symbolic import free_vars, to_text
from ...common import same_function_problems
from ...edit import Edit
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import LoopRef, Ref, block_ref
from ...state import State


@primitive(family="loops", returns=None)
@dataclass(frozen=True, slots=True)
class Reorder(Primitive):
    """Put loops that are nested in one chain into another order.

    Before::

        for i in range(n):
            for k in range(m):
                C[i] += A[i, k]

    After (``loops=(k, i)``)::

        for k in range(m):
            for i in range(n):
                C[i] += A[i, k]

    Parameters
    ----------
    loops : tuple of LoopRef
        The loops in the order wanted, outermost first. They take the places that they hold
        together; loops of the chain that are not named stay where they are.

    Requires
    --------
    1. There are at least two loops, of one function.
    2. The loops are in one chain: from the outermost to the innermost, each loop is the whole
       body of the one around it.
    3. No extent depends on a loop that would come to be inside.
    4. The loops feed no ordered iteration, and reductions below them combine by an operation
       that commutes.
    5. No two iterations of a loop that feeds spatial iterations write the same element, and what
       a block reads of another block below the loops is written in the same iteration of all.

    Notes
    -----
    Reductions may be summed in another order: declared reductions allow that.
    Cost: linear in the size of the nest. Source: TensorIR §3.2.
    """

    loops: tuple[LoopRef, ...]

    def structural(self, state: State) -> Iterator[Problem]:
        """Check nesting, extents and kinds of iterations."""
        found = tuple(same_function_problems(self.loops, 1))
        if found:
            yield from found
            return
        tree = state.tree(self.loops[0].function)
        chain = _chain(tree, [state.loop(ref) for ref in self.loops])
        if isinstance(chain, Problem):
            yield chain
            return
        yield from self._extents(state, chain)
        for block in tree.blocks_in(chain[-1].body):
            yield from self._kinds(state, block)

    def _extents(self, state: State, chain: list[For]) -> Iterator[Problem]:
        order = self._ordered(state, chain)
        for position, loop in enumerate(order):
            inside = {x.var for x in order[position:]} & free_vars(loop.extent)
            if inside:
                names = ", ".join(sorted(v.name for v in inside))
                yield Problem(
                    3,
                    f"extent {to_text(loop.extent)} of loop {loop.var.name!r} depends on {names}, "
                    "which would not be around it any more",
                    (LoopRef(self.loops[0].function, loop.uid, loop.var.name),),
                    {"extent": to_text(loop.extent)},
                )

    def _kinds(self, state: State, block: Block) -> Iterator[Problem]:
        kinds = {k for ref in self.loops for k in feeds_kind(state.loop(ref), block)}
        where = (block_ref(self.loops[0].function, block),)
        if "ordered" in kinds:
            yield Problem(4, f"the loops feed an ordered iteration of block {block.name!r}", where)
        elif "reduce" in kinds and reduction_update(block) is None:
            yield Problem(
                4,
                f"block {block.name!r} reduces, but its body is no update by an operation that "
                "commutes",
                where,
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that iterations do not depend on each other's order."""
        tree = state.tree(self.loops[0].function)
        loops = [state.loop(ref) for ref in self.loops]
        innermost = max(loops, key=lambda x: tree.order[x])
        blocks = tree.blocks_in(innermost.body)
        for block in blocks:
            yield from self._overlaps(state, tree, block)
            for buffer in dict.fromkeys(a.buffer for a in reads(block)):
                written = any(writes(b, buffer) for b in blocks)
                if written and not covered_inside(tree, innermost, block, buffer):
                    yield Problem(
                        5,
                        f"block {block.name!r} may read elements of {buffer.name!r} that another "
                        f"iteration of loop {innermost.var.name!r} writes",
                        (block_ref(self.loops[0].function, block),),
                    )

    def _overlaps(self, state: State, tree: Tree, block: Block) -> Iterator[Problem]:
        for ref in self.loops:
            loop = state.loop(ref)
            if feeds_kind(loop, block) != frozenset({"spatial"}):
                continue
            for buffer in dict.fromkeys(a.buffer for a in writes(block)):
                if not writes_apart(tree, loop, block, buffer):
                    yield Problem(
                        5,
                        f"iterations of loop {loop.var.name!r} may write the same elements of "
                        f"{buffer.name!r} in block {block.name!r}",
                        (ref, block_ref(ref.function, block)),
                    )

    def _ordered(self, state: State, chain: list[For]) -> list[For]:
        wanted = iter([state.loop(ref) for ref in self.loops])
        named = {ref.uid for ref in self.loops}
        return [next(wanted) if x.uid in named else x for x in chain]

    def rewrite(self, state: State) -> Rewrite:
        """Nest the same loops in the other order."""
        edit = Edit(state, self.loops[0].function)
        chain = _chain(edit.tree, [state.loop(ref) for ref in self.loops])
        if isinstance(chain, Problem):
            raise TypeError(chain.message)
        body: Stmt = chain[-1].body
        for loop in reversed(self._ordered(state, chain)):
            body = replace(loop, body=body)
        return edit.finish(edit.replaced(chain[0], body))

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The selected loop exchanged with the one directly inside it."""
        if isinstance(selection, LoopRef):
            inner = state.loop(selection).body
            if isinstance(inner, For):
                yield cls((LoopRef(selection.function, inner.uid, inner.var.name), selection))


def _chain(tree: Tree, loops: list[For]) -> list[For] | Problem:
    """The loops from the outermost to the innermost of those given, if they are one chain."""
    outermost = min(loops, key=lambda x: tree.order[x])
    left, chain = set(loops), list[For]()
    below: Stmt = outermost
    while left and isinstance(below, For):
        chain.append(below)
        left.discard(below)
        below = below.body
    if not left:
        return chain
    missing = min(left, key=lambda x: tree.order[x])
    return Problem(
        2,
        f"loop {missing.var.name!r} is not in one chain with loop {outermost.var.name!r}: the body "
        f"of loop {chain[-1].var.name!r} is more than one loop",
    )
