"""Primitives, queries and composite steps, and their application to states."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from ..errors import Json
from ..ir.copies import replace
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Module
from .allocations import AllocationScopeError, has_scopes, lifted, sunk
from .block_scope import (
    entered,
    has_local_shapes,
    isolation_problems,
    left,
    region_problems,
    same_block_problems,
    whole,
)
from .coerce import Context, coerced
from .handles import BufferRef, Handle, Move, Removed
from .lookup import accessed, find
from .outcome_checks import needs_outcome, outcome_problems
from .problem import ParameterError, Problem, Problems, StepError
from .record import called, grouped, located, recorded, returned
from .requirement import CommonRequirement
from .state import State
from .step import Step
from .step_watcher import report_step
from .values import Result, plain

_S = TypeVar("_S", bound=Step)
_NOT_MOVED: Mapping[Handle, tuple[Handle, ...] | Removed] = MappingProxyType({})
_NO_DECISIONS: Mapping[str, Json] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The outcome of a primitive.

    Parameters
    ----------
    module : Module
        The new program; it shares all unchanged parts with the old one.
    results : tuple of Handle, int or Expr
        The handles and values that later steps may refer to.
    moved : Mapping[Handle, tuple[Handle, ...] | Removed]
        The replacements of handles that do not persist. Handles that are not listed persist.
    decisions : Mapping[str, Json]
        Choices that depended on proofs. A replay reports different ones.
    """

    module: Module
    results: tuple[Result, ...] = ()
    moved: Mapping[Handle, tuple[Handle, ...] | Removed] = field(default_factory=lambda: _NOT_MOVED)
    decisions: Mapping[str, Json] = field(default_factory=lambda: _NO_DECISIONS)


_MADE: Final = "made"
_LEGAL: Final = "legal"
"""The keys of the last outcome and of the last legal step in the memo of a state."""


@dataclass(frozen=True, slots=True)
class _Made:
    """The outcome of a step whose number is ``ordinal``."""

    step: Primitive
    ordinal: int
    rewrite: Rewrite


