"""Tile sizes whose inner part is a multiple of a factor."""

from __future__ import annotations

import collections

import tilewright as tw
from tilewright.schedules import Schedule
from tilewright.schedules.primitives.sample.sample_partitioned_tile import SamplePartitionedTile

from tests.schedules.helpers import rejected

COPY = """
@prim_func
def f(x: Buffer[(24,), f32], y: Out[(24,), f32]):
    for i in range(24):
        y[i] = x[i]
"""


def schedule(seed: int = 0) -> Schedule:
    return Schedule(tw.parse(COPY), seed=seed)


def test_all_legal_sizes_are_drawn() -> None:
    found = collections.Counter(
        schedule(seed).sample_partitioned_tile("i", 2, 1, 4) for seed in range(300)
    )
    assert set(found) == {(6, 4), (3, 8), (2, 12), (1, 24)}
    assert min(found.values()) > 40


def test_the_inner_part_is_a_multiple() -> None:
    for seed in range(30):
        a, b, c, d = schedule(seed).sample_partitioned_tile("i", 4, 2, 6)
        assert (a * b * c * d, c * d % 6) == (24, 0)


def test_a_replay_imposes_the_decision() -> None:
    sch = schedule(1)
    sch.split("i", factors=sch.sample_partitioned_tile("i", 3, 1, 2))
    other = schedule(2)
    assert other.replay(sch.trace).complete
    assert str(other) == str(sch)


def test_illegal_parameters_and_decisions() -> None:
    sch = schedule()
    loop = sch.get_loop("i")
    rejected(
        sch, SamplePartitionedTile(loop, 9, 1), SamplePartitionedTile.Requires.PARTS, "9 tile sizes"
    )
    rejected(
        sch,
        SamplePartitionedTile(loop, 2, 0),
        SamplePartitionedTile.Requires.PARTS,
        "at position 0 of 2 sizes",
    )
    rejected(
        sch,
        SamplePartitionedTile(loop, 2, 2),
        SamplePartitionedTile.Requires.PARTS,
        "expected 1 to 1",
    )
    step = SamplePartitionedTile(loop, 2, 1, 16)
    problem = rejected(
        sch, step, SamplePartitionedTile.Requires.DIVISIBLE, "does not divide the extent 24"
    )
    assert problem.fixes[0].innerpart_factor == 8
    assert not sch.check(problem.fixes[0])
    for decision in ((4, 6), (2, 3), (24,), (-6, -4)):
        step = SamplePartitionedTile(loop, 2, 1, 4, decision)
        problem = rejected(sch, step, SamplePartitionedTile.Requires.DECISION, "a multiple of 4")
        assert not sch.check(problem.fixes[0])
    text = COPY.replace("24", "n")
    other = Schedule(tw.parse('n = symbols("n", lower=1)\n' + text))
    step = SamplePartitionedTile(other.get_loop("i"), 2, 1)
    rejected(other, step, SamplePartitionedTile.Requires.CONSTANT_EXTENT, "has n iterations")
