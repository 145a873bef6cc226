"""Traces: lists of steps whose operands are literals or results of earlier steps.

A composite step is recorded as a group of the steps it applied. The list of steps stays flat, so
that a trace with groups replays like one without.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from ..display import code_html
from ..errors import Json
from .problem import TraceError


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
_Move: TypeAlias = "Callable[[ResultOf], ResultOf]"
Argument: TypeAlias = "bool | int | float | str | ResultOf | Written | tuple[Argument, ...] | None"


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A recorded step: name, arguments by name, printed names of its results, decisions.

    A step with an unregistered name is kept as an opaque step; replaying it is an error.
    """

    op: str
    arguments: tuple[tuple[str, Argument], ...]
    names: tuple[str, ...] = ()
    decisions: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def operands(self) -> tuple[ResultOf, ...]:
        """Return the results of earlier steps that this step uses."""
        return tuple(r for _, value in self.arguments for r in _results_in(value))


DROPPED = ResultOf(-1, 0)
"""The result of a group whose step was removed by an edit."""

EDITED = "edited"
"""The decision of a group whose steps are not those that its composite step applied."""


@dataclass(frozen=True, slots=True)
class Group:
    """The steps of a composite step.

    Parameters
    ----------
    op : str
        The name of the composite step.
    arguments : tuple of (str, Argument)
        Its arguments by name; operands are results of steps before ``first``.
    first, stop : int
        The indices of the first step, and of the step after the last one.
    results : tuple of ResultOf
        The results of the composite step, each a result of a step before ``stop``.
    names : tuple of str
        The printed names of the results.
    decisions : Mapping[str, Json]
        ``{"edited": True}`` if the steps were changed since the composite step applied them.
    """

    op: str
    arguments: tuple[tuple[str, Argument], ...]
    first: int
    stop: int
    results: tuple[ResultOf, ...] = ()
    names: tuple[str, ...] = ()
    decisions: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def edited(self) -> bool:
        """Whether the steps were changed since the composite step applied them."""
        return bool(self.decisions.get(EDITED))

    def __contains__(self, index: int) -> bool:
        """Return whether a step, by its index in the trace, belongs to the group."""
        return self.first <= index < self.stop

    def __len__(self) -> int:
        """Return the number of steps, those of inner groups included."""
        return self.stop - self.first

    def call(self) -> TraceStep:
        """Return the group as one step: the composite step itself."""
        return TraceStep(self.op, self.arguments, self.names)


