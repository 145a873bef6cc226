"""A trace as text: JSON with one step a line, and Python with one step a line."""

from __future__ import annotations

import ast
import json
import keyword
import re
from typing import cast

from ..ir.errors import Json
from .primitive import STEPS, returned_shape
from .problem import TraceError
from .trace import Argument, ResultOf, Trace, TraceStep, Written

SCHEMA = 1


def to_json(trace: Trace) -> str:
    """Write a trace as lines of JSON, the first one a header.

    Examples
    --------
    >>> print(to_json(Trace((TraceStep("get_block", (("name", "mm"),), ("mm",)),))))
    {"trace": "tilewright", "schema": 1}
    {"op": "get_block", "args": {"name": "mm"}, "names": ["mm"]}
    """
    lines = [json.dumps({"trace": "tilewright", "schema": SCHEMA})]
    return "\n".join([*lines, *(json.dumps(step_json(s)) for s in trace.steps)])


def step_json(step: TraceStep) -> dict[str, Json]:
    """Write one step as plain data."""
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
    """Read what :func:`to_json` wrote; steps with unknown verbs are kept as they are.

    Raises
    ------
    TraceError
        If a line is not what a trace has there; the error names the line.

    Examples
    --------
    >>> trace = Trace((TraceStep("some_day", (("x", 1),)),))
    >>> from_json(to_json(trace)) == trace
    True
    """
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise TraceError("an empty text is no trace")
    header = _object(*lines[0])
    if header.get("trace") != "tilewright" or header.get("schema") != SCHEMA:
        raise TraceError(
            f"line {lines[0][0]} is no header of a trace of schema {SCHEMA}",
            hint='it should be {"trace": "tilewright", "schema": 1}',
        )
    steps = tuple(_step(n, _object(n, line)) for n, line in lines[1:])
    _check_operands(steps)
    return Trace(steps)


def _object(number: int, line: str) -> dict[str, Json]:
    try:
        found = cast("Json", json.loads(line))
    except json.JSONDecodeError as error:
        raise TraceError(f"line {number} is no JSON: {error.msg}") from None
    if not isinstance(found, dict):
        raise TraceError(f"line {number} is no JSON object")
    return found


def _step(number: int, data: dict[str, Json]) -> TraceStep:
    op, args = data.get("op"), data.get("args")
    names, decisions = data.get("names", []), data.get("decisions", {})
    if not isinstance(op, str) or not isinstance(args, dict):
        raise TraceError(f'line {number} has no "op" and "args"')
    if not isinstance(names, list) or not isinstance(decisions, dict):
        raise TraceError(f'line {number}: "names" is no list or "decisions" no object')
    arguments = tuple((name, _argument(number, value)) for name, value in args.items())
    return TraceStep(op, arguments, tuple(map(str, names)), decisions)


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
            raise TraceError(f"line {number}: {json.dumps(value)} is no argument of a step")
        case _:
            return value


def _check_operands(steps: tuple[TraceStep, ...]) -> None:
    for number, step in enumerate(steps):
        for operand in step.operands():
            if not 0 <= operand.step < number:
                raise TraceError(
                    f"step {number} ({step.op}) uses a result of step {operand.step}",
                    hint="steps use results of the steps before them",
                )


# ---------------------------------------------------------------- Python


def to_python(trace: Trace) -> str:
    """Write a trace as Python, one step a line, on a schedule called ``sch``.

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
    many = len(results) > 1 or gives_tuple(step.op)
    targets = ", ".join(results) + ("," if many and len(results) == 1 else "")
    return f"{targets} = {call}"


def gives_tuple(op: str) -> bool:
    """Whether the method of a verb gives a tuple, so that one result still needs a comma."""
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
    """Read what :func:`to_python` wrote, or a person in its manner; nothing is executed.

    Raises
    ------
    TraceError
        If a line is no call of a step; the error names the line.

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
        raise TraceError(f"line {error.lineno} cannot be read: {error.msg}") from None
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
    raise _unreadable(statement, "is no step; write names = sch.verb(...)")


def _read_call(call: ast.Call, names: tuple[str, ...], known: dict[str, ResultOf]) -> TraceStep:
    if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        raise _unreadable(call, "is no call of a schedule's method")
    op = call.func.attr
    fields = [p.name for p in STEPS[op].parameters()] if op in STEPS else []
    if len(call.args) > len(fields):
        raise _unreadable(call, f"gives {op} more values than it has parameters")
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
            raise _unreadable(node, "is neither a value nor the result of an earlier step")


def _unreadable(node: ast.AST, reason: str) -> TraceError:
    line = getattr(node, "lineno", 0)
    return TraceError(f"line {line}: {ast.unparse(node)} {reason}", where=f"line {line}")
