"""Search for counter-examples among small and pseudo-random values; deterministic."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from ..base import Var
from ..predicates import Le, Lt
from ..terms import linear_terms
from .goal import Goal

_TRIES = 60
_BOUNDING_OFFSET = 12


def refute(goal: Goal) -> dict[Var, int] | None:
    """Return a checked counter-example; None if none was found."""
    unknowns = goal.unknowns
    bounding = _bounding(goal)
    for model in _models(unknowns, bounding):
        found = goal.counterexample(model)
        if found is not None:
            return found
    return None


def _bounding(goal: Goal) -> frozenset[Var]:
    """Return the symbols that bound others, such as extents, and are not bounded themselves."""
    above, below = set[Var](), set[Var]()
    for p in goal.remaining:
        if isinstance(p, (Le, Lt)):
            for term, c in linear_terms(p.delta)[0]:
                (below if c > 0 else above).update(term.free)
    return frozenset(above - below)


def _models(unknowns: list[Var], bounding: frozenset[Var]) -> Iterator[dict[Var, int]]:
    for offset in range(4):
        yield {v: _near(v, offset) for v in unknowns}
    random = Random(0)
    for attempt in range(_TRIES):
        spread = (3, 10, 40, 400)[attempt % 4]
        bounding_offset = _BOUNDING_OFFSET if attempt % 3 else 0
        yield {
            v: _near(v, random.randrange(spread) + (bounding_offset if v in bounding else 0))
            for v in unknowns
        }


def _near(symbol: Var, offset: int) -> int:
    """Return a valid value near the lower bound, else the upper bound, else zero."""
    step = symbol.multiple_of
    if symbol.lower is not None:
        value = symbol.lower + offset * step
        if symbol.upper is None or value <= symbol.upper:
            return value
        return symbol.lower + offset * step % (symbol.upper - symbol.lower + step)
    if symbol.upper is not None:
        return symbol.upper - offset * step
    return (offset // 2 + 1) * step if offset % 2 else -(offset // 2) * step
