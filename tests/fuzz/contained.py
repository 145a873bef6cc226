"""Functions that run in a forked process, so that a crash or an endless loop stays there."""

from __future__ import annotations

import faulthandler
import json
import mmap
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

MEMORY = 1 << 18
"""The size of the memory that a process shares with the one that started it."""

QUIET = 0.2
"""The time without another frame after which a stack is complete, in seconds."""

PATIENCE = 5.0
"""The longest time to wait for the stack of a process, in seconds."""


STALLED = 20
"""The longest wait for a process, as a multiple of its limit of CPU time."""


@dataclass
class Outcome:
    """The result of a contained function, or the way in which its process ended."""

    value: Any = None
    ended: str = ""
    stack: str = ""


@dataclass(eq=False)
class Parent:
    """The process that started this one, which gets lines of text and a note.

    A note states the present activity of this process. It replaces the note before, costs little,
    and outlives this process.
    """

    pipe: int
    memory: mmap.mmap

    def send(self, line: str) -> None:
        """Send a line of text."""
        data = line.encode() + b"\n"
        while data:
            data = data[os.write(self.pipe, data) :]

    def limit(self, seconds: float) -> None:
        """End this process after so much CPU time from now on, whatever else the machine runs.

        Processes that this one starts do not have the limit.
        """
        signal.setitimer(signal.ITIMER_PROF, seconds)

    def note(self, text: str) -> None:
        """Replace the note."""
        data = text.encode()[: MEMORY - 8]
        self.memory[:8] = bytes(8)
        self.memory[8 : 8 + len(data)] = data
        self.memory[:8] = len(data).to_bytes(8, "little")


@dataclass(eq=False)
class Child:
    """A forked process that sends lines of text.

    After its end, ``note`` is its last note, and ``stack`` has the innermost frames of the moment
    in which it crashed or was killed.
    """

    pid: int
    pipe: int
    stacks: int
    memory: mmap.mmap
    buffer: bytes = b""
    lines: list[str] = field(default_factory=list)
    note: str = ""
    stack: str = ""

    @classmethod
    def start(cls, work: Callable[[Parent], None]) -> Child:
        """Run a function in a new process."""
        (reader, writer), (frames, stacks) = os.pipe(), os.pipe()
        memory = mmap.mmap(-1, MEMORY)
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            os.close(writer)
            os.close(stacks)
            return cls(pid, reader, frames, memory)
        os.close(reader)
        os.close(frames)
        code = 1
        try:
            os.set_blocking(stacks, False)
            faulthandler.enable(stacks, all_threads=False)
            faulthandler.register(signal.SIGUSR1, stacks, all_threads=False)
            faulthandler.register(signal.SIGPROF, stacks, all_threads=False, chain=True)
            work(Parent(writer, memory))
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
                os.kill(self.pid, signal.SIGUSR1)
                self._read_stack(PATIENCE)
                os.kill(self.pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._read_stack(0)
        length = int.from_bytes(self.memory[:8], "little")
        self.note = self.memory[8 : 8 + length].decode(errors="replace")
        self.memory.close()
        os.close(self.pipe)
        os.close(self.stacks)
        return status

    def _read_stack(self, wait: float) -> None:
        """Read the frames, which are written one by one."""
        while select.select([self.stacks], [], [], wait)[0]:
            data = os.read(self.stacks, 1 << 16)
            if not data:
                return
            self.stack += data.decode(errors="replace")
            wait = min(wait, QUIET)


def is_over(status: int) -> bool:
    """Return whether a process ended because its CPU time was over."""
    return status == -signal.SIGPROF


def ended(status: int) -> str:
    """Return the end of a process as text."""
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def run_contained(work: Callable[[], Any], limit: float) -> Outcome:
    """Run a function in another process, and return its result, which must be JSON data.

    The limit is in seconds of CPU time; a process that waits longer than :data:`STALLED` times as
    much ends, too.
    """

    def limited(parent: Parent) -> None:
        parent.limit(limit)
        parent.send(json.dumps(work()))

    child = Child.start(limited)
    deadline = time.monotonic() + STALLED * limit
    while (left := deadline - time.monotonic()) > 0:
        if select.select([child.pipe], [], [], left)[0] and not child.read():
            status = child.end()
            if status == 0 and child.lines:
                return Outcome(json.loads(child.lines[-1]))
            over = f"no result after {limit:g} s of CPU time"
            return Outcome(ended=over if is_over(status) else ended(status), stack=child.stack)
    child.end(kill=True)
    return Outcome(ended=f"no result after {STALLED * limit:g} s", stack=child.stack)
