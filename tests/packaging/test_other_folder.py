"""The tree works from a clone in a folder of another name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

FAST_TESTS = ["tests/test_imports.py", "tests/schedules/primitives/loops/test_loop_partition.py"]
"""Tests of imports by name, and tests with helpers, goldens, and strategies of other folders."""


def test_tests_pass_in_a_clone_of_another_name(
    clone: Path, environment: Callable[[str], Path], run_without_node: Callable[..., str]
) -> None:
    python = environment("clone")
    pip = [sys.executable, "-m", "pip", "--python", python, "install"]
    options = ["--no-deps", "--no-index", "--no-build-isolation"]
    run_without_node(*pip, *options, "--editable", ".", cwd=clone)
    where = run_without_node(
        python, "-c", "import tilewright; print(tilewright.__file__)", cwd=clone.parent
    )
    assert Path(where.strip()) == clone / "__init__.py"
    run_without_node(python, "-m", "pytest", "-q", "-x", *FAST_TESTS, cwd=clone)
