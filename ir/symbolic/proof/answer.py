"""The three answers of a proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ..terms import Var


@dataclass(frozen=True, slots=True)
class Proved:
    """The claim holds wherever the facts do; ``by`` names the method."""

    by: str


@dataclass(frozen=True, slots=True, eq=False)
class Refuted:
    """Values of the symbols for which the facts hold and the claim does not; checked."""

    counterexample: Mapping[Var, int]

    def __str__(self) -> str:
        ordered = sorted(self.counterexample.items(), key=lambda item: item[0].serial)
        return ", ".join(f"{symbol.name} = {value}" for symbol, value in ordered)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither a proof nor a counter-example was found; ``missing`` says what would help."""

    missing: str


Proof: TypeAlias = Proved | Refuted | Unknown
