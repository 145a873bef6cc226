"""Compilation of shaders by Tint, the compiler of Chromium."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

OPTIONS = ["--no-sandbox", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]

PAGE = "http://localhost/shaders"
"""An address whose pages have ``navigator.gpu``; the page is not requested from a server."""

COMPILE = """async texts => {
    const adapter = await navigator.gpu.requestAdapter();
    const device = await adapter.requestDevice();
    const found = [];
    for (const code of texts) {
        device.pushErrorScope("validation");
        const info = await device.createShaderModule({code}).getCompilationInfo();
        await device.popErrorScope();
        const errors = info.messages.filter(m => m.type === "error");
        found.push(errors.map(m => `${m.lineNum}: ${m.message}`).join("; "));
    }
    return found;
}"""


def messages(texts: Sequence[str], chromium: str) -> list[str]:
    """Return the errors of each shader; empty if Tint accepts it.

    A thread of its own has no event loop, as that of the browser of other tests.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_messages, texts, chromium).result()


def _messages(texts: Sequence[str], chromium: str) -> list[str]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
        page = browser.new_page()
        page.route(PAGE, lambda route: route.fulfill(body="<title>shaders</title>"))
        page.goto(PAGE)
        found = [
            message
            for k in range(0, len(texts), 20)
            for message in page.evaluate(COMPILE, list(texts[k : k + 20]))
        ]
        browser.close()
    return found
