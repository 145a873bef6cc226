"""What a saved notebook shows where no kernel and no script run: text, and plain HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ..ir import script
from .places import to_view
from .protocol import TraceLine

if TYPE_CHECKING:
    from .session import Session

_LINES = 160
"""Lines of the open function that are kept."""

_FRAME = "border:1px solid #8884;border-radius:8px;overflow:hidden;font-family:system-ui,sans-serif"
_BAR = "padding:8px 14px;border-bottom:1px solid #8884;font-size:13px"
_CODE = "margin:0;padding:10px 14px;overflow:auto;font:12px/1.55 ui-monospace,monospace"


def snapshot_text(session: Session) -> str:
    """The state in words, then the open function."""
    return f"{_headline(session)}\n\n{_code(session)}"


def snapshot_html(session: Session) -> str:
    """The state as HTML without script: headline, trace, the open function."""
    trace = session.story.trace(session.schedule, session.shown.pending)
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
    words = [f"{len(state.module.functions)} functions", f"{len(state.trace)} steps"]
    if shown.selection is not None:
        ref = to_view(state, shown.selection)
        words.append(f"{ref.kind} {ref.name} selected")
    if shown.timing is not None:
        words.append(f"{shown.timing.median:.1f} µs at {shown.timing.shapes}")
    if shown.verdict is not None:
        words.append("matches the interpreter" if shown.verdict.agrees else "DIFFERS")
    return " · ".join([session.target, *words])


def _line(line: TraceLine) -> str:
    return f"{line.text}  # {line.note}" if line.note else line.text


def _code(session: Session) -> str:
    module = session.state.module
    if session.shown.open not in module.functions:
        return "(empty module)"
    lines = script.to_text(session.function, module=module).splitlines()
    more = [f"# … {len(lines) - _LINES} more lines"] if len(lines) > _LINES else []
    return "\n".join([*lines[:_LINES], *more])
