"""Unknown-name errors with suggestions."""

from __future__ import annotations

import difflib

from .problem import ScheduleError


class NotFoundError(ScheduleError):
    """A name that matches no part of the program, or more than one; the message lists the names."""

    title = "Unresolved name"


def unknown(kind: str, name: str, names: list[str], scope: str) -> str:
    """Return the message for an unknown name; it lists the known names, the most similar first.

    Examples
    --------
    >>> unknown("loop", "q", ["i", "j"], "block 'matmul'")
    "no loop 'q'; loops of block 'matmul' are i, j"
    """
    near = difflib.get_close_matches(name, names, n=1)
    ordered = near + [n for n in names if n not in near]
    shown = ", ".join(ordered[:12]) + (", ..." if len(ordered) > 12 else "")
    return f"no {kind} {name!r}; {kind}s of {scope} are {shown or 'none'}"
