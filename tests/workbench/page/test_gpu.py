"""Kernels in headless Chromium, by the widget and the module that it loads, without JupyterLab."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.workbench.page.bench import MODULE
from tilewright.workbench.page.errors import PageMessageError
from tilewright.workbench.page.gpu import KEPT_BYTES, PageGpu
from tilewright.workbench.protocol_gpu import MOST_BYTES, GpuKeep

from tests.workbench.conftest import MATMUL, NETWORK
from tests.workbench.page.chromium import on_thread, opened
from tests.workbench.page.fake_page import FakePage

LONG = """
@prim_func
def long(x: Buffer[(1200000,), f32], k: Buffer[(40,), i64], y: Out[(1200000,), f32]):
    for i in range(1200000):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] * 2.0 + f32(k[vi % 40])
"""


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built module, in place of the one for fake pages."""
    monkeypatch.setattr("tilewright.workbench.page.bench.MODULE", MODULE)


@pytest.fixture
def gpu() -> PageGpu:
    page = FakePage()
    return PageGpu.opened(page.pages.of(page.client), "", [], [])


@on_thread
def test_chromium_verifies_and_measures_after_a_click(chromium: str) -> None:
    with opened(chromium, tw.parse(NETWORK)) as shown:
        session = shown.session
        assert shown.page.evaluate("opened") == 0
        # A request that does not come from the page does not open its GPU.
        client = next(name for name, _ in session.views)
        session.handle(
            {"type": "run", "id": 0, "client": client, "action": "compile", "function": ""}
        )
        shown.wait(lambda: not session.jobs.busy)
        assert [p.title for p in session.document.problems] == ["Page without a request"]
        assert shown.page.evaluate("opened") == 0
        shown.run("Compile")
        assert session.document.verdict is not None
        assert session.document.verdict.agrees
        shown.run("Measure")
        measured = session.document.measurement
        assert measured is not None
        assert measured.conditions.startswith("timestamp queries, at most")
        assert measured.median > 0
        assert all(kernel.microseconds > 0 for kernel in measured.kernels)
        assert measured.machine is not None
        assert measured.machine["gpu"].endswith("(on the processor)")
        assert measured.machine["browser"].startswith("Chrome ")
        assert shown.page.evaluate("opened") == 1


@on_thread
def test_chromium_repeats_submissions_without_timestamps(chromium: str) -> None:
    with opened(chromium, tw.parse(MATMUL)) as shown:
        shown.page.evaluate("""() => {
            const has = GPUSupportedFeatures.prototype.has;
            GPUSupportedFeatures.prototype.has = function (name) {
                return name !== "timestamp-query" && has.call(this, name);
            };
        }""")
        shown.run("Measure")
        measured = shown.session.document.measurement
        assert measured is not None
        assert "because the GPU of the page takes no timestamps" in measured.conditions
        assert 0 < measured.median < 1e6


@on_thread
def test_chromium_receives_and_returns_long_arrays_in_parts(chromium: str) -> None:
    with opened(chromium, tw.parse(LONG)) as shown:
        shown.run("Compile")
        assert shown.session.document.verdict is not None
        assert shown.session.document.verdict.agrees
        reads = [call.work for call in shown.calls if call.work.kind == "read"]
        assert [work.bytes for work in reads] == [MOST_BYTES, 4_800_000 - MOST_BYTES]


@on_thread
def test_chromium_is_canceled_and_runs_again_after_a_reload(chromium: str) -> None:
    with opened(chromium, tw.parse(MATMUL)) as shown:
        session = shown.session
        key = shown.start_job("Measure")
        shown.wait(lambda: shown.answers > 0)
        session.jobs.cancel(key)
        shown.wait(lambda: not session.jobs.busy)
        assert session.jobs.view()[-1].state == "canceled"
        shown.start()  # another page of the same browser
        shown.run("Compile")
        assert session.document.problems == ()
        assert session.document.verdict is not None
        assert session.document.verdict.agrees


@on_thread
def test_a_page_without_a_secure_context_cannot_run(chromium: str) -> None:
    with opened(chromium, tw.parse(MATMUL), "http://hub.test") as shown:
        button = shown.page.get_by_role("button", name="Compile", exact=True).first
        reason = button.get_attribute("title") or ""
        assert reason.startswith("pages of http://hub.test have no GPU")
        button.click(force=True)
        assert shown.session.jobs.view() == []
        assert shown.calls == []


def test_contents_are_kept_and_reads_are_checked(gpu: PageGpu) -> None:
    page: FakePage = gpu.channel._send.__self__
    buffer = gpu.create_buffer(size=3 * MOST_BYTES, usage=2)
    content = bytes(range(256)) * (MOST_BYTES // 128)
    gpu.write_buffer(buffer, 0, content)
    gpu.write_buffer(buffer, MOST_BYTES, content[: KEPT_BYTES - 4])
    assert gpu.read_buffer(buffer, 0, MOST_BYTES) == content[:MOST_BYTES]
    kept = [work for work in page.calls if isinstance(work, GpuKeep)]
    size = len(content)
    assert [(work.offset, work.bytes) for work in kept] == [(0, size), (MOST_BYTES, size)]
    gpu.write_buffer(buffer, 0, content)
    gpu.flush()
    assert [work for work in page.calls if isinstance(work, GpuKeep)] == kept
    page._gpu.read = lambda *_: b"short"
    with pytest.raises(PageMessageError, match="expected 8 bytes of a buffer, the page sent 5"):
        gpu.read_buffer(buffer, 0, 8)


def test_times_without_a_record_are_an_error(gpu: PageGpu) -> None:
    gpu.recorded = [*gpu.recorded, *gpu.recorded]
    page: FakePage = gpu.channel._send.__self__
    page._gpu._recorded = [object()]
    page._gpu._encode = lambda _item: None
    with pytest.raises(PageMessageError, match="expected 0 recorded items, the page has 1"):
        gpu.time(0, 1, repeats=1, most=1, seconds=0.1)
