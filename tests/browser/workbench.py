"""What a person does in the workbench, for tests and benchmarks to do alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

ROUND_TRIPS = "performance.getEntriesByName('tw:round-trip').map((e) => [e.detail.id, e.duration])"
"""Time from sending a request to the paint that shows its answer, in ms, by request."""


def code(page: Page) -> Locator:
    """The text of the open function."""
    return page.locator(".tw-code-text").last


def select_loop(page: Page, name: str) -> None:
    """Click a loop's knob in the gutter."""
    page.locator(f'.tw-knob[data-name="{name}"]').click()
    expect(page.locator(".tw-selected")).to_contain_text(name)


def step(page: Page, name: str) -> Locator:
    """The entry of a step in the inspector."""
    return page.locator(f'.tw-step[data-step="{name}"]')


def apply(page: Page, name: str) -> None:
    """Apply the first suggestion of a step."""
    step(page, name).locator(".tw-apply").click()


def tab(page: Page, name: str) -> None:
    """Show a tab."""
    page.locator(".tw-root").get_by_role("tab", name=name).click()


def open_function(page: Page, name: str) -> None:
    """Choose a function from the list."""
    page.locator(".tw-picker").select_option(name)
    expect(code(page)).to_contain_text(f"def {name}(")


def theme(page: Page, name: str) -> None:
    """Switch JupyterLab's theme."""
    page.evaluate(
        "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", name
    )
    light = "true" if name.endswith("Light") else "false"
    page.wait_for_selector(f"body[data-jp-theme-light={light}]", state="attached")
