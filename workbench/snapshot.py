"""Static text and HTML output, displayed by saved notebooks without a kernel or scripts."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ..ir import script
from .protocol import TraceLine
from .selection import to_view

if TYPE_CHECKING:
    from .session import Session

_MAX_LINES = 160
"""The number of lines of the open function in the output."""

_FRAME = "border:1px solid #8884;border-radius:8px;overflow:hidden;font-family:system-ui,sans-serif"
_BAR = "padding:8px 14px;border-bottom:1px solid #8884;font-size:13px"
_CODE = "margin:0;padding:10px 14px;overflow:auto;font:12px/1.55 ui-monospace,monospace"


def snapshot_text(session: Session) -> str:
    """Return a summary of the state and the text of the open function."""
    return f"{_headline(session)}\n\n{_code(session)}"


def snapshot_html(session: Session) -> str:
    """Return HTML without scripts: summary, trace and the open function."""
    trace = session.history_view.trace(session.schedule, session.shown.pending).lines
    parts = [f'<div style="{_BAR}"><strong>Tilewright</strong> {escape(_headline(session))}</div>']
    if trace:
        inner = escape("\n".join(map(_line, trace)))
        parts.append(
            f'<details style="{_BAR}"><summary>Trace, {len(trace)} steps</summary>'
            f'<pre style="{_CODE}">{inner}</pre></details>'
        )
    parts.append(f'<pre style="{_CODE}">{escape(_code(session))}</pre>')
    return f'<div style="{_FRAME}">{"".join(parts)}</div>'


def _headline(session: Session) -> str:
    state, shown = session.state, session.shown
    counts = (("function", len(state.module.functions)), ("step", len(state.trace)))
    words = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts]
    if shown.selection is not None:
        handle = to_view(state, shown.selection)
        words.append(f"{handle.kind} {handle.name} selected")
    if shown.measurement is not None:
        words.append(f"{shown.measurement.median:.1f} µs at {shown.measurement.shapes}")
    if shown.verdict is not None:
        words.append(
            "matches the interpreter" if shown.verdict.agrees else "DIFFERS from the interpreter"
        )
    return " · ".join([session.target, *words])


def _line(line: TraceLine) -> str:
    return f"{line.text}  # {line.decisions}" if line.decisions else line.text


def _code(session: Session) -> str:
    module = session.state.module
    if session.shown.open not in module.functions:
        return "(empty module)"
    lines = script.to_text(session.function, module=module).splitlines()
    more = [f"# … {len(lines) - _MAX_LINES} more lines"] if len(lines) > _MAX_LINES else []
    return "\n".join([*lines[:_MAX_LINES], *more])
