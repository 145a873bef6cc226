"""Fixtures that run Chromium with JupyterLab, which is started once per session."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.lab import TIMEOUT, Lab, running_lab

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

FOREIGN_MESSAGES = tuple(
    map(
        re.compile,
        (
            # A saved notebook is displayed before its kernel has created the widgets.
            r"widget model not found",
        ),
    )
)
"""Console messages of JupyterLab itself; any other message fails the test."""

FAILED_PANE = ".tw-empty[role=alert]"
"""The selector of a pane that could not be rendered."""


@dataclass
class Watch:
    """The errors and console messages of all pages of one test."""

    errors: list[str] = field(default_factory=list)

    def page(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self.console)

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


@pytest.fixture
def lab(server: Lab) -> Iterator[Lab]:
    """The server for one test; its kernels are shut down afterwards."""
    yield server
    server.end_kernels()


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser context whose cache all pages share, because JupyterLab's files are large."""
    expect.set_options(timeout=TIMEOUT)
    context = browser.new_context(viewport={"width": 1500, "height": 1050})
    yield context
    context.close()


@pytest.fixture
def open_notebook(context: BrowserContext, lab: Lab) -> Iterator[Callable[..., Page]]:
    """Open a notebook and run all cells, or the cells above the cell with an id.

    An error in the page, a warning in its console, or a pane that failed to render fails the test.
    """
    watch = Watch()
    pages: list[Page] = []

    def open_(name: str, before: str = "") -> Page:
        page = context.new_page()
        pages.append(page)
        watch.page(page)
        lab.open(page, name, before)
        return page

    yield open_
    for page in pages:
        watch.check_panes(page)
        page.close()
    assert watch.errors == []
