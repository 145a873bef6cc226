"""The document of a session: the values that all pages share, other than the schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..codegen.measure import MeasureOptions
from ..schedules import State
from .pending import Pending
from .protocol_runs import Measurement, Verdict
from .protocol_steps import Problem
from .size_sets import SizeSets


@dataclass(frozen=True, slots=True)
class Profile:
    """The last measurement of an entire call, and the scheduled program that ran."""

    measurement: Measurement
    compiled: State


@dataclass(slots=True)
class SessionDocument:
    """The values that all pages share, each replaced as a whole, never mutated."""

    samples: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    size_sets: SizeSets = field(default_factory=SizeSets)
    problems: tuple[Problem, ...] = ()
    dismissed: frozenset[str] = frozenset()
    pending: Pending = field(default_factory=Pending)
    measure_options: MeasureOptions = field(default_factory=MeasureOptions)
    measurement: Measurement | None = None
    profile: Profile | None = None
    verdict: Verdict | None = None
