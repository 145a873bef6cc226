"""The browser of the workbench tests lays out pages and executes modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.mark.browser
def test_chromium_lays_out_and_runs_modules(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 800, "height": 600})
    page.set_content(
        "<main style='display: grid; grid-template-columns: 1fr 3fr'><p>a</p><p id='b'>b</p></main>"
        "<script type='module'>document.title = `${BigInt(2) ** 64n}`</script>"
    )
    page.wait_for_function("document.title !== ''")
    assert page.title() == "18446744073709551616"
    assert page.locator("#b").bounding_box()["x"] > 190
    page.close()
