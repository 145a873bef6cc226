"""Every registered step is documented, listed in the stub, and numbers its requirements."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tilewright.schedules import STEPS
from tilewright.schedules.registry import primitives
from tilewright.schedules.stub import PATH, main, stub

ALL = sorted(STEPS.values(), key=lambda s: s.verb())


def test_committed_stub_is_current():
    assert PATH.read_text() == stub(), "run python -m tilewright.schedules.stub"
    assert main(["--check"]) == 0


@pytest.mark.parametrize("cls", ALL, ids=lambda c: c.verb())
def test_parameters_are_documented(cls):
    assert cls.summary().endswith(".")
    undocumented = [p.name for p in cls.parameters() if not p.doc]
    assert not undocumented


@pytest.mark.parametrize("cls", primitives(), ids=lambda c: c.verb())
def test_requirements_are_numbered_without_gaps(cls):
    numbers = list(cls.requirements())
    assert numbers == list(range(1, len(numbers) + 1))


SHORT = {"map_step": "TransformLayout", "step": "LoopPartition"}
"""Functions in tests that create a step, with the step."""


@cache
def rejections(folder: Path) -> frozenset[tuple[str, int]]:
    """Return the steps and numbers of all ``rejected(schedule, Step(...), number, ...)``."""
    found: set[tuple[str, int]] = set()
    for path in folder.glob("*/test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    ast.Name("rejected"),
                    [_, ast.Call(ast.Name(step)), ast.Constant(int(number)), *_],
                ):
                    found.add((SHORT.get(step, step), number))
                case _:
                    pass
    return frozenset(found)


@pytest.mark.parametrize("cls", primitives(), ids=lambda c: c.verb())
def test_every_requirement_has_a_rejecting_test(cls, root):
    found = rejections(root / "tests" / "schedules" / "primitives")
    tested = {number for step, number in found if step == cls.__name__}
    assert set(cls.requirements()) <= tested
