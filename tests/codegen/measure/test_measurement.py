from __future__ import annotations

import json

from tilewright.codegen.measure import Compared, Measurement, MeasureOptions
from tilewright.ir.interpreter.oracle import Verdict

from tests.static_html import check_static

CORRECT = Verdict(True, 0.0, 1.0, 0, (0,), 1.0, 1.0, "")
WRONG = Verdict(False, 2.0, 1.0, 0, (3,), 3.0, 1.0, "")


def measurement(*compare: Compared, alone: bool = True, verdict=CORRECT) -> Measurement:
    return Measurement(
        "main", 12.5, 12.25, 13.0, (12.0, 13.0), verdict, {"copy": 2.0, "matmul": 6.0},
        MeasureOptions(budget=0.5), 2, alone, {"governor": "<performance>"}, compare,
        {"copy": 1, "matmul": 3},
    )  # fmt: skip


def test_one_program():
    assert str(measurement()).splitlines() == [
        "program      median (µs)  95 % interval      calls  results",
        "---------  -------------  ---------------  -------  ---------",
        "main                12.5  12.25 to 13            2  correct",
        "hot caches, 2 threads, not pinned, 3 warm-up calls, at most 0.5 s",
    ]
    assert repr(measurement()) == "<Measurement of main: 12.5 µs (12.25 to 13); correct>"


def test_compared_programs():
    slower = Compared("naive", 2.0, 1.9, 2.1, 25.0, (25.0,), None)
    similar = Compared("other", 1.01, 0.99, 1.03, 12.6, (12.6,), WRONG)
    lines = str(measurement(slower, similar, alone=False)).splitlines()
    assert lines[0].split("  ")[0] == "program"
    assert "1.9 to 2.1, slower" in lines[3]
    assert lines[3].endswith("not checked")
    assert "0.99 to 1.03, no clear difference" in lines[4]
    assert "WRONG: result 0[3] is 3, exact value 1" in lines[4]
    assert lines[-2:] == [
        "a ratio above 1 is slower than the first program",
        "another measurement ran at the same time",
    ]
    assert repr(slower) == (
        "<Compared naive: 25.0 µs, ratio 2.000 (1.900 to 2.100: slower); not checked>"
    )


def test_kernels_are_sorted_by_time():
    table = measurement().kernel_table()
    assert table.rows == (("matmul", 3, 6.0, "75.0%"), ("copy", 1, 2.0, "25.0%"))


def test_html_and_json():
    text = check_static(measurement()._repr_html_())
    assert "<performance>" in text
    assert "matmul" in text
    assert json.loads(json.dumps(measurement().to_json()))["median"] == 12.5
