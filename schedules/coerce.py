"""Conversion of arguments from code, forms and traces into the values of a step's fields."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin

from ..ir.loop.nodes import IndexMap
from ..ir.symbolic import Expr, OperandError, SymbolicSyntaxError, Var, as_expr, parse_expr, var
from ..locks import parse_expression
from ..nearest import did_you_mean
from .handles import HANDLE_TYPES, BufferRef, FunctionRef, Handle, kind_of, label
from .problem import ParameterError
from .step import Step
from .suggest_names import NotFoundError

_Step = TypeVar("_Step", bound=Step)
Symbols = Callable[[Step], Mapping[str, Var]]
Find = Callable[[type[Handle], str], Handle]


@dataclass(frozen=True, slots=True)
class Context:
    """The lookup functions for names.

    Parameters
    ----------
    symbols : callable
        Returns the symbols that the terms of a step may name, by the function of its handles.
    find : callable
        Returns the handle of a kind for a name.
    buffer : callable
        Returns the buffer of an access of the step's block, by its index.
    """

    symbols: Symbols
    find: Find
    buffer: Callable[[int], BufferRef]


def coerced(step: _Step, context: Context) -> _Step:
    """Return a step with its fields converted to their declared types.

    Lists become tuples. Text becomes a symbolic term, an index map, or the handle with that name,
    as the field requires. A Python function becomes an index map. A number becomes the buffer of an
    access of the step's block.

    Raises
    ------
    ParameterError
        If a value cannot be converted to the type of its field.
    """
    hints = _hints(type(step))
    for name, exact in _exact(type(step)):
        value = getattr(step, name)
        if type(value) in exact and not _is_long(value):
            continue
        options = hints[name]
        if type(value) is not list and not _is_long(value) and _is_any(value, options):
            continue
        new = _converted(step, name, options, context)
        if new is not value:
            step = cast("_Step", dataclasses.replace(cast("Any", step), **{name: new}))
    return step


@lru_cache(maxsize=1024)
def _order(cls: type[Step]) -> tuple[str, ...]:
    """Return the names of the fields, those of handles first.

    The symbols that terms may name are those of the function of the handles.
    """
    hints, names = _hints(cls), (f.name for f in dataclasses.fields(cast("Any", cls)))
    return tuple(sorted(names, key=lambda name: not _names_handle(hints[name])))


@lru_cache(maxsize=1024)
def _exact(cls: type[Step]) -> tuple[tuple[str, frozenset[type]], ...]:
    """Return the names of the fields in order, each with the classes of values that it accepts.

    Further values, such as those of subclasses, are accepted by :func:`_is_any`.
    """
    found: list[tuple[str, frozenset[type]]] = []
    for name in _order(cls):
        options = (NoneType if option is None else option for option in _hints(cls)[name])
        plain = [x for x in options if isinstance(x, type) and get_origin(x) is None]
        found.append((name, frozenset(plain) - {list}))
    return tuple(found)


def _is_long(value: object) -> bool:
    return isinstance(value, int) and value.bit_length() > _BITS


def _is_any(value: object, options: tuple[Any, ...]) -> bool:
    return any(_is(value, option) for option in options)


def _names_handle(options: tuple[Any, ...]) -> bool:
    """Return whether a field contains handles."""
    inner = [x for option in options for arg in get_args(option) for x in _flat(arg)]
    return any(option in HANDLE_TYPES for option in (*options, *inner))


def _converted(step: Step, name: str, options: tuple[Any, ...], context: Context) -> object:
    """Return the value of a field, converted to its type."""
    try:
        return _coerce(getattr(step, name), options, step, context)
    except _MismatchError as error:
        where, example = _location(step, name), _example(options)
        shown, question = _shown(error.value), _nearest_choice(error.value, options)
        raise ParameterError(
            f"{step.verb()}: invalid value {shown} for parameter {name!r}{question}",
            where=where,
            hint=f"expected {type_text(options)}{example and f', for example {name}={example}'}",
        ) from None
    except ParameterError as error:
        error.where = error.where or _location(step, name)
        raise
    except SymbolicSyntaxError as error:
        example = f"{name}={_example(options)}"
        raise ParameterError(
            f"{step.verb()}: {error.message}",
            where=_location(step, name),
            hint=_symbols_hint(step, error, context.symbols(step), example),
            excerpts=error.excerpts(),
        ) from None


def _location(step: Step, name: str) -> str:
    """Return the parameter of a step, with the first part of the program that the step names."""
    target = next((f", {_shown(h)}" for h in step.handles() if not isinstance(h, FunctionRef)), "")
    return f"parameter {name!r} of {step.verb()}{target}"


def _symbols_hint(
    step: Step, error: SymbolicSyntaxError, known: Mapping[str, Var], example: str
) -> str:
    """Return the symbols that a term may name, a similar name, and an example of integers."""
    function = next((handle.function for handle in step.handles()), None)
    scope = "" if function is None else f" of function {function!r}"
    unknown = error.node.id if isinstance(error.node, ast.Name) else None
    parts = [
        error.hint if unknown is None else did_you_mean(unknown, known),
        f"symbols{scope} are {', '.join(sorted(known)) or 'none'}",
        f"integers are legal too: {example}",
    ]
    return "; ".join(part for part in parts if part).replace("?;", "?")


def _shown(value: object) -> str:
    """Return a value as text for messages: a handle by its kind and name."""
    if isinstance(value, HANDLE_TYPES):
        return f"{kind_of(value)} {label(value)!r}"
    return reprlib.repr(value)


def _nearest_choice(value: object, options: tuple[Any, ...]) -> str:
    """Return a question with the choice that is similar to a text; empty if there is none."""
    choices = [c for o in options if get_origin(o) is Literal for c in get_args(o)]
    known = [c for c in choices if isinstance(c, str)]
    question = did_you_mean(value, known) if isinstance(value, str) else ""
    return f"; {question}" if question else ""


class _MismatchError(Exception):
    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(reprlib.repr(value))


@lru_cache(maxsize=1024)
def _hints(cls: type[Step]) -> dict[str, Any]:
    return {name: _flat(hint) for name, hint in cls.hints().items()}


@lru_cache(maxsize=1024)
def _flat(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (Union, UnionType):
        return tuple(x for arg in get_args(hint) for x in _flat(arg))
    return (hint,)


def _coerce(value: object, options: tuple[Any, ...], step: Step, context: Context) -> object:
    if isinstance(value, list):
        value = tuple(cast("list[object]", value))
    if isinstance(value, int) and value.bit_length() > _BITS:
        raise ParameterError(
            f"{step.verb()}: an integer of {value.bit_length()} bits",
            hint=f"integers have at most {_BITS} bits",
        )
    for option in options:
        if _is(value, option):
            return value
    for option in options:
        if get_origin(option) is tuple and isinstance(value, tuple):
            return _coerce_tuple(cast("tuple[object, ...]", value), option, step, context)
        if option is IndexMap and (callable(value) or isinstance(value, str)):
            return index_map(value, context.symbols(step))
        if option is Expr and isinstance(value, str):
            return _expr(value, context.symbols(step))
        if option in HANDLE_TYPES and isinstance(value, str):
            return _found(value, options, context)
        if option is BufferRef and isinstance(value, int) and not isinstance(value, bool):
            return context.buffer(value)
        if option is int and hasattr(value, "__index__"):
            return cast("Any", value).__index__()
    raise _MismatchError(value)


def _found(name: str, options: tuple[Any, ...], context: Context) -> Handle:
    """Return the handle of a name, of the first kind that has the name."""
    kinds = [option for option in options if option in HANDLE_TYPES]
    for kind in kinds[:-1]:
        with contextlib.suppress(NotFoundError):
            return context.find(kind, name)
    return context.find(kinds[-1], name)


def _expr(text: str, symbols: Mapping[str, Var]) -> Expr:
    term = parse_expr(text, symbols)
    if not isinstance(term, Expr):
        raise _MismatchError(text)
    return term


def _is(value: object, option: Any) -> bool:
    if option is Any:
        return True
    if option is None or option is NoneType:
        return value is None
    if get_origin(option) is Literal:
        return value in get_args(option)
    if option in (int, float) and isinstance(value, bool):
        return False
    if option is float and isinstance(value, int):
        return True
    return isinstance(option, type) and isinstance(value, option)


def _coerce_tuple(
    value: tuple[object, ...], option: Any, step: Step, context: Context
) -> tuple[object, ...]:
    args = get_args(option)
    each = _flat(args[0])
    if len(args) == 2 and args[1] is Ellipsis:
        new = tuple(_coerce(item, each, step, context) for item in value)
    elif len(args) == len(value):
        pairs = zip(value, args, strict=True)
        new = tuple(_coerce(item, _flat(arg), step, context) for item, arg in pairs)
    else:
        raise _MismatchError(value)
    return value if all(a is b for a, b in zip(new, value, strict=True)) else new


def index_map(source: object, symbols: Mapping[str, Var]) -> IndexMap:
    """Return an index map made from a Python function or the text of a lambda.

    Raises
    ------
    ParameterError
        If the source is neither a function nor the text of a lambda.

    Examples
    --------
    >>> made = index_map("lambda k, n: (n // 32, k, n % 32)", {})
    >>> len(made.inputs), len(made.outputs)
    (2, 3)
    """
    if isinstance(source, str):
        return _parsed_map(source, symbols)
    if not callable(source):
        raise ParameterError(f"{reprlib.repr(source)} is not an index map", hint=_MAP_USAGE)
    try:
        inputs = tuple(var(name, lower=0) for name in inspect.signature(source).parameters)
        outputs = source(*inputs)
    except OperandError as error:
        raise ParameterError(
            f"the index map is invalid: {error.message}", hint=error.hint
        ) from error
    except Exception as error:  # the function is the user's
        raise ParameterError(
            f"the index map raised {type(error).__name__}: {error}",
            hint=f"{_MAP_USAGE}; operators are +, -, *, // (rounds down) and %",
        ) from error
    return IndexMap(inputs, _outputs(outputs))


def _outputs(outputs: object) -> tuple[Expr, ...]:
    items = cast(
        "tuple[object, ...]",
        tuple(cast("Any", outputs)) if isinstance(outputs, tuple | list) else (outputs,),
    )
    bad = next((x for x in items if not isinstance(x, int | Expr)), None)
    if bad is not None:
        raise ParameterError(
            f"{reprlib.repr(bad)} is not an index",
            hint=f"an index map returns integer terms of its inputs; {_MAP_USAGE}",
        )
    return tuple(as_expr(cast("int | Expr", x)) for x in items)


def _parsed_map(text: str, symbols: Mapping[str, Var]) -> IndexMap:
    try:
        tree = parse_expression(text.strip()).body
    except SyntaxError as error:
        message = f"{reprlib.repr(text)} is not a valid lambda: {error.msg}"
        raise ParameterError(message, hint=_MAP_USAGE) from None
    except (ValueError, RecursionError, MemoryError) as error:
        message = f"the lambda cannot be parsed: {error or type(error).__name__}"
        raise ParameterError(message, hint=_MAP_USAGE) from None
    if not isinstance(tree, ast.Lambda):
        message = f"{reprlib.repr(text)} is not a lambda"
        raise ParameterError(message, hint=_MAP_USAGE)
    inputs = {a.arg: var(a.arg, lower=0) for a in tree.args.args}
    body = tree.body.elts if isinstance(tree.body, ast.Tuple | ast.List) else [tree.body]
    names = {**symbols, **inputs}
    try:
        outputs = _outputs([parse_expr(node, names) for node in body])
    except SymbolicSyntaxError as error:
        error.quote(text.strip())
        raise
    return IndexMap(tuple(inputs.values()), outputs)


def _example(options: tuple[Any, ...]) -> str:
    """Return a legal value as text; empty if the type has no typical one."""
    for option in options:
        if get_origin(option) is tuple:
            inner = _flat(get_args(option)[0])
            if any(x in HANDLE_TYPES for x in inner):
                return "(i, j)"
            if str in inner:
                return '("a", "b")'
            return "(None, 8)" if NoneType in inner or None in inner else "(4, 8)"
        if option is IndexMap:
            return "lambda i, j: (j, i)"
        if option in (int, Expr):
            return "8"
        if option in HANDLE_TYPES:
            return f"sch.get_{_WORDS[option]}(name)"
    return ""


def type_text(options: Any) -> str:
    """Return a description of a field's type.

    Examples
    --------
    >>> type_text((int, None))
    'integer or None'
    >>> type_text(tuple[Expr | int | None, ...])
    'a tuple of symbolic integer, integer or None'
    """
    flat: tuple[Any, ...] = (
        cast("tuple[Any, ...]", options) if isinstance(options, tuple) else _flat(options)
    )
    *words, last = dict.fromkeys(map(_word, flat))
    return f"{', '.join(words)} or {last}" if words else last


def _word(option: Any) -> str:
    if option is None or option is NoneType:
        return "None"
    if get_origin(option) is tuple:
        args = get_args(option)
        many = len(args) == 2 and args[1] is Ellipsis
        return (
            f"a tuple of {type_text(_flat(args[0]))}" if many else f"a tuple of {len(args)} items"
        )
    if get_origin(option) is Literal:
        return " or ".join(map(repr, get_args(option)))
    return _WORDS.get(option) or getattr(option, "__name__", str(option))


_BITS: Final = 64
"""The number of bits of integers; those of thousands of digits cannot even be printed."""

_MAP_USAGE: Final = "write lambda i, j: (j, i), with one input per dimension"
_WORDS: Mapping[object, str] = {
    int: "integer",
    str: "text",
    Expr: "symbolic integer",
    IndexMap: "index map",
    **{kind: kind.__name__.removesuffix("Ref").lower() for kind in HANDLE_TYPES},
}
"""Descriptions of types; other types are described by their name."""
