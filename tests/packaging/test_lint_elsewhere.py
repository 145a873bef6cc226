"""The linter accepts a clone whose folder has a name that is not an identifier."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def test_module_names_are_accepted_in_a_clone_of_any_name(root: Path, tmp_path: Path) -> None:
    clone = tmp_path / "my-clone.2"
    for path in [root / "pyproject.toml", root / "__init__.py", *root.glob("ir/**/__init__.py")]:
        copy = clone / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--select", "N999", "."]
    result = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout.strip()) == (0, "All checks passed!"), result.stderr
