"""A GPU kernel in the emulator: a race at loaded indices, a rejected axis, and PTX text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.workbench import apply, code, select_loop, step, tab

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page


pytestmark = pytest.mark.browser

PROGRAM = '''
import tilewright as tw
mod = tw.parse("""
n = symbols("n", lower=1)

@prim_func
def doubled(at: Buffer[(64,), i32], x: Buffer[(n, 64), f32], y: InOut[(n, 64), f32]):
    for b in thread(n, "blockIdx.x"):
        for t in thread(64, "threadIdx.x"):
            with block("load"):
                vb, vt = spatial(b), spatial(t)
                with clamped(at[vt], 0, 2) as p:
                    y[vb, vt] = y[vb, p] + x[vb, vt]

@prim_func
def scaled(x: Buffer[(n, 64), f32], y: Out[(n, 64), f32]):
    for i in range(n):
        for j in range(64):
            with block("scaled"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
""")
wb = tw.Workbench(mod, target="simt")
wb
'''


CANCEL_IS_VISIBLE = """() => {
    const box = document.querySelector(".tw-job button")?.getBoundingClientRect();
    if (!box) return false;
    const { left, right, top, bottom } = box;
    return left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight;
}"""


@pytest.fixture
def page(open_notebook: Callable[..., Page]) -> Page:
    return open_notebook([PROGRAM])


def test_race_invalid_axis_and_ptx(page: Page) -> None:
    root = page.locator(".tw-root")
    root.get_by_role("button", name="Compile").click()
    tab(page, "Problems")
    problem = page.locator(".tw-problem")
    expect(problem).to_contain_text("Data race", timeout=60_000)
    expect(problem).to_contain_text(
        re.compile(r"by thread \d+ of block 0 races with the (read|write)")
    )
    expect(problem).to_contain_text("store of 'load' of kernel 'doubled'")
    expect(problem.locator("pre")).to_be_hidden()

    page.locator(".tw-picker").select_option("scaled")
    select_loop(page, "i")
    apply(page, "bind")
    select_loop(page, "j")
    bind = step(page, "bind").first
    bind.locator(".tw-step-name").click()
    bind.get_by_label("thread", exact=True).fill("threadIdx.q")
    expect(bind).to_contain_text("no thread axis 'threadIdx.q'; thread axes are blockIdx.x")
    expect(bind.locator(".tw-form-status")).to_have_text("Illegal")
    bind.get_by_label("thread", exact=True).fill("threadIdx.x")
    expect(bind.locator(".tw-form-status")).to_have_text("Legal")
    bind.locator(".tw-form button[type=submit]").click()
    expect(code(page)).to_contain_text('for j in thread(64, "threadIdx.x")')
    root.get_by_role("button", name="Compile").click()
    expect(page.locator(".tw-verdict")).to_contain_text("Matches the interpreter", timeout=60_000)
    tab(page, "PTX")
    expect(page.locator(".tw-lowered")).to_contain_text(".visible .entry scaled", timeout=60_000)


def test_narrow_layout_keeps_all_controls_reachable(page: Page) -> None:
    page.set_viewport_size({"width": 800, "height": 1050})
    expect(page.locator(".tw-root.is-narrow")).to_be_visible()
    page.get_by_role("button", name="Compile").click()
    page.wait_for_function(CANCEL_IS_VISIBLE)  # in each frame, because the job may be short
    tab(page, "More")
    tab(page, "Problems")
    expect(page.locator(".tw-problem")).to_contain_text("Data race", timeout=60_000)
