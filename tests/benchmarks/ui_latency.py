"""Latency of the workbench on MiniLM, and on a flat graph of 5,000 operations, in Chromium.

Run as ``python -m tests.benchmarks.ui_latency [--json FILE]``. Each sample is the time from the
request that a click sends, or from an event that sends none, to the paint of its result: browser,
server, kernel, and back. The budgets are those of the 95th percentile. The environment variable
REPEATS sets the number of samples.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.benchmarks.harness import arguments, write_json
from tests.browser.lab import running_lab
from tests.browser.latency import FLAT, MODEL, Latency, measure, measure_flat

REPEATS = 60
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def main() -> int:
    options = arguments(__doc__ or "")
    repeats = int(os.environ.get("REPEATS", REPEATS))
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    found = {}
    with tempfile.TemporaryDirectory() as home, running_lab(Path(home)) as lab:
        lab.write("minilm.ipynb", [MODEL])
        lab.write("flat.ipynb", [FLAT])
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
            for name, timed in (("minilm", measure), ("flat", measure_flat)):
                page = browser.new_page(viewport={"width": 1800, "height": 1050})
                lab.open(page, f"{name}.ipynb")
                print(f"{name:<42}{'n':>5}{'median':>9}{'p95':>9}{'budget':>9}   (ms)")
                found[name] = list[Latency]()
                for latency in timed(page, repeats):
                    print(latency, flush=True)
                    found[name].append(latency)
                page.close()
            browser.close()
    figures = {
        name: {
            x.action: {"median_ms": x.median, "p95_ms": x.p95, "budget_ms": x.budget} for x in rows
        }
        for name, rows in found.items()
    }
    write_json(options.json, {"repeats": repeats, "actions": figures})
    return sum(x.p95 > x.budget for rows in found.values() for x in rows)


if __name__ == "__main__":
    sys.exit(main())
