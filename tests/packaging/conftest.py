"""A copy of the tree in a folder of another name, and environments that share dependencies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

NOT_COPIED = shutil.ignore_patterns(
    ".git",
    ".venv*",
    "node_modules",
    "__pycache__",
    "dist",
    "out",
    "*.egg-info",
    ".*_cache",
)

Environment = Callable[[str], Path]


def not_copied(root: Path) -> Callable[[str, list[str]], set[str]]:
    """Return a filter of build products; ``codegen/build`` is a package, ``build`` is not."""

    def ignore(folder: str, names: list[str]) -> set[str]:
        own = {"build"} if Path(folder) == root else set[str]()
        return {*NOT_COPIED(folder, names), *own}

    return ignore


@pytest.fixture(scope="session")
def clone(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree with browser assets, in a folder whose name is not a Python identifier."""
    target = tmp_path_factory.mktemp("elsewhere") / "some-other-name"
    shutil.copytree(root, target, ignore=not_copied(root))
    return target


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A function that creates a virtual environment with all dependencies, without Tilewright.

    A `.pth` file adds the site-packages of this environment as a plain folder, so that its `.pth`
    files, including that of the editable Tilewright, are not processed.
    """

    def make(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name) / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        python = folder / "bin" / "python"
        query = "import sysconfig; print(sysconfig.get_path('purelib'))"
        found = subprocess.run([python, "-c", query], capture_output=True, text=True, check=True)
        shared = Path(found.stdout.strip()) / "shared.pth"
        shared.write_text(sysconfig.get_path("purelib") + "\n")
        return python

    return make


@pytest.fixture(scope="session")
def run_without_node() -> Callable[..., str]:
    """A function that runs a command without node and npm on PATH and returns its output."""

    def run(*command: str | Path, cwd: Path) -> str:
        environ = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        folders = os.environ["PATH"].split(os.pathsep)
        environ["PATH"] = os.pathsep.join(f for f in folders if not (Path(f) / "node").exists())
        environ["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
        done = subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            cwd=cwd,
            env=environ,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