@dataclass(frozen=True, slots=True)
class Trace:
    """A list of steps in static single assignment, with the groups of composite steps.

    Parameters
    ----------
    steps : tuple of TraceStep
        The steps in order.
    groups : tuple of Group
        Groups of adjacent steps, sorted by first step, outer groups before inner ones. Any two
        groups are disjoint or nested.

    Examples
    --------
    >>> trace = Trace((TraceStep("get_block", (("name", "matmul"),), ("matmul",)),))
    >>> len(trace), trace[0].op
    (1, 'get_block')
    """

    steps: tuple[TraceStep, ...] = ()
    groups: tuple[Group, ...] = ()

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

    def _repr_html_(self) -> str:
        """Return the steps as static HTML."""
        return code_html(str(self), title=repr(self)[1:-1])

    def __repr__(self) -> str:
        """Return the number of steps and the name of the last one."""
        last = f", the last {self.steps[-1].op}" if self.steps else ""
        return f"<Trace: {len(self)} step{'' if len(self) == 1 else 's'}{last}>"

    def pruned(self, keep: Collection[int] = ()) -> Trace:
        """Return the trace without queries whose results no step uses, except those to keep.

        Parameters
        ----------
        keep : collection of int
            The indices of steps that are not removed.
        """
        from .pruning import pruned

        return pruned(self, keep)

    @staticmethod
    def renumbered(step: TraceStep, position: Mapping[int, int]) -> TraceStep:
        """Return a step whose operands have other step numbers."""
        return _renumbered(step, lambda number: position.get(number, -1))

    @staticmethod
    def mapped(step: TraceStep, move: Callable[[ResultOf], ResultOf]) -> TraceStep:
        """Return a step with other operands."""
        return _mapped(step, move)

    def appended(self, *steps: TraceStep) -> Trace:
        """Return the trace with steps added at the end, after all groups."""
        return Trace((*self.steps, *steps), self.groups)

    def grouped(self, group: Group) -> Trace:
        """Return the trace with a group of its last steps, around their groups."""
        position = next(
            (k for k, g in enumerate(self.groups) if g.first >= group.first), len(self.groups)
        )
        return Trace(self.steps, (*self.groups[:position], group, *self.groups[position:]))

    def check_groups(self) -> None:
        """Check that groups contain steps, are nested or disjoint, and use earlier results.

        Raises
        ------
        TraceError
            If a group is invalid.
        """
        outer: list[Group] = []
        for group in self.groups:
            while outer and outer[-1].stop <= group.first:
                outer.pop()
            limit = outer[-1].stop if outer else len(self)
            if not (0 <= group.first < group.stop <= limit):
                raise TraceError(
                    f"group {group.op} has {group.stop - group.first} steps from step "
                    f"{group.first}; expected 1 to {limit - group.first}",
                    hint="groups contain complete groups, and at least one step",
                )
            for operand in group.call().operands():
                if not 0 <= operand.step < group.first:
                    raise TraceError(
                        f"group {group.op} uses a result of step {operand.step}",
                        hint="groups can only use results of earlier steps",
                    )
            for result in group.results:
                if result != DROPPED and not 0 <= result.step < group.stop:
                    raise TraceError(f"group {group.op} returns a result of step {result.step}")
            outer.append(group)

    def inserted(self, index: int, step: TraceStep) -> Trace:
        """Return the trace with a step before step ``index``; operands use the old numbering.

        A step between two steps of a group belongs to the group.
        """

        def number(k: int) -> int:
            return k if k < index else k + 1

        moved = tuple(_renumbered(s, number) for s in self.steps)
        groups = tuple(
            replace(
                _regrouped(g, number),
                first=g.first + (g.first >= index),
                stop=g.stop + (g.stop > index),
                decisions=_edited(g) if g.first < index < g.stop else g.decisions,
            )
            for g in self.groups
        )
        return Trace((*moved[:index], step, *moved[index:]), groups)

    def replaced(self, index: int, step: TraceStep) -> Trace:
        """Return the trace with step ``index`` replaced."""
        groups = tuple(replace(g, decisions=_edited(g)) if index in g else g for g in self.groups)
        return Trace((*self.steps[:index], step, *self.steps[index + 1 :]), groups)

    def without(self, index: int) -> Trace:
        """Return the trace without a step; steps that used its results fail on replay.

        A group without steps is removed.
        """

        def number(k: int) -> int:
            return -1 if k == index else k - (k > index)

        steps = tuple(_renumbered(s, number) for i, s in enumerate(self.steps) if i != index)
        groups = tuple(
            replace(
                _regrouped(g, number),
                first=g.first - (g.first > index),
                stop=g.stop - (g.stop > index),
                decisions=_edited(g) if index in g else g.decisions,
            )
            for g in self.groups
            if index not in g or len(g) > 1
        )
        return Trace(steps, groups)

    def changed(self, index: int, **arguments: Argument) -> Trace:
        """Return the trace with other arguments of step ``index``.

        Raises
        ------
        TraceError
            If the step does not have an argument of that name.
        """
        return self.replaced(index, _with_arguments(self.steps[index], index, arguments))

    def fold(self, index: int) -> Trace:
        """Return the trace with group ``index`` as one step: a replay runs the composite step.

        Parameters
        ----------
        index : int
            The index of the group in ``groups``.

        Raises
        ------
        TraceError
            If a later step uses a result of a step of the group that is not a result of the group.
        """
        group = self.groups[index]
        inside = next(self._inside(group), None)
        if inside is not None:
            number, operand = inside
            raise TraceError(
                f"step {number} uses result {operand.index} of step {operand.step} "
                f"({self.steps[operand.step].op}), which {group.op} applied and does not return",
                where=f"step {number}",
                hint=f"look up the part of the program again after {group.op}, or keep its steps",
            )
        return self._folded(index)

    def folded(self) -> Trace:
        """Return the trace with each group as one step, as far as possible.

        A group keeps its steps if they were edited, or if a later step uses a result that is not
        one of the group. Its inner groups are folded.

        Examples
        --------
        >>> steps = (TraceStep("get_block", (("name", "mm"),), ("mm",)),)
        >>> trace = Trace(steps, (Group("find_mm", (), 0, 1, (ResultOf(0, 0),), ("mm",)),))
        >>> print(trace.folded())
        mm = sch.find_mm()
        """
        trace, index = self, 0
        while index < len(trace.groups):
            group = trace.groups[index]
            if group.edited or next(trace._inside(group), None) is not None:
                index += 1
            else:
                trace = trace._folded(index)
        return trace

    def ungrouped(self, index: int) -> Trace:
        """Return the trace without group ``index``; its steps stay."""
        return Trace(self.steps, (*self.groups[:index], *self.groups[index + 1 :]))

    def changed_group(self, index: int, **arguments: Argument) -> Trace:
        """Return the trace with other arguments of group ``index``.

        The group becomes one step: a replay runs the composite step with the new arguments. Later
        steps that used result ``k`` of the group use the new result ``k``.

        Raises
        ------
        TraceError
            If the group does not have an argument of that name, or if a later step uses a result
            of a step of the group that is not a result of the group.
        """
        folded, first = self.fold(index), self.groups[index].first
        step = _with_arguments(folded.steps[first], first, arguments)
        return folded.replaced(first, step)

    def _inside(self, group: Group) -> Iterator[tuple[int, ResultOf]]:
        """Yield later uses of results of a group's steps that are not results of the group."""
        returned = set(group.results)
        uses = [(k, self.steps[k]) for k in range(group.stop, len(self.steps))]
        uses += [(g.first, g.call()) for g in self.groups if g.first >= group.stop]
        for number, step in uses:
            for operand in step.operands():
                if operand.step in group and operand not in returned:
                    yield number, operand

    def _folded(self, index: int) -> Trace:
        group = self.groups[index]
        count = len(group) - 1
        positions = {result: k for k, result in reversed(tuple(enumerate(group.results)))}

        def moved(result: ResultOf) -> ResultOf:
            if result.step in group:
                at = positions.get(result)
                return DROPPED if at is None else ResultOf(group.first, at)
            return result if result.step < group.stop else replace(result, step=result.step - count)

        later = tuple(_mapped(s, moved) for s in self.steps[group.stop :])
        groups = tuple(
            replace(
                _group_mapped(g, moved),
                first=g.first - (count if g.first >= group.stop else 0),
                stop=g.stop - (count if g.stop >= group.stop else 0),
            )
            for k, g in enumerate(self.groups)
            if k < index or g.first >= group.stop
        )
        return Trace((*self.steps[: group.first], group.call(), *later), groups)


