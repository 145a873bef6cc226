"""Tables and highlighted code, as text for terminals and as static HTML for notebooks.

The HTML contains no scripts and no style sheets, so that it works in saved notebooks. Colors are
relative to those of the page, so that it is readable in light and dark themes.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .errors import Mark, escaped, visible

Cell: TypeAlias = "str | int | float | None"
Language: TypeAlias = Literal["python", "llvm", "asm", "text"]

FOLD_AFTER: Final = 400
"""The number of lines of a program that HTML shows; the rest is folded."""

FOLDED: Final = 1600
"""The number of folded lines that HTML contains; the others are counted."""

_LEXERS: Final = {"python": "python", "llvm": "llvm", "asm": "gas"}

_FRAME: Final = (
    "margin:4px 0;padding:8px 12px;overflow:auto;background:rgba(128,128,128,.08);"
    "border-radius:6px;font:12px/1.55 ui-monospace,monospace;color:inherit"
)
_NUMBER: Final = "opacity:.45;user-select:none"
_LINE: Final = "background:rgba(255,180,0,.18);display:inline-block;min-width:100%"
_MARK: Final = "color:inherit;background:rgba(255,180,0,.4);border-radius:2px"
_CELL: Final = "padding:2px 12px;border-bottom:1px solid rgba(128,128,128,.3);text-align:"
_COLORS: Final = {
    "Keyword": "#b04fc4",
    "Number": "#a67408",
    "String": "#4a9150",
    "Comment": "#808080",
    "Decorator": "#4078f2",
    "Function": "#4078f2",
}
"""Colors by kind of token; each has a contrast of at least 3.5 on light and dark gray."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of values, with aligned text and HTML forms.

    Parameters
    ----------
    columns : tuple of str
        The headings; state the units in them.
    rows : tuple of tuple
        The cells of each row: text, numbers, or None for an empty cell.
    title : str
        A line above the table.
    notes : tuple of str
        Lines below the table.

    Examples
    --------
    >>> print(Table(("kernel", "time (µs)"), (("matmul", 12.5), ("softmax", 3))))
    kernel      time (µs)
    --------  -----------
    matmul           12.5
    softmax             3
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return title, aligned columns and notes as text."""
        from tabulate import tabulate

        rows = [[_shown(cell) for cell in row] for row in self.rows]
        aligned = [_alignment(row[k] for row in self.rows) for k in range(len(self.columns))]
        body = tabulate(
            rows,
            headers=[visible(column) for column in self.columns],
            tablefmt="simple",
            colalign=aligned if rows else None,
            headersglobalalign=None,
            disable_numparse=True,
            preserve_whitespace=True,
        )
        lines = [line.rstrip() for line in body.splitlines()]
        title = [visible(self.title)] if self.title else []
        return "\n".join([*title, *lines, *map(visible, self.notes)])

    def to_html(self) -> str:
        """Return static HTML."""
        aligned = [_alignment(row[k] for row in self.rows) for k in range(len(self.columns))]
        head = "".join(
            f'<th scope="col" style="{_CELL}{side}">{escaped(column)}</th>'
            for column, side in zip(self.columns, aligned, strict=True)
        )
        body = "".join(
            "<tr>"
            + "".join(
                f'<td style="{_CELL}{side}">{escaped(_shown(cell))}</td>'
                for cell, side in zip(row, aligned, strict=True)
            )
            + "</tr>"
            for row in self.rows
        )
        caption = f"<div><strong>{escaped(self.title)}</strong></div>" if self.title else ""
        notes = "".join(f'<div style="opacity:.75">{escaped(note)}</div>' for note in self.notes)
        return (
            f'<div>{caption}<table style="border-collapse:collapse;font-size:13px">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}</div>"
        )

    _repr_html_ = to_html  # the name that notebooks call
    __repr__ = __str__


def _shown(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.4g}" if isinstance(cell, float) else visible(str(cell))


def _alignment(cells: Iterable[Cell]) -> Literal["left", "right"]:
    found = [cell for cell in cells if cell is not None]
    return "right" if found and all(isinstance(c, int | float) for c in found) else "left"


def code_html(
    text: str,
    *,
    language: Language = "python",
    highlight: Sequence[Mark] = (),
    title: str = "",
    fold_after: int = FOLD_AFTER,
) -> str:
    """Return a program as static HTML with line numbers and highlighted tokens.

    Parameters
    ----------
    text : str
        The program; names in it may contain any characters.
    language : str
        The language of the text: ``"python"`` for IR, ``"llvm"``, ``"asm"`` or ``"text"``.
    highlight : Sequence of Mark
        Parts to mark; their lines are marked as well.
    title : str
        A line above the program.
    fold_after : int
        The number of lines to show. Further lines are folded, at most ``FOLDED`` of them.

    Returns
    -------
    str
        The HTML.

    Examples
    --------
    >>> "<script>" in code_html("x = '<script>'")
    False
    """
    lines = text.removesuffix("\n").split("\n") if text else []
    kept = lines[: fold_after + FOLDED]
    width = len(str(len(lines)))
    made = list(_code_lines(kept, language, highlight, width))
    parts = [f"<div><strong>{escaped(title)}</strong></div>"] if title else []
    parts.append(f'<pre style="{_FRAME}">{"".join(made[:fold_after])}</pre>')
    if len(made) > fold_after:
        more = len(lines) - fold_after
        cut = len(lines) - len(kept)
        summary = f"{more} more lines" + (f", {len(made) - fold_after} shown" if cut else "")
        end = f"\n... {cut} more lines; print() shows all" if cut else ""
        parts.append(
            f'<details><summary style="cursor:pointer">{summary}</summary>'
            f'<pre style="{_FRAME}">{"".join(made[fold_after:])}{end}</pre></details>'
        )
    return f"<div>{''.join(parts)}</div>"


def _code_lines(
    lines: Sequence[str], language: Language, highlight: Sequence[Mark], width: int
) -> Iterator[str]:
    """Yield each line as HTML that ends with a line feed."""
    marks: dict[int, list[Mark]] = {}
    for mark in highlight:
        marks.setdefault(mark.line, []).append(mark)
    colored = _colored([visible(line) for line in lines], language)
    for number, (line, tokens) in enumerate(zip(lines, colored, strict=True), 1):
        gutter = f'<span style="{_NUMBER}">{number:>{width}}  </span>'
        if number in marks:
            inner = _marked(line, sorted(marks[number]))
            yield f'<span style="{_LINE}">{gutter}{inner}</span>\n'
        else:
            yield f"{gutter}{tokens}\n"


def _marked(line: str, marks: list[Mark]) -> str:
    """Return a line as HTML with marked parts, without colors."""
    made, position = "", 0
    for mark in marks:
        start, end = max(mark.column - 1, position), max(mark.end - 1, position)
        made += escaped(line[position:start])
        made += f'<mark style="{_MARK}">{escaped(line[start:end])}</mark>'
        position = end
    return made + escaped(line[position:])


def _colored(lines: list[str], language: Language) -> list[str]:
    """Return each line as HTML with colored tokens."""
    if language == "text":
        return [html.escape(line) for line in lines]
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(_LEXERS[language], stripnl=False, ensurenl=False)
    made: list[str] = [""]
    text = "\n".join(lines)
    for kind, value in lexer.get_tokens(text):
        color = _color(str(kind))
        for k, part in enumerate(value.split("\n")):
            if k:
                made.append("")
            if part:
                safe = html.escape(part)
                made[-1] += f'<span style="color:{color}">{safe}</span>' if color else safe
    return made if lines else []


def _color(kind: str) -> str:
    return next((color for word, color in _COLORS.items() if f".{word}" in kind), "")


def present(view: object) -> None:
    """Show an object: as HTML if a notebook runs this code, else with ``print``.

    A running notebook has loaded IPython, so it is looked up among the loaded modules and never
    imported.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        print(view)  # noqa: T201
    else:
        sys.modules["IPython.display"].display(view)
