"""Composite steps: functions of steps that are recorded as one group.

The decorator :func:`composite` makes a step of a function. The function runs on a draft, a schedule
of its own that starts at the state of the step, so none of its intermediate versions is visible
elsewhere.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, ClassVar, Concatenate, ParamSpec, cast, overload

from ..calls import checked_call
from ..errors import Json, TilewrightError
from .apply import Composite
from .composite_signature import (
    CompositeDefinitionError,
    Signature,
    signature_of,
    type_source,
)
from .handles import HANDLE_TYPES, Handle, label
from .problem import Problem, Problems, RuleNotApplicableError, ScheduleError, StepError
from .record import located
from .registry import STEPS, register, step_type
from .requirement import Requirement
from .schedule import Schedule
from .state import State
from .step import Step
from .values import Result

__all__ = [
    "Composite",
    "CompositeDefinitionError",
    "CompositeDepthError",
    "CompositeError",
    "CompositeFailedError",
    "CompositeResultError",
    "RecursiveCompositeError",
    "SuggestionFailedWarning",
    "composite",
]

P = ParamSpec("P")
Suggest = Callable[[State, Handle], Iterable[Step]]

_ACTIVE: ContextVar[tuple[str, ...]] = ContextVar("active composite steps", default=())

MAX_DEPTH = 32
"""The number of composite steps that may be nested in each other."""

LIBRARY, USER = "library", "user"
"""The families of composite steps: of this package, and of its users."""

_PACKAGE = __name__.rpartition(".")[0]
_BUILT_IN = (f"{_PACKAGE}.library.", f"{_PACKAGE}.rules.")


class BodyRequirement(Requirement):
    """The requirements of composite steps that do not belong to one of their steps."""

    BODY_SUPPORTS_PROGRAM = "the composite step supports the program"
    BODY_RUNS = "the composite step runs without an error that is not a violated requirement"


class CompositeError(StepError):
    """A composite step one of whose steps does not apply; nothing was applied.

    ``problems`` are those of the failing step, and ``position`` is its number in the group, from 1.
    """

    title = "Illegal composite step"

    def __init__(self, step: str, position: int, inner: str, problems: tuple[Problem, ...]) -> None:
        """Store the composite step, and the failing step with its problems."""
        self.position = position
        self.prefix = f"{step} does not apply: step {position}, {inner}"
        module = problems.module if isinstance(problems, Problems) else None
        without = tuple(dataclasses.replace(p, fixes=()) for p in problems)
        super().__init__(f"{self.prefix},", without, module)


class CompositeFailedError(ScheduleError):
    """A composite step stopped by an error other than an illegal step; nothing was applied."""

    title = "Composite step failed"


class CompositeResultError(ScheduleError):
    """A composite step that returned something other than it declares."""

    title = "Wrong result of a composite step"


class CompositeDepthError(ScheduleError):
    """Composite steps that apply each other to a greater depth than is supported."""

    title = "Composite steps nested too deeply"


class SuggestionFailedWarning(UserWarning):
    """A function of suggestions of a user's composite step that raised an error.

    The menu does not contain suggestions of this step.
    """


class RecursiveCompositeError(ScheduleError):
    """A composite step that applies itself, directly or through others."""

    title = "Recursive composite step"


class FunctionComposite(Composite):
    """A composite step whose steps a Python function applies."""

    __slots__ = ()
    _definition: ClassVar[Signature]
    _body: ClassVar[Callable[..., object]]
    _suggestions: ClassVar[Suggest | None] = None
    _always_legal: ClassVar[bool] = False

    @classmethod
    def verb(cls) -> str:
        """Return the name of the function."""
        return cls._definition.name

    @classmethod
    def hints(cls) -> Mapping[str, Any]:
        """Return the types of the parameters by name."""
        return cls._definition.types

    def __reduce__(self) -> tuple[Callable[..., Step], tuple[object, ...]]:
        """Return the name and the values: in its module, the class has the name of the function."""
        return _restored, (self.verb(), dict(self.values()))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Composite]:
        """Yield filled-in steps for the selected part of the program."""
        if cls._suggestions is None:
            return
        try:
            found = tuple(cast("Iterable[Composite]", cls._suggestions(state, selection)))
        except Exception as error:
            if cls.family != USER:
                raise
            message = f"suggestions of {cls.verb()} failed: {type(error).__name__}: {error}"
            warnings.warn(SuggestionFailedWarning(message), stacklevel=2)
            return
        yield from found

    def compose(self, state: State) -> tuple[State, tuple[Result, ...]]:
        """Run the function on a draft, and return its state and the results it returned."""
        active, verb = _ACTIVE.get() or state.applying, self.verb()
        if verb in active:
            cycle = [*active[active.index(verb) :], verb]
            raise RecursiveCompositeError(
                f"composite step {verb!r} applies itself: {' -> '.join(cycle)}",
                details={"cycle": list[Json](cycle)},
            )
        if len(active) >= MAX_DEPTH:
            raise CompositeDepthError(
                f"composite step {verb!r} is nested in {len(active)} others; expected at most "
                f"{MAX_DEPTH - 1}",
                hint="apply the inner steps one after the other",
            )
        draft = Schedule.draft(dataclasses.replace(state, applying=(*active, verb)))
        token = _ACTIVE.set((*active, verb))
        try:
            returned = self._body(draft, **dict(self.values()))
            results = self._results(returned, draft.state)
        except TilewrightError as error:
            if isinstance(
                error, RecursiveCompositeError | CompositeDepthError | CompositeResultError
            ):
                raise
            raise self._wrapped(error, len(draft.trace) - len(state.trace) + 1) from error
        finally:
            _ACTIVE.reset(token)
        return dataclasses.replace(draft.state, applying=state.applying), results

    def _wrapped(self, error: TilewrightError, position: int) -> TilewrightError:
        title = self.title()
        match error:
            case CompositeError():
                return CompositeError(title, position, error.prefix, error.problems)
            case StepError():
                return CompositeError(title, position, error.step, error.problems)
            case RuleNotApplicableError():
                problem = Problem(BodyRequirement.BODY_SUPPORTS_PROGRAM, error.message)
                return StepError(title, (problem,))
            case _:
                return CompositeFailedError(
                    f"{title} failed at its step {position}: {error.message}",
                    where=error.where,
                    hint=error.hint,
                    details={"step": title, "position": position, "error": error.to_json()},
                )

    def problems(self, state: State) -> Problems:
        """Return the problems of the first step of the function that does not apply."""
        if self._always_legal:
            return Problems()
        try:
            self.compose(located(state, self))
        except CompositeError as error:
            lead = error.prefix.removeprefix(f"{self.title()} does not apply: ")
            found = (dataclasses.replace(p, message=f"{lead}: {p.message}") for p in error.problems)
            return Problems(found, error.problems.module)
        except StepError as error:
            return error.problems
        except ScheduleError as error:
            return Problems((Problem(BodyRequirement.BODY_RUNS, error.message),))
        except Exception as error:  # noqa: BLE001 - the function is the user's; applying raises it
            message = f"{self.title()} raises {type(error).__name__}: {error}"
            return Problems((Problem(BodyRequirement.BODY_RUNS, message),))
        return Problems()

    def _results(self, returned: object, state: State) -> tuple[Result, ...]:
        """Return the results of the function as a tuple."""
        if not self._definition.accepts(returned):
            declared = self._definition.returns
            raise CompositeResultError(
                f"composite step {self.verb()!r} returned {_described(returned)}; it declares "
                f"{type_source(declared)}",
                hint="annotate the function with -> None, -> LoopRef, -> tuple[LoopRef, ...], ...",
            )
        results = _flat(returned)
        for handle in (result for result in results if isinstance(result, HANDLE_TYPES)):
            absence = state.absence(handle)
            if absence is not None:
                raise CompositeResultError(
                    f"composite step {self.verb()!r} returned {label(handle)!r}: {absence}"
                )
        return results


_RESERVED = frozenset({"self", *dir(FunctionComposite)})
"""Names that a parameter cannot have: those of the members of steps."""


def _restored(verb: str, values: Mapping[str, Any]) -> Step:
    """Return a copied step."""
    return step_type(verb)(**values)


def _flat(returned: object) -> tuple[Result, ...]:
    """Return the results of a function, which its signature accepts, as a tuple."""
    if isinstance(returned, tuple | list):
        return tuple(cast("tuple[Result, ...]", returned))
    return () if returned is None else (cast("Result", returned),)


def _described(value: object) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_described, cast('tuple[object, ...]', value)))})"
    return "None" if value is None else type(value).__name__


@overload
def composite(function: Callable[Concatenate[Any, P], object], /) -> Callable[P, Composite]: ...
@overload
def composite(
    *, returns: Any = ..., suggest: Suggest | None = None, always_legal: bool = False
) -> Callable[[Callable[Concatenate[Any, P], object]], Callable[P, Composite]]: ...
@checked_call
def composite(
    function: Callable[..., object] | None = None,
    /,
    *,
    returns: Any = ...,
    suggest: Suggest | None = None,
    always_legal: bool = False,
) -> Any:
    """Make a step of a function of steps: a decorator.

    The function takes a schedule and the parameters of the step. Its steps are recorded as one
    group, which is one version of the history: one undo, and one line of a folded trace. The step
    is a method of every schedule and an entry of the menu, like a primitive. If a step of the
    function does not apply, nothing is applied.

    Parameters
    ----------
    function : callable
        A function ``f(sch, ...)``. Its parameters are annotated with types of fields of steps:
        handles (``LoopRef``, ...), ``SymInt``, ``IndexMap``, ``bool``, ``int``, ``float``, ``str``,
        ``Literal``, and unions and tuples of these.
    returns : type, optional
        The type of its results: a handle type, ``int``, ``SymInt``, a ``tuple[...]`` of them, or
        None. By default the annotation of the function.
    suggest : callable, optional
        A function of a state and a selected handle that yields filled-in steps for the menu.
    always_legal : bool, optional
        True if the step applies to every program, so that checks need not run the function.

    Returns
    -------
    type of Composite
        The class of the step; calling it with the arguments of the parameters creates a step.

    Raises
    ------
    CompositeDefinitionError
        If the function has an unsupported parameter or result, or the name of a primitive, of a
        composite step of this package, or of another member of schedules. A composite step of a
        user is replaced.

    Notes
    -----
    A function that changes nothing is legal: if it applies no step, or only looks up parts of the
    program without returning one, nothing is recorded.

    Examples
    --------
    >>> import tilewright as tw
    >>> from tilewright.schedules import LoopRef
    >>> @tw.composite
    ... def strip(sch, loop: LoopRef, lanes: int = 8) -> LoopRef:
    ...     outer, inner = sch.split(loop, factors=(None, lanes))
    ...     sch.vectorize(inner)
    ...     return outer
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    ...     for i in range(32):
    ...         y[i] = x[i]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> outer = sch.strip("i")
    >>> print(sch.trace)
    f = sch.get_function(name='f')
    y = sch.get_block(name='y', function=f)
    i, = sch.get_loops(block=y)
    with sch.composite('strip', loop=i, lanes=8):
        i_0, i_1 = sch.split(loop=i, factors=(None, 8))
        sch.vectorize(loop=i_1)
        sch.returns(i_0)
    >>> print(sch.trace.folded())
    f = sch.get_function(name='f')
    y = sch.get_block(name='y', function=f)
    i, = sch.get_loops(block=y)
    i_0 = sch.strip(loop=i, lanes=8)
    """

    def make(function: Callable[..., object]) -> Any:
        return _register(function, returns, suggest, always_legal=always_legal)

    return make if function is None else make(function)


def _register(
    function: Callable[..., object], returns: Any, suggest: Suggest | None, *, always_legal: bool
) -> type[FunctionComposite]:
    definition = signature_of(function, returns, _RESERVED)
    module = function.__module__ or ""  # None if exec defined the function
    family = LIBRARY if module.startswith(_BUILT_IN) else USER
    _check_name(definition.name, family)
    members = {
        "_definition": definition,
        "_body": staticmethod(function),
        "_suggestions": None if suggest is None else staticmethod(suggest),
        "_always_legal": always_legal,
        "__doc__": function.__doc__ or f"Apply the steps of ``{definition.name}``.",
    }
    name = definition.name.title().replace("_", "")
    bases = (FunctionComposite,)
    made = dataclasses.make_dataclass(
        name, definition.fields, bases=bases, namespace=members, frozen=True, slots=True
    )
    made.__module__, made.__qualname__ = module, name
    return register(cast("type[FunctionComposite]", made), family, definition.returns)


def _check_name(name: str, family: str) -> None:
    """Reject the name of a built-in step, or of another member of schedules."""
    known = STEPS.get(name)
    if known is not None:
        if known.family == USER or family == LIBRARY:
            return
        raise CompositeDefinitionError(
            f"step {name!r} is built in (family {known.family})", hint="choose another name"
        )
    if name in dir(Schedule):
        raise CompositeDefinitionError(
            f"{name!r} is a member of Schedule that is not a step", hint="choose another name"
        )
