"""Waiting in tests: conditions are polled with a deadline, never awaited by a fixed sleep."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


def wait_until(condition: Callable[[], T], timeout: float = 5, interval: float = 0.01) -> T:
    """Poll a condition until it is true and return its value.

    Parameters
    ----------
    condition : callable
        The condition; any true value ends the wait.
    timeout : float
        Seconds after which the test fails.
    interval : float
        Seconds between two polls.

    Raises
    ------
    AssertionError
        If the condition is still false after the timeout.
    """
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() >= deadline:
            message = f"the condition is still false after {timeout} s"
            raise AssertionError(message)
        time.sleep(interval)
    return value


def cpu_seconds(pids: Iterable[int | None]) -> float:
    """Return the processor time that some processes have used; 0 for those that have ended."""
    return sum(_cpu_seconds(pid) for pid in pids if pid is not None)


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_busy(
    pids: Callable[[], Iterable[int | None]], seconds: float = 0.2, timeout: float = 60
) -> None:
    """Wait until some processes have computed for as many seconds of processor time since now."""
    before = cpu_seconds(pids())
    wait_until(lambda: cpu_seconds(pids()) - before >= seconds, timeout)


def processes(part: str, folder: Path | None = None) -> list[int]:
    """Return the processes whose command line contains a text, and that run in a folder if given.

    Other tests may run such processes at the same time, in other folders.
    """
    found: list[int] = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_bytes().decode(errors="replace")
                if part in command and (folder is None or (process / "cwd").samefile(folder)):
                    found.append(int(process.name))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
    return found


def pid_reported_by_child(owner: Callable[[Callable[[int], None]], None]) -> int:
    """Run a function in a forked child until it exits, and return the pid that it reports."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            owner(lambda pid: os.write(writer, str(pid).encode()))
        finally:
            os._exit(1)  # a failure must not return to the tests of the parent
    os.close(writer)
    os.waitpid(child, 0)
    return int(os.read(reader, 20))


def is_running(pid: int) -> bool:
    """Return whether a thread of a process is running; the first may exit before the others."""
    try:
        stats = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/task").exists()
    return len(stats) > 1 or any(stat.rsplit(")", 1)[1].split()[0] not in "ZX" for stat in stats)


def pause(seconds: float) -> None:
    """Let time pass where its passing is part of the test, not a wait for a condition."""
    time.sleep(seconds)
