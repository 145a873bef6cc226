"""Time of the operations of a graph: the measured kernels that compute them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..ir.graph.nodes import Binding, Call, CallTIR, GraphFunc, LaunchKernel, Value
from ..ir.graph.operators import get_operator
from ..ir.graph.visit import all_bindings, operands_of
from .protocol_runs import Measurement, Overlay

_Calls = Sequence[tuple[Binding, str]]


@dataclass(frozen=True, slots=True)
class CallTime:
    """The time of one call of a kernel, in µs, and the operations of the graph that it computes."""

    kernel: str
    microseconds: float
    uids: list[int]


def overlay_of(
    function: str, total: float, calls: Sequence[CallTime]
) -> tuple[Overlay, list[bytes]]:
    """Return times as an overlay of a graph, with its buffers; without calls there are none."""
    if not calls:
        return Overlay("time", "µs", function, total, []), []
    pairs = [(uid, k) for k, call in enumerate(calls) for uid in call.uids]
    buffers = [
        np.array([call.microseconds for call in calls], "<f8").tobytes(),
        np.array([uid for uid, _ in pairs], "<i4").tobytes(),
        np.array([k for _, k in pairs], "<i4").tobytes(),
    ]
    return Overlay("time", "µs", function, total, [call.kernel for call in calls]), buffers


def heat_view(graph: GraphFunc, compiled: GraphFunc, measurement: Measurement) -> list[CallTime]:
    """Return the time of each kernel call, with the operations of a graph that it computes.

    Parameters
    ----------
    graph : GraphFunc
        The displayed graph, lowered or not.
    compiled : GraphFunc
        The same function after the default schedule; its calls were measured.
    measurement : Measurement
        The times of the kernels, summed over their calls.

    Notes
    -----
    Lowering keeps the names of results: the call that computes a value of the graph writes a
    tensor of that name. A value inside a fused kernel belongs to the call that computes its first
    consumer of this kind. Calls that write other tensors, such as those of a decomposed operator,
    belong to the operations that share their origins. Views and computations on weights alone
    take no time in a call.
    """
    times = {k.function: k.microseconds / max(1, k.calls) for k in measurement.kernels}
    calls = [(b, name) for b in all_bindings(compiled.bindings) for name in _measured(b, times)]
    written = {name: k for k, (b, _) in enumerate(calls) for name in _results(b)}
    found = _by_names(graph, written)
    named = {k for at in found.values() for k in at}
    for k, (call, _) in enumerate(calls):
        if k not in named:
            for binding in graph.bindings:
                if _takes_time(binding) and call.origins & binding.origins:
                    found.setdefault(binding.value.uid, []).append(k)
    return [
        CallTime(name, times[name], [uid for uid, at in found.items() if k in at])
        for k, (_, name) in enumerate(calls)
    ]


def _measured(binding: Binding, times: Mapping[str, float]) -> Iterator[str]:
    """Yield the name under which a call was measured, that of a version if one was chosen."""
    right = binding.right
    if isinstance(right, CallTIR | LaunchKernel):
        names = (right.function, *(v.function for v in right.versions))
        yield from list(filter(times.__contains__, names))[:1]


def _results(call: Binding) -> Iterator[str]:
    """Yield the names of the tensors that a call may write."""
    yield call.value.name
    if isinstance(call.right, LaunchKernel):
        yield from (x.name for x in call.right.args[-1:] if isinstance(x, Value))


def _by_names(graph: GraphFunc, written: Mapping[str, int]) -> dict[int, list[int]]:
    """Return the call of each operation, found from the last one to the first."""
    found: dict[int, list[int]] = {}
    first_use: dict[int, int] = {}
    for binding in reversed(graph.bindings):
        uid, name = binding.value.uid, binding.value.name
        k = written.get(name, first_use.get(uid))
        if k is None:
            continue
        if _takes_time(binding):
            found[uid] = [k]
        for operand in operands_of(binding.right):
            if isinstance(operand, Value):
                first_use[operand.uid] = k
    return found


def _takes_time(binding: Binding) -> bool:
    """Return whether an operation may be computed by a kernel of a call."""
    right = binding.right
    if isinstance(right, Call) and get_operator(right.op).is_view:
        return False
    if not isinstance(right, Call | CallTIR | LaunchKernel):
        return False
    return any(isinstance(x, Value) for x in operands_of(right))
