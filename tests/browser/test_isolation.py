"""Crashes and hangs in one session: each becomes a problem, and the session remains usable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.workbench import LONG, apply, code, finished, open_function, select_loop, tab
from tests.waiting import processes, wait_until_busy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from tests.browser.lab import Lab


pytestmark = pytest.mark.browser

PROGRAM = '''
import os
os.environ["XDG_CACHE_HOME"] = os.path.abspath("cache")
import tilewright as tw
from tilewright.codegen import program_checks
from tilewright.ir import verify
verify.check_program = lambda *_, **__: None  # because no checked program crashes
program_checks.check_proved = lambda _: None
program_checks.with_kernel_checks = lambda function: function
mod = tw.parse("""
n = symbols("n", lower=1)

@prim_func
def halve(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] * 0.5

@prim_func
def wild(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i + 99999999999] = x[i]

@prim_func
def endless(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i]
    for i1 in range(n):
        for k in range(4611686018427387904):
            y[i1] = y[i1] * 0.5 + 1.0

@prim_func
def greedy(x: Buffer[(n,), f32], y: Out[(n * 3000000000000,), f32]):
    for i in range(n):
        y[i] = x[i]
""", check=False)
wb = tw.Workbench(mod)
wb
'''

KILL = """
import signal
from pathlib import Path
for children in Path("/proc/self/task").glob("*/children"):
    for pid in children.read_text().split():
        if b"sandbox.child" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(int(pid), signal.SIGKILL)
"""
"""Kill the sandbox process from a cell."""

ABORT = '''
from tilewright.codegen import compiler
emit_module = compiler.emit_module
compiler.emit_module = lambda *args, **named: emit_module(*args, **named) + """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define i32 @no_such_instruction() {
  %a = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  ret i32 %a
}
"""
'''
"""Pass an intrinsic without a host instruction to LLVM, which aborts its process."""

RESTORE = "compiler.emit_module = emit_module"

ACKNOWLEDGED = 100
"""The maximum time from a click on Cancel to the paint of its answer, in milliseconds."""

PRESS_CANCEL = """async () => {
    const button = [...document.querySelectorAll(".tw-job .tw-button")].at(-1);
    const pressed = performance.now();
    button.click();
    while (document.querySelector(".tw-job") && !button.textContent.includes("Canceling"))
        await new Promise((resolve) => requestAnimationFrame(resolve));
    return performance.now() - pressed;
}"""


@pytest.fixture
def page(open_notebook: Callable[..., Page]) -> Page:
    return open_notebook([PROGRAM], "isolation.ipynb")


def execute(page: Page, cell: str) -> None:
    """Run code in the notebook's kernel; an error in the code fails the test."""
    status = page.evaluate(
        """async (code) => {
            const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
            return (await kernel.requestExecute({code}).done).content.status;
        }""",
        cell,
    )
    assert status == "ok"


def start(page: Page, name: str) -> None:
    """Open a function and measure it."""
    open_function(page, name)
    page.get_by_role("button", name="Measure", exact=True).click()


def problem(page: Page, count: int) -> Locator:
    """Wait for one more entry of the Problems panel and return it."""
    tab(page, "Problems")
    expect(page.locator(".tw-problem")).to_have_count(count, timeout=LONG)
    return page.locator(".tw-problem").first


def works(page: Page, problems: int) -> None:
    """Check that a valid program is measured without a new problem."""
    start(page, "halve")
    finished(page)
    expect(page.locator(".tw-kernels")).to_contain_text("halve")
    expect(page.get_by_role("button", name="Measure", exact=True)).to_be_enabled()
    problem(page, problems)


def running(page: Page, folder: Path) -> None:
    """Wait until the endless kernel is running, in a process of the server of this folder."""
    expect(page.locator(".tw-job")).to_be_visible(timeout=LONG)
    # A kernel that never ends reports nothing; its process computes.
    wait_until_busy(lambda: processes("codegen.sandbox", folder), 1.0)


@pytest.mark.alone
def test_cancel_is_acknowledged_at_once(page: Page, lab: Lab) -> None:
    times: list[float] = []
    for _ in range(3):  # other processes of the machine may delay one of them
        start(page, "endless")
        running(page, lab.root)
        times.append(page.evaluate(PRESS_CANCEL))
        expect(page.locator(".tw-job")).to_have_count(0)
    assert min(times) < ACKNOWLEDGED, times


def test_session_survives_crashes_and_hangs(page: Page, lab: Lab) -> None:
    open_function(page, "wild")
    select_loop(page, "i")
    apply(page, "split")
    expect(code(page)).to_contain_text("for i_1 in range(")

    start(page, "wild")
    crashed = problem(page, 1)
    expect(crashed).to_contain_text("Run crash")
    expect(crashed).to_contain_text("SIGSEGV")
    expect(crashed).to_contain_text("kernel 'wild'")
    expect(crashed).to_contain_text("sch.split(")
    works(page, 1)

    start(page, "endless")
    running(page, lab.root)
    page.locator(".tw-job").get_by_role("button", name="Cancel").click()
    expect(page.locator(".tw-job")).to_have_count(0)
    works(page, 1)

    start(page, "endless")
    running(page, lab.root)
    execute(page, KILL)
    killed = problem(page, 2)
    expect(killed).to_contain_text("SIGKILL")
    expect(killed).to_contain_text("kernel 'endless'")
    works(page, 2)

    start(page, "greedy")
    expect(problem(page, 3)).to_contain_text("Run memory limit exceeded")
    works(page, 3)

    execute(page, ABORT)
    select_loop(page, "i")
    apply(page, "split")
    expect(code(page)).to_contain_text("for i_1 in range(")
    start(page, "halve")
    aborted = problem(page, 4)
    expect(aborted).to_contain_text("Compile worker crash")
    expect(aborted).to_contain_text("SIGABRT")
    expect(aborted).to_contain_text("Cannot select")
    execute(page, RESTORE)
    works(page, 4)

    tab(page, "Trace")
    expect(page.locator(".tw-trace")).to_contain_text("sch.split(")
    page.get_by_role("button", name="Undo").click()
    expect(code(page)).to_contain_text("for i in range(n)")
