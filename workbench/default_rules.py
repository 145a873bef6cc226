"""The default rule of a kernel: its use, the loss by leaving it, and the return to it.

A kernel that no step has scheduled gets the rule of its kind at compile time. The first step that
schedules it replaces the whole rule.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from ..codegen.lower.analysis.cost_estimate import estimated_work
from ..ir.loop.nodes import PrimFunc
from ..ir.symbolic import Expr
from ..schedules import STEPS, Query, Schedule, State, Trace
from ..schedules.handles import HANDLE_TYPES, FunctionRef
from ..schedules.history import Node
from ..schedules.rules.kernel import is_scheduled
from ..schedules.trace import Group, ResultOf
from ..target.host import with_level
from ..target.target import Target
from .protocol_runs import KernelRule, Measurement, RuleStatus
from .render import Samples, at_samples
from .short_turns import short_turns

RULE, WHOLE = "schedule_kernel", "default_schedule"
"""The composite steps that apply the rule to one kernel, and to everything."""

MAX_KERNELS = 64
"""The number of kernels whose rule is cached."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A step or composite step with the functions of its operands, and those that it creates."""

    op: str
    first: int
    stop: int
    changes: frozenset[str]
    creates: frozenset[str]
    edited: bool
    inner: str


def edits_of(state: State) -> Iterator[Edit]:
    """Yield the steps of a trace without queries, composite steps as one.

    The steps of a ``default_schedule`` are listed one by one.
    """
    trace = state.trace
    groups = [g for g in trace.groups if g.op != WHOLE]
    position = 0
    while position < len(trace):
        group = next((g for g in groups if g.first == position), None)
        if group is None:
            step = trace[position]
            if not _is_query(step.op):
                operands = step.operands()
                yield _edit(state, step.op, position, position + 1, operands)
            position += 1
        else:
            yield _edit(
                state, group.op, group.first, group.stop, group.call().operands(),
                edited=_is_edited(trace, group), inner=_inner(trace, group),
            )  # fmt: skip
            position = group.stop


def _edit(
    state: State,
    op: str,
    first: int,
    stop: int,
    operands: tuple[ResultOf, ...],
    *,
    edited: bool = False,
    inner: str = "",
) -> Edit:
    results = (state.results[ref.step][ref.index] for ref in operands)
    changes = frozenset(r.function for r in results if isinstance(r, HANDLE_TYPES))
    made = {
        handle.function
        for number in range(first, stop)
        if not _is_query(state.trace[number].op)
        for handle in state.results[number]
        if isinstance(handle, FunctionRef)
    }
    return Edit(op, first, stop, changes, frozenset(made - changes), edited, inner)


def _is_query(op: str) -> bool:
    cls = STEPS.get(op)
    return cls is not None and issubclass(cls, Query)


def _is_edited(trace: Trace, group: Group) -> bool:
    return any(g.edited for g in trace.groups if group.first <= g.first and g.stop <= group.stop)


def _inner(trace: Trace, group: Group) -> str:
    """Return the name of the rule that ``schedule_kernel`` chose: its last group."""
    inside = (
        g for g in trace.groups if group.first <= g.first and g.stop == group.stop and g != group
    )
    return next((g.op for g in inside), "")


@dataclass(frozen=True, slots=True)
class Relation:
    """The relation of a kernel to its rule, and the kernel whose rule created it, if any."""

    status: RuleStatus
    base: str = ""
    rule: str = ""


def relation(state: State, name: str) -> Relation:
    """Return the relation of a function to its default rule; the status is empty if it has none."""
    function = state.module.functions[name]
    if not isinstance(function, PrimFunc):
        return Relation("")
    if not is_scheduled(function):
        return Relation("follows")
    found = Relation("")
    for edit in edits_of(state):
        if edit.op == RULE and name in edit.changes | edit.creates:
            base = "" if name in edit.changes else next(iter(edit.changes), "")
            found = Relation("left" if edit.edited else "taken", base, edit.inner)
        elif name in edit.changes:
            found = replace(found, status="left")
    return found


def without_schedule(state: State, name: str, start: int) -> Trace:
    """Return the trace without the steps from ``start`` on that schedule a kernel.

    Steps on functions that the removed steps created are removed as well, and queries that no
    remaining step uses.
    """
    own, removed = {name}, set[int]()
    for edit in edits_of(state):
        if edit.first >= start and edit.changes & own:
            own |= edit.creates
            removed.update(range(edit.first, edit.stop))
    trace = state.trace
    used = {
        ref.step
        for group in trace.groups
        if not set(range(group.first, group.stop)) <= removed
        for ref in (*group.call().operands(), *group.results)
    }
    for number in reversed(range(len(trace))):
        handles = [r for r in state.results[number] if isinstance(r, HANDLE_TYPES)]
        mine = {handle.function for handle in handles} <= own
        if number >= start and _is_query(trace[number].op) and mine and number not in used:
            removed.add(number)
        if number not in removed:
            used.update(ref.step for ref in trace[number].operands())
    for number in sorted(removed, reverse=True):
        trace = trace.without(number)
    return trace


def unscheduled_version(path: list[Node], name: str) -> Node | None:
    """Return the last version, of those from the root to the head, with a kernel as written."""
    for node in reversed(path):
        function = node.state.module.functions.get(name)
        if isinstance(function, PrimFunc) and not is_scheduled(function):
            return node
    return None


