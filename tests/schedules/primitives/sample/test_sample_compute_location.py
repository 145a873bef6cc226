"""A loop to which a block can be moved."""

from __future__ import annotations

import tilewright as tw
from tilewright.schedules import Schedule
from tilewright.schedules.primitives.sample.sample_compute_location import SampleComputeLocation

from tests.schedules.helpers import rejected

COPY = """
@prim_func
def f(x: Buffer[(8, 64), f32], y: Out[(8, 64), f32]):
    t = alloc((8, 64), f32)
    for i in range(8):
        for j in range(64):
            t[i, j] = x[i, j] + 1.0
    for k in range(8):
        for l in range(64):
            y[k, l] = t[k, l] * 2.0
"""


def schedule(seed: int = 0, text: str = COPY) -> Schedule:
    return Schedule(tw.parse(text), seed=seed)


def test_all_legal_loops_are_drawn_and_imposed() -> None:
    found: set[str] = set()
    for seed in range(12):
        sch, other = schedule(seed), schedule(seed + 1)
        loop = sch.sample_compute_location("t")
        found.add(loop.name)
        sch.compute_at("t", loop)
        assert sch.verify(runs=1).ok
        assert other.replay(sch.trace).complete
        assert str(other) == str(sch)
    assert found == {"k", "l"}


def test_a_decision_that_does_not_fit() -> None:
    sch = schedule()
    block = sch.get_block("t")
    step = SampleComputeLocation(block, 2)
    text = "position 2 of 2 loops; expected 0 for loop 'k', 1 for loop 'l'"
    problem = rejected(sch, step, SampleComputeLocation.Requires.DECISION, text)
    assert not sch.check(problem.fixes[0])


def test_blocks_that_cannot_move() -> None:
    sch = schedule()
    step = SampleComputeLocation(sch.get_block("y"))
    rejected(
        sch,
        step,
        SampleComputeLocation.Requires.LOCATION,
        "no loop is around a block that reads the results of 'y'",
    )
    twice = COPY.replace("t[i, j] = x[i, j] + 1.0", "t[i, j] = x[i, j] + 1.0") + (
        "    for a in range(8):\n        y[a, 0] = t[a, 0]\n"
    )
    other = schedule(text=twice)
    step = SampleComputeLocation(other.get_block("t"))
    rejected(
        other,
        step,
        SampleComputeLocation.Requires.LOCATION,
        "cannot be moved to any of the loops 'k', 'l'",
    )


def test_a_selected_producer_is_suggested() -> None:
    sch = schedule()
    found = [s.step.title() for s in sch.suggest(sch.get_block("t"))]
    assert "sample_compute_location(block=t)" in found
    found = [s.step.title() for s in sch.suggest(sch.get_block("y"))]
    assert "sample_compute_location(block=y)" not in found
