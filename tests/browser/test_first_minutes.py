"""The first minutes of a new user, with mouse and keyboard only: measure, open, schedule, undo."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.test_matmul import violations
from tests.browser.workbench import (
    LONG,
    SETTLED,
    STILL,
    apply,
    code,
    finished,
    frames,
    open_function,
    save,
    select_loop,
    settle,
    step,
    tab,
    theme,
)
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

PROGRAM = '''
import tilewright as tw
mod = tw.parse("""
batch = symbols("batch", lower=0)

@graph_func
def main(
    x: Tensor[(batch, 64), f32], u: Tensor[(64, 256), f32], d: Tensor[(256, 64), f32]
):
    hint("batch", 48)
    up: Tensor[(batch, 256), f32] = matmul(x, u)
    act: Tensor[(batch, 256), f32] = gelu(up, approximate="none")
    down: Tensor[(batch, 64), f32] = matmul(act, d)
    both: Tensor[(batch, 64), f32] = add(x, down)
    norm: Tensor[(batch, 64), f32] = softmax(both, axis=1)
    return norm
""")
wb = tw.Workbench(mod, target="cpu")
wb
'''

KERNEL = "fused_matmul_gelu"

HIDDEN_NOTES = """() => {
    const code = document.querySelector(".tw-code").getBoundingClientRect();
    const notes = [...document.querySelectorAll(".tw-code .tw-line-label")];
    const boxes = notes.map((note) => [note.textContent, note.getBoundingClientRect()]);
    const outside = ([, box]) => box.left < code.left || box.right > code.right;
    return notes.length ? boxes.filter(outside).map(([text]) => text) : ["no notes"];
}"""
"""The notes of lines, such as tail guards, that are outside of the visible text."""

WIDTHS = (1440, 1000, 800, 760)

COLUMNS = """() => {
    const code = document.querySelector(".tw-code");
    const text = code.querySelector(".tw-code-text");
    const context = document.createElement("canvas").getContext("2d");
    context.font = getComputedStyle(text).font;
    const start = text.getBoundingClientRect().left;
    return (code.getBoundingClientRect().right - start) / context.measureText("0").width;
}"""
"""The number of characters of program text that are visible side by side."""


@pytest.fixture
def page(open_notebook: Callable[..., Page]) -> Page:
    page = open_notebook([PROGRAM])
    page.set_viewport_size({"width": 1440, "height": 900})
    frames(page)
    return page


def button(page: Page, name: str) -> Locator:
    return page.locator(".tw-root").get_by_role("button", name=name, exact=True)


def rule(page: Page) -> Locator:
    """Return the header that states the relation of the open kernel to its default rule."""
    return page.locator(".tw-rule")


def picture(page: Page, name: str) -> None:
    """Save a picture if the environment variable SCREENSHOTS names a folder."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def pictures(page: Page, name: str) -> None:
    """Save a picture in each theme if the environment variable SCREENSHOTS names a folder."""
    if "SCREENSHOTS" in os.environ:
        for chosen in ("JupyterLab Dark", "JupyterLab Light"):
            theme(page, chosen)
            picture(page, f"{name}-{chosen.split()[-1]}")


def measure(page: Page) -> None:
    button(page, "Measure").click()
    finished(page)
    expect(page.locator(".tw-kernels")).to_contain_text(KERNEL)
    expect(button(page, "Measure")).to_be_enabled()


def has_focus(page: Page) -> str:
    """Return the label of the control with the focus if it is in the workbench."""
    return page.evaluate(
        """() => {
            const at = document.activeElement;
            if (!at.closest(".tw-root")) return "";
            return at.dataset.focus || at.dataset.name || at.className;
        }"""
    )


