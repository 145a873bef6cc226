"""The default schedule of ``tilewright.compile``: graph steps, then one rule per kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...errors import TilewrightError
from ...ir.module import Module
from ...target.target import Target
from ..apply import Composite
from ..composite import CompositeError, CompositeFailedError, composite
from ..handles import FunctionRef, Handle
from ..primitives.graph.fuse_tir import is_group
from ..primitives.graph.lift_transforms import prepares
from ..primitives.memory.plan_memory import called_graphs
from ..schedule import Schedule
from ..state import State
from .kernel import DefaultRuleFailedWarning, is_scheduled, schedule_kernel

__all__ = [
    "DefaultRuleFailedWarning",
    "apply_defaults",
    "default_schedule",
    "schedule_kernel",
    "with_default_schedule",
]


def _suggested(state: State, selection: Handle) -> Iterator[Composite]:
    graphs = any(g.stage == "dataflow" for g in state.module.graphs)
    kernels = any(not is_scheduled(f) for f in state.module.prims)
    if isinstance(selection, FunctionRef) and (graphs or kernels):
        yield default_schedule()


@composite(suggest=_suggested, always_legal=True)
def default_schedule(sch: Schedule) -> None:
    """Apply the default schedule to everything that is not scheduled yet.

    Before::

        def main(x):
            y = add(x, 1.0)
            return y

    After::

        def add(x, y):
            for i_0 in parallel(ceildiv(n, 16)):
                for i_1 in vectorized(16):
                    y[i_0 * 16 + i_1] = x[i_0 * 16 + i_1] + 1.0


        def main(x):
            y = alloc_tensor(...)
            launch("add", (x, y))
            return y

    Notes
    -----
    Each graph function in the dataflow stage is lowered to kernels by ``lower_graph``, each
    unscheduled kernel gets the rule of its kind by ``schedule_kernel``, and each graph function
    gets its memory plan by ``finish_graph``. Parts that are lowered, scheduled, or planned are not
    changed, so a second application changes nothing. Without a target, the rules are those of a
    CPU with 512-bit vectors. ``tilewright.compile`` applies the same steps.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... n = symbols("n", lower=1)
    ...
    ... @graph_func
    ... def main(x: Tensor[(n, 4), f32]):
    ...     y = add(x, 1.0)
    ...     return y
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    >>> sch.default_schedule()
    >>> print(sch.trace.folded())
    sch.default_schedule()
    >>> len(sch.history)
    2
    """
    unfinished = [g for g in sch.module.graphs if g.stage == "dataflow"]
    graphs = [g.name for g in sorted(unfinished, key=prepares)]  # the others extend these
    for name in sorted(graphs, key=lambda name: not is_group(sch.module, name)):
        if name in sch.module.functions:
            sch.lower_graph(FunctionRef(name))
    seen: set[str] = set()
    while waiting := [f.name for f in sch.module.prims if f.name not in seen]:
        seen.update(waiting)
        for kernel in waiting:
            sch.schedule_kernel(FunctionRef(kernel))
    for name in _callers_first(sch.module, graphs):
        if name in sch.module.functions:
            sch.finish_graph(FunctionRef(name))
    for graph in sch.module.graphs:
        if graph.stage == "dataflow":  # made by the steps above
            sch.plan_memory(FunctionRef(graph.name))


def _callers_first(module: Module, names: Sequence[str]) -> list[str]:
    """Return names of functions, each after those that call it.

    A function that is planned before its caller writes copies of the arguments that it updates.
    """
    depth = dict.fromkeys((g.name for g in module.graphs), 0)
    calls = {g.name: set(called_graphs(g.bindings)) & depth.keys() for g in module.graphs}
    for _ in depth:
        for name, callees in calls.items():
            for callee in callees:
                depth[callee] = max(depth[callee], depth[name] + 1)
    return sorted(names, key=lambda name: depth.get(name, 0))


def apply_defaults(schedule: Schedule) -> None:
    """Apply the step ``default_schedule`` to a schedule.

    Parameters
    ----------
    schedule : Schedule
        The schedule to extend; its trace contains the steps as a tree of groups.

    Raises
    ------
    TilewrightError
        If a step fails: the error of this step. The method ``schedule.default_schedule()`` raises
        one that also contains the groups of the step.
    """
    try:
        schedule.apply(default_schedule())
    except (CompositeError, CompositeFailedError) as error:
        raise _cause(error) from None


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
    draft = Schedule.draft(State.start(module, chosen))
    apply_defaults(draft)
    return draft.module


def _cause(error: TilewrightError) -> TilewrightError:
    """Return the error of the primitive that failed: its caller did not apply the groups."""
    while isinstance(error, CompositeError | CompositeFailedError):
        inner = error.__cause__
        if not isinstance(inner, TilewrightError):
            return error
        error = inner
    return error
