"""Tests of plan_memory."""

from tilewright.ir.graph.nodes import AllocStorage
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.handles import FunctionRef
from tilewright.schedules.primitives.memory.plan_memory import PlanMemory

from tests.schedules.helpers import rejected
from tests.schedules.primitives.graph.test_callers import CHAIN, MAIN, RELU, X, launched, same

LONG = CHAIN.replace(
    "u = negative(t)", "a = negative(t)\n    c = multiply(a, 3.0)\n    u = negative(c)"
)


def test_storage_is_reused_after_the_live_range():
    schedule = Schedule(parse(LONG))
    schedule.legalize(MAIN)
    assert schedule.plan_memory(MAIN) == FunctionRef("main")
    graph = schedule.module.graph()
    assert graph.stage == "memory"
    # Five tensors: u reuses the storage of a, because t is live to the end and y is the result.
    assert sum(isinstance(b.right, AllocStorage) for b in graph.bindings) == 4
    assert same(schedule, X)


def test_requirements_of_plan_memory():
    schedule = Schedule(parse(CHAIN))
    problem = rejected(
        schedule, PlanMemory(MAIN), PlanMemory.Requires.LOWERED, "'t' calls operator relu"
    )
    (place,) = problem.where
    assert (place.function, place.name) == ("main", "t")
    again = launched()
    rejected(again, PlanMemory(MAIN), PlanMemory.Requires.DATAFLOW_STAGE, "is in the memory stage")
    rejected(
        again,
        PlanMemory(RELU),
        PlanMemory.Requires.DATAFLOW_STAGE,
        "'relu' is a loop-level function; graph-level functions",
    )
