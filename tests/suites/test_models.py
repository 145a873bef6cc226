"""The suite of models: a few models, the catalog, and how results are compared and reported."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import pytest
import torch

from tilewright import Target
from tilewright.codegen.build.worker_pool import CompileJob, default_pool

from tests.suites import models as suite
from tests.suites.model_catalog.catalog import models
from tests.suites.model_catalog.packages import available
from tests.suites.model_catalog.rows import CALLS, Model
from tests.suites.model_check import Source, checked, cpu_seconds, difference, exact_results
from tests.suites.records import read, write

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = ("deepfm", "dcn", "gcn", "gru")


@pytest.mark.parametrize("source", suite.RESULTS)
@pytest.mark.parametrize("name", PREFIX)
def test_a_few_models_pass(name: str, source: Source) -> None:
    with torch.no_grad():
        found = checked(models()[name], source)
    assert (found.status, found.reason) == ("pass", "")
    assert len(found.calls) == CALLS
    assert len(set(found.calls)) == CALLS
    assert 0 < found.error <= 1


@pytest.mark.parametrize("source", suite.RESULTS)
def test_committed_results_have_no_defect(source: Source) -> None:
    committed = read(suite.RESULTS[source])
    assert set(committed) <= set(models())
    assert [n for n, r in committed.items() if r["status"] in suite.DEFECTS] == []


@pytest.mark.parametrize("source", suite.RESULTS)
def test_the_committed_page_is_that_of_the_results(source: Source) -> None:
    written = suite.RESULTS[source].with_suffix(".md").read_text().splitlines()
    made = suite.page(read(suite.RESULTS[source]), source).splitlines()
    machine = next(k for k, line in enumerate(made) if " models: " in line)
    assert written[:machine] == made[:machine]
    assert written[machine + 1 :] == made[machine + 1 :]


def test_calls_of_a_model_have_four_shapes() -> None:
    for model in models().values():
        sizes = [tuple(model.shapes(k).values()) for k in range(CALLS)]
        assert len(set(sizes)) == CALLS, model.name
        assert min(sizes[0]) > 1, model.name


def test_arguments_have_the_sizes_of_the_call() -> None:
    row = Model("x", "x", torch.nn.Identity, {"a": "f batch 3 8*height", "b": "m batch length"})
    given = row.arguments(2)
    assert given["a"].shape == (3, 3, 24)
    assert given["b"].tolist() == [[1], [1], [1]]
    assert row.arguments(1)["b"].shape == (1, 9)
    assert row.arguments(0)["b"].tolist() == [[1] * 6, [1] * 5 + [0]]


class Wrong(torch.nn.Module):
    """A module whose result for other sizes differs from that of its exported program."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if torch.compiler.is_exporting() else x + 1e-4


