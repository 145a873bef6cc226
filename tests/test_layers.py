"""No two modules need each other to load. Which way the layers point is `make lint`'s to check."""

from __future__ import annotations

import ast
import graphlib
import pkgutil
from collections.abc import Iterator
from importlib.util import find_spec, resolve_name
from pathlib import Path

import tilewright

MODULES = {
    module.name: module.ispkg
    for module in pkgutil.walk_packages(tilewright.__path__, "tilewright.")
} | {"tilewright": True}


def at_load(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports that run when the module does: neither in functions nor for type checkers only."""
    for node in body:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield node
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=other):
                yield from at_load(other)
            case ast.If(body=then, orelse=other):
                yield from at_load([*then, *other])
            case ast.Try(body=then, handlers=handlers):
                yield from at_load([*then, *(x for h in handlers for x in h.body)])
            case ast.ClassDef(body=inner) | ast.With(body=inner):
                yield from at_load(inner)
            case _:
                pass


def needs(name: str) -> set[str]:
    """Modules of the package that have to be loaded before this one can be."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    package = name if MODULES[name] else name.rpartition(".")[0]
    found: set[str] = set()
    for node in at_load(ast.parse(Path(spec.origin).read_text()).body):
        if isinstance(node, ast.Import) or node.level == 0:
            continue
        base = resolve_name("." * node.level + (node.module or ""), package)
        inner = {f"{base}.{alias.name}" for alias in node.names}
        modules = inner & MODULES.keys()
        found |= modules if modules == inner else modules | {base}
    return found - {name}


def test_no_two_modules_need_each_other() -> None:
    try:
        graphlib.TopologicalSorter({name: needs(name) for name in MODULES}).prepare()
    except graphlib.CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        raise AssertionError(f"import cycle: {cycle}") from None
