"""A disabled requirement is noticed, and only that requirement is disabled."""

from __future__ import annotations

from tilewright.schedules.primitives.loops.loop_partition import LoopPartition
from tilewright.schedules.primitives.loops.unroll import Unroll

from tests.fuzz.mutate import Result, by_walks, disabled
from tests.schedules.helpers import schedule

PROGRAM = """
@prim_func
def random(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] + 1.0
"""


def test_only_one_requirement_is_disabled():
    sch = schedule(PROGRAM)
    (loop,) = sch.get_loops("y")
    step = LoopPartition(loop, 9)
    required = LoopPartition.Requires.POINT_IN_RANGE
    assert [p.requirement for p in sch.check(step)] == [required]
    with disabled(LoopPartition, LoopPartition.Requires.SERIAL):
        assert [p.requirement for p in sch.check(step)] == [required]
    with disabled(LoopPartition, required):
        assert not sch.check(step)
    assert sch.check(step)


def test_a_walk_notices_a_disabled_requirement():
    phase, walks = by_walks(LoopPartition, LoopPartition.Requires.POINT_IN_RANGE, 60)
    assert phase
    assert walks >= 1


def test_results_state_the_checks():
    assert str(Result("unroll", Unroll.Requires.SERIAL.key, "", False, 3)) == (
        "unroll.serial: SURVIVED, 3 walks"
    )
    both = Result("unroll", "serial", "native", True, 1)
    assert str(both) == "unroll.serial: noticed by a walk (native) and its tests, 1 walks"
    assert not both.survived
