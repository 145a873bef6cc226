"""The first path through everything: a click on *split* changes the loops that are shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser

PROGRAM = '''
import tilewright as tw
mod = tw.parse("""
n = symbols("n", lower=1)

@prim_func
def matmul(A: Buffer[(n, 256), f32], B: Buffer[(256, 128), f32], C: Out[(n, 128), f32]):
    for i in range(n):
        for j in range(128):
            for k in range(256):
                with block("C"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
""")
wb = tw.Workbench(mod)
wb
'''


@pytest.fixture
def page(lab: Lab, open_notebook: Callable[[str], Page]) -> Page:
    lab.write("matmul.ipynb", [PROGRAM])
    return open_notebook("matmul.ipynb")


def code(page: Page) -> str:
    return page.locator(".tw-code-text").inner_text()


def select_loop(page: Page, name: str) -> None:
    page.locator(f'.tw-knob[data-name="{name}"]').click()
    expect(page.locator(".tw-selected")).to_contain_text(name)


def apply(page: Page, step: str) -> None:
    page.locator(f'.tw-step[data-step="{step}"] .tw-apply').click()


def test_a_click_on_split_changes_the_loops(page: Page) -> None:
    assert "for j in range(128)" in code(page)
    select_loop(page, "j")
    apply(page, "split")
    expect(page.locator(".tw-code-text")).to_contain_text("for j_0 in range(16)")
    expect(page.locator(".tw-code-text")).to_contain_text("for j_1 in range(8)")
    expect(page.locator(".tw-said")).to_contain_text("split")
    page.get_by_role("tab", name="Trace").click()
    expect(page.locator(".tw-trace")).to_contain_text("sch.split(loop=j, factors=(None, 8))")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".tw-code-text")).to_contain_text("for j in range(128)")
    page.get_by_role("button", name="Redo").click()
    expect(page.locator(".tw-code-text")).to_contain_text("for j_1 in range(8)")


def test_a_line_of_code_selects_its_loop(page: Page) -> None:
    line = page.locator(".tw-line", has_text=re.compile(r"for k in range"))
    line.click(position={"x": 160, "y": 8})
    expect(page.locator(".tw-selected")).to_contain_text("k")
    expect(line).to_have_class(re.compile("is-selected"))
