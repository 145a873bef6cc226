"""Signatures of composite steps: parameters and results of the decorated function."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, cast, get_args, get_origin, get_type_hints

from ..ir.loop.nodes import IndexMap
from ..ir.symbolic import Expr, SymInt
from .handles import (
    HANDLE_TYPES,
    BindingRef,
    BlockRef,
    BufferRef,
    FunctionRef,
    Handle,
    LoopRef,
)
from .problem import ScheduleError

NAMES: Final[Mapping[str, Any]] = {
    "BindingRef": BindingRef,
    "BlockRef": BlockRef,
    "BufferRef": BufferRef,
    "FunctionRef": FunctionRef,
    "LoopRef": LoopRef,
    "Handle": Handle,
    "IndexMap": IndexMap,
    "SymInt": SymInt,
    "Expr": Expr,
    "Literal": Literal,
}
"""Names that an annotation in quotes may use without an import."""

_SCALARS: Final = (bool, int, float, str, Expr, IndexMap, *HANDLE_TYPES)

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

SUPPORTED: Final = (
    f"{', '.join(t.__name__ for t in HANDLE_TYPES)}, SymInt, IndexMap, bool, int, float, str, "
    "Literal[...], None, a union of these, or a tuple[...] of these"
)


class CompositeDefinitionError(ScheduleError):
    """A function that cannot be a composite step; the message contains the reason."""

    title = "Invalid composite step"


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters and results of a composite step.

    Parameters
    ----------
    name : str
        The name of the function.
    fields : tuple of (str, str, dataclasses.Field)
        Name, type as text, and default of each parameter.
    types : Mapping[str, type]
        The types of the parameters.
    returns : type or None
        A handle type, ``int``, ``SymInt``, a ``tuple[...]`` of them, or None.
    """

    name: str
    fields: tuple[tuple[str, str, Any], ...]
    types: Mapping[str, Any]
    returns: Any

    def accepts(self, returned: object) -> bool:
        """Return whether a function with this signature may return a value."""
        if self.returns is None:
            return returned is None
        if get_origin(self.returns) is not tuple:
            return isinstance(returned, _kinds(self.returns))
        if not isinstance(returned, tuple | list):
            return False
        items = tuple(cast("tuple[object, ...]", returned))
        args = get_args(self.returns)
        if len(args) == 2 and args[1] is Ellipsis:
            args = (args[0],) * len(items)
        return len(args) == len(items) and all(map(isinstance, items, map(_kinds, args)))


