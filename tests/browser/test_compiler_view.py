"""Composite steps, passes, and excerpts of problems in the workbench."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.test_first_minutes import pictures
from tests.browser.test_matmul import PROGRAM, violations
from tests.browser.workbench import code, select_loop, settle, step, tab, theme

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page


pytestmark = pytest.mark.browser


@pytest.fixture
def page(open_notebook: Callable[..., Page]) -> Page:
    return open_notebook([PROGRAM])


def screenshot(page: Page, name: str) -> None:
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")


def tile(page: Page) -> None:
    """Apply ``tile`` with the keys of its form."""
    select_loop(page, "i")
    step(page, "tile").locator(".tw-step-name").click()
    expect(step(page, "tile").locator(".tw-step-count")).to_have_text("3 steps")
    sizes = step(page, "tile").get_by_label("sizes", exact=True)
    sizes.fill("(4, 8)")
    expect(step(page, "tile").locator(".tw-form-status")).to_have_text("Legal")
    sizes.press("Enter")
    expect(code(page)).to_contain_text("for j_1 in range(8)")


def rows(page: Page) -> Locator:
    """Return the rows of the trace, of which one is current."""
    return page.locator(".tw-trace-line")


def test_composite_step_is_folded_and_unfolded_with_keys(page: Page) -> None:
    tile(page)
    tab(page, "Trace")
    group = page.locator(".tw-trace-group")
    current = page.locator(".tw-trace-line.is-current")
    expect(group.locator(".tw-folded")).to_have_text("⋯ 3 steps")
    folded = rows(page).count()
    rows(page).first.click()
    expect(page.get_by_role("textbox", name="Trace")).to_be_focused()
    page.keyboard.press("End")
    expect(current).to_have_attribute("data-group", "tile")
    page.keyboard.press("ArrowRight")
    expect(rows(page)).to_have_count(folded + 3)
    expect(rows(page).last).to_contain_text("sch.reorder(")
    screenshot(page, "trace-unfolded")
    page.keyboard.press("ArrowDown")
    expect(rows(page).nth(folded)).to_have_class(re.compile("is-current"))
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(rows(page)).to_have_count(folded)
    group.locator(".tw-folded").click()
    expect(rows(page)).to_have_count(folded + 3)
    tab(page, "History")
    expect(page.locator(".tw-history-row.is-head")).to_contain_text("tile3 steps")
    screenshot(page, "history")


def test_composite_step_is_run_again_and_ungrouped(page: Page) -> None:
    tile(page)
    tab(page, "Trace")
    group = page.locator(".tw-trace-group")
    group.hover()
    group.get_by_role("button", name="Edit").click()
    sizes = page.locator(".tw-group-form").get_by_label("sizes")
    expect(sizes).to_be_focused()
    sizes.fill("(2, 16)")
    screenshot(page, "trace-edit")
    page.keyboard.press("Enter")
    expect(code(page)).to_contain_text("for j_1 in range(16)")

    # The buttons of the current row are reached by keyboard.
    expect(page.get_by_role("textbox", name="Trace")).to_be_focused()
    page.keyboard.press("End")
    expect(group).to_have_class(re.compile("is-current"))
    page.keyboard.press("Tab")
    expect(group.get_by_role("button", name="Edit")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(group).to_have_count(0)
    expect(rows(page).last).to_contain_text("sch.reorder(")
    expect(page.get_by_role("textbox", name="Trace")).to_be_focused()


def test_a_step_is_edited_in_the_text(page: Page) -> None:
    tile(page)
    tab(page, "Trace")
    page.get_by_role("button", name="Unfold all").click()
    split = rows(page).filter(has_text="sch.split(loop=j").last
    field = page.get_by_role("textbox", name="Step as Python")
    split.dblclick()
    expect(field).to_be_focused()
    edit_end(page, " 2))")
    screenshot(page, "trace-step")
    page.keyboard.press("Control+z")
    page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    expect(split).to_contain_text("(None, 8))")
    expect(code(page)).to_contain_text("for j_1 in range(8)")
    page.keyboard.press("Enter")
    expect(field).to_be_focused()
    edit_end(page, " 4))")
    page.keyboard.press("Enter")
    expect(code(page)).to_contain_text("for j_1 in range(4)")
    expect(page.get_by_role("textbox", name="Trace")).to_be_focused()


def edit_end(page: Page, text: str) -> None:
    """Replace the last letters of the step that is edited."""
    for _ in text:
        page.keyboard.press("Backspace")
    page.keyboard.type(text)


def test_text_after_each_pass(page: Page) -> None:
    tab(page, "Passes")
    text = page.locator(".tw-lowered .tw-code-text")
    expect(text).to_contain_text("in parallel(")
    picker = page.get_by_label("Stage", exact=True)
    picker.select_option("realize_blocks")
    expect(text).to_have_attribute("aria-label", "realize_blocks of matmul")
    expect(text).not_to_contain_text("spatial(")
    page.get_by_role("button", name="Diff").click()
    removed = page.locator(".tw-lowered .cm-deletedLine")
    expect(removed.first).to_contain_text("spatial(")
    expect(page.locator(".cm-mergeView")).to_have_count(0)
    page.get_by_role("button", name="Next change").click()
    expect(removed.first).to_be_in_viewport()
    screenshot(page, "passes-diff")
    text.click(position={"x": 200, "y": 8})
    page.keyboard.press("e")
    expect(page.locator(".tw-lowered .cm-collapsedLines")).to_have_count(0)
    page.keyboard.press("e")
    page.keyboard.press("n")
    page.keyboard.press("p")
    expect(text).to_be_focused()
    page.keyboard.press("]")
    expect(picker).to_have_value("compact_buffers")
    page.keyboard.press("[")
    expect(picker).to_have_value("realize_blocks")
    page.keyboard.press("d")
    tab(page, "LLVM")
    expect(text).to_contain_text("define", timeout=60_000)
    page.get_by_role("button", name="Next stage").click()
    expect(picker).to_have_value("llvm_optimized")
    expect(text).to_contain_text("define", timeout=60_000)
    tab(page, "Assembly")
    expect(text).to_have_attribute("aria-label", "assembly of matmul")
    lines = page.locator(".tw-lowered .cm-content .cm-line")
    labels = lines.filter(has_text=re.compile(r"^matmul\S*:$"))
    expect(labels.first).to_be_in_viewport(timeout=60_000)
    screenshot(page, "assembly")


def test_both_texts_of_a_pass_are_beside_each_other_if_they_fit(page: Page) -> None:
    page.set_viewport_size({"width": 2000, "height": 1050})
    tab(page, "Passes")
    page.get_by_label("Stage", exact=True).select_option("realize_blocks")
    page.get_by_role("button", name="Diff").click()
    before = page.get_by_role("textbox", name="realize_blocks of matmul, before")
    after = page.get_by_role("textbox", name="realize_blocks of matmul, after")
    expect(before).to_contain_text("spatial(")
    expect(after).not_to_contain_text("spatial(")
    settle(lambda: box(before)["y"] - box(after)["y"], pytest.approx(0, abs=1))
    assert box(before)["x"] < box(after)["x"]
    pictures(page, "passes-beside")
    before.locator(".cm-line").first.click()
    page.keyboard.press("Control+f")
    page.keyboard.type("spatial")
    expect(page.locator(".tw-find [role=status]")).not_to_have_text("")
    page.keyboard.press("Escape")
    expect(before).to_be_focused()


def test_blocked_step_shows_the_part_at_fault(page: Page) -> None:
    select_loop(page, "i")
    problem = step(page, "vectorize")
    expect(problem.locator(".tw-requires")).to_contain_text("Requires")
    excerpt = problem.locator(".tw-excerpt")
    expect(excerpt).to_contain_text("for i in range(n):")
    expect(excerpt.locator("mark").first).to_be_visible()
    excerpt.hover()
    underline = page.locator(".tw-underline")
    expect(underline).to_have_count(1)
    screenshot(page, "excerpt")
    line = page.locator(".tw-code .cm-line", has_text=re.compile(r"for i in range"))
    settle(lambda: box(underline)["y"] - box(line)["y"], pytest.approx(0, abs=2))
    page.locator(".tw-brand").hover()
    expect(underline).to_have_count(0)
    excerpt.click()
    expect(underline).to_have_count(1)
    expect(page.locator(".tw-selected")).to_contain_text("i")


def box(locator: Locator) -> dict[str, float]:
    found = locator.bounding_box()
    assert found is not None
    return {"x": found["x"], "y": found["y"]}


def test_failed_step_is_a_problem_with_an_excerpt(page: Page) -> None:
    select_loop(page, "j")
    step(page, "split").locator(".tw-step-name").click()
    factors = step(page, "split").get_by_label("factors", exact=True)
    factors.fill("(2, 3)")
    factors.press("Enter")
    tab(page, "Problems")
    problem = page.locator(".tw-problem")
    expect(problem).to_contain_text("Illegal step")
    expect(problem.locator(".tw-excerpt")).to_contain_text("for j in range(128):")
    expect(problem.locator("details")).not_to_have_attribute("open", "")
    screenshot(page, "problems")


@pytest.mark.parametrize("width", [1500, 800])
def test_accessibility_in_both_themes(page: Page, root: Path, width: int) -> None:
    page.add_script_tag(path=root / "extensions" / "node_modules" / "axe-core" / "axe.min.js")
    tile(page)
    page.set_viewport_size({"width": width, "height": 1050})
    narrow = page.locator(".tw-root.is-narrow")
    expect(narrow).to_have_count(1 if width < 1000 else 0)
    for name in ("JupyterLab Dark", "JupyterLab Light"):
        theme(page, name)
        short = f"{name.split()[-1].lower()}-{width}"
        if width < 1000:
            tab(page, "More")
        tab(page, "Trace")
        page.get_by_role("button", name="Unfold all").click()
        assert violations(page) == [], f"trace, {name}"
        screenshot(page, f"trace-{short}")
        if width < 1000:
            tab(page, "Loops")
        tab(page, "Passes")
        expect(page.locator(".tw-lowered .tw-code-text")).to_contain_text("for i_0 in")
        assert violations(page) == [], f"passes, {name}"
        screenshot(page, f"passes-{short}")
        tab(page, "Loop IR")
        if width < 1000:
            tab(page, "Steps")
        screenshot(page, f"steps-{short}")
        assert violations(page) == [], f"steps, {name}"
        page.locator(".tw-excerpt").first.click()
        expect(page.locator(".tw-underline").first).to_be_visible()
