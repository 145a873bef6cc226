"""Time of the operations of graphs that are lowered, and of graphs that are not."""

from __future__ import annotations

import dataclasses

import numpy as np

import tilewright as tw
from tilewright.workbench.heat import CallTime, heat_view, overlay_of
from tilewright.workbench.protocol_runs import KernelTime, Measurement

from tests.workbench.test_editor import MODEL


def measured(names: dict[str, int]) -> Measurement:
    kernels = [KernelTime(name, calls, 10.0 * calls, 0.5) for name, calls in names.items()]
    empty = {f.name: 0 for f in dataclasses.fields(Measurement) if f.default is dataclasses.MISSING}
    return Measurement(**{**empty, "function": "main", "kernels": kernels})  # type: ignore[arg-type]


def names(schedule: tw.Schedule, uids: list[int]) -> list[str]:
    bindings = schedule.module.graph("main").bindings
    return sorted(b.value.name for b in bindings if b.value.uid in uids)


def test_operations_have_the_time_of_the_kernel_that_computes_them() -> None:
    schedule = tw.Schedule(tw.parse(MODEL), tw.Target("cpu", features=("avx2",)))
    compiled = schedule.branch()
    compiled.default_schedule()
    kernels = [f.name for f in compiled.module.prims]
    assert "fused_matmul_gelu" in kernels
    assert "matmul_1" in kernels
    times = measured({"fused_matmul_gelu": 1, "matmul_1": 1})
    graph = compiled.module.graph("main")
    found = heat_view(schedule.module.graph("main"), graph, times)
    assert [(c.kernel, names(schedule, c.uids), c.microseconds) for c in found] == [
        ("fused_matmul_gelu", ["act", "up"], 10.0),
        ("matmul_1", ["down"], 10.0),
    ]
    schedule.lower_graph("main")
    lowered = heat_view(schedule.module.graph("main"), graph, times)
    assert [names(schedule, c.uids) for c in lowered] == [["act"], ["down"]]


def test_kernels_that_were_not_measured_have_no_time() -> None:
    schedule = tw.Schedule(tw.parse(MODEL), tw.Target("cpu", features=("avx2",)))
    schedule.default_schedule()
    graph = schedule.module.graph("main")
    assert heat_view(graph, graph, measured({})) == []


def test_an_overlay_has_the_values_of_calls_and_their_operations() -> None:
    calls = [CallTime("a", 1.5, [3, 70000]), CallTime("b", 2.0, [])]
    overlay, (values, uids, positions) = overlay_of("main", 4.0, calls)
    assert (overlay.function, overlay.total, overlay.labels) == ("main", 4.0, ["a", "b"])
    assert np.frombuffer(values, "<f8").tolist() == [1.5, 2.0]
    assert np.frombuffer(uids, "<i4").tolist() == [3, 70000]
    assert np.frombuffer(positions, "<i4").tolist() == [0, 0]
    assert overlay_of("main", 4.0, [])[1] == []