def test_profile_to_program_and_back(page: Page) -> None:
    measure(page)
    button(page, "Graph").click()  # at this width the graph is a drawer
    for op in ("matmul", "gelu", "softmax"):
        card = page.get_by_role("treeitem", name=op).first
        expect(card).to_contain_text("%")
    picture(page, "measured")
    page.keyboard.press("Escape")
    expect(page.locator(".tw-drawer")).to_have_count(0)

    # The bars of the list follow the choice of the graph.
    bars = page.get_by_label("Bars of the kernels")
    bars.select_option("FLOPs")
    expect(page.locator(".tw-kernels tbody tr").first).to_contain_text("MFLOP")
    bars.select_option("Time")
    expect(page.locator(".tw-kernels tbody tr").first).to_contain_text("%")

    # The kernel opens although the graph was not lowered.
    slowest = page.locator(".tw-kernels .tw-link", has_text=KERNEL)
    slowest.click()
    expect(code(page)).to_contain_text(f"def {KERNEL}(")
    expect(code(page)).to_contain_text("vectorized(")
    expect(rule(page)).to_contain_text("As measured")
    picture(page, "compiled")

    # "Lower the graph" is one foldable step.
    rule(page).get_by_role("button", name="Lower the graph").click()
    expect(rule(page)).to_contain_text("Gets the default rule schedule_matmul when it is compiled")
    expect(code(page)).to_contain_text(f"def {KERNEL}(")
    expect(page.locator(".tw-rule-note")).to_contain_text("slower")
    settle(lambda: has_focus(page).startswith("rule:"), True)
    tab(page, "Trace")
    expect(page.locator(".tw-trace")).to_contain_text("lower_graph")
    tab(page, "History")
    expect(page.locator(".tw-history-row")).to_have_count(2)

    # The steps of the default rule can be taken, changed, and left; undo works from the keyboard.
    rule(page).get_by_role("button", name="Take the default schedule").click()
    expect(rule(page)).to_contain_text("Has the steps of its default rule schedule_matmul")
    expect(code(page)).to_contain_text("vectorized(")
    page.keyboard.press("Control+z")
    expect(rule(page)).to_contain_text("when it is compiled")
    page.keyboard.press("Control+Shift+z")
    expect(rule(page)).to_contain_text("Has the steps")
    picture(page, "taken")

    rule(page).get_by_role("button", name="Return to the default rule").click()
    expect(rule(page)).to_contain_text("when it is compiled")
    expect(code(page)).not_to_contain_text("vectorized(")
    page.keyboard.press("Control+z")
    expect(rule(page)).to_contain_text("Has the steps")


def test_leaving_the_rule_is_announced_and_undone(page: Page) -> None:
    measure(page)
    page.locator(".tw-kernels .tw-link", has_text=KERNEL).click()
    rule(page).get_by_role("button", name="Lower the graph").click()
    expect(page.locator(".tw-rule-note")).to_contain_text("predicted")
    select_loop(page, "j")
    expect(page.locator(".tw-rule-note")).to_contain_text("replaces the default rule")
    apply(page, "split")
    expect(rule(page)).to_contain_text("Left its default rule schedule_matmul: predicted")
    expect(rule(page)).to_contain_text("slower")
    picture(page, "left")
    measure(page)
    expect(rule(page)).to_contain_text(" now (", timeout=LONG)
    expect(rule(page)).to_contain_text("slower")
    back = rule(page).get_by_role("button", name="Return to the default rule")
    expect(back).to_be_enabled(timeout=LONG)
    back.click()
    expect(rule(page)).to_contain_text("Gets the default rule")
    expect(code(page)).to_contain_text("for j in range(256)")


ALIKE = """
import tilewright as tw
mod = tw.parse('''
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 64), f32], w: Tensor[(64, 64), f32], v: Tensor[(64, 64), f32]):
    a: Tensor[(n, 64), f32] = matmul(x, w)
    b: Tensor[(n, 64), f32] = exp(a)
    c: Tensor[(n, 64), f32] = matmul(b, v)
    d: Tensor[(n, 64), f32] = tanh(c)
    e: Tensor[(n, 64), f32] = softmax(d, axis=1)
    return e
''')
wb = tw.Workbench(mod, target="cpu")
wb
"""


