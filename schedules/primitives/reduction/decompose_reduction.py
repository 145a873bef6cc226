"""The ``decompose_reduction`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import (
    Tree,
    accesses,
    excluding_identities,
    is_covered,
    is_plain,
    starts_at_identity,
    statements_around,
    with_regions,
    writes,
)
from ....ir.loop.decompose import (
    Namer,
    Start,
    bound_variables,
    reduction_position,
    split_off,
)
from ....ir.loop.nodes import Block, For, If, Let, Stmt
from ....ir.loop.visit import path_to, replace_statement
from ...apply import Primitive, Rewrite
from ...domain_checks import loops_not_spatial, reduction_loops
from ...edit import Edit
from ...handles import BlockRef, Handle, LoopRef, loop_ref, refs_of
from ...loop_nests import before
from ...motion_checks import injective_write_problems
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State


@primitive(family="reduction", returns=BlockRef, isolated=True)
@dataclass(frozen=True, slots=True)
class DecomposeReduction(Primitive):
    """Decompose a reduction into a block that initializes the result before a loop, and an update.

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
        The loop before which the new block is inserted.

    Notes
    -----
    The loops inside the given loop that bind spatial iteration variables are duplicated around the
    new block, with their kinds. The result is the handle of the initializing block. Terms that a
    condition replaces by the identity, as ``rfactor`` writes them, are excluded by the predicate of
    the update. Cost: linear in the size of the loop body.

    Names elsewhere: TVM ``decompose_reduction``; Halide: none (pure and update definitions are
    scheduled separately with ``update``).

    References
    ----------
    TensorIR (ASPLOS '23), §3.2.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 8), f32], y: Out[(4,), f32]):
    ...     for i in range(4):
    ...         for k in range(8):
    ...             with block("y"):
    ...                 vi, vk = spatial(i), reduce(k)
    ...                 with init(): y[vi] = 0.0
    ...                 y[vi] += x[vi, vk]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> init = sch.decompose_reduction("y", "k")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(4, 8), f32], y: Out[(4,), f32]):
        for i in range(4):
            with block("y_init"):
                vi_init = spatial(i)
                y[vi_init] = 0.0
            for k in range(8):
                with block("y"):
                    vi, vk = spatial(i), reduce(k)
                    y[vi] += x[vi, vk]
    """

    class Requires(Requirement):
        """The requirements of ``decompose_reduction``."""

        REDUCTION = "the block is a reduction with an init"
        LOOP_AROUND = "the loop is around the block"
        OUTERMOST_REDUCTION = (
            "no loop outside of the given loop binds a reduction iteration variable of the block, "
            "and each iteration of these loops computes other results than the others"
        )
        RUNS_ONCE = (
            "between the given loop and the reduction loops, the spatial iteration variables "
            "determine the iterations of the loops: a loop that repeats a reduction would add its "
            "terms again"
        )
        ORDERED_ACCESSES = (
            "no other block between the given loop and the reduction accesses the result, except "
            "to read elements that the same iteration of the loop wrote"
        )
        DUPLICABLE_INIT = (
            "the extent of a loop inside the given loop that binds spatial iteration variables "
            "does not depend on a loop that binds none, no value is read from memory between them, "
            "and no condition on the results depends on such a loop or value"
        )
        INJECTIVE_WRITES = (
            "the write indices of the block are injective in the spatial iteration variables that "
            "the given loop and the loops inside it bind"
        )

    block: BlockRef
    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the block, and the iteration variables that the loops bind."""
        block, loop = state.block(self.block), state.loop(self.loop)
        tree = state.tree(self.block.function)
        if block.init is None or all(v.kind != "reduce" for v in block.iters):
            message = f"block {block.name!r} is not a reduction with an init"
            inside = state.inside
            if inside is not None and inside.around.block(inside.block).init is not None:
                message += f"; block {inside.block.name!r} around it has an init"
            yield Problem(self.Requires.REDUCTION, message, (self.block,))
            return
        above = tree.loops_above(block)
        if loop not in above:
            names = ", ".join(x.var.name for x in above) or "none"
            yield Problem(
                self.Requires.LOOP_AROUND,
                f"loop {loop.var.name!r} is not around block {block.name!r}; the loops around it "
                f"are {names}",
                (self.block, self.loop),
                fixes=tuple(self._legal_steps(tree, block)),
            )
            return
        outside = [x for x in above[: above.index(loop)] if x in reduction_loops(tree, block)]
        if outside:
            names = ", ".join(x.var.name for x in outside)
            yield Problem(
                self.Requires.OUTERMOST_REDUCTION,
                f"loops outside of {loop.var.name!r} bind reduction iteration variables of block "
                f"{block.name!r} ({names}), so the result would be initialized more than once",
                (self.block, self.loop, *refs_of(self.block.function, *outside)),
                {"loops": names},
                fixes=tuple(self._legal_steps(tree, block)),
            )
        if self._init_nest(Edit(state, self.block.function), block, loop) is None:
            yield Problem(
                self.Requires.DUPLICABLE_INIT,
                f"the spatial loops between loop {loop.var.name!r} and block {block.name!r} cannot "
                "be duplicated without the other statements: an extent or a condition depends on "
                "another loop, or a value is read from memory",
                (self.block, self.loop),
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that no element is initialized after an update."""
        tree, block = state.tree(self.block.function), state.block(self.block)
        loop = state.loop(self.loop)
        yield from injective_write_problems(
            state, self.block, self.Requires.INJECTIVE_WRITES, within=loop
        )
        inner = reduction_loops(tree, block)
        above = tree.loops_above(block)
        between = tuple(x for x in above[above.index(loop) :] if x not in inner)
        repeated = loops_not_spatial(tree, block, between, loop)
        if repeated:
            names = ", ".join(repr(x.var.name) for x in repeated)
            yield Problem(
                self.Requires.RUNS_ONCE,
                f"the iterations of {names} inside loop {loop.var.name!r} compute the same results "
                f"of block {block.name!r}, so its terms would be added more than once",
                (self.block, self.loop, *refs_of(self.block.function, *repeated)),
                {"loops": names},
                fixes=tuple(self._legal_steps(tree, block)),
            )
        elif between:
            yield from self._other_accesses(tree, block, loop)

    def _other_accesses(self, tree: Tree, block: Block, loop: For) -> Iterator[Problem]:
        """Yield the other blocks for which an earlier init would change a value."""
        for buffer in dict.fromkeys(w.buffer for w in writes(block)):
            for other in tree.blocks_in(loop):
                used = other is not block and any(a.buffer is buffer for a in accesses(other))
                safe = not writes(other, buffer) and tree.order[other] > tree.order[block]
                if used and not (safe and is_covered(tree, loop, buffer)):
                    yield Problem(
                        self.Requires.ORDERED_ACCESSES,
                        f"block {other.name!r} in loop {loop.var.name!r} accesses {buffer.name!r}, "
                        f"which would be initialized before the loop",
                        (self.block, *refs_of(self.block.function, other, buffer)),
                        fixes=tuple(self._legal_steps(tree, block)),
                    )

    def _legal_steps(self, tree: Tree, block: Block) -> Iterator[DecomposeReduction]:
        """Yield the step at the innermost legal loop."""
        above = tree.loops_above(block)
        first = next((x for x in above if x in reduction_loops(tree, block)), None)
        if first is not None and first is not tree.loops[self.loop.uid]:
            yield replace(self, loop=loop_ref(self.block.function, first))

    def rewrite(self, state: State) -> Rewrite:
        """Insert the init before the loop, under copies of the spatial loops."""
        edit = Edit(state, self.block.function)
        block, loop = state.block(self.block), state.loop(self.loop)
        start = self._init_nest(edit, block, loop)
        if start is None:
            raise TypeError(f"the init of {block.name!r} cannot be decomposed")
        new = before(edit.tree.function.body, loop, start.nest)
        update = excluding_identities(block) if starts_at_identity(block) else block
        return edit.finish(
            replace_statement(new, block, with_regions(replace(update, init=None))),
            results=(edit.block_ref(start.block),),
        )

    def _init_nest(self, edit: Edit, block: Block, loop: For) -> Start | None:
        path = path_to(loop, block)[:-1]
        if _has_lost_conditions(edit.tree, block, path):
            return None
        start = split_off(block, path, Namer(edit.mint, edit.fresh))
        if start is None or is_plain(start.block):
            return start
        widened = with_regions(start.block)  # The regions cover the loops of the init.
        return Start(replace_statement(start.nest, start.block, widened), widened)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for the selected reduction block at each loop around it."""
        if isinstance(selection, BlockRef):
            tree, block = state.tree(selection.function), state.block(selection)
            if block.init is not None:
                for loop in reversed(tree.loops_above(block)):
                    yield cls(selection, loop_ref(selection.function, loop))


def _has_lost_conditions(tree: Tree, block: Block, path: tuple[Stmt, ...]) -> bool:
    """Return whether a condition that the init has contains a variable that the nest omits.

    The nest omits the loops and integers of the path that bind no spatial iteration variable. The
    init has the conditions on those of them that do not iterate the reduction.
    """
    whole = statements_around(tree, block)
    spatial = bound_variables(block.iters)[0]
    fixed = whole[: reduction_position(whole, block)]
    lost = {s.var for s in path if isinstance(s, For | Let) and s in fixed} - spatial
    conditions = [s.condition for s in path if isinstance(s, If)]
    return any(not lost.isdisjoint(c.free) for c in (block.predicate, *conditions))
