"""Fixtures that run Chromium with JupyterLab, which is started once per session."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.lab import SHARED, TIMEOUT, Lab, running_lab

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from playwright.sync_api import (
        Browser,
        BrowserContext,
        ConsoleMessage,
        Error,
        Page,
        ViewportSize,
    )

FOREIGN_MESSAGES = tuple(
    map(
        re.compile,
        (
            # A saved notebook is displayed before its kernel has created the widgets.
            r"widget model not found",
            # A restart of the kernel, as a user requests it in a test.
            r"Connection lost, reconnecting in 0 seconds",
            # A busy machine, on which plugins of JupyterLab take more than five seconds.
            r"Plugin @jupyterlab/\S+ \(with \d+ dependants\) took [\d.]+ms to activate",
        ),
    )
)
"""Console messages of JupyterLab itself; any other message fails the test."""

VIEWPORT: ViewportSize = {"width": 1500, "height": 1050}

FAILED_PANE = ".tw-empty[role=alert]"
"""The selector of a pane that could not be rendered."""

FAILED = pytest.StashKey[bool]()
"""Whether a test has failed."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@dataclass
class Watch:
    """The errors and console messages of all pages of one test."""

    errors: list[str] = field(default_factory=list)

    def start(self, page: Page) -> None:
        page.on("pageerror", self.error)
        page.on("console", self.console)

    def stop(self, page: Page) -> None:
        page.remove_listener("pageerror", self.error)
        page.remove_listener("console", self.console)

    def error(self, error: Error) -> None:
        self.errors.append(str(error))

    def console(self, message: ConsoleMessage) -> None:
        text = f"{message.type}: {message.text} ({message.location.get('url')})"
        foreign = any(pattern.search(text) for pattern in FOREIGN_MESSAGES)
        if message.type in ("error", "warning") and not foreign:
            self.errors.append(text)

    def check_panes(self, page: Page) -> None:
        self.errors += page.locator(FAILED_PANE).all_inner_texts()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab, started once per session because its start takes as long as a test."""
    with running_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.fixture(scope="module")
def lab(server: Lab) -> Iterator[Lab]:
    """The server for the tests of one file; their own kernels are shut down afterwards."""
    yield server
    server.end_kernels()


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser context whose cache all pages share, because JupyterLab's files are large."""
    expect.set_options(timeout=TIMEOUT)
    context = browser.new_context(viewport=VIEWPORT)
    context.set_default_timeout(TIMEOUT)
    yield context
    context.close()


@pytest.fixture(scope="session")
def all_pages() -> dict[str, Page]:
    """The pages of the notebooks that are open."""
    return {}


@pytest.fixture(scope="session")
def written() -> dict[str, Sequence[str]]:
    """The cells of the notebooks."""
    return {}


@pytest.fixture(scope="module")
def notebooks(all_pages: dict[str, Page], lab: Lab) -> Iterator[dict[str, Page]]:
    """The pages of the shared notebook, and of those that the tests of one file have opened."""
    yield all_pages
    for name in all_pages.keys() - {SHARED}:
        all_pages.pop(name).close()


@pytest.fixture
def open_notebook(
    context: BrowserContext,
    lab: Lab,
    notebooks: dict[str, Page],
    written: dict[str, Sequence[str]],
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., Page]]:
    """Run cells in a notebook with a kernel that has imported Tilewright.

    All tests share the page and the kernel, because their start takes as long as a test; the names
    of other cells are removed. With a name, the notebook has its own page and kernel, which the
    tests of one file share. It is written before it is opened if there are cells. All of its cells
    run again for each test, or only those with ``ids``; those with the ids ``once`` run when it is
    opened. So each test has a new workbench. An error in the page, a warning in its console, or a
    pane that failed to render fails the test. After a failure all pages are closed and all kernels
    are shut down, because the next test may not find them as it expects.
    """
    watch = Watch()
    pages: list[Page] = []

    def open_(
        cells: Sequence[str] = (),
        name: str = SHARED,
        *,
        once: Sequence[str] = (),
        ids: Sequence[str] = (),
    ) -> Page:
        page = notebooks.get(name)
        if page is None:
            if cells:
                lab.write(name, cells)
            page = notebooks[name] = context.new_page()
            pages.append(page)
            watch.start(page)
            lab.open(page, name, [*once, *ids])
        else:
            pages.append(page)
            watch.start(page)
            page.set_viewport_size(VIEWPORT)
            page.mouse.move(0, 0)
            if written.get(name, ()) == cells:
                lab.run_again(page, ids)
            else:
                lab.replace(page, cells)
        written[name] = cells
        return page

    yield open_
    for page in pages:
        watch.check_panes(page)
        watch.stop(page)
    if watch.errors or request.node.stash.get(FAILED, False):
        for page in notebooks.values():
            page.close()
        notebooks.clear()
        lab.end_kernels(kept="")
    assert watch.errors == []
