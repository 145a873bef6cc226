"""Tensorize in the workbench: mismatches, fixes and the match."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.workbench import code, select_loop, step, tab

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page


pytestmark = pytest.mark.browser

PROGRAM = '''
import tilewright as tw
mod = tw.parse("""
M = symbols("M", lower=1)

@prim_func
def product(A: Buffer[(M,), f32], B: Buffer[(16,), f32], C: InOut[(M, 16), f32]):
    for i in range(M):
        for j in range(16):
            with block("product"):
                vi, vj = spatial(i), spatial(j)
                C[vi, vj] += A[vi] * B[vj]
""")
wb = tw.Workbench(mod, target=tw.Target("cpu", features=("avx2",)))
wb
'''

TILE = "avx2.fma.f32.6x16"


@pytest.fixture
def page(open_notebook: Callable[..., Page]) -> Page:
    return open_notebook([PROGRAM])


def test_mismatch_is_displayed_and_fixed(page: Page) -> None:
    select_loop(page, "i")
    form = step(page, "tensorize")
    expect(form).to_contain_text("Illegal")
    form.locator(".tw-step-name").click()
    match = form.locator(".tw-match")
    expect(match).to_contain_text(TILE)
    expect(match).to_contain_text("extent")
    expect(match).to_be_in_viewport()
    lines = match.locator("tr.is-different")
    expect(lines).to_have_count(1)
    expect(lines.locator("td").first).to_contain_text("for i in range(M):")
    expect(lines.locator("td").last).to_contain_text("for i in unrolled(6):")
    expect(lines.locator("sup")).to_have_text("1")
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/tensorize-illegal.png")
    form.locator(".tw-fix").first.click()
    expect(code(page)).to_contain_text("for i_1 in range(6)")

    select_loop(page, "i_1")
    form = step(page, "tensorize")
    form.locator(".tw-step-name").click()
    expect(form.locator(".tw-match")).to_contain_text("The loops match the intrinsic.")
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/tensorize-fits.png")
    form.get_by_role("button", name="Apply tensorize").click()
    expect(code(page)).to_contain_text(f'with block("product_o", intrinsic="{TILE}")')
    tab(page, "Trace")
    expect(page.locator(".tw-trace")).to_contain_text(f'intrinsic="{TILE}"'.replace('"', "'"))
