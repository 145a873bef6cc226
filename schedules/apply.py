"""Primitives and queries, and their application to states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from ..errors import Json
from ..ir.module import Module
from .coerce import Context, coerced
from .handles import Handle, Move, Removed
from .lookup import find
from .problem import Problem, StepError
from .record import located, recorded
from .state import State
from .step import Step

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
    results : tuple of Handle
        The handles that later steps may refer to.
    moved : Mapping[Handle, tuple[Handle, ...] | Removed]
        The replacements of handles that do not persist. Handles that are not listed persist.
    decisions : Mapping[str, Json]
        Choices that depended on proofs, and sampled values. A replay reports different ones.
    """

    module: Module
    results: tuple[Handle, ...] = ()
    moved: Mapping[Handle, tuple[Handle, ...] | Removed] = field(default_factory=lambda: _NOT_MOVED)
    decisions: Mapping[str, Json] = field(default_factory=lambda: _NO_DECISIONS)


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

    def rewrite(self, state: State) -> Rewrite:
        """Return the new program; called only if no check found a problem."""
        raise TypeError(f"{type(self).__name__} defines no rewrite for {state!r}")

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield filled-in steps for the selected part of the program."""
        del state, selection
        return iter(())

    def check(self, state: State) -> Iterator[Problem]:
        """Yield all problems: existence, enclosing blocks, structure, then proofs."""
        found = False
        phases = (
            state.missing(self),
            state.enclosed(self),
            self.structural(state),
            self.proofs(state),
        )
        for phase in phases:
            for problem in phase:
                found = True
                yield problem
            if found:
                return


class Query(Step):
    """A lookup whose results later steps refer to; recorded, so that a replay repeats it."""

    __slots__ = ()

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the handles found."""
        raise TypeError(f"{type(self).__name__} defines no run for {state!r}")


@dataclass(frozen=True, slots=True, eq=False)
class Applied:
    """A new state, with the results and the rewrite of its last step."""

    state: State
    results: tuple[Handle, ...]
    rewrite: Rewrite


def prepared(state: State, step: _S) -> _S:
    """Return a step with its values converted to the types of its fields."""
    function = next((handle.function for handle in step.handles()), None)

    def named(kind: type[Handle], name: str) -> Handle:
        return find(state, kind, name, function)

    return coerced(step, Context(lambda: state.symbols(step), named))


def check(state: State, step: Primitive) -> tuple[Problem, ...]:
    """Return all problems that make a step illegal; an empty tuple means it is legal."""
    return tuple(prepared(state, step).check(state))


def apply(state: State, step: Step) -> Applied:
    """Apply a step and record it in the trace.

    Raises
    ------
    StepError
        If a requirement is violated; the state is unchanged.
    """
    step = prepared(state, step)
    problems = tuple(step.check(state) if isinstance(step, Primitive) else state.missing(step))
    if problems:
        raise StepError(step.title(), problems)
    state = located(state, step)
    rewrite = _run(step, state)
    moves = state.moves
    if rewrite.moved:
        moves = (*moves, Move(len(state.trace), step.verb(), rewrite.moved))
    new = recorded(state, step, rewrite.results, rewrite.decisions)
    new = replace(new, module=rewrite.module, moves=moves)
    return Applied(new, rewrite.results, rewrite)


def _run(step: Step, state: State) -> Rewrite:
    if isinstance(step, Query):
        return Rewrite(state.module, step.run(state))
    if isinstance(step, Primitive):
        return step.rewrite(state)
    raise TypeError(f"{type(step).__name__} is neither a primitive nor a query")
