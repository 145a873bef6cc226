"""The list of packages in pyproject.toml matches the tree."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest


@pytest.fixture
def project(root: Path) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text())


def packages_of(root: Path) -> list[str]:
    """Return the import names of all folders of the package."""
    levels = [root / name for name in ("target", "ir", "schedules", "codegen", "workbench")]
    folders = {file.parent for level in levels for file in level.rglob("*.py")} | {root}
    return sorted(".".join(("tilewright", *f.relative_to(root).parts)) for f in folders)


def test_listed_packages_are_those_of_the_tree(project: dict, root: Path) -> None:
    assert project["tool"]["setuptools"]["packages"] == packages_of(root)


def test_every_package_has_an_init(root: Path) -> None:
    folders = [root.joinpath(*name.split(".")[1:]) for name in packages_of(root)]
    assert [f for f in folders if not (f / "__init__.py").exists()] == []


def test_no_init_under_tests(root: Path) -> None:
    assert list((root / "tests").rglob("__init__.py")) == []


def test_every_extra_with_torch_pins_it(project: dict) -> None:
    extras = project["project"]["optional-dependencies"]
    names = ["cross", "demo", "dev", "gpu", "lab", "onnx", "suites", "torch", "webgpu"]
    assert sorted(extras) == names
    torch = {name: d for name, deps in extras.items() for d in deps if d.startswith("torch=")}
    assert torch == dict.fromkeys(("demo", "suites", "torch"), "torch==2.13.0")
