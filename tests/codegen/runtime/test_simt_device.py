"""Target "simt", with the same compiler, host flow and executable as other targets."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.artifact import Artifact
from tilewright.codegen.errors import KernelError
from tilewright.codegen.runtime.executable import Executable
from tilewright.codegen.simt import NO_CHECKS
from tilewright.codegen.simt.findings import DataRaceError
from tilewright.codegen.simt.program import SimtProgram
from tilewright.ir.thread.nodes import Barrier

from tests.codegen.gpu import kernels
from tests.codegen.simt.mutants import without_barriers

SIMT = tw.Target("simt", arch="sm_80")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))


def _softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _rows(columns=70, rows=3):
    return np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)


def test_a_schedule_runs_and_reports():
    exe = tw.compile(kernels.softmax(), SIMT)
    for columns in (1, 70, 300):
        x = _rows(columns)
        np.testing.assert_allclose(exe(x), _softmax(x), rtol=1e-5)
        (report,) = exe.device.reports
        assert (report.kernel, report.grid, report.findings) == ("softmax", (3, 1, 1), ())
        assert report.counters


def test_an_artifact_is_serialized_as_text():
    exe = tw.compile(kernels.softmax(), SIMT)
    assert not exe.cached
    again = tw.compile(kernels.softmax(), SIMT)
    assert again.cached
    x = _rows()
    assert (again(x) == exe(x)).all()
    data = exe.artifact.to_bytes()
    read = Artifact.from_bytes(data)
    assert read.to_bytes() == data
    assert read.programs["softmax"].steps == exe.artifact.programs["softmax"].steps


def _damaged(schedule, change) -> Executable:
    """Return the executable of a schedule with a changed kernel."""
    artifact = tw.compile(schedule, SIMT).artifact
    (name,) = artifact.programs
    program = artifact.programs[name]
    lowered = change(program.lowered)
    changed = SimtProgram(program.source, lowered, program.symbols, program.steps)
    from dataclasses import replace

    return Executable(replace(artifact, programs={name: changed}), {})


def _without_first_barrier(lowered):
    from dataclasses import replace

    return replace(lowered, function=next(without_barriers(lowered.function)).function)


def test_a_finding_is_an_error_that_names_the_step():
    exe = _damaged(kernels.softmax(), _without_first_barrier)
    with pytest.raises(DataRaceError, match="no barrier orders the two accesses") as caught:
        exe(_rows())
    error = caught.value
    assert "kernel 'softmax'" in str(error)
    assert "add a barrier between the two accesses" in str(error)
    sites = [f["site"]["step"] for f in error.details["findings"]]
    assert any("step" in s and "sch." in s for s in sites)


def test_findings_can_be_collected_without_errors():
    exe = _damaged(kernels.softmax(), _without_first_barrier)
    exe.device.collect = True
    exe(_rows())
    assert "race" in {f.kind for f in exe.device.reports[0].findings}
    exe.device.checks = NO_CHECKS
    exe.device.collect = False
    exe(_rows())
    assert exe.device.reports[0].findings == ()


def test_an_unsupported_statement_is_a_named_error():
    def with_cluster_barrier(lowered):
        from dataclasses import replace

        body = (Barrier("cluster"), *lowered.function.body)
        return replace(lowered, function=replace(lowered.function, body=body))

    exe = _damaged(kernels.softmax(), with_cluster_barrier)
    with pytest.raises(tw.TilewrightError, match="Barrier") as caught:
        exe(_rows())
    assert not isinstance(caught.value, KernelError)


def test_an_unscheduled_module_gets_the_default_schedule():
    text = """
n = symbols("n", lower=0)

@prim_func
def halve(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("half"):
            v = spatial(i)
            y[v] = x[v] * 0.5
"""
    exe = tw.compile(tw.parse(text), SIMT)
    for n in (0, 1, 1000):
        x = np.arange(n, dtype=np.float32)
        assert (exe(x) == x / 2).all()
        assert all(r.findings == () for r in exe.device.reports)
