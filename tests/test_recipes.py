"""The recipes of CONTRIBUTING.md work: their files, applied to a copy, pass their checks.

A fenced block of a recipe is a new file (``python file=PATH``), added and removed lines of an
existing file (``diff file=PATH``), or a check in Python or of the shell (``python check``,
``sh check``), which runs in the copy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = re.compile(r"^## Adding (.*?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```(\w+) (check|file=(\S+))\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", "node_modules", "__pycache__", "*.egg-info", ".*_cache", "models"
)
EXTENSIONS = (
    "an operator",
    "an importer entry",
    "a library function",
    "a right-hand side",
    "a statement",
    "an element function",
    "a dtype",
    "a primitive",
    "a composite step",
    "a default rule",
    "a tensor instruction",
    "a lowering pass",
    "a target",
    "a panel of the workbench",
)
TESTED = (
    ("tests/codegen/lower/test_math.py", "cbrt"),
    ("tests/ir/graph/test_operators.py", "softplus or cbrt"),
    ("tests/ir/loop/test_element_functions.py", "cbrt"),
    ("tests/codegen/lower/math/test_functions.py", "cbrt"),
    ("tests/ir/test_dtype.py", "f8_e3m4 or names_in_other"),
    ("tests/codegen/lower/math/test_conversions.py", "f8_e3m4"),
)
"""Tests of the tree that cover the examples, with the selected cases."""


@dataclass(frozen=True)
class Recipe:
    """One recipe: its blocks of each kind, in order."""

    name: str
    created: tuple[tuple[str, str], ...]
    changed: tuple[tuple[str, str], ...]
    checks: tuple[str, ...]
    commands: tuple[str, ...]


def recipe(name: str, text: str) -> Recipe:
    """Return the blocks of a recipe."""
    found = [(m[1], m[3], m[4]) for m in BLOCK.finditer(text)]
    return Recipe(
        name,
        tuple((path, body) for kind, path, body in found if path and kind != "diff"),
        tuple((path, body) for kind, path, body in found if path and kind == "diff"),
        tuple(body for kind, path, body in found if not path and kind == "python"),
        tuple(body for kind, path, body in found if not path and kind == "sh"),
    )


ALL = {name: recipe(name, text) for name, text in RECIPES.findall(TEXT)}


def changed(source: str, difference: str) -> str:
    """Return a text with the added and removed lines of a difference without positions."""
    lines = difference.splitlines()
    old = "\n".join(line[1:] for line in lines if not line.startswith("+"))
    new = "\n".join(line[1:] for line in lines if not line.startswith("-"))
    assert source.count(f"{old}\n") == 1, f"expected one occurrence of:\n{old}"
    return source.replace(f"{old}\n", f"{new}\n")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with the files of all recipes."""
    folder = tmp_path_factory.mktemp("recipes") / "tilewright"
    shutil.copytree(ROOT, folder, ignore=NOT_COPIED)
    (folder / "extensions" / "node_modules").symlink_to(ROOT / "extensions" / "node_modules")
    for one in ALL.values():
        for path, body in one.created:
            assert not (folder / path).exists(), f"{one.name}: {path} exists"
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(body)
        for path, body in one.changed:
            file = folder / path
            file.write_text(changed(file.read_text("utf-8"), body))
    return folder


def run(copy: Path, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that imports `tilewright` from the copy."""
    paths = os.pathsep.join(map(str, (copy.parent, copy)))
    return subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": paths},
        cwd=cwd or copy,
        capture_output=True,
        text=True,
        check=False,
    )


RUNNER = """
import json, linecache, sys, traceback
import numpy as np
import tilewright as tw
checks = json.load(open(sys.argv[1]))
assert tw.__file__ == sys.argv[2], tw.__file__
failed = {}
for name, sources in checks.items():
    for source in sources:
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        try:
            exec(compile(source, name, "exec"), {"np": np, "tw": tw})
        except BaseException:
            failed[name] = traceback.format_exc()
print(json.dumps(failed))
"""


@pytest.fixture(scope="module")
def failures(copy: Path) -> dict[str, str]:
    """The tracebacks of the checks that failed, by recipe; all checks run in one process."""
    checks = copy.parent / "checks.json"
    checks.write_text(json.dumps({one.name: one.checks for one in ALL.values()}))
    done = run(copy, sys.executable, "-c", RUNNER, str(checks), str(copy / "__init__.py"))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_extension_has_a_recipe() -> None:
    assert tuple(ALL) == EXTENSIONS
    assert [name for name, one in ALL.items() if not (one.checks or one.commands)] == []
    assert [name for name, one in ALL.items() if not (one.created or one.changed)] == []


@pytest.mark.parametrize("name", ALL)
def test_recipe(name: str, failures: dict[str, str]) -> None:
    assert name not in failures, failures[name]


@pytest.mark.parametrize("name", [name for name, one in ALL.items() if one.commands])
def test_commands(name: str, copy: Path) -> None:
    for command in ALL[name].commands:
        done = run(copy, "bash", "-ec", command)
        assert done.returncode == 0, done.stdout + done.stderr


def test_examples_follow_the_style(copy: Path) -> None:
    files = [path for one in ALL.values() for path, _ in (*one.created, *one.changed)]
    python = sorted({path for path in files if path.endswith(".py")})
    for command in (("check",), ("format", "--check")):
        done = run(copy, sys.executable, "-m", "ruff", *command, *python)
        assert done.returncode == 0, done.stdout


def test_tests_of_the_examples_pass(copy: Path) -> None:
    own = [p for one in ALL.values() for p, _ in one.created if p.startswith("tests/")]
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--update-golden"]
    words = " or ".join(word for _, word in TESTED)
    names = " or ".join(Path(p).stem for p in own)
    command = [sys.executable, "-m", "pytest", *options, *(p for p, _ in TESTED), *own]
    done = run(copy, *command, "-k", " or ".join(filter(None, (words, names))))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
