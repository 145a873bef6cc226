"""Verification of the program after every step of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

import pytest

from tilewright.ir.loop.rules import VALID_NAMES
from tilewright.ir.verify import violations
from tilewright.schedules.step_watcher import watching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tilewright.ir.loop.nodes import PrimFunc
    from tilewright.ir.module import Module

_VERIFIED: WeakSet[PrimFunc] = WeakSet()


def _check(module: Module) -> None:
    for function in module.prims:
        if function in _VERIFIED:
            continue
        found = [str(v) for v in violations(function) if v.rule is not VALID_NAMES]
        assert not found, f"a step made an ill-formed function: {found}\n{function}"
        _VERIFIED.add(function)


@pytest.fixture(autouse=True)
def _verified_steps() -> Iterator[None]:
    """Check the well-formedness rules of every loop-level function that a step makes."""
    with watching(_check):
        yield


@pytest.fixture
def unverified_steps(_verified_steps: None) -> Iterator[None]:
    """Do not verify the steps of a test that measures their time."""
    with watching(lambda _: None):
        yield
