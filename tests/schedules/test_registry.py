"""Every registered step is documented, listed in the stub, and names its requirements."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tilewright.schedules import STEPS
from tilewright.schedules.registry import primitives
from tilewright.schedules.requirement import CommonRequirement
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
def test_requirements_are_sentences_in_the_documentation(cls):
    assert len(cls.Requires.__members__) == len(cls.requirements())
    documentation = " ".join((cls.__doc__ or "").split())
    for member in cls.Requires:
        assert member.text[0].islower()
        assert not member.text.endswith(".")
        assert f"{member.key} {member.markup}" in documentation


@cache
def rejections(folder: Path) -> frozenset[str]:
    """Return the requirements, as source text, of all ``rejected(schedule, step, ...)``."""
    found: set[str] = set()
    for path in (*folder.glob("*/test_*.py"), *folder.parent.glob("test_*_checks.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(ast.Name("rejected"), [_, _, ast.Attribute() as requirement, *_]):
                    found.add(ast.unparse(requirement))
                case _:
                    pass
    return frozenset(found)


@pytest.mark.parametrize(
    "requirement",
    [*CommonRequirement, *(member for cls in primitives() for member in cls.Requires)],
    ids=repr,
)
def test_every_requirement_has_a_rejecting_test(requirement, root):
    assert repr(requirement) in rejections(root / "tests" / "schedules" / "primitives")
