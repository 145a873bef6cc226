"""Rooflines as tables and as pictures of plotly."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tilewright.workbench.measurement_records import MeasurementRecords
from tilewright.workbench.protocol_runs import (
    KernelRule,
    KernelTime,
    Measurement,
    Roof,
    RoofLevel,
)
from tilewright.workbench.roofline import RooflineError, roofline_of

from tests.static_html import check_static

if TYPE_CHECKING:
    from tests.workbench.conftest import Client

ROOF = Roof("fma", 2, 100.0, [RoofLevel("L2 cache", 1000, 80.0), RoofLevel("memory", 0, 10.0)])
SLOW = KernelTime("slow", 1, 6.0, 0.75, 50.0, 5.0, 0.5, "operations", 10.0, 80.0)
QUICK = KernelTime("quick", 2, 2.0, 0.25, 4.0, 8.0, 0.8, "memory", 5.0, 5.0)
COPY = KernelTime("copy", 1, 1.0, 0.1, 0.0, 8.0)
UNKNOWN = KernelTime("blas.sgemm", 1, 1.0, 0.1)
LEFT = KernelRule("slow", "left", "", "rule", 3, None, None, None, gflops=20.0, gbytes=2.0)


def measured(state: str = "v1", *kernels: KernelTime, shapes: str = "n = 6") -> Measurement:
    kernels = kernels or (SLOW, QUICK, COPY, UNKNOWN)
    return Measurement(
        state, "main", shapes, [8.0], 8.0, 8.0, 8.0, 1.0, list(kernels), "hot caches", alone=True,
        emulated=False, total=8.0, outside=0.0, roof=ROOF,
    )  # fmt: skip


def records(*measurements: Measurement) -> MeasurementRecords:
    made = MeasurementRecords()
    for measurement in measurements:
        made.add(measurement, None)
    return made


def by_name(figure) -> dict[str, object]:
    return {trace.name: trace for trace in figure.data}


def test_measured_points_are_filled_and_predicted_ones_hollow() -> None:
    found = by_name(roofline_of(measured()).figure())
    assert list(found) == ["L2 cache: 80 GB/s", "memory: 10 GB/s", "measured", "predicted"]
    own, predicted = found["measured"], found["predicted"]
    assert (list(own.x), list(own.y)) == ([10.0, 0.5], [50.0, 4.0])
    assert (list(predicted.x), list(predicted.y)) == ([10.0, 0.5], [80.0, 5.0])
    assert (own.marker.symbol, predicted.marker.symbol) == ("circle", "circle-open")
    assert own.marker.size[0] > own.marker.size[1]
    assert list(own.text) == ["slow", "quick"]
    assert own.hovertext[0] == (
        "slow, measured: 50 GFLOP/s at 10 FLOP/byte, 50% of the roof (operations)"
    )


def test_roofs_bend_at_the_peak() -> None:
    figure = roofline_of(measured()).figure()
    cache, memory = figure.data[:2]
    assert list(cache.y)[1:] == [100.0, 100.0]
    assert list(memory.x)[1] == 10.0
    assert (cache.line.dash, memory.line.dash) == ("dash", "solid")
    low, high = figure.layout.xaxis.range
    assert 10.0**low < 0.5
    assert 10.0**high > 10.0
    assert figure.layout.annotations[0].text == "100 GFLOP/s (fma on f32)"
    assert figure.layout.title.text == "main at n = 6, hot caches"


def test_the_path_follows_the_branch_under_equal_conditions() -> None:
    faster = replace(SLOW, gflops=25.0, gbytes=2.5)
    kept = records(
        measured("root", replace(SLOW, gflops=1.0, gbytes=0.1)),
        measured("other", SLOW),
        measured("v0", faster, shapes="n = 7"),
        measured("v0", replace(faster, gflops=9.0)),
        measured("v0", faster),
        measured(),
    )
    line = roofline_of(measured(), records=kept, states=["root", "v0", "unmeasured", "v1"])
    path = [("root", 1.0), ("v0", 25.0), ("v1", 50.0)]
    assert [(p.state, p.gflops) for p in line.path] == path
    drawn = by_name(line.figure())["slow on this branch"]
    assert list(drawn.y) == [1.0, 25.0, 50.0]
    assert drawn.marker.symbol == "circle"
    single = roofline_of(measured(), records=records(measured()), states=["v1"])
    assert single.path == ()


def test_a_head_that_is_not_measured_has_a_prediction() -> None:
    line = roofline_of(measured(), states=["v1", "v2"], rule=LEFT)
    assert [(p.kernel, p.state, p.gflops, p.intensity) for p in line.predicted] == [
        ("slow", "v1", 80.0, 10.0),
        ("quick", "v1", 5.0, 0.5),
        ("slow", "v2", 20.0, 10.0),
    ]
    assert len(roofline_of(measured(), states=["v0", "v1"], rule=LEFT).predicted) == 2
    unknown = replace(LEFT, gflops=None, gbytes=None)
    assert len(roofline_of(measured(), states=["v2"], rule=unknown).predicted) == 2


def test_a_kernel_is_chosen_by_name() -> None:
    kept = records(measured("root", QUICK), measured())
    line = roofline_of(measured(), records=kept, states=["root", "v1"], kernel="quick")
    assert [p.kernel for p in line.path] == ["quick", "quick"]
    with pytest.raises(RooflineError, match="kernel 'fast' was not measured") as caught:
        roofline_of(measured(), kernel="fast")
    assert "kernels are quick, slow" in str(caught.value)


@pytest.mark.parametrize(
    "measurement", [None, replace(measured(), roof=None), measured("v1", COPY, UNKNOWN)]
)
def test_without_rates_there_is_no_roofline(measurement: Measurement | None) -> None:
    with pytest.raises(RooflineError, match="there is no measurement of kernels"):
        roofline_of(measurement)


def test_the_table_has_text_and_html() -> None:
    line = roofline_of(measured())
    assert "main at n = 6, hot caches" in str(line)
    assert "peaks: 100 GFLOP/s (fma on f32, 2 threads), L2 cache 80 GB/s" in str(line)
    assert [row[0] for row in line.table().rows] == ["slow", "quick"]
    assert line.table().rows[0][1:] == (10.0, 50.0, 80.0, 50.0, "operations")
    assert "slow" in check_static(line._repr_html_())
    assert repr(line) == "<Roofline of main at n = 6, hot caches: 2 kernels>"


def test_a_session_has_a_roofline_after_a_measurement(network: Client) -> None:
    session = network.session
    with pytest.raises(RooflineError, match="there is no measurement"):
        session.roofline()
    for loop, step in (("i", "split"), ("j", "vectorize")):
        network.send("run", action="measure", function="")
        session.jobs.wait()
        assert session.document.problems == ()
        network.select_loop(loop, "twice")
        network.apply(step)
    (point,) = session.roofline().measured
    assert point.kernel == "twice"
    first, second = session.roofline("twice").path
    assert (first.state, second.state) == tuple(n.id for n in session.schedule.history[:2])
    now, head = session.roofline().predicted
    assert now.gflops > 0
    assert head.state == session.schedule.head.id
    rule = session.rule()
    assert (rule.function, rule.gflops) == (head.kernel, head.gflops)
    assert len(session.roofline().figure().data) >= 4
