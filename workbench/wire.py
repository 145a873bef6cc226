"""Between the protocol's classes and what travels: JSON-able values and binary buffers."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from ..ir.errors import Json, TilewrightError
from . import protocol
from .protocol import Request, Update

Plain: TypeAlias = "dict[str, Json]"


class ProtocolError(TilewrightError):
    """A message that is not of the protocol: the browser's assets are of another version."""

    title = "Unknown message"


def to_plain(value: object) -> Json:
    """Turn a value of the protocol into what :mod:`json` takes.

    A field that defaults to None is left out where it is None, as its TypeScript type says; one
    without a default travels as null.

    Examples
    --------
    >>> to_plain(protocol.Ref("loop", "f", 3, "i"))
    {'kind': 'loop', 'function': 'f', 'uid': 3, 'name': 'i'}
    >>> to_plain(protocol.Update(version=1, reply=7, server_ms=0.5, open="f"))
    {'version': 1, 'reply': 7, 'server_ms': 0.5, 'open': 'f'}
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [to_plain(item) for item in cast("list[object]", value)]
        case dict():
            items = cast("dict[str, object]", value).items()
            return {key: to_plain(item) for key, item in items}
        case _:
            present = ((name, getattr(value, name)) for name in _names(type(value)))
            optional = _optional(type(value))
            return {
                name: to_plain(item)
                for name, item in present
                if item is not None or name not in optional
            }


def update_to_plain(update: Update) -> Plain:
    """Turn an update into JSON, leaving out the sections it does not have."""
    return cast("Plain", to_plain(update))


def decode(message: Mapping[str, object]) -> Request:
    """Read a request, checking every field.

    Raises
    ------
    ProtocolError
        If the type is unknown, or a field is missing or of another type.
    """
    known = _request_types()
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in known:
        raise ProtocolError(
            f"no request {kind!r}",
            hint=f"requests of version {protocol.VERSION} are {', '.join(known)}",
        )
    cls = known[kind]
    hints = _hints(cls)
    return cls(**{name: _field(kind, name, hints[name], message) for name in _names(cls)})


def _field(kind: str, name: str, hint: Any, message: Mapping[str, object]) -> object:
    if name not in message:
        raise ProtocolError(f"request {kind!r} has no field {name!r}")
    value = message[name]
    if not _fits(value, hint):
        raise ProtocolError(f"field {name!r} of request {kind!r} is {value!r}, not {hint}")
    return value


def _fits(value: object, hint: Any) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in args
    if origin in (Union, types.UnionType):
        return any(_fits(value, arg) for arg in args)
    if origin is dict:
        return isinstance(value, dict) and all(
            isinstance(k, str) and _fits(v, args[1])
            for k, v in cast("dict[object, object]", value).items()
        )
    if hint is float:  # JavaScript writes whole ones as integers
        return type(value) in (float, int)
    return type(value) is hint


@cache
def _names(cls: type) -> tuple[str, ...]:
    name = cls.__name__
    if not is_dataclass(cls):
        raise ProtocolError(f"a {name} cannot travel")
    return tuple(field.name for field in fields(cls))


@cache
def _optional(cls: type) -> frozenset[str]:
    """Give the fields that are left out where they are None, as :mod:`.typescript` has them."""
    return frozenset(field.name for field in fields(cls) if field.default is None)


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


@cache
def _request_types() -> dict[str, Any]:
    classes: tuple[Any, ...] = get_args(protocol.Request)
    return {get_args(_hints(cls)["type"])[0]: cls for cls in classes}
