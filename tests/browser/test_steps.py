"""Previews, steps that are not suggested, and several pages of one session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.lab import START, connected
from tests.browser.test_matmul import PROGRAM
from tests.browser.workbench import apply, code, path, save, select_loop, step, tab

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import BrowserContext, Page

    from tests.browser.lab import Lab

pytestmark = pytest.mark.browser


@pytest.fixture
def page(open_notebook: Callable[..., Page]) -> Page:
    return open_notebook([PROGRAM])


def test_a_preview_follows_the_form_and_changes_nothing(page: Page) -> None:
    select_loop(page, "j")
    split = step(page, "split")
    split.locator(".tw-step-name").click()
    split.get_by_text("Preview", exact=True).click()
    preview = split.locator(".tw-preview")
    expect(preview).to_contain_text("for j_1 in range(8):")
    expect(preview).to_contain_text("for j in range(128):")
    field = split.get_by_label("factors", exact=True)
    field.fill("(None, 32)")
    expect(preview).to_contain_text("for j_1 in range(32):")
    expect(code(page)).to_contain_text("for j in range(128):")
    expect(page.locator(".tw-status")).to_contain_text("0 steps")
    field.fill("(2, 2)")
    expect(split.locator(".tw-form-status")).to_have_text("Illegal")
    expect(split.locator(".tw-preview")).to_have_count(0)
    field.fill("(None, 32)")
    field.press("Enter")
    expect(code(page)).to_contain_text("for j_1 in range(32):")


def test_every_step_is_reachable(page: Page) -> None:
    select_loop(page, "k")
    page.locator(".tw-other-steps > summary").click()
    annotate = step(page, "annotate")
    annotate.locator(".tw-step-name").click()
    expect(annotate.locator(".tw-apply")).to_have_count(0)
    annotate.get_by_label("key", exact=True).fill("'purpose'")
    annotate.get_by_label("value", exact=True).fill("5")
    expect(annotate.locator(".tw-form-status")).to_have_text("Legal")
    annotate.get_by_role("button", name="Apply annotate").click()
    expect(code(page)).to_contain_text("purpose")
    tab(page, "History")
    expect(page.locator(".tw-history")).to_contain_text("annotate")
    expect(page.locator(".tw-history")).to_contain_text("purpose")


def test_two_pages_of_one_session(page: Page, context: BrowserContext, lab: Lab) -> None:
    """Each page has its own selection; both show the program at the head."""
    select_loop(page, "i")
    save(page)
    assert "widget-view" in (lab.root / path(page)).read_text()
    other = context.new_page()
    other.set_default_timeout(START)
    try:
        other.goto(f"{lab.url}/lab/workspaces/second/tree/{path(page)}")
        connected(other)
        select_loop(other, "j")
        expect(page.locator(".tw-selected")).to_contain_text("loop")
        expect(page.locator(".tw-selected .tw-mono")).to_have_text("i")
        apply(other, "split")
        expect(code(other)).to_contain_text("for j_1 in range(")
        expect(code(page)).to_contain_text("for j_1 in range(")
        expect(page.locator(".tw-announcement")).to_contain_text("another page moved the head")
        expect(page.locator(".tw-selected .tw-mono")).to_have_text("i")
        apply(page, "split")
        expect(code(other)).to_contain_text(re.compile(r"for i_1 in range\("))
        page.keyboard.press("Control+z")
        expect(code(other)).not_to_contain_text("for i_1 in range(")
    finally:
        other.close()
