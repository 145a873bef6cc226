"""The steps of one kernel, applied to all kernels that accept them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from ..display import Table
from ..ir.loop.nodes import PrimFunc
from .apply import Query
from .block_forms import block_form
from .handles import HANDLE_TYPES, FunctionRef, Handle
from .problem import TraceError
from .registry import STEPS
from .replay import replay
from .state import State
from .suggest_names import unknown
from .trace import DROPPED, Group, ResultOf, Trace, TraceStep

_BY_NAME: Final = ("get_block", "get_loop", "get_buffer")
_OF_GRAPHS: Final = ("autodiff", "graph", "memory")
"""The families of steps that change graph functions."""


@dataclass(frozen=True, slots=True)
class Similar:
    """A kernel to which the steps of another one were applied, or the reason why not.

    Parameters
    ----------
    function : str
        The name of the kernel.
    steps : int
        The number of steps that apply in order; all of them if the kernel accepts the steps.
    reason : str
        The reason why the kernel was not changed; empty if it accepts the steps.
    """

    function: str
    steps: int
    reason: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the steps were applied to the kernel."""
        return not self.reason


@dataclass(frozen=True, slots=True, eq=False)
class SimilarKernels:
    """The kernels to which the steps of a kernel were applied; ``print`` shows a table.

    Parameters
    ----------
    state : State
        The program after the steps of all kernels that accept them.
    trace : Trace
        The steps of the kernel.
    kernels : tuple of Similar
        The kernels, in the order of the module.
    """

    state: State
    trace: Trace
    kernels: tuple[Similar, ...]

    @property
    def accepted(self) -> tuple[str, ...]:
        """The names of the kernels that accept the steps."""
        return tuple(item.function for item in self.kernels if item.accepted)

    def table(self) -> Table:
        """Return a row per kernel: whether it accepts the steps, and the reason if not."""
        rows = tuple(
            (k.function, "yes" if k.accepted else "no", f"{k.steps} of {len(self.trace)}", k.reason)
            for k in self.kernels
        )
        return Table(("kernel", "accepted", "steps", "reason"), rows)

    def __str__(self) -> str:
        """Return the table as text."""
        return str(self.table())

    def _repr_html_(self) -> str:
        """Return the table as static HTML."""
        return self.table().to_html()


def apply_to_similar(
    state: State, function: str, to: Iterable[str] | None = None
) -> SimilarKernels:
    """Apply the steps of a kernel to all kernels that accept them.

    Parameters
    ----------
    state : State
        The program; its trace contains the steps.
    function : str
        The name of the kernel whose steps to apply.
    to : iterable of str, optional
        The names of the kernels to try; by default all others without a schedule.
    """
    trace = kernel_trace(state, function)
    others = [f.name for f in state.module.prims if f.name != function]
    names = others if to is None else list(to)
    for name in names:
        if name not in others:
            raise TraceError(unknown("function", name, others, "the other loop-level functions"))
    found: list[Similar] = []
    for name in names:
        reason = _difference(state, name, trace)
        if reason:
            found.append(Similar(name, 0, reason))
            continue
        outcome = replay(state, trace, names={function: name})
        error = outcome.error
        if error is None:
            state = outcome.state
            found.append(Similar(name, outcome.done))
        else:
            found.append(Similar(name, outcome.done, f"{outcome.pending[0].op}: {error.message}"))
    return SimilarKernels(state, trace, tuple(found))


def _difference(state: State, name: str, trace: Trace) -> str:
    """Return why a kernel is not similar to the one of a trace; empty if it is."""
    func = state.module.prim(name)
    if dict(func.attributes).get("scheduled"):
        return "the kernel is scheduled already"
    forms = {block_form(b) for b in state.tree(name).blocks.values()}
    first = next((s for s in trace.steps if s.op == "get_block" and "form" in s.decisions), None)
    wanted = None if first is None else first.decisions["form"]
    return "" if wanted is None or wanted in forms else f"no block has the form {wanted!r}"


