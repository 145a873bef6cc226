"""The ``sample_partitioned_tile`` primitive."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...apply import Primitive, Rewrite
from ...handles import LoopRef
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._tiles import divisors, drawn, extent_of, extent_problems, parts_problems, ways


@primitive(family="sample", returns=tuple[int, ...])
@dataclass(frozen=True, slots=True)
class SamplePartitionedTile(Primitive):
    """Draw tile sizes of a loop whose inner part is a multiple of a factor.

    The program does not change. A later ``split`` uses the sizes as its factors. The product of the
    sizes is the extent of the loop, and the product of those from ``partition_pos`` on is a
    multiple of ``innerpart_factor``, such as the number of threads of a warp.

    Before::

        for i in range(96):
            body(i)

    After (the sizes 3, 2, and 16 as factors of a ``split``)::

        for i_0 in range(3):
            for i_1 in range(2):
                for i_2 in range(16):
                    body(i_0 * 32 + i_1 * 16 + i_2)

    Parameters
    ----------
    loop : LoopRef
        The loop.
    n : int
        The number of tile sizes, from 2 to 8.
    partition_pos : int
        The position of the first size of the inner part.
    innerpart_factor : int
        The factor of the inner part.
    decision : tuple of int or None
        The sizes; None draws them. The trace records the drawn sizes, and a replay uses them.

    Notes
    -----
    All legal tuples of sizes have the same probability. The seed is that of the schedule, combined
    with the number of the step.

    Names elsewhere: TVM ``sample_partitioned_tile``.

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
    >>> sch = tw.Schedule(module)
    >>> a, b, c = sch.sample_partitioned_tile("i", n=3, partition_pos=1, innerpart_factor=16)
    >>> a * b * c, b * c % 16
    (96, 0)
    """

    class Requires(Requirement):
        """The requirements of ``sample_partitioned_tile``."""

        CONSTANT_EXTENT = "the extent of the loop is a positive constant of at most 2**32"
        PARTS = "there are 2 to 8 tile sizes, with at least one in the outer and the inner part"
        DIVISIBLE = "the factor of the inner part is positive and divides the extent"
        DECISION = (
            "a given decision has one positive size per part, with the extent as their product and "
            "an inner part that is a multiple of the factor"
        )

    loop: LoopRef
    n: int
    partition_pos: int
    innerpart_factor: int = 1
    decision: tuple[int, ...] | None = None

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the extent, the parts, the factor, and a given decision."""
        requires = self.Requires
        found = (
            *extent_problems(state, self.loop, requires.CONSTANT_EXTENT),
            *parts_problems(self.n, self.loop, requires.PARTS),
        )
        yield from found
        if not 0 < self.partition_pos < self.n:
            message = (
                f"the inner part starts at position {self.partition_pos} of {self.n} sizes; "
                f"expected 1 to {self.n - 1}"
            )
            yield Problem(requires.PARTS, message, (self.loop,))
        elif not found:
            yield from self._factor_problems(extent_of(state, self.loop))

    def _factor_problems(self, extent: int) -> Iterator[Problem]:
        factor = self.innerpart_factor
        if factor < 1 or extent % factor:
            legal = divisors(extent)
            yield Problem(
                self.Requires.DIVISIBLE,
                f"the factor {factor} does not divide the extent {extent}; its divisors are "
                f"{', '.join(map(str, legal))}",
                (self.loop,),
                {"extent": extent, "factor": factor},
                fixes=(replace(self, innerpart_factor=math.gcd(factor, extent)),),
            )
            return
        given = self.decision
        if given is None:
            return
        fits = len(given) == self.n and min(given, default=0) >= 1
        inner = math.prod(given[self.partition_pos :])
        if not fits or math.prod(given) != extent or inner % factor:
            yield Problem(
                self.Requires.DECISION,
                f"the decision is {given}; expected {self.n} positive sizes with the product "
                f"{extent}, of which the last {self.n - self.partition_pos} have a product that is "
                f"a multiple of {factor}",
                (self.loop,),
                {"product": math.prod(given), "inner": inner},
                fixes=(replace(self, decision=None),),
            )

    def decided(self, state: State) -> Primitive:
        """Return the step with the sizes that it draws."""
        if self.decision is not None:
            return self
        extent, outer = extent_of(state, self.loop), self.partition_pos
        inner = self.n - outer
        legal = [k for k in divisors(extent) if k % self.innerpart_factor == 0]
        weights = [ways(extent // k, outer) * ways(k, inner) for k in legal]
        random = state.random()
        product = random.choices(legal, weights)[0]
        sizes = (*drawn(random, extent // product, outer), *drawn(random, product, inner))
        return replace(self, decision=sizes)

    def rewrite(self, state: State) -> Rewrite:
        """Return the sizes."""
        return Rewrite(state.module, self.decision or ())
