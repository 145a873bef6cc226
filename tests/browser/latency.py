"""How long a person waits: from a click to the paint that shows its answer."""

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
from tilewright.schedules.rules.default import lower_graph
from tilewright.workbench.demo import export_minilm, load_minilm
wb = tw.Workbench(tw.from_exported_program(export_minilm(load_minilm())))
lower_graph(wb.schedule, "main")
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
    """Milliseconds of one kind of action."""

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
    """Select a loop; split it, which changes the loops; specialise its kernel, which changes
    the graph's call too. Each step is undone before the next."""
    open_function(page, KERNEL)
    loop = page.locator(".tw-knob").first.get_attribute("data-name") or ""
    select_loop(page, loop)
    return [
        Latency("select a loop", selects(page, loop, repeats)),
        *steps(page, "split", repeats, "loops"),
        *steps(page, "specialise", repeats, "loops and graph"),
    ]


def selects(page: Page, loop: str, repeats: int) -> tuple[float, ...]:
    page.evaluate(MEASURES)
    for _ in range(repeats):
        select_loop(page, loop)
        idle(page)
    return tuple(page.evaluate(MEASURES))


def steps(page: Page, step: str, repeats: int, what: str) -> list[Latency]:
    """Apply and undo in turn; their times come alternately."""
    page.evaluate(MEASURES)
    samples: list[float] = []
    for _ in range(repeats):
        apply(page, step)
        idle(page)
        page.locator(".tw-root").get_by_role("button", name="Undo").click()
        idle(page)
        samples += page.evaluate(MEASURES)
        page.locator(".tw-knob").first.click()
        idle(page)
        page.evaluate(MEASURES)
    return [
        Latency(f"apply {step}: {what}", tuple(samples[0::2])),
        Latency(f"undo {step}: {what}", tuple(samples[1::2])),
    ]


def idle(page: Page) -> None:
    """Wait for the answer, and for the paint that shows it."""
    page.wait_for_selector(".tw-dot:not(.is-busy)")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
