"""Pending steps, edits of the trace, and a kernel that is restarted: nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.lab import IDLE, START, connected
from tests.browser.test_first_minutes import button, picture
from tests.browser.workbench import apply, code, select_loop, step, tab

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

PROGRAM = '''
import tilewright as tw
mod = tw.parse("""
@prim_func
def scale(x: Buffer[(96, 64), f32], y: Out[(96, 64), f32]):
    for i in range(96):
        for j in range(64):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
""")
wb = tw.Workbench(mod, target="cpu")
wb
'''


def test_pending_steps_and_a_restarted_kernel(
    open_notebook: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_notebook("lost.ipynb", [PROGRAM])
    select_loop(page, "j")
    step(page, "split").locator(".tw-step-name").click()
    step(page, "split").get_by_label("factors", exact=True).fill("(None, 16)")
    page.keyboard.press("Enter")
    expect(code(page)).to_contain_text("for j_1 in range(16)")
    select_loop(page, "j_1")
    apply(page, "vectorize")
    expect(code(page)).to_contain_text("vectorized(16)")

    # An edit in the middle of the trace stops there; the later steps are pending.
    tab(page, "Trace")
    line = page.get_by_role("treeitem").filter(has_text="sch.split")
    line.dblclick()
    page.keyboard.press("Control+a")
    page.keyboard.type("j_0, j_1 = sch.split(j, factors=(None, 0))")
    page.keyboard.press("Enter")
    pending = page.locator(".tw-pending")
    expect(pending).to_contain_text("2 pending steps. The first one does not apply:")
    expect(code(page)).to_contain_text("for j in range(64)")
    picture(page, "pending")

    # They survive another step, and go on after the failing one is corrected by keyboard.
    select_loop(page, "i")
    apply(page, "parallel")
    expect(code(page)).to_contain_text("parallel(96)")
    expect(pending).to_contain_text("2 pending steps")
    line.click()
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Step as Python")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("j_0, j_1 = sch.split(j, factors=(None, 32))")
    page.keyboard.press("Enter")
    expect(code(page)).to_contain_text("vectorized(32)")
    expect(code(page)).to_contain_text("parallel(96)")
    expect(pending).to_have_count(0)

    # The user restarts the kernel: the workbench reports it, shows the last state, and saves.
    page.locator('.jp-NotebookPanel-toolbar [data-jp-item-name="restart"]').click()
    page.locator(".jp-Dialog .jp-mod-accept").click()
    expect(page.locator(".tw-connection")).to_contain_text("restarted or has stopped")
    expect(code(page)).to_contain_text("vectorized(32)")
    picture(page, "restarted")
    with page.expect_download() as download:
        page.locator(".tw-connection").get_by_role("button", name="Save").click()
    download.value.save_as(tmp_path / "scale.jsonl")
    assert '"op": "parallel"' in (tmp_path / "scale.jsonl").read_text()

    # The cell runs again, and one click restores all steps.
    page.wait_for_function(IDLE)
    page.locator(".jp-CodeCell .jp-InputArea-editor").first.click()
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(".tw-root[data-connected=false]", state="detached", timeout=START)
    connected(page)
    expect(page.locator(".tw-connection")).to_contain_text("stopped with", timeout=START)
    expect(code(page)).to_contain_text("for j in range(64)")
    picture(page, "restore")
    page.locator(".tw-connection").get_by_role("button", name="Restore").click()
    expect(code(page)).to_contain_text("vectorized(32)")
    expect(code(page)).to_contain_text("parallel(96)")
    expect(page.locator(".tw-connection")).to_have_count(0)
    page.keyboard.press("Control+z")
    expect(code(page)).to_contain_text("for j in range(64)")
    expect(button(page, "Redo")).to_be_visible()
