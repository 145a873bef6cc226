"""A copy of the tree in a folder of another name, and environments that borrow our dependencies."""

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
    "build",
    "dist",
    "out",
    "*.egg-info",
    ".*_cache",
)

Environment = Callable[[str], Path]


@pytest.fixture(scope="session")
def clone(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree, browser assets included, in a folder whose name is no Python name."""
    target = tmp_path_factory.mktemp("elsewhere") / "some-other-name"
    shutil.copytree(root, target, ignore=NOT_COPIED)
    return target


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Make a virtual environment that has everything of ours but Tilewright itself.

    A `.pth` line adds our site-packages as a plain folder: the `.pth` files in there, among them
    the editable Tilewright, are not read again.
    """

    def make(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name) / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        python = folder / "bin" / "python"
        query = "import sysconfig; print(sysconfig.get_path('purelib'))"
        found = subprocess.run([python, "-c", query], capture_output=True, text=True, check=True)
        borrowed = Path(found.stdout.strip()) / "borrowed.pth"
        borrowed.write_text(sysconfig.get_path("purelib") + "\n")
        return python

    return make


@pytest.fixture(scope="session")
def run_without_node() -> Callable[..., str]:
    """Run a command with neither node nor npm on PATH, and return what it printed."""

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
