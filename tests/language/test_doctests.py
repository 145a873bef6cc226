"""The examples in the checker's docstrings are correct."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

MODULES = sorted(
    path.stem for path in (Path(__file__).parents[2] / ".ci" / "language").glob("[a-z]*.py")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"language.{name}"))
    assert result.failed == 0
