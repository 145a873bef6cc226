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

TIMEOUT = 60_000
"""The timeout for any other action, in milliseconds; another process may use both cores."""

SERVER = 120
"""The timeout for starting and for stopping JupyterLab, in seconds."""

PORTS = 3
"""The maximum number of ports to try."""

TAKEN = "is not available"
"""The message of JupyterLab about a port that another process uses."""

SHARED = "shared.ipynb"
"""The notebook of all tests that need neither a kernel nor a file of their own."""

CONFIG = """
from jupyterlab.galata import configure_jupyter_server
configure_jupyter_server(c)
c.ServerApp.port = {port}
c.ServerApp.port_retries = 0
c.ServerApp.root_dir = {root!r}
c.ServerApp.allow_root = True
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.KernelRestarter.time_to_dead = 0.5  # seconds until a killed kernel is noticed
"""

WORKSPACES = (f"test{number}" for number in itertools.count())
"""The names of workspaces, one per page, because JupyterLab restores the layout of a workspace."""

RESTORED = "() => window.jupyterapp.restored"
"""Wait until the layout is restored; JupyterLab drops commands before that."""

READY = "window.jupyterapp?.shell?.currentWidget?.sessionContext != null"
IDLE = "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status == 'idle'"
LOADED = """() => {
    const notebook = window.jupyterapp.shell.currentWidget?.content;
    const wanted = notebook?.model?.cells.length ?? 0;
    return wanted > 0 && notebook.widgets.length === wanted;
}"""
"""Whether all cells are loaded, which in a long notebook is later than the session is ready."""

STARTED = """() => {
    const cells = window.jupyterapp.shell.currentWidget.content.widgets;
    const code = cells.filter((cell) => cell.model.type === 'code').map((cell) => cell.model);
    return code.some((cell) => cell.executionCount != null || cell.executionState === 'running');
}"""

CONNECTED = "document.querySelector('.tw-root[data-connected=true]') !== null"
"""Whether a workbench is connected; a function is checked in each frame, a selector less often."""

DONE = """() => {
    const cells = window.jupyterapp.shell.currentWidget.content.widgets;
    return cells.every((cell) => cell.model.executionState !== 'running');
}"""
"""Whether all cells have run; the kernel is idle between two cells, too."""

STATUS = "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status"

FORGET = """() => Object.keys(localStorage).filter((key) => key.startsWith("tilewright:"))
    .forEach((key) => localStorage.removeItem(key))"""
"""Remove the traces that workbenches of other kernels left in the browser."""

FORGET_VIEWS = """() => Object.keys(sessionStorage).filter((key) => key.startsWith("tilewright:"))
    .forEach((key) => sessionStorage.removeItem(key))"""
"""Remove the views of programs that the page has kept."""

CLEAR = "() => window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')"
"""Remove the outputs and the execution counts of all cells."""

SHOW_FILES = """() => {
    const { shell } = window.jupyterapp;
    if (shell.leftCollapsed) shell.expandLeft();
}"""
"""Show the side bar, which a test has hidden if it failed."""

RESET = """async () => {
    const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
    const close = 'import gc; from ipywidgets import Widget; Widget.close_all()';
    for (const code of [close, '%reset -f', 'import gc; gc.collect()']) {
        const { content } = await kernel.requestExecute({ code, store_history: false }).done;
        if (content.status !== 'ok') throw new Error(content.evalue);
    }
}"""
"""Close the workbenches of a kernel, and remove all names that its cells have defined."""

REPLACE = """(sources) => {
    const shared = window.jupyterapp.shell.currentWidget.content.model.sharedModel;
    const cells = sources.map((source) => ({ cell_type: 'code', source, metadata: {} }));
    shared.transact(() => {
        shared.deleteCellRange(0, shared.cells.length);
        shared.insertCells(0, cells);
    });
}"""
"""Replace all cells of a notebook."""

