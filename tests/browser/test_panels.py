"""Costs of the graph, completion in the trace, and files of traces, with mouse and keyboard."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.test_first_minutes import PROGRAM as MODEL, button, measure, picture
from tests.browser.test_matmul import PROGRAM, violations
from tests.browser.workbench import apply, code, select_loop, step, tab, theme

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page, ViewportSize

pytestmark = pytest.mark.browser

WIDE: ViewportSize = {"width": 1900, "height": 1000}
THEMES = ("JupyterLab Dark", "JupyterLab Light")
SIZES = "at batch = 48"


def check_accessibility(page: Page, root: Path, name: str) -> None:
    """Check the contrast and the names of controls in both themes, and save pictures."""
    page.add_script_tag(path=root / "extensions" / "node_modules" / "axe-core" / "axe.min.js")
    for chosen in THEMES:
        theme(page, chosen)
        assert violations(page) == [], chosen
        picture(page, f"{name}-{chosen.split()[-1].lower()}")


def card(page: Page, name: str) -> Locator:
    return page.locator(f".tw-card[data-name={name}]")


def test_the_graph_is_colored_by_costs(open_notebook: Callable[..., Page], root: Path) -> None:
    page = open_notebook([MODEL])
    page.set_viewport_size(WIDE)
    legend = page.locator(".tw-legend")
    expect(legend).to_contain_text("not measured")

    # By keyboard: the choice is a list in the toolbar of the graph.
    page.get_by_label("Find an operation").click()
    choice = page.get_by_label("Color of the operations")
    for _ in range(8):
        if choice.evaluate("(list) => list === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(choice).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(legend).to_contain_text("MFLOP")
    expect(legend).to_contain_text(SIZES)
    expect(card(page, "up")).to_contain_text("1.57 M")
    expect(card(page, "up")).to_have_attribute("aria-label", re.compile(r"FLOPs 1\.57 MFLOP"))
    title = card(page, "up").locator("title").text_content()
    assert f"batch * 32768 = 1572864 {SIZES}" in (title or "")
    check_accessibility(page, root, "costs-flops")

    # The figures follow the sizes and the steps.
    tab(page, "Symbols")
    sample = page.get_by_label("Sample value of batch").last
    sample.fill("96")
    sample.press("Enter")
    expect(legend).to_contain_text("at batch = 96")
    expect(card(page, "up")).to_contain_text("3.15 M")
    step(page, "lower_graph").locator(".tw-apply").click()
    expect(page.locator(".tw-announcement")).to_contain_text("lower_graph")
    kernel = page.get_by_role("treeitem", name="fused_matmul_gelu")
    expect(kernel).to_contain_text("M")
    choice.select_option("Peak memory")
    expect(legend).to_contain_text("KiB")
    expect(kernel).to_contain_text("KiB")
    picture(page, "costs-memory")

    # The choice is also a command.
    page.keyboard.press("Alt+p")
    page.keyboard.type("color the graph by bytes")
    page.keyboard.press("Enter")
    expect(choice).to_have_value("bytes")
    expect(kernel).to_have_attribute("aria-label", re.compile("Bytes moved .* KiB"))


@pytest.mark.parametrize("width", [1440, 1000, 760])
def test_the_bars_of_the_kernels_are_visible(
    open_notebook: Callable[..., Page], width: int
) -> None:
    """A narrow panel leaves out the columns that another panel has."""
    page = open_notebook([MODEL])
    page.set_viewport_size(WIDE)
    measure(page)
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_selector(f".tw-root.is-{'medium' if width == 1440 else 'narrow'}")
    more = page.get_by_role("tablist", name="Panes").get_by_role("tab", name="More")
    if more.count():
        more.click()
    tab(page, "Kernels")
    page.get_by_label("Bars of the kernels").select_option("FLOPs")
    row = page.locator(".tw-kernels tbody tr", has_text="fused_matmul_gelu")
    expect(row).to_contain_text("MFLOP")
    area = page.locator(".tw-kernels-scroll").bounding_box()
    assert area is not None
    for part in (page.get_by_label("Bars of the kernels"), row.locator(".tw-bar-text")):
        box = part.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= area["x"] + area["width"]
    picture(page, f"kernels-{width}")


SORT = '''
import tilewright as tw
wb = tw.Workbench(tw.parse("""
@graph_func
def main(x: Tensor[(4, 8), f32]):
    y = exp(x)
    z = sort(y, axis=1)
    return z
