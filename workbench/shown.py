"""The displayed values of a session other than its schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..codegen.measure import MeasureOptions
from ..schedules import State
from ..schedules.handles import Handle
from .pending import Pending
from .protocol import Applied, Document, Lowered, Menu, Problem
from .protocol_runs import Measurement, SimilarKernels, Verdict
from .size_sets import SizeSets
from .step_menu import StepMenu


@dataclass(frozen=True, slots=True)
class Profile:
    """The last measurement of an entire call, and the scheduled program that ran."""

    measurement: Measurement
    compiled: State


@dataclass(slots=True)
class Shown:
    """The displayed values other than the schedule, each replaced as a whole, never mutated."""

    open: str = ""
    selection: Handle | None = None
    steps: StepMenu = field(default_factory=StepMenu)
    menu: Menu = field(default_factory=lambda: Menu(None, [], {}, []))
    samples: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    size_sets: SizeSets = field(default_factory=SizeSets)
    problems: tuple[Problem, ...] = ()
    dismissed: frozenset[str] = frozenset()
    pending: Pending = field(default_factory=Pending)
    lowered: Lowered | None = None
    document: Document | None = None
    applied: Applied | None = None
    measure_options: MeasureOptions = field(default_factory=MeasureOptions)
    measurement: Measurement | None = None
    profile: Profile | None = None
    similar: SimilarKernels | None = None
    verdict: Verdict | None = None
