"""A function that is called after every step, including those inside of composite steps."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from ..ir.module import Module

Watcher = Callable[[Module], object]

_WATCHER: ContextVar[Watcher | None] = ContextVar("step watcher", default=None)


class _Stopped(BaseException):  # no composite step may handle it as an error of a step
    """The end of all steps because a watcher raised an error."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


@contextmanager
def watching(watcher: Watcher) -> Generator[None]:
    """Call a function with the program after every step of this thread in a with statement.

    An error that it raises ends all enclosing composite steps, and the with statement raises it.

    Parameters
    ----------
    watcher : callable
        Called with the module; a composite step that fails later may discard it.

    Examples
    --------
    >>> from .apply import apply
    >>> from .queries import GetFunctions
    >>> from .state import State
    >>> with watching(lambda module: print("module")):
    ...     state = apply(State.start(Module()), GetFunctions()).state
    module
    """
    token = _WATCHER.set(watcher)
    try:
        yield
    except _Stopped as stopped:
        raise stopped.error from None
    finally:
        _WATCHER.reset(token)


def report_step(module: Module) -> None:
    """Call the watcher of this thread, if any, with the program after a step."""
    watcher = _WATCHER.get()
    if watcher is not None:
        try:
            watcher(module)
        except BaseException as error:
            raise _Stopped(error) from error
