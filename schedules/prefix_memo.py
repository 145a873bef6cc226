"""Replays that start with the same steps as an earlier one, without applying these again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from .problem import TraceError
from .trace import Trace

LIMIT: Final = 4096
"""The number of steps that a memo keeps by default."""


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """The outcome of a step of a replay, with the state of the replay after it."""

    outcome: tuple[object, ...]


class PrefixMemo:
    """The states after the prefixes of replayed traces, shared by the replays of a search.

    A replay with a memo applies only the steps after the longest prefix that was replayed from the
    same state before. The steps that were used least recently are forgotten.

    Parameters
    ----------
    limit : int
        The largest number of steps to keep. A state shares all unchanged parts with others.

    Examples
    --------
    >>> memo = PrefixMemo(limit=1000)
    >>> len(memo), memo.hits
    (0, 0)
    """

    def __init__(self, limit: int = LIMIT) -> None:
        """Start without states."""
        if limit < 1:
            raise TraceError(f"a memo keeps at least one step, got limit={limit}")
        self.limit = limit
        self.hits = 0
        self._known: OrderedDict[Hashable, Replayed] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of steps whose outcomes are known."""
        return len(self._known)

    def get(self, before: Hashable, step: Hashable) -> Replayed | None:
        """Return the outcome of a step after a prefix; None if it is not known."""
        found = self._known.get((before, step))
        if found is not None:
            self._known.move_to_end((before, step))
            self.hits += 1
        return found

    def add(self, before: Hashable, step: Hashable, *outcome: object) -> Replayed:
        """Store the outcome of a step after a prefix, and return it as the longer prefix."""
        made = self._known[before, step] = Replayed(outcome)
        if len(self._known) > self.limit:
            self._known.popitem(last=False)
        return made


def step_keys(trace: Trace) -> list[Hashable]:
    """Return a key for each step: the step with the groups that it starts and ends."""
    bounds: dict[int, list[Hashable]] = {}
    for group in trace.groups:
        start = (group.op, group.arguments)
        end = (group.results, group.names, repr(group.decisions))
        bounds.setdefault(group.first, []).append(start)
        bounds.setdefault(group.stop - 1, []).append(end)
    return [
        (s.op, s.arguments, s.names, repr(s.decisions), tuple(bounds.get(number, ())))
        for number, s in enumerate(trace.steps)
    ]