"""))
wb
'''


def test_an_unknown_cost_is_unknown(open_notebook: Callable[..., Page]) -> None:
    page = open_notebook([SORT])
    page.set_viewport_size(WIDE)
    page.get_by_label("Color of the operations").select_option("FLOPs")
    expect(card(page, "y")).to_contain_text("32")
    expect(card(page, "z")).to_contain_text("unknown")
    picture(page, "costs-unknown")


def editor(page: Page) -> Locator:
    return page.get_by_label("Step as Python")


def names(page: Page) -> Locator:
    """Return the list of names that fit at the cursor."""
    return page.get_by_role("listbox", name="Completions")


def test_names_are_completed_in_the_trace(open_notebook: Callable[..., Page], root: Path) -> None:
    page = open_notebook([PROGRAM])
    page.set_viewport_size(WIDE)
    select_loop(page, "j")
    apply(page, "split")
    expect(code(page)).to_contain_text("j_1 in range(")
    tab(page, "Trace")
    page.locator(".tw-trace-line").filter(has_text="sch.split").dblclick()
    expect(editor(page)).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("j_0, j_1 = sch.spl")
    expect(names(page).get_by_role("option").first).to_contain_text("split")
    box = names(page).bounding_box()
    assert box is not None
    assert 0 <= box["y"] <= WIDE["height"] - box["height"]
    page.keyboard.press("Enter")
    expect(names(page)).to_be_hidden()
    page.keyboard.type("(")
    page.keyboard.press("Control+Space")
    options = names(page).get_by_role("option")
    expect(options.first).to_contain_text("loop=")
    check_accessibility(page, root, "completion")
    page.keyboard.press("Enter")
    expect(editor(page)).to_contain_text("sch.split(loop=")
    expect(names(page)).to_contain_text("result of get_loops")
    page.keyboard.type("'")
    page.keyboard.press("Control+Space")
    expect(names(page)).to_contain_text("loop of")
    page.keyboard.press("Escape")
    expect(names(page)).to_be_hidden()
    expect(editor(page)).to_be_focused()
    page.keyboard.press("Backspace")
    page.keyboard.type("j, factors=(None, 16), tail=")
    page.keyboard.press("Control+Space")
    options.filter(has_text="'epilogue'").click()
    expect(editor(page)).to_be_focused()
    expect(editor(page)).to_contain_text("tail='epilogue'")
    page.keyboard.type(")")
    page.keyboard.press("Enter")
    expect(code(page)).to_contain_text("j_1 in range(16)")


def test_traces_are_copied_saved_and_loaded_by_commands(
    open_notebook: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_notebook([PROGRAM])
    page.set_viewport_size(WIDE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    select_loop(page, "j")
    apply(page, "split")
    expect(code(page)).to_contain_text("j_1 in range(")
    announced = page.locator(".tw-announcement")

    # By the list of commands.
    page.keyboard.press("Alt+p")
    page.keyboard.type("copy the trace as json")
    page.keyboard.press("Enter")
    expect(announced).to_have_text("Copied the trace as JSON")
    assert '"op": "split"' in page.evaluate("navigator.clipboard.readText()")

    # By the buttons.
    tab(page, "Trace")
    button(page, "Copy as Python").click()
    expect(announced).to_have_text("Copied the trace as Python")
    assert "sch.split(" in page.evaluate("navigator.clipboard.readText()")
    saved = {}
    for name in ("Save", "Save as Python"):
        with page.expect_download() as download:
            button(page, name).click()
        saved[name] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[name])
        expect(announced).to_have_text(f"Saved {saved[name].name}")
    assert [path.suffix for path in saved.values()] == [".jsonl", ".py"]
    picture(page, "trace-files")

    # By the menu: each file restores the step.
    for path in saved.values():
        page.locator(".tw-trace .cm-line").first.click(button="right")
        menu = page.get_by_role("menu", name="Trace")
        expect(page.locator(".lm-Menu")).to_have_count(0)
        page.keyboard.press("Escape")
        page.keyboard.press("Control+z")
        expect(code(page)).not_to_contain_text("j_1 in range(")
        button(page, "Load").hover()
        with page.expect_file_chooser() as chooser:
            button(page, "Load").click()
        chooser.value.set_files(path)
        expect(announced).to_contain_text("Trace replayed")
        expect(code(page)).to_contain_text("j_1 in range(")
        expect(menu).to_have_count(0)

    # A file that is not a trace is named and changes nothing.
    bad = tmp_path / "notes.py"
    bad.write_text("import os\n")
    with page.expect_file_chooser() as chooser:
        button(page, "Load").click()
    chooser.value.set_files(bad)
    expect(announced).to_contain_text("notes.py: line 1: import os is not a step")
    tab(page, "Problems")
    expect(page.locator(".tw-problem").first).to_contain_text("or Python such as sch.unroll")
    picture(page, "trace-bad-file")
    expect(code(page)).to_contain_text("j_1 in range(")
