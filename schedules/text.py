"""Text of traces: JSON here, and Python in :mod:`~.python_text`; both with one step per line.

In JSON, the line of a group precedes the lines of its steps, and contains their number.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Mapping
from typing import Final, cast

from ..errors import Json
from ..renamed import STEPS as RENAMED
from .problem import TraceError
from .python_text import from_python, step_lines, to_python
from .trace import Argument, Group, ResultOf, Trace, TraceStep, Written

__all__ = [
    "from_json",
    "from_python",
    "group_json",
    "notes_from_json",
    "step_json",
    "step_lines",
    "to_json",
    "to_python",
]

SCHEMA = 1

_DEPTH: Final = 64
"""The depth of nested lists up to which every function of traces can recur."""


def to_json(trace: Trace, notes: Mapping[int, str] | None = None) -> str:
    """Return a trace as lines of JSON; the first line is a header.

    Parameters
    ----------
    trace : Trace
        The steps.
    notes : mapping of int to str, optional
        Notes by the number of steps that lead to their state. A note is a part of the line of the
        step, of the outermost group that ends with it, or of the header.

    Examples
    --------
    >>> print(to_json(Trace((TraceStep("get_block", (("name", "mm"),), ("mm",)),))))
    {"trace": "tilewright", "schema": 1}
    {"op": "get_block", "args": {"name": "mm"}, "names": ["mm"]}
    """
    left = dict(notes or {})
    lines = [_noted({"trace": "tilewright", "schema": SCHEMA}, left, 0)]
    groups = list(trace.groups)
    for number, step in enumerate(trace.steps):
        while groups and groups[0].first == number:
            group = groups.pop(0)
            lines.append(_noted(group_json(group), left, group.stop))
        lines.append(_noted(step_json(step), left, number + 1))
    return "\n".join(map(json.dumps, lines))


def _noted(line: dict[str, Json], left: dict[int, str], steps: int) -> dict[str, Json]:
    """Return a line with the note on the state after it, which is not written again."""
    note = left.pop(steps, "")
    return {**line, "note": note} if note else line


def step_json(step: TraceStep) -> dict[str, Json]:
    """Return one step as JSON data."""
    arguments: Json = {name: _argument_json(value) for name, value in step.arguments}
    made: dict[str, Json] = {"op": step.op, "args": arguments}
    if step.names:
        made["names"] = list(step.names)
    if step.decisions:
        made["decisions"] = dict(step.decisions)
    return made


def group_json(group: Group) -> dict[str, Json]:
    """Return the line of a group as JSON data."""
    made: dict[str, Json] = {
        "group": group.op,
        "args": {name: _argument_json(value) for name, value in group.arguments},
        "steps": len(group),
    }
    if group.results:
        made["results"] = [[result.step, result.index] for result in group.results]
        made["names"] = list(group.names)
    if group.decisions:
        made["decisions"] = dict(group.decisions)
    return made


def _argument_json(value: Argument) -> Json:
    match value:
        case ResultOf(step=step, index=index):
            return {"ref": [step, index]}
        case Written(kind=kind, text=text):
            return {kind: text}
        case tuple():
            return [_argument_json(item) for item in value]
        case _:
            return value


def from_json(text: str) -> Trace:
    """Parse the output of :func:`to_json`.

    Former names of steps are replaced by the current ones. Steps with unknown names are kept as
    opaque steps.

    Raises
    ------
    TraceError
        If a line is invalid; the message contains its number.

    Examples
    --------
    >>> trace = Trace((TraceStep("some_day", (("x", 1),)),))
    >>> from_json(to_json(trace)) == trace
    True
    """
    if not isinstance(cast("object", text), str):
        raise TraceError(
            f"expected the text of a trace as str, got {type(text).__name__}",
            hint="read a file with from_json(Path(name).read_text())",
        )
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise TraceError("the trace is empty")
    header = _object(*lines[0])
    if header.get("trace") != "tilewright" or header.get("schema") != SCHEMA:
        raise TraceError(
            f"line {lines[0][0]} is not the header of a trace of schema {SCHEMA}",
            hint='the header is {"trace": "tilewright", "schema": 1}',
        )
    steps: list[TraceStep] = []
    groups: list[Group] = []
    for number, line in lines[1:]:
        data = _object(number, line)
        if "group" in data:
            groups.append(_group(number, data, len(steps)))
        else:
            steps.append(_step(number, data))
    trace = Trace(tuple(steps), tuple(groups))
    _check_operands(trace.steps)
    trace.check_groups()
    return trace


def notes_from_json(text: str) -> dict[int, str]:
    """Return the notes in the output of :func:`to_json`, by the number of steps before the state.

    A note on a line inside a group is one on the state after the group.

    Raises
    ------
    TraceError
        If the text is not a trace, or a note is not a text.

    Examples
    --------
    >>> trace = Trace((TraceStep("unroll", (("loop", "i"),)),))
    >>> notes_from_json(to_json(trace, {0: "as written", 1: "faster"}))
    {0: 'as written', 1: 'faster'}
    """
    from_json(text)
    notes: dict[int, str] = {}
    steps = stop = 0
    lines = ((n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip())
    for number, data in ((n, _object(n, line)) for n, line in lines):
        if "group" in data and steps >= stop:
            stop = steps + cast("int", data["steps"])
        elif "op" in data and "group" not in data:
            steps += 1
        note = data.get("note", "")
        if not isinstance(note, str):
            raise TraceError(f'line {number}: "note" must be a string', where=f"line {number}")
        at = max(steps, stop)
        if note:
            notes[at] = f"{notes[at]}\n{note}" if at in notes else note
    return notes


def _object(number: int, line: str) -> dict[str, Json]:
    where = f"line {number}"
    try:
        found = cast("Json", json.loads(line))
    except json.JSONDecodeError as error:
        raise TraceError(
            f"{where} is not valid JSON: {error.msg}, column {error.colno}", where=where
        ) from None
    except (RecursionError, ValueError) as error:  # deep nesting, integers of many digits
        raise TraceError(f"{where} is not valid JSON: {error}", where=where) from None
    if not isinstance(found, dict):
        raise TraceError(f"{where} is not a JSON object", where=where)
    return found


def _step(number: int, data: dict[str, Json]) -> TraceStep:
    op, args = data.get("op"), data.get("args")
    names, decisions = data.get("names", []), data.get("decisions", {})
    if not isinstance(op, str) or not isinstance(args, dict):
        raise TraceError(f'line {number}: "op" must be a string and "args" an object')
    name = next((name for name in (op, *args) if not _is_name(name)), None)
    if name is not None:
        raise TraceError(f"line {number}: {name!r} is not the name of a step or parameter")
    if not isinstance(names, list) or not isinstance(decisions, dict):
        raise TraceError(f'line {number}: "names" must be a list and "decisions" an object')
    arguments = tuple((name, _argument(number, value)) for name, value in args.items())
    return TraceStep(RENAMED.get(op, op), arguments, tuple(map(str, names)), decisions)


def _group(number: int, data: dict[str, Json], first: int) -> Group:
    count, results = data.get("steps"), data.get("results", [])
    called = _step(number, {**data, "op": data["group"]})
    if type(count) is not int or not isinstance(results, list):
        raise TraceError(f'line {number}: "steps" must be an integer and "results" a list')
    found = tuple(_argument(number, {"ref": result}) for result in results)
    references = tuple(r for r in found if isinstance(r, ResultOf))
    return Group(
        called.op,
        called.arguments,
        first,
        first + count,
        references,
        called.names,
        called.decisions,
    )


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _argument(number: int, value: Json, depth: int = 0) -> Argument:
    if depth > _DEPTH:
        raise TraceError(f"line {number}: the lists of an argument are nested too deeply")
    match value:
        case list():
            return tuple(_argument(number, item, depth + 1) for item in value)
        case {"ref": [int(step), int(index)]} if index >= 0 and bool not in (
            type(step),
            type(index),
        ):
            return ResultOf(step, index)
        case {"expr": str(text)}:
            return Written("expr", text)
        case {"map": str(text)}:
            return Written("map", text)
        case dict():
            raise TraceError(f"line {number}: {json.dumps(value)} is not a valid argument")
        case _:
            return value


def _check_operands(steps: tuple[TraceStep, ...]) -> None:
    for number, step in enumerate(steps):
        for operand in step.operands():
            if not 0 <= operand.step < number:
                raise TraceError(
                    f"step {number} ({step.op}) uses a result of step {operand.step}",
                    hint="steps can only use results of earlier steps",
                )
