"""The ``sample_compute_location`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from ...apply import Primitive, Rewrite, check
from ...handles import BlockRef, Handle, LoopRef
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ..placement.compute_at import ComputeAt


@primitive(family="sample", returns=LoopRef, isolated=True)
@dataclass(frozen=True, slots=True)
class SampleComputeLocation(Primitive):
    """Draw a loop to which ``compute_at`` can move a block.

    The program does not change. The loops are those around the first consumer of the block to which
    moving the block is legal.

    Before::

        for i in range(8):
            t[i] = x[i] + 1.0
        for k in range(8):
            y[k] = t[k] * 2.0

    After (the loop ``k`` as the destination of a ``compute_at``)::

        for k in range(8):
            t[k] = x[k] + 1.0
            y[k] = t[k] * 2.0

    Parameters
    ----------
    block : BlockRef
        The block to move.
    decision : int or None
        The position of the loop among all loops around the first consumer, from 0 for the
        outermost; None draws it. The trace records the drawn position, and a replay uses it.

    Notes
    -----
    All legal loops have the same probability. The seed is that of the schedule, combined with the
    number of the step. Cost: that of the checks of ``compute_at`` for each loop.

    Names elsewhere: TVM ``sample_compute_location``.

    References
    ----------
    MetaSchedule (NeurIPS '22), §3.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(8, 8), f32], y: Out[(8, 8), f32]):
    ...     t = alloc((8, 8), f32)
    ...     for i in range(8):
    ...         for j in range(8):
    ...             t[i, j] = x[i, j] + 1.0
    ...     for k in range(8):
    ...         for l in range(8):
    ...             y[k, l] = t[k, l] * 2.0
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> loop = sch.sample_compute_location("t")
    >>> loop.name in ("k", "l")
    True
    >>> sch.compute_at("t", loop)
    """

    class Requires(Requirement):
        """The requirements of ``sample_compute_location``."""

        LOCATION = "the block can be moved to at least one loop around its first consumer"
        DECISION = "a given decision is the position of a loop to which the block can be moved"

    block: BlockRef
    decision: int | None = None

    def structural(self, state: State) -> Iterator[Problem]:
        """Check that there is a consumer in a loop."""
        if not self._locations(state):
            name = state.block(self.block).name
            message = f"no loop is around a block that reads the results of {name!r}"
            yield Problem(self.Requires.LOCATION, message, (self.block,))

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that moving the block to a loop, or to the given one, is legal."""
        locations, given = self._locations(state), self.decision
        if given is not None:
            if 0 <= given < len(locations) and not check(state, locations[given]):
                return
            legal = self._legal(state)
            shown = ", ".join(f"{k} for loop {locations[k].loop.name!r}" for k in legal) or "none"
            yield Problem(
                self.Requires.DECISION,
                f"the decision is position {given} of {len(locations)} loops; expected {shown}",
                (self.block,),
                {"decision": given, "loops": len(locations)},
                fixes=(replace(self, decision=legal[0]),) if legal else (),
            )
        elif not any(not check(state, step) for step in reversed(locations)):
            first = check(state, locations[0])
            names = ", ".join(repr(step.loop.name) for step in locations)
            yield Problem(
                self.Requires.LOCATION,
                f"the block cannot be moved to any of the loops {names}: {first[0].message}",
                (self.block, *(step.loop for step in locations)),
            )

    def _locations(self, state: State) -> list[ComputeAt]:
        return [cast("ComputeAt", step) for step in ComputeAt.suggest(state, self.block)]

    def _legal(self, state: State) -> list[int]:
        return [k for k, step in enumerate(self._locations(state)) if not check(state, step)]

    def decided(self, state: State) -> Primitive:
        """Return the step with the position that it draws."""
        if self.decision is not None:
            return self
        return replace(self, decision=state.random().choice(self._legal(state)))

    def rewrite(self, state: State) -> Rewrite:
        """Return the loop."""
        return Rewrite(state.module, (self._locations(state)[self.decision or 0].loop,))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected block whose results another block reads."""
        if isinstance(selection, BlockRef) and any(
            True for _ in ComputeAt.suggest(state, selection)
        ):
            yield cls(selection)
