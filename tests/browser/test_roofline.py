"""The roofline: kernels below the peak rates of the machine, and the path of the branch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.test_first_minutes import KERNEL, PROGRAM, button, measure, picture, rule
from tests.browser.test_matmul import violations
from tests.browser.workbench import LONG, code, tab, theme

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def test_roofline_of_a_branch(open_notebook: Callable[..., Page], root: Path) -> None:
    page = open_notebook([PROGRAM])
    page.set_viewport_size({"width": 1440, "height": 900})
    measure(page)
    header = page.locator(".tw-kernels thead")
    for column in ("GFLOP/s", "GB/s", "% of roof"):
        expect(header).to_contain_text(column)
    row = page.locator(".tw-kernels tbody tr", has_text=KERNEL)
    expect(row.locator("td").nth(5)).to_contain_text("%")

    tab(page, "Roofline")
    chart = page.get_by_role("img", name="Roofline.")
    expect(chart.locator(".tw-roofline-point")).to_have_count(3)
    expect(chart.locator(".tw-roofline-predicted")).to_have_count(3)
    expect(page.get_by_role("list", name="Legend")).to_contain_text("memory:")
    expect(chart.locator(".tw-roofline-path")).to_have_count(0)

    # A kernel opens from the table, by keyboard; its next measurement continues the path.
    page.locator(".tw-dock").get_by_role("tab", name="Roofline").press("Tab")
    while page.evaluate("document.activeElement.dataset.focus") != f"roofline:{KERNEL}":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(code(page)).to_contain_text(f"def {KERNEL}(")
    rule(page).get_by_role("button", name="Take the default schedule").click()
    expect(rule(page)).to_contain_text("Has the steps of its default rule")
    button(page, "Measure").click()
    expect(chart.locator(".tw-roofline-earlier")).to_have_count(1, timeout=LONG)
    expect(chart).to_have_attribute("aria-label", re.compile(f"{KERNEL} changed from"))
    expect(page.get_by_role("list", name="Legend")).to_contain_text("earlier states")

    # The peaks are measured again on request, and the panel remains open.
    button(page, "Measure the roof again").click()
    expect(page.locator(".tw-status")).to_contain_text("Measured: at most", timeout=LONG)
    expect(chart).to_be_visible()

    page.add_script_tag(path=root / "extensions" / "node_modules" / "axe-core" / "axe.min.js")
    for name in ("JupyterLab Dark", "JupyterLab Light"):
        theme(page, name)
        assert violations(page) == [], name
        for width in (1440, 1000, 760):
            page.set_viewport_size({"width": width, "height": 900})
            if width < 1440:  # beside the side bar, the workbench has tabs
                page.locator(".tw-root").get_by_role("tab", name="More").click()
                tab(page, "Roofline")
            picture(page, f"roofline-{width}-{name.split()[-1]}")
        page.set_viewport_size({"width": 1440, "height": 900})
