"""Verification and measurement in a page, which runs on the driver of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant
from tilewright.workbench.page import bench
from tilewright.workbench.protocol_gpu import MOST_BYTES, GpuFailure, GpuKeep, GpuOpen

from tests.waiting import wait_until
from tests.workbench.conftest import NETWORK
from tests.workbench.page.fake_page import FakePage, facts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.workbench.page.conftest import Paged

WEIGHTS = """
n = symbols("n", lower=1, upper=4)
constant("w", (1200, 1000), f32)

@graph_func
def main(x: Tensor[(n, 1200), f32]):
    y = matmul(x, const("w"))
    return y
"""

GATHER = """
@prim_func
def gather(x: Buffer[(2,), f32], k: Buffer[(300,), i32], y: Out[(300,), f32]):
    for i in range(300):
        with block("gather"):
            vi = spatial(i)
            with checked(k[vi], 0, 2) as at:
                y[vi] = x[at]
"""

HALVES = """
n = symbols("n", lower=1)

@prim_func
def halves(x: Buffer[(n,), f16], k: Buffer[(n,), i64], b: Buffer[(n,), bool], y: InOut[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = where(b[vi], f32(x[vi]) + f32(k[vi]), y[vi])
"""


def test_a_program_matches_the_interpreter_and_is_timed(paged: Callable[..., Paged]) -> None:
    opened = paged()
    opened.run("compile")
    assert opened.document.problems == ()
    assert opened.document.verdict.agrees
    opened.run("measure")
    measured = opened.document.measurement
    assert measured.conditions == "timestamp queries, at most 1.5 s"
    assert [k.function for k in measured.kernels] == ["matmul"]
    assert measured.kernels[0].calls == 1
    assert measured.machine["gpu"] == "fake GPU (on the processor)"
    assert sum(isinstance(work, GpuOpen) for work in opened.page.calls) == 1


def test_a_wrong_result_is_reported(paged: Callable[..., Paged]) -> None:
    opened = paged()
    device_read = opened.page._gpu.__class__.read

    def changed(gpu: object, *arguments: int) -> bytes:
        return bytes(4) + device_read(gpu, *arguments)[4:]

    opened.run("compile")
    assert opened.document.verdict.agrees
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opened.page._gpu.__class__, "read", changed)
        opened.run("compile")
    assert not opened.document.verdict.agrees
    assert opened.document.verdict.message.startswith("result 0[0, 0] is 0, exact value ")


def test_each_kernel_of_a_program_is_timed_and_equal_launches_once(
    paged: Callable[..., Paged],
) -> None:
    opened = paged(NETWORK)
    opened.run("compile")
    assert opened.document.verdict.agrees
    opened.run("measure")
    kernels = opened.document.measurement.kernels
    assert [k.calls for k in kernels] in ([2], [1, 1], [1])
    whole = opened.document.measurement
    assert whole.total == pytest.approx(max(whole.median, sum(k.microseconds for k in kernels)))


def test_a_kernel_is_measured_alone(paged: Callable[..., Paged]) -> None:
    opened = paged()
    opened.run("measure", "matmul")
    assert opened.document.measurement.function == "matmul"
    assert opened.document.problems == ()


def test_rounded_timestamps_and_a_hidden_page_are_labeled(paged: Callable[..., Paged]) -> None:
    opened = paged(page=FakePage(facts=facts(step=65536.0), hidden=True))
    opened.run("measure")
    conditions = opened.document.measurement.conditions
    assert "repeated submissions, because the browser rounds timestamps to 65.5 µs" in conditions
    assert opened.document.measurement.machine["calls_per_sample"] == "8"
    assert "the page was hidden" in conditions
    opened = paged(page=FakePage(facts=facts(step=0.0)))
    opened.run("measure")
    assert "the GPU of the page takes no timestamps" in opened.document.measurement.conditions


def test_weights_are_sent_once_and_in_parts(paged: Callable[..., Paged]) -> None:
    content = np.linspace(-1, 1, 1200 * 1000, dtype=np.float32).reshape(1200, 1000)
    opened = paged(WEIGHTS, constants={"w": Constant((1200, 1000), f32, lambda: content)})
    opened.run("compile")
    assert opened.document.problems == ()
    assert opened.document.verdict.agrees
    parts = [work for work in opened.page.calls if isinstance(work, GpuKeep)]
    assert len(parts) > 1
    assert opened.page.largest <= MOST_BYTES
    opened.client.session._bench.close()  # as after a change of the target
    opened.run("measure")
    assert opened.document.problems == ()
    assert [work for work in opened.page.calls if isinstance(work, GpuKeep)] == parts


def test_elements_that_a_page_does_not_draw_are_sent(paged: Callable[..., Paged]) -> None:
    opened = paged(HALVES)
    opened.run("compile")
    assert opened.document.problems == ()
    assert opened.document.verdict.agrees


def test_inputs_of_the_user_and_a_failed_check(paged: Callable[..., Paged]) -> None:
    opened = paged(GATHER)
    session = opened.client.session
    session.set_inputs([np.ones(2, np.float32), np.full(300, 1, np.int32)])
    opened.run("compile")
    assert opened.document.verdict.agrees
    session.set_inputs([np.ones(2, np.float32), np.full(300, 7, np.int32)])
    opened.run("measure")
    assert opened.problem.title == "Kernel failure"
    assert "7" in opened.problem.message


@pytest.mark.parametrize("kind", ["insecure", "old", "disabled", "no_adapter", "no_feature"])
def test_a_page_without_a_gpu_states_the_reason(paged: Callable[..., Paged], kind: str) -> None:
    opened = paged(page=FakePage(before=lambda _: GpuFailure(kind, f"because {kind}", "")))
    opened.run("compile")
    assert opened.problem.title == "Missing GPU in the browser"
    assert opened.problem.message == f"because {kind}"
    assert "another target" in opened.problem.hint or "without this feature" in opened.problem.hint


def test_a_lost_gpu_is_opened_again_by_the_next_run(paged: Callable[..., Paged]) -> None:
    page = FakePage()
    opened = paged(page=page)

    def lose(work: object) -> None:
        if not isinstance(work, GpuOpen):
            page.report(GpuFailure("lost", "the page lost its GPU: hung", ""))
            page.answers = False

    page.before = lose
    opened.run("compile")
    assert opened.problem.title == "Lost GPU of the page"
    page.before, page.answers = lambda _: None, True
    opened.run("compile")
    assert opened.document.verdict.agrees


def test_a_canceled_job_does_not_wait_for_the_page(paged: Callable[..., Paged]) -> None:
    page = FakePage()
    opened = paged(page=page)
    page.answers = False
    session = opened.client.session
    opened.client.send("run", action="compile", function="")
    wait_until(lambda: session.jobs.busy)
    opened.client.send("cancel", job=session.jobs.view()[-1].key)
    session.jobs.wait(10)
    assert [job.state for job in session.jobs.view()] == ["canceled"]
    page.answers = True
    opened.run("compile")
    assert opened.document.verdict.agrees


def test_another_page_runs_on_its_own_gpu(paged: Callable[..., Paged]) -> None:
    page = FakePage()
    opened = paged(page=page)
    opened.run("compile")
    second = FakePage(client="other", name="second")
    page.others.append(second)
    second.others.append(page)
    opened.client.name = "other"
    opened.client.hello()
    opened.run("measure")
    assert opened.document.problems == ()
    assert isinstance(second.calls[0], GpuOpen)
    wait_until(lambda: page.calls[-1].kind == "close")


def test_a_program_for_browsers_runs_in_workbenches_only() -> None:
    exe = tw.compile(tw.parse(GATHER), tw.Target("webgpu", where="browser"))
    with pytest.raises(tw.TilewrightError, match="runs kernels in the page of a workbench"):
        exe(np.ones(2, np.float32), np.zeros(300, np.int32))


def test_a_missing_module_is_reported_by_name(
    paged: Callable[..., Paged], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bench, "MODULE", tmp_path / "absent.js")
    opened = paged()
    opened.run("compile")
    assert opened.problem.title == "Missing assets"
    assert "make assets" in opened.problem.hint
