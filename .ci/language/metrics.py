"""Figures of the code style: sizes, import cycles, documentation, docstrings, and commits."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import commits, imports
from .checker import ROOT
from .python_source import docstring

PACKAGE = (
    "__init__.py",
    "calls.py",
    "display.py",
    "errors.py",
    "nearest.py",
    "polling.py",
    "progress.py",
    "renamed.py",
    "target",
    "ir",
    "schedules",
    "codegen",
    "workbench",
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, 90th percentile and maximum."""

    median: float
    p90: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.median:.0f} / {self.p90:.0f} / {self.greatest:.0f}"


def spread(values: Iterable[int]) -> Spread:
    """Return the spread of some numbers."""
    numbers = sorted(values)
    if len(numbers) < 2:
        return Spread(*(numbers or [0]) * 3)
    return Spread(statistics.median(numbers), statistics.quantiles(numbers, n=10)[-1], numbers[-1])


def sources(root: Path) -> dict[Path, str]:
    """Return the texts of the package's Python files by relative path."""
    paths = [
        path
        for name in PACKAGE
        for path in ([root / name] if name.endswith(".py") else sorted((root / name).rglob("*.py")))
    ]
    return {
        path.relative_to(root): path.read_text(encoding="utf-8") for path in paths if path.is_file()
    }


def functions(trees: Iterable[ast.Module]) -> Iterator[Function]:
    """Yield all functions, nested ones included."""
    for tree in trees:
        yield from (node for node in ast.walk(tree) if isinstance(node, Function))


def public(body: list[ast.stmt]) -> Iterator[Function | ast.ClassDef]:
    """Yield the public classes, functions and methods of a module or class body."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if not name.startswith("_") and "overload" not in decorators(node):
                    yield node
            case ast.ClassDef(name=name, body=inner) if not name.startswith("_"):
                yield node
                yield from public(inner)
            case ast.If(body=then, orelse=other):
                yield from public([*then, *other])
            case _:
                pass


def decorators(node: Function) -> set[str]:
    """Return the last names of a function's decorators."""
    return {ast.unparse(item).split("(")[0].rpartition(".")[2] for item in node.decorator_list}


def is_typed(node: Function) -> bool:
    """Return whether a function annotates its result and all its parameters but the receiver."""
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    rest = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    receiver = [a for a in named[:1] if a.arg in {"self", "cls"}]
    return node.returns is not None and all(
        a.annotation is not None for a in [*named, *rest] if a not in receiver
    )


def percent(part: int, whole: int) -> str:
    """Return a share in percent, rounded down, so that 100 means all."""
    return f"{100 * part // whole if whole else 100} %"


def commit_rows(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the figures of the commits since the baseline."""
    found = (
        [commits.read(root, sha) for sha in commits.shas(root)] if commits.is_checkout(root) else []
    )
    with_sources = [commit for commit in found if commit.sources]
    lengths = [len(commit.subject) for commit in found] or [0]
    untested = sum(not commit.tested for commit in with_sources)
    empty = sum(not commit.body for commit in found)
    yield "commits since the baseline", str(len(found))
    yield (
        "commit subject, characters, mean / max",
        f"{statistics.mean(lengths):.0f} / {max(lengths)}",
    )
    yield "commits without a body", str(empty)
    yield (
        "source commits without a test",
        f"{100 * untested / max(len(with_sources), 1):.0f} % ({untested} of {len(with_sources)})",
    )


def rows(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Yield each figure with its name."""
    texts = sources(root)
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lines = [len(text.splitlines()) for text in texts.values()]
    bodies = list(functions(trees.values()))
    everything = [node for tree in trees.values() for node in public(tree.body)]
    typed = [node for node in everything if not isinstance(node, ast.ClassDef)]
    documented = [*trees.values(), *everything]
    docs = [doc for node in [*trees.values(), *bodies] if (doc := docstring(node)) is not None]
    words = [re.match(r"\W*(\w*)", str(doc.value)) for doc in docs]
    first = [match[1].lower() if match else "" for match in words]
    yield "files / lines", f"{len(texts)} / {sum(lines)}"
    yield "file lines, median / p90 / max", str(spread(lines))
    spans = ((node.end_lineno or node.lineno) - node.lineno + 1 for node in bodies)
    yield "function lines, median / p90 / max", str(spread(spans))
    yield "largest import cycle at load time, modules", cycle(trees, type_only=False)
    yield "largest import cycle with type-only imports", cycle(trees, type_only=True)
    yield "public functions with all types", percent(sum(map(is_typed, typed)), len(typed))
    missing = sum(docstring(node) is None for node in documented)
    yield "public definitions documented", percent(len(documented) - missing, len(documented))
    gives = sum(word in {"give", "gives"} for word in first)
    yield "docstrings 'Give' / 'Return'", f"{gives} / {first.count('return')}"
    yield from commit_rows(root)


def cycle(trees: dict[Path, ast.Module], *, type_only: bool) -> str:
    """Return the size of the largest import cycle in words."""
    return str(imports.largest_cycle(imports.graph(trees, type_only=type_only)) or "none")


def table(root: Path = ROOT) -> str:
    """Return the figures as a table in Markdown."""
    lines = ["| measured | value |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {value} |" for name, value in rows(root))]) + "\n"
