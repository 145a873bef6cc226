"""View of a trace: one line per step, and the groups of composite steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import cast

from ..locks import parse_expression
from ..schedules import STEPS, Query, Trace, to_python
from ..schedules.coerce import type_text
from ..schedules.python_text import GROUP, RETURNS
from ..schedules.trace import Argument, Group, ResultOf, TraceStep, Written
from . import protocol, protocol_steps
from .pending import Pending
from .protocol import TraceGroup, TraceLine, TraceStatus
from .recent import Recent
from .serialization import ProtocolError

_OPENING = re.compile(rf"with sch\.{GROUP}\('(\w+)'(?:, )?(.*)\):$")
_RETURNS = re.compile(rf"sch\.{RETURNS}\((.*)\)$")

_RECENT: Recent[tuple[list[str], list[str]]] = Recent()
"""The texts of the last traces."""


def trace_view(trace: Trace, pending: Pending, milliseconds: Mapping[int, float]) -> protocol.Trace:
    """Return the lines of a trace and of the pending steps, and the groups of the trace.

    Parameters
    ----------
    trace : Trace
        The applied steps.
    pending : Pending
        The steps after them, which were not applied.
    milliseconds : Mapping of int to float
        The duration of a step or composite step, by the index of its last step.
    """
    whole = pending.after(trace)
    outer = _outermost(trace)
    inner = {index for group in outer for index in range(group.first, group.stop)}
    texts, headers = _RECENT.get(whole, None, lambda: _texts(whole))
    lines = [
        TraceLine(
            index=index,
            text=text,
            step=step.op,
            status=_status(step) if index < len(trace) else "pending",
            decisions=", ".join(f"{name}: {value}" for name, value in step.decisions.items()),
            milliseconds=None if index in inner else milliseconds.get(index),
        )
        for index, (text, step) in enumerate(zip(texts, whole.steps, strict=True))
    ]
    groups = [
        TraceGroup(
            index=index,
            first=group.first,
            stop=group.stop,
            step=group.op,
            text=text,
            status="done",
            milliseconds=milliseconds.get(group.stop - 1) if group in outer else None,
            fields=_fields(group),
        )
        for index, (text, group) in enumerate(zip(headers, trace.groups, strict=True))
    ]
    return protocol.Trace(lines, groups, pending.reason)


def _outermost(trace: Trace) -> list[Group]:
    """Return the groups that are not inside another one."""
    found: list[Group] = []
    for group in trace.groups:
        if not found or group.first >= found[-1].stop:
            found.append(group)
    return found


def _texts(trace: Trace) -> tuple[list[str], list[str]]:
    """Return the texts of the steps, and of the groups as calls, with the same names of results."""
    steps: list[str] = []
    groups: list[str] = []
    open_: list[tuple[int, int]] = []
    for line in to_python(trace).splitlines():
        text = line.lstrip()
        indent = len(line) - len(text)
        while open_ and open_[-1][1] >= indent:
            open_.pop()
        if found := _OPENING.match(text):
            open_.append((len(groups), indent))
            groups.append(f"sch.{found[1]}({found[2]})")
        elif found := _RETURNS.match(text):
            at = open_[-1][0]
            groups[at] = f"{found[1]} = {groups[at]}"
        else:
            steps.append(text)
    return steps, groups


def _status(step: TraceStep) -> TraceStatus:
    cls = STEPS.get(step.op)
    if cls is None:
        return "opaque"
    return "query" if issubclass(cls, Query) else "done"


def _fields(group: Group) -> list[protocol_steps.Field]:
    """Return the parameters of a composite step whose values are literals."""
    cls = STEPS.get(group.op)
    values = dict(group.arguments)
    return [
        protocol_steps.Field(
            name=parameter.name,
            type=type_text(parameter.type),
            doc=parameter.doc,
            value=_value_text(values[parameter.name]),
            choices=[],
            required=parameter.required,
            kinds=[],
            unavailable={},
        )
        for parameter in (() if cls is None else cls.parameters())
        if parameter.name in values and not any(_results(values[parameter.name]))
    ]


def _results(value: Argument) -> Iterator[ResultOf]:
    if isinstance(value, ResultOf):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _results(item)


def _value_text(value: Argument) -> str:
    match value:
        case Written(text=text):
            return text
        case tuple():
            inner = ", ".join(map(_value_text, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case _:
            return repr(value)


def group_values(group: Group, texts: Mapping[str, str]) -> dict[str, Argument]:
    """Return the changed arguments of a composite step.

    Parameters
    ----------
    group : Group
        The recorded composite step.
    texts : Mapping of str to str
        The values of its form as Python text; a text that is not a literal is a symbolic term.

    Raises
    ------
    ProtocolError
        If the composite step does not have a parameter, or a text is empty.
    """
    known = {field.name: field for field in _fields(group)}
    for name in texts:
        if name not in known:
            raise ProtocolError(f"composite step {group.op!r} has no parameter {name!r}")
    changed = {n: t.strip() for n, t in texts.items() if t.strip() != known[n].value}
    return {name: _argument(name, text) for name, text in changed.items()}


def _argument(name: str, text: str) -> Argument:
    if not text:
        raise ProtocolError(f"{name}: a value is required")
    try:
        return _frozen(ast.literal_eval(parse_expression(text.lstrip(" \t"))))
    except (ValueError, SyntaxError):
        return Written("map" if text.startswith("lambda") else "expr", text)


def _frozen(value: object) -> Argument:
    match value:
        case tuple() | list():
            return tuple(map(_frozen, cast("tuple[object, ...]", value)))
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise ProtocolError(f"{value!r} is not a value of a parameter")
