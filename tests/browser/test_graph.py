"""The graph is moved and zoomed by mouse, wheel, and keys, and leaves the wheel to the notebook."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.test_first_minutes import picture
from tests.browser.test_matmul import violations
from tests.browser.workbench import SETTLED, code, frames, settle, theme
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

PROGRAM = """
import tilewright as tw
text = "@graph_func\\ndef main(x: Tensor[(64, 32), f32]):\\n    v0 = exp(x)\\n"
text += "".join(f"    v{k} = relu(v{k - 1})\\n" for k in range(1, 20)) + "    return v19\\n"
wb = tw.Workbench(tw.parse(text))
wb
"""

ABOVE = "([selector, y]) => document.querySelector(selector).getBoundingClientRect().y < y"
"""Whether an element is above a position of the window."""


@pytest.fixture
def page(open_notebook: Callable[..., Page]) -> Page:
    page = open_notebook([PROGRAM])
    page.set_viewport_size({"width": 1800, "height": 900})
    expect(card(page, "v0")).to_be_visible()
    frames(page)
    return page


def card(page: Page, name: str) -> Locator:
    return page.locator(f".tw-card[data-name={name}]")


def canvas(page: Page) -> Locator:
    """Return the element that is moved and zoomed."""
    return page.locator(".tw-graph-canvas")


def box(locator: Locator) -> dict[str, float]:
    found = locator.bounding_box()
    assert found is not None
    return {key: float(value) for key, value in found.items()}


def is_inside(inner: Locator, outer: Locator) -> bool:
    """Return whether the vertical extent of an element is inside of that of another one."""
    part, area = box(inner), box(outer)
    return area["y"] <= part["y"] and part["y"] + part["height"] <= area["y"] + area["height"]


def scrolled(page: Page) -> float:
    """Return the position of the workbench, which the notebook scrolls."""
    return box(page.locator(".tw-root"))["y"]


def test_the_wheel_scrolls_the_notebook_until_the_graph_is_clicked(page: Page) -> None:
    page.set_viewport_size({"width": 1800, "height": 700})
    frames(page)
    view = page.locator(".tw-graph-view")
    view.hover()
    page.mouse.wheel(0, -2000)
    view.hover()
    start = scrolled(page)
    top = box(card(page, "v2"))["y"] - start
    page.mouse.wheel(0, 60)
    page.wait_for_function(ABOVE, arg=[".tw-root", start])
    settle(lambda: box(card(page, "v2"))["y"] - scrolled(page), pytest.approx(top, abs=1))
    wait_until(lambda: hinted(page), timeout=SETTLED)
    picture(page, "graph-hint")

    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    expect(canvas(page)).to_have_attribute("transform", re.compile(r"scale\(1\.[12]"))

    start = scrolled(page)
    page.mouse.click(box(view)["x"] + 12, box(view)["y"] + 40)
    before = box(card(page, "v2"))["y"]
    page.mouse.wheel(0, 80)
    page.wait_for_function(ABOVE, arg=[".tw-card[data-name=v2]", before - 40])
    assert scrolled(page) == pytest.approx(start, abs=1)


def hinted(page: Page) -> bool:
    """Return whether a turn of the wheel shows the hint, which disappears after two seconds."""
    page.mouse.wheel(0, 1)
    frames(page)
    return page.locator(".tw-graph-hint").is_visible()


def test_the_graph_is_dragged(page: Page) -> None:
    before = box(card(page, "v4"))
    area = box(page.locator(".tw-graph-view"))
    page.mouse.move(area["x"] + 12, area["y"] + 300)
    page.mouse.down()
    page.mouse.move(area["x"] + 12, area["y"] + 200, steps=4)
    page.mouse.up()
    settle(lambda: box(card(page, "v4"))["y"], pytest.approx(before["y"] - 100, abs=2))

    # A drag that starts on a card does not select it; a click does.
    at = box(card(page, "v4"))
    page.mouse.move(at["x"] + 20, at["y"] + 10)
    page.mouse.down()
    page.mouse.move(at["x"] + 20, at["y"] + 60, steps=4)
    page.mouse.up()
    expect(card(page, "v4")).not_to_have_class(re.compile("is-selected"))
    card(page, "v4").click()
    expect(card(page, "v4")).to_have_class(re.compile("is-selected"))


def test_the_graph_is_moved_and_zoomed_by_keys(page: Page) -> None:
    view = page.locator(".tw-graph-view")
    card(page, "v1").click()
    expect(card(page, "v1")).to_be_focused()
    start = scrolled(page)
    page.keyboard.press("End")
    last = page.locator(".tw-card").last
    expect(last).to_be_focused()
    settle(lambda: is_inside(last, view), True)
    assert scrolled(page) == pytest.approx(start, abs=1)
    width = box(last)["width"]
    page.keyboard.press("+")
    settle(lambda: box(last)["width"], pytest.approx(width * 1.25, rel=0.05))
    page.keyboard.press("-")
    settle(lambda: box(last)["width"], pytest.approx(width, rel=0.05))
    page.keyboard.press("f")
    settle(lambda: is_inside(last, view), True)
    settle(lambda: is_inside(page.locator(".tw-card").first, view), True)
    expect(page.locator(".tw-minimap")).to_have_count(0)
    picture(page, "graph-fit")
    page.keyboard.press("0")
    expect(canvas(page)).to_have_attribute("transform", re.compile(r"scale\(1\)"))


def test_the_overview_moves_the_graph(page: Page) -> None:
    view = page.locator(".tw-graph-view")
    overview = page.locator(".tw-minimap")
    expect(overview).to_be_visible()
    assert not is_inside(card(page, "v19"), view)
    area = box(overview)
    page.mouse.move(area["x"] + area["width"] / 2, area["y"] + 20)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] - 6, steps=5)
    page.mouse.up()
    settle(lambda: is_inside(card(page, "v19"), view), True)
    picture(page, "graph-overview")


def test_a_selection_in_the_text_is_moved_into_view(page: Page) -> None:
    view = page.locator(".tw-graph-view")
    assert not is_inside(card(page, "v17"), view)
    code(page).locator(".cm-line", has_text="v17: ").locator(".tw-tok-name").first.click()
    expect(card(page, "v17")).to_have_class(re.compile("is-selected"))
    settle(lambda: is_inside(card(page, "v17"), view), True)


def test_accessibility_in_both_themes(page: Page, root: Path) -> None:
    page.add_script_tag(path=root / "extensions" / "node_modules" / "axe-core" / "axe.min.js")
    card(page, "v1").click()
    for name in ("JupyterLab Dark", "JupyterLab Light"):
        theme(page, name)
        assert violations(page) == [], name
        picture(page, f"graph-{name.split()[-1].lower()}")
