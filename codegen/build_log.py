"""The log of a compilation: phases and kernels with their times, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..errors import visible

Write = Callable[[str], None]


@dataclass(slots=True)
class Phase:
    """One phase of a compilation; ``note`` is printed after its time."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class BuildLog:
    """A log of the phases of a compilation.

    Parameters
    ----------
    write : callable, optional
        Writes a line; by default nothing is written.

    Examples
    --------
    >>> log = BuildLog(lambda line: print(line.partition(":")[0]))
    >>> with log.phase("lowering") as phase:
    ...     log.kernel("lowering", "relu", 0.012)
    ...     phase.note = "1 kernel"
      lowering relu
    lowering
    """

    write: Write | None = field(default=None)

    def line(self, text: str) -> None:
        """Write a line."""
        if self.write is not None:
            self.write(visible(text))

    def kernel(self, phase: str, name: str, seconds: float) -> None:
        """Write the time that one kernel took in a phase."""
        if self.write is not None:
            self.line(f"  {phase} {name}: {duration(seconds)}")

    @contextmanager
    def phase(self, name: str) -> Generator[Phase]:
        """Write the time of a phase and its note when it ends, also if it fails."""
        phase, started = Phase(), time.perf_counter()
        try:
            yield phase
        except BaseException:
            self.line(f"{name}: stopped after {duration(time.perf_counter() - started)}")
            raise
        note = f", {phase.note}" if phase.note else ""
        self.line(f"{name}: {duration(time.perf_counter() - started)}{note}")

    @contextmanager
    def timed(self, phase: str, name: str) -> Generator[None]:
        """Write the time that one kernel takes in a phase."""
        started = time.perf_counter()
        yield
        self.kernel(phase, name, time.perf_counter() - started)


def verbose_log() -> BuildLog:
    """Return a log that writes to standard error."""

    def write(line: str) -> None:
        print(f"tilewright: {line}", file=sys.stderr, flush=True)  # noqa: T201  # the log

    return BuildLog(write)


def duration(seconds: float) -> str:
    """Return a duration as text.

    Examples
    --------
    >>> duration(1.234), duration(0.0345), duration(0.00002)
    ('1.23 s', '34.5 ms', '0.0 ms')
    """
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "step"), counted(2, "step")
    ('1 step', '2 steps')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"
