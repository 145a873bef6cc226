"""Rules of well-formed programs and their violations, for all levels."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import Json, MalformedProgramError
from .identity import Uid


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of well-formed programs: its id (such as ``L4``), its name and its text."""

    number: str
    name: str
    claim: str


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation of a rule.

    ``uid`` is the uid of the innermost loop, block, buffer or binding at ``location``; None if the
    violation concerns the function itself.
    """

    rule: Rule
    message: str
    function: str
    location: str
    uid: Uid | None

    def __str__(self) -> str:
        """Return one line of text."""
        return f"[{self.rule.number} {self.rule.name}] {self.location}: {self.message}"

    def to_json(self) -> dict[str, Json]:
        """Return the violation as JSON data."""
        return {
            "rule": self.rule.number,
            "name": self.rule.name,
            "message": self.message,
            "function": self.function,
            "location": self.location,
            "uid": self.uid,
        }


class Collector:
    """A list of violations and the current location of the traversal."""

    def __init__(self, function: str) -> None:
        """Start at the function."""
        self._function = function
        self._path: list[tuple[str, Uid | None]] = []
        self.found: list[Violation] = []

    @contextmanager
    def inside(self, location: str, uid: Uid | None = None) -> Generator[None]:
        """Add a node to the current location in this context."""
        self._path.append((location, uid))
        yield
        self._path.pop()

    def report(self, rule: Rule, message: str, uid: Uid | None = None) -> None:
        """Add a violation at the current location."""
        path = [f"function {self._function!r}", *(location for location, _ in self._path)]
        uids = [u for _, u in self._path if u is not None]
        nearest = uid if uid is not None else (uids[-1] if uids else None)
        self.found.append(Violation(rule, message, self._function, ", ".join(path), nearest))


def raise_all(violations: tuple[Violation, ...]) -> None:
    """Raise one error that lists all violations; do nothing if there are none.

    Raises
    ------
    MalformedProgramError
        If there is at least one violation.
    """
    if not violations:
        return
    first, *rest = violations
    more = f" (and {len(rest)} more)" if rest else ""
    raise MalformedProgramError(
        f"{first.message}{more}",
        where=first.location,
        hint="\n  ".join(str(v) for v in violations),
        details={"violations": [v.to_json() for v in violations]},
    )
