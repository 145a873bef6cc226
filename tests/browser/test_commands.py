"""Commands by palette, keys, and menus, and the view that survives reloads and widths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.lab import LOADED, READY, START
from tests.browser.test_first_minutes import PROGRAM as MODEL, button, picture
from tests.browser.test_matmul import PROGRAM, violations
from tests.browser.workbench import (
    code,
    frames,
    open_function,
    save,
    select_loop,
    step,
    tab,
    theme,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page, ViewportSize

pytestmark = pytest.mark.browser

CONNECTED = ".tw-root[data-connected=true]"
ZOOM_IS_KEPT = r"""() => Object.entries(sessionStorage).some(
    ([key, text]) => key.startsWith("tilewright:view:") && /"zoom":\d/.test(text)
)"""
"""Whether the storage of the browser has the zoom of a graph, which is written after a pause."""

MEDIUM: ViewportSize = {"width": 1440, "height": 950}
NARROW: ViewportSize = {"width": 760, "height": 950}
WIDE: ViewportSize = {"width": 1900, "height": 1000}


@pytest.fixture
def page(open_notebook: Callable[..., Page]) -> Page:
    page = open_notebook([MODEL], "commands.ipynb")
    page.set_viewport_size(MEDIUM)
    frames(page)
    return page


def palette(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Commands and functions")


def open_palette(page: Page) -> Locator:
    """Open the list of commands by keyboard, and return it when its search has the focus."""
    page.keyboard.press("Alt+p")
    return opened(page)


def opened(page: Page) -> Locator:
    field = palette(page).get_by_role("combobox", name="Find a command or a function")
    expect(field).to_be_focused()
    return palette(page)


def run(page: Page, text: str, option: str) -> None:
    """Type a text into the list of commands, and run the first command that is found."""
    page.keyboard.type(text)
    expect(palette(page).get_by_role("option").first).to_contain_text(option)
    page.keyboard.press("Enter")


def lower(page: Page) -> None:
    step(page, "lower_graph").locator(".tw-apply").click()
    expect(page.locator(".tw-announcement")).to_contain_text("lower_graph")


def test_palette_lists_and_runs_commands(page: Page, root: Path) -> None:
    code(page).click(position={"x": 200, "y": 30})
    dialog = open_palette(page)
    expect(dialog.get_by_role("option", name="Redo")).to_contain_text("Ctrl+Shift+Z")
    expect(dialog.get_by_role("option", name="Redo")).to_contain_text("Nothing to redo")
    expect(dialog.get_by_role("option", name="Redo")).to_have_attribute("aria-disabled", "true")
    page.add_script_tag(path=root / "extensions" / "node_modules" / "axe-core" / "axe.min.js")
    for name in ("JupyterLab Dark", "JupyterLab Light"):
        theme(page, name)
        assert violations(page) == [], name
        picture(page, f"palette-{name.split()[-1]}")

    # Escape returns to the text, from which a command of the text is run.
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(code(page)).to_be_focused()
    open_palette(page)
    run(page, "find in", "Find in the text")
    expect(page.get_by_role("textbox", name="Find in the text")).to_be_focused()
    page.keyboard.press("Escape")

    # A panel, by arrow keys; the button of the toolbar opens the palette as well.
    button(page, "Commands and functions").click()
    opened(page)
    page.keyboard.type("show")
    options = dialog.get_by_role("option")
    expect(options.first).to_contain_text("Show")
    names = options.locator(".tw-palette-label").all_inner_texts()
    for name in names[1 : names.index("Show History") + 1]:
        page.keyboard.press("ArrowDown")
        selected = dialog.get_by_role("option", selected=True)
        expect(selected.locator(".tw-palette-label")).to_have_text(name)
    picture(page, "palette-filtered")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="History")).to_have_attribute("aria-selected", "true")
    expect(button(page, "Commands and functions")).to_be_focused()


def test_palette_opens_functions(page: Page) -> None:
    lower(page)
    dialog = open_palette(page)
    page.keyboard.type("soft")
    expect(dialog.get_by_role("option")).to_have_count(1)
    dialog.get_by_role("option", name="softmax").click()
    expect(code(page)).to_contain_text("def fused_add_softmax(")

    # In the narrow layout, the text is displayed first.
    page.set_viewport_size(NARROW)
    page.wait_for_selector(".tw-root.is-narrow")
    tab(page, "More")
    tabs = page.get_by_role("tablist", name="Dock").get_by_role("tab")
    ends = tabs.evaluate_all("(tabs) => tabs.map((tab) => tab.getBoundingClientRect().right)")
    assert max(ends) <= page.locator(".tw-root").evaluate("(e) => e.getBoundingClientRect().right")
    button(page, "Commands and functions").click()
    opened(page)
    page.keyboard.type("fused_matmul_gelu")
    expect(dialog.get_by_role("option").first).to_contain_text("fused_matmul_gelu")
    picture(page, "palette-narrow")
    page.keyboard.press("Enter")
    expect(code(page)).to_contain_text("def fused_matmul_gelu(")
    expect(code(page)).to_be_visible()
    tab(page, "Steps")
    page.get_by_label("Filter steps").click()
    open_palette(page)
    run(page, "fold bodies", "Fold bodies")
    expect(page.locator(".tw-folded").first).to_be_visible()


def test_keys_run_commands(open_notebook: Callable[..., Page]) -> None:
    page = open_notebook([PROGRAM])
    page.set_viewport_size(MEDIUM)
    select_loop(page, "j")
    page.keyboard.press("Alt+ArrowDown")
    expect(code(page)).to_contain_text(re.compile("for k in.*for j in", re.DOTALL))
    expect(page.locator(".tw-selected")).to_contain_text("j")
    page.keyboard.press("Alt+ArrowDown")  # no loop is inside
    page.keyboard.press("Control+z")
    expect(code(page)).to_contain_text(re.compile("for j in.*for k in", re.DOTALL))
    page.keyboard.press("Alt+c")
    expect(page.locator(".tw-verdict")).to_contain_text("Matches", timeout=60_000)

    # JupyterLab's keys still work, and those of a text field are its own.
    browser = page.locator("#filebrowser")
    expect(browser).to_be_visible()
    page.keyboard.press("Control+b")
    expect(browser).to_be_hidden()
    page.keyboard.press("Control+b")
    expect(browser).to_be_visible()
    page.get_by_label("Filter steps").click()
    page.keyboard.type("reo")
    page.keyboard.press("Control+Shift+z")
    page.keyboard.press("Alt+ArrowDown")
    page.keyboard.type("rder")
    expect(page.get_by_label("Filter steps")).to_have_value("reorder")
    expect(code(page)).to_contain_text(re.compile("for j in.*for k in", re.DOTALL))
    page.locator(".tw-status").click()
    page.keyboard.press("Control+Shift+z")
    expect(code(page)).to_contain_text(re.compile("for k in.*for j in", re.DOTALL))
    page.keyboard.press("Control+y")
    expect(page.locator(".tw-announcement")).to_have_text("Redo: Nothing to redo")


def test_menu_of_a_loop(open_notebook: Callable[..., Page]) -> None:
    page = open_notebook([PROGRAM])
    page.set_viewport_size(MEDIUM)
    page.locator('.tw-marker[data-name="j"]').click(button="right")
    menu = page.get_by_role("menu", name="Text")
    expect(page.locator(".lm-Menu")).to_have_count(0)
    expect(menu.get_by_role("menuitem").first).to_contain_text("Select loop j")
    picture(page, "loop-menu")
    menu.get_by_role("menuitem", name="Fold", exact=False).first.click()
    expect(page.locator(".tw-folded")).to_be_visible()


def arrange(page: Page) -> None:
    """Choose tabs, open a form, type, fold a loop, and move a splitter."""
    lower(page)
    open_function(page, "fused_matmul_gelu")
    select_loop(page, "j")
    page.get_by_label("Filter steps").click()
    page.keyboard.type("spl")
    step(page, "split").locator(".tw-step-name").click()
    step(page, "split").get_by_label("factors", exact=True).click()
    page.keyboard.press("Control+a")
    page.keyboard.type("(None, 0)")
    expect(step(page, "split").locator(".tw-form-status")).to_have_text("Illegal")
    tab(page, "History")
    page.locator(".tw-code .cm-line", has_text="for k in").first.click(button="right")
    page.get_by_role("menuitem", name="Fold", exact=False).first.click()
    expect(page.locator(".tw-folded")).to_have_count(1)
    bar = page.get_by_role("separator", name="Height of the dock").bounding_box()
    assert bar is not None
    page.mouse.move(bar["x"] + 100, bar["y"])
    page.mouse.down()
    page.mouse.move(bar["x"] + 100, bar["y"] - 60, steps=4)
    page.mouse.up()


def check_arrangement(page: Page, height: str) -> None:
    separator = page.get_by_role("separator", name="Height of the dock")
    expect(separator).to_have_attribute("aria-valuenow", height)
    expect(page.locator(".tw-root").get_by_role("tab", name="History")).to_have_attribute(
        "aria-selected", "true"
    )
    expect(page.get_by_label("Filter steps")).to_have_value("spl")
    factors = step(page, "split").get_by_label("factors", exact=True)
    expect(factors).to_have_value("(None, 0)")
    expect(step(page, "split").locator(".tw-form-status")).to_have_text("Illegal")
    expect(page.locator(".tw-folded")).to_have_count(1)


def test_view_survives_widths_a_reload_and_a_closed_notebook(page: Page) -> None:
    arrange(page)
    separator = page.get_by_role("separator", name="Height of the dock")
    expect(separator).to_have_attribute("aria-valuenow", re.compile("25[1-9]|26[0-9]"))
    height = separator.get_attribute("aria-valuenow") or ""
    page.set_viewport_size(NARROW)
    page.wait_for_selector(".tw-root.is-narrow")
    tab(page, "Steps")
    factors = step(page, "split").get_by_label("factors", exact=True)
    expect(factors).to_have_value("(None, 0)")
    picture(page, "view-narrow")
    page.set_viewport_size(WIDE)
    page.wait_for_selector(".tw-root.is-wide")
    check_arrangement(page, height)

    # The zoom and the search of the graph.
    frames(page)
    canvas = page.locator(".tw-graph-canvas")
    before = canvas.get_attribute("transform") or ""
    page.get_by_role("button", name="Zoom in").click()
    expect(canvas).not_to_have_attribute("transform", before)
    zoomed = (canvas.get_attribute("transform") or "").partition("scale")[2]
    page.wait_for_function(ZOOM_IS_KEPT)
    page.get_by_label("Find an operation").click()
    page.keyboard.type("soft")
    expect(page.locator(".tw-found")).to_have_text("1 found")
    save(page)
    page.reload()
    page.wait_for_function(READY, timeout=START)
    page.wait_for_function(LOADED, timeout=START)
    page.wait_for_selector(CONNECTED, timeout=START)
    check_arrangement(page, height)
    expect(page.get_by_label("Find an operation")).to_have_value("soft")
    expect(canvas).to_have_attribute("transform", re.compile(re.escape(f"scale{zoomed}")))
    picture(page, "view-reloaded")

    # The notebook is closed, and opened again from the list of files.
    page.locator(".jp-Notebook").click(position={"x": 5, "y": 5})
    save(page)
    page.locator("#jp-main-dock-panel .lm-TabBar-tabCloseIcon").first.click()
    expect(page.locator(".tw-root")).to_have_count(0)
    page.locator(".jp-DirListing-item", has_text="commands.ipynb").dblclick()
    page.wait_for_selector(CONNECTED, timeout=START)
    check_arrangement(page, height)
