"""Generator of the protocol's TypeScript: ``python -m tilewright.workbench.typescript``.

The result is committed as ``extensions/core/protocol.ts``; a test checks that it is up to date.
"""

from __future__ import annotations

import inspect
import sys
import types
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..ir.dtype import DTYPES
from . import protocol, protocol_gpu, protocol_runs, protocol_steps, requests

_SCALARS = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}

_MODULES = (protocol_steps, protocol_runs, protocol, requests, protocol_gpu)

_HEAD = """\
// Generated from protocol*.py, requests.py and dtype.py: python -m tilewright.workbench.typescript.
// Do not edit: tests/workbench/test_typescript.py checks that it is up to date.
"""


def typescript() -> str:
    """Return the entire file: constants, one interface per class, and the union of the requests."""
    items = dict.fromkeys(
        item for module in _MODULES for item in vars(module).values() if _is_local_dataclass(item)
    )
    union = _union(requests.Request)
    parts = [
        _HEAD,
        f"export const VERSION = {protocol.VERSION};",
        f"export const MOST_BYTES = {protocol_gpu.MOST_BYTES};",
        f"export const DRAW_WORDS = [{', '.join(map(str, protocol_gpu.DRAW_WORDS))}] as const;",
        f"export const SPAN_FIELDS = {protocol.SPAN_FIELDS};",
        f"export const SPAN_KINDS = [{_quoted(protocol.SPAN_KINDS)}] as const;",
        f"/** The names of the dtypes. */\nexport const DTYPES = [{_quoted(tuple(DTYPES))}];",
        *(_interface(item) for item in items),
        f"export type Request = {union};",
        f"export type GpuWork = {_union(protocol_gpu.GpuWork)};",
        f"export type GpuCommand = {_union(protocol_gpu.GpuCommand)};",
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _union(alias: object) -> str:
    return " | ".join(item.__name__ for item in get_args(alias))


def _is_local_dataclass(item: object) -> bool:
    modules = {module.__name__ for module in _MODULES}
    return isinstance(item, type) and is_dataclass(item) and item.__module__ in modules


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _interface(item: Any) -> str:
    hints = get_type_hints(item)
    lines = [_member(field.name, hints[field.name], field.default) for field in fields(item)]
    summary = inspect.getdoc(item) or ""
    doc = "".join(f" * {line}".rstrip() + "\n" for line in summary.replace("``", "`").splitlines())
    return f"/**\n{doc} */\nexport interface {item.__name__} {{\n" + "\n".join(lines) + "\n}"


def _member(name: str, hint: Any, default: object) -> str:
    """Return a field; a field that defaults to None is optional, as in :mod:`.serialization`."""
    if default is not None:
        return f"  readonly {name}: {_type(hint)};"
    present = Union[tuple(part for part in get_args(hint) if part is not type(None))]  # noqa: UP007
    return f"  readonly {name}?: {_type(present)};"


def _type(hint: Any) -> str:
    """Return the TypeScript of a type; a type that JSON cannot represent is an error."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if origin is Literal:
        return " | ".join(f'"{value}"' for value in args)
    if origin is list:
        inner = _type(args[0])
        return f"readonly ({inner})[]" if " " in inner else f"readonly {inner}[]"
    if origin is dict:
        return f"Readonly<Record<string, {_type(args[1])}>>"
    if origin in (Union, types.UnionType):
        return " | ".join(_type(arg) for arg in args)
    if _is_local_dataclass(hint):
        return str(hint.__name__)
    raise TypeError(f"type {hint!r} is not serializable")


if __name__ == "__main__":
    sys.stdout.write(typescript())
