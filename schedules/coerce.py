"""Conversion of arguments from code, forms and traces into the values of a step's fields."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from ..ir.loop.nodes import IndexMap
from ..ir.symbolic import Expr, Var, as_expr, parse_expr, var
from .handles import HANDLE_TYPES, Handle
from .problem import ParameterError
from .step import Step
from .suggest_names import NotFoundError

_Step = TypeVar("_Step", bound=Step)
Symbols = Callable[[], Mapping[str, Var]]
Find = Callable[[type[Handle], str], Handle]


@dataclass(frozen=True, slots=True)
class Context:
    """The lookup functions for names.

    Parameters
    ----------
    symbols : callable
        Returns the symbols that the text of a term may name.
    find : callable
        Returns the handle of a kind for a name.
    """

    symbols: Symbols
    find: Find


def coerced(step: _Step, context: Context) -> _Step:
    """Return a step with its fields converted to their declared types.

    Lists become tuples. Text becomes a symbolic term, an index map, or the handle with that name,
    as the field requires. A Python function becomes an index map.

    Raises
    ------
    ParameterError
        If a value cannot be converted to the type of its field.
    """
    hints = _hints(type(step))
    changed: dict[str, object] = {}
    for name, value in step.values():
        try:
            new = _coerce(value, hints[name], context)
        except _MismatchError as error:
            raise ParameterError(
                f"{step.verb()}: invalid value {error.value!r} for parameter {name!r}",
                hint=f"expected {type_text(hints[name])}",
            ) from None
        if new is not value:
            changed[name] = new
    return cast("_Step", dataclasses.replace(cast("Any", step), **changed)) if changed else step


class _MismatchError(Exception):
    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(repr(value))


@lru_cache(maxsize=1024)
def _hints(cls: type[Step]) -> dict[str, Any]:
    return {name: _flat(hint) for name, hint in get_type_hints(cls).items()}


def _flat(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (Union, UnionType):
        return tuple(x for arg in get_args(hint) for x in _flat(arg))
    return (hint,)


def _coerce(value: object, options: tuple[Any, ...], context: Context) -> object:
    if isinstance(value, list):
        value = tuple(cast("list[object]", value))
    for option in options:
        if _is(value, option):
            return value
    for option in options:
        if get_origin(option) is tuple and isinstance(value, tuple):
            return _coerce_tuple(cast("tuple[object, ...]", value), option, context)
        if option is IndexMap and (callable(value) or isinstance(value, str)):
            return index_map(value, context.symbols())
        if option is Expr and isinstance(value, str):
            return _expr(value, context.symbols())
        if option in HANDLE_TYPES and isinstance(value, str):
            return _found(value, options, context)
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


def _coerce_tuple(value: tuple[object, ...], option: Any, context: Context) -> tuple[object, ...]:
    args = get_args(option)
    each = _flat(args[0])
    if len(args) == 2 and args[1] is Ellipsis:
        new = tuple(_coerce(item, each, context) for item in value)
    elif len(args) == len(value):
        pairs = zip(value, args, strict=True)
        new = tuple(_coerce(item, _flat(arg), context) for item, arg in pairs)
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
        raise ParameterError(
            f"{source!r} is not an index map", hint="pass a lambda or the text of one"
        )
    inputs = tuple(var(name, lower=0) for name in inspect.signature(source).parameters)
    outputs = source(*inputs)
    return IndexMap(inputs, _outputs(outputs))


def _outputs(outputs: object) -> tuple[Expr, ...]:
    items = cast(
        "tuple[object, ...]",
        tuple(cast("Any", outputs)) if isinstance(outputs, tuple | list) else (outputs,),
    )
    bad = next((x for x in items if not isinstance(x, int | Expr)), None)
    if bad is not None:
        raise ParameterError(
            f"{bad!r} is not an index", hint="an index map returns integer terms of its inputs"
        )
    return tuple(as_expr(cast("int | Expr", x)) for x in items)


def _parsed_map(text: str, symbols: Mapping[str, Var]) -> IndexMap:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ParameterError(f"{text!r} is not a valid lambda: {error.msg}") from None
    if not isinstance(tree, ast.Lambda):
        raise ParameterError(f"{text!r} is not a lambda", hint="write lambda i, j: (j, i)")
    inputs = {a.arg: var(a.arg, lower=0) for a in tree.args.args}
    body = tree.body.elts if isinstance(tree.body, ast.Tuple | ast.List) else [tree.body]
    names = {**symbols, **inputs}
    outputs = _outputs([parse_expr(node, names) for node in body])
    return IndexMap(tuple(inputs.values()), outputs)


def type_text(options: Any) -> str:
    """Return a description of a field's type.

    Examples
    --------
    >>> type_text((int, None))
    'integer or None'
    >>> type_text(tuple[Expr | int | None, ...])
    'a tuple of term, integer or None'
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
        return f"a tuple of {type_text(_flat(args[0]))}" if many else "a tuple"
    if get_origin(option) is Literal:
        return " or ".join(map(repr, get_args(option)))
    return _WORDS.get(option) or getattr(option, "__name__", str(option))


_WORDS: Mapping[object, str] = {
    int: "integer",
    str: "text",
    Expr: "term",
    IndexMap: "index map",
    **{kind: kind.__name__.removesuffix("Ref").lower() for kind in HANDLE_TYPES},
}
"""Descriptions of types; other types are described by their name."""
