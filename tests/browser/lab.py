"""JupyterLab on a port of its own, and pages in it that run a notebook."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import nbformat
from playwright.sync_api import TimeoutError  # noqa: A004  # the name that playwright gives it

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

START = 120_000
"""Milliseconds that a kernel may take to start and run its cells on a busy machine."""

ATTEMPTS = 6
"""Times that cells are told to run, until one does."""

PATIENCE = 20_000
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

WORKSPACES = (f"test{number}" for number in itertools.count())
"""Each page has a layout of its own: JupyterLab opens again what the last one had open."""

READY = "window.jupyterapp?.shell?.currentWidget?.sessionContext != null"
IDLE = "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status == 'idle'"
LOADED = """(id) => {
    const notebook = window.jupyterapp.shell.currentWidget?.content;
    const cells = notebook?.widgets ?? [];
    const wanted = notebook?.model?.cells.length ?? 0;
    const there = id ? cells.some((cell) => cell.model.id === id) : wanted > 0;
    return there && cells.length === wanted;
}"""
"""The session is ready before the cells of a long notebook are: running then would run none."""

STARTED = """() => {
    const cells = window.jupyterapp.shell.currentWidget.content.widgets;
    const code = cells.filter((cell) => cell.model.type === 'code').map((cell) => cell.model);
    return code.some((cell) => cell.executionCount != null || cell.executionState === 'running');
}"""

STATUS = "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status"

RUN_ALL = "() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }"
RUN_ABOVE = """(id) => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    notebook.activeCellIndex = notebook.widgets.findIndex((cell) => cell.model.id === id);
    window.jupyterapp.commands.execute('notebook:run-all-above');
}"""


class LabError(RuntimeError):
    """JupyterLab does not start; the message is its log."""


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

    def open(self, page: Page, name: str, before: str = "") -> None:
        """Open a notebook, run its cells, and return once a workbench shows.

        With ``before``, only the cells above the one of that id are run.
        """
        page.set_default_timeout(START)
        page.goto(f"{self.url}/lab/workspaces/{next(WORKSPACES)}/tree/{name}")
        page.wait_for_function(READY)
        page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.ready")
        page.wait_for_function(IDLE)
        page.wait_for_function(LOADED, arg=before)
        run(page, before)
        connected(page)
        page.wait_for_function(IDLE)
        page.evaluate("document.querySelector('.tw-root').scrollIntoView({block: 'end'})")
        page.set_default_timeout(PATIENCE)

    def end_kernels(self) -> None:
        """Let the next test begin with none: an old one would be offered to its notebook."""
        with urllib.request.urlopen(f"{self.url}/api/sessions", timeout=20) as answer:
            sessions = json.load(answer)
        for session in sessions:
            request = urllib.request.Request(
                f"{self.url}/api/sessions/{session['id']}", method="DELETE"
            )
            urllib.request.urlopen(request, timeout=20).close()


def connected(page: Page) -> None:
    """Wait for a workbench; where none comes, say what the cells printed instead."""
    try:
        page.wait_for_selector(".tw-root[data-connected=true]", state="attached")
    except TimeoutError as error:
        shown = page.locator(".jp-Cell .jp-Cell-outputArea").all_inner_texts()
        prompts = page.locator(".jp-Cell .jp-InputPrompt").all_inner_texts()
        status = page.evaluate(STATUS)
        raise LabError(f"no workbench; kernel {status}, {prompts}, {shown}") from error


def run(page: Page, before: str) -> None:
    """Run cells, again where JupyterLab dropped the command while it still set itself up."""
    for _ in range(ATTEMPTS):
        page.evaluate(RUN_ABOVE if before else RUN_ALL, before)
        try:
            page.wait_for_function(STARTED, timeout=START / ATTEMPTS / 2)
        except TimeoutError:
            continue
        return
    raise LabError(f"no cell runs after {ATTEMPTS} attempts")


@contextmanager
def running_lab(home: Path) -> Iterator[Lab]:
    """JupyterLab on a free port, with settings and workspaces of its own."""
    root = home / "root"
    root.mkdir()
    port = free_port()
    config = home / "jupyter_server_config.py"
    config.write_text(CONFIG.format(port=port, root=str(root)))
    quiet = home / "settings" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text(
        '{"fetchNews": "false", "checkForUpdates": false}'
    )
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    with (home / "lab.log").open("w") as log:
        command = [sys.executable, "-m", "jupyterlab", f"--config={config}", "--no-browser"]
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=root)
        try:
            wait_for(f"http://127.0.0.1:{port}/api", server, home / "lab.log")
            yield Lab(f"http://127.0.0.1:{port}", root)
        finally:
            server.terminate()
            server.wait(20)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(240):
        if server.poll() is not None:
            raise LabError(f"JupyterLab ended:\n{log.read_text()}")
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.25)
    raise LabError(f"JupyterLab does not answer:\n{log.read_text()}")
