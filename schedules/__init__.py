"""How a program changes: states, primitives, traces, and the schedule that holds them."""

from __future__ import annotations

from . import primitives, queries
from .primitive import STEPS, Parameter, Primitive, Query, Rewrite, Step, primitive, query
from .primitives.tensorize.explain import explain_match
from .problem import (
    Problem,
    ScheduleError,
    StaleEditError,
    StepError,
    TraceError,
    UnknownStepError,
)
from .refs import BindingRef, BlockRef, BufferRef, FunctionRef, Gone, LoopRef, Ref
from .replay import Replay, TraceMismatchError, replay
from .schedule import Schedule
from .state import Applied, State
from .suggest import Candidate, suggest
from .text import from_json, from_python, to_json, to_python
from .trace import ResultOf, Trace, TraceStep, Written

__all__ = [
    "STEPS",
    "Applied",
    "BindingRef",
    "BlockRef",
    "BufferRef",
    "Candidate",
    "FunctionRef",
    "Gone",
    "LoopRef",
    "Parameter",
    "Primitive",
    "Problem",
    "Query",
    "Ref",
    "Replay",
    "ResultOf",
    "Rewrite",
    "Schedule",
    "ScheduleError",
    "StaleEditError",
    "State",
    "Step",
    "StepError",
    "Trace",
    "TraceError",
    "TraceMismatchError",
    "TraceStep",
    "UnknownStepError",
    "Written",
    "explain_match",
    "from_json",
    "from_python",
    "primitive",
    "primitives",
    "queries",
    "query",
    "replay",
    "suggest",
    "to_json",
    "to_python",
]
