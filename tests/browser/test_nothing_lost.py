"""Pending steps, edits of the trace, a restarted or killed kernel, and a saved notebook."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser.lab import FORGET, IDLE, LOADED, READY, START, WORKSPACES
from tests.browser.test_first_minutes import (
    KERNEL,
    PROGRAM as MODEL,
    button,
    measure,
    picture,
    rule,
)
from tests.browser.test_matmul import violations
from tests.browser.workbench import LONG, apply, code, save, select_loop, step, tab

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page

    from tests.browser.lab import Lab

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


COMPILES = """() => /scheduled|lowering|compiling/.test(
    document.querySelector(".tw-job-text")?.textContent ?? ""
)"""
"""Whether a program is being compiled."""


def run_cell(page: Page) -> None:
    """Run the first cell by keyboard, and wait for the new workbench."""
    page.wait_for_function(IDLE, timeout=START)
    page.locator(".jp-CodeCell .jp-InputArea-editor").first.click()
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(".tw-root[data-connected=false]", state="detached", timeout=START)
    page.wait_for_selector(".tw-root[data-connected=true]", timeout=START)


def test_pending_steps_and_a_restarted_kernel(
    open_notebook: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_notebook([PROGRAM], "lost.ipynb")
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
    line = page.locator(".tw-trace-line").filter(has_text="sch.split")
    line.dblclick()
    expect(page.get_by_label("Step as Python")).to_be_focused()
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
    run_cell(page)
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


def test_killed_kernel(open_notebook: Callable[..., Page]) -> None:
    page = open_notebook([f"{PROGRAM}\nimport os; print(os.getpid()); wb"], "killed.ipynb")
    select_loop(page, "i")
    apply(page, "parallel")
    expect(code(page)).to_contain_text("parallel(96)")
    os.kill(int(page.locator(".jp-OutputArea-output pre").first.inner_text()), signal.SIGKILL)

    # JupyterLab reports that it starts the kernel again; the workbench shows the last state.
    page.locator(".jp-Dialog button", has_text="Ok").click(timeout=START)
    bar = page.locator(".tw-connection")
    expect(bar).to_contain_text("restarted or has stopped")
    expect(bar).to_contain_text("run the cells up to this one again, then restore the steps")
    expect(code(page)).to_contain_text("parallel(96)")
    picture(page, "killed")
    page.locator('.tw-marker[data-name="j"]').click()
    expect(page.locator(".tw-announcement")).to_contain_text("Not possible without the Jupyter")

    run_cell(page)
    expect(code(page)).to_contain_text("for i in range(96)")
    bar.get_by_role("button", name="Restore").click()
    expect(code(page)).to_contain_text("parallel(96)")


def test_kernel_killed_during_a_compile(open_notebook: Callable[..., Page]) -> None:
    cold = 'import os; os.environ["TILEWRIGHT_CACHE"] = os.path.abspath("killed-cache")'
    cell = f"{cold}\nprint(os.getpid())\n{MODEL}"
    page = open_notebook([cell], "compile.ipynb")
    page.set_viewport_size({"width": 1440, "height": 900})
    pid = int(page.locator(".jp-OutputArea-output pre").first.inner_text())
    measure(page)
    page.locator(".tw-kernels .tw-link", has_text=KERNEL).click()
    rule(page).get_by_role("button", name="Take the default schedule").click()
    expect(rule(page)).to_contain_text("Has the steps of its default rule", timeout=LONG)
    tab(page, "History")
    page.locator(".tw-note textarea").click()
    page.keyboard.type("before the crash")
    button(page, "Measure").click()
    page.wait_for_function(COMPILES, timeout=LONG)  # in each frame, because it is short
    os.kill(pid, signal.SIGKILL)

    # The loss is shown at once; the job has ended, and program, times, and notes remain.
    page.locator(".jp-Dialog button", has_text="Ok").click(timeout=START)
    bar = page.locator(".tw-connection")
    expect(bar).to_contain_text("restarted or has stopped")
    expect(page.locator(".tw-job")).to_have_count(0)
    expect(code(page)).to_contain_text(f"def {KERNEL}(")
    expect(page.locator(".tw-history-note")).to_have_text("before the crash")
    tab(page, "Kernels")
    expect(page.locator(".tw-kernels")).to_contain_text("µs")
    picture(page, "killed-compile")

    # The cell runs again, one click restores steps and note, and the program compiles.
    run_cell(page)
    bar.get_by_role("button", name="Restore").click()
    expect(page.locator(".tw-picker")).to_contain_text(KERNEL, timeout=LONG)
    tab(page, "History")
    expect(page.locator(".tw-history-note")).to_have_text("before the crash")
    measure(page)


@pytest.fixture
def saved(open_notebook: Callable[..., Page], lab: Lab) -> str:
    """A notebook that was saved after a measurement and some steps, without its kernel."""
    page = open_notebook([MODEL], "saved.ipynb")
    measure(page)
    page.locator(".tw-kernels .tw-link", has_text=KERNEL).click()
    rule(page).get_by_role("button", name="Take the default schedule").click()
    expect(rule(page)).to_contain_text("Has the steps of its default rule", timeout=LONG)
    tab(page, "History")
    page.locator(".tw-note textarea").click()
    page.keyboard.type("the default rule, as a start")
    page.keyboard.press("Tab")
    expect(page.locator(".tw-history-note")).to_have_text("the default rule, as a start")
    save(page)
    text = (lab.root / "saved.ipynb").read_text()
    nbformat.validate(nbformat.reads(text, as_version=4))
    page.goto(f"{lab.url}/api")
    lab.end_kernels()
    return "saved.ipynb"


def test_saved_notebook(saved: str, lab: Lab, context: BrowserContext, root: Path) -> None:
    page = context.new_page()
    page.add_init_script(f"({FORGET})()")  # only the file contains the steps
    page.goto(f"{lab.url}/lab/workspaces/{next(WORKSPACES)}/tree/{saved}")
    page.wait_for_function(READY, timeout=START)
    page.wait_for_function(LOADED, timeout=START)
    bar = page.locator(".tw-connection")
    expect(bar).to_contain_text("was saved with this state", timeout=START)
    expect(bar).to_contain_text("run the cells up to this one again, then restore the steps")
    expect(page.get_by_text("model not found")).to_have_count(0)

    # Loops, trace, times, and graph of the last state.
    expect(code(page)).to_contain_text(f"def {KERNEL}(")
    expect(code(page)).to_contain_text("parallel")
    expect(page.locator(".tw-marker").first).to_be_visible()
    tab(page, "Trace")
    expect(page.locator(".tw-trace-group").filter(has_text="schedule_kernel")).to_be_visible()
    tab(page, "History")
    expect(page.locator(".tw-history-note")).to_have_text("the default rule, as a start")
    expect(page.locator(".tw-note textarea")).to_have_attribute("readonly", "")
    picture(page, "saved-note")
    tab(page, "Kernels")
    expect(page.locator(".tw-kernels")).to_contain_text(KERNEL)
    expect(page.locator(".tw-kernels")).to_contain_text("µs")
    for width in (1440, 1000, 760):
        page.set_viewport_size({"width": width, "height": 900})
        picture(page, f"saved-{width}")
    page.set_viewport_size({"width": 1440, "height": 900})
    button(page, "Graph").click()
    expect(page.get_by_role("treeitem", name="softmax").first).to_contain_text("%")
    picture(page, "saved-graph")
    page.keyboard.press("Escape")
    page.add_script_tag(path=root / "extensions" / "node_modules" / "axe-core" / "axe.min.js")
    assert violations(page) == []

    # It is saved once more without a kernel, and the steps go on in a new kernel.
    button(page, "Measure").click()
    expect(page.locator(".tw-announcement")).to_contain_text("Not possible without the Jupyter")
    save(page)
    run_cell(page)
    expect(bar).to_contain_text("stopped with")
    bar.get_by_role("button", name="Restore").click()
    expect(page.locator(".tw-picker")).to_contain_text(KERNEL, timeout=LONG)
    tab(page, "History")
    expect(page.locator(".tw-history-note")).to_have_text("the default rule, as a start")
    page.close()
