"""Schedules: the head of a branching history, moved by compare-and-swap."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

from ..ir.loop.nodes import PrimFunc
from ..ir.module import Module
from ..target.target import Target, as_target
from .apply import Applied, Primitive, apply, check
from .handles import Handle
from .history import History, Node
from .methods import ScheduleMethods
from .problem import Problem, ScheduleError, StaleEditError
from .replay import Replay, replay
from .state import State
from .step import Step, returned_shape
from .suggest import Suggestion, suggest
from .trace import Trace
from .verify import Verification, verify


class Schedule(ScheduleMethods):
    """A module with the steps applied to it and the history of all versions.

    Every registered primitive and query is a method. A method applies to the head. If another
    thread has moved the head since, nothing is applied and the error contains both heads.

    Parameters
    ----------
    module : Module or PrimFunc
        The program to schedule; a single function becomes a module of one function.
    target : str or Target, optional
        The machine to schedule for; required by some steps.
    at : tuple of History and Node, optional
        A history to share and the version to start at; used by :meth:`branch`.

    Examples
    --------
    >>> from ..ir.dtype import f32
    >>> from ..ir.loop.builder import Builder
    >>> b = Builder("copy")
    >>> x, y = b.param("x", (32,), f32), b.param("y", (32,), f32, "out")
    >>> b.compute(y, lambda i: b.load(x, i), name="copy_x")
    >>> sch = Schedule(b.finish())
    >>> (i,) = sch.get_loops(sch.get_block("copy_x"))
    >>> [loop.name for loop in sch.split(i, factors=(None, 8))]
    ['i0_0', 'i0_1']
    >>> sch.undo().step.op
    'get_loops'
    """

    def __init__(
        self,
        module: Module | PrimFunc,
        target: str | Target | None = None,
        *,
        at: tuple[History, Node] | None = None,
    ) -> None:
        """Start with an empty trace, or at a version of an existing history."""
        if isinstance(module, PrimFunc):
            module = Module().with_functions(module)
        if not isinstance(cast("object", module), Module):
            raise ScheduleError(
                f"expected a Module or a PrimFunc, got {type(module).__name__}",
                hint="create a module with parse, from_exported_program or from_onnx",
            )
        chosen = None if target is None else as_target(target)
        self._history, self._head = at or _started(State.start(module, chosen))
        self._lock = threading.RLock()
        self._watchers: tuple[Callable[[Node], object], ...] = ()

    @property
    def head(self) -> Node:
        """The current version in the history."""
        return self._head

    @property
    def state(self) -> State:
        """The state at the head."""
        return self._head.state

    @property
    def module(self) -> Module:
        """The program at the head."""
        return self._head.state.module

    @property
    def trace(self) -> Trace:
        """The steps from the start to the head."""
        return self._head.state.trace

    @property
    def history(self) -> tuple[Node, ...]:
        """The versions of this schedule and its branches, oldest first."""
        return self._history.nodes()

    def check(self, step: Primitive) -> tuple[Problem, ...]:
        """Return all problems that make a step illegal at the head.

        Parameters
        ----------
        step : Primitive
            A primitive with its parameters.

        Returns
        -------
        tuple of Problem
            The violated requirements; empty if the step is legal.
        """
        return check(self.state, step)

    def suggest(self, selection: Handle) -> tuple[Suggestion, ...]:
        """Return filled-in steps for a part of the program.

        Parameters
        ----------
        selection : Handle
            The selected function, loop, block, buffer or binding.

        Returns
        -------
        tuple of Suggestion
            The steps with their problems, legal ones first.
        """
        return suggest(self.state, selection)

    def verify(self, **options: Any) -> Verification:
        """Compare the results of the interpreter before and after all steps, on random data.

        Parameters
        ----------
        **options
            Passed to :func:`~.verify.verify`: ``runs``, ``seed`` and ``limit``.

        Returns
        -------
        Verification
            The comparisons and the skipped functions.
        """
        return verify(self._history.root.state.module, self.module, **options)

    def show(self) -> None:
        """Print the program at the head."""
        print(self)  # noqa: T201

    def __str__(self) -> str:
        """Return the program at the head as text."""
        from ..ir.script import to_text

        return to_text(self.module)

    def __repr__(self) -> str:
        """Return the number of steps and a summary of the program."""
        taken = len(self.trace)
        return f"<Schedule: {taken} step{'' if taken == 1 else 's'} on {self.module!r}>"

    def apply(self, step: Step, *, expected: str | None = None) -> Applied:
        """Apply a step at the head.

        Parameters
        ----------
        step : Step
            A primitive or a query with its parameters.
        expected : str, optional
            The id of the head that the caller expects; None means the current head.

        Returns
        -------
        Applied
            The new state and the results of the step.

        Raises
        ------
        StaleEditError
            If the head is not the expected one, or changes before the step is applied.
        StepError
            If a requirement of the step is violated.
        """
        seen = self._head
        if expected is not None and expected != seen.id:
            raise _stale(step, expected, seen.id)
        applied = apply(seen.state, step)
        self._move(seen, applied.state, step)
        return applied

    def _move(self, seen: Node, state: State, step: Step) -> None:
        with self._lock:
            if self._head is not seen:
                raise _stale(step, seen.id, self._head.id)
            self._head = self._history.extended(seen, state)
        self._notify()

    def _notify(self) -> None:
        for watcher in self._watchers:
            watcher(self._head)

    def subscribe(self, watcher: Callable[[Node], object]) -> Callable[[], None]:
        """Call a function after every move of the head, outside the lock.

        Parameters
        ----------
        watcher : callable
            Called with the new head.

        Returns
        -------
        callable
            A function that ends the subscription.
        """
        self._watchers = (*self._watchers, watcher)

        def unsubscribe() -> None:
            self._watchers = tuple(w for w in self._watchers if w is not watcher)

        return unsubscribe

    def perform(self, step: Step) -> Any:
        """Apply a step and return its results in the form of its method.

        Parameters
        ----------
        step : Step
            A primitive or a query with its parameters.

        Returns
        -------
        None, Handle or tuple of Handle
            The results, as declared by the step.
        """
        results = self.apply(step).results
        match returned_shape(type(step)):
            case "none":
                return None
            case "one":
                return results[0]
            case "many":
                return results

    def replay(self, trace: Trace) -> Replay:
        """Apply the steps of a trace until one does not apply.

        The head moves to the last step that applied.

        Parameters
        ----------
        trace : Trace
            The steps to apply.

        Returns
        -------
        Replay
            The final state, and the pending steps with the error of the first one.
        """
        with self._lock:
            outcome = replay(self.state, trace)
            self._head = self._history.extended(self._head, outcome.state)
        self._notify()
        return outcome

    def undo(self) -> Node:
        """Move the head back by one version.

        Returns
        -------
        Node
            The new head.

        Raises
        ------
        ScheduleError
            If the head is the root of the history.
        """
        with self._lock:
            if self._head.parent is None:
                raise ScheduleError("nothing to undo: the head is the root of the history")
            undone, self._head = self._head, self._history[self._head.parent]
            self._history.remember(self._head, undone)
            moved = self._head
        self._notify()
        return moved

    def redo(self) -> Node:
        """Move the head to the version last left by :meth:`undo`, or last derived from the head.

        Returns
        -------
        Node
            The new head.

        Raises
        ------
        ScheduleError
            If no version is derived from the head.
        """
        with self._lock:
            following = self._history.following(self._head)
            if following is None:
                raise ScheduleError("nothing to redo: no version is derived from the head")
            self._head = following
        self._notify()
        return following

    def goto(self, node: str) -> Node:
        """Move the head to a version of the history.

        Parameters
        ----------
        node : str
            The id of the version, or a unique prefix of it.

        Returns
        -------
        Node
            The new head.

        Raises
        ------
        ScheduleError
            If the id does not match exactly one version.
        """
        with self._lock:
            moved = self._head = self._history[node]
        self._notify()
        return moved

    def branch(self) -> Schedule:
        """Return another schedule at the same head that shares the history."""
        seen = self._head
        return Schedule(seen.state.module, seen.state.target, at=(self._history, seen))

    def __iter__(self) -> Iterator[PrimFunc]:
        """Yield the loop-level functions at the head."""
        return iter(self.module.prims)


def _started(state: State) -> tuple[History, Node]:
    history = History(state)
    return history, history.root


def _stale(step: Step, expected: str, head: str) -> StaleEditError:
    return StaleEditError(
        f"{step.title()} was created for version {expected[:12]}, but the head is {head[:12]}",
        hint="apply the step again at the new head, or branch from the old one",
        details={"expected": expected, "head": head, "step": step.title()},
    )
