"""The ``vectorize`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.analysis import bound_kinds, conflicts
from ....ir.analysis.lane_scans import scans_lanes
from ....ir.loop.nodes import Block
from ....ir.symbolic import free_vars, to_text
from ...apply import Primitive, Rewrite, check
from ...checks import (
    binds_reduction,
    constant_extent_problems,
    dependence_problems,
    kind_problems,
    lane_reduction_problems,
    nesting_problems,
    with_kind,
)
from ...domain_checks import repeat_problems
from ...handles import Handle, LoopRef, block_ref, loop_ref
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ..reduction.decompose_reduction import DecomposeReduction
from .split import tile_fixes


@primitive(family="loops", returns=None)
@dataclass(frozen=True, slots=True)
class Vectorize(Primitive):
    """Execute the iterations of a short loop as lanes of a vector.

    Before::

        for j in range(16):
            body(j)

    After::

        for j in vectorized(16):
            body(j)

    Parameters
    ----------
    loop : LoopRef
        The loop to vectorize.

    Notes
    -----
    In a reduction, each lane keeps a partial result, and the partial results are combined after the
    loop: declared reductions may be evaluated in any order. Cost: at worst quadratic in the number
    of blocks inside the loop.

    Names elsewhere: TVM ``vectorize``; Halide ``vectorize``.

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
    ...         y[i] = x[i]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.vectorize("i")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for i in vectorized(32):
            with block("y"):
                vi = spatial(i)
                y[vi] = x[vi]
    """

    class Requires(Requirement):
        """The requirements of ``vectorize``."""

        SERIAL = "the loop is serial"
        COMPATIBLE_NESTING = (
            "no loop around the loop or inside it is vectorized, and no loop inside it is parallel"
        )
        CONSTANT_EXTENT = "the extent is a constant of at most 1024 iterations"
        ITERATION_KINDS = (
            "if the loop binds a reduction iteration variable, it contains only that reduction, "
            "whose update has the form ``C = C op value`` and whose init is decomposed"
        )
        RUNS_ONCE = "a reduction that the loop binds runs each instance once in the loop"
        UNIFORM_EXTENTS = "no extent inside the loop depends on its variable"
        INDEPENDENT_ITERATIONS = (
            "the iterations are independent: no two of them write the same element, and none "
            "reads an element that another one writes; or they are the steps of a scan by a "
            "declared reducer, which is the whole body of the loop"
        )

    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check kinds and extents of loops and kinds of iteration variables."""
        yield from kind_problems(state, self.loop, self.Requires.SERIAL)
        yield from nesting_problems(
            state,
            self.loop,
            self.Requires.COMPATIBLE_NESTING,
            inside=("parallel", "vectorized"),
            around=("vectorized",),
        )
        yield from constant_extent_problems(
            state,
            self.loop,
            self.Requires.CONSTANT_EXTENT,
            limit=1024,
            fixes=lambda: tile_fixes(state, self.loop, 16, 8),
        )
        yield from lane_reduction_problems(
            state, self.loop, self.Requires.ITERATION_KINDS, lambda b: self._decompose(state, b)
        )
        tree, loop = state.tree(self.loop.function), state.loop(self.loop)
        for inner in tree.loops.values():
            if loop.var in free_vars(inner.extent):
                yield Problem(
                    self.Requires.UNIFORM_EXTENTS,
                    f"extent {to_text(inner.extent)} of loop {inner.var.name!r} depends on "
                    f"{loop.var.name!r}, so its number of iterations would differ between lanes",
                    (LoopRef(self.loop.function, inner.uid, inner.var.name),),
                    {"extent": to_text(inner.extent)},
                )

    def _decompose(self, state: State, block: Block) -> tuple[Primitive, ...]:
        """Return the step that decomposes the reduction of the loop, if it is legal."""
        tree, loop = state.tree(self.loop.function), state.loop(self.loop)
        above = tree.loops_above(block)
        first = next(x for x in above if "reduce" in bound_kinds(x, block))
        name = self.loop.function
        step = DecomposeReduction(block_ref(name, block), loop_ref(name, first))
        alone = len(tree.blocks_in(loop.body)) == 1
        return (step,) if alone and not check(state, step) else ()

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the iterations are independent."""
        if scans_lanes(state.tree(self.loop.function), state.loop(self.loop)):
            return
        if not binds_reduction(state, self.loop):
            tree, loop = state.tree(self.loop.function), state.loop(self.loop)
            found = conflicts(tree, loop, lanes=True)
            yield from dependence_problems(
                state, self.loop, found, self.Requires.INDEPENDENT_ITERATIONS
            )
            return
        tree, loop = state.tree(self.loop.function), state.loop(self.loop)
        for block in tree.blocks_in(loop.body):
            ref = block_ref(self.loop.function, block)
            yield from repeat_problems(state, ref, self.Requires.RUNS_ONCE, loop)

    def rewrite(self, state: State) -> Rewrite:
        """Change the kind of the loop."""
        return with_kind(state, self.loop, "vectorized")

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected serial loop."""
        if isinstance(selection, LoopRef) and state.loop(selection).kind == "serial":
            yield cls(selection)
