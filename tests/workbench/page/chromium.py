"""A page of headless Chromium with the widget, connected to a session without JupyterLab."""

from __future__ import annotations

import base64
import functools
import json
import queue
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import tilewright as tw
from tilewright.schedules import Schedule
from tilewright.workbench.assets import STATIC
from tilewright.workbench.page.benches import bench_of
from tilewright.workbench.page.channel import Pages
from tilewright.workbench.serialization import to_plain, update_to_plain
from tilewright.workbench.session import Session

from tests.codegen.wgsl.tint import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tilewright.ir.module import Module
    from tilewright.workbench.protocol import Update
    from tilewright.workbench.protocol_gpu import GpuCall

ORIGIN = "http://localhost"
BROWSER = tw.Target("webgpu", where="browser")

COUNT = """() => {
    globalThis.opened = 0;
    const gpu = navigator.gpu;
    if (!gpu) return;
    const request = gpu.requestAdapter.bind(gpu);
    gpu.requestAdapter = (...options) => {
        globalThis.opened += 1;
        return request(...options);
    };
}"""
"""Count how often the page opens a GPU."""

START = """async () => {
    const { default: widget } = await import("/widget.js");
    const listeners = [];
    const text = (buffer) => {
        const bytes = new Uint8Array(buffer);
        let all = "";
        for (let k = 0; k < bytes.length; k += 32768) {
            all += String.fromCharCode(...bytes.subarray(k, k + 32768));
        }
        return btoa(all);
    };
    const view = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
    const model = {
        get: (name) => ({ _id: "model", _saved: "", _height: 0 })[name],
        send: (message, _callbacks, buffers = []) => {
            void toSession(JSON.stringify(message), buffers.map(text));
        },
        on: (_event, listener) => listeners.push(listener),
    };
    globalThis.toPage = (message, buffers) => {
        for (const listener of listeners) listener(JSON.parse(message), buffers.map(view));
    };
    widget.initialize({ model });
    widget.render({ model, el: document.body });
}"""


def on_thread(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test on a thread, because that of other tests may run another browser."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(test, **fixtures).result()

    return run


class WidgetPage:
    """A page with the widget; all of its operations run on the thread that opened it."""

    def __init__(self, page: Any, program: Module) -> None:
        self.page = page
        self._sent: queue.Queue[tuple[dict[str, Any], Sequence[bytes]]] = queue.Queue()
        self.calls: list[GpuCall] = []
        self.answers = 0
        self.pages = Pages(self._call)
        bench = bench_of(BROWSER, self.pages)
        self.session = Session(
            Schedule(program, BROWSER), bench, publish=self._publish, pages=self.pages
        )
        page.expose_function("toSession", self._receive)

    def start(self, origin: str = ORIGIN) -> None:
        self.page.goto(f"{origin}/")
        self.page.evaluate(COUNT)
        self.page.evaluate(START)
        self.wait(lambda: self.page.locator(".tw-root[data-connected=true]").count() > 0)

    def _publish(self, update: Update, buffers: list[bytes]) -> None:
        self._sent.put((update_to_plain(update), buffers))

    def _call(self, call: GpuCall, buffers: list[bytes]) -> None:
        self.calls.append(call)
        self._sent.put((to_plain(call), buffers))

    def _receive(self, message: str, buffers: list[str]) -> None:
        content: Mapping[str, Any] = json.loads(message)
        if content["type"] == "gpu_answer":
            self.answers += 1
            self.pages.receive(content, [base64.b64decode(text) for text in buffers])
        else:
            self.session.handle(content)

    def deliver(self) -> None:
        """Deliver the messages of the session to the page."""
        while True:
            try:
                message, buffers = self._sent.get(timeout=0.01)
            except queue.Empty:
                return
            texts = [base64.b64encode(part).decode() for part in buffers]
            self.page.evaluate("([m, b]) => toPage(m, b)", [json.dumps(message), texts])

    def wait(self, done: Callable[[], object], timeout: float = 240.0) -> None:
        """Deliver messages until a condition holds."""
        end = time.monotonic() + timeout
        while not done():
            assert time.monotonic() < end, [p.title for p in self.session.document.problems]
            self.deliver()
            self.page.wait_for_timeout(1)

    def start_job(self, button: str) -> str:
        """Click a button that starts a job; return the key of the job."""
        before = {job.key for job in self.session.jobs.view()}
        self.page.get_by_role("button", name=button, exact=True).first.click()
        self.wait(lambda: {job.key for job in self.session.jobs.view()} - before)
        return max({job.key for job in self.session.jobs.view()} - before)

    def run(self, button: str) -> None:
        """Run a job to its end."""
        self.start_job(button)
        self.wait(lambda: not self.session.jobs.busy)
        self.deliver()


def _answer(route: Any) -> None:
    name = route.request.url.rpartition("/")[2]
    if name.endswith(".js"):
        content = (STATIC / name).read_bytes()
        route.fulfill(body=content, content_type="text/javascript")
    else:
        style = (STATIC / "widget.css").read_text(encoding="utf-8")
        body = f"<!doctype html><title>widget</title><style>{style}</style><body></body>"
        route.fulfill(body=body, content_type="text/html")


@contextmanager
def opened(chromium: str, program: Module, origin: str = ORIGIN) -> Iterator[WidgetPage]:
    """Open a page with the widget of a session, on a software adapter."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.route("**/*", _answer)
        shown = WidgetPage(page, program)
        shown.start(origin)
        yield shown
        browser.close()