def test_heat_rule_and_similar_kernels_are_accessible(
    open_notebook: Callable[..., Page], root: Path
) -> None:
    page = open_notebook([ALIKE])
    page.set_viewport_size({"width": 1440, "height": 900})
    page.add_script_tag(path=root / "extensions" / "node_modules" / "axe-core" / "axe.min.js")
    button(page, "Measure").click()
    finished(page)
    expect(page.locator(".tw-kernels")).to_contain_text("matmul")
    page.locator(".tw-kernels .tw-link").first.click()
    for name in ("JupyterLab Dark", "JupyterLab Light"):
        theme(page, name)
        button(page, "Graph").click()
        expect(page.locator(".tw-drawer")).to_contain_text("%")
        assert violations(page) == [], f"drawer and measured kernel, {name}"
        picture(page, f"heat-{name.split()[-1]}")
        page.keyboard.press("Escape")
    expect(button(page, "Graph")).to_be_focused()
    rule(page).get_by_role("button", name="Take the default schedule").click()
    expect(rule(page)).to_contain_text("Has the steps")
    rule(page).get_by_role("button", name="Apply to similar kernels").click()
    expect(page.get_by_role("region", name="Similar kernels")).to_be_visible()
    for name in ("JupyterLab Dark", "JupyterLab Light"):
        theme(page, name)
        assert violations(page) == [], f"similar kernels, {name}"
        picture(page, f"similar-{name.split()[-1]}")


def test_every_measurement_is_kept(page: Page, root: Path) -> None:
    measure(page)
    expect(page.locator(".tw-records")).to_have_count(0)
    page.locator(".tw-kernels .tw-link", has_text=KERNEL).click()
    rule(page).get_by_role("button", name="Lower the graph").click()
    expect(page.locator(".tw-stale").first).to_contain_text("Measured at state 1, start")
    button(page, "Measure kernel").click()
    records = page.get_by_label("Measurement", exact=True)
    expect(records).to_be_visible(timeout=LONG)
    expect(records.locator("option:checked")).to_contain_text(f"{KERNEL} ")
    expect(page.locator(".tw-total")).to_contain_text(KERNEL)

    # The earlier measurement is shown again, by keyboard; then an undo shows that of its state.
    records.press("ArrowDown")
    expect(page.locator(".tw-total")).to_contain_text("main")
    expect(page.locator(".tw-stale").first).to_contain_text("Measured at state 1, start")
    records.press("ArrowUp")
    expect(page.locator(".tw-total")).to_contain_text(KERNEL)
    page.add_script_tag(path=root / "extensions" / "node_modules" / "axe-core" / "axe.min.js")
    assert violations(page) == []
    for width in (1440, 1000, 760):
        page.set_viewport_size({"width": width, "height": 900})
        picture(page, f"records-{width}")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.locator(".tw-status").click()
    page.keyboard.press("Control+z")
    tab(page, "Kernels")
    expect(page.locator(".tw-total")).to_contain_text("main")
    expect(page.get_by_text("not at the head")).to_have_count(0)

    # The name of the measured state leads to it.
    button(page, "Redo").click()
    records.select_option(index=1)
    page.locator(".tw-stale").get_by_role("button", name="state 1, start").click()
    expect(page.get_by_text("not at the head")).to_have_count(0)
    tab(page, "History")
    expect(page.locator(".tw-history-row.is-head")).to_contain_text("state 1")
    times = page.locator(".tw-history-row .tw-history-time")
    expect(times).to_have_count(2)
    expect(times.nth(1)).to_contain_text(KERNEL)
    picture(page, "records-history")


def test_one_schedule_for_all_similar_kernels(open_notebook: Callable[..., Page]) -> None:
    page = open_notebook([ALIKE])
    page.set_viewport_size({"width": 1440, "height": 900})
    step(page, "lower_graph").locator(".tw-apply").click()
    expect(page.locator(".tw-announcement")).to_contain_text("lower_graph")
    alike = page.locator(".tw-picker option", has_text="matmul")
    expect(alike).to_have_count(2)
    first, second = (name.split()[0] for name in alike.all_inner_texts())
    open_function(page, first)
    select_loop(page, "j")
    apply(page, "split")
    expect(code(page)).to_contain_text("for j_1 in range(")
    rule(page).get_by_role("button", name="Apply to similar kernels").click()
    preview = page.get_by_role("region", name="Similar kernels")
    expect(preview.get_by_role("row", name=second)).to_contain_text("accepted")
    expect(preview).to_contain_text("refused")
    picture(page, "similar")
    preview.get_by_role("button", name="Apply to 1 kernel").click()
    expect(page.locator(".tw-announcement")).to_contain_text("applied to 1 similar kernel")
    open_function(page, second)
    expect(code(page)).to_contain_text("for j_1 in range(")
    page.locator(".tw-status").click()
    page.keyboard.press("Control+z")
    expect(code(page)).not_to_contain_text("for j_1 in range(")


