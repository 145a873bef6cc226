"""Decompose reduction: the initialisation of a reduction gets a block and loops of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import Tree, conjuncts, feeds_kind, with_regions
from ....ir.loop.nodes import Block, IterVar, Stmt
from ....ir.loop.visit import replace_statement, substitute_in
from ....ir.symbolic import Expr, Var, all_of, free_vars, substitute
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
    4. No loop feeds both a spatial and a reduction iteration of the block.
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
        for mixed in above:
            if feeds_kind(mixed, block) >= {"spatial", "reduce"}:
                yield Problem(
                    4,
                    f"loop {mixed.var.name!r} feeds both spatial and reduction iterations of block "
                    f"{block.name!r}",
                    (self.block, loop_ref(self.loop.function, mixed)),
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
        """Copy the spatial loops around the initialisation."""
        edit = Edit(state, self.block.function)
        block, loop = state.block(self.block), state.loop(self.loop)
        above = edit.tree.loops_above(block)
        inner = above[above.index(loop) :]
        spatial = [x for x in inner if "spatial" in feeds_kind(x, block)]
        renamed = {x.var: edit.loop_var(f"{x.var.name}_init", x.extent) for x in spatial}
        start = _start(edit, block, renamed, {x.var for x in inner} - set(renamed))
        body: Stmt = start
        for outer in reversed(spatial):
            extent = substitute(outer.extent, renamed)
            body = edit.loop(renamed[outer.var], extent, body, outer)
        update = replace(block, init=None)
        new = before(edit.tree.function.body, loop, body)
        return edit.finish(replace_statement(new, block, update), results=(edit.block_ref(start),))

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The selected reduction block at each loop around it."""
        if isinstance(selection, BlockRef):
            tree, block = state.tree(selection.function), state.block(selection)
            if block.init is not None:
                for loop in reversed(tree.loops_above(block)):
                    yield cls(selection, loop_ref(selection.function, loop))


def _start(edit: Edit, block: Block, renamed: dict[Var, Var], dropped: set[Var]) -> Block:
    """The initialising block: the spatial iterations, under fresh names."""
    iters: list[IterVar] = []
    fresh: dict[Var, Expr] = {}
    for item in block.iters:
        if item.kind == "reduce":
            continue
        variable = edit.loop_var(f"{item.var.name}_init", item.extent)
        fresh[item.var] = variable
        binding = substitute(item.binding, renamed)
        iters.append(replace(item, var=variable, binding=binding))
    parts = (p for p in conjuncts(block.predicate) if free_vars(p).isdisjoint(dropped))
    predicate = substitute(all_of(*parts), renamed)
    init = block.init
    if init is None:
        raise TypeError(f"block {block.name!r} has no initialisation")
    return with_regions(
        Block(
            edit.mint(),
            edit.fresh(f"{block.name}_init"),
            tuple(iters),
            (),
            (),
            substitute_in(init, fresh),
            predicate=predicate,
            origins=block.origins,
        )
    )
