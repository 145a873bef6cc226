"""Reverse compute at: a consumer moves into a loop of its producers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.analysis import (
    Access,
    Span,
    Tree,
    covers,
    finished_inside,
    reads,
    span_of,
    within_dimension,
    writes,
    written_at,
)
from ....ir.loop.nodes import Block, Buffer, For, Seq, Stmt
from ....ir.symbolic import Expr, Facts, Var, free_vars, substitute, to_text, var
from ...edit import Edit
from ...moving import (
    between_problems,
    movable_problems,
    parallel_problems,
    told_apart_problems,
    vector_problems,
)
from ...nests import after, loops_between, loops_gone, nest, whole, without
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BlockRef, LoopRef, Ref, loop_ref
from ...state import State


@primitive(family="placement", returns=None)
@dataclass(frozen=True, slots=True)
class ReverseComputeAt(Primitive):
    """Compute a consumer inside a loop of its producers, as far as one iteration has made them.

    Before::

        for i0 in range(n // 8):
            for i1 in range(8):
                T[i0 * 8 + i1] = A[i0 * 8 + i1] * 2
        for i in range(n):
            C[i] = T[i] + 1

    After (``loop=i0``)::

        for i0 in range(n // 8):
            for i1 in range(8):
                T[i0 * 8 + i1] = A[i0 * 8 + i1] * 2
            for ax in range(8):
                C[i0 * 8 + ax] = T[i0 * 8 + ax] + 1

    Parameters
    ----------
    block : BlockRef
        The consumer.
    loop : LoopRef
        The loop into which it goes, after its last producer there.

    Requires
    --------
    1. The loop is not around the block.
    2. The block writes one element of one buffer in an iteration, which nobody else writes; it has
       no ordered iterations, its predicate only keeps its iterations inside their extents, and a
       reduction has its initialisation.
    3. A block in the loop writes what the block reads.
    4. The block comes after the loop; from the loop on, nobody else touches what it writes, and
       nobody outside of the loop writes what it reads.
    5. Every iteration variable of the block is an index, alone, of what it reads from the loop.
    6. One iteration of the loop finishes all it writes of what the block reads, without holes,
       and all iterations together write all of it; a reduction gets all it sums in one iteration.
    7. Neither the loop nor a loop around it is vectorized, and iterations of parallel loops
       around it would not write the same elements.
    8. Different spatial iterations of the block write different elements.

    Notes
    -----
    The block gets new loops, of the box that one iteration of the loop writes.
    Cost: linear in the size of the function. Source: TensorIR §3.2.
    """

    block: BlockRef
    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the block, its producers and what lies between."""
        tree, block = state.tree(self.block.function), state.block(self.block)
        loop, where = state.loop(self.loop), (self.block, self.loop)
        if tree.contains(loop, block):
            yield Problem(
                1, f"loop {loop.var.name!r} is around block {block.name!r} already", where
            )
            return
        found = tuple(movable_problems(state, self.block, 2, temporary=False))
        if found:
            yield from found
            return
        made = _made_inside(tree, block, loop)
        if not made:
            read = ", ".join(dict.fromkeys(a.buffer.name for a in reads(block))) or "nothing"
            yield Problem(
                3,
                f"no block in loop {loop.var.name!r} writes what block "
                f"{block.name!r} reads ({read})",
                where,
                {"reads": read},
            )
            return
        yield from between_problems(state, self.block, 4, loop, later=False)
        yield from vector_problems(state, self.loop, 7)
        alone = {i for a in made for i in a.indices if isinstance(i, Var)}
        rest = [v.var.name for v in block.iters if v.var not in alone and v.extent != 1]
        if rest:
            yield Problem(
                5,
                f"iterations {', '.join(rest)} of block {block.name!r} are no index alone of what "
                f"it reads from loop {loop.var.name!r}",
                where,
                {"iterations": ", ".join(rest)},
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that an iteration has what the block will read, and that nothing is left out."""
        yield from told_apart_problems(state, self.block, 8)
        tree, block, loop = self._parts(state)
        spans = _domain(tree, block, loop)
        where = (self.block, self.loop)
        for access in _made_inside(tree, block, loop):
            message = _unmet(tree, block, loop, access, spans)
            if message is not None:
                yield Problem(6, message, where, {"buffer": access.buffer.name})
                return
        left_out = tuple(self._left_out(tree, block, loop, spans))
        yield from left_out or parallel_problems(state, self, self.loop, 7)

    def _left_out(
        self, tree: Tree, block: Block, loop: For, spans: dict[Var, Span]
    ) -> Iterator[Problem]:
        """Iterations of the block that it would not run any more."""
        shared = tree.common((block, loop))
        facts = tree.facts(shared)
        inner = {x.var: x.extent for x in loops_between(tree, shared, loop)}
        own = {x.var: x.extent for x in loops_between(tree, shared, block)}
        yield from self._together(block, loop, spans, inner)
        for item in block.iters:
            all_of_it = _over(spans[item.var], inner, facts)
            before = span_of(item.binding, own, facts)
            needed = within_dimension(before, item.extent, facts)
            if item.kind == "reduce":
                all_of_it = spans[item.var]
            if all_of_it is None or not covers(all_of_it, needed, facts):
                yield Problem(
                    6,
                    f"iteration {item.var.name} of block {block.name!r} runs through "
                    f"[{to_text(needed.start)}, {to_text(needed.stop)}), which loop "
                    f"{loop.var.name!r} does not provably "
                    + ("give in one iteration" if item.kind == "reduce" else "cover"),
                    (self.block, self.loop),
                    {"iteration": item.var.name},
                )

    def _together(
        self, block: Block, loop: For, spans: dict[Var, Span], inner: dict[Var, Expr]
    ) -> Iterator[Problem]:
        """Two iteration variables that follow one loop meet only in some of their pairs."""
        for moving in inner:
            names = [v.name for v, span in spans.items() if moving in free_vars(span.start)]
            if len(names) > 1:
                yield Problem(
                    6,
                    f"iterations {', '.join(names)} of block {block.name!r} would both follow loop "
                    f"{moving.name!r}, so not all of their pairs would run in {loop.var.name!r}",
                    (self.block, self.loop),
                    {"iterations": ", ".join(names)},
                )

    def _parts(self, state: State) -> tuple[Tree, Block, For]:
        return state.tree(self.block.function), state.block(self.block), state.loop(self.loop)

    def rewrite(self, state: State) -> Rewrite:
        """Rebuild the block's loops at the place, and take the old ones away."""
        edit = Edit(state, self.block.function)
        tree, block, loop = self._parts(state)
        moved = nest(edit, block, _domain(tree, block, loop), tree.facts(loop.body))
        body = after(tree.function.body, _anchor(tree, block, loop), moved)
        kept = without(body, block)
        if kept is None:
            raise TypeError(f"nothing is left of {self.block.function!r}")
        gone = edit.gone(loops_gone(tree, kept), f"moved block {block.name!r} away")
        return edit.finish(kept, moved=gone)

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The loops of the last producer of the selected block."""
        if not isinstance(selection, BlockRef):
            return
        tree, block = state.tree(selection.function), state.block(selection)
        for buffer in dict.fromkeys(a.buffer for a in reads(block)):
            for producer in tree.writers(buffer)[-1:]:
                for loop in tree.loops_above(producer):
                    if not tree.contains(loop, block):
                        yield cls(selection, loop_ref(selection.function, loop))


def _made_inside(tree: Tree, block: Block, loop: For) -> list[Access]:
    """The loads of a block from buffers that are written in a loop."""
    made: set[Buffer] = {w.buffer for b in tree.blocks_in(loop) for w in writes(b)}
    return [a for a in reads(block) if a.buffer in made]


def _producers(tree: Tree, loop: For, buffer: Buffer) -> list[Block]:
    return [b for b in tree.blocks_in(loop) if writes(b, buffer)]


def _written(tree: Tree, loop: For, buffer: Buffer) -> tuple[Span, ...] | None:
    """The box that one iteration of a loop writes completely, by the first writer that does."""
    boxes = (written_at(tree, loop, b, buffer) for b in _producers(tree, loop, buffer))
    return next((box for box in boxes if box is not None), None)


def _domain(tree: Tree, block: Block, loop: For) -> dict[Var, Span]:
    """The interval of every iteration variable for which an iteration of the loop has the data."""
    spans: dict[Var, Span] = {}
    facts = tree.facts(loop.body)
    extents = {v.var: v.extent for v in block.iters}
    for access in _made_inside(tree, block, loop):
        box = _written(tree, loop, access.buffer)
        for index, span in zip(access.indices, box or (), strict=bool(box)):
            if isinstance(index, Var) and index in extents:
                spans.setdefault(index, within_dimension(span, extents[index], facts))
    return whole(block) | spans


def _unmet(
    tree: Tree, block: Block, loop: For, access: Access, spans: dict[Var, Span]
) -> str | None:
    """Say why an iteration of a loop does not have what a load of the block needs."""
    name = access.buffer.name
    unfinished = [
        b.name for b in _producers(tree, loop, access.buffer) if not finished_inside(tree, loop, b)
    ]
    if unfinished:
        return f"block {unfinished[0]!r} has not finished {name!r} in one iteration"
    box = _written(tree, loop, access.buffer)
    if box is None:
        return f"one iteration of loop {loop.var.name!r} writes {name!r} with holes"
    facts = tree.facts(loop.body)
    ranges = {v.var: spans[v.var].extent for v in block.iters} | dict(access.inner)
    shift: dict[Var, Expr] = {v.var: v.var + spans[v.var].start for v in block.iters}
    for index, given, size in zip(access.indices, box, access.buffer.shape, strict=True):
        needed = span_of(substitute(index, shift), ranges, facts)
        if needed is None or not covers(given, needed, facts, size):
            return (
                f"index {to_text(index)} of {name!r} leaves what one iteration of loop "
                f"{loop.var.name!r} has written"
            )
    return None


def _over(span: Span, loops: dict[Var, Expr], facts: Facts) -> Span | None:
    """The interval that an interval sweeps while loops run."""
    if not free_vars(span.extent).isdisjoint(loops):
        return None
    within = var("within", lower=0)
    return span_of(span.start + within, loops | {within: span.extent}, facts)


def _anchor(tree: Tree, block: Block, loop: For) -> Stmt:
    """The last statement of a loop's body that writes what the block reads."""
    made = {a.buffer for a in _made_inside(tree, block, loop)}
    parts = loop.body.body if isinstance(loop.body, Seq) else (loop.body,)
    writing = [
        p for p in parts if any(w.buffer in made for b in tree.blocks_in(p) for w in writes(b))
    ]
    return writing[-1]
