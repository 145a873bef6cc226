"""How a name that means nothing is answered: with the names that do."""

from __future__ import annotations

import difflib

from .problem import ScheduleError


class NotFoundError(ScheduleError):
    """A query that finds nothing, or more than one; the message lists what there is."""

    title = "Not found"


def unknown(kind: str, name: str, names: list[str], place: str) -> str:
    """Say that there is no such thing, and what there is, the nearest name first.

    Examples
    --------
    >>> unknown("loop", "q", ["i", "j"], "block 'matmul'")
    "no loop 'q'; loops of block 'matmul' are i, j"
    """
    near = difflib.get_close_matches(name, names, n=1)
    ordered = near + [n for n in names if n not in near]
    shown = ", ".join(ordered[:12]) + (", ..." if len(ordered) > 12 else "")
    return f"no {kind} {name!r}; {kind}s of {place} are {shown or 'none'}"
