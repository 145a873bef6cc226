"""A real Chromium in a real JupyterLab, both started once for all tests of this folder."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

import nbformat
import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

START = 90_000
"""Milliseconds that a kernel may take to start on a busy machine."""

PATIENCE = 15_000
"""Milliseconds that anything else may take."""

CONFIG = """
from jupyterlab.galata import configure_jupyter_server
configure_jupyter_server(c)
c.ServerApp.port = {port}
c.ServerApp.root_dir = {root!r}
c.ServerApp.allow_root = True
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
"""


@dataclass(frozen=True, slots=True)
class Lab:
    """A JupyterLab server and the folder it serves."""

    url: str
    root: Path

    def write(self, name: str, cells: list[str]) -> None:
        """Put a notebook of code cells into the folder."""
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(notebook, self.root / name)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab on a free port, with settings and workspaces of its own."""
    home = tmp_path_factory.mktemp("lab")
    root = home / "root"
    root.mkdir()
    port = free_port()
    config = home / "jupyter_server_config.py"
    config.write_text(CONFIG.format(port=port, root=str(root)))
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    log = (home / "lab.log").open("w")
    command = [sys.executable, "-m", "jupyterlab", f"--config={config}", "--no-browser"]
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=root)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{url}/api", server, home / "lab.log")
        yield Lab(url, root)
    finally:
        server.terminate()
        server.wait(20)
        log.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(240):
        if server.poll() is not None:
            pytest.fail(f"JupyterLab ended:\n{log.read_text()}")
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    pytest.fail(f"JupyterLab does not answer:\n{log.read_text()}")


@pytest.fixture
def open_notebook(browser: Browser, lab: Lab) -> Iterator[Callable[[str], Page]]:
    """Open a notebook of the folder, run all its cells, and give the page once a widget shows."""
    expect.set_options(timeout=PATIENCE)
    context = browser.new_context(viewport={"width": 1500, "height": 1050})
    faults: list[str] = []

    def open_(name: str) -> Page:
        page = context.new_page()
        page.set_default_timeout(START)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{lab.url}/lab/tree/{name}")
        page.wait_for_function("window.jupyterapp?.shell?.currentWidget?.sessionContext != null")
        page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.ready")
        page.wait_for_function(
            "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status == 'idle'"
        )
        page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
        page.wait_for_selector(".tw-root[data-connected=true]")
        page.set_default_timeout(PATIENCE)
        return page

    yield open_
    context.close()
    assert faults == []
