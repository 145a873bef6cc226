"""Every registered step is documented, listed in the stub, and numbers its requirements."""

import re

import pytest

from tilewright.schedules import STEPS
from tilewright.schedules.primitive import primitives
from tilewright.schedules.stub import PLACE, main, stub

ALL = sorted(STEPS.values(), key=lambda s: s.verb())


def test_the_stub_is_what_the_registry_says():
    assert PLACE.read_text() == stub(), "run python -m tilewright.schedules.stub"
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


@pytest.mark.parametrize("cls", primitives(), ids=lambda c: c.verb())
def test_every_requirement_has_a_rejecting_test(cls, root):
    """Tests write ``rejected(sch, Verb(...), number``; graph steps have their own manner."""
    if cls.family not in ("annotate", "caching", "layout", "loops", "placement", "reduction"):
        return
    folder = root / "tests" / "schedules" / "primitives" / cls.family
    text = "\n".join(path.read_text() for path in folder.glob("test_*.py"))
    text = text.replace("map_step(", "TransformLayout(").replace(" step(sch", " LoopPartition(sch")
    calls = re.findall(rf"rejected\(\s*\w+, {cls.__name__}\(.*?\), (\d+)", text, re.DOTALL)
    tested = {int(n) for n in calls}
    assert set(cls.requirements()) <= tested
