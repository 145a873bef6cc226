"""A JupyterLab server on a free port, and pages that run a notebook."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import nbformat
from playwright.sync_api import TimeoutError  # noqa: A004  # named by playwright

from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from playwright.sync_api import Page

START = 120_000
"""The timeout for starting a kernel and running its cells, in milliseconds."""

ATTEMPTS = 6
"""The maximum number of attempts to run the cells."""

TIMEOUT = 20_000
"""The timeout for any other action, in milliseconds."""

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
"""The names of workspaces, one per page, because JupyterLab restores the layout of a workspace."""

READY = "window.jupyterapp?.shell?.currentWidget?.sessionContext != null"
IDLE = "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status == 'idle'"
LOADED = """(id) => {
    const notebook = window.jupyterapp.shell.currentWidget?.content;
    const cells = notebook?.widgets ?? [];
    const wanted = notebook?.model?.cells.length ?? 0;
    const there = id ? cells.some((cell) => cell.model.id === id) : wanted > 0;
    return there && cells.length === wanted;
}"""
"""Whether all cells are loaded, which in a long notebook is later than the session is ready."""

STARTED = """() => {
    const cells = window.jupyterapp.shell.currentWidget.content.widgets;
    const code = cells.filter((cell) => cell.model.type === 'code').map((cell) => cell.model);
    return code.some((cell) => cell.executionCount != null || cell.executionState === 'running');
}"""

STATUS = "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status"

FORGET = """() => Object.keys(localStorage).filter((key) => key.startsWith("tilewright:"))
    .forEach((key) => localStorage.removeItem(key))"""
"""Remove the traces that workbenches of other kernels left in the browser."""

FORGET_VIEWS = """() => Object.keys(sessionStorage).filter((key) => key.startsWith("tilewright:"))
    .forEach((key) => sessionStorage.removeItem(key))"""
"""Remove the views of programs that the page has kept."""

CLEAR = "() => window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')"
"""Remove the outputs and the execution counts of all cells."""

RUN_ALL = "() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }"
RUN_ABOVE = """(id) => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    notebook.activeCellIndex = notebook.widgets.findIndex((cell) => cell.model.id === id);
    window.jupyterapp.commands.execute('notebook:run-all-above');
}"""


class LabError(RuntimeError):
    """A failed start of JupyterLab; the message is its log."""


@dataclass(frozen=True, slots=True)
class Lab:
    """A JupyterLab server and the folder it serves."""

    url: str
    root: Path

    def write(self, name: str, cells: Sequence[str]) -> None:
        """Write a notebook of code cells to the folder."""
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(notebook, self.root / name)

    def open(self, page: Page, name: str, before: str = "") -> None:
        """Open a notebook, run its cells, and wait for a workbench.

        With ``before``, only the cells above the cell with this id are run.
        """
        page.set_default_timeout(START)
        page.add_init_script(f"({FORGET})()")
        page.goto(f"{self.url}/lab/workspaces/{next(WORKSPACES)}/tree/{name}")
        page.wait_for_function(READY)
        page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.ready")
        page.wait_for_function(IDLE)
        page.wait_for_function(LOADED, arg=before)
        self._run(page, before)

    def run_again(self, page: Page, before: str = "") -> None:
        """Run the cells of an open page again, and wait for the new workbench."""
        page.set_default_timeout(START)
        page.wait_for_function(IDLE)
        page.evaluate(CLEAR)
        page.wait_for_selector(".tw-root", state="detached")
        page.evaluate(FORGET_VIEWS)
        self._run(page, before)

    def _run(self, page: Page, before: str) -> None:
        run(page, before)
        connected(page)
        page.wait_for_function(IDLE)
        page.evaluate("document.querySelector('.tw-root').scrollIntoView({block: 'end'})")
        page.set_default_timeout(TIMEOUT)

    def end_kernels(self) -> None:
        """Shut down all kernels, because JupyterLab would reuse them for the next notebook."""
        with urllib.request.urlopen(f"{self.url}/api/sessions", timeout=20) as response:
            sessions = json.load(response)
        for session in sessions:
            request = urllib.request.Request(
                f"{self.url}/api/sessions/{session['id']}", method="DELETE"
            )
            urllib.request.urlopen(request, timeout=20).close()


def connected(page: Page) -> None:
    """Wait for a workbench; on a timeout, raise an error with the output of the cells."""
    try:
        page.wait_for_selector(".tw-root[data-connected=true]", state="attached")
    except TimeoutError as error:
        outputs = page.locator(".jp-Cell .jp-Cell-outputArea").all_inner_texts()
        prompts = page.locator(".jp-Cell .jp-InputPrompt").all_inner_texts()
        status = page.evaluate(STATUS)
        raise LabError(f"no workbench; kernel {status}, {prompts}, {outputs}") from error


def run(page: Page, before: str) -> None:
    """Run cells; repeat the command if JupyterLab dropped it during its start."""
    for _ in range(ATTEMPTS):
        page.evaluate(RUN_ABOVE if before else RUN_ALL, before)
        try:
            page.wait_for_function(STARTED, timeout=START / ATTEMPTS / 2)
        except TimeoutError:
            continue
        return
    raise LabError(f"no cell was run after {ATTEMPTS} attempts")


@contextmanager
def running_lab(home: Path) -> Iterator[Lab]:
    """Run JupyterLab on a free port, with temporary settings and workspaces."""
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
    def answers() -> bool:
        if server.poll() is not None:
            raise LabError(f"JupyterLab exited:\n{log.read_text()}")
        try:
            with urllib.request.urlopen(url, timeout=2):
                return True
        except (urllib.error.URLError, OSError):
            return False

    try:
        wait_until(answers, timeout=60, interval=0.25)
    except AssertionError:
        raise LabError(f"JupyterLab does not respond:\n{log.read_text()}") from None
