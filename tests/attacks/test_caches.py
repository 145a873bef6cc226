"""Hostile and damaged caches change no result and stop no compilation."""

from __future__ import annotations

from tests.attacks.children import run_child


def test_hostile_and_damaged_caches(scale: int) -> None:
    assert run_child("-m", "tests.attacks.caches", str(8 * scale), str(scale)) == "right"
