"""Signatures and documentation of functions: a part of the Python loader, without other imports.

An export contains the text after the marker; it replaces a line of ``loader.py``.
"""

from __future__ import annotations

# @BEGIN@
import inspect
import keyword
from collections import namedtuple


def _results_type(facts: dict):
    """Return the type of several results: a named tuple if all names are valid and different."""
    names = [r["name"] for r in facts["results"]]
    valid = all(n.isidentifier() and not keyword.iskeyword(n) and n[0] != "_" for n in names)
    if len(names) < 2 or not valid or len(set(names)) < len(names):
        return tuple
    return namedtuple("Results", names)._make  # noqa: PYI024  # the fields are in the manifest


def _signature_of(facts: dict, *, stateful: bool):
    """Return the signature for ``inspect``; None if a name is not valid in Python or not unique."""
    params = [p for p in facts["params"] if p["access"] != "state"]
    names = [p["name"] for p in params]
    valid = all(n.isidentifier() and not keyword.iskeyword(n) for n in names)
    if not valid or len(set(names)) < len(names):
        return None
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    made = [inspect.Parameter(p["name"], kind, annotation=p["annotation"]) for p in params]
    if stateful and "state" not in names:
        own = inspect.Parameter("state", inspect.Parameter.KEYWORD_ONLY, default=None)
        made.append(own.replace(annotation="State"))
    results = [f"{r['name']} : {r['annotation']}" for r in facts["results"]]
    returned = f"({', '.join(results)})" if len(results) > 1 else (results or ["None"])[0]
    return inspect.Signature(made, return_annotation=returned)


_ACCESS = {"in": "Read.", "out": "Written in place.", "inout": "Read, and written in place."}


def _documentation(facts: dict) -> str:
    """Return the documentation of a function: parameters, results, ranges, and assumptions."""
    params = [p for p in facts["params"] if p["access"] != "state"]
    states = [f"{p['name']}: {p['annotation']}" for p in facts["params"] if p["access"] == "state"]
    lines = [f"Compiled function {facts['name']!r}."]
    if params or states:
        lines += ["", "Parameters", "----------"]
    for p in params:
        lines += [f"{p['name']} : {p['annotation']}", f"    {_ACCESS[p['access']]}"]
    if states:
        lines += [
            "state : State, optional",
            f"    Read, and written in place: {', '.join(states)}.",
        ]
    if facts["results"]:
        lines += ["", "Returns", "-------"]
    for r in facts["results"]:
        lines.append(f"{r['name']} : {r['annotation']}")
        if r["param"] >= 0:
            written = facts["params"][r["param"]]["name"]
            lines.append(f"    The parameter {written!r}, written in place.")
    notes = [*map(_range, facts.get("symbols", ())), *facts.get("assumptions", ())]
    if notes:
        lines += ["", "Notes", "-----", *notes]
    return "\n".join(lines)


def _range(symbol: dict) -> str:
    """Return the range of a symbol as text."""
    name, lower, upper = symbol["name"], symbol["lower"], symbol["upper"]
    text = f"{name} is an integer"
    if lower is not None:
        text += f" of at least {lower}"
    if upper is not None:
        text += f"{' and' if lower is not None else ' of'} at most {upper}"
    if symbol["multiple_of"] > 1:
        text += f", a multiple of {symbol['multiple_of']}"
    return text if symbol["known_at_entry"] else f"{text}, computed by the call"
