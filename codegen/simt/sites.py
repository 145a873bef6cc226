"""Where in a program a statement of a kernel comes from: loops, block, schedule step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ...ir.errors import Json
from ...ir.identity import STEP_STRIDE, Uid
from ...ir.thread.nodes import NO_SOURCE, Loop, Source, Stmt

FIRST_VALUE: Final = "_init"
"""Ends the name of the block that gives a reduction its first value."""


@dataclass(frozen=True, slots=True)
class Site:
    """A statement of a kernel, told by what a person knows.

    Parameters
    ----------
    ordinal : int
        Position of the statement in the kernel, in program order.
    what : str
        The kind of statement, such as ``store``.
    name : str
        The block or loop that it was lowered from.
    loops : tuple of str
        The loops around it that are left, outermost first.
    uid : int, optional
        The loop-level node.
    step : str
        The schedule step that made that node; empty where it was in the program from the start.
    """

    ordinal: int
    what: str
    name: str = ""
    loops: tuple[str, ...] = ()
    uid: Uid | None = None
    step: str = ""
    origins: frozenset[str] = field(default=frozenset(), compare=False)

    def __str__(self) -> str:
        """Print the statement, its loops and its step."""
        parts = [self.what]
        if self.name:
            parts.append(f"of {self.name!r}")
        if self.loops:
            parts.append(f"in loops {', '.join(self.loops)}")
        if self.step:
            parts.append(f"(from {self.step})")
        return " ".join(parts)

    def to_json(self) -> dict[str, Json]:
        """Render as plain data."""
        return {
            "ordinal": self.ordinal,
            "what": self.what,
            "name": self.name,
            "loops": [*self.loops],
            "uid": self.uid,
            "step": self.step,
            "origins": [*sorted(self.origins)],
        }


@dataclass(frozen=True, slots=True)
class Steps:
    """Which schedule step made a node: its uid tells the ordinal of the step.

    Parameters
    ----------
    texts : Mapping of int to str
        Steps as text by their ordinal.
    named : Mapping of str to str
        Steps by the printed name of a node, for programs read back from text.
    """

    texts: Mapping[int, str] = field(default_factory=dict[int, str])
    named: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, source: Source, loops: tuple[str, ...] = ()) -> str:
        """Name the step that made what a statement comes from; empty if none did.

        Lowering splits the first value of a reduction off its block, under a name of its own; what
        no step made is told by the innermost loop around it that one did.
        """
        if source.uid is not None and source.uid // STEP_STRIDE in self.texts:
            return self.texts[source.uid // STEP_STRIDE]
        names = (source.name, source.name.removesuffix(FIRST_VALUE), *reversed(loops))
        return next((self.named[name] for name in names if name in self.named), "")


NO_STEPS = Steps()


class Sites:
    """Numbers the statements of a kernel as they are compiled, and knows the loops around."""

    def __init__(self, steps: Steps) -> None:
        """Start outside all loops."""
        self.steps = steps
        self.all: list[Site] = []
        self._loops: list[str] = []

    def of(self, statement: Stmt, what: str) -> Site:
        """Make the site of a statement."""
        source = getattr(statement, "source", NO_SOURCE)
        site = Site(
            len(self.all),
            what,
            source.name,
            tuple(self._loops),
            source.uid,
            self.steps.of(source, tuple(self._loops)),
            source.origins,
        )
        self.all.append(site)
        return site

    def enter(self, loop: Loop) -> None:
        """Go into a loop."""
        self._loops.append(loop.source.name or loop.var.name)

    def leave(self) -> None:
        """Come out of the innermost loop."""
        self._loops.pop()