RUN_ALL = "() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }"
RUN_CELLS = """(ids) => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    const cells = notebook.widgets.filter((cell) => ids.includes(cell.model.id));
    notebook.deselectAll();
    notebook.activeCellIndex = notebook.widgets.indexOf(cells[0]);
    for (const cell of cells) notebook.select(cell);
    window.jupyterapp.commands.execute('notebook:run-cell');
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

    def open(self, page: Page, name: str, ids: Sequence[str] = ()) -> None:
        """Open a notebook, run all cells or those with some ids, and wait for a workbench."""
        page.set_default_timeout(START)
        page.add_init_script(f"({FORGET})()")
        page.goto(f"{self.url}/lab/workspaces/{next(WORKSPACES)}/tree/{name}")
        page.wait_for_function(READY)
        page.evaluate(RESTORED)
        page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.ready")
        page.wait_for_function(IDLE)
        page.wait_for_function(LOADED)
        self._run(page, ids)

    def run_again(self, page: Page, ids: Sequence[str] = ()) -> None:
        """Run all cells of an open page or those with some ids, and wait for the new workbench."""
        page.set_default_timeout(START)
        page.wait_for_function(IDLE)
        page.evaluate(CLEAR)
        page.wait_for_function("document.querySelector('.tw-root') === null")
        page.evaluate(FORGET_VIEWS)
        page.evaluate(SHOW_FILES)
        self._run(page, ids)

    def replace(self, page: Page, cells: Sequence[str]) -> None:
        """Run other cells in an open page and its kernel, and wait for the new workbench."""
        page.set_default_timeout(START)
        page.wait_for_function(IDLE)
        page.evaluate(CLEAR)
        page.evaluate(RESET)
        page.evaluate(REPLACE, list(cells))
        page.wait_for_function(LOADED)
        self.run_again(page)

    def _run(self, page: Page, ids: Sequence[str]) -> None:
        run(page, ids)
        connected(page)
        page.wait_for_function(DONE)
        page.wait_for_function(IDLE)
        page.evaluate("document.querySelector('.tw-root').scrollIntoView({block: 'end'})")
        page.set_default_timeout(TIMEOUT)

    def end_kernels(self, kept: str = SHARED) -> None:
        """Shut down the kernels of all notebooks but one.

        JupyterLab would reuse them for the next notebook with the same name.
        """
        with urllib.request.urlopen(f"{self.url}/api/sessions", timeout=TIMEOUT / 1e3) as response:
            sessions = json.load(response)
        for session in sessions:
            if session["path"] == kept:
                continue
            request = urllib.request.Request(
                f"{self.url}/api/sessions/{session['id']}", method="DELETE"
            )
            urllib.request.urlopen(request, timeout=TIMEOUT / 1e3).close()


def connected(page: Page) -> None:
    """Wait for a workbench; on a timeout, raise an error with the output of the cells."""
    try:
        page.wait_for_function(CONNECTED)
    except TimeoutError as error:
        outputs = page.locator(".jp-Cell .jp-Cell-outputArea").all_inner_texts()
        prompts = page.locator(".jp-Cell .jp-InputPrompt").all_inner_texts()
        status = page.evaluate(STATUS)
        raise LabError(f"no workbench; kernel {status}, {prompts}, {outputs}") from error


def run(page: Page, ids: Sequence[str]) -> None:
    """Run cells; repeat the command if JupyterLab dropped it during its start."""
    for _ in range(ATTEMPTS):
        page.evaluate(RUN_CELLS if ids else RUN_ALL, list(ids))
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
    quiet = home / "settings" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text(
        '{"fetchNews": "false", "checkForUpdates": false}'
    )
    for attempt in range(1, PORTS + 1):
        port = free_port()
        server = start(home, root, port)
        try:
            try:
                wait_for(f"http://127.0.0.1:{port}/api", server, home)
            except LabError as error:
                if TAKEN in str(error) and attempt < PORTS:
                    continue
                raise
            yield Lab(f"http://127.0.0.1:{port}", root)
            return
        finally:
            server.terminate()
            server.wait(SERVER)


def start(home: Path, root: Path, port: int) -> subprocess.Popen[bytes]:
    """Start JupyterLab, which exits if another process has taken the port."""
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
    command = [sys.executable, "-m", "jupyterlab", f"--config={config}", "--no-browser"]
    with (home / "lab.log").open("w") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=root)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(url: str, server: subprocess.Popen[bytes], home: Path) -> None:
    """Wait until this server answers; another process may have taken its port."""
    info = home / "runtime" / f"jpserver-{server.pid}.json"

    def answers() -> bool:
        if server.poll() is not None:
            raise LabError(f"JupyterLab exited:\n{(home / 'lab.log').read_text()}")
        if not info.exists():
            return False
        try:
            with urllib.request.urlopen(url, timeout=2):
                return True
        except (urllib.error.URLError, OSError):
            return False

    try:
        wait_until(answers, timeout=SERVER, interval=0.1)
    except AssertionError:
        log = (home / "lab.log").read_text()
        raise LabError(f"JupyterLab does not respond:\n{log}") from None
