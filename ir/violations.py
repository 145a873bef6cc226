"""Rules of well-formed programs and their violations, for all levels."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import Json
from .identity import Uid


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of well-formed programs.

    Parameters
    ----------
    number : str
        The id, such as ``L4``.
    name : str
        The name.
    claim : str
        The text: the property of well-formed programs.
    fix : str
        A change that makes a program with a violation well formed.
    """

    number: str
    name: str
    claim: str
    fix: str

    def __str__(self) -> str:
        """Return the text, with the id and the name."""
        return f"{self.claim} [{self.number} {self.name}]"


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation of a rule.

    Parameters
    ----------
    rule : Rule
        The rule.
    message : str
        The problem, with the actual and the expected values.
    function : str
        The name of the function.
    location : str
        The nodes around the violation, outermost first, as text.
    uid : Uid or None
        The innermost loop, block, buffer or binding at the location; None if the violation
        concerns the function itself.
    within : Uid or None
        The loop, block or binding that accesses the buffer or value ``uid``, if the access
        violates the rule.
    fix : str
        A change of this program; empty if only the fix of the rule is known.
    """

    rule: Rule
    message: str
    function: str
    location: str
    uid: Uid | None
    within: Uid | None = None
    fix: str = ""

    def __str__(self) -> str:
        """Return one line of text."""
        return f"[{self.rule.number} {self.rule.name}] {self.location}: {self.message}"

    def to_json(self) -> dict[str, Json]:
        """Return the violation as JSON data."""
        return {
            "rule": self.rule.number,
            "name": self.rule.name,
            "requires": self.rule.claim,
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
        self._seen: set[Violation] = set()
        self.found: list[Violation] = []

    @contextmanager
    def inside(self, location: str, uid: Uid | None = None) -> Generator[None]:
        """Add a node to the current location in this context."""
        self._path.append((location, uid))
        yield
        self._path.pop()

    def report(self, rule: Rule, message: str, uid: Uid | None = None, *, fix: str = "") -> None:
        """Add a violation at the current location."""
        path = [f"function {self._function!r}", *(location for location, _ in self._path)]
        uids = [u for _, u in self._path if u is not None]
        innermost = uids[-1] if uids else None
        nearest, within = (innermost, None) if uid is None else (uid, innermost)
        location = ", ".join(path)
        violation = Violation(rule, message, self._function, location, nearest, within, fix)
        if violation not in self._seen:  # init and body may violate a rule alike
            self._seen.add(violation)
            self.found.append(violation)
