"""Scheduling, compiling and measuring one kernel in the workbench."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.workbench import (
    LONG,
    apply,
    code,
    finished,
    path,
    save,
    select_loop,
    step,
    tab,
    theme,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.lab import Lab

pytestmark = pytest.mark.browser

PROGRAM = '''
import tilewright as tw
mod = tw.parse("""
n = symbols("n", lower=1)

@prim_func
def matmul(A: Buffer[(n, 64), f32], B: Buffer[(64, 128), f32], C: Out[(n, 128), f32]):
    for i in range(n):
        for j in range(128):
            for k in range(64):
                with block("C"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
""")
wb = tw.Workbench(mod)
wb
'''


AXE = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21aa"],
    # Neither the elements without a violation nor the selectors of elements are reported.
    "resultTypes": ["violations"],
    "selectors": False,
}
"""The options of axe."""


@pytest.fixture
def page(open_notebook: Callable[..., Page]) -> Page:
    return open_notebook([PROGRAM])


def test_split_changes_the_loops(page: Page) -> None:
    expect(code(page)).to_contain_text("for j in range(128)")
    select_loop(page, "j")
    apply(page, "split")
    expect(code(page)).to_contain_text("for j_0 in range(")
    expect(code(page)).to_contain_text("for j_1 in range(")
    expect(page.locator(".tw-announcement")).to_contain_text("split")
    tab(page, "Trace")
    expect(page.locator(".tw-trace")).to_contain_text("sch.split(loop=j, factors=(None, ")
    page.get_by_role("button", name="Undo").click()
    expect(code(page)).to_contain_text("for j in range(128)")
    page.get_by_role("button", name="Redo").click()
    expect(code(page)).to_contain_text("for j_1 in range(")


def test_click_on_a_line_selects_its_loop(page: Page) -> None:
    line = page.locator(".tw-code .cm-line", has_text=re.compile(r"for k in range"))
    line.click(position={"x": 160, "y": 8})
    expect(page.locator(".tw-selected")).to_contain_text("k")
    expect(line).to_have_class(re.compile("is-selected"))


def test_blocked_step_has_a_problem_with_a_fix(page: Page) -> None:
    select_loop(page, "i")
    illegal = step(page, "vectorize")
    expect(illegal).to_contain_text("extent n of loop 'i' is not a constant")
    illegal.locator(".tw-fix").first.click()
    expect(code(page)).to_contain_text("guard(")
    expect(page.locator(".tw-selected")).to_contain_text("i_1")
    apply(page, "reorder")
    expect(page.locator(".tw-announcement")).to_contain_text("reorder")


def test_compile_verify_and_measure(page: Page) -> None:
    select_loop(page, "j")
    apply(page, "split")
    expect(page.locator(".tw-selected")).to_contain_text("j_1")
    apply(page, "vectorize")
    expect(code(page)).to_contain_text("for j_1 in vectorized(")
    page.get_by_role("button", name="Compile").click()
    expect(page.locator(".tw-verdict")).to_contain_text("Matches the interpreter", timeout=LONG)
    finished(page)
    page.get_by_role("button", name="Measure", exact=True).click()
    expect(page.locator(".tw-kernels")).to_contain_text("matmul", timeout=LONG)
    tab(page, "Assembly")
    expect(page.locator(".tw-lowered")).to_contain_text("matmul", timeout=LONG)


def test_cells_and_clicks_edit_one_schedule(page: Page) -> None:
    select_loop(page, "j")
    page.evaluate(
        """async () => {
            const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
            const code = `i, j, k = wb.schedule.get_loops(wb.schedule.get_block("C"))
wb.schedule.parallel(i)`;
            await kernel.requestExecute({code}).done;
        }"""
    )
    expect(code(page)).to_contain_text("for i in parallel(n)")
    apply(page, "split")
    expect(code(page)).to_contain_text("for j_1 in range(")
    tab(page, "History")
    expect(page.locator(".tw-history-row")).to_have_count(5)
    page.locator(".tw-history-row").first.click()
    expect(code(page)).to_contain_text("for i in range(n)")


def test_saved_notebook_displays_the_program_without_a_kernel(page: Page, lab: Lab) -> None:
    save(page)
    text = (lab.root / path(page)).read_text()
    assert "text/html" in text
    assert "for j in range(128):" in text
    assert "<script" not in text


def test_keyboard_operation(page: Page) -> None:
    marker = page.locator(".tw-marker[tabindex='0']")
    marker.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".tw-marker[data-name='j']")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".tw-selected")).to_contain_text("j")
    step(page, "split").locator(".tw-step-name").focus()
    page.keyboard.press("Enter")
    factors = step(page, "split").get_by_label("factors", exact=True)
    factors.fill("(None, 32)")
    factors.press("Tab")
    expect(step(page, "split").locator(".tw-form-status")).to_have_text("Legal")
    factors.press("Enter")
    expect(code(page)).to_contain_text("for j_1 in range(32)")
    page.locator(".tw-code .cm-line").first.click()
    page.keyboard.press("Control+z")
    expect(code(page)).to_contain_text("for j in range(128)")


def test_accessibility_in_both_themes(page: Page, root: Path) -> None:
    page.add_script_tag(path=root / "extensions" / "node_modules" / "axe-core" / "axe.min.js")
    select_loop(page, "i")
    step(page, "split").locator(".tw-step-name").click()
    step(page, "vectorize").locator(".tw-step-name").click()
    for name in ("JupyterLab Dark", "JupyterLab Light"):
        theme(page, name)
        for dock in ("Trace", "History", "Symbols", "Kernels", "Problems"):
            tab(page, dock)
            assert violations(page) == [], name
        page.get_by_role("button", name="Target and sizes").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert violations(page) == [], f"target and sizes, {name}"
        if folder := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=Path(folder) / f"measure-{name.split()[-1]}.png")
        page.keyboard.press("Escape")


def violations(page: Page) -> list[str]:
    found = page.evaluate(
        """async (options) => (await axe.run(".tw-root", options))
            .violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html + n.failureSummary)}`)""",
        AXE,
    )
    return list(found)
