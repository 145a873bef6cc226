"""Text of traces: JSON and Python, both with one step per line."""

from __future__ import annotations

import ast
import json
import keyword
import re
from typing import cast

from ..errors import Json
from ..renamed import STEPS as RENAMED
from .problem import TraceError
from .registry import STEPS
from .step import returned_shape
from .trace import Argument, ResultOf, Trace, TraceStep, Written

SCHEMA = 1


def to_json(trace: Trace) -> str:
    """Return a trace as lines of JSON; the first line is a header.

    Examples
    --------
    >>> print(to_json(Trace((TraceStep("get_block", (("name", "mm"),), ("mm",)),))))
    {"trace": "tilewright", "schema": 1}
    {"op": "get_block", "args": {"name": "mm"}, "names": ["mm"]}
    """
    lines = [json.dumps({"trace": "tilewright", "schema": SCHEMA})]
    return "\n".join([*lines, *(json.dumps(step_json(s)) for s in trace.steps)])


def step_json(step: TraceStep) -> dict[str, Json]:
    """Return one step as JSON data."""
    arguments: Json = {name: _argument_json(value) for name, value in step.arguments}
    made: dict[str, Json] = {"op": step.op, "args": arguments}
    if step.names:
        made["names"] = list(step.names)
    if step.decisions:
        made["decisions"] = dict(step.decisions)
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
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise TraceError("the trace is empty")
    header = _object(*lines[0])
    if header.get("trace") != "tilewright" or header.get("schema") != SCHEMA:
        raise TraceError(
            f"line {lines[0][0]} is not the header of a trace of schema {SCHEMA}",
            hint='the header is {"trace": "tilewright", "schema": 1}',
        )
    steps = tuple(_step(n, _object(n, line)) for n, line in lines[1:])
    _check_operands(steps)
    return Trace(steps)


def _object(number: int, line: str) -> dict[str, Json]:
    try:
        found = cast("Json", json.loads(line))
    except json.JSONDecodeError as error:
        raise TraceError(
            f"line {number} is not valid JSON: {error.msg}, column {error.colno}"
        ) from None
    if not isinstance(found, dict):
        raise TraceError(f"line {number} is not a JSON object")
    return found


def _step(number: int, data: dict[str, Json]) -> TraceStep:
    op, args = data.get("op"), data.get("args")
    names, decisions = data.get("names", []), data.get("decisions", {})
    if not isinstance(op, str) or not isinstance(args, dict):
        raise TraceError(f'line {number}: "op" must be a string and "args" an object')
    if not isinstance(names, list) or not isinstance(decisions, dict):
        raise TraceError(f'line {number}: "names" must be a list and "decisions" an object')
    arguments = tuple((name, _argument(number, value)) for name, value in args.items())
    return TraceStep(RENAMED.get(op, op), arguments, tuple(map(str, names)), decisions)


def _argument(number: int, value: Json) -> Argument:
    match value:
        case list():
            return tuple(_argument(number, item) for item in value)
        case {"ref": [int(step), int(index)]}:
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


def to_python(trace: Trace) -> str:
    """Return a trace as Python, one step per line, on a schedule named ``sch``.

    Examples
    --------
    >>> block = TraceStep("get_block", (("name", "mm"), ("function", None)), ("mm",))
    >>> loops = TraceStep("get_loops", (("block", ResultOf(0, 0)),), ("i", "j"))
    >>> print(to_python(Trace((block, loops))))
    mm = sch.get_block(name='mm')
    i, j = sch.get_loops(block=mm)
    """
    named = _python_names(trace)
    return "\n".join(_python_line(step, named[k], named) for k, step in enumerate(trace.steps))


def _python_names(trace: Trace) -> list[tuple[str, ...]]:
    taken: set[str] = {"sch"}
    return [tuple(_variable(name, taken) for name in step.names) for step in trace.steps]


