"""Queries of the native memory planner: exact plans of sizes, and the plan of the next call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..build.rtlib_object import rtlib_address
from ..manifest import FunctionSpec
from ..rtlib import layout, planner, plans
from ..rtlib.plan_table import PlanLayout, plan_table

PLAN_KINDS: Final[tuple[str, ...]] = ("exact", "larger", "growing")
"""The kinds of plans by their number."""

_POINTER = ctypes.c_void_p
_PLACE = ctypes.CFUNCTYPE(ctypes.c_int64, *([_POINTER] * 4))
_PEAK = ctypes.CFUNCTYPE(ctypes.c_int64, *([_POINTER] * 2))
_QUERY = ctypes.CFUNCTYPE(None, _POINTER, ctypes.c_int64, *([_POINTER] * 4))


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The memory plan of the next call.

    Parameters
    ----------
    kind : {"exact", "larger", "growing"}
        Whether the plan is exact, a plan of larger sizes that is reused, or a new one with room for
        growth.
    total : int
        The size of its arena in bytes.
    planned : int
        The number of plans that calls have computed.
    reused : int
        The number of new shapes for which calls reused a plan.
    """

    kind: str
    total: int
    planned: int
    reused: int


PlanQuery = Callable[[Sequence[int], Sequence[int]], CallPlan]
"""A function from the values of the symbols and the sizes of the storages to the plan of a call."""


def _words(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def _table(spec: FunctionSpec) -> ctypes.Array[ctypes.c_int64]:
    return _words(plan_table(len(spec.symbols), [(s.first, s.last) for s in spec.storages]))


def _scratch_words(records: PlanLayout) -> int:
    return max(2 * records.storages, records.sweep_bytes // 8)


def exact_plan(spec: FunctionSpec, sizes: Sequence[int]) -> tuple[int, int, list[int]]:
    """Return the size of the arena, the peak of live bytes, and the offsets of the storages."""
    table, given = _table(spec), _words(sizes)
    offsets = _words([0] * len(sizes))
    scratch = _words([0] * _scratch_words(PlanLayout(len(spec.symbols), len(sizes))))
    total = _PLACE(rtlib_address(plans.place))(table, given, offsets, scratch)
    peak = _PEAK(rtlib_address(planner.peak_of))(table, given)
    return total, peak, list(offsets)[: len(sizes)]


def query_instance(
    spec: FunctionSpec, instance: object, keys: Sequence[int], sizes: Sequence[int]
) -> CallPlan:
    """Return the plan of the next call of an instance; nothing is changed or allocated."""
    records = PlanLayout(len(spec.symbols), len(sizes))
    words = layout.QUERY_SIZE // 8 + records.plan_bytes // 8 + _scratch_words(records)
    answer = _words([0] * words)
    ask = _QUERY(rtlib_address(plans.query_plan))
    ask(instance, spec.slot, _table(spec), _words(keys), _words(sizes), answer)
    kind = int(answer[layout.QUERY_KIND // 8])
    return CallPlan(
        PLAN_KINDS[kind],
        answer[layout.QUERY_TOTAL // 8],
        answer[layout.QUERY_PLANNED // 8],
        answer[layout.QUERY_REUSED // 8],
    )
