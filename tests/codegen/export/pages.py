"""Pages of headless Chromium that load exported models for WebGPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np

from tests.codegen.wgsl.tint import OPTIONS

ORIGIN = "http://localhost"
"""An address whose pages are secure contexts; no server receives requests."""

TYPES = {"mjs": "text/javascript", "wasm": "application/wasm"}

HELPERS = """
globalThis.refusal = async (run) => {
    try { await run(); return "nothing"; } catch (error) {
        if (typeof error.code !== "number") throw error;
        return `${error.name} ${error.code} ${error.message}`;
    }
};
globalThis.arrays = (inputs) => {
    const found = {};
    for (const [name, value] of Object.entries(inputs)) {
        if (value === null || typeof value !== "object") { found[name] = value; continue; }
        const kind = globalThis[value.kind];
        const big = value.kind.startsWith("Big");
        found[name] = { data: kind.from(value.data, big ? BigInt : undefined), shape: value.shape };
    }
    return found;
};
globalThis.lists = async (results) => {
    const all = Array.isArray(results) ? results : [results];
    return Promise.all(all.map(async (r) => {
        const data = "read" in r ? await r.read() : r.data;
        return { data: Array.from(data, Number), shape: [...r.shape] };
    }));
};
"""

KINDS = {
    "float32": "Float32Array", "int32": "Int32Array", "int64": "BigInt64Array",
    "uint8": "Uint8Array", "int8": "Int8Array", "float16": "Uint16Array", "bool": "Uint8Array",
}  # fmt: skip


def given(**values: np.ndarray | int) -> dict[str, Any]:
    """Return arguments for the function `arrays` of a page."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, int):
            found[name] = value
            continue
        data = value.view(np.uint16) if value.dtype == np.float16 else value
        found[name] = {
            "kind": KINDS[value.dtype.name],
            "data": data.ravel().tolist(),
            "shape": list(value.shape),
        }
    return found


def array(result: Mapping[str, Any], dtype: Any = np.float32) -> np.ndarray:
    """Return an array of a result of the function `lists` of a page."""
    return np.array(result["data"], dtype).reshape(result["shape"])


class Page:
    """A page; its operations run on one thread, which has no event loop of other tests."""

    def __init__(self, pool: ThreadPoolExecutor, page: Any, folders: dict[str, Path]) -> None:
        self._pool, self._page, self._folders = pool, page, folders
        self.progress: list[dict[str, Any]] = []
        self.patience = 120.0

    def serve(self, name: str, folder: Path) -> str:
        """Serve a directory; return its address."""
        self._folders[name] = folder
        return f"{ORIGIN}/{name}/"

    def run(self, script: str, *arguments: Any) -> Any:
        """Return the result of an asynchronous function of the page."""
        call = f"async (given) => (await ({script})(...given))"
        return self._pool.submit(self._page.evaluate, call, list(arguments)).result(self.patience)


def _answer(folders: Mapping[str, Path], route: Any) -> None:
    name, _, file = urlparse(route.request.url).path.strip("/").partition("/")
    found = folders.get(name, Path("/nonexistent")) / file
    if not file:
        route.fulfill(body="<title>model</title>", content_type="text/html")
    elif found.is_file():
        kind = TYPES.get(found.suffix[1:], "application/octet-stream")
        route.fulfill(body=found.read_bytes(), content_type=kind)
    else:
        route.fulfill(status=404, body="not found")


@contextmanager
def opened(chromium: str, *, options: list[str] | None = None, url: str = ORIGIN) -> Iterator[Page]:
    """Open a page of a browser with a software adapter."""
    from playwright.sync_api import sync_playwright

    folders: dict[str, Path] = {}

    def start() -> tuple[Any, Any, Any]:
        playwright = sync_playwright().start()
        arguments = OPTIONS if options is None else options
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page()
        page.route("**/*", lambda route: _answer(folders, route))
        page.goto(f"{url}/")
        page.add_script_tag(content=HELPERS)
        return playwright, browser, page

    with ThreadPoolExecutor(1) as pool:
        playwright, browser, page = pool.submit(start).result()
        try:
            yield Page(pool, page, folders)
        finally:
            pool.submit(browser.close).result()
            pool.submit(playwright.stop).result()
