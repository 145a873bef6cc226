"""User actions in the workbench, shared by tests and benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page

LONG = 120_000
"""The timeout for compiling and measuring, in milliseconds."""

SETTLED = 60
"""The timeout for values that follow an event, in seconds."""

FRAMES = """() => new Promise((done) => {
    requestAnimationFrame(() => requestAnimationFrame(done));
})"""
"""Wait for two frames; observers of sizes run before the second one."""

STILL = """(selector) => new Promise((done) => {
    const box = document.querySelector(selector);
    let last = NaN;
    let frames = 0;
    const look = () => {
        frames = box.scrollTop === last ? frames + 1 : 0;
        last = box.scrollTop;
        if (frames < 5) requestAnimationFrame(look);
        else done(last);
    };
    look();
})"""
"""Return the position of an element when the browser does not scroll it any more."""

WATCH_SAVE = """() => {
    const { saveState } = window.jupyterapp.shell.currentWidget.context;
    window.saved = "";
    const look = (_, state) => {
        if (state === "started") return;
        window.saved = state;
        saveState.disconnect(look);
    };
    saveState.connect(look);
}"""
"""Set ``window.saved`` when the notebook is saved the next time; it may be clean before that."""


def path(page: Page) -> str:
    """Return the path of the open notebook on the server."""
    return page.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")


def code(page: Page) -> Locator:
    """Return the text of the open function, not a small comparison in another part."""
    return page.locator(".tw-code:not(.is-inline) .tw-code-text").last


def answered(page: Page) -> None:
    """Wait for the answers to all requests."""
    page.wait_for_selector(".tw-dot:not(.is-busy)", state="attached", timeout=LONG)


def finished(page: Page) -> None:
    """Wait for the job that the last action has started."""
    answered(page)
    expect(page.locator(".tw-job")).to_have_count(0, timeout=LONG)


def frames(page: Page) -> None:
    """Wait until the sizes of all parts follow a new size of the window."""
    page.evaluate(FRAMES)


def settle(value: Callable[[], object], expected: object) -> None:
    """Wait until a value of the page is the expected one, such as a position in a later frame."""
    try:
        wait_until(lambda: value() == expected, timeout=SETTLED)
    except AssertionError:
        assert value() == expected  # reports both values


def save(page: Page) -> None:
    """Save the notebook by keyboard."""
    page.evaluate(WATCH_SAVE)
    page.keyboard.press("Control+s")
    page.wait_for_function("window.saved !== ''")
    assert page.evaluate("window.saved").startswith("completed")


def select_loop(page: Page, name: str) -> None:
    """Click the marker of a loop in the gutter."""
    page.locator(f'.tw-marker[data-name="{name}"]').click()
    answered(page)
    expect(page.locator(".tw-selected .tw-mono")).to_have_text(name)
    menu_shown(page)


def step(page: Page, name: str) -> Locator:
    """Return the entry of a step in the inspector."""
    return page.locator(f'.tw-step[data-step="{name}"]')


def menu_shown(page: Page) -> None:
    """Wait for the steps of the selection, which follow the answer to a click."""
    expect(page.locator(".tw-steps[aria-busy=false]")).to_be_attached()


def apply(page: Page, name: str) -> None:
    """Apply the first suggestion of a step."""
    menu_shown(page)
    step(page, name).locator(".tw-apply").click()


def tab(page: Page, name: str) -> None:
    """Open a tab."""
    page.locator(".tw-root").get_by_role("tab", name=name).click()


def open_function(page: Page, name: str) -> None:
    """Select a function from the list."""
    page.locator(".tw-picker").select_option(name)
    expect(code(page)).to_contain_text(f"def {name}(")


def theme(page: Page, name: str) -> None:
    """Switch JupyterLab's theme."""
    page.evaluate(
        "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", name
    )
    light = "true" if name.endswith("Light") else "false"
    page.wait_for_selector(f"body[data-jp-theme-light={light}]", state="attached")
    page.wait_for_selector("#jupyterlab-splash", state="detached")
