"""Latency from a click to the paint that displays the answer."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.browser.workbench import apply, open_function, select_loop

if TYPE_CHECKING:
    from playwright.sync_api import Page

MODEL = """
import warnings
warnings.simplefilter("ignore")
import tilewright as tw
from tilewright.workbench.demo import export_minilm, load_minilm
wb = tw.Workbench(tw.from_exported_program(export_minilm(load_minilm())))
wb.schedule.lower_graph("main")
wb
"""

KERNEL = "fused_matmul_add_gelu"

MEASURES = """() => {
    const found = performance.getEntriesByName("tw:round-trip").map((entry) => entry.duration);
    performance.clearMeasures("tw:round-trip");
    return found;
}"""


@dataclass(frozen=True, slots=True)
class Latency:
    """The latencies of one kind of action, in milliseconds."""

    action: str
    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def p95(self) -> float:
        return sorted(self.samples)[int(0.95 * (len(self.samples) - 1) + 0.5)]

    def __str__(self) -> str:
        return f"{self.action:<34}{len(self.samples):>5}{self.median:>9.1f}{self.p95:>9.1f}"


def measure(page: Page, repeats: int) -> list[Latency]:
    """Measure selecting a loop, splitting it, and specializing its kernel.

    Split changes the loops; specialize also changes the call in the graph. Each step is undone.
    """
    open_function(page, KERNEL)
    loop = page.locator(".tw-marker").first.get_attribute("data-name") or ""
    select_loop(page, loop)
    return [
        Latency("select a loop", selects(page, loop, repeats)),
        *steps(page, "split", repeats, "loops"),
        *steps(page, "specialize", repeats, "loops and graph"),
    ]


def selects(page: Page, loop: str, repeats: int) -> tuple[float, ...]:
    page.evaluate(MEASURES)
    for _ in range(repeats):
        select_loop(page, loop)
        idle(page)
    return tuple(page.evaluate(MEASURES))


def steps(page: Page, step: str, repeats: int, changed: str) -> list[Latency]:
    """Apply and undo a step repeatedly; the samples of the two alternate."""
    page.evaluate(MEASURES)
    samples: list[float] = []
    for _ in range(repeats):
        apply(page, step)
        idle(page)
        page.locator(".tw-root").get_by_role("button", name="Undo").click()
        idle(page)
        samples += page.evaluate(MEASURES)
        page.locator(".tw-marker").first.click()
        idle(page)
        page.evaluate(MEASURES)
    return [
        Latency(f"apply {step}: {changed}", tuple(samples[0::2])),
        Latency(f"undo {step}: {changed}", tuple(samples[1::2])),
    ]


def idle(page: Page) -> None:
    """Wait for the answer and for the paint that displays it."""
    page.wait_for_selector(".tw-dot:not(.is-busy)")
    # The callback of the second frame runs once the first is painted.
    frames = "requestAnimationFrame(() => requestAnimationFrame(done))"
    page.evaluate(f"() => new Promise((done) => {frames})")
