"""Target, sizes and threads, chosen in the toolbar by mouse and keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.test_first_minutes import PROGRAM, button, picture
from tests.browser.test_matmul import violations
from tests.browser.workbench import LONG, finished, settle, tab, theme

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

ROWS = """() => {
    const items = [...document.querySelectorAll(".tw-toolbar > *")];
    const boxes = items.map((item) => item.getBoundingClientRect()).filter((box) => box.height);
    const tops = boxes.map((box) => (box.top + box.bottom) / 2).sort((a, b) => a - b);
    return tops.filter((at, index) => index === 0 || at > tops[index - 1] + 8).length;
}"""
"""The number of rows of the toolbar."""


def test_toolbar_has_at_most_two_rows(open_notebook: Callable[..., Page]) -> None:
    page = open_notebook([PROGRAM])
    page.locator(".tw-picker").select_option(index=0)
    button(page, "Measure").click()
    finished(page)
    page.locator(".tw-kernels .tw-link").first.click()
    button(page, "Compile").click()
    expect(page.locator(".tw-verdict")).to_contain_text("Matches", timeout=LONG)
    for width, rows in ((1440, 1), (1000, 2), (760, 2)):
        page.set_viewport_size({"width": width, "height": 900})
        picture(page, f"toolbar-{width}")
        settle(lambda most=rows: page.evaluate(ROWS) <= most, True)
        for name in ("Undo", "Redo", "Compile", "Measure", "Target and sizes"):
            expect(button(page, name)).to_be_visible()


def test_target_sizes_and_threads_in_the_toolbar(open_notebook: Callable[..., Page]) -> None:
    page = open_notebook([PROGRAM])
    setup, dialog = button(page, "Target and sizes"), page.get_by_role("dialog")
    expect(setup).to_contain_text("cpu · batch = 48")

    # By keyboard: another size and one thread.
    setup.click()
    expect(dialog.get_by_label("Target", exact=True)).to_be_focused()
    page.keyboard.press("Tab")
    expect(dialog.get_by_label("Sample value of batch")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("-1")
    page.keyboard.press("Tab")
    expect(dialog.get_by_role("alert")).to_have_text("Expected an integer: 0 … ∞")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Control+a")
    page.keyboard.type("32")
    page.keyboard.press("Tab")
    dialog.get_by_role("combobox", name="Threads").select_option("1")
    expect(setup).to_contain_text("cpu · batch = 32 · 1 thread")
    picture(page, "setup")

    # A target that this machine cannot run: its code is displayed, and running is disabled.
    dialog.get_by_label("Target", exact=True).select_option("cpu riscv64")
    expect(dialog).to_contain_text("Cannot run: this machine has another processor")
    picture(page, "setup-riscv64")
    page.keyboard.press("Escape")
    expect(setup).to_be_focused()
    expect(button(page, "Measure")).to_have_attribute("aria-disabled", "true")

    # An emulated GPU, and this machine with a narrower set of features.
    setup.click()
    dialog.get_by_label("Target", exact=True).select_option("simt sm_80")
    expect(setup).to_contain_text("simt sm_80")
    expect(page.locator(".tw-root").get_by_role("tab", name="PTX")).to_be_visible()
    dialog.get_by_label("Target", exact=True).select_option("cpu avx2")
    expect(setup).to_contain_text("cpu avx2 · batch = 32")
    page.keyboard.press("Escape")
    button(page, "Measure").click()
    expect(page.locator(".tw-measurement")).to_contain_text("batch = 32", timeout=LONG)
    expect(page.locator(".tw-conditions").first).to_contain_text("1 thread,")

    # The sizes of the toolbar are those of the symbols.
    tab(page, "Symbols")
    expect(page.get_by_label("Sample value of batch")).to_have_value("32")


def test_sets_of_sizes_are_named_and_measured(
    open_notebook: Callable[..., Page], root: Path
) -> None:
    page = open_notebook([PROGRAM])
    page.set_viewport_size({"width": 1440, "height": 900})
    setup, dialog = button(page, "Target and sizes"), page.get_by_role("dialog")
    setup.click()
    dialog.get_by_label("Name of the set").click()
    page.keyboard.type("usual")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("button", name="usual", exact=True)).to_be_visible()
    dialog.get_by_label("Sample value of batch").click(click_count=3)
    page.keyboard.type("8")
    page.keyboard.press("Tab")
    expect(setup).to_contain_text("batch = 8")
    dialog.get_by_label("Name of the set").click()
    page.keyboard.type("small")
    dialog.get_by_role("button", name="Add set").click()
    sets = dialog.locator(".tw-size-set")
    expect(sets).to_have_count(2)
    dialog.get_by_role("button", name="Measure all sets").click()
    for row in (0, 1):
        expect(sets.nth(row).locator(".tw-right")).to_contain_text("s", timeout=LONG)
    page.add_script_tag(path=root / "extensions" / "node_modules" / "axe-core" / "axe.min.js")
    for name in ("JupyterLab Dark", "JupyterLab Light"):
        theme(page, name)
        assert violations(page) == [], name
        picture(page, f"sets-{name.split()[-1]}")
    page.set_viewport_size({"width": 760, "height": 900})
    picture(page, "sets-760")
    page.set_viewport_size({"width": 1440, "height": 900})
    dialog.get_by_role("button", name="usual", exact=True).click()
    expect(setup).to_contain_text("batch = 48")
    page.keyboard.press("Escape")
    records = page.get_by_label("Measurement", exact=True)
    expect(records.locator("option")).to_have_count(2)
    expect(records).to_contain_text("batch = 8")


def test_a_size_beyond_the_memory_is_a_problem(open_notebook: Callable[..., Page]) -> None:
    """The kernel does not draw the arguments, so it answers afterward."""
    page = open_notebook([PROGRAM])
    page.set_viewport_size({"width": 1440, "height": 900})
    setup, dialog = button(page, "Target and sizes"), page.get_by_role("dialog")
    for size, message in (
        ("1000000000", "cannot allocate the 256,000,000,000 bytes of shape"),
        ("8", "Compiled: matches the interpreter"),
    ):
        setup.click()
        dialog.get_by_label("Sample value of batch").click(click_count=3)
        page.keyboard.type(size)
        page.keyboard.press("Tab")
        expect(setup).to_contain_text(f"batch = {size}")
        page.keyboard.press("Escape")
        button(page, "Compile").click()
        expect(page.locator(".tw-status")).to_contain_text(message, timeout=LONG)
    tab(page, "Problems")
    expect(page.get_by_role("list", name="Problems")).to_contain_text("at most")
