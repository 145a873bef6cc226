"""All measurements are kept, by history node, function, sizes, and conditions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.workbench.measurement_records import MeasurementRecords
from tilewright.workbench.protocol_runs import Measurement

if TYPE_CHECKING:
    from tests.workbench.conftest import Client

MEASURED = Measurement(
    "state", "main", "n = 6", [8.0], 8.0, 7.0, 9.0, 1.0, [], "hot caches", alone=True,
    emulated=False, total=8.0, outside=0.0, machine={"cpu": "x"},
)  # fmt: skip


def test_a_repeated_measurement_replaces_the_earlier_one() -> None:
    records = MeasurementRecords()
    first = records.add(MEASURED, None)
    again = records.add(replace(MEASURED, median=5.0), None)
    assert records.get(first.key) is None
    assert records.get(again.key) is again
    assert [r.microseconds for r in records.view().items] == [5.0]


def test_other_conditions_are_other_records() -> None:
    records = MeasurementRecords()
    others = (
        {"state": "other"},
        {"function": "kernel"},
        {"shapes": "n = 7"},
        {"conditions": "cold caches"},
        {"emulated": True},
        {"machine": {"cpu": "y"}},
    )
    for number, change in enumerate([{}, *others], 1):
        records.add(replace(MEASURED, **change), None)
        assert len(records.view().items) == number
    assert records.last("other") is not None
    assert records.last("unknown") is None


def test_the_measurement_of_the_entire_call_comes_first(network: Client) -> None:
    records = MeasurementRecords()
    records.add(replace(MEASURED, shapes="n = 1"), network.session.state)
    whole = records.add(replace(MEASURED, shapes="n = 2"), network.session.state)
    records.add(replace(MEASURED, function="kernel"), None)
    assert records.last("state") is whole


def test_a_session_shows_the_measurement_of_the_head(network: Client) -> None:
    session = network.session
    network.send("run", action="measure", function="")
    session.jobs.wait()
    whole = session.document.measurement
    network.send("run", action="measure", function="twice")
    session.jobs.wait()
    kernel = session.document.measurement
    assert whole is not None
    assert kernel is not None
    assert (whole.function, kernel.function) == ("main", "twice")
    records = session.records.view().items
    assert [(r.function, r.state, r.whole) for r in records] == [
        ("main", whole.state, True),
        ("twice", whole.state, False),
    ]

    # Chosen from the list; a key that is not kept is an error that changes nothing.
    update = network.send("show_measurement", key=records[0].key)
    assert update.measurement == whole
    update = network.send("show_measurement", key="m99")
    assert session.document.measurement is whole
    assert "no measurement 'm99' is kept" in session.document.problems[-1].message

    # An edit leaves the earlier times, which the page marks; an undo shows those of its state.
    network.send("show_measurement", key=records[1].key)
    network.send("open", function="twice")
    network.select_loop("i", "twice")
    network.apply("parallel")
    assert session.document.measurement is kernel
    update = network.send("navigate", action="undo", node="", head=session.schedule.head.id)
    assert session.document.measurement is whole
    assert update.measurement == whole
