"""The static output of a workbench: text and HTML without scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.workbench.protocol_runs import Measurement
from tilewright.workbench.snapshot import snapshot_html, snapshot_text

if TYPE_CHECKING:
    from tests.workbench.conftest import Client


def test_summary_and_program(matmul: Client) -> None:
    matmul.select_loop("j")
    matmul.apply("split", factors="(None, 8)")
    session = matmul.session
    measured = 450_002.1
    session.document.measurement = Measurement(
        session.schedule.head.id, "matmul", "n = 48", [measured], measured, measured, measured,
        1.0, [], "", alone=True, emulated=False, total=measured, outside=0.0,
    )  # fmt: skip
    text, html = snapshot_text(session), snapshot_html(session)
    headline = text.splitlines()[0]
    assert "1 function" in headline
    assert "450 ms at n = 48" in headline
    assert "for j_1 in range(8):" in text
    assert "450 ms at n = 48" in html
    assert "sch.split(" in html
    assert "<script" not in html
    assert "color:" in html


def test_times_have_the_unit_of_the_panels(matmul: Client) -> None:
    session = matmul.session
    measured = 54.4
    session.document.measurement = Measurement(
        session.schedule.head.id, "matmul", "n = 48", [measured], measured, measured, measured,
        1.0, [], "", alone=True, emulated=False, total=measured, outside=0.0,
    )  # fmt: skip
    assert "54.4 µs at n = 48" in snapshot_text(session).splitlines()[0]
