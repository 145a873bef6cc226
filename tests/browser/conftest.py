"""Fixtures that run Chromium with JupyterLab, which is started once per session."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.lab import TIMEOUT, Lab, running_lab

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
        ),
    )
)
"""Console messages of JupyterLab itself; any other message fails the test."""

VIEWPORT: ViewportSize = {"width": 1500, "height": 1050}

FAILED_PANE = ".tw-empty[role=alert]"
"""The selector of a pane that could not be rendered."""


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
    """The server for the tests of one file; its kernels are shut down afterwards."""
    yield server
    server.end_kernels()


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser context whose cache all pages share, because JupyterLab's files are large."""
    expect.set_options(timeout=TIMEOUT)
    context = browser.new_context(viewport=VIEWPORT)
    yield context
    context.close()


@pytest.fixture(scope="module")
def notebooks(context: BrowserContext, lab: Lab) -> Iterator[dict[str, Page]]:
    """The pages of the notebooks that tests of one file have opened."""
    pages: dict[str, Page] = {}
    yield pages
    for page in pages.values():
        page.close()


@pytest.fixture
def open_notebook(
    context: BrowserContext, lab: Lab, notebooks: dict[str, Page]
) -> Iterator[Callable[..., Page]]:
    """Open a notebook and run all cells, or the cells above the cell with an id.

    With ``cells``, the notebook is written before it is opened. Tests of one file that open the
    same notebook share its page and its kernel; the cells run again, so that each test has a new
    workbench. An error in the page, a warning in its console, or a pane that failed to render
    fails the test.
    """
    watch = Watch()
    pages: list[Page] = []

    def open_(name: str, cells: Sequence[str] = (), before: str = "") -> Page:
        page = notebooks.get(name)
        if page is None:
            if cells:
                lab.write(name, cells)
            page = notebooks[name] = context.new_page()
            watch.start(page)
            lab.open(page, name, before)
        else:
            watch.start(page)
            page.set_viewport_size(VIEWPORT)
            page.mouse.move(0, 0)
            lab.run_again(page, before)
        pages.append(page)
        return page

    yield open_
    for page in pages:
        watch.check_panes(page)
        watch.stop(page)
    assert watch.errors == []
