"""The ``sample_perfect_tile`` primitive."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.symbolic import const_value
from ...apply import Primitive, Rewrite
from ...handles import Handle, LoopRef
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._tiles import divisors, drawn, extent_of, extent_problems, parts_problems


@primitive(family="sample", returns=tuple[int, ...])
@dataclass(frozen=True, slots=True)
class SamplePerfectTile(Primitive):
    """Draw tile sizes of a loop, whose product is the extent of the loop.

    The program does not change. A later ``split`` uses the sizes as its factors.

    Before::

        for i in range(96):
            body(i)

    After (the sizes 12 and 8 as factors of a ``split``)::

        for i_0 in range(12):
            for i_1 in range(8):
                body(i_0 * 8 + i_1)

    Parameters
    ----------
    loop : LoopRef
        The loop.
    n : int
        The number of tile sizes, from 1 to 8.
    max_innermost_factor : int
        The largest value of the last size.
    decision : tuple of int or None
        The sizes; None draws them. The trace records the drawn sizes, and a replay uses them.

    Notes
    -----
    All legal tuples of sizes have the same probability. The seed is that of the schedule,
    ``Schedule(module, seed=1)``, combined with the number of the step.

    Names elsewhere: TVM ``sample_perfect_tile``.

    References
    ----------
    MetaSchedule (NeurIPS '22), §3.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(96,), f32], y: Out[(96,), f32]):
    ...     for i in range(96):
    ...         y[i] = x[i]
    ... ''')
    >>> sch = tw.Schedule(module, seed=3)
    >>> outer, inner = sch.sample_perfect_tile("i", n=2)
    >>> outer * inner
    96
    >>> i_0, i_1 = sch.split("i", factors=(outer, inner))
    """

    class Requires(Requirement):
        """The requirements of ``sample_perfect_tile``."""

        CONSTANT_EXTENT = "the extent of the loop is a positive constant of at most 2**32"
        PARTS = "the number of tile sizes is from 1 to 8, and the largest last size is positive"
        DECISION = (
            "a given decision has one positive size per part, with the extent as their product and "
            "the last size within its limit"
        )

    loop: LoopRef
    n: int
    max_innermost_factor: int = 16
    decision: tuple[int, ...] | None = None

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the extent, the number of sizes, and a given decision."""
        requires = self.Requires
        found = (
            *extent_problems(state, self.loop, requires.CONSTANT_EXTENT),
            *parts_problems(self.n, self.loop, requires.PARTS),
        )
        yield from found
        if self.max_innermost_factor < 1:
            limit = f"the largest last size is {self.max_innermost_factor}; expected at least 1"
            yield Problem(requires.PARTS, limit, (self.loop,))
        elif not found:
            yield from self._decision_problems(extent_of(state, self.loop))

    def _decision_problems(self, extent: int) -> Iterator[Problem]:
        limit, given = self.max_innermost_factor, self.decision
        if self.n == 1 and extent > limit:
            message = f"the only tile size is the extent {extent}, which exceeds {limit}"
            fix = replace(self, max_innermost_factor=extent)
            yield Problem(self.Requires.PARTS, message, (self.loop,), fixes=(fix,))
            return
        if given is None:
            return
        fits = len(given) == self.n and min(given, default=0) >= 1
        if fits and math.prod(given) == extent and given[-1] <= limit:
            return
        legal = ", ".join(str(k) for k in divisors(extent) if k <= limit)
        yield Problem(
            self.Requires.DECISION,
            f"the decision is {given}; expected {self.n} positive sizes with the product {extent} "
            f"and a last size out of {legal}",
            (self.loop,),
            {"product": math.prod(given), "extent": extent},
            fixes=(replace(self, decision=None),),
        )

    def decided(self, state: State) -> Primitive:
        """Return the step with the sizes that it draws."""
        if self.decision is not None:
            return self
        extent = extent_of(state, self.loop)
        sizes = drawn(state.random(), extent, self.n, self.max_innermost_factor)
        return replace(self, decision=sizes)

    def rewrite(self, state: State) -> Rewrite:
        """Return the sizes."""
        return Rewrite(state.module, self.decision or ())

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for two sizes of a selected loop."""
        if isinstance(selection, LoopRef):
            extent = const_value(state.loop(selection).extent)
            if extent is not None and extent > 1:
                yield cls(selection, 2)
