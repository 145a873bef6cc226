"""The model of the quickstart in the workbench: both levels, a picture, and latencies."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser.latency import KERNEL, edits, outer_loops, select_again
from tests.browser.test_first_minutes import picture
from tests.browser.workbench import (
    LONG,
    apply,
    code,
    open_function,
    select_loop,
    step,
    tab,
    theme,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.lab import Lab

pytestmark = [pytest.mark.browser, pytest.mark.model, pytest.mark.slow]

MAX_LATENCY = 600.0
"""Three times the latency budget in milliseconds, because machines of CI are shared."""


PICTURE = f"""
target = tw.Target("cpu", features=("avx2",))
wb = tw.Workbench(mod, target=target)
wb.schedule.lower_graph("main")
wb.schedule.schedule_kernel("{KERNEL}")
wb
"""


@pytest.fixture(scope="module")
def quickstart(lab: Lab, root: Path) -> str:
    """The quickstart, whose kernel imports the model once, with a cell for the picture."""
    notebook = nbformat.read(root / "notebooks" / "quickstart.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(PICTURE, id="picture"))
    nbformat.write(notebook, lab.root / "quickstart.ipynb")
    return "quickstart.ipynb"


@pytest.fixture
def page(open_notebook: Callable[..., Page], quickstart: str) -> Page:
    """The quickstart after lowering to kernels, before any manual scheduling."""
    return open_notebook((), quickstart, once=["import"], ids=["workbench", "kernels"])


def test_graph_and_loops_side_by_side(page: Page) -> None:
    page.locator(".tw-root").get_by_role("button", name="Graph", exact=True).click()
    cards = page.locator(".tw-card")
    expect(cards.nth(5)).to_be_attached()
    assert cards.count() <= 60
    expect(page.locator(".tw-graph-svg")).to_contain_text("layer.0")
    page.locator(".tw-card[tabindex='0']").click()
    page.keyboard.press("Home")
    expect(cards.first).to_be_in_viewport()
    page.keyboard.press("ArrowDown")
    expect(cards.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".tw-selected")).to_contain_text("operation")
    page.locator(".tw-graph").get_by_label("Find an operation").fill(KERNEL)
    page.keyboard.press("Enter")
    found = page.locator(".tw-card.is-found").first
    expect(found).to_be_focused()
    expect(found).to_be_in_viewport()
    found.click()
    expect(page.locator(".tw-card.tw-card-kernel").first).to_be_visible()


def test_manual_schedule(page: Page) -> None:
    open_function(page, KERNEL)
    position = page.get_by_role("navigation", name="Position of the function")
    expect(position).to_contain_text("main\u203aencoder \u203a layer.0…5 \u203a intermediate\u203a")
    expect(position.get_by_label("Function")).to_contain_text(f"{KERNEL} ×6")
    picture(page, "position")
    loops = page.locator(".tw-marker")
    rows = loops.nth(0).get_attribute("data-name") or ""
    columns = loops.nth(1).get_attribute("data-name") or ""
    select_loop(page, rows)
    illegal = step(page, "vectorize")
    expect(illegal).to_contain_text("is not a constant")
    illegal.locator(".tw-fix").first.click()
    expect(code(page)).to_contain_text("guard(")
    select_loop(page, columns)
    apply(page, "split")
    expect(page.locator(".tw-selected")).to_contain_text(f"{columns}_1")
    expect(code(page)).to_contain_text(f"for {columns}_1 in range(")
    page.locator(".tw-root").get_by_role("button", name="Measure kernel").click()
    expect(page.locator(".tw-kernels")).to_contain_text(KERNEL, timeout=LONG)


def test_picture_of_the_readme(open_notebook: Callable[..., Page], quickstart: str) -> None:
    """The default schedule of one kernel, as composite steps.

    With ``SCREENSHOTS=docs`` the test writes ``docs/workbench-light.png`` and ``-dark.png``.
    """
    page = open_notebook((), quickstart, once=["import"], ids=["picture"])
    page.set_viewport_size({"width": 1660, "height": 1000})
    page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    page.get_by_role("button", name="Compile").click()
    expect(page.locator(".tw-verdict")).to_contain_text("Matches", timeout=LONG)
    open_function(page, KERNEL)
    tab(page, "Trace")
    expect(page.locator(".tw-trace-group")).to_have_count(2)
    for name in ("schedule_kernel", "schedule_matmul"):
        group = page.locator(f".tw-trace-group[data-group={name}]")
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


@pytest.mark.alone
def test_edit_latency(page: Page) -> None:
    loops = outer_loops(page)
    timed = [
        *select_again(page, loops, 15),
        *edits(page, loops[0], "split", 15),
        *edits(page, loops[0], "specialize", 15),
    ]
    for latency in timed:
        assert latency.p95 <= MAX_LATENCY, str(latency)
