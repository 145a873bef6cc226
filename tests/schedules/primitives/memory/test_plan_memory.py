"""Memory is planned for lowered graphs, once."""

from tilewright.ir.graph.memory import AllocStorage
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.primitives.memory.plan_memory import PlanMemory
from tilewright.schedules.refs import FunctionRef

from tests.schedules.helpers import rejected
from tests.schedules.primitives.graph.test_callers import CHAIN, MAIN, RELU, X, launched, same

LONG = CHAIN.replace(
    "u = negative(t)", "a = negative(t)\n    c = multiply(a, 3.0)\n    u = negative(c)"
)


def test_storage_of_dead_tensors_is_used_again():
    schedule = Schedule(parse(LONG))
    schedule.legalize(MAIN)
    assert schedule.plan_memory(MAIN) == FunctionRef("main")
    graph = schedule.module.graph()
    assert graph.stage == "memory"
    # Five tensors; u lies where a was, as t is used to the end and y is the result.
    assert sum(isinstance(b.right, AllocStorage) for b in graph.bindings) == 4
    assert same(schedule, X)


def test_requirements_of_plan_memory():
    schedule = Schedule(parse(CHAIN))
    problem = rejected(schedule, PlanMemory(MAIN), 2, "'t' still calls the operator relu")
    (place,) = problem.where
    assert (place.function, place.name) == ("main", "t")
    again = launched()
    rejected(again, PlanMemory(MAIN), 1, "is in the memory stage")
    rejected(again, PlanMemory(RELU), 1, "'relu' is a loop-level function; graph-level functions")
