"""The suite of PyTorch's operators: a few operators, and the records of its results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.suites import opinfo
from tests.suites.opinfo_check import check, differences
from tests.suites.opinfo_database import Calls, function_of, operators

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = ("abs", "add", "cumsum", "scatter_reduce.mean", "nn.functional.pad.reflect", "fft.rfft")


@pytest.fixture(scope="module")
def committed() -> dict[str, Any]:
    return opinfo.read(opinfo.RESULTS)


@pytest.mark.parametrize("name", PREFIX)
def test_a_few_operators_pass(name: str) -> None:
    found = check(name, 2)
    assert (found["status"], found["reason"]) == ("pass", "")
    assert found["samples"] > 0


def test_committed_results_have_no_defect(committed: dict[str, Any]) -> None:
    assert set(committed) <= set(operators())
    assert [n for n, r in committed.items() if r["status"] in opinfo.DEFECTS] == []


def test_a_run_resumes_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.json"
    opinfo.write(file, {"abs": {"status": "unsupported", "operators": ["abs.default"]}})
    assert opinfo.main(["--json", str(file), "--resume", "--only", "abs", "--samples", "1"]) == 0
    assert "unsupported: abs.default 1" in capsys.readouterr().out
    again = ["--json", str(file), "--again", "unsupported", "--samples", "1"]
    assert opinfo.main(again) == 0
    assert "1 operators: pass 1" in capsys.readouterr().out
    assert json.loads(file.read_text()) == {"abs": {"status": "pass", "samples": 1}}


def test_other_results_are_wrong() -> None:
    """Values, shapes, dtypes, and numbers of results are compared."""

    class Sample:
        input, args, kwargs = torch.tensor([1.0, 2.0]), (), {}

    calls = Calls(torch.exp, [Sample])
    right = calls.results()
    arrays = [x.numpy() for x in right]
    assert differences("exp", calls, arrays, right).status == "pass"
    for wrong in (
        [arrays[0] + 1e-3], [arrays[0][:1]], [arrays[0].astype("f8")], arrays * 2,
        [arrays[0] * float("nan")],
    ):  # fmt: skip
        assert differences("exp", calls, wrong, right).status == "wrong"


def test_the_signs_of_singular_vectors_are_not_compared() -> None:
    """Other signs are right; other vectors, values, and columns that are not orthogonal are not."""
    x = torch.tensor([[3.0, 1.0], [1.0, -2.0], [0.5, 4.0]])
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    info = operators()["linalg.svd"]
    known = {"right": (u, s, v), "signs": (-u, s, -v), "values": (u, s * 2, v), "side": (-u, s, v),
             "vectors": (u.flip(0), s, v)}  # fmt: skip

    class Given:
        def __init__(self, made: Any) -> None:
            self.name, self.op = info.name, lambda _: made

    found = {name: function_of(Given(made))(x) for name, made in known.items()}
    same = {
        name: all(torch.allclose(a, b, atol=1e-5) for a, b in zip(f, found["right"], strict=True))
        for name, f in found.items()
    }
    expected = {"right": True, "signs": True, "values": False, "side": False, "vectors": False}
    assert same == expected


def test_an_unsupported_operator_is_named() -> None:
    found = check("special.airy_ai", 1)
    assert found["status"] == "unsupported"
    assert found["operators"] == ["special_airy_ai.default"]
