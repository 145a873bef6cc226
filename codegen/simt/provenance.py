"""Provenance of kernel statements: loops, block, and schedule step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ...errors import Json
from ...ir.identity import STEP_STRIDE, Uid
from ...ir.thread.nodes import NO_SOURCE, Loop, Source, Stmt

FIRST_VALUE: Final = "_init"
"""The suffix of the name of a block that initializes a reduction."""


@dataclass(frozen=True, slots=True)
class StatementSite:
    """A statement of a kernel, located in the scheduled program.

    Parameters
    ----------
    ordinal : int
        Position of the statement in the kernel, in program order.
    kind : str
        Kind of the statement, such as ``store``.
    name : str
        Name of the block or loop that it was lowered from.
    loops : tuple of str
        Names of the enclosing loops that still exist, outermost first.
    uid : int, optional
        Uid of the block or loop.
    step : str
        The schedule step that created the block or loop; empty for the original program.
    origins : frozenset of str
        Ids of the imported operators.
    note : str
        The error that the statement reports, if it ends the kernel.
    """

    ordinal: int
    kind: str
    name: str = ""
    loops: tuple[str, ...] = ()
    uid: Uid | None = None
    step: str = ""
    origins: frozenset[str] = field(default=frozenset(), compare=False)
    note: str = field(default="", compare=False)

    def __str__(self) -> str:
        """Return the statement as text: its number, kind, block, loops and step."""
        parts = [f"#{self.ordinal} {self.kind}"]
        if self.name:
            parts.append(f"of {self.name!r}")
        if self.loops:
            parts.append(f"in loops {', '.join(self.loops)}")
        if self.step:
            parts.append(f"(from {self.step})")
        return " ".join(parts)

    def to_json(self) -> dict[str, Json]:
        """Render as JSON data."""
        return {
            "ordinal": self.ordinal,
            "kind": self.kind,
            "name": self.name,
            "loops": [*self.loops],
            "uid": self.uid,
            "step": self.step,
            "origins": [*sorted(self.origins)],
        }


@dataclass(frozen=True, slots=True)
class Steps:
    """The schedule steps that created the nodes of a program.

    Parameters
    ----------
    texts : Mapping of int to str
        Steps as text by their ordinal, which the uids of their nodes contain.
    named : Mapping of str to str
        Steps as text by the printed name of a node, for programs parsed from text.
    """

    texts: Mapping[int, str] = field(default_factory=dict[int, str])
    named: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, source: Source, loops: tuple[str, ...] = ()) -> str:
        """Return the step that created the source of a statement; empty if there is none.

        Blocks that initialize a reduction have the step of the reduction. A source without a step
        has the step of its innermost enclosing loop that has one.
        """
        if source.uid is not None and source.uid // STEP_STRIDE in self.texts:
            return self.texts[source.uid // STEP_STRIDE]
        names = (source.name, source.name.removesuffix(FIRST_VALUE), *reversed(loops))
        return next((self.named[name] for name in names if name in self.named), "")


NO_STEPS = Steps()


class Sites:
    """The statements of a kernel, numbered in the order of compilation, with enclosing loops."""

    def __init__(self, steps: Steps) -> None:
        """Start without statements, outside of all loops."""
        self.steps = steps
        self.all: list[StatementSite] = []
        self._loops: list[str] = []

    def of(self, statement: Stmt, kind: str) -> StatementSite:
        """Return a new site for a statement."""
        source = getattr(statement, "source", NO_SOURCE)
        site = StatementSite(
            len(self.all),
            kind,
            source.name,
            tuple(self._loops),
            source.uid,
            self.steps.of(source, tuple(self._loops)),
            source.origins,
            source.note,
        )
        self.all.append(site)
        return site

    def enter(self, loop: Loop) -> None:
        """Enter a loop."""
        self._loops.append(loop.source.name or loop.var.name)

    def leave(self) -> None:
        """Leave the innermost loop."""
        self._loops.pop()
