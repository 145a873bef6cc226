"""Import cycles: no two modules import each other, type-only imports included.

Imports in functions are not counted: `ir.module` loads `ir.script` for `__str__`, and
`schedules.trace` loads `schedules.text`. The direction of the layers is checked by `make lint`.
"""

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


def imports(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports outside of functions, including those for type checkers only."""
    for node in body:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield node
            case ast.If(body=then, orelse=other):
                yield from imports([*then, *other])
            case ast.Try(body=then, handlers=handlers):
                yield from imports([*then, *(x for h in handlers for x in h.body)])
            case ast.ClassDef(body=inner) | ast.With(body=inner):
                yield from imports(inner)
            case _:
                pass


def imported(name: str) -> set[str]:
    """Return the modules of the package that a module imports."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    package = name if MODULES[name] else name.rpartition(".")[0]
    found: set[str] = set()
    for node in imports(ast.parse(Path(spec.origin).read_text()).body):
        if isinstance(node, ast.Import) or node.level == 0:
            continue
        base = resolve_name("." * node.level + (node.module or ""), package)
        inner = {f"{base}.{alias.name}" for alias in node.names}
        modules = inner & MODULES.keys()
        found |= modules if modules == inner else modules | {base}
    return found - {name}


def test_import_graph_has_no_cycles() -> None:
    try:
        graphlib.TopologicalSorter({name: imported(name) for name in MODULES}).prepare()
    except graphlib.CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        raise AssertionError(f"import cycle: {cycle}") from None
