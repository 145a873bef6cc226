"""Schedules: the head of a branching history, moved by compare-and-swap."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn, cast

from ..calls import checked_calls
from ..display import Table, present
from ..errors import UnpicklableError
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Module
from ..ir.script.diff import Diff, diff
from ..ir.script.html import program_html
from ..ir.verify import accepted
from ..progress import ProgressOption
from ..target.effective import effective_target
from ..target.target import Target, as_target
from .apply import Applied, Composite, Primitive, apply, check
from .describe import describe
from .handles import FunctionRef, Handle
from .history import History, Node
from .listing import Parts, listing
from .methods import ScheduleMethods
from .open_group import OpenGroup
from .problem import ParameterError, Problems, ScheduleError, StaleEditError
from .replay import Replay, replay
from .similar import SimilarKernels, apply_to_similar
from .state import State
from .step import Step, returned_shape
from .suggest import Suggestions, suggest
from .trace import Trace
from .values import Result
from .verify import Verification, verify
from .versions import Versions


@checked_calls
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
    seed : int, optional
        The seed of the steps that draw a random decision, such as ``sample_perfect_tile``.
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
        seed: int = 0,
        at: tuple[History, Node] | None = None,
    ) -> None:
        """Start with an empty trace, or at a version of an existing history."""
        if isinstance(module, PrimFunc):
            module = Module().with_functions(module)
        if not isinstance(cast("object", module), Module):
            raise ScheduleError(
                f"expected a Module or a PrimFunc, got {type(module).__name__}",
                where="argument 'module' of Schedule",
                hint="create a module with parse, from_exported_program or from_onnx",
            )
        if at is None:
            module = accepted(module, names=False)
        chosen = None if target is None else as_target(target)
        if at is None:
            at = (history := History(State.start(module, chosen, seed))), history.root
        self._history, self._head = at
        self._lock = threading.RLock()
        self._watchers: tuple[Callable[[Node], object], ...] = ()
        self._groups: list[OpenGroup] = []

    @classmethod
    def draft(cls, state: State) -> Schedule:
        """Return a schedule at a state, with its own history, for steps that may be discarded."""
        history = History(state, draft=True)
        return cls(state.module, state.target, at=(history, history.root))

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
    def history(self) -> Versions:
        """The versions of this schedule and its branches, oldest first; ``print`` shows a tree."""
        return Versions(self._history.nodes(), self._head)

    def check(self, step: Primitive | Composite) -> Problems:
        """Return all problems that make a step illegal at the head.

        A composite step is run on a draft; the problems are those of the first of its steps that
        does not apply.

        Parameters
        ----------
        step : Primitive or Composite
            A primitive or a composite step with its parameters.

        Returns
        -------
        Problems
            The violated requirements, a tuple of :class:`~.problem.Problem`; empty if the step is
            legal.
        """
        return check(self.state, step)

    def launchable(
        self, target: str | Target | None = None, function: FunctionRef | str | None = None
    ) -> Problems:
        """Return the problems of launching the kernels on a target, without lowering them.

        See :func:`.launchable.launchable`: the violated requirements of ``function``, or of all
        scheduled functions, by default for the target of the schedule. Without any, lowering finds
        no error of a launch.
        """
        return self.state.launchable(None if target is None else as_target(target), function)

    def suggest(self, selection: Handle) -> Suggestions:
        """Return filled-in steps for a part of the program.

        Parameters
        ----------
        selection : Handle
            The selected function, loop, block, buffer or binding.

        Returns
        -------
        Suggestions
            A tuple of the steps with their problems, legal ones first.
        """
        return suggest(self.state, selection)

    def verify(
        self,
        *,
        runs: int = 4,
        seed: int = 0,
        limit: float = 3e6,
        progress: ProgressOption = None,
    ) -> Verification:
        """Compare the results of the interpreter before and after all steps, on random data.

        Parameters
        ----------
        runs : int
            The number of runs per function; sizes are a prime, 0, 1, a prime above 32, and so on.
        seed : int
            The seed of the random sizes and data.
        limit : float
            The largest number of innermost iterations of one run; functions with more are reported
            as skipped.
        progress : bool or callable, optional
            Whether to show a progress bar, or a function of a fraction and a message.

        Returns
        -------
        Verification
            The comparisons and the skipped functions.
        """
        before = self._history.root.state.module
        return verify(before, self.module, runs=runs, seed=seed, limit=limit, progress=progress)

    def show(self, part: Handle | str | None = None, *, highlight: Parts = ()) -> None:
        """Show the program at the head, one function, or the properties of a part.

        A notebook displays highlighted HTML; elsewhere, the text is printed.

        Parameters
        ----------
        part : Handle or str, optional
            The name of a function to show, or a handle whose properties to show: extent, kind,
            and the loops around it.
        highlight : Handle or str, or an iterable of them, optional
            The parts to highlight: handles, or names of loops, blocks, buffers or bindings.

        Raises
        ------
        NotFoundError
            If a name matches no part of the program.
        """
        if part is None or isinstance(part, str):
            present(listing(self.state, part, highlight))
        else:
            present(describe(self.state, part))

    def describe(self, part: Handle) -> Table:
        """Return the properties of a part of the program as a table."""
        return describe(self.state, part)

    def diff(self, other: Module | Schedule | Node | str | None = None) -> Diff:
        """Return the difference between another version and the head.

        Parameters
        ----------
        other : Module, Schedule, Node or str, optional
            The other version: a program, a schedule, or a version of the history or its id. By
            default the program before all steps.

        Returns
        -------
        Diff
            ``print`` shows it in the unified format, and a notebook in color.

        Raises
        ------
        ParameterError
            If ``other`` is none of them.
        """
        given = cast("object", other)
        if not isinstance(given, Module | Schedule | Node | str | None):
            raise ParameterError(
                f"expected a program, a schedule or a version, got {type(given).__name__}",
                where="argument 'other' of diff",
                hint="omit it to compare with the program before all steps",
            )
        match other:
            case Module():
                return diff(other, self.module, ("other", "head"))
            case Schedule():
                return diff(other.module, self.module, ("other", "head"))
            case None | str() | Node():
                node = self._history.root if other is None else other
                node = self._history[node] if isinstance(node, str) else node
                name = "start" if node is self._history.root else node.id[:8]
                return diff(node.state.module, self.module, (name, "head"))

    def __str__(self) -> str:
        """Return the program at the head as text."""
        return str(self.module)

    def _repr_html_(self) -> str:
        """Return the program at the head as static HTML."""
        return program_html(self.module, title=repr(self)[1:-1])

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
            raise StaleEditError.of(step, expected, seen.id)
        applied = apply(seen.state, step)
        self._move(seen, applied.state, step)
        return applied

    def _move(self, seen: Node, state: State, step: Step) -> None:
        with self._lock:
            if self._head is not seen:
                raise StaleEditError.of(step, seen.id, self._head.id)
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
        None, a result or a tuple of results
            The handles and values, as declared by the step.
        """
        results = self.apply(step).results
        match returned_shape(type(step)):
            case "none":
                return None
            case "one":
                return results[0]
            case "many":
                return results

    @contextmanager
    def composite(self, op: str, /, *marks: str, **arguments: object) -> Generator[None]:
        """Record the steps of a with statement as one group, as in the Python text of a trace.

        The steps are applied one by one. At the end of the statement the head is one version with
        the group. If a step does not apply, the head moves back to the version before it.

        Parameters
        ----------
        op : str
            The name of the composite step; a registered one need not apply the same steps.
        *marks : str
            ``"edited"`` if the steps are not those that the composite step applies.
        **arguments
            Its arguments.

        Examples
        --------
        >>> import tilewright as tw
        >>> module = tw.parse('''
        ... @prim_func
        ... def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        ...     for i in range(32):
        ...         y[i] = x[i]
        ... ''')
        >>> sch = tw.Schedule(module)
        >>> with sch.composite("strip", loop=sch.get_loop("i")):
        ...     outer, inner = sch.split("i", factors=(None, 8))
        ...     sch.vectorize(inner)
        ...     sch.returns(outer)
        >>> sch.head.step.op, len(sch.head.step)
        ('strip', 2)
        """
        with self._lock:
            start = self._head
            if self._groups:
                self._groups[-1].check_thread(op)
            group = OpenGroup.at(start, op, marks, arguments)
            self._head = self._history.extended(start, group.before)
            self._groups.append(group)
        try:
            yield
            with self._lock:
                self._head = self._history.extended(start, group.closed(self.state))
        except BaseException:
            self.goto(start.id)
            raise
        finally:
            self._groups.remove(group)
        self._notify()

    def returns(self, *results: Result | None) -> None:
        """State the results of the group that the enclosing :meth:`composite` records.

        Parameters
        ----------
        *results : Handle, int, Expr or None
            The results that later steps may use; None for one that an edit removed.

        Raises
        ------
        ScheduleError
            If no with statement of :meth:`composite` encloses the call.
        """
        if not self._groups:
            raise ScheduleError(
                "returns is outside of a group", hint="write it inside with sch.composite(...)"
            )
        self._groups[-1].results = results

    def replay(
        self, trace: Trace, *, names: Mapping[str, str] | None = None, skip: bool = False,
        versions: Collection[int] = (),
    ) -> Replay:  # fmt: skip
        """Apply the steps of a trace until one does not apply, and move the head there.

        Parameters
        ----------
        trace : Trace
            The steps to apply.
        names : mapping of str to str, optional
            The names in this program of functions, blocks, loops and buffers that the trace looks
            up by another name, for example ``{"matmul": "dense"}``.
        skip : bool
            True to continue after a step that does not apply, without those that use its results.
        versions : collection of int
            The numbers of steps after which the history gets a version, except inside groups.

        Returns
        -------
        Replay
            The final state, and the steps that were not applied with reasons; ``print`` shows them.
        """
        with self._lock:
            outcome = replay(self.state, trace, names=names, skip=skip, versions=versions)
            for state in (*(state for _, state in outcome.versions), outcome.state):
                self._head = self._history.extended(self._head, state)
        self._notify()
        return outcome

    def apply_to_similar(
        self, function: FunctionRef | str, to: Iterable[FunctionRef | str] | None = None
    ) -> SimilarKernels:
        """Apply the steps of one kernel to all kernels that accept them.

        A kernel accepts the steps if it has a block of the same form, and every step is legal. A
        kernel that does not accept them is not changed. The steps of all kernels are one version.

        Parameters
        ----------
        function : FunctionRef or str
            The kernel whose steps to apply, those of functions made from it included.
        to : iterable of FunctionRef or str, optional
            The kernels to try. By default all other loop-level functions without a schedule.

        Returns
        -------
        SimilarKernels
            Which kernels accept the steps, and the reasons of the others; ``print`` shows a table.

        Raises
        ------
        TraceError
            If no step of the trace changes the kernel, or a name is not that of another kernel.
        """
        with self._lock:
            names = None if to is None else [_function_name(item) for item in to]
            found = apply_to_similar(self.state, _function_name(function), names)
            self._head = self._history.extended(self._head, found.state)
        self._notify()
        return found

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
                raise ScheduleError(
                    "nothing to undo: the head is the root of the history",
                    where="history",
                    hint="sch.redo() moves to the version that was left last",
                )
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
                raise ScheduleError(
                    "nothing to redo: no version is derived from the head",
                    where="history",
                    hint="sch.goto(id) moves to any version of sch.history",
                )
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

    def retarget(self, target: str | Target) -> None:
        """Schedule for another machine; applied steps are kept, and not checked again."""
        stated = {p.name: p.target for p in self.module.prims if p.target is not None}
        chosen = as_target(target)
        effective_target(chosen, stated)
        with self._lock:
            self._history.retarget(chosen)
            self._head = self._history[self._head.id]
        self._notify()

    def branch(self) -> Schedule:
        """Return another schedule at the same head that shares the history."""
        seen = self._head
        return Schedule(seen.state.module, seen.state.target, at=(self._history, seen))

    def __reduce__(self) -> NoReturn:
        """Report that a schedule cannot be pickled, and the alternatives."""
        raise UnpicklableError(
            "a Schedule cannot be pickled or copied: its history is shared by its branches",
            where="Schedule",
            hint="pickle sch.module and to_json(sch.trace); sch.branch() returns a second schedule",
        )

    def __iter__(self) -> Iterator[PrimFunc]:
        """Yield the loop-level functions at the head."""
        return iter(self.module.prims)


def _function_name(function: FunctionRef | str) -> str:
    return function if isinstance(function, str) else function.function
