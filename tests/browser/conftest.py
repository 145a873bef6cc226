"""A real Chromium in a real JupyterLab, which is started once for all files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.lab import PATIENCE, Lab, running_lab

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

NOT_OURS = tuple(
    map(
        re.compile,
        (
            # A notebook saved with its outputs is opened before its kernel has made the widgets.
            r"widget model not found",
        ),
    )
)
"""What JupyterLab writes to the console by itself; anything else fails the test."""

UNDRAWN = ".tw-empty[role=alert]"
"""A pane that fell to its boundary: *could not be drawn*."""


@dataclass
class Watch:
    """What went wrong in the pages of one test without anybody asserting it."""

    faults: list[str] = field(default_factory=list)

    def page(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self.console)

    def console(self, message: ConsoleMessage) -> None:
        said = f"{message.type}: {message.text} ({message.location.get('url')})"
        ours = not any(pattern.search(said) for pattern in NOT_OURS)
        if message.type in ("error", "warning") and ours:
            self.faults.append(said)

    def undrawn(self, page: Page) -> None:
        self.faults += page.locator(UNDRAWN).all_inner_texts()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab, as its start takes as long as a test."""
    with running_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.fixture
def lab(server: Lab) -> Iterator[Lab]:
    """The server for one test: no kernel lives from one to the next."""
    yield server
    server.end_kernels()


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One cache for all pages: JupyterLab's own files are large."""
    expect.set_options(timeout=PATIENCE)
    context = browser.new_context(viewport={"width": 1500, "height": 1050})
    yield context
    context.close()


@pytest.fixture
def open_notebook(context: BrowserContext, lab: Lab) -> Iterator[Callable[..., Page]]:
    """Open a notebook of the folder and run it, or the cells above that of an id.

    A fault in the page, a complaint in its console, or a pane that is not drawn fails the test.
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
        watch.undrawn(page)
        page.close()
    assert watch.faults == []
