"""Tests of clone_function."""

from tilewright.schedules.handles import FunctionRef
from tilewright.schedules.primitives.specialize.clone_function import CloneFunction

from tests.schedules.helpers import rejected
from tests.schedules.primitives.graph.test_callers import (
    BRANCHES,
    CHAIN,
    MAIN,
    RELU,
    X,
    binding,
    lowered,
    same,
)


def test_the_clone_has_its_own_schedule():
    schedule = lowered(CHAIN)
    clone = schedule.clone_function(RELU, call_sites=(binding(schedule, "t"),))
    schedule.split(schedule.get_loops(schedule.get_block("relu", clone.function))[-1], (None, 4))
    assert "scheduled" not in dict(schedule.module.prim("relu").attributes)
    assert "scheduled" in dict(schedule.module.prim(clone.function).attributes)
    assert same(schedule, X)


def test_requirements_of_clone_function():
    schedule = lowered(CHAIN)
    rejected(
        schedule,
        CloneFunction(MAIN, (binding(schedule, "t"),)),
        CloneFunction.Requires.LOOP_LEVEL,
        "not a loop-level function",
    )
    rejected(
        schedule,
        CloneFunction(RELU, (binding(schedule, "u"),)),
        CloneFunction.Requires.CALLS_FUNCTION,
        "'u' does not call 'relu'",
    )
    rejected(
        schedule,
        CloneFunction(RELU, ()),
        CloneFunction.Requires.ONE_CALL_SITE,
        "call_sites is empty",
    )


def test_a_call_in_a_branch_is_not_a_call_site():
    schedule = lowered(BRANCHES)
    multiply = FunctionRef("multiply")
    rejected(
        schedule,
        CloneFunction(multiply, (binding(schedule, "y"),)),
        CloneFunction.Requires.CALLS_FUNCTION,
        "does not call",
    )