def _kinds(hint: Any) -> tuple[type, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def signature_of(
    function: Callable[..., object], returns: Any, reserved: frozenset[str]
) -> Signature:
    """Return the signature of a function whose first parameter is the schedule.

    Parameters
    ----------
    function : callable
        The function of a composite step.
    returns : type, None or Ellipsis
        The type of its result; an ellipsis stands for its annotation.
    reserved : frozenset of str
        Names that a parameter cannot have.

    Raises
    ------
    CompositeDefinitionError
        If the function cannot be a composite step.
    """
    name = _name(function)
    hints = _hints(function, name)
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind not in _POSITIONAL:
        raise _invalid(name, "has no parameter for the schedule", "write def f(sch, loop: LoopRef)")
    if _kinds(hints.get(parameters[0].name))[0] in _SCALARS:
        raise _invalid(name, "has no parameter for the schedule", "write def f(sch, loop: LoopRef)")
    fields: list[tuple[str, str, Any]] = []
    types: dict[str, Any] = {}
    for parameter in parameters[1:]:
        _check_parameter(name, parameter, hints, reserved)
        hint = types[parameter.name] = hints[parameter.name]
        fields.append((parameter.name, type_source(hint), _field(name, parameter)))
    found = hints.get("return", NoneType) if returns is ... else returns
    return Signature(name, tuple(fields), types, _returns(name, found))


def _name(function: Callable[..., object]) -> str:
    name = getattr(function, "__name__", "")
    if not inspect.isfunction(function) or not name.isidentifier():
        raise CompositeDefinitionError(
            f"{function!r} is not a named Python function", hint="write @composite above a def"
        )
    if name.startswith("_"):
        raise _invalid(name, "has a name with a leading underscore", "choose another name")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise _invalid(name, "is a coroutine or a generator", "use a plain function")
    return name


def _invalid(name: str, reason: str, hint: str) -> CompositeDefinitionError:
    return CompositeDefinitionError(f"composite step {name!r} {reason}", hint=hint)


def _hints(function: Callable[..., object], name: str) -> dict[str, Any]:
    names = {**NAMES, **getattr(function, "__globals__", {})}
    closed = dict(inspect.getclosurevars(function).nonlocals)
    try:
        return get_type_hints(function, names, closed)
    except NameError as error:
        raise _invalid(
            name, f"has an annotation that is not defined: {error}", f"types are {SUPPORTED}"
        ) from None
    except Exception as error:  # the annotation is the user's
        raise _invalid(
            name,
            f"has an annotation that raises {type(error).__name__}: {error}",
            f"types are {SUPPORTED}",
        ) from error


def _check_parameter(
    name: str, parameter: inspect.Parameter, hints: Mapping[str, Any], reserved: frozenset[str]
) -> None:
    own = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise _invalid(
            name,
            f"has the variadic parameter {own!r}",
            "use a tuple, for example loops: tuple[LoopRef, ...]",
        )
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise _invalid(
            name,
            f"has the positional-only parameter {own!r}",
            "remove the /; traces contain all arguments by name",
        )
    if own in reserved or own.startswith("_"):
        raise _invalid(
            name, f"has a parameter named {own!r}, which steps reserve", "rename the parameter"
        )
    if own not in hints:
        raise _invalid(name, f"has the parameter {own!r} without a type", f"types are {SUPPORTED}")
    if not _supported(hints[own]):
        raise _invalid(
            name,
            f"has the parameter {own!r} of type {type_source(hints[own])}, which no form and no "
            "trace contains",
            f"types are {SUPPORTED}",
        )


def _supported(hint: Any) -> bool:
    if hint is None or hint is NoneType or hint in _SCALARS:
        return True
    origin = get_origin(hint)
    if origin is Literal:
        return all(isinstance(x, bool | int | str | NoneType) for x in get_args(hint))
    if origin is tuple:
        return bool(_items(hint)) and all(map(_supported, _items(hint)))
    return origin in (Union, UnionType) and all(map(_supported, get_args(hint)))


def _items(hint: Any) -> tuple[Any, ...]:
    """Return the types of the items of a tuple type, without an ellipsis after the only one."""
    args = get_args(hint)
    return args[:1] if len(args) == 2 and args[1] is Ellipsis else args


def _field(name: str, parameter: inspect.Parameter) -> Any:
    keyword = parameter.kind is parameter.KEYWORD_ONLY
    if parameter.default is parameter.empty:
        return dataclasses.field(kw_only=keyword)
    default = _frozen(parameter.default)
    try:
        hash(default)
    except TypeError:
        raise _invalid(
            name,
            f"has the mutable default {default!r} of the parameter {parameter.name!r}",
            "use a tuple, a number, a string, or None",
        ) from None
    return dataclasses.field(default=default, kw_only=keyword)


def _frozen(value: object) -> object:
    if isinstance(value, tuple | list):
        return tuple(map(_frozen, cast("tuple[object, ...]", value)))
    return value


def _returns(name: str, hint: Any) -> Any:
    if hint is None or hint is NoneType:
        return None
    if get_origin(hint) is tuple:
        legal = bool(_items(hint)) and all(map(_is_result, _items(hint)))
    else:
        legal = _is_result(hint)
    if not legal:
        raise _invalid(
            name,
            f"returns {type_source(hint)}, which later steps cannot refer to",
            "return None, a handle, an integer, or a tuple of them, such as tuple[LoopRef, ...]",
        )
    return hint


def _is_result(hint: Any) -> bool:
    return all(kind in HANDLE_TYPES or kind in (int, Expr) for kind in _kinds(hint))


def type_source(hint: Any) -> str:
    """Return a type as the source text of an annotation.

    Examples
    --------
    >>> type_source(tuple[SymInt | None, ...]), type_source(LoopRef)
    ('tuple[SymInt | None, ...]', 'LoopRef')
    """
    if hint is None or hint is NoneType:
        return "None"
    if hint is Ellipsis:
        return "..."
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " | ".join(_members(args))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, args))}]"
    if origin is not None and args:
        return f"{origin.__name__}[{', '.join(map(type_source, args))}]"
    return getattr(hint, "__name__", str(hint))


def _members(args: tuple[Any, ...]) -> Iterator[str]:
    """Yield the members of a union; a term or an integer is a ``SymInt``."""
    symbolic = Expr in args and int in args
    for arg in args:
        if not symbolic or arg not in (Expr, int):
            yield type_source(arg)
        elif arg is next(a for a in args if a in (Expr, int)):
            yield "SymInt"
