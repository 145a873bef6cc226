"""Latency from an action of the user to the paint that displays its result."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.browser.lab import START
from tests.browser.workbench import apply, open_function, select_loop, step, tab

if TYPE_CHECKING:
    from collections.abc import Iterator

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

FLAT = """
import tilewright as tw
info = "Tensor[(8, 16), f32]"
lines = [f"    v{k}: {info} = add(v{k - 1}, v{max(0, k - 40)})" for k in range(1, 5001)]
text = "@graph_func\\ndef main(v0: Tensor[(8, 16), f32]):\\n" + "\\n".join(lines)
wb = tw.Workbench(tw.parse(text + "\\n    return v5000\\n"))
wb
"""
"""A graph of 5,000 operations without namespaces."""

ROUND_TRIPS = """() => {
    const found = performance.getEntriesByName("tw:round-trip");
    performance.clearMeasures("tw:round-trip");
    return found.map((e) => [e.detail.type, e.startTime, e.startTime + e.duration]);
}"""
"""Return the type of each request with the time when it was sent, and when its answer was painted.

The times are in milliseconds.
"""

ANSWERED = """(types) => new Promise((done) => {
    const look = (_, observer) => {
        const found = performance.getEntriesByName("tw:round-trip").map((e) => e.detail.type);
        if (!types.every((type) => found.includes(type))) return;
        observer.disconnect();
        done();
    };
    const observer = new PerformanceObserver(look);
    observer.observe({ type: "measure" });
    look([], observer);
})"""
"""Wait until answers to requests of these types are painted, without causing frames as polls do."""

LISTEN = """([selector, event]) => {
    window.paints = [];
    window.listened?.abort();
    window.listened = new AbortController();
    const painted = (start) => requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => window.paints.push(performance.now() - start);
        channel.port2.postMessage(null);
    });
    const options = { capture: true, signal: window.listened.signal };
    const box = document.querySelector(selector);
    box.addEventListener(event, () => painted(performance.now()), options);
}"""
"""Record the time from each event in an element to the next paint."""


@dataclass(frozen=True, slots=True)
class Latency:
    """The latencies of one kind of action in milliseconds, and its budget."""

    action: str
    budget: float
    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def p95(self) -> float:
        return sorted(self.samples)[int(0.95 * (len(self.samples) - 1) + 0.5)]

    def __str__(self) -> str:
        mark = "" if self.p95 <= self.budget else "  above the budget"
        times = f"{self.median:>9.1f}{self.p95:>9.1f}{self.budget:>9.0f}"
        return f"{self.action:<42}{len(self.samples):>5}{times}{mark}"


@dataclass(frozen=True, slots=True)
class Trips:
    """The round trips of the requests since the last time they were read."""

    rows: tuple[tuple[str, float, float], ...]

    @classmethod
    def read(cls, page: Page) -> Trips:
        idle(page)
        return cls(tuple(map(tuple, page.evaluate(ROUND_TRIPS))))

    def time(self, first: str, last: str = "") -> float:
        """Return the time from the first request of a type to the answer of the last of another."""
        start = next(start for kind, start, _ in self.rows if kind == first)
        return max(end for kind, _, end in self.rows if kind == (last or first)) - start


def measure(page: Page, repeats: int) -> Iterator[Latency]:
    """Measure the actions of a user on a kernel of the model, each repeatedly."""
    yield from select(page, repeats)
    loops = outer_loops(page)
    yield hover(page, repeats)
    yield from select_again(page, loops, repeats)
    yield preview(page, loops[0], repeats)
    yield from new_edits(page, loops[0], repeats)
    yield from edits(page, loops[0], "split", repeats)
    yield from edits(page, loops[0], "specialize", repeats)
    yield first_sample(page, loops[0], max(3, repeats - 10))
    yield cancel(page, repeats)
    yield jump(page, loops[0], repeats)
    yield expand(page, repeats)


def measure_flat(page: Page, repeats: int) -> Iterator[Latency]:
    """Measure the actions of a user on a graph of many operations."""
    new: list[float] = []
    again: list[float] = []
    cards = page.locator(".tw-graph-svg [role=treeitem]")
    for k in range(repeats):
        Trips.read(page)
        cards.nth(2 + k % 3).click()  # entirely visible
        again.append(selected(page).time("select", "menu"))
    for _ in range(repeats):
        page.keyboard.press("ArrowDown")
        Trips.read(page)
        page.keyboard.press("Enter")
        new.append(selected(page).time("select", "menu"))
    yield Latency("select an operation: menu", 300, tuple(new))
    yield Latency("select an operation again: menu", 300, tuple(again))


def selected(page: Page) -> Trips:
    """Wait for the answer to a selection and for its menu."""
    page.evaluate(ANSWERED, ["select", "menu"])
    return Trips.read(page)


def outer_loops(page: Page) -> list[str]:
    """Open a kernel of the model, and return the names of its two outer loops."""
    open_function(page, KERNEL)
    page.locator(".tw-marker").nth(1).wait_for()
    names = page.locator(".tw-marker").evaluate_all("(all) => all.map((x) => x.dataset.name)")
    return [name for name in names if name][:2]


def hover(page: Page, repeats: int) -> Latency:
    markers = page.locator(".tw-marker")
    page.evaluate(LISTEN, [".tw-code", "mouseover"])
    for k in range(repeats):
        markers.nth(k % min(3, markers.count())).hover()
        idle(page)
    return Latency("hover a loop", 50, tuple(page.evaluate("window.paints")))


def select(page: Page, repeats: int) -> list[Latency]:
    """Select loops and blocks of many kernels, each for the first time.

    The default rule of an opened kernel is computed in the background before.
    """
    kernels = page.locator(".tw-picker optgroup").nth(1).locator("option")
    trips: list[Trips] = []
    for name in kernels.evaluate_all("(all) => all.map((x) => x.value)"):
        open_function(page, name)
        expect(page.locator(".tw-rule-text")).to_contain_text(" steps)", timeout=START)
        idle(page)
        markers = page.locator(".tw-marker")
        for uid in markers.evaluate_all("(all) => all.map((x) => x.dataset.uid)"):
            if len(trips) == repeats:
                break
            Trips.read(page)
            page.locator(f'.tw-marker[data-uid="{uid}"]').click()
            trips.append(selected(page))
    return [
        Latency("select a loop: properties", 100, tuple(x.time("select") for x in trips)),
        Latency("select a loop: menu", 100, tuple(x.time("select", "menu") for x in trips)),
    ]


def select_again(page: Page, loops: list[str], repeats: int) -> list[Latency]:
    """Select two loops alternately."""
    trips: list[Trips] = []
    for k in range(repeats):
        Trips.read(page)
        page.locator(f'.tw-marker[data-name="{loops[k % 2]}"]').click()
        trips.append(selected(page))
    return [
        Latency("select a loop again: properties", 100, tuple(x.time("select") for x in trips)),
        Latency("select a loop again: menu", 100, tuple(x.time("select", "menu") for x in trips)),
    ]


def preview(page: Page, loop: str, repeats: int) -> Latency:
    """Type a factor, and wait for the preview; the delay of the keyboard is not included."""
    select_loop(page, loop)
    split = step(page, "split")
    split.locator(".tw-step-name").click()
    split.get_by_text("Preview", exact=True).click()
    field = split.get_by_label("factors", exact=True)
    samples: list[float] = []
    for k in range(repeats):
        Trips.read(page)
        factor = 2 + k % 7
        field.fill(f"(None, {factor})")
        page.evaluate(ANSWERED, ["preview"])
        expect(split.locator(".tw-preview")).to_contain_text(f"{loop}_1 in range({factor})")
        samples.append(Trips.read(page).time("preview"))
    split.locator(".tw-step-name").click()
    return Latency("preview a step", 150, tuple(samples))


def new_edits(page: Page, loop: str, repeats: int) -> list[Latency]:
    """Split a loop by another factor each time, which leads to a new state, and undo that."""
    select_loop(page, loop)
    split = step(page, "split")
    split.locator(".tw-step-name").click()
    trips: list[Trips] = []
    for k in range(repeats):
        split.get_by_label("factors", exact=True).fill(f"(None, {2 + k})")
        expect(split.locator(".tw-form-status")).to_have_text("Legal")
        Trips.read(page)
        page.keyboard.press("Enter")
        page.evaluate(ANSWERED, ["apply", "menu"])
        trips.append(Trips.read(page))
        page.locator(".tw-root").get_by_role("button", name="Undo").click()
        page.evaluate(ANSWERED, ["navigate"])
        select_loop(page, loop)
    split.locator(".tw-step-name").click()
    menus = tuple(x.time("apply", "menu") for x in trips)
    return [
        Latency("apply a new split: panes", 200, tuple(x.time("apply") for x in trips)),
        Latency("apply a new split: panes and menu", 300, menus),
    ]


def edits(page: Page, loop: str, name: str, repeats: int) -> list[Latency]:
    """Apply and undo a step repeatedly, which leads to the same two states."""
    applied: list[float] = []
    menus: list[float] = []
    undone: list[float] = []
    for _ in range(repeats):
        select_loop(page, loop)
        Trips.read(page)
        apply(page, name)
        page.evaluate(ANSWERED, ["apply", "menu"])
        trips = Trips.read(page)
        applied.append(trips.time("apply"))
        menus.append(trips.time("apply", "menu"))
        page.locator(".tw-root").get_by_role("button", name="Undo").click()
        page.evaluate(ANSWERED, ["navigate"])
        undone.append(Trips.read(page).time("navigate"))
    return [
        Latency(f"apply {name}: panes", 200, tuple(applied)),
        Latency(f"apply {name}: panes and menu", 300, tuple(menus)),
        Latency(f"undo {name}", 100, tuple(undone)),
    ]


def jump(page: Page, loop: str, repeats: int) -> Latency:
    """Jump between two states of the history."""
    select_loop(page, loop)
    apply(page, "split")
    tab(page, "History")
    rows = page.locator(".tw-history-row")
    last = rows.count() - 1
    samples: list[float] = []
    for k in range(repeats):
        Trips.read(page)
        rows.nth(last - 1 if k % 2 == 0 else last).click()
        page.evaluate(ANSWERED, ["navigate"])
        samples.append(Trips.read(page).time("navigate"))
    return Latency("jump in the history", 100, tuple(samples))


def expand(page: Page, repeats: int) -> Latency:
    """Open and close a namespace of the graph."""
    graph = page.locator(".tw-pane[aria-label=Graph]")
    fit = graph.get_by_role("button", name="Fit the graph")
    fit.click()
    paints = list[float]()
    page.evaluate(LISTEN, [".tw-pane[aria-label=Graph]", "click"])
    for k in range(repeats):
        graph.locator(".tw-crumb" if k % 2 else "[aria-expanded=false]").first.click()
        idle(page)
        paints.append(page.evaluate("window.paints.at(-1)"))
        if k % 2:
            fit.click()
            idle(page)
    return Latency("open or close a namespace", 100, tuple(paints))


def cancel(page: Page, repeats: int) -> Latency:
    """Start a measurement of the model and cancel it."""
    root, samples = page.locator(".tw-root"), list[float]()
    for _ in range(repeats):
        root.get_by_role("button", name="Measure", exact=True).click()
        button = page.locator(".tw-status").get_by_role("button", name="Cancel")
        button.wait_for()
        Trips.read(page)
        button.click()
        page.evaluate(ANSWERED, ["cancel"])
        samples.append(Trips.read(page).time("cancel"))
        page.wait_for_selector(".tw-status .tw-job", state="detached")
    return Latency("cancel a job", 100, tuple(samples))


def first_sample(page: Page, loop: str, repeats: int) -> Latency:
    """Edit a kernel and measure it: the time to the first result, with code generation."""
    open_function(page, KERNEL)
    samples: list[float] = []
    for k in range(repeats):
        select_loop(page, loop)
        split = step(page, "split")
        if split.get_by_label("factors", exact=True).count() == 0:
            split.locator(".tw-step-name").click()
        split.get_by_label("factors", exact=True).fill(f"(None, {3 + k})")
        expect(split.locator(".tw-form-status")).to_have_text("Legal")
        page.keyboard.press("Enter")
        page.evaluate(ANSWERED, ["apply"])
        idle(page)
        started = page.evaluate("performance.now()")
        page.locator(".tw-root").get_by_role("button", name="Measure kernel").click()
        job = page.locator(".tw-status .tw-job")
        expect(job).to_contain_text("measuring: ", timeout=60_000)
        samples.append(page.evaluate("performance.now()") - started)
        expect(page.locator(".tw-announcement")).to_contain_text("Measured", timeout=60_000)
        page.locator(".tw-root").get_by_role("button", name="Undo").click()
        page.evaluate(ANSWERED, ["navigate"])
        Trips.read(page)
        select_loop(page, loop)
    step(page, "split").locator(".tw-step-name").click()  # closes the form
    return Latency("first sample of an edited kernel", 1000, tuple(samples))


def idle(page: Page) -> None:
    """Wait for the answers and for the paint that displays them."""
    page.wait_for_selector(".tw-dot:not(.is-busy)")
    # The callback of the second frame runs once the first is painted.
    frames = "requestAnimationFrame(() => requestAnimationFrame(done))"
    page.evaluate(f"() => new Promise((done) => {frames})")
