"""Rendering of functions as panes: text, binary spans, headers and origins."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..errors import TilewrightError
from ..ir import script
from ..ir.analysis import tree_of
from ..ir.graph.nodes import GraphFunc
from ..ir.graph.visit import all_bindings
from ..ir.identity import Origins, Uid
from ..ir.loop.nodes import Block, For, PrimFunc
from ..ir.module import Function, Module
from ..ir.symbolic import TRUE, Expr, Var, const_value, evaluate, free_vars, to_text
from .protocol import SPAN_FIELDS, SPAN_KINDS, Header, Pane

Samples = Mapping[str, int]

_KIND = {name: position for position, name in enumerate(SPAN_KINDS)}
_SPAN = struct.Struct(f"<{SPAN_FIELDS}i")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A pane with its binary spans."""

    pane: Pane
    spans: bytes


def render(function: Function, module: Module, samples: Samples) -> Rendered:
    """Return the pane of a function; extents are evaluated at the samples."""
    printed = script.render(function, module=module)
    match function:
        case PrimFunc():
            headers = list(_headers(function, samples))
            origins = _loop_origins(function)
        case GraphFunc():
            headers = []
            origins = {b.value.uid: b.origins for b in all_bindings(function.bindings)}
    lines = printed.text.split("\n")
    spans = b"".join(_packed(span, lines) for span in printed.spans)
    return Rendered(_pane(function, printed.text, spans, headers, origins), spans)


def _pane(
    function: Function,
    text: str,
    spans: bytes,
    headers: list[Header],
    origins: Mapping[Uid, Origins],
) -> Pane:
    names = sorted({name for group in origins.values() for name in group})
    index = {name: k for k, name in enumerate(names)}
    indices = {str(u): sorted(index[o] for o in group) for u, group in origins.items() if group}
    digest = hashlib.sha256(f"{text}\0{headers}\0{names}\0{indices}".encode() + spans)
    return Pane(
        hash=digest.hexdigest()[:24],
        function=function.name,
        level="loop" if isinstance(function, PrimFunc) else "graph",
        text=text,
        buffer=0,
        origin_names=names,
        origins=indices,
        headers=headers,
    )


def _packed(span: script.Span, lines: list[str]) -> bytes:
    """Return a span in binary form; a definition covers all of its lines."""
    kind, defined = _KIND[span.kind], span.role == "defined"
    first, last = span.line - 1, span.last_line - 1
    if not defined or (span.kind == "buffer" and last == first):
        return _SPAN.pack(kind, span.uid, defined, first, span.column - 1, first, span.end - 1)
    indent = len(lines[first]) - len(lines[first].lstrip())
    own_line = indent == span.column - 1 or last > first or span.kind in ("loop", "block")
    start, end = (indent, len(lines[last])) if own_line else (span.column - 1, span.end - 1)
    return _SPAN.pack(kind, span.uid, defined, first, start, last, end)


def _loop_origins(function: PrimFunc) -> dict[Uid, Origins]:
    """Return the origins of loops and blocks; a loop inherits those of its blocks."""
    tree = tree_of(function)
    found: dict[Uid, Origins] = {}
    for block in tree.blocks.values():
        found[block.uid] = block.origins or function.origins
    for loop in tree.loops.values():
        inner = (found[block.uid] for block in tree.blocks_in(loop))
        found[loop.uid] = loop.origins or frozenset().union(*inner)
    return found


def _headers(function: PrimFunc, samples: Samples) -> Iterator[Header]:
    tree = tree_of(function)
    for loop in tree.loops.values():
        yield _loop_header(loop, samples)
    for block in tree.blocks.values():
        yield _block_header(block)


def _loop_header(loop: For, samples: Samples) -> Header:
    value = at_samples(loop.extent, samples)
    symbols = ", ".join(f"{name} = {samples[name]}" for name in _symbols(loop.extent, samples))
    label = symbols if isinstance(loop.extent, Var) else f"{value} at {symbols}"
    if value is None or const_value(loop.extent) is not None:
        label = ""
    return Header(loop.uid, loop.kind, loop.var.name, to_text(loop.extent), value, label)


def _block_header(block: Block) -> Header:
    guard = "" if block.predicate == TRUE else "tail guard"
    return Header(block.uid, "block", block.name, "", None, guard)


def _symbols(term: Expr, samples: Samples) -> list[str]:
    mentioned = {v.name for v in free_vars(term)}
    return [name for name in samples if name in mentioned]


def at_samples(term: Expr, samples: Samples) -> int | None:
    """Return the value of a term at the samples, None if it is undefined or lacks a sample."""
    symbols = free_vars(term)
    if any(v.name not in samples for v in symbols):
        return None
    try:
        return evaluate(term, {v: samples[v.name] for v in symbols})
    except TilewrightError:
        return None
