"""Tests of add_unit_loop."""

import numpy as np
import pytest

from tilewright.ir.dtype import f32
from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.nodes import Binary
from tilewright.ir.module import Module
from tilewright.ir.symbolic import var
from tilewright.schedules import Schedule
from tilewright.schedules.handles import LoopRef
from tilewright.schedules.primitives.loops.add_unit_loop import AddUnitLoop
from tilewright.schedules.problem import StepError
from tilewright.schedules.requirement import CommonRequirement


@pytest.fixture
def schedule():
    b, n = Builder("shares"), var("n", lower=0)
    x, y = b.param("x", (n,), f32), b.param("y", (n,), f32, "out")
    total, twice = b.temporary("total", (), f32), b.temporary("twice", (), f32)
    b.reduce(total, (n,), lambda i: b.load(x, i), name="sum")
    b.compute(twice, lambda: Binary("add", b.load(total), b.load(total)), name="double")
    b.compute(y, lambda i: Binary("mul", b.load(x, i), b.load(twice)), name="scale")
    return Schedule(Module().with_functions(b.finish()))


def outputs(schedule):
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    run_prim(schedule.module.prim("shares"), [x, y])
    return y


def test_unit_loops_around_a_loop_and_a_block(schedule, golden):
    before = outputs(schedule)
    (loop,) = schedule.get_loops(schedule.get_block("scale"))
    outer = schedule.add_unit_loop(loop)
    assert schedule.get_loops(schedule.get_block("scale")) == (outer, loop)
    alone = schedule.add_unit_loop(schedule.get_block("double"))
    assert schedule.get_loops(schedule.get_block("double")) == (alone,)
    golden("add_unit_loop.txt", str(schedule))
    np.testing.assert_array_equal(outputs(schedule), before)


def test_steps_apply_to_the_new_loop(schedule):
    unit = schedule.add_unit_loop(schedule.get_block("double"))
    schedule.unroll(unit)
    assert schedule.state.loop(unit).kind == "unrolled"


def test_suggested_for_a_block_outside_of_loops(schedule):
    found = {
        name: list(AddUnitLoop.suggest(schedule.state, schedule.get_block(name)))
        for name in ("sum", "double", "scale")
    }
    assert found == {"sum": [], "double": [AddUnitLoop(schedule.get_block("double"))], "scale": []}


def test_an_unknown_loop_is_rejected(schedule):
    with pytest.raises(StepError, match="q") as caught:
        schedule.add_unit_loop(LoopRef("shares", 10**6, "q"))
    assert [p.requirement for p in caught.value.problems] == [CommonRequirement.TARGETS_EXIST]