def kernel_trace(state: State, function: str) -> Trace:
    """Return the steps of a trace that change one kernel, or functions made from it.

    The first step looks up the kernel, and all lookups by name refer to it.

    Raises
    ------
    TraceError
        If the program has no such kernel, or no step changes it.
    """
    if not isinstance(state.module.functions.get(function), PrimFunc):
        names = [f.name for f in state.module.prims]
        raise TraceError(unknown("function", function, names, "the loop-level functions"))
    kept = _steps_of(state, function)
    if not kept:
        raise TraceError(
            f"no step of the trace changes function {function!r}",
            hint="apply steps to one kernel first, then to the similar ones",
        )
    head = TraceStep("get_function", (("name", function),), (function,))
    order = sorted(kept)
    position = {old: new + 1 for new, old in enumerate(order)}
    trace = state.trace

    def moved(result: ResultOf) -> ResultOf:
        if result.step >= 0 and _is_kernel(state, result, function):
            return ResultOf(0, 0)
        return ResultOf(position[result.step], result.index) if result.step in kept else DROPPED

    steps = (_qualified(trace.mapped(trace.steps[k], moved)) for k in order)
    groups = (_moved(g, position, trace, moved) for g in trace.groups)
    return Trace((head, *steps), tuple(g for g in groups if g is not None)).pruned()


def _is_kernel(state: State, result: ResultOf, function: str) -> bool:
    found = state.results[result.step][result.index]
    return isinstance(found, FunctionRef) and found.function == function


def _steps_of(state: State, function: str) -> set[int]:
    """Return the numbers of the steps on a kernel, and of those whose results they use."""
    owned, kept, changes = {function}, set[int](), False
    for number, step in enumerate(state.trace.steps):
        handles = state.operands(step)
        results = [x for x in state.results[number] if isinstance(x, HANDLE_TYPES)]
        if step.op == "get_function" or (handles and _is_of_graph(step, handles)):
            continue
        if any(x.function in owned for x in (handles or results)):
            kept.add(number)
            changes = changes or not _is_lookup(step)
            owned |= {x.function for x in results if isinstance(x, FunctionRef) and handles}
    if not changes:
        return set()
    for number in range(len(state.trace) - 1, -1, -1):
        if number in kept:
            used = state.trace.steps[number].operands()
            kept |= {r.step for r in used if r.step >= 0 and not _is_kernel(state, r, function)}
    return kept


def _is_of_graph(step: TraceStep, handles: Iterable[Handle]) -> bool:
    """Return whether a step changes the calls of entire functions."""
    family = STEPS[step.op].family if step.op in STEPS else ""
    return family in _OF_GRAPHS and all(isinstance(x, FunctionRef) for x in handles)


def _qualified(step: TraceStep) -> TraceStep:
    """Return a lookup by name in the kernel if it names no function."""
    arguments: Mapping[str, object] = dict(step.arguments)
    if step.op not in _BY_NAME or arguments.get("function") is not None:
        return step
    others = tuple((name, value) for name, value in step.arguments if name != "function")
    return replace(step, arguments=(*others, ("function", ResultOf(0, 0))))


def _moved(
    group: Group, position: Mapping[int, int], trace: Trace, moved: Callable[[ResultOf], ResultOf]
) -> Group | None:
    """Return a group whose steps all belong to the kernel, with their new numbers."""
    call = trace.mapped(group.call(), moved)
    if DROPPED in call.operands():
        return None
    if any(k not in position and not _is_lookup(trace[k]) for k in range(group.first, group.stop)):
        return None
    inside = [position[k] for k in range(group.first, group.stop) if k in position]
    if not inside:
        return None
    results = tuple(r if r == DROPPED else moved(r) for r in group.results)
    first, stop = inside[0], inside[-1] + 1
    return replace(group, arguments=call.arguments, first=first, stop=stop, results=results)


def _is_lookup(step: TraceStep) -> bool:
    return step.op in STEPS and issubclass(STEPS[step.op], Query)
