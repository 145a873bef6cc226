"""A program under change: the head of a branching history, moved by compare-and-swap."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

from ..ir.loop.nodes import PrimFunc
from ..ir.module import Module
from ..ir.target import Target, as_target
from .history import History, Node
from .methods import ScheduleMethods
from .primitive import Primitive, Step, returned_shape
from .problem import Problem, ScheduleError, StaleEditError
from .refs import Ref
from .replay import Replay, replay
from .state import Applied, State
from .suggest import Candidate, suggest
from .trace import Trace
from .verify import Verification, verify


class Schedule(ScheduleMethods):
    """A module, the steps done to it, and all the versions on the way.

    Every registered primitive and query is a method. A method applies to the head; if another
    thread moved the head meanwhile, nothing is applied and the error names both heads.

    Parameters
    ----------
    module : Module or PrimFunc
        What to schedule; a function alone becomes a module of one.
    target : str or Target, optional
        The machine it is for; steps that depend on it ask for it.

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
        """Start with an empty trace, or at a version of a history that is there."""
        if isinstance(module, PrimFunc):
            module = Module().with_functions(module)
        if not isinstance(cast("object", module), Module):
            raise ScheduleError(
                f"a schedule is of a module or a loop function, not {type(module).__name__}",
                hint="parse(text), from_exported_program(program) and from_onnx(path) make modules",
            )
        chosen = None if target is None else as_target(target)
        self._history, self._head = at or _started(State.start(module, chosen))
        self._lock = threading.RLock()
        self._watchers: tuple[Callable[[Node], object], ...] = ()

    # ------------------------------------------------------------ reading

    @property
    def head(self) -> Node:
        """Where the schedule stands in its history."""
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
        """All versions of this schedule and its branches, oldest first."""
        return self._history.nodes()

    def check(self, step: Primitive) -> tuple[Problem, ...]:
        """Say what keeps a step from applying; nothing means it is legal."""
        return self.state.check(step)

    def suggest(self, selection: Ref) -> tuple[Candidate, ...]:
        """Rank filled-in steps for a part of the program, applicable ones first."""
        return suggest(self.state, selection)

    def verify(self, **options: Any) -> Verification:
        """Run the interpreter before and after all steps, on random data at several sizes."""
        return verify(self._history.root.state.module, self.module, **options)

    def show(self) -> None:
        """Print the program at the head."""
        print(self)  # noqa: T201

    def __str__(self) -> str:
        """The program at the head as text."""
        from ..ir.script import to_text

        return to_text(self.module)

    def __repr__(self) -> str:
        """In one line: the program, and how many steps were taken."""
        taken = len(self.trace)
        return f"<Schedule: {taken} step{'' if taken == 1 else 's'} on {self.module!r}>"

    # ------------------------------------------------------------ changing

    def apply(self, step: Step, *, expected: str | None = None) -> Applied:
        """Apply a step at the head.

        Parameters
        ----------
        step : Step
            A primitive or a query with its values.
        expected : str, optional
            The id of the head the caller saw; None means the head of this moment.

        Raises
        ------
        StaleEditError
            If the head is, or becomes, another one.
        StepError
            If a requirement of the step does not hold.
        """
        seen = self._head
        if expected is not None and expected != seen.id:
            raise _stale(step, expected, seen.id)
        applied = seen.state.apply(step)
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
        """Call back after every move of the head, outside of the lock; gives what ends that."""
        self._watchers = (*self._watchers, watcher)

        def unsubscribe() -> None:
            self._watchers = tuple(w for w in self._watchers if w is not watcher)

        return unsubscribe

    def perform(self, step: Step) -> Any:
        """Apply a step, and give its results the way its method does."""
        results = self.apply(step).results
        match returned_shape(type(step)):
            case "none":
                return None
            case "one":
                return results[0]
            case "many":
                return results

    def replay(self, trace: Trace) -> Replay:
        """Apply all steps of a trace; it stops at the first that no longer applies.

        The head moves to the last step that applied; what is left is kept as pending.
        """
        with self._lock:
            outcome = replay(self.state, trace)
            self._head = self._history.extended(self._head, outcome.state)
        self._notify()
        return outcome

    # ------------------------------------------------------------ moving about

    def undo(self) -> Node:
        """Go back one step.

        Raises
        ------
        ScheduleError
            If this is the start.
        """
        with self._lock:
            if self._head.parent is None:
                raise ScheduleError("nothing to undo: this is the start")
            undone, self._head = self._head, self._history[self._head.parent]
            self._history.remember(self._head, undone)
            moved = self._head
        self._notify()
        return moved

    def redo(self) -> Node:
        """Go forward to the version that was left last by :meth:`undo`, or made last from here.

        Raises
        ------
        ScheduleError
            If nothing was made from here.
        """
        with self._lock:
            following = self._history.following(self._head)
            if following is None:
                raise ScheduleError("nothing to redo: no step was done from here")
            self._head = following
        self._notify()
        return following

    def goto(self, node: str) -> Node:
        """Stand at a version of the history, by its id."""
        with self._lock:
            moved = self._head = self._history[node]
        self._notify()
        return moved

    def branch(self) -> Schedule:
        """Make another schedule at the same head, sharing the history."""
        seen = self._head
        return Schedule(seen.state.module, seen.state.target, at=(self._history, seen))

    def __iter__(self) -> Iterator[PrimFunc]:
        """Iterate the loop-level functions at the head."""
        return iter(self.module.prims)


def _started(state: State) -> tuple[History, Node]:
    history = History(state)
    return history, history.root


def _stale(step: Step, expected: str, head: str) -> StaleEditError:
    return StaleEditError(
        f"{step.title()} was meant for version {expected[:12]}, but the head is {head[:12]}",
        hint="look at the new head and apply the step again, or branch from the old one",
        details={"expected": expected, "head": head, "step": step.title()},
    )
