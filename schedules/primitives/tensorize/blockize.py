"""The ``blockize`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.analysis import bound_kinds
from ....ir.analysis.races import updates_atomically
from ....ir.loop.nodes import Block, For
from ...apply import Primitive, Rewrite
from ...edit import Edit
from ...handles import BlockRef, Handle, LoopRef, refs_of
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._blocks import Chain, blockized, chain_below, chain_problems, init_problems


@primitive(family="tensorize", returns=BlockRef)
@dataclass(frozen=True, slots=True)
class Blockize(Primitive):
    """Convert a perfect nest around a block into one block.

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

    Notes
    -----
    The new block has one iteration variable per outer variable that the inner block depends on.
    Terms of the predicate that use no loop of the nest move to the new block. If an outer loop
    binds reduction iteration variables, the init moves to the new block. Later steps treat the new
    block as a unit, and its inside as a function whose symbols are its iteration variables: copies,
    temporaries and partial results of inner blocks remain inside. The result is its handle. Cost:
    linear in the size of the nest.

    Names elsewhere: TVM ``blockize``; Halide: none.

    References
    ----------
    TensorIR (ASPLOS '23), §3.2.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    ...     for i in range(32):
    ...         with block("y"):
    ...             vi = spatial(i)
    ...             y[vi] = x[vi]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> outer = sch.blockize("i")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        with block("y_o"):
            for i in range(32):
                with block("y"):
                    vi = spatial(i)
                    y[vi] = x[vi]
    """

    class Requires(Requirement):
        """The requirements of ``blockize``."""

        PERFECT_NEST = "the loop is the outermost loop of a perfect nest around a single block"
        ONE_KIND_PER_VARIABLE = (
            "every outer variable that the block depends on binds iteration variables of one "
            "kind; the range of one that is read from memory depends on symbols only, that of an "
            "iteration variable of a block around the loop on variables inside of that block"
        )
        DUPLICABLE_INIT = (
            "the init of a reduction can be duplicated for the spatial loops of the nest alone"
        )
        NOT_COMBINED = (
            "no loop around the nest that is vectorized or bound to threads iterates a reduction "
            "of the block, unless the updates are atomic"
        )

    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the nest and its outer variables."""
        found = tuple(
            chain_problems(
                state, self.loop, self.Requires.PERFECT_NEST, self.Requires.ONE_KIND_PER_VARIABLE
            )
        )
        yield from found or init_problems(state, self.loop, self.Requires.DUPLICABLE_INIT)
        if not found:
            yield from self._combined(state)

    def _combined(self, state: State) -> Iterator[Problem]:
        """Yield the loops whose lanes or threads combine their updates of one element."""
        tree, loop = state.tree(self.loop.function), state.loop(self.loop)
        (block,) = tree.blocks_in(loop)
        for outer in tree.ancestors(loop):
            if isinstance(outer, Block):
                return  # the loops outside iterate that block
            if not isinstance(outer, For) or outer.kind not in ("vectorized", "thread"):
                continue
            atomic = outer.kind == "thread" and updates_atomically(block, outer.thread)
            if "reduce" in bound_kinds(outer, block) and not atomic:
                yield Problem(
                    self.Requires.NOT_COMBINED,
                    f"loop {outer.var.name!r} is {outer.kind_text} and iterates a reduction of "
                    f"block {block.name!r}; only the updates of a single block can be combined",
                    (self.loop, *refs_of(self.loop.function, outer, block)),
                )

    def rewrite(self, state: State) -> Rewrite:
        """Replace the nest by a new block."""
        edit = Edit(state, self.loop.function)
        loop = state.loop(self.loop)
        chain = chain_below(loop)
        if not isinstance(chain, Chain):
            raise TypeError(f"loop {loop.var.name!r} contains more than one block")
        block = blockized(edit, chain)
        return edit.finish(edit.replaced(loop, block), results=(edit.block_ref(block),))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected loop of a perfect nest."""
        if isinstance(selection, LoopRef) and isinstance(chain_below(state.loop(selection)), Chain):
            yield cls(selection)
