"""Differences between the texts of two programs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ...errors import escaped, visible
from ..graph.nodes import GraphFunc
from ..loop.nodes import PrimFunc
from ..module import Module
from .node_text import program_text

Program: TypeAlias = "Module | PrimFunc | GraphFunc"
Kind: TypeAlias = Literal["same", "removed", "added", "gap"]

CONTEXT: Final = 3
"""The number of equal lines around each change."""

MAX_LINES: Final = 2000
"""The number of lines of a difference that HTML contains."""

_SIGNS: Final[dict[Kind, str]] = {"same": " ", "removed": "-", "added": "+", "gap": "@"}
_BACKGROUNDS: Final[dict[Kind, str]] = {
    "same": "transparent",
    "removed": "rgba(220,60,60,.18)",
    "added": "rgba(40,160,80,.18)",
    "gap": "rgba(128,128,128,.12)",
}
_FRAME: Final = (
    "margin:4px 0;padding:8px 0;overflow:auto;border-radius:6px;color:inherit;"
    "background:rgba(128,128,128,.08);font:12px/1.55 ui-monospace,monospace"
)


EXACT: Final = 2000
"""The number of lines up to which texts are compared exactly.

The time of an exact comparison is quadratic in the number of equal lines."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a difference, with its number in each text; None if that text lacks it."""

    kind: Kind
    text: str
    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Diff:
    r"""The difference between two texts.

    ``print`` shows it in the unified format; a notebook cell shows both line numbers, with added
    and removed lines in color.

    Parameters
    ----------
    before, after : str
        The texts.
    titles : tuple of (str, str)
        The names of the two versions.

    Examples
    --------
    >>> print(Diff("a\nb\nc", "a\nd\nc", ("start", "head")))
    --- start
    +++ head
    @@ line 1 of start, line 1 of head @@
     a
    -b
    +d
     c
    """

    before: str
    after: str
    titles: tuple[str, str] = ("before", "after")

    def __bool__(self) -> bool:
        """Return whether the texts differ."""
        return self.before != self.after

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of added and removed lines."""
        kinds = [line.kind for line in self.lines()]
        return kinds.count("added"), kinds.count("removed")

    def lines(self) -> Iterator[Line]:
        """Yield the changed lines with their context, and a line of kind "gap" before each part."""
        before, after = self.before.split("\n"), self.after.split("\n")
        long = max(len(before), len(after)) > EXACT
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=long)
        for group in matcher.get_grouped_opcodes(CONTEXT):
            old, new = group[0][1] + 1, group[0][3] + 1
            yield Line("gap", f"line {old} of {self.titles[0]}, line {new} of {self.titles[1]}")
            for tag, i, i_end, j, j_end in group:
                if tag == "equal":
                    for k in range(i_end - i):
                        yield Line("same", before[i + k], i + k + 1, j + k + 1)
                    continue
                for k in range(i, i_end):
                    yield Line("removed", before[k], before=k + 1)
                for k in range(j, j_end):
                    yield Line("added", after[k], after=k + 1)

    def __str__(self) -> str:
        """Return the unified format."""
        if not self:
            return f"no difference between {self.titles[0]} and {self.titles[1]}"
        made = [f"--- {self.titles[0]}", f"+++ {self.titles[1]}"]
        for line in self.lines():
            text = f"@ {line.text} @@" if line.kind == "gap" else line.text
            made.append(_SIGNS[line.kind] + text)
        return visible("\n".join(made))

    def __repr__(self) -> str:
        """Return the numbers of added and removed lines."""
        added, removed = self.counts
        return f"<Diff of {self.titles[0]} and {self.titles[1]}: {added} added, {removed} removed>"

    def _repr_html_(self) -> str:
        """Return static HTML."""
        added, removed = self.counts
        names = " → ".join(escaped(title) for title in self.titles)
        title = f"<div><strong>{names}</strong>: {added} added, {removed} removed lines</div>"
        lines = list(self.lines())
        width = len(str(max(self.before.count("\n"), self.after.count("\n")) + 1))
        rows = "".join(_row(line, width) for line in lines[:MAX_LINES])
        hidden = len(lines) - MAX_LINES
        more = f"<div>{hidden} more lines; print() shows all</div>" if hidden > 0 else ""
        return f'<div>{title}<pre style="{_FRAME}">{rows}</pre>{more}</div>'


def _row(line: Line, width: int) -> str:
    numbers = " ".join(f"{k or '':>{width}}" for k in (line.before, line.after))
    sign = " " if line.kind == "gap" else _SIGNS[line.kind]
    style = f"display:inline-block;min-width:100%;background:{_BACKGROUNDS[line.kind]}"
    text = escaped(line.text)
    return (
        f'<span style="{style}"><span style="opacity:.45;user-select:none"> {numbers} </span>'
        f"{sign} {text}</span>\n"
    )


def diff(before: Program, after: Program, titles: tuple[str, str] = ("before", "after")) -> Diff:
    """Return the difference between the texts of two programs.

    Parameters
    ----------
    before, after : Module, PrimFunc or GraphFunc
        The programs.
    titles : tuple of (str, str)
        The names of the two versions.

    Returns
    -------
    Diff
        The difference; it is false if the texts are equal.
    """
    return Diff(program_text(before), program_text(after), titles)