def _with_arguments(step: TraceStep, index: int, arguments: Mapping[str, Argument]) -> TraceStep:
    known = dict(step.arguments)
    for name in arguments:
        if name not in known:
            raise TraceError(
                f"step {index} ({step.op}) has no argument {name!r}",
                hint=f"its arguments are {', '.join(known)}",
            )
    return replace(step, arguments=tuple({**known, **arguments}.items()), decisions={})


def _edited(group: Group) -> Mapping[str, Json]:
    return {**group.decisions, EDITED: True}


def _results_in(value: Argument) -> tuple[ResultOf, ...]:
    if isinstance(value, ResultOf):
        return (value,)
    if isinstance(value, tuple):
        return tuple(r for item in value for r in _results_in(item))
    return ()


def _renumbered(step: TraceStep, number: _Renumber) -> TraceStep:
    return _mapped(step, lambda result: replace(result, step=number(result.step)))


def _regrouped(group: Group, number: _Renumber) -> Group:
    def moved(result: ResultOf) -> ResultOf:
        step = number(result.step) if result.step >= 0 else -1
        return DROPPED if step < 0 else ResultOf(step, result.index)

    return _group_mapped(group, moved)


def _group_mapped(group: Group, moved: _Move) -> Group:
    arguments = tuple((name, _mapped_value(v, moved)) for name, v in group.arguments)
    return replace(group, arguments=arguments, results=tuple(map(moved, group.results)))


def _mapped(step: TraceStep, moved: _Move) -> TraceStep:
    arguments = tuple((name, _mapped_value(v, moved)) for name, v in step.arguments)
    return replace(step, arguments=arguments)


def _mapped_value(value: Argument, moved: _Move) -> Argument:
    if isinstance(value, ResultOf):
        return moved(value)
    if isinstance(value, tuple):
        return tuple(_mapped_value(v, moved) for v in value)
    return value
