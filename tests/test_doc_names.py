"""Names in the documents and in hints exist: files, public names, and steps."""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.codegen.runtime.executable import Executable
from tilewright.ir.script import vocabulary
from tilewright.schedules import Schedule
from tilewright.schedules.registry import STEPS
from tilewright.workbench import Workbench

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
CORRECT = [page for page in PAGES if page.name != "errors.md"]
"""The pages without the gallery of mistakes, which another test generates."""

FOLDERS = ("codegen", "ir", "schedules", "target", "workbench")
SOURCES = [
    *sorted(ROOT.glob("*.py")),
    *(p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.py"))),
]
PRODUCTS = {"layer.py", "NAME.py", "NAME.cdx.json", "NAME.json", "wheels/"}
"""Files that examples write."""

OBJECTS = {"tw": tw, "sch": Schedule, "exe": Executable, "wb": Workbench}
EXAMPLE_STEPS = {"decompose", "find_mm", "step", "strip"}
"""Steps that examples define, and parts of names."""

OTHER_NAMES = {
    "all_of", "any_of", "as_strided", "call_sites", "ceil_mode", "divisor_override",
    "example_inputs", "index_put", "inv_std_var", "make_tuple", "multiple_of", "output_padding",
    "output_shape", "panel_bits", "repeat_interleave", "serialized_type_name", "sm_80",
}  # fmt: skip
"""Names in messages that are not steps: parameters, functions, and an architecture."""

SUFFIXES = ("py", "pyi", "md", "toml", "ts", "tsx", "svg", "json", "ipynb")
PATH = re.compile(rf"[\w.-]+(?:/[\w.-]+)*/|[\w.-]+(?:/[\w.-]+)*\.(?:{'|'.join(SUFFIXES)})")


def text_of(page: Path) -> str:
    """Return a page without names of TVM and without recipes, which another test runs."""
    before, heading, after = page.read_text("utf-8").partition("## If you know TVM")
    text = before + heading + re.sub(r"^\| [^|]+ \|", "|", after, flags=re.MULTILINE)
    return re.sub(r"^```\w+ (?:check|file=).*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def backticked(text: str) -> Iterator[str]:
    """Yield the code in prose; code blocks are examples, which other tests run."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    yield from re.findall(r"`([^`\n]+)`", prose)


@pytest.fixture(scope="module")
def tree() -> set[str]:
    """The paths of all files and folders, and their names."""
    skipped = {".git", ".venv", "node_modules", "__pycache__"}
    found = set[str]()
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in skipped]
        for name in (*folders, *files):
            found |= {(Path(folder) / name).relative_to(ROOT).as_posix(), name}
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_exist(page: Path, tree: set[str]) -> None:
    named = {code for code in backticked(page.read_text("utf-8")) if PATH.fullmatch(code)}
    assert {n for n in named if n.rstrip("/") not in tree} - PRODUCTS == set()


@pytest.mark.parametrize("page", CORRECT, ids=lambda page: page.name)
def test_public_names_exist(page: Path) -> None:
    text = text_of(page)
    used = re.findall(r"\b(tw|sch|exe|wb)\.([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))?", text)
    missing = set[str]()
    for name, first, second in used:
        owner = OBJECTS[name]
        if first in ("py", "md") or first in EXAMPLE_STEPS:
            continue
        if not hasattr(owner, first):
            missing.add(f"{name}.{first}")
        elif second and name == "tw" and not hasattr(getattr(owner, first), second):
            missing.add(f"{name}.{first}.{second}")
    assert missing == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_imported_names_exist(page: Path) -> None:
    from importlib import import_module

    for module, names in re.findall(r"from (tilewright[\w.]*) import ([\w, ]+)", text_of(page)):
        home = import_module(module)
        for name in (n.strip().partition(" as ")[0] for n in names.split(",")):
            assert hasattr(home, name), f"{page.name}: {module}.{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_stay_inside_of_the_repository(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text("utf-8"))
    assert [x for x in links if not (page.parent / x).resolve().is_relative_to(ROOT)] == []


def test_documents_named_in_sources_exist(tree: set[str]) -> None:
    """No comment, message, or page refers to a document outside of the repository."""
    missing = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in (*PAGES, *SOURCES)
        for name in re.findall(r"[\w-]+\.md\b", path.read_text("utf-8"))
        if name not in tree
    }
    assert missing == set()


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a source."""
    return ast.parse(path.read_text("utf-8"))


def strings(node: ast.AST) -> Iterator[str]:
    """Yield the string literals inside of a node."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def messages() -> Iterator[tuple[str, str]]:
    """Yield the texts of errors, problems, and variables named ``hint``, with their sources."""
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            match node:
                case ast.Call(func=ast.Name(id=name)) if name.endswith(("Error", "Problem")):
                    found = strings(node)
                case ast.Assign(targets=[ast.Name(id="hint")], value=value):
                    found = strings(value)
                case _:
                    continue
            for text in found:
                if " " in text.strip():
                    yield path.relative_to(ROOT).as_posix(), text


def test_steps_named_in_messages_exist() -> None:
    """``sch.name`` in any string, and names like ``cache_read`` in a message, exist."""
    steps = {*STEPS, *dir(Schedule)}
    known = {*steps, *tw.__all__, *vocabulary.__all__, *OTHER_NAMES}
    named = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in SOURCES
        for text in strings(parsed(path))
        for name in re.findall(r"(?<![\w.])sch\.([a-z_]*[a-z])\b", text)
    }
    assert {(path, name) for path, name in named if name not in steps | EXAMPLE_STEPS} == set()
    mentioned = {
        (path, name)
        for path, text in messages()
        for name in re.findall(r"(?<![.\w])[a-z]+(?:_[a-z0-9]+)+\b(?![(=.])", text)
    }
    assert len([name for _, name in mentioned if name in STEPS]) > 5
    assert {(path, name) for path, name in mentioned if name not in known} == set()


def test_folders_of_the_figure_exist(tree: set[str]) -> None:
    figure = (ROOT / "docs" / "architecture.svg").read_text("utf-8")
    named = {
        folder
        for texts in re.findall(r'<text class="path"[^>]*>([^<]*)</text>', figure)
        for folder in texts.split(", ")
    }
    assert {"ir/graph", "codegen/llvm", "extensions"} <= named
    assert named - tree == set()
