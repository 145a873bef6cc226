"""Loops of the graph in the workbench: nested regions, carried values, and their bindings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.workbench import apply, code

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

PROGRAM = '''
import tilewright as tw
mod = tw.parse("""
n, t, u, k = symbols("n t u k", lower=0)

@graph_func
def main(x: Tensor[(n, 4), f32]):
    @loop(k, count=3)
    def y(c: Tensor[(t, 4), f32] = x) -> Tensor[(u, 4), f32]:
        r = relu(c)
        d = concat(c, r, axis=0)
        return d
    z = exp(y)
    return z
""")
wb = tw.Workbench(mod)
wb
'''


@pytest.fixture
def page(open_notebook: Callable[..., Page]) -> Page:
    opened = open_notebook([PROGRAM])
    opened.locator(".tw-root").get_by_role("button", name="Graph", exact=True).click()
    return opened


def test_a_loop_is_a_region_that_opens_and_folds(page: Page) -> None:
    carried = page.locator(".tw-card-carried")
    expect(carried).to_contain_text("c  (t, 4) f32, next: d")
    page.locator(".tw-crumb", has_text="loop y").click()
    folded = page.locator(".tw-card-group")
    expect(folded).to_contain_text("loop y")
    expect(carried).to_have_count(0)
    folded.click()
    expect(carried).to_be_visible()


def test_a_binding_in_a_loop_is_selected_and_scheduled(page: Page) -> None:
    card = page.locator('.tw-card[data-name="r"]')
    card.click()
    expect(card).to_have_class(re.compile("is-selected"))
    expect(page.locator(".tw-selected")).to_contain_text("r")
    expect(page.locator(".tw-inspector")).to_contain_text("y")
    page.locator(".tw-card-carried").click()
    expect(page.locator(".tw-selected")).to_contain_text("c")
    card.click()
    apply(page, "legalize")
    expect(code(page)).to_contain_text("call_tir(relu, c)")
