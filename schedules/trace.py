"""Traces: lists of steps whose operands are literals or results of earlier steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

from ..errors import Json
from .problem import TraceError

_NO_DECISIONS: Mapping[str, Json] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ResultOf:
    """A reference to result ``index`` of step ``step`` of the trace."""

    step: int
    index: int


@dataclass(frozen=True, slots=True)
class Written:
    """The text of a symbolic term or an index map, because a trace outlives the symbols."""

    kind: Literal["expr", "map"]
    text: str


_Renumber: TypeAlias = Callable[[int], int]
Argument: TypeAlias = "bool | int | float | str | ResultOf | Written | tuple[Argument, ...] | None"


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A recorded step: name, arguments by name, printed names of its results, decisions.

    A step with an unregistered name is kept as an opaque step; replaying it is an error.
    """

    op: str
    arguments: tuple[tuple[str, Argument], ...]
    names: tuple[str, ...] = ()
    decisions: Mapping[str, Json] = field(default_factory=lambda: _NO_DECISIONS)

    def operands(self) -> tuple[ResultOf, ...]:
        """Return the results of earlier steps that this step uses."""
        return tuple(r for _, value in self.arguments for r in _results_in(value))


@dataclass(frozen=True, slots=True)
class Trace:
    """A list of steps in static single assignment.

    Examples
    --------
    >>> trace = Trace((TraceStep("get_block", (("name", "matmul"),), ("matmul",)),))
    >>> len(trace), trace[0].op
    (1, 'get_block')
    """

    steps: tuple[TraceStep, ...] = ()

    def __len__(self) -> int:
        """Return the number of steps, queries included."""
        return len(self.steps)

    def __getitem__(self, index: int) -> TraceStep:
        """Return one step."""
        return self.steps[index]

    def __str__(self) -> str:
        """Return the steps as Python, one per line."""
        from .text import to_python

        return to_python(self)

    def __repr__(self) -> str:
        """Return the number of steps and the name of the last one."""
        last = f", the last {self.steps[-1].op}" if self.steps else ""
        return f"<Trace: {len(self)} step{'' if len(self) == 1 else 's'}{last}>"

    def appended(self, *steps: TraceStep) -> Trace:
        """Return the trace with steps added at the end."""
        return Trace((*self.steps, *steps))

    def inserted(self, index: int, step: TraceStep) -> Trace:
        """Return the trace with a step before step ``index``; operands use the old numbering."""
        moved = tuple(_renumbered(s, lambda k: k if k < index else k + 1) for s in self.steps)
        return Trace((*moved[:index], step, *moved[index:]))

    def replaced(self, index: int, step: TraceStep) -> Trace:
        """Return the trace with step ``index`` replaced."""
        return Trace((*self.steps[:index], step, *self.steps[index + 1 :]))

    def without(self, index: int) -> Trace:
        """Return the trace without a step; steps that used its results fail on replay."""

        def number(k: int) -> int:
            return -1 if k == index else k - (k > index)

        return Trace(tuple(_renumbered(s, number) for i, s in enumerate(self.steps) if i != index))

    def changed(self, index: int, **arguments: Argument) -> Trace:
        """Return the trace with other arguments of step ``index``.

        Raises
        ------
        TraceError
            If the step does not have an argument of that name.
        """
        step = self.steps[index]
        known = dict(step.arguments)
        for name in arguments:
            if name not in known:
                raise TraceError(
                    f"step {index} ({step.op}) has no argument {name!r}",
                    hint=f"its arguments are {', '.join(known)}",
                )
        return self.replaced(
            index, replace(step, arguments=tuple((known | arguments).items()), decisions={})
        )


def _results_in(value: Argument) -> tuple[ResultOf, ...]:
    if isinstance(value, ResultOf):
        return (value,)
    if isinstance(value, tuple):
        return tuple(r for item in value for r in _results_in(item))
    return ()


def _renumbered(step: TraceStep, number: _Renumber) -> TraceStep:
    arguments = tuple((name, _renumbered_value(v, number)) for name, v in step.arguments)
    return replace(step, arguments=arguments)


def _renumbered_value(value: Argument, number: _Renumber) -> Argument:
    if isinstance(value, ResultOf):
        return replace(value, step=number(value.step))
    if isinstance(value, tuple):
        return tuple(_renumbered_value(v, number) for v in value)
    return value
