"""Functions that run in a forked process, so that a crash or an endless loop stays there."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Outcome:
    """The result of a contained function, or the way in which its process ended."""

    value: Any = None
    ended: str = ""


@dataclass(eq=False)
class Child:
    """A forked process that sends lines of text."""

    pid: int
    pipe: int
    buffer: bytes = b""
    lines: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, work: Callable[[Callable[[str], None]], None]) -> Child:
        """Run a function in a new process; it gets a function that sends a line."""
        reader, writer = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            os.close(writer)
            return cls(pid, reader)
        os.close(reader)
        code = 1
        try:
            work(lambda line: _write(writer, line))
            code = 0
        except BaseException:  # noqa: BLE001 - the process ends here
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def read(self) -> bool:
        """Read the available data; return False at the end."""
        data = os.read(self.pipe, 1 << 16)
        *done, self.buffer = (self.buffer + data).split(b"\n")
        self.lines += [line.decode() for line in done]
        return bool(data)

    def end(self, *, kill: bool = False) -> int:
        """Wait for the end of the process, and return its status; negative for a signal."""
        if kill:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        os.close(self.pipe)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _write(pipe: int, line: str) -> None:
    data = line.encode() + b"\n"
    while data:
        data = data[os.write(pipe, data) :]


def ended(status: int) -> str:
    """Return the end of a process as text."""
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def run_contained(work: Callable[[], Any], limit: float) -> Outcome:
    """Run a function in another process, and return its result, which must be JSON data."""
    child = Child.start(lambda send: send(json.dumps(work())))
    deadline = time.monotonic() + limit
    while (left := deadline - time.monotonic()) > 0:
        if select.select([child.pipe], [], [], left)[0] and not child.read():
            status = child.end()
            if status == 0 and child.lines:
                return Outcome(json.loads(child.lines[-1]))
            return Outcome(ended=ended(status))
    child.end(kill=True)
    return Outcome(ended=f"no result after {limit:g} s")
