"""Each primitive, and each composite step of the library, before and after its example."""

from __future__ import annotations

import doctest
from typing import TYPE_CHECKING, Any

import pytest

from tilewright.schedules import Schedule
from tilewright.schedules.apply import prepared
from tilewright.schedules.registry import composites, primitives

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewright.schedules.apply import Applied
    from tilewright.schedules.step import Step

STEPS = (*primitives(), *(c for c in composites() if c.family == "library"))


def recorded(step: type[Step], monkeypatch: pytest.MonkeyPatch) -> tuple[str, str, str]:
    """Run the example of a step; return the call, and the program before and after it."""
    found: list[tuple[str, str, str]] = []
    original: Callable[..., Applied] = Schedule.apply

    def apply(self: Schedule, made: Step, **options: Any) -> Applied:
        before, call = str(self), prepared(self.state, made).title()
        applied = original(self, made, **options)
        if isinstance(made, step):
            found.append((call, before, str(self)))
        return applied

    monkeypatch.setattr(Schedule, "apply", apply)
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(step.__doc__ or ""):
        exec(compile(example.source, f"<example of {step.verb()}>", "single"), names)
    assert found, f"the documentation of {step.verb()} has no example that applies it"
    return found[0]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.verb())
def test_the_example_before_and_after(
    step: type[Step],
    monkeypatch: pytest.MonkeyPatch,
    golden: Callable[[str, str], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    call, before, after = recorded(step, monkeypatch)
    capsys.readouterr()
    unchanged = after == before
    text = "The program does not change." if unchanged else after
    golden(f"primitives/{step.verb()}.txt", f"{call}\n\nBefore:\n\n{before}\n\nAfter:\n\n{text}")
