"""Progress of long work: bars in terminals and notebooks, and callbacks."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any, Final, TypeAlias, TypeVar, cast

from .errors import TilewrightError, visible

Report: TypeAlias = Callable[[float, str], None]
"""A function called with the done fraction of some work, from 0 to 1 or -1 if it is unknown, and a
message, on the thread of the work. It may raise to stop the work."""

ProgressOption: TypeAlias = "bool | Report | None"
"""Whether a bar is shown: always, never, or (None) after one second on a terminal or in a notebook.
A function is called instead."""

DELAY: Final = 1.0
"""The duration of work in seconds after which a bar appears."""

VARIABLE: Final = "TILEWRIGHT_PROGRESS"
"""The environment variable that disables all bars if it is 0."""

_INTERVAL: Final = 0.1
_FORMAT: Final = "{desc} {percentage:3.0f}% |{bar:20}| {elapsed}{postfix}"
_shown: ContextVar[bool] = ContextVar("shown", default=False)
_T = TypeVar("_T")


class ProgressOptionError(TilewrightError):
    """A value of ``progress`` or ``TILEWRIGHT_PROGRESS`` that is not legal."""

    title = "Invalid progress option"


@contextmanager
def progress_of(title: str, progress: ProgressOption = None) -> Generator[Report]:
    """Provide the function that reports the progress of some work, and remove the bar at its end.

    The bar is removed when the work ends, fails, or is interrupted. Work inside of work with a bar
    shows no bar of its own.

    Parameters
    ----------
    title : str
        The title of the bar.
    progress : bool, callable or None
        The option of the caller.

    Yields
    ------
    callable
        Called with the done fraction, from 0 to 1 or -1, and a message.

    Raises
    ------
    ProgressOptionError
        If the option is neither a bool, a function nor None.

    Examples
    --------
    >>> def work(progress=None):
    ...     with progress_of("working", progress) as report:
    ...         report(0.5, "half")
    >>> work(progress=print)
    0.5 half
    >>> work(progress=False)
    """
    checked = cast("object", progress)
    if checked is not None and not isinstance(checked, bool) and not callable(checked):
        raise ProgressOptionError(
            f"expected a bool, a function or None, got {checked!r}",
            where="option 'progress'",
            hint="pass progress=False to show no bar, or a function of a fraction and a message",
        )
    if callable(progress):
        yield progress
    elif not _is_shown(progress):
        yield _silent
    else:
        bar = _Bar(title, 0.0 if progress else DELAY)
        token = _shown.set(True)
        try:
            yield bar
        finally:
            _shown.reset(token)
            bar.close()


def part_of(report: Report, start: float, end: float) -> Report:
    """Return the function that reports the progress of a part of some work.

    Examples
    --------
    >>> part_of(lambda fraction, message: print(fraction, message), 0.5, 1.0)(0.5, "linking")
    0.75 linking
    """

    def scaled(fraction: float, message: str) -> None:
        report(fraction if fraction < 0 else start + (end - start) * fraction, message)

    return scaled


def tracked(items: Iterable[_T], report: Report, message: Callable[[_T], str]) -> Generator[_T]:
    """Yield items, and report each before it is processed.

    Examples
    --------
    >>> for _ in tracked("ab", lambda fraction, message: print(fraction, message), str.upper):
    ...     pass
    0.0 A
    0.5 B
    """
    known: Sequence[_T] = tuple(items)
    for k, item in enumerate(known):
        report(k / len(known), message(item))
        yield item


def _silent(fraction: float, message: str) -> None:
    """Ignore a report."""


def _is_shown(progress: ProgressOption) -> bool:
    value = os.environ.get(VARIABLE, "1")
    if value not in ("0", "1", ""):
        raise ProgressOptionError(
            f"expected 0 or 1, got {value!r}",
            where=f"environment variable {VARIABLE}",
            hint="0 disables progress bars",
        )
    if progress is False or value == "0" or _shown.get():
        return False
    return bool(progress) or in_notebook() or is_terminal()


def is_terminal() -> bool:
    """Return whether standard error is a terminal."""
    stream = cast("Any", sys.stderr)
    return stream is not None and not stream.closed and bool(stream.isatty())


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook that can show widgets."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    kernel = shell is not None and "IPKernelApp" in shell.config
    return kernel and find_spec("ipywidgets") is not None


class _Bar:
    """A bar that appears after a delay, and replaces its previous state."""

    def __init__(self, title: str, delay: float) -> None:
        self._title = visible(title)
        self._started = time.monotonic()
        self._appears = self._started + delay
        self._bar: Any = None
        self._handle: Any = None
        self._last = 0.0

    def __call__(self, fraction: float, message: str) -> None:
        """Show a fraction and a message; reports in quick succession are dropped."""
        now = time.monotonic()
        if now < max(self._appears, self._last + _INTERVAL):
            return
        self._last = now
        if self._bar is None:
            self._bar = self._opened()
            self._bar.start_t -= now - self._started
        if fraction >= 0:
            self._bar.n = min(100 * fraction, 100)
        self._bar.set_postfix_str(visible(message).replace("\n", " "), refresh=False)
        self._bar.refresh()

    def _opened(self) -> Any:
        options: dict[str, Any] = {
            "desc": self._title, "total": 100, "bar_format": _FORMAT, "leave": False,
        }  # fmt: skip
        if in_notebook():
            from tqdm.notebook import tqdm_notebook

            bar: Any = tqdm_notebook(display=False, **options)
            display = cast("Any", sys.modules["IPython"]).display.display
            self._handle = display(bar.container, display_id=True)
            return bar
        from tqdm.std import tqdm

        return tqdm(file=sys.stderr, dynamic_ncols=True, **options)

    def close(self) -> None:
        """Remove the bar; an output of a notebook becomes empty, so that it can be saved."""
        if self._bar is None:
            return
        self._bar.n = self._bar.total  # a notebook keeps a bar that is not complete
        self._bar.close()
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