def test_focus_stays_and_shortcuts_work_after_every_action(page: Page) -> None:
    step(page, "lower_graph").locator(".tw-apply").click()
    expect(page.locator(".tw-announcement")).to_contain_text("lower_graph")
    open_function(page, KERNEL)
    select_loop(page, "j")
    apply(page, "split")
    expect(code(page)).to_contain_text("for j_1 in range(")
    settle(lambda: has_focus(page) in ("apply:split", "step:split", "j_1"), True)
    page.keyboard.press("Control+z")
    expect(code(page)).to_contain_text("for j in range(256)")
    settle(lambda: has_focus(page) != "", True)

    # A click on text or on an empty part of the workbench keeps the keys in the workbench.
    code(page).click(position={"x": 200, "y": 130})
    page.keyboard.press("Control+Shift+z")
    expect(code(page)).to_contain_text("for j_1 in range(")
    page.locator(".tw-status").click()
    page.keyboard.press("Control+z")
    expect(code(page)).to_contain_text("for j in range(256)")

    # Applied from the form with Enter; Escape leaves the field.
    select_loop(page, "j")
    step(page, "split").locator(".tw-step-name").click()
    factors = step(page, "split").get_by_label("factors", exact=True)
    factors.click()
    page.keyboard.press("Control+a")
    page.keyboard.type("(None, 32)")
    page.keyboard.press("Enter")
    expect(code(page)).to_contain_text("for j_1 in range(32)")
    page.keyboard.press("Escape")
    settle(lambda: has_focus(page) != "", True)
    page.keyboard.press("Control+z")
    expect(code(page)).to_contain_text("for j in range(256)")

    # JupyterLab's own shortcuts: side bar, and save.
    browser = page.locator("#filebrowser")
    expect(browser).to_be_visible()
    page.keyboard.press("Control+b")
    expect(browser).to_be_hidden()
    save(page)
    page.keyboard.press("Control+b")
    expect(browser).to_be_visible()
    page.keyboard.press("Control+Shift+c")
    expect(page.locator("#modal-command-palette, .lm-CommandPalette").first).to_be_visible()
    page.keyboard.press("Escape")


def test_the_narrow_layout_keeps_forms_and_positions(page: Page) -> None:
    step(page, "lower_graph").locator(".tw-apply").click()
    expect(page.locator(".tw-announcement")).to_contain_text("lower_graph")
    open_function(page, KERNEL)
    rule(page).get_by_role("button", name="Take the default schedule").click()
    expect(code(page)).to_contain_text("vectorized(")
    page.set_viewport_size({"width": 760, "height": 900})
    page.wait_for_selector(".tw-root.is-narrow")
    page.locator('.tw-marker[data-name="i1_0"]').click()
    tab(page, "Steps")
    step(page, "reorder").locator(".tw-step-name").click()
    loops = step(page, "reorder").get_by_label("loops", exact=True)
    loops.click()
    page.keyboard.press("Control+a")
    page.keyboard.type("(i0_0,)")
    tab(page, "Loops")
    code(page).hover()
    page.mouse.wheel(0, 300)
    page.wait_for_function("document.querySelector('.tw-scroller').scrollTop > 200")
    at = "(top) => document.querySelector('.tw-scroller')?.scrollTop === top"
    top = page.evaluate(STILL, ".tw-scroller")
    tab(page, "More")
    tab(page, "History")
    row = page.locator(".tw-history-row").last
    expect(row).to_contain_text(f"(function={KERNEL})")
    tab(page, "Steps")
    expect(loops).to_have_value("(i0_0,)")
    picture(page, "narrow-form")
    tab(page, "Loops")
    page.wait_for_function(at, arg=top)
    tab(page, "Passes")
    expect(page.locator(".tw-stage-bar")).to_be_visible()
    tab(page, "Loop IR")
    page.wait_for_function(at, arg=top)
    picture(page, "narrow-position")


