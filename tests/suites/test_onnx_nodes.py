"""The suite of ONNX node cases: a prefix of the cases, and how it compares and reports."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from tests.ir.importers.onnx_nodes import node_cases
from tests.suites import onnx_nodes as suite

FILES = ("abs", "add", "argmax", "compress", "concat", "pad", "reshape")


def cases() -> list[suite.NodeCase]:
    found = node_cases(*FILES, opset=22)
    return [
        suite.NodeCase(
            name, case.model().SerializeToString(), ((case.inputs, case.outputs),), 1e-3, 1e-7
        )
        for name, case in sorted(found.items())[::3]
    ]


def ran(chosen: list[suite.NodeCase]) -> list[suite.Result]:
    return list(suite.run_cases(chosen, time.monotonic() + 600))


@pytest.mark.slow
def test_a_prefix_of_the_cases_passes_in_compiled_code() -> None:
    chosen = cases()
    found = ran(chosen)
    assert [r.name for r in found] == [c.name for c in chosen]
    assert [(r.name, r.reason) for r in found if r.status != "pass"] == []


def test_a_wrong_result_and_an_unsupported_node_are_reported() -> None:
    from onnx import parser

    head = '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) '
    x = np.zeros(2, np.float32)
    models = [head + "{ y = Abs(x) }", head + "{ y = ImageDecoder(x) }"]
    found = ran(
        [
            suite.NodeCase(
                f"case{k}",
                parser.parse_model(m).SerializeToString(),
                (((x,), (x + 1,)),),
                1e-3,
                1e-7,
            )
            for k, m in enumerate(models)
        ]
    )
    assert [r.status for r in found] == ["wrong", "unsupported"]
    assert "2 of 2 elements; at (0,): 0.0 instead of 1.0" in found[0].reason
    assert found[1].reason == "ImageDecoder: no handler"


def test_the_end_of_a_process_ends_one_case(monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import signal

    def run(case: suite.NodeCase) -> suite.Result:
        if case.name == "b":
            os.kill(os.getpid(), signal.SIGKILL)
        return suite.Result(case.name, "pass")

    monkeypatch.setattr(suite, "run_case", run)
    found = ran([suite.NodeCase(n, b"", (), 1e-3, 1e-7) for n in "abc"])
    assert [(r.name, r.status) for r in found] == [("a", "pass"), ("b", "crash"), ("c", "pass")]
    assert found[1].reason == "signal SIGKILL"


@pytest.mark.parametrize(
    ("found", "expected", "text"),
    [
        (np.zeros(2, np.int32), np.zeros(2, np.int64), "dtype int32 instead of int64"),
        (np.zeros((2, 1)), np.zeros(2), "shape (2, 1) instead of (2,)"),
        (np.array([1, 2]), np.array([1, 3]), "1 of 2 elements; at (1,): 2 instead of 3"),
        (np.array(1.01), np.array(1.0), "1 of 1 elements"),
        ([np.zeros(2)], [np.zeros(2), np.zeros(2)], "1 tensors instead of 2"),
        ([np.zeros(2)], [np.ones(2)], "2 of 2 elements"),
    ],
)
def test_a_difference_is_described(found, expected, text: str) -> None:
    assert text in suite.difference(found, expected, 1e-3, 1e-7)


def test_a_difference_of_one_unit_of_the_largest_number_is_rounding() -> None:
    expected = np.array([0.0, 4.0], np.float32)
    assert suite.is_rounding(np.array([4e-7, 4.0], np.float32), expected)
    assert not suite.is_rounding(np.array([5e-7, 4.0], np.float32), expected)
    assert not suite.is_rounding(np.array([np.nan, 4.0], np.float32), expected)
    assert not suite.is_rounding(np.array([0, 5]), np.array([0, 4]))


def test_equal_results_have_no_difference() -> None:
    nan = np.array([np.nan, np.inf, 1.0], np.float32)
    assert suite.difference(nan, nan.copy(), 1e-3, 1e-7) == ""
    assert suite.difference(nan, np.array([np.nan, -np.inf, 1.0], np.float32), 1e-3, 1e-7)


def test_results_are_read_back_and_written_as_a_table(tmp_path: Path) -> None:
    from dataclasses import asdict

    results = [
        suite.Result("test_a", "pass", ("Abs",)),
        suite.Result("test_b", "unsupported", ("Foo",), "Foo: no handler"),
    ]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(asdict(r)) + "\n" for r in results))
    assert list(suite.read_results(file).values()) == results
    text = suite.table(results)
    assert "| pass | 1 |" in text
    assert "| unsupported | Foo: no handler | 1: b |" in text
