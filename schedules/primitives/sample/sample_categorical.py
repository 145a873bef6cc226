"""The ``sample_categorical`` primitive."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from ...apply import Primitive, Rewrite
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State

_TOLERANCE: Final = 1e-6


@primitive(family="sample", returns=int)
@dataclass(frozen=True, slots=True)
class SampleCategorical(Primitive):
    """Draw one of some integers.

    The program does not change. Later steps use the result, for example as a number of iterations
    to unroll.

    Before::

        for i in range(96):
            body(i)

    After (the integer 8 as a factor of a ``split``)::

        for i_0 in range(12):
            for i_1 in range(8):
                body(i_0 * 8 + i_1)

    Parameters
    ----------
    candidates : tuple of int
        The integers.
    probabilities : tuple of float or None
        The probability of each; None for equal ones.
    decision : int or None
        The position of the result; None draws it. The trace records the drawn position, and a
        replay uses it.

    Notes
    -----
    The seed is that of the schedule, ``Schedule(module, seed=1)``, combined with the number of the
    step.

    Names elsewhere: TVM ``sample_categorical``.

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
    >>> sch = tw.Schedule(module, seed=1)
    >>> lanes = sch.sample_categorical((4, 8, 16), probabilities=(0.2, 0.3, 0.5))
    >>> lanes in (4, 8, 16)
    True
    """

    class Requires(Requirement):
        """The requirements of ``sample_categorical``."""

        CANDIDATES = "there is at least one integer to draw from"
        PROBABILITIES = "there is one probability per integer, none is negative, and their sum is 1"
        DECISION = "a given decision is the position of an integer"

    candidates: tuple[int, ...]
    probabilities: tuple[float, ...] | None = None
    decision: int | None = None

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the integers, their probabilities, and a given decision."""
        del state
        count, given = len(self.candidates), self.probabilities
        if not count:
            yield Problem(self.Requires.CANDIDATES, "there is no integer to draw from")
            return
        if given is not None:
            total = math.fsum(given)
            if len(given) != count or min(given) < 0 or not abs(total - 1) <= _TOLERANCE:
                yield Problem(
                    self.Requires.PROBABILITIES,
                    f"the {len(given)} probabilities of {count} integers are {given}, with the sum "
                    f"{total:g}",
                    numbers={"sum": total, "probabilities": len(given), "integers": count},
                    fixes=(replace(self, probabilities=None),),
                )
        if self.decision is not None and not 0 <= self.decision < count:
            legal = ", ".join(f"{k} for {value}" for k, value in enumerate(self.candidates))
            yield Problem(
                self.Requires.DECISION,
                f"the decision is position {self.decision} of {count} integers; expected {legal}",
                numbers={"decision": self.decision, "integers": count},
                fixes=(replace(self, decision=None),),
            )

    def decided(self, state: State) -> Primitive:
        """Return the step with the position that it draws."""
        if self.decision is not None:
            return self
        positions = range(len(self.candidates))
        return replace(self, decision=state.random().choices(positions, self.probabilities)[0])

    def rewrite(self, state: State) -> Rewrite:
        """Return the integer."""
        return Rewrite(state.module, (self.candidates[self.decision or 0],))
