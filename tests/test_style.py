"""Style rules that the linters do not check: sizes, imports, skipped tests."""

from __future__ import annotations

import ast
import inspect
import statistics
from pathlib import Path

import pytest

LONGEST_FUNCTION = 80
LONGEST_FILE = 600
LONG_FILE = 400  # 90 % of the files are shorter
MEDIAN_FUNCTION = 10


@pytest.fixture(scope="module")
def sources(root: Path) -> dict[Path, ast.Module]:
    paths = [root / "__init__.py"]
    for folder in ("target", "ir", "schedules", "codegen", "workbench"):
        paths += sorted((root / folder).rglob("*.py"))
    return {path.relative_to(root): ast.parse(path.read_text()) for path in paths}


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of a function without its docstring and decorators."""
    first = node.body[0]
    documented = ast.get_docstring(node, clean=False) is not None
    doc = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
    return (node.end_lineno or node.lineno) - node.lineno + 1 - doc


def functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_no_long_function(sources: dict[Path, ast.Module]) -> None:
    long = {
        f"{path}:{node.lineno} {node.name}": lines
        for path, tree in sources.items()
        for node in functions(tree)
        if (lines := body_lines(node)) > LONGEST_FUNCTION
    }
    assert long == {}


def test_median_function_is_short(sources: dict[Path, ast.Module]) -> None:
    lines = [body_lines(node) for tree in sources.values() for node in functions(tree)]
    assert statistics.median(lines) <= MEDIAN_FUNCTION


def test_files_are_short(sources: dict[Path, ast.Module], root: Path) -> None:
    counts = {str(path): len((root / path).read_text().splitlines()) for path in sources}
    assert {path: count for path, count in counts.items() if count > LONGEST_FILE} == {}
    assert statistics.quantiles(counts.values(), n=10)[-1] <= LONG_FILE


def test_imports_inside_the_package_are_relative(sources: dict[Path, ast.Module]) -> None:
    absolute = {
        f"{path}:{node.lineno}"
        for path, tree in sources.items()
        for node in ast.walk(tree)
        for name in imported(node)
        if name.partition(".")[0] == "tilewright"
    }
    assert absolute == set()


def imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
        case _:
            return []


def test_no_test_is_skipped_or_expected_to_fail(root: Path) -> None:
    words = ("pytest." + "skip", "mark." + "skip", "mark." + "xfail", "import" + "orskip")
    found = {
        f"{path.relative_to(root)}: {word}"
        for path in sorted((root / "tests").rglob("*.py"))
        for word in words
        if word in path.read_text()
    }
    assert found == set()


def test_body_lines_counts_code_only() -> None:
    source = inspect.cleandoc('''
        def f(x):
            """One.

            Two.
            """
            return x
    ''')
    assert [body_lines(node) for node in functions(ast.parse(source))] == [2]
