"""What a broken rule of well-formedness is, whichever level has it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from .errors import Json, MalformedProgramError
from .identity import Uid


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule that every program obeys: ``number`` to refer to it, ``name``, ``claim``."""

    number: str
    name: str
    claim: str


@dataclass(frozen=True, slots=True)
class Violation:
    """One place where a program breaks a rule.

    ``uid`` is that of the nearest loop, block, buffer or binding; None where it is the function.
    """

    rule: Rule
    message: str
    function: str
    place: str
    uid: Uid | None

    def __str__(self) -> str:
        """Say it in one line."""
        return f"[{self.rule.number} {self.rule.name}] {self.place}: {self.message}"

    def to_json(self) -> dict[str, Json]:
        """Give it as plain data."""
        return {
            "rule": self.rule.number,
            "name": self.rule.name,
            "message": self.message,
            "function": self.function,
            "place": self.place,
            "uid": self.uid,
        }


class Collector:
    """Collects violations and knows the place at which the walk is."""

    def __init__(self, function: str) -> None:
        """Start at the function itself."""
        self._function = function
        self._path: list[tuple[str, Uid | None]] = []
        self.found: list[Violation] = []

    @contextmanager
    def inside(self, place: str, uid: Uid | None = None) -> Generator[None]:
        """Be at a node while inside."""
        self._path.append((place, uid))
        yield
        self._path.pop()

    def report(self, rule: Rule, message: str, uid: Uid | None = None) -> None:
        """Add a violation at the present place."""
        words = [f"function {self._function!r}", *(place for place, _ in self._path)]
        known = [u for _, u in self._path if u is not None]
        nearest = uid if uid is not None else (known[-1] if known else None)
        self.found.append(Violation(rule, message, self._function, ", ".join(words), nearest))


def raise_all(violations: tuple[Violation, ...]) -> None:
    """Raise one error that names all violations; do nothing where there are none."""
    if not violations:
        return
    first, *rest = violations
    more = f" (and {len(rest)} more)" if rest else ""
    raise MalformedProgramError(
        f"{first.message}{more}",
        where=first.place,
        hint="\n  ".join(str(v) for v in violations),
        details={"violations": [v.to_json() for v in violations]},
    )
