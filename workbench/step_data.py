"""Steps as data: conversion of the steps of the protocol and of forms."""

from __future__ import annotations

import ast
import contextlib
import reprlib
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast, get_args, get_origin

from ..errors import TilewrightError
from ..locks import parse_expression
from ..schedules import STEPS, Primitive, State
from ..schedules.apply import Composite, prepared
from ..schedules.handles import (
    HANDLE_TYPES,
    BindingRef,
    BlockRef,
    BufferRef,
    FunctionRef,
    Handle,
    LoopRef,
)
from ..schedules.lookup import find
from ..schedules.registry import step_type
from ..schedules.step import Parameter
from ..schedules.values import Value, value_text
from . import protocol_steps
from .protocol_steps import HandleKind, StepData
from .selection import to_handle, to_view

Suggestable: TypeAlias = Primitive | Composite
"""A step that a menu suggests."""

MAX_VALUE_LENGTH = 500
"""The maximum length of a parameter's text; a permutation of many indices is shorter."""

_KINDS: Mapping[object, HandleKind] = {
    FunctionRef: "function",
    LoopRef: "loop",
    BlockRef: "block",
    BufferRef: "buffer",
    BindingRef: "binding",
}


class FormError(TilewrightError):
    """A step of the browser with a text that is not a valid value, or without a parameter."""

    title = "Invalid parameter"


def to_data(step: Suggestable, function: str, state: State) -> StepData:
    """Return a step as data; the texts of its parameters name parts of a function."""
    handles: dict[str, list[protocol_steps.Handle]] = {}
    values: dict[str, str] = {}
    for name, value in step.values():
        found = _handles(value)
        if found:
            handles[name] = [to_view(state, handle) for handle in found]
        else:
            values[name] = value_text(value)
    return StepData(step.verb(), function, handles, values)


def _handles(value: Value) -> list[Handle]:
    """Return the handles of a value that consists of handles, else an empty list."""
    items = value if isinstance(value, tuple) else (value,)
    found = [item for item in items if isinstance(item, HANDLE_TYPES)]
    return found if len(found) == len(items) else []


def to_step(data: StepData, state: State) -> Suggestable:
    """Return the step of data of the browser.

    Raises
    ------
    FormError
        If a text is not a literal, the name of a part of the program, or a term over symbols, if a
        required parameter is missing, or if the step has no parameter of a name.
    UnknownStepError
        If there is no such step.
    """
    cls = step_type(data.op)
    if not issubclass(cls, Primitive | Composite):
        raise FormError(f"{data.op} does not change the program", hint="choose another step")
    known = {parameter.name: parameter for parameter in cls.parameters()}
    unknown = next((n for n in (*data.values, *data.handles) if n not in known), None)
    if unknown is not None:
        raise FormError(
            f"{data.op} has no parameter {reprlib.repr(unknown)}",
            hint=f"its parameters are {', '.join(known) or 'none'}",
        )
    given = ((name, _value(parameter, data, state)) for name, parameter in known.items())
    arguments = {name: value for name, value in given if value is not _MISSING}
    return prepared(state, cast("Any", cls)(**arguments))


_MISSING = object()
"""The value of a parameter that has its default."""


def _value(parameter: Parameter, data: StepData, state: State) -> object:
    """Return the value of a parameter: of its text, else its handles, else the default."""
    name, text = parameter.name, data.values.get(parameter.name)
    listed = data.handles.get(name, [])
    if text is None and not listed:
        if parameter.required:
            raise FormError(f"{name}: a value is required")
        return _MISSING
    handles = [_existing(item, name, state) for item in listed]
    value = tuple(handles) if _is_tuple(parameter.type) or len(handles) != 1 else handles[0]
    if text is None or (handles and text.strip() == value_text(value)):
        return value
    return _read(parameter, text.strip(), data.function, state)


def _existing(item: protocol_steps.Handle, name: str, state: State) -> Handle:
    handle = to_handle(state, item.kind, item.function, item.uid)
    if handle is None:
        raise FormError(
            f"{name}: {item.kind} {reprlib.repr(item.name)} does not exist any more",
            hint="select a part of the program again",
        )
    return handle


def _read(parameter: Parameter, text: str, function: str, state: State) -> object:
    """Return the value of a literal or of names of parts; other text stays text."""
    name = parameter.name
    if not text:
        raise FormError(f"{name}: a value is required")
    if len(text) > MAX_VALUE_LENGTH:
        raise FormError(
            f"{name}: the value has {len(text)} characters; at most {MAX_VALUE_LENGTH} are allowed"
        )
    try:
        node = parse_expression(text).body
    except SyntaxError as error:
        raise FormError(f"{name}: {text!r} is not a valid value: {error.msg}") from None
    kinds = handle_types(parameter.type)
    value = _literal(node, text)
    return _named(value, kinds, function, state) if kinds else value


def _literal(node: ast.expr, text: str) -> object:
    match node:
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(_literal(item, ast.unparse(item)) for item in items)
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case _:
            return text


def _named(value: object, kinds: tuple[type[Handle], ...], function: str, state: State) -> object:
    """Return the parts with these names; a name of no part stays text, which is reported later."""
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return tuple(_named(item, kinds, function, state) for item in items)
    if not isinstance(value, str):
        return value
    for kind in kinds:
        if function not in state.module.functions:
            break
        with contextlib.suppress(TilewrightError):  # no part of this kind has the name
            return find(state, kind, value, function)
    return value


def handle_types(hint: Any) -> tuple[type[Handle], ...]:
    """Return the kinds of handles that a parameter of a type accepts, also in a tuple.

    Examples
    --------
    >>> [kind.__name__ for kind in handle_types(tuple[LoopRef, ...])]
    ['LoopRef']
    >>> handle_types(int | None)
    ()
    """
    if hint in HANDLE_TYPES:
        return (hint,)
    if get_origin(hint) is Literal:
        return ()
    return tuple(kind for argument in get_args(hint) for kind in handle_types(argument))


def handle_kinds(hint: Any) -> list[HandleKind]:
    """Return the kinds of parts that a parameter of a type accepts, as words."""
    return [_KINDS[kind] for kind in handle_types(hint)]


def _is_tuple(hint: Any) -> bool:
    return get_origin(hint) is tuple or any(get_origin(a) is tuple for a in get_args(hint))


def all_steps() -> list[type[Suggestable]]:
    """Return the classes of all steps that change a program, by name."""
    classes = (STEPS[name] for name in sorted(STEPS))
    return [cls for cls in classes if issubclass(cls, Primitive | Composite)]
