"""The picture of the README: MiniLM with the default schedule of one kernel, as composite steps.

With ``SCREENSHOTS=docs`` the test writes ``docs/workbench-light.png`` and ``-dark.png``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.latency import KERNEL
from tests.browser.workbench import open_function, select_loop, tab, theme

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.lab import Lab

pytestmark = [pytest.mark.browser, pytest.mark.model, pytest.mark.slow]

MODEL = f"""
import tilewright as tw
from tilewright.workbench.demo import export_minilm, load_minilm
target = tw.Target("cpu", features=("avx2",))
wb = tw.Workbench(tw.from_exported_program(export_minilm(load_minilm())), target=target)
wb.schedule.lower_graph("main")
wb.schedule.schedule_kernel("{KERNEL}")
wb
"""

SIZE = {"width": 1660, "height": 1000}


def test_picture_of_the_readme(open_notebook: Callable[..., Page], lab: Lab) -> None:
    page = open_notebook("picture.ipynb", [MODEL])
    page.set_viewport_size(SIZE)
    page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    page.get_by_role("button", name="Compile").click()
    expect(page.locator(".tw-verdict")).to_contain_text("Matches", timeout=120_000)
    open_function(page, KERNEL)
    tab(page, "Trace")
    expect(page.locator(".tw-trace-group")).to_have_count(2)
    for step in ("schedule_kernel", "schedule_matmul"):
        group = page.locator(f".tw-trace-group[data-group={step}]")
        group.locator(".tw-folded").click()
        expect(group.locator(".tw-count")).to_be_visible()
    select_loop(page, "k_1")
    page.locator(".tw-trace-line").nth(5).scroll_into_view_if_needed()
    page.locator(".tw-root").scroll_into_view_if_needed()
    excerpt = page.locator(".tw-excerpt").first
    for name in ("Light", "Dark"):
        theme(page, f"JupyterLab {name}")
        page.locator(".tw-brand").hover()
        excerpt.hover()
        expect(page.locator(".tw-underline").first).to_be_visible()
        if folder := os.environ.get("SCREENSHOTS"):
            path = f"{folder}/workbench-{name.lower()}.png"
            page.locator(".tw-root").screenshot(path=path)
