"""Figures of the code style, on a tree of a few files."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from language import imports, metrics
from language.metrics import Spread, spread

FILES = {
    "__init__.py": '"""Top."""\nfrom .ir import first\n',
    "ir/__init__.py": '"""Package."""\n',
    "ir/first.py": '"""A."""\nfrom . import second\n\n\ndef f(x: int) -> int:\n    """Give."""\n',
    "ir/second.py": (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from .first import f\n\n\n"
        "class Row:\n    def g(self, y):\n        def inner():\n            pass\n"
    ),
    "ir/third.py": '"""C."""\n\n\ndef later():\n    """Return it."""\n    from . import first\n',
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_figures_of_a_tree(tree: Path) -> None:
    rows = dict(metrics.rows(tree))
    assert rows["files / lines"] == "5 / 25"
    assert rows["file lines, median / p90 / max"].endswith(" / 10")
    assert rows["function lines, median / p90 / max"].startswith("2 / ")
    assert rows["largest import cycle at load time, modules"] == "none"
    assert rows["largest import cycle with type-only imports"] == "2"
    assert rows["public functions with all types"] == "33 %"
    assert rows["public definitions documented"] == "66 %"
    assert rows["docstrings 'Give' / 'Return'"] == "1 / 1"
    assert rows["commits since the baseline"] == "0"


def test_the_table_is_markdown(tree: Path) -> None:
    first, second, *rest = metrics.table(tree).splitlines()
    assert (first, second) == ("| measured | value |", "|---|---|")
    assert all(line.startswith("| ") and line.endswith(" |") for line in rest)


def test_spread_of_numbers() -> None:
    assert spread([3]) == Spread(3, 3, 3)
    assert str(spread(range(1, 102))) == "51 / 92 / 101"


def test_relative_imports_resolve_to_modules() -> None:
    trees = {Path(name): ast.parse(text) for name, text in FILES.items()}
    graph = imports.graph(trees, type_only=True)
    assert graph[""] == {"ir.first"}
    assert graph["ir.first"] == {"ir.second"}
    assert graph["ir.second"] == {"ir.first"}
    assert graph["ir.third"] == set()


@pytest.mark.parametrize(
    ("edges", "size"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, 0),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, 2),
        ({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}}, 3),
    ],
)
def test_the_largest_cycle(edges: imports.Graph, size: int) -> None:
    assert imports.largest_cycle(edges) == size
