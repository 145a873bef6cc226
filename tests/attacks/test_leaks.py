"""Memory, descriptors, and threads are bounded in a long-running process."""

from __future__ import annotations

from tests.amounts import IS_LONG
from tests.attacks.children import run_child


def test_large_numbers_of_calls_and_compilations() -> None:
    calls, compiles = (10_000, 200) if IS_LONG else (1000, 10)
    output = run_child("-m", "tests.attacks.leaks", str(calls), str(compiles), patience=900)
    assert len(output.splitlines()) == 9
