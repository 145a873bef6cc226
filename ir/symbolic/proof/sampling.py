"""Looking for a counter-example among small and random values, always the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from ..predicates import Le, Lt
from ..terms import Var, linear_terms
from .question import Question

_TRIES = 60
_AHEAD = 12


def refute(question: Question) -> dict[Var, int] | None:
    """A checked counter-example, or None."""
    unknowns = question.unknowns
    bounding = _bounding(question)
    for model in _models(unknowns, bounding):
        found = question.counterexample(model)
        if found is not None:
            return found
    return None


def _bounding(question: Question) -> frozenset[Var]:
    """Symbols that bound others, such as extents, and are bounded by none themselves."""
    above, below = set[Var](), set[Var]()
    for p in question.remaining:
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
        ahead = _AHEAD if attempt % 3 else 0
        yield {
            v: _near(v, random.randrange(spread) + (ahead if v in bounding else 0))
            for v in unknowns
        }


def _near(symbol: Var, offset: int) -> int:
    """A legal value close to the lower end; without one, on either side of zero."""
    step = symbol.multiple_of
    if symbol.lower is not None:
        value = symbol.lower + offset * step
        if symbol.upper is None or value <= symbol.upper:
            return value
        return symbol.lower + offset * step % (symbol.upper - symbol.lower + step)
    if symbol.upper is not None:
        return symbol.upper - offset * step
    return (offset // 2 + 1) * step if offset % 2 else -(offset // 2) * step
