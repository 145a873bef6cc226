"""Ten tasks of a new user on one model, as a person: pointer and keys only.

Run as ``python -m tests.browser.tour FOLDER [--video]`` to perform them on three models, at three
widths, in the light and the dark theme, and to save a picture of each task, and a video of each
session, for which ``playwright install ffmpeg`` is necessary.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect, sync_playwright

from tests.browser.lab import IDLE, START, running_lab
from tests.browser.workbench import answered, code, menu_shown, tab, theme

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page

LONG = 180_000
"""The timeout for compiling and measuring a model, in milliseconds."""

TORCH = """
import torch
import tilewright as tw

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)

    def forward(self, x):
        return torch.softmax(x + self.down(torch.nn.functional.gelu(self.up(x))), -1)

batch = torch.export.Dim("batch", min=1, max=512)
example = (torch.randn(48, 64),)
program = torch.export.export(Net().eval(), example, dynamic_shapes=({0: batch},))
wb = tw.Workbench(tw.from_exported_program(program))
wb
"""

ONNX = """
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import tilewright as tw

rng = np.random.default_rng(0)
weights = {"u": rng.normal(size=(64, 256)), "d": rng.normal(size=(256, 64))}
nodes = [
    helper.make_node("MatMul", ["x", "u"], ["a"]),
    helper.make_node("Relu", ["a"], ["b"]),
    helper.make_node("MatMul", ["b", "d"], ["c"]),
    helper.make_node("Softmax", ["c"], ["y"], axis=-1),
]
graph = helper.make_graph(
    nodes, "net",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 64])],
    [numpy_helper.from_array(w.astype(np.float32), k) for k, w in weights.items()],
)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "net.onnx")
wb = tw.Workbench(tw.from_onnx("net.onnx"))
wb
"""

MINILM = """
import tilewright as tw
from tilewright.workbench.demo import export_minilm, load_minilm
wb = tw.Workbench(tw.from_exported_program(export_minilm(load_minilm())))
wb
"""

MODELS = {"torch": TORCH, "onnx": ONNX, "minilm": MINILM}
WIDTHS = (1440, 1000, 760)


@dataclass
class Tour:
    """The tasks on one page; ``picture`` is called with the name of each task after it."""

    page: Page
    picture: Callable[[str], object]
    name: str = ""

    def button(self, name: str) -> Locator:
        return self.page.locator(".tw-root").get_by_role("button", name=name, exact=True)

    def pane(self, name: str) -> None:
        """Show a pane that is a tab in the narrow layout."""
        tabs = self.page.get_by_role("tablist", name="Panes").get_by_role("tab", name=name)
        if tabs.count():
            tabs.click()

    def rule(self) -> Locator:
        self.pane("Loops")
        return self.page.locator(".tw-rule:visible")

    def measure(self, which: str) -> None:
        self.button(which).click()
        expect(self.page.locator(".tw-announcement")).to_contain_text("Measured", timeout=LONG)

    def all(self) -> None:
        """Perform the ten tasks."""
        for task in (
            self.open, self.time, self.slowest, self.take, self.change, self.compare, self.undo,
            self.give_back, self.save, self.restart,
        ):  # fmt: skip
            task()
            self.picture(task.__name__.replace("_", "-"))

    def open(self) -> None:
        expect(code(self.page)).to_contain_text("def main(")

    def time(self) -> None:
        self.measure("Measure")
        self.pane("More")
        tab(self.page, "Kernels")
        expect(self.page.locator(".tw-kernels")).to_contain_text("µs")

    def slowest(self) -> None:
        link = self.page.locator(".tw-kernels .tw-link").first
        self.name = link.inner_text()
        link.click()
        self.pane("Loops")
        expect(code(self.page)).to_contain_text(f"def {self.name}(")

    def take(self) -> None:
        self.rule().get_by_role("button", name="Take the default schedule").click()
        expect(self.rule()).to_contain_text("Has the steps of its default rule", timeout=LONG)

    def change(self) -> None:
        """Split the first serial loop of the schedule."""
        self.pane("Loops")
        self.page.locator(".tw-marker.tw-kind-serial:visible").first.click()
        answered(self.page)
        self.pane("Steps")
        menu_shown(self.page)
        split = self.page.locator('.tw-step[data-step="split"]:visible')
        if split.count() == 0:  # it is not suggested for a short loop
            self.page.locator(".tw-other-steps:visible > summary").click()
        split.locator(".tw-step-name").click()
        split.get_by_label("factors", exact=True).fill("(None, 2)")
        expect(split.locator(".tw-form-status")).to_have_text("Legal")
        self.page.keyboard.press("Enter")
        expect(self.page.locator(".tw-announcement")).to_contain_text("split")

    def compare(self) -> None:
        self.measure("Measure kernel")
        self.pane("More")
        tab(self.page, "History")
        times = self.page.locator(".tw-history-row .tw-history-time")
        expect(times.nth(1)).to_be_visible()

    def undo(self) -> None:
        before = self.page.locator(".tw-history-row.is-head").inner_text()
        self.page.keyboard.press("Control+z")
        expect(self.page.locator(".tw-announcement")).to_contain_text("Undo")
        expect(self.page.locator(".tw-history-row.is-head")).not_to_have_text(before)

    def give_back(self) -> None:
        self.rule().get_by_role("button", name="Return to the default rule").click()
        expect(self.rule()).to_contain_text("Gets the default rule", timeout=LONG)

    def save(self) -> None:
        self.page.keyboard.press("Control+s")
        self.pane("More")
        tab(self.page, "Trace")
        with self.page.expect_download() as download:
            self.button("Save").click()
        assert "lower_graph" in Path(download.value.path()).read_text()

    def restart(self) -> None:
        """Restart the kernel, run the cell again, and restore the steps."""
        page = self.page
        page.locator('.jp-NotebookPanel-toolbar [data-jp-item-name="restart"]').click()
        page.locator(".jp-Dialog .jp-mod-accept").click()
        bar = page.locator(".tw-connection")
        expect(bar).to_contain_text("restarted or has stopped", timeout=LONG)
        page.wait_for_function(IDLE, timeout=START)
        page.locator(".jp-CodeCell .jp-InputArea-editor").first.click()
        page.keyboard.press("Shift+Enter")
        expect(bar).to_contain_text("stopped with", timeout=START)
        bar.get_by_role("button", name="Restore").click()
        expect(bar).to_have_count(0, timeout=LONG)
        self.pane("More")
        tab(page, "History")
        expect(page.locator(".tw-history-row")).to_have_count(2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the pictures")
    parser.add_argument("--video", action="store_true", help="also save videos")
    options = parser.parse_args()
    folder, videos = options.folder, options.folder if options.video else None
    folder.mkdir(parents=True, exist_ok=True)
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as home, running_lab(Path(home)) as lab:
        for name, cell in MODELS.items():
            lab.write(f"{name}.ipynb", [cell])
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
            for k, (name, width) in enumerate((n, w) for n in MODELS for w in WIDTHS):
                size = {"width": width, "height": 900}
                context = browser.new_context(viewport=size, record_video_dir=videos)
                page = context.new_page()
                lab.open(page, f"{name}.ipynb")
                theme(page, "JupyterLab Dark" if k % 2 else "JupyterLab Light")
                start = folder / f"{name}-{width}"
                Tour(page, lambda task, s=start, p=page: p.screenshot(path=f"{s}-{task}.png")).all()
                context.close()
                lab.end_kernels()
                sys.stdout.write(f"{name}, {width} pixels: ten tasks\n")
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
