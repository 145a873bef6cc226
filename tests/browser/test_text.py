"""The text of programs: search, copy, folds, sticky headers, wrapped lines, and its menu."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import pytest
from playwright.sync_api import expect

from tests.browser.test_first_minutes import picture, pictures
from tests.browser.test_matmul import violations
from tests.browser.workbench import code, frames, settle, tab, theme

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

PROGRAM = '''
import tilewright as tw
stages = 12
text = "@prim_func\\ndef chain(A: Buffer[(64, 32), f32], T11: Out[(64, 32), f32]):\\n"
text += "".join(f"    T{k} = alloc((64, 32), f32)\\n" for k in range(stages - 1))
text += "    for i in range(64):\\n        for j in range(32):\\n"
for k in range(stages):
    source = "A" if k == 0 else f"T{k - 1}"
    text += f"""            with block("b{k}"):
                vi, vj = spatial(i), spatial(j)
                T{k}[vi, vj] = {source}[vi, vj] * {k}.5 + {k}.0
"""
wb = tw.Workbench(tw.parse(text))
wb
'''

COPIED = """() => addEventListener("copy", (event) => {
    window.copied = event.clipboardData.getData("text/plain");
})"""
"""Keep the text that is copied in ``window.copied``."""

OVERFLOW = """() => {
    const box = document.querySelector(".tw-scroller");
    return box.scrollWidth - box.clientWidth;
}"""
"""The number of pixels by which the text is wider than its part of the page."""


@pytest.fixture
def page(open_notebook: Callable[..., Page]) -> Page:
    page = open_notebook([PROGRAM])
    page.set_viewport_size({"width": 1440, "height": 900})
    frames(page)
    return page


def line(page: Page, text: str) -> Locator:
    return page.locator(".tw-code .cm-line", has_text=text).first


def click(page: Page, text: str, button: Literal["left", "right"] = "left") -> None:
    """Click the first letters of a line, which are visible however long the line is."""
    word = line(page, text).locator(".tw-tok-keyword, .tw-tok-name").first
    word.click(button=button)


def scroll(page: Page, pixels: int) -> None:
    page.locator(".tw-code").hover()
    page.mouse.wheel(0, pixels)


def test_search_in_the_text(page: Page) -> None:
    click(page, "for i in")
    page.keyboard.press("Control+f")
    field = page.get_by_role("textbox", name="Find in the text")
    expect(field).to_be_focused()
    expect(page.locator(".jp-DocumentSearch-overlay")).to_have_count(0)
    page.keyboard.type("T3[")
    status = page.locator(".tw-find [role=status]")
    expect(status).to_have_text("2")
    page.keyboard.press("Enter")
    expect(status).to_have_text("1 of 2")
    page.keyboard.press("Enter")
    expect(status).to_have_text("2 of 2")
    expect(page.locator(".cm-searchMatch-selected")).to_be_in_viewport()
    picture(page, "text-search")
    page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    expect(code(page)).to_be_focused()


def test_text_is_selected_and_copied_with_its_indentation(page: Page) -> None:
    page.evaluate(COPIED)
    click(page, "for j in")
    page.keyboard.press("Home")
    page.keyboard.press("Home")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Control+c")
    settle(lambda: page.evaluate("window.copied ?? null"), "        for j in range(32):\n")
    width = "(line) => line.querySelector('.tw-indent').getBoundingClientRect().width"
    indents = [line(page, text).evaluate(width) for text in ("for i in", "for j in")]
    zero = line(page, "for i in").evaluate(
        """(line) => {
            const context = document.createElement("canvas").getContext("2d");
            context.font = getComputedStyle(line).font;
            return context.measureText("0").width;
        }"""
    )
    assert indents == pytest.approx([2 * zero, 4 * zero], abs=0.5)


def test_fold_and_unfold(page: Page) -> None:
    click(page, "for i in")
    page.keyboard.press("-")
    folded = page.locator(".tw-folded")
    expect(folded).to_have_text("⋯ 37 lines")
    expect(page.locator('.tw-marker[data-name="j"]')).to_have_count(0)
    picture(page, "text-folded")
    page.keyboard.press("+")
    expect(folded).to_have_count(0)
    expect(page.locator('.tw-marker[data-name="j"]')).to_be_visible()
    page.get_by_role("button", name="Fold bodies", exact=True).click()
    expect(folded).to_have_text(re.compile("lines"))
    folded.click()
    page.get_by_role("button", name="Unfold bodies", exact=True).click()
    expect(folded).to_have_count(0)


def test_a_fold_survives_a_step(page: Page) -> None:
    click(page, 'with block("b0")')
    page.keyboard.press("-")
    expect(page.locator(".tw-folded")).to_have_text("⋯ 2 lines")
    page.locator('.tw-marker[data-name="i"]').click()
    page.locator('.tw-step[data-step="split"] .tw-apply').click()
    expect(code(page)).to_contain_text("for i_1 in")
    expect(page.locator(".tw-announcement")).to_contain_text("split")


def test_headers_of_enclosing_loops_stay_visible(page: Page) -> None:
    sticky = page.locator(".tw-sticky-row")
    expect(sticky).to_have_count(0)
    scroll(page, 700)
    expect(sticky.filter(has_text="for i in range(64):")).to_be_visible()
    expect(sticky.filter(has_text="for j in range(32):")).to_be_visible()
    pictures(page, "text-sticky")
    sticky.filter(has_text="for j in").click()
    expect(page.get_by_role("heading", name="loop j", exact=True)).to_be_visible()
    expect(line(page, "for j in")).to_be_in_viewport()


def test_lines_are_wrapped(page: Page) -> None:
    page.set_viewport_size({"width": 1000, "height": 900})
    button = page.get_by_role("button", name="Wrap lines").last
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    page.wait_for_function(f"({OVERFLOW})() <= 0")
    click(page, "for i in")
    page.keyboard.press("w")
    expect(button).to_have_attribute("aria-pressed", "false")


def test_menu_of_the_text(page: Page) -> None:
    click(page, "for i in", "right")
    menu = page.get_by_role("menu", name="Text")
    expect(menu).to_be_visible()
    expect(page.locator(".lm-Menu")).to_have_count(0)
    picture(page, "text-menu")
    expect(menu.get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    expect(code(page)).to_be_focused()
    click(page, "for j in", "right")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="loop j", exact=True)).to_be_visible()
    click(page, "for i in", "right")
    menu.get_by_role("menuitemcheckbox", name="Wrap lines").click()
    button = page.get_by_role("button", name="Wrap lines").last
    expect(button).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("w")


def test_a_part_is_selected_at_the_cursor(page: Page) -> None:
    click(page, "for i in")
    expect(page.get_by_role("heading", name="loop i", exact=True)).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="loop j", exact=True)).to_be_visible()
    expect(code(page)).to_be_focused()
    page.keyboard.type("x")
    expect(line(page, "for j in")).to_have_text("        for j in range(32):")


def test_search_in_generated_code(page: Page) -> None:
    tab(page, "LLVM")
    text = page.locator(".tw-lowered .tw-code-text")
    expect(text).to_contain_text("define", timeout=60_000)
    text.click(position={"x": 200, "y": 30})
    page.keyboard.press("Control+f")
    page.keyboard.type("define ")
    page.keyboard.press("Enter")
    expect(page.locator(".tw-find [role=status]")).to_have_text(re.compile(r"^\d of 2$"))
    diff = page.get_by_role("button", name="Diff", exact=True)
    expect(diff).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("Escape")
    page.keyboard.press("-")
    expect(page.locator(".tw-lowered .tw-folded")).to_be_visible()
    picture(page, "text-llvm")
    page.get_by_role("button", name="Next stage").click()
    expect(text).to_have_attribute("aria-label", "llvm_optimized of chain")


def test_accessibility(page: Page, root: Path) -> None:
    page.add_script_tag(path=root / "extensions" / "node_modules" / "axe-core" / "axe.min.js")
    click(page, "for i in")
    page.keyboard.press("Control+f")
    page.keyboard.type("T3")
    for name in ("JupyterLab Dark", "JupyterLab Light"):
        theme(page, name)
        assert violations(page) == [], f"search, {name}"
    page.keyboard.press("Escape")
    scroll(page, 700)
    expect(page.locator(".tw-sticky-row").first).to_be_visible()
    assert violations(page) == [], "sticky headers"
    page.mouse.wheel(0, -2000)
    click(page, "for i in", "right")
    assert violations(page) == [], "menu"
    page.keyboard.press("Escape")
    page.keyboard.press("-")
    assert violations(page) == [], "folded"
