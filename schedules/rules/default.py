"""The trace that ``tilewright.compile`` does where a person has not: graph steps, then kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ...ir.graph.nodes import Binding, Call, GraphFunc
from ...ir.graph.operators import get_operator
from ...ir.loop.nodes import PrimFunc
from ...ir.module import Module
from ...ir.target import Target
from ..primitives.graph.collapse_dims import CollapseDims
from ..primitives.graph.fuse_tir import called_kernels
from ..primitives.graph.lift_transforms import PREPARE, liftable
from ..problem import StepError
from ..refs import FunctionRef
from ..schedule import Schedule
from ..state import State
from .elementwise import schedule_elementwise
from .gpu import schedule_for_gpu
from .machine import Machine, machine_of
from .matmul import schedule_matmul
from .patterns import Elementwise, Matmul, Other, Rows, classify
from .rows import inline_into_rows, schedule_rows


class RuleRefusedWarning(UserWarning):
    """A default rule does not fit a kernel of its kind, which is compiled as it is written.

    The result is right and may be slow; that no rule did it is a defect of ours, worth a report.
    """


def apply_defaults(schedule: Schedule) -> None:
    """Do all default steps that are missing; what was scheduled by hand stays as it is.

    Graph functions in the dataflow stage are folded, legalized, fused and collapsed; every
    kernel that no loop step has touched gets the rule of its kind; work on weights alone moves
    to load time; last, memory is planned.

    Parameters
    ----------
    schedule : Schedule
        Changed in place: each step is recorded in its trace.
    """
    graphs = [g.name for g in schedule.module.graphs if g.stage == "dataflow"]
    for name in graphs:
        lower_graph(schedule, name)
    seen: set[str] = set()
    while waiting := [f.name for f in schedule.module.prims if f.name not in seen]:
        seen.update(waiting)
        for kernel in waiting:
            schedule_kernel(schedule, kernel)
    for name in graphs:
        finish_graph(schedule, name)
    if PREPARE in schedule.module.functions and PREPARE not in graphs:
        schedule.plan_memory(FunctionRef(PREPARE))


def finished(program: Module | Schedule | State, target: Target | None = None) -> Module:
    """Give the module that the default steps make of a program; the program itself stays.

    Parameters
    ----------
    program : Module, Schedule or State
        What a person made.
    target : Target, optional
        The machine to schedule for; that of the schedule where none is given.
    """
    module = program if isinstance(program, Module) else program.module
    chosen = target
    if chosen is None and not isinstance(program, Module):
        state = program.state if isinstance(program, Schedule) else program
        chosen = state.target
    schedule = Schedule(module, chosen)
    apply_defaults(schedule)
    return schedule.module


def lower_graph(schedule: Schedule, name: str) -> None:
    """Bring a graph to calls of fused kernels, unless a person did."""
    ref = FunctionRef(name)
    graph = schedule.module.graph(name)
    if any(map(_works, graph.bindings)):
        schedule.fold_constants(ref)
        schedule.dead_code(ref)
        schedule.legalize(ref)
        _lift(schedule, name)
        schedule.fuse_ops(ref)
        schedule.fuse_tir(ref)
        for kernel in sorted(called_kernels(schedule.module)):
            step = CollapseDims(FunctionRef(kernel))
            if not schedule.check(step):
                schedule.apply(step)


def _works(binding: Binding) -> bool:
    right = binding.right
    return isinstance(right, Call) and not get_operator(right.op).is_view


def _lift(schedule: Schedule, name: str) -> None:
    if name != PREPARE and liftable(schedule.module.graph(name)):
        schedule.lift_transforms(FunctionRef(name))


def finish_graph(schedule: Schedule, name: str) -> None:
    """Move packing of weights to load time, drop what is unused, and plan memory."""
    found = schedule.module.functions.get(name)
    if isinstance(found, GraphFunc) and found.stage == "dataflow":
        _lift(schedule, name)
        schedule.dead_code(FunctionRef(name))
        schedule.plan_memory(FunctionRef(name))


def schedule_kernel(schedule: Schedule, name: str) -> None:
    """Apply the rule of a kernel's kind, unless a loop step touched it already."""
    function = schedule.module.functions.get(name)
    if not isinstance(function, PrimFunc) or ("scheduled", True) in function.attributes:
        return
    target = schedule.state.target
    if target is not None and target.is_gpu:
        schedule_for_gpu(schedule, name)
    else:
        _apply_rule(schedule, name)


def _apply_rule(schedule: Schedule, name: str) -> None:
    """Apply the rule of a kernel's kind whole, or, heard as a warning, not at all."""
    rule = _rule(schedule, name)
    if rule is None:
        return
    attempt = schedule.branch()
    try:
        rule(attempt)
    except StepError as error:
        message = f"kernel {name!r} stays as it is written, and may be slow: {error}"
        warnings.warn(RuleRefusedWarning(message), stacklevel=2)
        return
    schedule.goto(attempt.head.id)


def _rule(schedule: Schedule, name: str) -> Callable[[Schedule], object] | None:
    machine = machine_of(schedule.state.target)
    match pattern := classify(schedule.module.prim(name)):
        case Matmul():
            return lambda attempt: schedule_matmul(attempt, name, pattern, machine)
        case Rows():
            return lambda attempt: _schedule_rows(attempt, name, pattern, machine)
        case Elementwise():
            return lambda attempt: schedule_elementwise(attempt, name, pattern, machine)
        case Other():
            return None


def _schedule_rows(schedule: Schedule, name: str, pattern: Rows, machine: Machine) -> None:
    if inline_into_rows(schedule, name):  # what is left may be of another kind
        _apply_rule(schedule, name)
    else:
        schedule_rows(schedule, name, pattern, machine)
