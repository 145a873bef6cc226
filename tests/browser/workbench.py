"""User actions in the workbench, shared by tests and benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def code(page: Page) -> Locator:
    """Return the text of the open function, not a small comparison in another part."""
    return page.locator(".tw-code:not(.is-inline) .tw-code-text").last


def select_loop(page: Page, name: str) -> None:
    """Click the marker of a loop in the gutter."""
    page.locator(f'.tw-marker[data-name="{name}"]').click()
    expect(page.locator(".tw-selected")).to_contain_text(name)
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
