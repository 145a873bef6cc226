"""Serialization of the protocol's classes as JSON."""

from __future__ import annotations

import reprlib
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import (
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from ..errors import Json, TilewrightError
from . import protocol
from .protocol import Update
from .requests import Request

T = TypeVar("T")
Plain: TypeAlias = "dict[str, Json]"


MAX_CLIENT = 64
"""The maximum length of the name of a client."""


class ProtocolError(TilewrightError):
    """A message that does not conform to the protocol, or that the session cannot handle."""

    title = "Invalid request"


def to_plain(value: object) -> Json:
    """Return a value of the protocol as JSON.

    A field that defaults to None is omitted if it is None, because its TypeScript type is
    optional. A field without a default is serialized as null.

    Examples
    --------
    >>> from .protocol_steps import Handle
    >>> to_plain(Handle("loop", "f", 3, "i"))
    {'kind': 'loop', 'function': 'f', 'uid': 3, 'name': 'i'}
    >>> to_plain(Update(version=2, client="a", reply=7, revision=1, server_ms=0.5, open="f"))
    {'version': 2, 'client': 'a', 'reply': 7, 'revision': 1, 'server_ms': 0.5, 'open': 'f'}
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
    """Return an update as JSON, without the sections that did not change."""
    return cast("Plain", to_plain(update))


def decode(message: Mapping[str, object]) -> Request:
    """Return the request of a message after checking every field.

    A field that defaults to None may be missing.

    Raises
    ------
    ProtocolError
        If the request type is unknown, or if a field is missing or has the wrong type.
    """
    types_by_name = _request_types()
    if not is_message(message):
        raise ProtocolError(
            f"a request is an object with a type, got {reprlib.repr(message)}",
            hint=f"requests of version {protocol.VERSION} are {', '.join(types_by_name)}",
        )
    client_of(message)
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in types_by_name:
        raise ProtocolError(
            f"unknown request {reprlib.repr(kind)}",
            hint=f"requests of version {protocol.VERSION} are {', '.join(types_by_name)}",
        )
    return decoded_as(types_by_name[kind], message)


def decoded_as(cls: type[T], message: Mapping[str, object]) -> T:
    """Return the object of a class of the protocol that a message describes.

    Raises
    ------
    ProtocolError
        If a field is missing or has the wrong type.
    """
    kind, hints = str(message.get("type", cls.__name__)), _hints(cls)
    given = (name for name in _names(cls) if name in message or name not in _optional(cls))
    return cls(**{name: _field(kind, name, hints[name], message) for name in given})


def client_of(message: Mapping[str, object]) -> str:
    """Return the name of the client that sent a message; empty if it states none.

    Raises
    ------
    ProtocolError
        If the name is not a short text.
    """
    name = message.get("client", "")
    if not isinstance(name, str) or len(name) > MAX_CLIENT:
        raise ProtocolError(
            f"client {reprlib.repr(name)} is not a text of at most {MAX_CLIENT} characters"
        )
    return name


def is_message(message: object) -> bool:
    """Return whether a message is a mapping, as all requests are."""
    return isinstance(message, Mapping)


def _field(kind: str, name: str, hint: Any, message: Mapping[str, object]) -> object:
    if name not in message:
        raise ProtocolError(f"request {kind!r} has no field {name!r}")
    value = message[name]
    if not _fits(value, hint):
        raise ProtocolError(
            f"field {name!r} of request {kind!r} is {reprlib.repr(value)}; "
            f"expected {_type_name(hint)}"
        )
    return _converted(value, hint)


def _converted(value: Any, hint: Any) -> object:
    """Return a value that fits a type, with objects of the protocol in place of mappings."""
    args = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return _converted(value, next(arg for arg in args if _fits(value, arg)))
    if is_dataclass(hint):
        hints = _hints(cast("type", hint))
        fields_ = {name: _converted(value[name], hints[name]) for name in hints}
        return cast("Any", hint)(**fields_)
    if get_origin(hint) is list:
        return [_converted(item, args[0]) for item in value]
    if get_origin(hint) is dict:
        return {key: _converted(item, args[1]) for key, item in value.items()}
    return value


def _type_name(hint: Any) -> str:
    """Return a type as text for a message."""
    name: object = hint if get_args(hint) else getattr(hint, "__name__", hint)
    return str(name).replace("typing.", "")


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
    if origin is list:
        items = cast("list[object]", value)
        return isinstance(value, list) and all(_fits(item, args[0]) for item in items)
    if is_dataclass(hint):
        items_ = cast("dict[object, object]", value)
        hints = _hints(cast("type", hint))
        return isinstance(value, dict) and all(
            name in items_ and _fits(items_[name], kind) for name, kind in hints.items()
        )
    if hint is float:  # JavaScript serializes an integral number without a decimal point
        return type(value) in (float, int)
    return type(value) is hint


@cache
def _names(cls: type) -> tuple[str, ...]:
    name = cls.__name__
    if not is_dataclass(cls):
        raise ProtocolError(f"type {name} is not serializable")
    return tuple(field.name for field in fields(cls))


@cache
def _optional(cls: type) -> frozenset[str]:
    """Return the names of the fields that are omitted if they are None."""
    return frozenset(field.name for field in fields(cls) if field.default is None)


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


@cache
def _request_types() -> dict[str, Any]:
    classes: tuple[Any, ...] = get_args(Request)
    return {get_args(_hints(cls)["type"])[0]: cls for cls in classes}
