"""Proof goals: a claim with its facts, in original and in refined symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ..base import Bool, Expr, Var
from ..errors import ZeroDivisorError
from ..evaluator import evaluator
from ..simplify import Simplifier

_function = lru_cache(maxsize=8192)(evaluator)
"""The function of a term; the facts of a program are evaluated for many goals."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A claim with its hypotheses: prove that ``claim`` follows from ``facts``.

    ``reduced`` is the simplified claim in refined symbols; ``remaining`` are the facts in refined
    symbols, without the declared ranges of these symbols.
    """

    claim: Bool
    facts: frozenset[Bool]
    simplifier: Simplifier
    reduced: Bool
    remaining: tuple[Bool, ...]

    @property
    def symbols(self) -> frozenset[Var]:
        """The original symbols of the claim and the facts."""
        return self.claim.free.union(*[p.free for p in self.facts])

    @property
    def unknowns(self) -> list[Var]:
        """The refined symbols, by serial."""
        forward = self.simplifier.knowledge.refinement.forward
        terms: list[Expr] = [forward.get(v, v) for v in self.symbols]
        found = self.reduced.free.union(*[e.free for e in terms], *[p.free for p in self.remaining])
        return sorted(found, key=lambda v: v.serial)

    def counterexample(self, model: Mapping[Var, int]) -> dict[Var, int] | None:
        """Return the original values of a model in refined symbols if they refute the claim."""
        forward = self.simplifier.knowledge.refinement.forward
        try:
            values = {v: _function(forward.get(v, v))(model) for v in self.symbols}
            return values if self.refutes(values) else None
        except ZeroDivisorError:
            return None

    def refutes(self, values: Mapping[Var, int]) -> bool:
        """Return whether values satisfy declarations and facts, but not the claim."""
        return (
            not _function(self.claim)(values)
            and all(_declared(v, value) for v, value in values.items())
            and all(_function(p)(values) for p in self.facts)
        )


def _declared(symbol: Var, value: int) -> bool:
    above = symbol.lower is None or symbol.lower <= value
    below = symbol.upper is None or value <= symbol.upper
    return above and below and value % symbol.multiple_of == 0
