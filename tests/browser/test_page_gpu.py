"""The GPU of the page, as a person uses it: choose it, change a tile, time, compare, and undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.test_first_minutes import button
from tests.browser.workbench import LONG, code, finished, menu_shown, select_loop, step, tab

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

PROGRAM = '''
import tilewright as tw
mod = tw.parse("""
n = symbols("n", lower=1)

@prim_func
def rows(x: Buffer[(n, 16, 64), f32], y: Out[(n, 16), f32]):
    for b in thread(n, "blockIdx.x"):
        for t in thread(16, "threadIdx.x"):
            for k in range(64):
                with block("sum"):
                    vb, vt, vk = spatial(b), spatial(t), reduce(k)
                    with init(): y[vb, vt] = 0.0
                    y[vb, vt] += x[vb, vt, vk]
""")
wb = tw.Workbench(mod, target="webgpu")
wb
'''

COUNT = """() => {
    window.openedGpus = 0;
    const request = navigator.gpu.requestAdapter.bind(navigator.gpu);
    navigator.gpu.requestAdapter = (...options) => {
        window.openedGpus += 1;
        return request(...options);
    };
}"""


def choose(page: Page, key: str) -> None:
    """Choose a target in the dialog by keyboard and pointer."""
    button(page, "Target and sizes").click()
    page.get_by_role("dialog").get_by_label("Target", exact=True).select_option(key)
    expect(button(page, "Target and sizes")).to_contain_text(key)
    page.keyboard.press("Escape")
    finished(page)


def test_choose_change_time_compare_and_undo(open_notebook: Callable[..., Page]) -> None:
    page = open_notebook([PROGRAM])
    page.evaluate(COUNT)
    choose(page, "webgpu browser")
    assert page.evaluate("window.openedGpus") == 0
    tab(page, "WGSL")
    expect(page.locator(".tw-lowered")).to_contain_text("@compute", timeout=LONG)
    tab(page, "Loop IR")

    button(page, "Measure").click()
    finished(page)
    measurement = page.locator(".tw-measurement")
    expect(page.locator(".tw-conditions").first).to_contain_text("timestamp queries")
    expect(measurement).to_contain_text("rows")
    assert page.evaluate("window.openedGpus") == 1

    # Another tile of the reduction.
    select_loop(page, "k")
    split = step(page, "split").first
    menu_shown(page)
    split.locator(".tw-apply").click()
    expect(code(page)).to_contain_text("for k_0 in")
    button(page, "Measure").click()
    finished(page)
    button(page, "Compile").click()
    expect(page.locator(".tw-verdict")).to_contain_text("Matches the interpreter", timeout=LONG)
    expect(page.locator(".tw-records option")).to_have_count(2)

    # Undo shows the measurement of the state before.
    page.keyboard.press("Control+z")
    expect(code(page)).to_contain_text("for k in range(64)")
    finished(page)
    expect(page.locator(".tw-stale:not(.tw-noisy)")).to_have_count(0)
    assert page.evaluate("window.openedGpus") == 1


def test_the_emulator_and_the_machine_are_offered(open_notebook: Callable[..., Page]) -> None:
    page = open_notebook([PROGRAM])
    button(page, "Target and sizes").click()
    target = page.get_by_role("dialog").get_by_label("Target", exact=True)
    texts = target.locator("option").all_inner_texts()
    assert any("this machine's GPU" in text for text in texts)
    assert any("this browser's GPU" in text and "not in this page" not in text for text in texts)
    assert any(text.startswith("simt") for text in texts)
    page.keyboard.press("Escape")