class Opaque(torch.nn.Module):
    """A module with an operator that has no importer."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.airy_ai(x)


def test_a_wrong_result_and_an_unsupported_operator_are_reported() -> None:
    for make, status, reason in (
        (Wrong, "wrong", "(batch 2): result 0: "),
        (Opaque, "unsupported", "aten.special_airy_ai.default"),
    ):
        found = checked(Model("x", "x", make, {"x": "f batch 3"}))
        assert (found.status, found.reason[: len(reason)]) == (status, reason)


def test_a_model_that_onnx_cannot_express_is_not_a_test() -> None:
    found = checked(Model("x", "x", Opaque, {"x": "f batch 3"}), "onnx")
    assert found.status == "unreachable"
    assert found.reason.startswith("ONNX: ")
    assert "airy_ai" in found.reason


def test_a_model_that_is_exported_to_onnx_as_another_is_not_a_test() -> None:
    with torch.no_grad():
        found = checked(models()["gin_mean"], "onnx")
    assert found.status == "unreachable"
    assert found.reason.startswith("ONNX Runtime, too, is wrong (edges 12, nodes 5): result 0: ")


def test_cpu_time_includes_that_of_the_workers() -> None:
    default_pool().run(CompileJob("f", "define void @f() { ret void }", Target("cpu")))
    workers = [w.pid for w in default_pool().workers if w.pid is not None]
    assert workers
    assert cpu_seconds() > time.process_time() + 0.01


def test_a_model_with_constant_results_is_not_a_test() -> None:
    found = checked(Model("x", "x", lambda: torch.nn.Threshold(9.0, 1.0), {"input": "f batch 3"}))
    assert (found.status, found.reason) == ("unreachable", "the results of PyTorch are constant")


def test_the_bound_is_that_of_rounding() -> None:
    want = torch.tensor([1.0, -4.0])
    exact = want.double()
    assert difference([want], [want], [exact]) == ("", 0.0)
    near = want + torch.tensor([0.0, 8 * 4 * 2.0**-23])
    assert difference([near], [want], [exact]) == ("", 1.0)
    far = want + torch.tensor([0.0, 9 * 4 * 2.0**-23])
    assert difference([far], [want], [exact])[0] == "result 0: 1.12 times the bound"
    for other in (far.double(), far[:1], torch.tensor([1.0, math.nan]), torch.tensor([1, -4])):
        assert difference([other], [want], [exact])[0]
    assert difference([want, want], [want], [exact])[0] == "2 results instead of 1"


def test_a_float64_result_of_another_function_is_not_the_exact_one() -> None:
    want = torch.tensor([1.0, 2.0])
    assert difference([want + 0.1], [want], [want.double() + 1])[0]
    assert difference([want], [want], [want.double() + 1]) == ("", 0.0)


class Narrow(torch.nn.Module):
    """A module that computes in float32, whatever the dtype of its argument."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.float() * torch.arange(1, 4, dtype=torch.float32).reciprocal()


def test_the_exact_result_is_in_float64_where_the_code_asks_for_float32() -> None:
    model = Model("x", "x", Narrow, {"x": "f batch 3"})
    found = exact_results(Narrow(), model)
    assert found is not None
    for call, (made,) in enumerate(found):
        x = model.arguments(call)["x"].double()
        assert made.dtype == torch.float64
        assert torch.equal(made, x * torch.arange(1, 4, dtype=torch.float64).reciprocal())


def test_a_run_resumes_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "models.json"
    write(file, {"dcn": {"status": "unsupported", "operators": ["abs.default"], "reason": "x"}})
    assert suite.main(["--json", str(file), "--resume", "--only", "dcn"]) == 0
    assert "unsupported: abs.default 1" in capsys.readouterr().out
    assert suite.main(["--json", str(file), "--again", "unsupported"]) == 0
    assert "1 models: pass 1" in capsys.readouterr().out
    assert suite.main(["--json", str(file), "--report"]) == 0
    assert "| recommendation | 1 | 1 |" in file.with_suffix(".md").read_text()


def test_a_crash_is_a_defect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import os
    import signal

    from tests.suites import model_check

    monkeypatch.setattr(model_check, "check", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    file = tmp_path / "models.json"
    assert suite.main(["--json", str(file), "--only", "dcn"]) == 1
    assert "dcn: crash signal SIGKILL" in capsys.readouterr().out


def test_the_operators_of_torchvision_are_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python code of torchvision then loads without its library."""
    from tests.suites.model_catalog import packages

    installed = available("torchvision")
    monkeypatch.setattr(packages, "available", lambda _: True)
    packages.declare_torchvision_operators.__wrapped__()
    for name in ("nms", "qnms"):
        (schema,) = getattr(torch.ops.torchvision, name)._schemas.values()
        assert [a.name for a in schema.arguments] == ["dets", "scores", "iou_threshold"]
    packages.declare_torchvision_operators.__wrapped__()  # they may exist
    if installed:
        import torchvision

        assert torchvision.models.list_models()
