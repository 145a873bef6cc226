"""Groups of steps that a with statement encloses, as in the Python text of traces."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import NoneType
from typing import cast

from .apply import Composite, prepared
from .handles import HANDLE_TYPES
from .history import Node
from .problem import StaleEditError, TraceError
from .record import argument, called, grouped, located, with_known
from .registry import STEPS
from .state import State
from .step import handles_in
from .trace import EDITED, TraceStep
from .values import Result, Value


@dataclass(slots=True)
class OpenGroup:
    """A group whose steps are being applied.

    Parameters
    ----------
    start : Node
        The version before the group and the queries for its operands.
    before : State
        The state before the first step.
    call : TraceStep
        The composite step as recorded in the trace.
    results : tuple of Handle, int, Expr or None
        The results of the composite step.
    thread : int
        The thread that entered the group.
    """

    start: Node
    before: State
    call: TraceStep
    results: tuple[Result | None, ...] = ()
    thread: int = field(default_factory=threading.get_ident)

    def check_thread(self, op: str) -> None:
        """Check that another group may start inside this one.

        Raises
        ------
        StaleEditError
            If another thread entered this group: the groups would overlap.
        """
        if self.thread != threading.get_ident():
            raise StaleEditError(
                f"group {op} would overlap group {self.call.op} of another thread",
                hint="apply the steps of each thread on its own branch: sch.branch()",
            )

    @classmethod
    def at(
        cls, start: Node, op: str, marks: tuple[str, ...], arguments: dict[str, object]
    ) -> OpenGroup:
        """Return the group of a composite step at a version.

        Raises
        ------
        TraceError
            If the arguments are invalid.
        """
        if marks not in ((), (EDITED,)):
            raise TraceError(
                f"group {op} has arguments without a name: {', '.join(map(repr, marks))}"
            )
        decisions = {EDITED: True} if marks else {}
        known = STEPS.get(op)
        if known is not None and issubclass(known, Composite) and known.accepts(arguments):
            step = prepared(start.state, known(**arguments))
            before = located(start.state, step)
            made = called(before, step)
        else:
            values = {name: _value(op, name, value) for name, value in arguments.items()}
            before = with_known(start.state, handles_in(tuple(values.values())))
            made = TraceStep(op, tuple((k, argument(before, v)) for k, v in values.items()))
        return cls(start, before, TraceStep(made.op, made.arguments, decisions=decisions))

    def closed(self, state: State) -> State:
        """Return the state after the group, given the state after its last step.

        Raises
        ------
        TraceError
            If the steps before the group were undone.
        """
        if state.trace.steps[: len(self.before.trace)] != self.before.trace.steps:
            raise TraceError(f"the steps before group {self.call.op} were undone inside it")
        if len(state.trace) == len(self.before.trace):
            raise TraceError(f"group {self.call.op} has no steps")
        return grouped(self.before, state, self.call, self.results)


def _value(op: str, name: str, value: object) -> Value:
    """Return an argument of a step that is not registered, or was changed since."""
    if isinstance(value, tuple | list):
        return tuple(_value(op, name, item) for item in cast("tuple[object, ...]", value))
    if isinstance(value, (*HANDLE_TYPES, bool, int, float, str, NoneType)):
        return value
    raise TraceError(f"group {op}: {value!r} is not a valid value of argument {name!r}")
