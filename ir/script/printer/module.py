"""Printing of modules; the lines of each function are cached."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from threading import Lock
from types import MappingProxyType
from weakref import WeakKeyDictionary

from ....locks import renew_in_children
from ...graph.nodes import GraphFunc
from ...loop.nodes import PrimFunc
from ...module import Constant, Function, Module
from ...naming import is_valid_name
from ..names import quote, tuple_text
from .graph import print_graph_func
from .lines import Lines
from .loop import print_prim_func

NO_CONSTANTS: Mapping[str, Constant] = MappingProxyType({})
_cache: WeakKeyDictionary[Function, tuple[Mapping[str, Constant], Lines]] = WeakKeyDictionary()
_lock = Lock()
renew_in_children(sys.modules[__name__])


def print_function(
    func: Function,
    constants: Mapping[str, Constant] = NO_CONSTANTS,
    *,
    provenance: bool = False,
    lowered: bool = False,
) -> Lines:
    """Print a function; without options, the lines are cached and must not be modified."""
    if provenance or lowered:
        return _print(func, constants, provenance=provenance, lowered=lowered)
    with _lock:
        known = _cache.get(func)
    if known is not None and (known[0] is constants or isinstance(func, PrimFunc)):
        return known[1]
    lines = _print(func, constants, provenance=False, lowered=False)
    with _lock:
        _cache[func] = (constants, lines)
    return lines


def _print(
    func: Function, constants: Mapping[str, Constant], *, provenance: bool, lowered: bool
) -> Lines:
    match func:
        case PrimFunc():
            return print_prim_func(func, provenance=provenance, lowered=lowered)
        case GraphFunc():
            return print_graph_func(func, constants, provenance=provenance, lowered=lowered)


def print_preamble(module: Module) -> Lines:
    """Print the attributes and constants of a module."""
    out = Lines()
    if module.attributes:
        out.call("module", [_entry(k, v) for k, v in module.attributes.items()])
    for key, constant in module.constants.items():
        out.add(_constant(key, constant))
    return out


def _entry(key: str, value: str) -> str:
    return f"{key}={quote(value)}" if is_valid_name(key) else f"**{{{quote(key)}: {quote(value)}}}"


def _constant(key: str, constant: Constant) -> str:
    parts = [quote(key), tuple_text([str(d) for d in constant.shape]), str(constant.dtype)]
    if constant.digest:
        parts.append(f"digest={quote(constant.digest)}")
    if constant.source:
        parts.append(f"source={quote(constant.source)}")
    return f"constant({', '.join(parts)})"
