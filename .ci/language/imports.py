"""The import graph of the package and its cycles."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

Graph = dict[str, set[str]]


def module_name(path: Path) -> str:
    """Return the dotted name of a file relative to the package.

    >>> module_name(Path("ir/loop/__init__.py")), module_name(Path("ir/module.py"))
    ('ir.loop', 'ir.module')
    """
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def graph(trees: Mapping[Path, ast.Module], *, type_only: bool) -> Graph:
    """Return the modules that each module imports outside of functions.

    `from .x import y` names the module `x.y` if there is one, else `x`. Imports under
    `TYPE_CHECKING` count only with ``type_only``.
    """
    names = {module_name(path) for path in trees}
    edges: Graph = {}
    for path, tree in trees.items():
        name = module_name(path)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        edges[name] = set()
        for node in imports(tree.body, type_only=type_only):
            edges[name] |= set(targets(node, package, names)) - {name}
    return edges


def imports(body: list[ast.stmt], *, type_only: bool) -> Iterator[ast.ImportFrom]:
    """Yield the relative imports of a module that run when it is loaded."""
    for node in body:
        match node:
            case ast.ImportFrom(level=level) if level:
                yield node
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=other) if not type_only:
                yield from imports(other, type_only=type_only)
            case ast.If(body=then, orelse=other):
                yield from imports([*then, *other], type_only=type_only)
            case ast.Try(body=then, handlers=handlers):
                inner = [*then, *(s for handler in handlers for s in handler.body)]
                yield from imports(inner, type_only=type_only)
            case ast.ClassDef(body=inner) | ast.With(body=inner):
                yield from imports(inner, type_only=type_only)
            case _:
                pass


def targets(node: ast.ImportFrom, package: str, names: set[str]) -> Iterator[str]:
    """Yield the modules that a relative import names."""
    parts = package.split(".") if package else []
    base = ".".join(parts[: len(parts) - node.level + 1] + [m for m in [node.module] if m])
    for alias in node.names:
        inner = f"{base}.{alias.name}" if base else alias.name
        if inner in names:
            yield inner
        elif base in names:
            yield base


def largest_cycle(edges: Graph) -> int:
    """Return the number of modules in the largest cycle, 0 without one (Tarjan, iterative)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    largest = 0
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(sorted(edges[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            name, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    size = len(stack) - stack.index(name)
                    for member in stack[-size:]:
                        low[member] = len(edges)
                    del stack[-size:]
                    largest = max(largest, size if size > 1 else 0)
            elif following not in index:
                index[following] = low[following] = len(index)
                stack.append(following)
                work.append((following, iter(sorted(edges.get(following, ())))))
            else:
                low[name] = min(low[name], low[following])
    return largest