def _variable(name: str, taken: set[str]) -> str:
    base = re.sub(r"\W", "_", name)
    if not base.isidentifier() or keyword.iskeyword(base):
        base = f"_{base}"
    chosen, count = base, 1
    while chosen in taken:
        count += 1
        chosen = f"{base}_{count}"
    taken.add(chosen)
    return chosen


def _python_line(step: TraceStep, results: tuple[str, ...], named: list[tuple[str, ...]]) -> str:
    shown = ", ".join(
        f"{name}={_python_value(value, named)}"
        for name, value in step.arguments
        if value is not None
    )
    call = f"sch.{step.op}({shown})"
    if not results:
        return call
    many = len(results) > 1 or returns_tuple(step.op)
    targets = ", ".join(results) + ("," if many and len(results) == 1 else "")
    return f"{targets} = {call}"


def returns_tuple(op: str) -> bool:
    """Return whether the method of a step returns a tuple, even of one result."""
    return op in STEPS and returned_shape(STEPS[op]) == "many"


def _python_value(value: Argument, named: list[tuple[str, ...]]) -> str:
    match value:
        case ResultOf(step=step, index=index):
            if 0 <= step < len(named) and index < len(named[step]):
                return named[step][index]
            return f"result({step}, {index})"
        case Written(kind=kind, text=text):
            return text if kind == "map" else repr(text)
        case tuple():
            inner = ", ".join(_python_value(item, named) for item in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        case _:
            return repr(value)


def from_python(text: str) -> Trace:
    """Parse Python text in the form of :func:`to_python`; nothing is executed.

    Raises
    ------
    TraceError
        If a line is not a call of a step; the message contains its number.

    Examples
    --------
    >>> trace = from_python("mm = sch.get_block('mm')" + chr(10) + "i, j = sch.get_loops(mm)")
    >>> print(to_python(trace))
    mm = sch.get_block(name='mm')
    i, j = sch.get_loops(block=mm)
    """
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise TraceError(f"line {error.lineno} is not valid Python: {error.msg}") from None
    known: dict[str, ResultOf] = {}
    steps: list[TraceStep] = []
    for statement in module.body:
        names, call = _assignment(statement)
        steps.append(_read_call(call, names, known))
        known.update({name: ResultOf(len(steps) - 1, k) for k, name in enumerate(names)})
    return Trace(tuple(steps))


def _assignment(statement: ast.stmt) -> tuple[tuple[str, ...], ast.Call]:
    match statement:
        case ast.Expr(value=ast.Call() as call):
            return (), call
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
            return (name,), call
        case ast.Assign(
            targets=[ast.Tuple(elts=elements) | ast.List(elts=elements)], value=ast.Call() as call
        ):
            if all(isinstance(e, ast.Name) for e in elements):
                return tuple(e.id for e in elements if isinstance(e, ast.Name)), call
        case _:
            pass
    raise _invalid(statement, "is not a step; write names = sch.step(...)")


def _read_call(call: ast.Call, names: tuple[str, ...], known: dict[str, ResultOf]) -> TraceStep:
    if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        raise _invalid(call, "is not a call of a schedule's method")
    op = RENAMED.get(call.func.attr, call.func.attr)
    fields = [p.name for p in STEPS[op].parameters()] if op in STEPS else []
    if len(call.args) > len(fields):
        raise _invalid(
            call, f"passes {len(call.args)} arguments to {op}, which has {len(fields)} parameters"
        )
    given = list(zip(fields, call.args, strict=False))
    given += [(k.arg or "", k.value) for k in call.keywords]
    arguments = tuple((name, _read_value(value, known)) for name, value in given)
    return TraceStep(op, arguments, names)


def _read_value(node: ast.expr, known: dict[str, ResultOf]) -> Argument:
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return tuple(_read_value(e, known) for e in elements)
        case ast.Lambda():
            return Written("map", ast.unparse(node))
        case _:
            raise _invalid(node, "is neither a literal nor the result of an earlier step")


def _invalid(node: ast.AST, reason: str) -> TraceError:
    line = getattr(node, "lineno", 0)
    return TraceError(f"line {line}: {ast.unparse(node)} {reason}", where=f"line {line}")
