"""The ``parallel`` primitive."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ....ir.analysis import bound_kinds, conflicts, private_copies
from ....ir.loop.memory_scopes import SCOPES
from ....ir.loop.nodes import Block
from ...apply import Primitive, Rewrite, check
from ...checks import (
    dependence_problems,
    iteration_kind_problems,
    kind_problems,
    nesting_problems,
    with_allocations_inside,
    with_kind,
)
from ...handles import Handle, LoopRef, loop_ref
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State

_ANY_SCOPE: Final = frozenset(SCOPES)
"""Iterations get their own elements of temporaries of any memory scope and size."""


@primitive(family="loops", returns=None)
@dataclass(frozen=True, slots=True)
class Parallel(Primitive):
    """Execute the iterations of a loop on several threads.

    Before::

        for i in range(n):
            body(i)

    After::

        for i in parallel(n):
            body(i)

    Parameters
    ----------
    loop : LoopRef
        The loop to parallelize.

    Notes
    -----
    Temporaries that are used only inside the loop, and written before they are read, become private
    to each thread. Cost: at worst quadratic in the number of blocks inside the loop.

    Names elsewhere: TVM ``parallel``; Halide ``parallel``.

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
    >>> sch.parallel("i")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for i in parallel(32):
            with block("y"):
                vi = spatial(i)
                y[vi] = x[vi]
    """

    class Requires(Requirement):
        """The requirements of ``parallel``."""

        SERIAL = "the loop is serial"
        COMPATIBLE_NESTING = (
            "no loop around the loop or inside it is parallel, and no loop around it is vectorized"
        )
        ITERATION_KINDS = "the loop iterates no reduction"
        INDEPENDENT_ITERATIONS = (
            "the iterations are independent: no two of them write the same element of a buffer "
            "that outlives the iteration, and none reads an element that another one writes"
        )

    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check kinds of loops and of iteration variables."""
        yield from kind_problems(state, self.loop, self.Requires.SERIAL)
        yield from nesting_problems(
            state,
            self.loop,
            self.Requires.COMPATIBLE_NESTING,
            inside=("parallel",),
            around=("parallel", "vectorized"),
        )
        yield from iteration_kind_problems(
            state, self.loop, self.Requires.ITERATION_KINDS, lambda b: self._others(state, b)
        )

    def _others(self, state: State, block: Block) -> tuple[Primitive, ...]:
        """Return the step on the outermost legal loop around a block that is all spatial."""
        loops = state.tree(self.loop.function).loops_above(block)
        spatial = (x for x in loops if bound_kinds(x, block) == frozenset({"spatial"}))
        steps = (Parallel(loop_ref(self.loop.function, x)) for x in spatial)
        return tuple(itertools.islice((s for s in steps if not check(state, s)), 1))

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the iterations are independent."""
        tree = state.tree(self.loop.function)
        found = conflicts(tree, state.loop(self.loop), own=_ANY_SCOPE)
        requirement = self.Requires.INDEPENDENT_ITERATIONS
        yield from dependence_problems(state, self.loop, found, requirement)

    def rewrite(self, state: State) -> Rewrite:
        """Change the kind of the loop, and allocate the temporaries of an iteration inside it."""
        tree, loop = state.tree(self.loop.function), state.loop(self.loop)
        uids = [buffer.uid for buffer in private_copies(tree, loop, _ANY_SCOPE)]
        made = with_kind(state, self.loop, "parallel")
        return with_allocations_inside(made, self.loop, uids)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected serial loop."""
        if isinstance(selection, LoopRef) and state.loop(selection).kind == "serial":
            yield cls(selection)
