"""Progress bars: when they appear, and that nothing of them remains."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
import textwrap
from types import SimpleNamespace
from typing import ClassVar

import pytest

import tilewright as tw
from tilewright import progress as bars
from tilewright.progress import ProgressOptionError, part_of, progress_of, tracked

PROGRAM = """
@prim_func
def halve(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    for i in range(8):
        y[i] = x[i] * 0.5
"""


class Terminal(io.StringIO):
    """A stream that reports that it is a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    stream = Terminal()
    replace_stderr(monkeypatch, stream)
    monkeypatch.delenv(bars.VARIABLE, raising=False)
    return stream


def replace_stderr(monkeypatch, stream: io.StringIO | None) -> None:
    """Replace standard error for bars; pytest itself replaces `sys.stderr` between phases."""
    monkeypatch.setattr(bars, "sys", SimpleNamespace(stderr=stream, modules=sys.modules))


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(bars, "time", made)
    return made


def remaining(output: str) -> str:
    """Return the visible text after an output of a single line."""
    line = ""
    for part in output.split("\r"):
        line = part + line[len(part) :]
    return line.rstrip()


def test_a_bar_appears_after_a_delay_and_is_removed(terminal, clock):
    with progress_of("compiling") as report:
        report(0.1, "first")
        clock.now += bars.DELAY - 0.1
        report(0.2, "second")
        assert terminal.getvalue() == ""
        clock.now += 0.2
        report(0.5, "third")
        assert remaining(terminal.getvalue()).startswith("compiling  50% |")
        assert remaining(terminal.getvalue()).endswith(", third")
    assert remaining(terminal.getvalue()) == ""


def test_an_unknown_fraction_changes_only_the_message(terminal, clock):
    with progress_of("measuring", progress=True) as report:
        report(0.25, "a")
        clock.now += 1
        report(-1, "waiting")
        assert "25%" in remaining(terminal.getvalue())
        assert remaining(terminal.getvalue()).endswith("waiting")


def test_control_characters_of_names_are_escaped(terminal, clock):
    with progress_of("compiling", progress=True) as report:
        report(0.5, "a\x1b[31m\nb")
        shown = remaining(terminal.getvalue())
    assert "\x1b" not in shown
    assert r"a\x1b[31m b" in shown


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_bar_is_removed_if_the_work_fails_or_is_interrupted(terminal, clock, error):
    with pytest.raises(error), progress_of("compiling", progress=True) as report:
        report(0.5, "kernel")
        assert remaining(terminal.getvalue()) != ""
        raise error
    assert remaining(terminal.getvalue()) == ""


def test_a_stream_that_is_not_a_terminal_shows_a_bar_only_on_request(monkeypatch, clock):
    stream = io.StringIO()
    replace_stderr(monkeypatch, stream)
    for option in (None, False):
        with progress_of("compiling", option) as report:
            clock.now += 5
            report(0.5, "kernel")
    assert stream.getvalue() == ""
    with progress_of("compiling", progress=True) as report:
        report(0.5, "kernel")
    assert "kernel" in stream.getvalue()


@pytest.mark.parametrize("option", [None, True])
def test_the_environment_disables_all_bars(terminal, clock, monkeypatch, option):
    monkeypatch.setenv(bars.VARIABLE, "0")
    with progress_of("compiling", option) as report:
        clock.now += 5
        report(0.5, "kernel")
    assert terminal.getvalue() == ""


def test_work_inside_of_work_shows_no_second_bar(terminal, clock):
    with progress_of("outer", progress=True) as report:
        report(0.5, "kernel")
        before = terminal.getvalue()
        with progress_of("inner", progress=True) as inner:
            clock.now += 5
            inner(0.5, "kernel")
        assert terminal.getvalue() == before


def test_missing_standard_error_is_not_a_terminal(monkeypatch):
    replace_stderr(monkeypatch, None)
    assert not bars.is_terminal()


def test_a_function_is_called_instead():
    reported = []
    with progress_of("compiling", lambda *report: reported.append(report)) as report:
        report(0.5, "kernel")
    assert reported == [(0.5, "kernel")]


@pytest.mark.parametrize("option", [5, "yes", 0, 1.0])
def test_another_value_is_a_named_error(option):
    with pytest.raises(ProgressOptionError, match="expected a bool, a function or None, got"):
        tw.compile(tw.parse(PROGRAM), progress=option)


def test_an_unknown_value_of_the_environment_is_a_named_error(monkeypatch):
    monkeypatch.setenv(bars.VARIABLE, "no")
    with pytest.raises(ProgressOptionError, match="expected 0 or 1, got 'no'") as caught:
        tw.compile(tw.parse(PROGRAM))
    assert caught.value.where == f"environment variable {bars.VARIABLE}"


def test_parts_and_items_are_scaled():
    reported = []
    part = part_of(lambda *report: reported.append(report), 0.5, 0.7)
    part(0.5, "a")
    part(-1.0, "b")
    assert list(tracked([3, 4], part, str)) == [3, 4]
    assert reported == [(0.6, "a"), (-1.0, "b"), (0.5, "3"), (0.6, "4")]


def test_every_long_operation_reports_its_progress(tmp_path):
    module = tw.parse(PROGRAM)
    sch = tw.Schedule(module)
    sch.split("i", (None, 4))
    import numpy as np

    x = np.ones(8, np.float32)
    work = {
        "compile": lambda report: tw.compile(sch, progress=report),
        "verify": lambda report: sch.verify(progress=report),
        "measure": lambda report: tw.measure(sch, x, budget=0.05, progress=report),
        "export": lambda report: tw.export(sch, tmp_path / "made", progress=report),
    }
    for name, run in work.items():
        reported: list[float] = []
        run(lambda fraction, _message, seen=reported: seen.append(fraction))
        known = [f for f in reported if f >= 0]
        assert known, name
        assert known == sorted(known), name
        assert max(known) <= 1, name


class Shell:
    """The shell of a notebook."""

    config: ClassVar = {"IPKernelApp": {}}


def test_a_notebook_shows_a_widget_and_its_output_becomes_empty(monkeypatch, clock):
    import IPython
    from IPython import display

    shown, updated = [], []

    class Handle:
        def update(self, data, *, raw):
            updated.append((data, raw))

    def show(container, *, display_id):
        assert display_id
        shown.append(container)
        return Handle()

    monkeypatch.setattr(IPython, "get_ipython", Shell)
    monkeypatch.setattr(display, "display", show)
    assert bars.in_notebook()
    with progress_of("compiling") as report:
        report(0.1, "early")
        clock.now += 2
        report(0.5, "kernel")
        (container,) = shown
        _, bar, text = container.children
        assert bar.value == 50
        assert "kernel" in text.value
        assert updated == []
    assert updated == [({"text/plain": ""}, True)]
    assert container.comm is None


def in_terminal(code: str) -> str:
    """Run code in a new process in a pseudo-terminal, and return its output."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.pop(bars.VARIABLE, None)
        os.execv(sys.executable, [sys.executable, "-c", textwrap.dedent(code)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    written = b""
    with contextlib.suppress(OSError):  # the process has ended
        while part := os.read(terminal, 4096):
            written += part
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, written
    return written.decode()


def test_a_real_terminal_is_clean_after_an_interrupt():
    output = in_terminal("""
        import os, signal
        from tilewright import progress
        progress.DELAY = 0.0
        try:
            with progress.progress_of("compiling") as report:
                report(0.5, "kernel")
                os.kill(os.getpid(), signal.SIGINT)
                while True:
                    signal.pause()
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert "compiling  50% |" in output
    assert remaining(output.rstrip("\r\n")) == "interrupted"


def test_quick_work_does_not_load_tqdm():
    code = "import sys, tilewright as tw; tw.compile(tw.parse(%r)); print('tqdm' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code % PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
