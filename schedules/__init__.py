"""Schedules: states, primitives, queries, composite steps, and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..renamed import module_getattr
from . import library, primitives, queries, rules
from .apply import Applied, Composite, Primitive, Query, Rewrite
from .composite import (
    CompositeDefinitionError,
    CompositeError,
    CompositeFailedError,
    CompositeResultError,
    RecursiveCompositeError,
    composite,
)
from .handles import BindingRef, BlockRef, BufferRef, FunctionRef, Handle, LoopRef, Removed
from .prefix_memo import PrefixMemo
from .primitives.tensorize.explain import explain_match
from .problem import (
    Problem,
    ScheduleError,
    StaleEditError,
    StepError,
    TraceError,
    UnknownStepError,
)
from .registry import STEPS, primitive, query
from .replay import Replay, TraceMismatchError, replay
from .requirement import CommonRequirement, Requirement
from .schedule import Schedule
from .state import StaleHandleError, State
from .step import Parameter, Step
from .suggest import Suggestion, suggest
from .text import from_json, from_python, notes_from_json, to_json, to_python
from .trace import Group, ResultOf, Trace, TraceStep, Written

__all__ = [
    "STEPS",
    "Applied",
    "BindingRef",
    "BlockRef",
    "BufferRef",
    "CommonRequirement",
    "Composite",
    "CompositeDefinitionError",
    "CompositeError",
    "CompositeFailedError",
    "CompositeResultError",
    "FunctionRef",
    "Group",
    "Handle",
    "LoopRef",
    "Parameter",
    "PrefixMemo",
    "Primitive",
    "Problem",
    "Query",
    "RecursiveCompositeError",
    "Removed",
    "Replay",
    "Requirement",
    "ResultOf",
    "Rewrite",
    "Schedule",
    "ScheduleError",
    "StaleEditError",
    "StaleHandleError",
    "State",
    "Step",
    "StepError",
    "Suggestion",
    "Trace",
    "TraceError",
    "TraceMismatchError",
    "TraceStep",
    "UnknownStepError",
    "Written",
    "composite",
    "explain_match",
    "from_json",
    "from_python",
    "library",
    "notes_from_json",
    "primitive",
    "primitives",
    "queries",
    "query",
    "replay",
    "rules",
    "suggest",
    "to_json",
    "to_python",
]

if not TYPE_CHECKING:  # a type checker reports former names as unknown
    __getattr__ = module_getattr(__name__)
