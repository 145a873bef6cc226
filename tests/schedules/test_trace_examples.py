"""The page about traces: current, and its default traces replay to identical programs."""

from __future__ import annotations

import re

import pytest

from tilewright.ir.script import parse
from tilewright.ir.structural_hash import structural_hash
from tilewright.schedules import STEPS, Schedule, from_json, from_python, registry, to_json
from tilewright.schedules.methods import ScheduleMethods
from tilewright.schedules.rules import with_default_schedule
from tilewright.schedules.trace_examples import COPY, CPU, GPU, MATMUL, default_trace, page

PAGE = page()
PYTHON = re.findall(r"```python\n(.*?)\n```", PAGE, re.DOTALL)


def test_the_committed_page_is_current(root):
    committed = (root / "docs" / "traces.md").read_text(encoding="utf-8")
    assert committed == PAGE, "run python -m tilewright.schedules.trace_examples > docs/traces.md"


@pytest.mark.parametrize("target", [CPU, GPU], ids=["cpu", "gpu"])
def test_every_form_of_a_default_trace_replays_to_the_same_program(target):
    expected = structural_hash(with_default_schedule(parse(MATMUL), target))
    trace = default_trace(target)
    once = trace.ungrouped(0).folded()
    texts = [str(trace), str(trace.folded()), str(once), to_json(trace), to_json(once)]
    assert len(set(texts)) == 5
    for text in texts:
        schedule = Schedule(parse(MATMUL), target)
        parsed = from_json(text) if text.startswith("{") else from_python(text)
        schedule.replay(parsed).completed()
        assert structural_hash(schedule.module) == expected
        if text in (texts[0], texts[1], texts[3]):
            assert schedule.trace == trace


@pytest.mark.parametrize("target", [CPU, GPU], ids=["cpu", "gpu"])
def test_the_page_contains_the_traces(target):
    assert str(default_trace(target)) in PYTHON


def test_the_example_of_a_decorator_runs():
    source = next(code for code in PYTHON if "@tw.composite" in code)
    schedule = Schedule(parse(COPY))
    exec(source, {"sch": schedule, "__name__": "__main__"})
    assert schedule.head.step.op == "strip"
    del registry._STEPS["strip"]
    delattr(ScheduleMethods, "strip")
    assert "strip" not in STEPS
