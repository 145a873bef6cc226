"""Counts of random walks, and their form as tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.fuzz.steps import LIBRARY, ON_GRAPHS, VERBS, family_of
from tests.fuzz.walks import COUNTED, GROUPS

if TYPE_CHECKING:
    from collections.abc import Mapping

OF_A_WALK = ("accepted", "inside", "rejected", "refused", "compiled", "seconds")
"""The tables of one walk."""

TABLES = (*OF_A_WALK, "families", "programs", "known", "defects", "ends")

ENOUGH = 200
"""The number of accepted steps of each primitive that all runs together must reach."""


@dataclass
class Totals:
    """Counts of all walks of some runs.

    Parameters
    ----------
    walks : int
        The number of random programs.
    complete : int
        The number of those whose walk has enough counted steps of enough families.
    counted : int
        The number of accepted steps, without annotations and loops of one iteration.
    attempts, fixes : int
        The numbers of drawn steps and of suggested fixes that were tried.
    minutes : float
        The duration of the runs.
    tables : Mapping of str to Counter
        Counts by primitive (``accepted``, and ``inside`` of composites), by ``requirement``, by
        family of steps (``families``) and of programs (``programs``), and others.
    """

    walks: int = 0
    complete: int = 0
    counted: int = 0
    attempts: int = 0
    fixes: int = 0
    minutes: float = 0.0
    tables: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in TABLES}
    )

    def add(self, record: Mapping[str, Any]) -> None:
        """Add the record of a walk."""
        self.walks += 1
        self.complete += record["complete"]
        self.counted += len(record["counted"])
        self.attempts += record["attempts"]
        self.fixes += record["fixes"]
        for name in OF_A_WALK:
            self.tables[name].update(record[name])
        self.tables["programs"][record["family"]] += 1
        self.tables["families"].update(map(family_of, record["counted"]))
        failed = "failed" if record["case"] else "short"
        self.tables["ends"]["complete" if record["complete"] else failed] += 1

    def plus(self, other: Totals) -> Totals:
        """Return the sum of two counts."""
        numbers = {k: v + getattr(other, k) for k, v in vars(self).items() if k != "tables"}
        tables = {k: Counter(v) for k, v in self.tables.items()}
        for name, table in other.tables.items():
            tables[name].update(table)
        return Totals(**numbers, tables=tables)

    def to_json(self) -> dict[str, Any]:
        """Return the totals as JSON data, with sorted tables."""
        plain = {k: v for k, v in vars(self).items() if k != "tables"}
        tables = {k: dict(sorted(v.items())) for k, v in self.tables.items()}
        return {**plain, "minutes": round(self.minutes, 1), "tables": tables}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Totals:
        """Return the totals of JSON data."""
        tables = {name: Counter(data["tables"].get(name, {})) for name in TABLES}
        return cls(**{k: v for k, v in data.items() if k != "tables"}, tables=tables)

    def by_primitive(self) -> dict[str, int]:
        """Return the accepted steps of each primitive and composite, rarest first."""
        found = self.tables["accepted"] + self.tables["inside"]
        on_graphs = (v for v in ON_GRAPHS if found["legalize"])
        verbs = dict.fromkeys((*on_graphs, *VERBS, *LIBRARY))
        return dict(sorted(((v, found[v]) for v in verbs), key=lambda row: row[1]))

    def __str__(self) -> str:
        """Return the totals as text."""
        share = self.counted / max(1, self.walks)
        accepted = self.by_primitive()
        lines = [
            f"{self.complete} programs with complete walks ({COUNTED} steps of {GROUPS} families)",
            f"{self.walks} walks, {self.counted} counted steps, {share:.1f} per walk",
            f"{self.minutes:.1f} minutes, {self.attempts} attempts, {self.fixes} fixes tried",
            f"accepted steps by primitive: {_row(accepted)}",
            f"below {ENOUGH}: {_row({k: v for k, v in accepted.items() if v < ENOUGH}) or 'none'}",
        ]
        shown = [name for name in TABLES if name not in ("accepted", "inside")]
        lines += [f"{name}: {_row(dict(sorted(self.tables[name].items())))}" for name in shown]
        return "\n".join(lines)


def _row(table: Mapping[str, float]) -> str:
    return ", ".join(f"{k} {v:.0f}" for k, v in table.items())
