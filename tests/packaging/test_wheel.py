"""Contents of the wheel and the source distribution, which install without node."""

from __future__ import annotations

import json
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def built(
    clone: Path, tmp_path_factory: pytest.TempPathFactory, run_without_node: Callable[..., str]
) -> tuple[Path, Path]:
    """The source distribution and the wheel that is built from it."""
    out = tmp_path_factory.mktemp("dist")
    run_without_node(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, cwd=clone)
    (sdist,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    return sdist, wheel


def package_files(clone: Path) -> set[str]:
    """Return the files that a distribution must contain, as paths below `tilewright/`."""
    folders = [clone / level for level in ("target", "ir", "schedules", "codegen", "workbench")]
    files = [f for folder in folders for f in folder.rglob("*") if f.is_file()]
    files += [*clone.glob("*.py"), clone / "py.typed"]
    return {str(f.relative_to(clone)) for f in files if "__pycache__" not in f.parts}


def test_wheel_contains_exactly_the_package(built: tuple[Path, Path], clone: Path) -> None:
    with zipfile.ZipFile(built[1]) as archive:
        names = [n for n in archive.namelist() if not n.endswith("/")]
    outside = [n for n in names if not n.startswith(("tilewright/", "tilewright-"))]
    assert outside == []
    inside = {n.removeprefix("tilewright/") for n in names if n.startswith("tilewright/")}
    assert inside == package_files(clone)
    assert {"workbench/static/widget.js", "workbench/static/widget.css"} <= inside


def test_sdist_contains_tests_and_browser_sources(built: tuple[Path, Path], clone: Path) -> None:
    with tarfile.open(built[0]) as archive:
        names = {n.partition("/")[2] for n in archive.getnames()}
    assert package_files(clone) <= names
    assert {"Makefile", "LICENSE", ".ci/run", "tests/conftest.py", "tests/packaging"} <= names
    assert not [n for n in names if "node_modules" in n]


def test_wheel_works_in_a_clean_environment(
    built: tuple[Path, Path],
    clone: Path,
    tmp_path: Path,
    environment: Callable[[str], Path],
    run_without_node: Callable[..., str],
) -> None:
    python = environment("wheel")
    pip = [sys.executable, "-m", "pip", "--python", python]
    run_without_node(*pip, "install", "--no-deps", "--no-index", built[1], cwd=tmp_path)
    script = (
        "import importlib, json, pkgutil, tilewright as tw\n"
        "found = [m.name for m in pkgutil.walk_packages(tw.__path__, 'tilewright.')]\n"
        "for name in found: name.endswith('__main__') or importlib.import_module(name)\n"
        "public = [name for name in tw.__all__ if getattr(tw, name) is None]\n"
        "print(json.dumps([tw.__file__, len(found), public]))\n"
    )
    file, count, missing = json.loads(run_without_node(python, "-c", script, cwd=tmp_path))
    assert Path(file).is_relative_to(python.parent.parent)
    assert count == len([f for f in package_files(clone) if f.endswith(".py")]) - 1
    assert missing == []