def test_uses_of_the_selected_buffer_are_marked(page: Page) -> None:
    step(page, "lower_graph").locator(".tw-apply").click()
    expect(page.locator(".tw-announcement")).to_contain_text("lower_graph")
    open_function(page, KERNEL)
    names = page.locator(".tw-code .tw-tok-name").filter(has_text=re.compile(r"^x$"))
    definition, use = names.first, names.last
    definition.click()
    expect(page.get_by_role("heading", name="buffer x", exact=True)).to_be_visible()
    marks = page.locator(".tw-occurrence")
    expect(marks).to_have_count(names.count() - 1)
    text, mark = use.bounding_box(), marks.last.bounding_box()
    assert text is not None
    assert mark is not None
    assert abs(text["x"] - mark["x"]) < 2
    assert abs(text["width"] - mark["width"]) < 2
    assert mark["y"] <= text["y"] + 2 <= mark["y"] + mark["height"]
    pictures(page, "occurrences")


NUMBERS_GAP = """() => {
    const numbers = document.querySelector(".cm-lineNumbers").getBoundingClientRect();
    const text = document.querySelector(".tw-code-text").getBoundingClientRect();
    return text.left - numbers.right;
}"""


def test_status_and_rows_are_brief(page: Page) -> None:
    assert page.evaluate(NUMBERS_GAP) >= 8, "line numbers are too close to the text of a graph"
    lower = step(page, "lower_graph")
    expect(lower).not_to_contain_text("function=main")
    expect(lower.get_by_role("button", name="Apply lower_graph", exact=True)).to_be_visible()
    expect(page.locator(".tw-status")).to_have_text("0 steps")
    measure(page)
    expect(page.locator(".tw-announcement")).to_contain_text("Measured: main takes ")
    shown = page.locator(".tw-total").locator("xpath=..").inner_text()
    status = page.locator(".tw-announcement").inner_text()
    assert status.removeprefix("Measured: main takes ") in shown
    tab(page, "Assembly")
    expect(page.locator(".tw-stage-summary")).to_have_text("Generate assembly (PTX on a GPU).")


def has_width(page: Page, width: int) -> bool:
    """Return whether the workbench has a width; else resize the window, which has more parts."""
    size = page.viewport_size
    assert size is not None
    missing = width - page.locator(".tw-root").evaluate("(root) => root.clientWidth")
    if abs(missing) < 3:
        return True
    page.set_viewport_size({"width": size["width"] + missing, "height": size["height"]})
    frames(page)
    return False


def test_text_has_62_columns(page: Page) -> None:
    """At 1440 pixels with JupyterLab's side bar; else the width is that of the workbench."""
    step(page, "lower_graph").locator(".tw-apply").click()
    expect(page.locator(".tw-announcement")).to_contain_text("lower_graph")
    open_function(page, KERNEL)
    widest, *others = WIDTHS
    check_columns(page, widest)
    page.locator(".tw-status").click()
    page.keyboard.press("Control+b")
    expect(page.locator("#filebrowser")).to_be_hidden()
    for width in others:
        wait_until(lambda width=width: has_width(page, width), timeout=SETTLED)
        check_columns(page, width)
    page.locator(".tw-status").click()
    page.keyboard.press("Control+b")
    expect(page.locator("#filebrowser")).to_be_visible()


def check_columns(page: Page, width: int) -> None:
    pictures(page, f"columns-{width}")
    settle(lambda: page.evaluate(COLUMNS) >= 62, True)
    expect(page.locator(".tw-position")).to_contain_text("main\u203a")
    for left in (0, 10_000):
        page.locator(".tw-scroller").first.evaluate("(code, left) => code.scrollTo(left, 0)", left)
        settle(lambda: page.evaluate(HIDDEN_NOTES), [])  # notes stay visible
    picture(page, f"scrolled-{width}")
    page.locator(".tw-scroller").first.evaluate("(code) => code.scrollTo(0, 0)")
    root = page.locator(".tw-root").bounding_box()
    assert root is not None
    assert root["y"] + root["height"] <= 900
