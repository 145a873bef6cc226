"""Results of a proof attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ..base import Var


@dataclass(frozen=True, slots=True)
class Proved:
    """The claim follows from the facts; ``by`` is the name of the prover."""

    by: str


@dataclass(frozen=True, slots=True, eq=False)
class Refuted:
    """A checked counter-example: values for which the facts hold and the claim does not."""

    counterexample: Mapping[Var, int]

    def __str__(self) -> str:
        ordered = sorted(self.counterexample.items(), key=lambda item: item[0].serial)
        return ", ".join(f"{symbol.name} = {value}" for symbol, value in ordered)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither proof nor counter-example was found; ``missing`` describes the missing fact."""

    missing: str


Proof: TypeAlias = Proved | Refuted | Unknown
