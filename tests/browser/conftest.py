"""A real Chromium in a real JupyterLab, the latter started once a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.lab import PATIENCE, Lab, running_lab

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab for all tests of a file.

    Where a notebook of another file still runs, it would ask which kernel to use.
    """
    with running_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.fixture
def open_notebook(browser: Browser, lab: Lab) -> Iterator[Callable[..., Page]]:
    """Open a notebook of the folder and run it, or the cells above that of an id.

    A fault in the page fails the test.
    """
    expect.set_options(timeout=PATIENCE)
    context = browser.new_context(viewport={"width": 1500, "height": 1050})
    faults: list[str] = []

    def open_(name: str, before: str = "") -> Page:
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        lab.open(page, name, before)
        return page

    yield open_
    context.close()
    assert faults == []
