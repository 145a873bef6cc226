"""Excerpts of printed functions with underlined nodes, for error messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from ...errors import Excerpt, Mark
from ..graph.nodes import GraphFunc
from ..identity import Uid
from ..loop.nodes import PrimFunc
from ..module import Module
from .errors import UnprintableProgramError
from .spans import Rendered
from .text import render

AROUND: Final = 1
"""The number of lines before and after an underlined line."""

MAX_MARKED: Final = 8
"""The number of underlined lines that an excerpt contains."""

MAX_COLUMNS: Final = 160
"""The number of characters of a line that an excerpt contains."""

_REGIONS: Final = re.compile(r"(?:reads|writes)\(")
"""The beginning of the lines that declare regions of a block."""


def excerpt(
    function: PrimFunc | GraphFunc,
    uids: Sequence[Uid | None],
    *,
    module: Module | None = None,
    within: Uid | None = None,
    defined: Sequence[Uid] = (),
) -> Excerpt | None:
    """Return the lines that define nodes, with the nodes underlined.

    Parameters
    ----------
    function : PrimFunc or GraphFunc
        The function that contains the nodes.
    uids : Sequence of Uid or None
        The loops, blocks, buffers or bindings to underline; None is the function itself.
    module : Module, optional
        The module of the function, whose constants the text may use.
    within : Uid, optional
        A loop or block. Uses of the nodes inside it are underlined, if there are any, instead of
        the definitions.
    defined : Sequence of Uid, optional
        Further nodes to underline, always at their definitions.

    Returns
    -------
    Excerpt or None
        The lines around the nodes and the first line of the function. None if the function cannot
        be printed, or contains none of the nodes.

    Examples
    --------
    >>> from tilewright.ir.script import parse
    >>> f = parse('''
    ... @prim_func
    ... def zero(y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         y[i] = 0.0
    ... ''').prim("zero")
    >>> print(excerpt(f, [f.body.uid]))
    2 | def zero(y: Out[(8,), f32]):
    3 |     for i in range(8):
      |         ^
    4 |         with block("y"):
    """
    try:
        rendered, lines = _rendered(function, module)
    except UnprintableProgramError:
        return None
    header = _header(lines, function.name)
    marks: list[Mark] = []
    for uid in dict.fromkeys(uids):
        marks += [header] if uid is None else _marks(rendered, function.name, uid, within)
    for uid in dict.fromkeys(defined):
        marks += _marks(rendered, function.name, uid, None)
    if not marks:
        return None
    return _around(function.name, lines, sorted(set(marks)), header.line)


def access_line(function: PrimFunc, uid: Uid | None, access: str) -> tuple[int, str] | None:
    """Return the number and the text of the line of a printed function that contains an access.

    Parameters
    ----------
    function : PrimFunc
        The function.
    uid : Uid or None
        The loop or block around the access; None or an unknown node is the whole function.
    access : str
        How the access begins: ``x[`` or ``checked(x[``.

    Returns
    -------
    tuple of (int, str) or None
        None if the function cannot be printed, or if no line or several lines contain the access.

    Examples
    --------
    >>> from tilewright.ir.script import parse
    >>> f = parse('''
    ... @prim_func
    ... def copy(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         y[i] = x[i]
    ... ''').prim("copy")
    >>> access_line(f, f.body.uid, "x[")
    (6, 'y[vi] = x[vi]')
    """
    try:
        rendered, lines = _rendered(function, None)
    except UnprintableProgramError:
        return None
    spans = () if uid is None else rendered.of(function.name, uid)
    scope = next((s for s in spans if s.role == "defined"), None)
    first, last = (scope.line, scope.last_line) if scope else (1, len(lines))
    begins = re.compile(rf"(?<!\w){re.escape(access)}")
    found = [
        (number, _clipped(text))
        for number in range(first, last + 1)
        if begins.search(text := lines[number - 1].strip()) and not _REGIONS.match(text)
    ]
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=4)
def _rendered(
    function: PrimFunc | GraphFunc, module: Module | None
) -> tuple[Rendered, tuple[str, ...]]:
    """Return the text of a function; cached, because one menu has many excerpts of a function."""
    rendered = render(function, module=module)
    return rendered, tuple(rendered.text.split("\n"))


def _header(lines: Sequence[str], name: str) -> Mark:
    """Return the name of the function in its ``def`` line."""
    for number, line in enumerate(lines, 1):
        if line.startswith(f"def {name}("):
            return Mark(number, 5, 5 + len(name))
    return Mark(1, 1, 1 + len(lines[0]))


def _marks(rendered: Rendered, function: str, uid: Uid, within: Uid | None) -> list[Mark]:
    spans = rendered.of(function, uid)
    if within is not None:
        scope = next((s for s in rendered.of(function, within) if s.role == "defined"), None)
        inside = [s for s in spans if scope and scope.line <= s.line <= scope.last_line]
        if inside:
            return [Mark(s.line, s.column, s.end) for s in inside]
    defined = [s for s in spans if s.role == "defined"] or list(spans[:1])
    return [Mark(s.line, s.column, s.end) for s in defined]


def _around(function: str, lines: Sequence[str], marks: list[Mark], header: int) -> Excerpt:
    marked = list(dict.fromkeys(m.line for m in marks))[:MAX_MARKED]
    kept = {header}
    for line in marked:
        kept.update(range(max(line - AROUND, 1), min(line + AROUND, len(lines)) + 1))
    # An omission of one line is longer than the line.
    kept.update(k for k in range(2, len(lines)) if k - 1 in kept and k + 1 in kept)
    return Excerpt(
        function,
        tuple((k, _clipped(lines[k - 1])) for k in sorted(kept)),
        tuple(m for m in marks if m.line in kept and m.column <= MAX_COLUMNS),
    )


def _clipped(line: str) -> str:
    return line if len(line) <= MAX_COLUMNS else f"{line[: MAX_COLUMNS - 4]} ..."
