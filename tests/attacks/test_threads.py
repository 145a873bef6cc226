"""Sixteen threads compile, call, profile, and trim at once."""

from __future__ import annotations

from tests.attacks.children import run_child


def test_sixteen_threads(scale: int) -> None:
    seconds = 4 * scale
    output = run_child("-m", "tests.attacks.threads", str(seconds), patience=120 + seconds)
    assert int(output.split()[0]) > 50
