"""One of some integers, by probabilities."""

from __future__ import annotations

import collections

import pytest

import tilewright as tw
from tilewright.schedules import Schedule
from tilewright.schedules.primitives.sample.sample_categorical import SampleCategorical

from tests.schedules.helpers import rejected

COPY = """
@prim_func
def f(x: Buffer[(64,), f32], y: Out[(64,), f32]):
    for i in range(64):
        y[i] = x[i]
"""


def schedule(seed: int = 0) -> Schedule:
    return Schedule(tw.parse(COPY), seed=seed)


def test_the_frequencies_are_the_probabilities() -> None:
    values, chances = (4, 8, 16), (0.7, 0.3, 0.0)
    found = collections.Counter(
        schedule(seed).sample_categorical(values, chances) for seed in range(400)
    )
    assert set(found) == {4, 8}
    assert 240 < found[4] < 320
    equal = collections.Counter(schedule(seed).sample_categorical(values) for seed in range(300))
    assert set(equal) == {4, 8, 16}


def test_a_replay_imposes_the_position() -> None:
    sch = schedule(7)
    sch.split("i", factors=(None, sch.sample_categorical((2, 4, 8, 16, 32))))
    for seed in range(5):
        other = schedule(seed)
        assert other.replay(sch.trace).complete
        assert str(other) == str(sch)


def test_steps_draw_independently() -> None:
    sch = schedule()
    assert len({sch.sample_categorical(tuple(range(1000))) for _ in range(5)}) == 5


def test_no_integers() -> None:
    step = SampleCategorical(())
    rejected(schedule(), step, SampleCategorical.Requires.CANDIDATES, "no integer")


@pytest.mark.parametrize(("chances", "text"), [
    ((1.0,), "the 1 probabilities of 2 integers"),
    ((0.5, 0.4), "with the sum 0.9"),
    ((1.5, -0.5), "with the sum 1"),
    ((float("nan"), 1.0), "with the sum nan"),
])  # fmt: skip
def test_illegal_probabilities(chances: tuple[float, ...], text: str) -> None:
    step = SampleCategorical((1, 2), chances)
    rejected(schedule(), step, SampleCategorical.Requires.PROBABILITIES, text)


@pytest.mark.parametrize("position", [-1, 2])
def test_illegal_decisions(position: int) -> None:
    step = SampleCategorical((4, 8), None, position)
    text = f"position {position} of 2 integers; expected 0 for 4, 1 for 8"
    rejected(schedule(), step, SampleCategorical.Requires.DECISION, text)
