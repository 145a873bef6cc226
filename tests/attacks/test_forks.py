"""Forks while other threads compile leave working children."""

from __future__ import annotations

import pytest

from tests.attacks.children import run_child

pytestmark = pytest.mark.slow


def test_forks_while_other_threads_compile(scale: int) -> None:
    count = 8 * scale
    output = run_child("-m", "tests.attacks.forks", str(count), patience=120 + 10 * count)
    assert output == f"{count} children, 0 failed []"
