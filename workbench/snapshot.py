"""Static text and HTML output, displayed by saved notebooks without a kernel or scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..display import code_html
from ..durations import duration
from ..errors import escaped
from ..ir import script
from .protocol import TraceLine
from .selection import to_view

if TYPE_CHECKING:
    from .session import Session

_MAX_LINES = 160
"""The number of lines of the open function that the output shows; HTML folds the others."""

_FRAME = "border:1px solid #8884;border-radius:8px;overflow:hidden;font-family:system-ui,sans-serif"
_BAR = "padding:8px 14px;border-bottom:1px solid #8884;font-size:13px"


def snapshot_text(session: Session) -> str:
    """Return a summary of the state and the text of the open function."""
    return f"{_headline(session)}\n\n{_code(session)}"


def snapshot_html(session: Session) -> str:
    """Return HTML without scripts: summary, trace and the open function."""
    trace = session.history_view.trace(session.schedule, session.document.pending).lines
    parts = [f'<div style="{_BAR}"><strong>Tilewright</strong> {escaped(_headline(session))}</div>']
    if trace:
        inner = code_html("\n".join(map(_line, trace)))
        parts.append(
            f'<details style="{_BAR}"><summary>Trace, {len(trace)} steps</summary>{inner}</details>'
        )
    notes = _notes(session)
    if notes:
        items = "".join(f"<li>{escaped(note)}</li>" for note in notes)
        parts.append(f'<ul style="{_BAR};margin:0;padding-left:30px">{items}</ul>')
    parts.append(code_html(_text(session), fold_after=_MAX_LINES))
    return f'<div style="{_FRAME}">{"".join(parts)}</div>'


def _headline(session: Session) -> str:
    state, view, document = session.state, session.view, session.document
    counts = (("function", len(state.module.functions)), ("step", len(state.trace)))
    words = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts]
    if view.selection is not None:
        handle = to_view(state, view.selection)
        words.append(f"{handle.kind} {handle.name} selected")
    if document.measurement is not None:
        measured = document.measurement
        words.append(f"{duration(measured.median)} at {measured.shapes}")
    if document.verdict is not None:
        words.append(
            "matches the interpreter" if document.verdict.agrees else "DIFFERS from the interpreter"
        )
    return " · ".join([session.target, *words])


def _notes(session: Session) -> list[str]:
    """Return the notes on the states, with the names of the states as in the history."""
    history = session.history_view.history(session.schedule, session.title)
    return [
        f"State {number}, {node.label}: {node.note}"
        for number, node in enumerate(history.nodes, 1)
        if node.note
    ]


def _line(line: TraceLine) -> str:
    return f"{line.text}  # {line.decisions}" if line.decisions else line.text


def _text(session: Session) -> str:
    module = session.state.module
    if session.view.open not in module.functions:
        return "(empty module)"
    return script.to_text(session.function, module=module)


def _code(session: Session) -> str:
    lines = _text(session).splitlines()
    more = [f"# … {len(lines) - _MAX_LINES} more lines"] if len(lines) > _MAX_LINES else []
    return "\n".join([*lines[:_MAX_LINES], *more])
