"""The default schedule of ``tilewright.compile``: graph steps, then one rule per kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ...ir.graph.nodes import Binding, Call, GraphFunc
from ...ir.graph.operators import get_operator
from ...ir.loop.nodes import PrimFunc
from ...ir.module import Module
from ...target.target import Target
from ..handles import FunctionRef
from ..primitives.graph.collapse_dims import CollapseDims
from ..primitives.graph.fuse_tir import called_kernels
from ..primitives.graph.lift_transforms import PREPARE, liftable
from ..problem import StepError
from ..schedule import Schedule
from ..state import State
from .elementwise import schedule_elementwise
from .gpu import schedule_for_gpu
from .machine import Machine, machine_of
from .matmul import schedule_matmul
from .patterns import Elementwise, Matmul, Other, Rows, classify
from .rows import inline_into_rows, schedule_rows


class DefaultRuleFailedWarning(UserWarning):
    """A kernel that was left unscheduled because the default rule of its kind failed.

    The results are correct, but the kernel may be slow. Please report it as a bug.
    """


def apply_defaults(schedule: Schedule) -> None:
    """Apply the default schedule to everything that is not scheduled yet.

    Graph functions in the dataflow stage get constant folding, dead-code elimination,
    legalization, fusion and collapsing of dimensions. Every unscheduled kernel gets the default
    schedule of its kind. Computations on weights alone move to load time. Memory planning is last.

    Parameters
    ----------
    schedule : Schedule
        The schedule to extend; each step is recorded in its trace.
    """
    graphs = [g.name for g in schedule.module.graphs if g.stage == "dataflow"]
    for name in graphs:
        lower_to_kernels(schedule, name)
    seen: set[str] = set()
    while waiting := [f.name for f in schedule.module.prims if f.name not in seen]:
        seen.update(waiting)
        for kernel in waiting:
            schedule_kernel(schedule, kernel)
    for name in graphs:
        finish_graph(schedule, name)
    if PREPARE in schedule.module.functions and PREPARE not in graphs:
        schedule.plan_memory(FunctionRef(PREPARE))


def with_default_schedule(
    program: Module | Schedule | State, target: Target | None = None
) -> Module:
    """Return the module of a program after the default steps; the program is not changed.

    Parameters
    ----------
    program : Module, Schedule or State
        The program, which may be scheduled partly.
    target : Target, optional
        The machine to schedule for; by default that of the schedule.
    """
    module = program if isinstance(program, Module) else program.module
    chosen = target
    if chosen is None and not isinstance(program, Module):
        state = program.state if isinstance(program, Schedule) else program
        chosen = state.target
    schedule = Schedule(module, chosen)
    apply_defaults(schedule)
    return schedule.module


def lower_to_kernels(schedule: Schedule, name: str) -> None:
    """Lower a graph function to calls of fused kernels, unless it contains only such calls."""
    ref = FunctionRef(name)
    graph = schedule.module.graph(name)
    if any(map(_is_computation, graph.bindings)):
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


def _is_computation(binding: Binding) -> bool:
    right = binding.right
    return isinstance(right, Call) and not get_operator(right.op).is_view


def _lift(schedule: Schedule, name: str) -> None:
    if name != PREPARE and liftable(schedule.module.graph(name)):
        schedule.lift_transforms(FunctionRef(name))


def finish_graph(schedule: Schedule, name: str) -> None:
    """Move the packing of weights to load time, remove dead code, and plan memory."""
    found = schedule.module.functions.get(name)
    if isinstance(found, GraphFunc) and found.stage == "dataflow":
        _lift(schedule, name)
        schedule.dead_code(FunctionRef(name))
        schedule.plan_memory(FunctionRef(name))


def schedule_kernel(schedule: Schedule, name: str) -> None:
    """Apply the default rule of a kernel's kind, unless the kernel is already scheduled."""
    function = schedule.module.functions.get(name)
    if not isinstance(function, PrimFunc) or ("scheduled", True) in function.attributes:
        return
    target = schedule.state.target
    if target is not None and target.is_gpu:
        schedule_for_gpu(schedule, name)
    else:
        _apply_rule(schedule, name)


def _apply_rule(schedule: Schedule, name: str) -> None:
    """Apply the default rule atomically; warn and leave the kernel unscheduled if it fails."""
    rule = _rule(schedule, name)
    if rule is None:
        return
    attempt = schedule.branch()
    try:
        rule(attempt)
    except StepError as error:
        message = f"kernel {name!r} was left unscheduled (default rule failed): {error}"
        warnings.warn(DefaultRuleFailedWarning(message), stacklevel=2)
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
    if inline_into_rows(schedule, name):  # inlining may have changed the kind of the kernel
        _apply_rule(schedule, name)
    else:
        schedule_rows(schedule, name, pattern, machine)
