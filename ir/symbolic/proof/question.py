"""A claim with its facts, in the program's symbols and in those of the refined world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..base import Bool, Expr
from ..errors import ZeroDivisorError
from ..simplify import Simplifier
from ..terms import Var
from ..traverse import evaluate


@dataclass(frozen=True, slots=True)
class Question:
    """Whether ``claim`` follows from ``facts``.

    ``reduced`` is the claim in the refined world; ``remaining`` are the facts there, besides the
    declarations of the symbols.
    """

    claim: Bool
    facts: frozenset[Bool]
    simplifier: Simplifier
    reduced: Bool
    remaining: tuple[Bool, ...]

    @property
    def symbols(self) -> frozenset[Var]:
        """The program's symbols that matter."""
        return self.claim.free.union(*[p.free for p in self.facts])

    @property
    def unknowns(self) -> list[Var]:
        """The symbols of the refined world, in order."""
        forward = self.simplifier.know.world.forward
        terms: list[Expr] = [forward.get(v, v) for v in self.symbols]
        found = self.reduced.free.union(*[e.free for e in terms], *[p.free for p in self.remaining])
        return sorted(found, key=lambda v: v.serial)

    def counterexample(self, model: Mapping[Var, int]) -> dict[Var, int] | None:
        """The program's values for a model of the refined world, if they refute the claim."""
        forward = self.simplifier.know.world.forward
        try:
            values = {v: evaluate(forward.get(v, v), model) for v in self.symbols}
            return values if self.refutes(values) else None
        except ZeroDivisorError:
            return None

    def refutes(self, values: Mapping[Var, int]) -> bool:
        """Whether values are as declared, make every fact true and the claim false."""
        return (
            not evaluate(self.claim, values)
            and all(_declared(v, value) for v, value in values.items())
            and all(evaluate(p, values) for p in self.facts)
        )


def _declared(symbol: Var, value: int) -> bool:
    above = symbol.lower is None or symbol.lower <= value
    below = symbol.upper is None or value <= symbol.upper
    return above and below and value % symbol.multiple_of == 0