def path_to(schedule: Schedule) -> list[Node]:
    """Return the versions from the root to the head."""
    by_id = {node.id: node for node in schedule.history}
    found: list[Node] = []
    node: Node | None = schedule.head
    while node is not None:
        found.append(node)
        node = by_id.get(node.parent) if node.parent else None
    return found[::-1]


def lower_graphs(schedule: Schedule) -> None:
    """Lower all graph functions that are not lowered yet."""
    for name in [g.name for g in schedule.module.graphs if g.stage == "dataflow"]:
        if name in schedule.module.functions:
            schedule.lower_graph(FunctionRef(name))


@dataclass(frozen=True, slots=True)
class Ruled:
    """A kernel with the default rule: the function, the number of steps, and the rule's name."""

    function: PrimFunc
    steps: int
    rule: str


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """The measured time per call of one kernel, in µs, at the sizes of a measured function."""

    name: str
    basis: tuple[str, str]
    function: PrimFunc
    ruled: bool
    microseconds: float


class DefaultRules:
    """The rules of kernels, computed in the background, and the measured times of kernels.

    Parameters
    ----------
    target : Target
        The machine that the rules schedule for.
    changed : function
        Called when a rule was computed.
    """

    def __init__(self, target: Target, changed: Callable[[], None]) -> None:
        """Start without rules."""
        self._target = target if target.is_gpu else with_level(target)
        self._changed = changed
        self._lock = threading.Lock()
        self._ruled: OrderedDict[PrimFunc, Ruled | None] = OrderedDict()
        self._records: list[KernelRecord] = []
        self.revision = 0

    def for_target(self, target: Target) -> DefaultRules:
        """Return the rules for another target."""
        return DefaultRules(target, self._changed)

    def program(self, state: State) -> State:
        """Return the state after the default schedule of a program."""
        from ..codegen.compiler import default_scheduled

        return default_scheduled(state.module, self._target)[1]

    def record(self, measurement: Measurement, measured: State, ran: Mapping[str, object]) -> None:
        """Store the times of the kernels of a measurement.

        Parameters
        ----------
        measurement : Measurement
            The measurement.
        measured : State
            The measured state.
        ran : Mapping of str to object
            The functions of the program that ran.
        """
        basis = (measurement.function, measurement.shapes)
        for kernel in measurement.kernels:
            name = kernel.function
            function = measured.module.functions.get(name, ran.get(name))
            if isinstance(function, PrimFunc):
                ruled = name not in measured.module.functions or (
                    relation(measured, name).status in ("follows", "taken")
                )
                time = kernel.microseconds / max(1, kernel.calls)
                self._records.append(KernelRecord(name, basis, function, ruled, time))
        self.revision += 1

    def view(self, path: list[Node], name: str, samples: Samples) -> KernelRule:
        """Return the relation of a kernel of the head to its rule.

        The prediction is absent until a background thread has computed the rule.
        """
        state = path[-1].state
        found = relation(state, name)
        origin = unscheduled_version(path, name)
        ruled = self._rule_of(origin, name) if found.status in ("follows", "left") else None
        function = state.module.functions[name]
        ratio = (
            _ratio(function, ruled.function, samples)
            if isinstance(function, PrimFunc) and ruled is not None
            else None
        )
        rule_us, now_us = self._measured(name, function)
        return KernelRule(
            function=name,
            status=found.status,
            base=found.base,
            rule=found.rule or ("" if ruled is None else ruled.rule),
            steps=None if ruled is None else ruled.steps,
            predicted=ratio,
            rule_us=rule_us,
            now_us=now_us,
        )

    def _measured(self, name: str, function: object) -> tuple[float | None, float | None]:
        """Return the last times with the rule and of the function, at the same sizes."""
        rules = {r.basis: r.microseconds for r in self._records if r.name == name and r.ruled}
        nows = {r.basis: r.microseconds for r in self._records if r.function is function}
        both = [basis for basis in nows if basis in rules]
        if both:
            return rules[both[-1]], nows[both[-1]]
        return next(reversed(rules.values()), None), None

    def _rule_of(self, origin: Node | None, name: str) -> Ruled | None:
        """Return the rule of a kernel if it was computed; otherwise start to compute it."""
        if origin is None or self._target.is_gpu:
            return None
        function = origin.state.module.prim(name)
        with self._lock:
            if function in self._ruled:
                self._ruled.move_to_end(function)
                return self._ruled[function]
            self._ruled[function] = None
            while len(self._ruled) > MAX_KERNELS:
                self._ruled.popitem(last=False)
        threading.Thread(
            target=self._compute, args=(origin.state, name, function), daemon=True
        ).start()
        return None

    def _compute(self, state: State, name: str, function: PrimFunc) -> None:
        draft = Schedule.draft(replace(state, target=self._target))
        with short_turns():
            draft.schedule_kernel(FunctionRef(name))
        rule = next((e.inner for e in edits_of(draft.state) if e.op == RULE), "")
        steps = len(draft.trace) - len(state.trace)
        with self._lock:
            self._ruled[function] = Ruled(draft.module.prim(name), steps, rule)
        self.revision += 1
        self._changed()


def _ratio(function: PrimFunc, ruled: PrimFunc, samples: Samples) -> float | None:
    """Return the ratio of the estimated numbers of instructions, None if a sample is missing."""
    now, rule = (at_samples(_work(f), samples) for f in (function, ruled))
    return now / rule if now and rule else None


@lru_cache(maxsize=128)
def _work(function: PrimFunc) -> Expr:
    """Return the estimated number of instructions; a move of the head changes few kernels."""
    return estimated_work(function.body)