class Primitive(Step):
    """A transformation of a program that preserves its results."""

    __slots__ = ()

    def structural(self, state: State) -> Iterator[Problem]:
        """Yield the problems that are found without the prover: kinds, nesting, arity."""
        del state
        return iter(())

    def proofs(self, state: State) -> Iterator[Problem]:
        """Yield the problems that the prover finds; called only if there are no structural ones."""
        del state
        return iter(())

    def decided(self, state: State) -> Primitive:
        """Return the step with a drawn decision if it has none, as the trace records it."""
        del state
        return self

    def rewrite(self, state: State) -> Rewrite:
        """Return the new program; called only if no check found a problem."""
        raise TypeError(f"{type(self).__name__} defines no rewrite for {state!r}")

    def made(self, state: State) -> Rewrite:
        """Return the outcome of the rewrite, which the checks and the application share."""
        known = state.memo.get(_MADE)
        if isinstance(known, _Made) and (known.step, known.ordinal) == (self, state.ordinal):
            return known.rewrite
        rewrite = self.rewrite(state)
        state.memo[_MADE] = _Made(self, state.ordinal, rewrite)
        return rewrite

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield filled-in steps for the selected part of the program."""
        del state, selection
        return iter(())

    def check(self, state: State) -> Iterator[Problem]:
        """Yield all problems: existence, enclosing blocks, structure, proofs, then allocations."""
        given = state
        state, _ = lifted(entered(given, self), self)
        found = False
        for problem in self.checked(state, given):
            found = True
            yield problem
        if not found and has_scopes(state, self):
            try:
                self.made(state)
            except AllocationScopeError as error:
                found = True
                yield self.misplaced(error)
        if not found:
            given.memo[_LEGAL] = self

    def checked(self, state: State, given: State) -> Iterator[Problem]:
        """Yield the problems that are found before the rewrite.

        The state is that of the block around the targets; the given one is that of the caller.
        """
        for problem in self.violations(state, given):
            yield problem if state.inside is None else _with_legal_fixes(problem, given)

    def violations(self, state: State, given: State) -> Iterator[Problem]:
        """Yield the problems; a fix that is legal inside of a block may not be legal around it."""
        found = False
        phases = (
            given.missing(self),
            given.enclosed(self),
            self.same_block(given),
            self.structural(state),
            self.proofs(state),
        )
        try:
            for phase in phases:
                for problem in phase:
                    found = True
                    yield problem
                if found:
                    return
            yield from self.outcome(state)
        except AllocationScopeError as error:  # of a check that examines the outcome
            yield self.misplaced(error)

    def same_block(self, state: State) -> Iterator[Problem]:
        """Yield a problem if the targets of an isolated step are inside of different blocks."""
        yield from same_block_problems(state, self)

    def outcome(self, state: State) -> Iterator[Problem]:
        """Yield the problems of concurrent loops, scans, and blocks after the step."""
        isolated = tuple(isolation_problems(state, lambda: self.made(state).module))
        if isolated:
            yield from isolated
            return
        names = {handle.function for handle in self.handles()}
        before = whole(state).module
        checks = (needs_outcome, has_local_shapes)
        if any(needs(before.functions.get(name)) for name in names for needs in checks):
            after = left(state, self.made(state).module)
            yield from outcome_problems(before, after, names)
            yield from region_problems(before, after, names, tuple(self.handles()))

    def misplaced(self, error: AllocationScopeError) -> Problem:
        """Return the problem that a use of a temporary would leave the scope of its allocation."""
        return Problem(CommonRequirement.ALLOCATED, error.message, tuple(self.handles()))


def _with_legal_fixes(problem: Problem, state: State) -> Problem:
    """Return a problem with the fixes that violate no requirement themselves."""

    def is_legal(fix: Step) -> bool:
        if not isinstance(fix, Primitive):
            return True
        inside, _ = lifted(entered(state, fix), fix)
        return next(fix.violations(inside, state), None) is None

    return replace(problem, fixes=tuple(filter(is_legal, problem.fixes)))


class Query(Step):
    """A lookup whose results later steps refer to; recorded, so that a replay repeats it."""

    __slots__ = ()

    def run(self, state: State) -> tuple[Result, ...]:
        """Return the handles or values found."""
        raise TypeError(f"{type(self).__name__} defines no run for {state!r}")


class Composite(Step):
    """A function of steps, recorded as one group of the steps it applies.

    The decorator :func:`~.composite.composite` creates the subclasses.
    """

    __slots__ = ()

    def compose(self, state: State) -> tuple[State, tuple[Result, ...]]:
        """Return the state after the steps of the function, and the results it returned."""
        raise TypeError(f"{type(self).__name__} defines no steps for {state!r}")

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Composite]:
        """Yield filled-in steps for the selected part of the program."""
        del state, selection
        return iter(())

    def problems(self, state: State) -> Problems:
        """Return the problems of the first step of the function that does not apply."""
        return Problems((), state.module)

    def check(self, state: State) -> Problems:
        """Return all problems: existence of the operands, then those of the steps."""
        return Problems(state.missing(self), state.module) or self.problems(state)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Applied:
    """A new state, with the results and the rewrite of its last step."""

    state: State
    results: tuple[Result, ...]
    rewrite: Rewrite

    def __repr__(self) -> str:
        """Return the name of the step and its results."""
        return f"<Applied {self.state.trace[-1].op}: results {self.results}>"


def prepared(state: State, step: _S) -> _S:
    """Return a step with its values converted to the types of its fields."""
    function = next((handle.function for handle in step.handles()), None)

    def named(kind: type[Handle], name: str) -> Handle:
        return find(state, kind, name, function)

    def numbered(index: int) -> BufferRef:
        return accessed(state, step, index, named)

    return coerced(step, Context(state.symbols, named, numbered))


def check(state: State, step: Primitive | Composite) -> Problems:
    """Return all problems that make a step illegal; an empty tuple means it is legal."""
    problems = prepared(state, step).check(state)
    return problems if isinstance(problems, Problems) else Problems(problems, state.module)


def apply(state: State, step: Step) -> Applied:
    """Apply a step and record it in the trace.

    A composite step is recorded as the steps it applied, in one group.

    Raises
    ------
    StepError
        If a requirement is violated; the state is unchanged.
    """
    if not isinstance(cast("object", step), Step):
        raise ParameterError(
            f"expected a step, got {type(step).__name__}",
            where="argument 'step' of apply",
            hint="steps are also methods: sch.split(loop, factors=(None, 8))",
        )
    given = prepared(state, step)
    step = given if isinstance(given, Composite) else _plain(given)
    scope = entered(state, step)
    outside, moved = lifted(scope, step) if isinstance(step, Primitive) else (state, ())
    problems = tuple(_problems(step, outside, state))
    if problems:
        raise StepError(step.title(), problems, state.module)
    if isinstance(step, Composite):
        return _composed(state, step)
    before, state = state, located(state, step)
    if isinstance(step, Primitive) and (decided := step.decided(scope)) is not step:
        given = step = decided
    inside = outside
    if state is not before:  # later steps have other numbers
        inside = replace(state, module=outside.module, inside=outside.inside)
        inside.memo.update(outside.memo)  # facts on the same program and target
    rewrite = _run(step, inside, moved)
    moves = state.moves
    if rewrite.moved:
        moves = (*moves, Move(len(state.trace), step.verb(), rewrite.moved))
    results = returned(state, rewrite.results)
    new = recorded(state, given, results, rewrite.decisions, module=rewrite.module, moves=moves)
    report_step(new.module)
    return Applied(new, results, rewrite)


def _problems(step: Step, state: State, given: State) -> Iterable[Problem]:
    """Return the problems that are found before the rewrite; a checked step has none."""
    if not isinstance(step, Primitive):
        return given.missing(step)
    return () if given.memo.get(_LEGAL) == step else step.checked(state, given)


def _plain(step: _S) -> _S:
    """Return a step whose integers are plain ones, also those that earlier steps returned."""
    values = {name: value for name, value in step.values() if isinstance(value, int | tuple)}
    changed = {k: new for k, value in values.items() if (new := plain(value)) is not value}
    return cast("_S", replace(cast("Any", step), **changed)) if changed else step


def _composed(state: State, step: Composite) -> Applied:
    """Apply a composite step; one that changes nothing and has no result is not recorded."""
    before = located(state, step)
    after, results = step.compose(before)
    if len(after.trace) == len(before.trace) or (after.module is before.module and not results):
        return Applied(state, results, Rewrite(state.module, results))
    new = grouped(before, after, called(before, step), results)
    return Applied(new, results, Rewrite(new.module, results))


def rewritten(step: Primitive, state: State) -> Rewrite:
    """Return the outcome of a step on a state, without checks."""
    return _rewritten(step, *lifted(entered(state, step), step))


def _rewritten(step: Primitive, state: State, moved: Collection[BufferRef]) -> Rewrite:
    """Return the outcome of a step; allocations that were moved outward move inward again."""
    try:
        made = step.made(state)
    except AllocationScopeError as error:
        raise StepError(step.title(), (step.misplaced(error),), state.module) from error
    for name in dict.fromkeys(ref.function for ref in moved):
        func = made.module.functions.get(name)
        if isinstance(func, PrimFunc):
            new = sunk(func, [ref.uid for ref in moved if ref.function == name])
            made = replace(made, module=made.module.with_functions(new))
    return made if state.inside is None else replace(made, module=left(state, made.module))


def _run(step: Step, state: State, moved: Collection[BufferRef]) -> Rewrite:
    if isinstance(step, Query):
        return Rewrite(state.module, step.run(state))
    if isinstance(step, Primitive):
        return _rewritten(step, state, moved)
    raise TypeError(f"{type(step).__name__} is neither a primitive nor a query")
