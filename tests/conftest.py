"""Fixtures and hypothesis profiles for all tests."""

from __future__ import annotations

import difflib
import gc
import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.amounts import amount

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parent.parent

# CI uses the same examples each time, so that a failure is caused by a change; `make fuzz` uses
# new ones.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "fuzz",
    deadline=None,
    max_examples=2000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("TILEWRIGHT_PROFILE", "ci"))


def pytest_configure() -> None:
    """Handle Ctrl+C as in a terminal; a shell ignores it in commands in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Collect garbage less often, and do not traverse the collected tests in each collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files with slow tests first, so that no worker waits for one at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite goldens instead of comparing"
    )


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository root, which is the package."""
    return ROOT


@pytest.fixture(scope="session")
def fuzz_factor() -> int:
    """The factor of iterations of random loops relative to CI: 1, or 4 in `make fuzz`."""
    return amount(1, 4)


@pytest.fixture(scope="module", autouse=True)
def _kept_objects() -> Iterator[None]:
    """Keep the objects that a file leaves, such as packages and caches, out of collections.

    Otherwise each collection takes seconds in a process that has run many files.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _library_functions() -> Iterator[None]:
    """Remove the library functions that a test registers; those of a file at its import stay."""
    from tilewright.ir.graph.libraries import function

    registered = dict(function._FUNCTIONS)
    yield
    if registered != function._FUNCTIONS:
        function._FUNCTIONS.clear()
        function._FUNCTIONS.update(registered)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """A function that compares a text with `goldens/<name>`; `--update-golden` rewrites it."""
    folder = request.path.parent / "goldens"
    update = request.config.getoption("--update-golden")

    def check(name: str, text: str) -> None:
        path = folder / name
        text = text.rstrip("\n") + "\n"
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        if not path.exists():
            pytest.fail(
                f"no golden {path.relative_to(ROOT)}; write it with --update-golden:\n{text}"
            )
        expected = path.read_text()
        if text != expected:
            lines = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), "golden", "now", lineterm=""
            )
            pytest.fail(f"{path.relative_to(ROOT)} differs:\n" + "\n".join(lines))

    return check


@pytest.fixture
def every_level(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """All named feature sets, for tests that only compile; the host need not support them."""
    from tilewright.target import host

    from tests.codegen.kernels import ALL_LEVELS

    monkeypatch.setattr(host, "levels_of_host", lambda: ALL_LEVELS)
    return ALL_LEVELS


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium: `$CHROMIUM`, else the first on PATH."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.fail(
            "no Chromium: set CHROMIUM=/path/to/chromium, or run `make test`, which finds it"
        )
    return found


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """A headless Chromium; each test opens its own page."""
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    options += ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=options)
        yield running
        running.close()
